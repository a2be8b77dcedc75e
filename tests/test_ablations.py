"""Ablations: laid over a base, computed from what is recorded, one's fault not the others'."""

import json
import os
import shutil
import subprocess
import sys

import pandas as pd
import pytest

from esfp import ablations, files, params, variants
from tests.conftest import ENVIRONMENT, REPO

LOCAL = REPO / "params/local.yaml"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The recorded run, cut to one item a type and one model, and a folder for ablations of it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ESFP_CACHE", ENVIRONMENT["ESFP_CACHE"])
    for name in ("corpus", "notebooks", "paper"):
        (tmp_path / name).symlink_to(REPO / name)
    for name in ("responses", "judged", "stances"):
        shutil.copytree(REPO / "outputs/local" / name, tmp_path / "outputs/local" / name)
    folder = tmp_path / "params/ablations"
    folder.mkdir(parents=True)
    others = ", ".join(f"{each.name}: null" for each in params.load(LOCAL).generate.candidates[1:])
    text = LOCAL.read_text()
    (tmp_path / "params/whole.yaml").write_text(text)
    (tmp_path / "params/local.yaml").write_text(
        f"extends: whole.yaml\ncorpus: {{per_type: 1}}\ngenerate: {{candidates: {{{others}}}}}\n"
    )
    return tmp_path


def laid(here, **texts):
    for name, text in texts.items():
        (here / f"params/ablations/{name}.yaml").write_text(text)
    base = here / "params/local.yaml"
    found, wrong = ablations.from_files(base, here / "params/ablations")
    origin = ablations.Variant("base", "", params.load(base), "local")
    return origin, found, wrong


def test_every_ablation_of_the_repository_says_what_it_asks():
    found, wrong = ablations.from_files(LOCAL, REPO / "params/ablations")
    assert wrong == {} and len(found) >= 17
    base = params.load(LOCAL)
    for variant in found:
        assert variant.question.endswith(("?", ".", ")")) and "?" in variant.question
        assert variant.values != base


def test_an_ablation_is_laid_over_any_base(here):
    text = "# Why?\nextends: ../elsewhere.yaml\nscore: {cpc_bonus: 0}\n"
    more = "extends: one.yaml\nscore: {psi_ceiling: max}\n"
    bad = "extends: ../local.yaml\nscore: {cpc_bonos: 0}\n"
    _, found, wrong = laid(here, one=text, two=more, three=bad)
    assert [(each.name, each.question) for each in found] == [("one", "Why?"), ("two", "")]
    assert [each.values.score.psi_ceiling for each in found] == ["p95", "max"]
    assert {each.values.score.cpc_bonus for each in found} == {0}
    assert list(wrong) == ["three"] and "did you mean 'cpc_bonus'?" in wrong["three"]


def test_what_only_scores_shares_the_bases_table_and_what_differs_does_not(here):
    score = "extends: ../local.yaml\nscore: {weights: {ar: 0.5}, cpc_bonus: 0, psi_ceiling: max}\n"
    other = "extends: ../local.yaml\nscore: {psi_contrast: [P1, P2]}\n"
    origin, (first, second), _ = laid(here, a=score, b=other)
    assert first.depends_on("local") == origin.depends_on("local")
    assert second.depends_on("local") != origin.depends_on("local")


def test_recorded_labels_are_taken_and_a_new_rule_is_applied_to_them(here):
    alone = "extends: ../local.yaml\njudge: {judges: {combined: null}}\n"
    origin, (single,), _ = laid(here, alone=alone)
    bench = variants.Bench(origin)
    items, responses = bench.responses(origin)
    judged, stances = bench.labels(origin, items, responses)
    keys = [*files.KEYS, "sentence_id"]
    known = bench.judged.merge(judged[keys], on=keys)
    pd.testing.assert_frame_equal(known[judged.columns], judged, check_dtype=False)
    recorded = bench.stances.merge(responses[files.KEYS], on=files.KEYS)
    assert recorded["stance"].tolist() == stances["stance"].tolist()
    lone, _ = bench.labels(single, items, responses)
    assert lone["label"].tolist() == known["label_embedding"].tolist()
    assert bench.trained == {}  # nothing had to be learnt anew


def test_what_is_not_recorded_is_left_out_and_a_failure_stops_nothing(here):
    texts = {
        "asks": "extends: ../local.yaml\nproviders: {smollm2: {decoding: {temperature: 0}}}\n",
        "breaks": "extends: ../local.yaml\ncorpus: {lexicons: none.yaml}\n",
        "works": "extends: ../local.yaml\nscore: {contrast: [P1, P4]}\n",
    }
    origin, found, _ = laid(here, **texts)
    outcome = ablations.tables(found, origin, here / "made")
    assert "30 of 30 answers are not recorded" in outcome["asks"]["left_out"]
    assert "none.yaml" in outcome["breaks"]["failed"]
    works = files.read_parquet(outcome["works"]["items"], files.ITEMS)
    assert works["item_id"].nunique() == 6 and works["model"].nunique() == 1
    before = {path: path.stat().st_mtime_ns for path in (here / "made/items").iterdir()}
    again = ablations.tables(found, origin, here / "made")
    assert again == outcome
    assert before == {path: path.stat().st_mtime_ns for path in (here / "made/items").iterdir()}


def test_the_report_of_a_sweep_with_one_bad_value(here):
    command = [sys.executable, "-m", "esfp.ablate", "--base", "params/local.yaml"]
    command += ["--param", "score.weights.scd", "--values", "0.5,0.7,much"]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, cwd=here)
    assert done.returncode == 1 and "failed: score.weights.scd=much: " in done.stderr
    assert "Traceback" not in done.stderr
    folder = here / "outputs/local/sweeps/score.weights.scd"
    table = pd.read_csv(folder / "changes.csv").set_index(["name", "statistic"])
    same = table.loc["score.weights.scd=0.5"]
    assert (same[["change", "low", "high"]].dropna() == 0).all(axis=None)
    more = table.loc["score.weights.scd=0.7"]
    assert more.loc["flex", "change"] == pytest.approx(
        0.2 * more.loc["delta_scd", "reference"], abs=2e-6
    )
    assert json.loads((folder / "results.json").read_text())["failed"] == ["score.weights.scd=much"]
    assert (folder / "report.html").exists() and (folder / "forest.svg").exists()
    when = os.stat(folder / "report.ipynb").st_mtime_ns
    again = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, cwd=here)
    assert again.returncode == 1 and os.stat(folder / "report.ipynb").st_mtime_ns == when


def test_released_scores_have_no_ablations():
    command = [sys.executable, "-m", "esfp.ablate", "--base", "params/published.yaml"]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, cwd=REPO)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done.stderr
