"""Params files: every mistake is one line that names the file, the key and the way out."""

from pathlib import Path

import pandas as pd
import pytest
import yaml

from esfp import keys, params
from tests.conftest import REPO

CANDIDATE = "generate: {candidates: [{name: m, provider: p}]}\n"
PROVIDER = "providers: {p: {base_url: 'http://here'}}\n"
JUDGE = "judge: {judges: [{name: j, kind: words}]}\n"
NO_BANDS = "types: {bands: []}\n"  # the profiles lie in the repository
WHOLE = CANDIDATE + PROVIDER + JUDGE


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("released: x\nscroe: {}\n", "unknown key 'scroe'; did you mean 'score'?"),
        ("released: x\nscore: {psi_ceilin: max}\n", "did you mean 'psi_ceiling'?"),
        (WHOLE.replace("{name: m", "{name: m, vendr: v"), "did you mean 'vendor'?"),
        (WHOLE.replace("base_url", "base_ulr"), "did you mean 'base_url'?"),
        ("released: x\nscore: {cpc_bonus: yes}\n", "score.cpc_bonus"),
        ("released: x\nscore: {cpc_bonus: '0.25'}\n", "score.cpc_bonus"),
        ("released: x\nscore: {psi_ceiling: p96}\n", "score.psi_ceiling"),
        ("released: x\nreleased: y\n", "line 2: the key 'released' is there twice"),
        ("released: [\n", "not valid YAML"),
        ("- a\n", "expected keys and values"),
        ("", "expected keys and values"),
        ("extends: none.yaml\n", "none.yaml: no such params file"),
        ("extends: bad.yaml\n", "extends itself"),
        ("score: {}\n", "give either generate"),
        ("released: x\n" + WHOLE, "give either generate"),
        (CANDIDATE + PROVIDER, "needs at least one judge"),
        (CANDIDATE + PROVIDER + "judge: {judges: []}\n", "needs at least one judge, for example"),
        (CANDIDATE + JUDGE, "provider 'p' is not defined"),
        (WHOLE.replace("provider: p}", "provider: p}, {name: m, provider: p}"), "there twice"),
        (WHOLE.replace("judge: {", "judge: {folds: 2, "), "'judge.folds': input should be greater"),
        (WHOLE.replace("name: j", "name: panel"), "judge.judges.0.name: 'panel' is what results"),
        (WHOLE.replace("'http://here'", "'http://here', key_env: sk-ab-12"), "not a key"),
        (WHOLE.replace("kind: words", "kind: wrods"), "judge.judges.0"),
        (WHOLE.replace("base_url: 'http://here'", "concurrency: 3"), "either base_url or embedded"),
        (WHOLE.replace("j, kind", "'a/b', kind"), "judge.judges.0"),
        (WHOLE + "prices: {q: {input: 1, output: 2}}\n", "prices: 'q' is no provider or model"),
        (WHOLE + "prices: {p: {input: -1, output: 2}}\n", "prices.p.input"),
        (WHOLE + "prices: {p: {input: 1, output: 2, out: 3}}\n", "did you mean 'output'?"),
        (WHOLE + "prices: {p: {input: 1}}\n", "'prices.p.output' is missing"),
    ],
)
def test_a_mistake_is_one_line(tmp_path, text, words):
    path = tmp_path / "bad.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(params.ParamsError) as error:
        params.load(path)
    assert words in str(error.value)
    assert str(tmp_path) in str(error.value)
    assert "\n" not in str(error.value)
    assert "sk-ab-12" not in str(error.value)


def test_missing_file(tmp_path):
    with pytest.raises(params.ParamsError, match="no such params file"):
        params.load(tmp_path / "none.yaml")


def test_extends_lays_one_file_over_another(tmp_path):
    (tmp_path / "base.yaml").write_text(WHOLE + "score: {cpc_bonus: 0.1, psi_ceiling: max}\n")
    (tmp_path / "more.yaml").write_text("extends: base.yaml\nscore: {cpc_bonus: 1e-3}\n")
    score = params.load(tmp_path / "more.yaml").score
    assert (score.cpc_bonus, score.psi_ceiling) == (0.001, "max")


def test_merge_replaces_lists_and_merges_mappings():
    base = {"a": {"b": 1, "c": [1, 2]}, "d": 1}
    assert params.merge(base, {"a": {"c": [3]}}) == {"a": {"b": 1, "c": [3]}, "d": 1}


