"""Plans: the paper's own counts come out, what is answered is left out, and nothing is asked."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import yaml

from esfp import (
    calls,
    corpus,
    files,
    generate,
    judge,
    llm_judges,
    pace,
    params,
    plan,
    plan_calls,
    questions,
)
from tests.conftest import REPO

JUDGES = [
    {"name": "first", "kind": "llm", "provider": "test", "model": "judge-1"},
    {"name": "second", "kind": "llm", "provider": "test", "model": "judge-2"},
]


@pytest.fixture(scope="module")
def cohort():
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(REPO)
        loaded = params.load("params/paper_cohort.yaml")
        frame, _ = plan.tokens(plan_calls.every(loaded, "no-such-run"))
        loaded.prices["judges"] = params.Price(input=1, output=2)
        yield loaded, frame.assign(dollars=plan.cost(frame, loaded))


def test_the_papers_counts(cohort):
    loaded, frame = cohort
    table = plan.totals(frame, loaded, ["model"]).set_index("model")
    for model in table.index.drop("all"):  # Section 4.8: per model
        assert table.loc[model, plan.STAGES].tolist() == [520, 1040, 520]
    assert len(table) == 8 + 1
    assert table.loc["all", "answers"] == 4160
    assert table.loc["all", "labels"] + table.loc["all", "stances"] == 12480
    assert table.loc["all", "left"] == 16640
    assert table.loc["all", "seconds"] == pytest.approx(table["seconds"].drop("all").sum())


def test_stances_come_from_the_primary_judge_alone(cohort):
    _, frame = cohort
    assert set(frame.loc[frame["stage"] == "stances", "asked"]) == {"qwen"}


def test_cheaper_choices(cohort):
    loaded, frame = cohort
    judged = frame[frame["stage"] != "answers"]
    table = plan.choices(judged, loaded, "no-such-run").set_index("choice")
    whole = table.loc["as planned"]
    assert (whole["left"], table.loc["batch, half price", "left"]) == (12480, 12480)
    assert table.loc["batch, half price", "dollars"] == pytest.approx(whole["dollars"] / 2)
    assert "interface of each vendor's own" in table.loc["batch, half price", "how"]
    assert table.loc["stances for P0, P2, P4 alone", "left"] == 8320 + 8 * 312
    offline = table.loc["offline stances"]
    assert offline["left"] == 8320 and offline["dollars"] < whole["dollars"]
    assert table.loc["offline judges", "left"] == table.loc["offline judges", "dollars"] == 0
    assert table.loc["30 of 104 items", "left"] == 8 * 30 * 5 * 3
    fold = plan.folded(loaded, "no-such-run")
    fold = fold[fold["stage"] != "answers"]
    assert len(fold) == 8320 and set(fold["stage"]) == {"labels"}
    assert offline["dollars"] < fold["dollars"].sum() < whole["dollars"]


def test_a_reasoning_model_answers_with_a_trace(cohort):
    _, frame = cohort
    sizes = frame[frame["stage"] == "answers"].groupby("model")["answer_tokens"].mean()
    longer = sizes.pop("Qwen3-Next-80B")
    assert set(sizes) == {plan_calls.ANSWER_TOKENS}
    assert longer == plan_calls.ANSWER_TOKENS + plan_calls.TRACE_TOKENS


def test_counted_tokens_are_near_those_a_model_reports(monkeypatch):
    monkeypatch.chdir(REPO)
    local = params.load("params/local.yaml")
    frame, how = plan.tokens(plan_calls.every(local, "local"))
    names = [candidate.name for candidate in local.generate.candidates]
    reported = files.read_shards("outputs/local/responses", names, files.RESPONSES)
    assert how.startswith("counted")
    assert frame["prompt_tokens"].sum() == pytest.approx(reported["prompt_tokens"].sum(), rel=0.1)
    assert frame["answered"].all()


def test_without_a_tokenizer_tokens_are_said_to_be_an_estimate(monkeypatch):
    def missing(texts):
        raise files.DataError("no tokenizer")

    monkeypatch.setattr(plan.encoder, "count_pieces", missing)
    messages = [("x" * 40, "y" * 80), ("z" * 120,)]
    frame, how = plan.tokens(pd.DataFrame({"messages": messages}))
    assert how.startswith("an estimate")
    expected = [10 + 20 + 2 * plan_calls.MESSAGE, 30 + plan_calls.MESSAGE]
    assert frame["prompt_tokens"].tolist() == expected


def test_a_price_by_name_goes_before_id_and_provider():
    price = {name: params.Price(input=n, output=10 * n) for n, name in enumerate("mip", start=1)}
    here = SimpleNamespace(embedded=None)
    rows = [("m", "i", "p"), ("x", "i", "p"), ("x", "x", "p"), ("x", "x", "free"), ("x", "x", "q")]
    frame = pd.DataFrame(rows, columns=["asked", "model_id", "provider"])
    frame = frame.assign(prompt_tokens=1e6, answer_tokens=2e5)
    providers = {"p": here, "q": here, "free": SimpleNamespace(embedded="weights")}
    found = plan.cost(frame, SimpleNamespace(prices=price, providers=providers))
    np.testing.assert_allclose(found, [3, 6, 9, 0, np.nan])


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"concurrency": 10}, 100 * (1 + 2) / 10),
        ({"concurrency": 1000}, 3),
        ({"concurrency": 1000, "requests_per_minute": 60}, 100),
        ({"concurrency": 1000, "tokens_per_minute": 6000}, 100 * 400 / 100),
    ],
)
def test_time_is_what_the_tightest_limit_allows(limits, expected):
    frame = pd.DataFrame({"provider": ["p"] * 100, "answer_tokens": 100.0, "reserved": 400.0})
    provider = SimpleNamespace(embedded=None, **limits)
    assert plan.seconds(frame, SimpleNamespace(providers={"p": provider})) == pytest.approx(
        expected
    )


def left(path):
    frame = plan_calls.every(params.load(path), "run")
    return frame[~frame["answered"]].groupby("stage").size().to_dict()


def test_what_is_answered_is_left_out(workspace, server, monkeypatch):
    monkeypatch.chdir(workspace.root)
    judge = {"judges": JUDGES, "stance_judge": "second"}
    path = workspace.params("run", server.base_url, models=("steady", "slow"), judge=judge)
    assert left(path) == {"answers": 40, "labels": 80, "stances": 40}
    before = workspace.run("esfp.plan", "--params", path)
    assert before.returncode == 0, before.stderr
    assert server.calls() == [] and not (workspace.root / "outputs").exists()

    assert workspace.stage("generate", path).returncode == 0
    planned = plan_calls.every(params.load(path), "run")
    assert planned.groupby("stage")["answered"].mean().to_dict() == {
        "answers": 1, "labels": 0, "stances": 0
    }  # fmt: skip
    todo = left(path)  # the server gives both models the same answers: one call serves both
    asked = len(server.calls())
    done = workspace.stage("judge", path)
    assert done.returncode == 0, done.stderr
    assert len(server.calls()) - asked == todo["labels"] + todo["stances"]
    assert left(path) == {}
    with calls.Journal("outputs/run/journal.sqlite"):  # a run under way is not in the way
        assert left(path) == {}
    (workspace.root / "outputs/run/journal.sqlite").unlink()
    assert left(path) == todo  # answers are in the Parquet files too


KAGGLE = REPO / "params/kaggle.yaml"
VARIANTS = {  # of kaggle.yaml: one candidate, two language models as judges
    "one message": {"providers": {"kaggle": {"system_role": "user"}}},
    "cpc": {"judge": {"stance_phrasings": "cpc"}},
    "folded": {"judge": {"stance_call": "folded"}},
    "both": {"judge": {"stance_call": "folded", "stance_phrasings": ["P4", "P2", "P0"]}},
    "samples": {"generate": {"samples": 2}},
    "again": {"generate": {"again": ["P0", "P1"]}},
}


def sent_to_tests(workspace, path, base_url, change):
    """A params file like that at `path` for two items, its calls going to `base_url`."""
    values = params.load(path).model_dump(mode="json", exclude_defaults=True)
    for provider in values["providers"].values():
        provider.pop("embedded", None)
        provider.pop("key_env", None)
        provider["base_url"] = base_url
    for user in [*values["generate"]["candidates"], *values["judge"]["judges"]]:
        if "provider" in user:
            user["model"] = f"varied {user['name']}"
    two = (workspace.root / "items.csv").read_text().splitlines()[:3]
    (workspace.root / "two.csv").write_text("\n".join(two) + "\n")
    values["corpus"] = {"items": "two.csv"}
    file = workspace.root / "params/run.yaml"
    file.write_text(yaml.safe_dump(params.merge(values, change)))
    return params.load(file)


def judged(loaded):
    """What the judge stage asks language models."""
    values = params.stage_parameters(loaded, "judge", "run")
    names = [model["name"] for model in values["models"]]
    responses = files.read_shards("outputs/run/responses", names, files.RESPONSES)
    responses = files.regular(responses, values["samples"])
    sentences = judge.split(responses)
    read = responses[responses["phrasing"].isin(values["stance_phrasings"])]
    folded = {}
    if values["stance_call"] == "folded":
        folded = questions.fold(values["stance_judge"], read, sentences)
    prompts = [corpus.load_prompt(values[f"{name}_prompt"]) for name in ("judge", "stance")]
    asker = llm_judges.Asker("outputs/run", values["providers"], *prompts, folded=folded)
    judges = [one for one in values["judges"] if one["kind"] == "llm"]
    if judges:
        labelled = judge.label(sentences, judges, "unanimous", {}, asker)
        assert labelled["label"].notna().all()
    if values["stance_judge"] != "offline":
        asked = values["stance_judge"], judges, None, asker, values["stance_phrasings"]
        found = judge.stances(responses, None, *asked)
        asked_for = found["phrasing"].isin(values["stance_phrasings"])
        assert found["stance"].notna().equals(asked_for)


def tokens_sent(log):
    texts = [message["content"] for entry in log for message in entry["body"]["messages"]]
    return (plan.encoder.count_pieces(texts)[0] - 2 + plan_calls.MESSAGE).sum()


@pytest.mark.parametrize(
    ("path", "change"),
    [(path, {}) for path in sorted(REPO.glob("params/*.yaml")) if path.stem != "published"]
    + [(KAGGLE, change) for change in VARIANTS.values()],
    ids=lambda value: value.stem if hasattr(value, "stem") else "",
)
def test_a_run_sends_what_its_plan_says(workspace, bad, monkeypatch, path, change):
    monkeypatch.chdir(workspace.root)
    loaded = sent_to_tests(workspace, path, bad.base_url, change)
    before = plan_calls.every(loaded, "run")
    trials = plan_calls.trials(loaded, "run", before)
    assert trials == sum(one.kind == "llm" for one in loaded.judge.judges)

    values = params.stage_parameters(loaded, "generate", "run")
    _, prompts = generate.load_prompts(values["corpus"])
    system = corpus.load_prompt(values["system_prompt"])
    generate.ask(
        "outputs/run",
        *(prompts, values["candidates"], values["providers"], system, values["samples"], []),
        values["judges"],
        values["again"],
    )
    log = bad.log(reset=True)
    tried = [entry for entry in log if "Water is made" in entry["body"]["messages"][-1]["content"]]
    assert len(tried) == trials
    answers = before[before["stage"] == "answers"]
    assert len(log) - len(tried) == len(answers)
    assert tokens_sent(log) - (tokens_sent(tried) if tried else 0) == (
        plan.tokens(answers)[0]["prompt_tokens"].sum()
    )

    after = plan_calls.every(loaded, "run")
    if values["samples"] == 1:  # the server says the same again, and is judged but once
        assert after.groupby("stage").size().equals(before.groupby("stage").size())
    left = after[~after["answered"]]
    assert "answers" not in set(left["stage"])
    judged(loaded)
    log = bad.log(reset=True)
    sent = pd.Series([entry["body"]["model"] for entry in log]).value_counts().to_dict()
    assert sent == left["model_id"].value_counts().to_dict()
    if log:
        assert tokens_sent(log) == plan.tokens(left)[0]["prompt_tokens"].sum()
    again = plan_calls.every(loaded, "run")
    assert again["answered"].all() and plan_calls.trials(loaded, "run", again) == 0


def test_a_limit_in_the_extra_body_is_charged_to_the_rate():
    def charged(**more):
        provider = params.Provider(base_url="http://here", **more)
        return pace.tokens(calls.build(provider, "m", "s" * 40, "u" * 40, {}).sent())

    assert charged() == 20 + pace.ANSWER_TOKENS
    assert charged(decoding={"max_tokens": 70}) == 90
    assert charged(extra_body={"max_completion_tokens": 80}) == 100
    assert charged(limit_parameter="none", decoding={"max_tokens": 70}) == charged()


def test_the_report_says_what_it_rests_on(workspace, monkeypatch):
    monkeypatch.chdir(workspace.root)
    judge = {"judges": JUDGES, "stance_judge": "second"}
    prices = {"steady": {"input": 1000, "output": 0}}
    path = workspace.params("run", "http://127.0.0.1:9/v1", judge=judge, prices=prices)
    text = plan.report(path)
    assert "4 items, 5 phrasings, 1 sample(s) a prompt. No call is made." in text
    assert "No price for first, second: add" in text
    generate = {"candidates": [{"name": "steady", "provider": "test"}], "again": ["P0", "P1"]}
    more = workspace.params("more", "http://127.0.0.1:9/v1", judge=judge, generate=generate)
    assert "1 sample(s) a prompt, P0, P1 once more. No call" in plan.report(more)
    assert "Tokens in: counted with the WordPiece tokenizer" in text
    assert "Tokens out, an estimate" in text and "Time, an estimate" in text
    row = next(line.split() for line in text.splitlines() if line.startswith("steady  answers"))
    assert row[2:4] == ["20", "20"]
    assert float(row[6].strip("$")) == pytest.approx(int(row[4].replace(",", "")) / 1000, abs=0.01)


def test_a_run_of_released_scores_has_no_plan(workspace):
    path = workspace.root / "params" / "scores.yaml"
    path.write_text("released: scores.csv\n")
    done = workspace.run("esfp.plan", "--params", path.relative_to(workspace.root))
    assert done.returncode == 1
    assert done.stderr.startswith("error: ") and "makes no call" in done.stderr
