"""The stages one after another on a real server: traces that reach no measure, gaps closed.

Without the notebooks, whose tests are in tests/notebooks.
"""

import re

import pandas as pd
import pytest

from esfp import calls, corpus, coverage, embed, files, generate, judge, llm_judges, params, score
from tests.conftest import ENVIRONMENT

PHRASINGS = {
    "ar": ["P1", "P2"],
    "scd": ["P1", "P2"],
    "psi": ["P0", "P1"],
    "cpc": ["P0", "P2", "P4"],
}
JUDGES = [{"name": "big", "kind": "llm", "provider": "test", "model": "think"}]


@pytest.fixture
def here(workspace, monkeypatch):
    monkeypatch.chdir(workspace.root)
    monkeypatch.setenv("ESFP_CACHE", ENVIRONMENT["ESFP_CACHE"])
    return workspace


def answers(path) -> None:
    values = params.stage_parameters(params.load(path), "generate", "run")
    prompts = generate.load_prompts(values["corpus"])[1]
    system = corpus.load_prompt(values["system_prompt"])
    generate.ask(values["run_dir"], prompts, values["candidates"], values["providers"], system)


def scored(path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(coverage, scores by model) after judging and embedding what there is."""
    values = params.stage_parameters(params.load(path), "judge", "run")
    names, run_dir = [model["name"] for model in values["models"]], values["run_dir"]
    responses = files.read_shards(f"{run_dir}/responses", names, files.RESPONSES)
    prompts = [corpus.load_prompt(values[name]) for name in ("judge_prompt", "stance_prompt")]
    asker = llm_judges.Asker(run_dir, values["providers"], *prompts)
    judges = values["judges"]
    labelled = judge.label(judge.split(responses), judges, "unanimous", {}, asker)
    stances = judge.stances(responses, None, values["stance_judge"], judges, None, asker)
    judge.write(run_dir, names, judges, labelled, stances)
    embed.write(run_dir, embed.embed_responses(responses), names, 1)

    responses, judged, stances, embeddings = score.read(run_dir, names)
    items = corpus.load(values["corpus"]["items"])
    measures = score.measures(responses, judged, stances)
    share = coverage.coverage(measures, responses, embeddings, names, len(items), PHRASINGS)
    distances = score.psi(embeddings, PHRASINGS["psi"])
    kept = score.usable(measures, responses)
    per_item = score.items(kept, distances, items, names, PHRASINGS["scd"], PHRASINGS["cpc"])
    return share, score.per_model(per_item).set_index("model")


def test_long_traces_change_no_measure(here, bad):
    models = ["ok", "think", "closed", "harmony", "field-reasoning_content"]
    judging = {"judges": JUDGES, "stance_judge": "big"}
    run = here.params("run", bad.base_url, models=models, judge=judging)
    answers(run)
    for model in models[1:]:
        table = files.read_parquet(
            f"outputs/run/responses/{calls.slug(model)}.parquet", files.RESPONSES
        )
        assert table["trace"].str.len().min() > 2000
    share, found = scored(run)
    assert (share["coverage"] == 1).all()
    assert found.loc["ok", "delta_scd"] > 0 and found.loc["ok", "psi_mean"] > 0
    for model in models[1:]:
        pd.testing.assert_series_equal(found.loc[model], found.loc["ok"], check_names=False)


def test_a_gap_is_named_and_closed_by_the_command_that_the_refusal_gives(here, bad):
    judging = {"judges": JUDGES, "stance_judge": "big"}
    path = here.params("run", bad.base_url, models=("first-13",), judge=judging)
    with pytest.raises(calls.CallError, match="Incorrect API key provided"):
        answers(path)
    share, _ = scored(path)
    with pytest.raises(coverage.CoverageError) as refusal:
        coverage.require(share, 0.95, "outputs/run")
    words = str(refusal.value)
    assert words.startswith("first-13: only ") and "missing from 1_generate" in words
    assert "`make all PARAMS=params/run.yaml`" in words
    command = re.search(r"`\.venv/bin/python -m (esfp\.run .+?)`", words)[1]
    bad.log(reset=True)  # the key is valid again
    done = here.run(*command.split())
    assert done.returncode == 0, done.stderr
    assert len(bad.log()) == 20 - 13
    share, found = scored(path)
    coverage.require(share, 0.95, "outputs/run")
    assert found["delta_scd"].notna().all()