@pytest.mark.parametrize("path", sorted(REPO.glob("params/**/*.yaml")), ids=lambda p: p.stem)
def test_every_params_file_of_the_repository_is_valid(path):
    loaded = params.load(path)
    for stage in params.STAGES:
        values = params.stage_parameters(loaded, stage, params.run_name(path))
        assert yaml.safe_load(yaml.safe_dump(values)) == values


def test_run_names_follow_the_folder():
    assert params.run_name("params/local.yaml") == "local"
    assert params.run_name("params/ablations/equal.yaml") == "ablations/equal"
    assert params.run_name("mine.yaml") == "mine"


def test_a_changed_weight_changes_the_files_of_later_stages_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("params").mkdir()
    path = Path("params/run.yaml")
    path.write_text(WHOLE + NO_BANDS)
    params.write_stage_parameters(path)
    before = {file: file.stat().st_mtime_ns for file in Path("outputs/run/params").iterdir()}
    path.write_text(WHOLE + NO_BANDS + "score: {weights: {ar: 0.3}}\n")
    params.write_stage_parameters(path)
    changed = {f.stem for f, when in before.items() if f.stat().st_mtime_ns != when}
    assert changed == {"score", "bootstrap", "figures"}


def test_the_score_stage_reads_the_reference_labels(tmp_path):
    path = tmp_path / "run.yaml"
    path.write_text(WHOLE.replace("judge: {", "judge: {gold: my/gold, "))
    loaded = params.load(path)
    assert params.stage_parameters(loaded, "score", "run")["gold"] == "my/gold"
    assert "my/gold/sentences.csv" in params.inputs(loaded)["score"]
    released = params.load(REPO / "params/published.yaml")
    assert params.stage_parameters(released, "score", "published")["gold"] is None


def test_the_papers_cohort_is_table_4_at_the_papers_concurrency():
    cohort = params.load(REPO / "params/paper_cohort.yaml")
    released = pd.read_csv(REPO / "outputs/published/released.csv").set_index("model")
    ids = {candidate.name: candidate.model for candidate in cohort.generate.candidates}
    assert ids == released["endpoint"].to_dict()
    for candidate in cohort.generate.candidates:
        row = released.loc[candidate.name]
        assert (candidate.vendor, candidate.type) == (row["vendor"], row["type"])
        slower = candidate.vendor in ("Anthropic", "DeepSeek", "Zhipu AI")
        assert cohort.providers[candidate.provider].concurrency == (10 if slower else 20)
    primary, second = cohort.judge.judges
    assert primary.model == "qwen/qwen3-235b-a22b-instruct-2507"
    assert second.model == "google/gemini-2.0-flash-lite"
    assert cohort.judge.stance_judge == primary.name
    assert {cohort.providers[judge.provider].concurrency for judge in (primary, second)} == {50}


def test_a_changed_price_changes_the_files_of_the_closing_tables_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("params").mkdir()
    path = Path("params/run.yaml")
    llm = NO_BANDS + WHOLE.replace(
        "{name: j, kind: words}", "{name: j, kind: llm, provider: p, model: i}"
    )
    path.write_text(llm + "prices: {p: {input: 3, output: 4}}\n")
    params.write_stage_parameters(path)
    before = {file: file.read_text() for file in Path("outputs/run/params").iterdir()}
    path.write_text(llm + "prices: {p: {input: 3, output: 4}, i: {input: 1, output: 2.5}}\n")
    params.write_stage_parameters(path)
    assert {f.name for f, text in before.items() if f.read_text() != text} == {"prices_judge.yaml"}
    dearer = yaml.safe_load(Path("outputs/run/params/prices_judge.yaml").read_text())
    assert dearer == {"j": {"input": 1, "output": 2.5}}
    values = params.stage_parameters(params.load(path), "generate", "run")
    assert values["prices"] == {"m": {"input": 3, "output": 4}}


