"""The notebooks: stored clean, and executed by papermill against a real server."""

import json

import nbformat
import pytest

from esfp import files, params, run
from tests.conftest import REPO

NOTEBOOKS = sorted(REPO.glob("notebooks/*.ipynb"))  # those of the stages have numbers
STAGES = [path for path in NOTEBOOKS if path.stem[0].isdigit()]


def test_one_notebook_a_stage():
    assert [path.stem for path in STAGES] == [run.notebook_name(s) for s in params.STAGES]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_without_outputs(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_function_is_defined_in_a_notebook(path):
    source = "\n".join(
        c.source for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"
    )
    assert not [
        line for line in source.splitlines() if line.startswith(("def ", "class ", "async "))
    ]


@pytest.mark.parametrize("path", STAGES, ids=lambda path: path.stem)
def test_parameters_match_the_stage(path):
    stage = path.stem.split("_", 1)[1]
    values = params.stage_parameters(params.load(REPO / "params/local.yaml"), stage, "local")
    run.check_parameters(nbformat.read(path, as_version=4), values, path)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_prose_before_code_and_assertions_at_the_end(path):
    cells = nbformat.read(path, as_version=4).cells
    assert cells[0].cell_type == "markdown" and cells[0].source.startswith("# ")
    assert cells[-1].cell_type == "code" and "assert " in cells[-1].source


def test_all_stages_on_four_items(workspace, server):
    path = workspace.params("tiny", server.base_url, models=("steady", "other"))
    for stage in params.STAGES:
        done = workspace.stage(stage, path)
        assert done.returncode == 0, done.stderr
        executed = workspace.root / f"outputs/tiny/notebooks/{run.notebook_name(stage)}.ipynb"
        assert executed.exists() and executed.with_suffix(".html").exists()
    out = workspace.root / "outputs/tiny"
    assert (
        (out / "scores.csv").read_text().splitlines()[0].startswith("model,vendor,type,rank,esfp")
    )
    assert (out / "tables/table5_leaderboard.csv").exists()
    assert (out / "figures/fig4_gradient.pdf").exists()
    results = json.loads((out / "results.json").read_text())
    assert results["generate.ok.steady"] == 20
    # the server reports under P1 and commits under P2, word for word
    assert results["score.delta_ar.steady"] == pytest.approx(1 - 1 / 4)
    assert results["score.delta_scd.steady"] > 0
    assert sum(server.calls()) == 40
    # nobody has labelled these answers, and the scores under either judge are there all the same
    assert results["score.corrected.delta_scd.steady"] is None
    assert results["score.under.panel.esfp.steady"] == results["score.esfp.steady"]
    assert results["score.under.words.delta_scd.steady"] is not None
    score = (out / "notebooks/4_score.ipynb").read_text()
    assert "steady stays uncorrected: 0 of 4 items have reference labels" in score
    assert (out / "tables/table8_judges.md").exists() and (out / "figures/fig8_judges.pdf").exists()

    # a model that is taken out of the params keeps its files, and is in no score
    path = workspace.params("tiny", server.base_url, models=("steady",))
    assert workspace.stage("score", path).returncode == 0
    assert (out / "responses/other.parquet").exists()
    assert "other" not in (out / "scores.csv").read_text()
    score = (out / "notebooks/4_score.ipynb").read_text()
    assert "Kept and not scored, no longer in the params: other" in score


def test_llm_judges_through_the_endpoint(workspace, server):
    judges = [
        {"name": name, "kind": "llm", "provider": "test", "model": name} for name in ("one", "two")
    ]
    path = workspace.params("panel", server.base_url, judges=judges)
    values = (
        (workspace.root / path).read_text().replace("judges:", "stance_judge: one\n  judges:", 1)
    )
    (workspace.root / path).write_text(values)
    for stage in ("generate", "judge"):
        done = workspace.stage(stage, path)
        assert done.returncode == 0, done.stderr
    results = json.loads((workspace.root / "outputs/panel/results/judge.json").read_text())
    assert results
    asked = sum(server.calls())
    # the server has five answers: a request that equals another is asked once
    # responses, two judges, one stance judge, and one call to try each judge
    assert asked == 20 + 2 * 5 + 5 + 2
    assert workspace.stage("judge", path).returncode == 0
    assert sum(server.calls()) == asked

    # both in one call, for P0, P2 and P4 alone: three more of the server's five answers
    values = values.replace(
        "  judges:", "  stance_phrasings: cpc\n  stance_call: folded\n  judges:"
    )
    (workspace.root / path).write_text(values)
    done = workspace.stage("judge", path)
    assert done.returncode == 0, done.stderr
    assert sum(server.calls()) == asked + 3
    results = json.loads((workspace.root / "outputs/panel/results/judge.json").read_text())
    assert results["judge.stance_share.missing.steady"] == 0
    assert results["judge.stance_share.positive.steady"] > 0
    stances = files.read_parquet(
        workspace.root / "outputs/panel/stances/steady.parquet", files.STANCES
    )
    known = stances.groupby("phrasing")["stance"].count()
    assert known.to_dict() == {"P0": 4, "P1": 0, "P2": 4, "P3": 0, "P4": 4}


def test_models_that_hardly_answer_go_through_all_stages(workspace, server):
    models = ("constant", "terse", "constant/again")
    path = workspace.params("odd", server.base_url, models=models)
    values = (
        (workspace.root / path)
        .read_text()
        .replace("name: constant/again", "name: constant/again\n    model: constant")
    )
    (workspace.root / path).write_text(values)
    for stage in params.STAGES:
        done = workspace.stage(stage, path)
        assert done.returncode == 0, done.stderr
    assert (
        workspace.run(
            "esfp.paper", "paper/report.md", "outputs/odd/report", "run=outputs/odd"
        ).returncode
        == 0
    )
    results = json.loads((workspace.root / "outputs/odd/results.json").read_text())
    assert results["score.delta_scd.terse"] is None
    assert results["score.esfp.constant"] is None  # no marker in any answer: AR is undefined


def test_a_model_that_says_nothing_is_one_line(workspace, server):
    done = workspace.stage("generate", workspace.params("odd", server.base_url, models=("mute",)))
    assert done.returncode == 1
    assert "error: mute: none of its 20 answers can be used (20 empty)" in done.stderr


def test_second_answers_reach_the_floor_and_nothing_else(workspace, server):
    out, found = workspace.root / "outputs/tiny", []
    for again in ([], ["P0", "P1"]):
        generate = {"candidates": [{"name": "steady", "provider": "test"}], "again": again}
        path = workspace.params("tiny", server.base_url, generate=generate)
        for stage in ("generate", "judge", "embed", "score"):
            done = workspace.stage(stage, path)
            assert done.returncode == 0, done.stderr
        kept = [out / f"{name}/steady.parquet" for name in ("judged", "stances")]
        kept += [out / name for name in ("measures.parquet", "items.parquet", "scores.csv")]
        results = {}
        for part in sorted((out / "results").glob("*.json")):
            results |= json.loads(part.read_text())
        found.append(([file.read_bytes() for file in kept], results))
    (before, once), (after, twice) = found
    assert before == after
    new = {name for name in twice if once.get(name) != twice[name]}
    new |= {"score.floor_missing_because.steady"}  # the reason why there was none
    assert {name.split(".")[1] for name in new} == {
        *("n_floor", "floor_first", "floor_second", "floor", "floor_low", "floor_high"),
        *("above", "above_low", "above_high", "psi_paired", "floor_scaled", "floor_share"),
        *("esfp_above", "floor_missing_because"),
    }
    responses = files.read_parquet(out / "responses/steady.parquet", files.RESPONSES)
    assert responses.value_counts(["phrasing", "sample"]).to_dict() == {
        **{(f"P{k}", 0): 4 for k in range(5)}, ("P0", 1): 4, ("P1", 1): 4
    }  # fmt: skip
    # the server says the same again: nothing is noise
    assert twice["score.floor.steady"] == 0
    assert twice["score.above.steady"] == twice["score.psi_mean.steady"] > 0
    assert twice["score.esfp_above.steady"] == twice["score.esfp.steady"]
    provenance = json.loads((out / "provenance.json").read_text())["steady"]
    assert provenance["again"]["ok"] == {"P0": 4, "P1": 4}