@pytest.mark.parametrize(
    ("judge", "marked"),
    [
        ({"provider": "p", "model": "m"}, "my name"),
        ({"provider": "q", "model": "vendor/M"}, "my name"),  # by another way to the same model
        ({"provider": "w", "model": "renamed"}, "e"),  # the same weights
        ({"provider": "p", "model": "n"}, None),
        ({"provider": "q", "model": "m-mini"}, None),
    ],
)
def test_a_judge_that_is_a_candidate_is_known(tmp_path, judge, marked):
    path = tmp_path / "run.yaml"
    providers = {"p": {"base_url": "http://here"}, "q": {"base_url": "http://there"}}
    providers["w"] = {"embedded": {"weights": {"path": "a.gguf", "sha256": "0" * 64}}}
    candidates = [
        {"name": "my name", "provider": "p", "model": "m"},
        {"name": "o", "provider": "q"},
        {"name": "e", "provider": "w", "model": "a"},
    ]
    judges = [{"name": "j", "kind": "llm"} | judge, {"name": "k", "kind": "words"}]
    values = {"providers": providers, "generate": {"candidates": candidates}}
    path.write_text(yaml.safe_dump(values | {"judge": {"judges": judges}}))
    found = params.stage_parameters(params.load(path), "judge", "run")["self_judged"]
    assert found == ({"j": [marked]} if marked else {})


def test_a_run_without_judges_is_refused_before_anything_is_asked(workspace, server):
    path = workspace.params("run", server.base_url)
    for judge in ("", "judge: {judges: []}\n"):
        (workspace.root / path).write_text(CANDIDATE + PROVIDER + judge)
        done = workspace.stage("generate", path)
        assert done.returncode == 1 and not (workspace.root / "outputs").exists()
        assert done.stderr.startswith("error: params/run.yaml") and "judge" in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert server.calls() == []


KEY = "sk-ant-0a1B2c3D4e5F6g7H8i9J0k"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (WHOLE.replace("'http://here'", f"'http://here', key_env: {KEY}"), "providers.p.key_env"),
        (WHOLE.replace("'http://here'", f"'http://here', api_key: {KEY}"), "providers.p.api_key"),
        (WHOLE.replace("'http://here'", f"'http://u:{KEY}@here'"), "providers.p.base_url"),
        (
            WHOLE.replace("'http://here'", f"'http://here', decoding: {{user: [{KEY}]}}"),
            "providers.p.decoding.user.0",
        ),
        (
            WHOLE.replace("'http://here'", f"'http://here', extra_headers: {{X-Id: Bearer {KEY}}}"),
            "providers.p.extra_headers.X-Id",
        ),
        (
            WHOLE.replace(
                "'http://here'", "'http://here', extra_headers: {x-api-key: 8fK2m9Qz7Lw4Xp1Vt6Rb}"
            ),
            "providers.p.extra_headers.x-api-key",
        ),
        (f"released: x\nnote: {KEY}\n", "note"),
    ],
)
def test_a_params_file_that_holds_a_key_is_refused_without_repeating_it(tmp_path, text, place):
    path = tmp_path / "bad.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(params.ParamsError) as error:
        params.load(path)
    assert f"'{place}' holds something shaped like a key" in str(error.value)
    assert KEY not in str(error.value) and "8fK2m9Qz" not in str(error.value)


def test_an_authorization_header_is_refused(tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_text(
        WHOLE.replace("'http://here'", "'http://here', extra_headers: {Authorization: x}")
    )
    with pytest.raises(params.ParamsError, match="'Authorization' looks like a key"):
        params.load(path)


@pytest.mark.parametrize(
    "value",
    [
        {"key_env": "OPENROUTER_API_KEY"},
        {"sha256": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"},
        {"max_tokens": "800", "stop": ["<|im_end|>"], "model": "deepseek/deepseek-r1-0528:free"},
        {"extra_headers": {"HTTP-Referer": "https://example.org/a-long-path", "X-Title": "ESFP"}},
        {"base_url": "https://generativelanguage.googleapis.com/v1beta/openai/"},
    ],
)
def test_what_is_no_key_is_let_pass(value):
    assert keys.find(value) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("T9: {minus: [0, 1], plus: [0, 1]}", "T9"),
        ("T1: {minus: [0.5, 0.1], plus: [0, 1]}", "give the lower end first"),
        ("T1: {minus: [0, 1]}", "'T1.plus' is missing"),
    ],
)
def test_a_wrong_profile_of_bands_is_one_line(tmp_path, text, words):
    path = tmp_path / "profile.yaml"
    path.write_text(text + "\n")
    with pytest.raises(params.ParamsError) as error:
        params.read_bands([str(path)])
    assert words in str(error.value) and "profile.yaml" in str(error.value)
    assert "\n" not in str(error.value)


def test_bands_of_the_repository_cover_every_type():
    profiles = params.read_bands([str(REPO / f"corpus/bands/{name}.yaml")
                                  for name in ("clinical", "opinion_writing")])  # fmt: skip
    assert all(
        sorted(profile) == ["T1", "T2", "T3", "T4", "T5", "T6"] for profile in profiles.values()
    )
