"""Successive versions of a model: who is compared, what differs, and what moved."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from esfp import changes, compare, drift, files, versions
from tests.conftest import REPO
from tests.test_changes import SCORE, SETTINGS, table


def responses(models, texts, served="v1", fingerprint="f1", items=("T1-00", "T2-01")):
    rows = [
        {"model": model, "item_id": item, "type": item[:2], "phrasing": "P2", "sample": 0}
        | {"text": f"{texts} {item}", "status": "ok", "request_sha": f"{model}{item}"}
        | {"served_model": served, "fingerprint": fingerprint}
        | {"created_at": "2026-12-01T00:00:00+00:00"}
        for model in models
        for item in items
    ]
    return pd.DataFrame(rows).reindex(columns=files.RESPONSES.names).assign(violations=None)


def test_versions_are_the_single_models_or_those_of_one_name():
    one = {"a": table(1, ["m-1"]), "b": table(2, ["m-2"])}
    assert versions.series(one) == {"m-1 to m-2": {"a": "m-1", "b": "m-2"}}
    assert list(versions.series({"a": table(1, ["m"]), "b": table(2, ["m"])})) == ["m"]
    several = {"a": table(1, ["m", "n"]), "b": table(2, ["n", "o"])}
    assert versions.series(several) == {"n": {"a": "n", "b": "n"}}
    with pytest.raises(files.DataError, match="no model is in all of a, b"):
        versions.series({"a": table(1, ["m", "n"]), "b": table(2, ["o", "p"])})


def test_levels_and_steps_agree_and_are_over_the_items_that_all_have():
    tables = {"a": table(1, ["m"]), "b": table(2, ["n"], n=15), "c": table(3, ["n"])}
    lines = versions.series(tables)
    common = versions.aligned(tables, lines)
    assert {len(each) for each in common.values()} == {15}
    score = SCORE | {"psi_ceiling": 0.3}
    levels = versions.levels(common, score, SETTINGS).set_index(["run", "statistic"])["value"]
    steps = versions.steps(common, score, SETTINGS)
    assert steps[["before", "after"]].drop_duplicates().to_numpy().tolist() == [
        ["a", "b"], ["b", "c"], ["a", "c"]
    ]  # fmt: skip
    for row in steps.itertuples():
        by = levels[row.after, row.statistic] - levels[row.before, row.statistic]
        assert row.change == pytest.approx(by)
    mean = common["b"]["psi"].mean()
    assert levels["b", "psi_mean"] == pytest.approx(mean)
    assert levels["b", "psi_scaled"] == pytest.approx(mean / 0.3)
    with pytest.raises(files.DataError, match="no item in common"):
        other = tables["b"].assign(item_id=lambda rows: "x" + rows["item_id"])
        versions.aligned(tables | {"b": other}, lines)


def test_the_items_that_moved_most_stand_with_both_texts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for run, model in (("a", "m"), ("b", "n")):
        path = f"outputs/{run}/responses/{model}.parquet"
        files.write_parquet(path, responses([model], run), files.RESPONSES)
    first = table(1, ["m"], n=2).assign(delta_scd=[0.1, 0.2])
    lines = {"s": {"a": "m", "b": "n"}}
    common = versions.aligned({"a": first, "b": first.assign(model="n")}, lines)
    common["b"]["delta_scd"] = [0.2, -0.4]
    found = versions.moved(("a", common["a"]), ("b", common["b"]), lines, "P2")
    assert found["item_id"].tolist() == ["T2-01", "T1-00"]
    np.testing.assert_allclose(found["change"], [-0.6, 0.1])
    assert found[["a", "b"]].iloc[0].tolist() == ["a T2-01", "b T2-01"]


MANIFEST = {
    "corpus_sha256": "1",
    "lexicons_sha256": "1",
    "corpus": {"per_type": None},
    "prompts_sha256": {"p": "1"},
    "judge": {"judges": [{"name": "j"}]},
    "score": SCORE | {"contrast": ["P1", "P2"]},
    "samples": 1,
    "weights": {"sentence encoder": "1"},
    "inputs": {"corpus/gold/sentences.csv": "1"},
    "decoding": {"m": {"temperature": 0.6}},
    "served": {"m": {"served_models": ["v1"], "fingerprints": ["f1"]}},
}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, []),
        ({"corpus_sha256": "2"}, ["a and b differ in their items or phrasings"]),
        ({"judge": {"judges": []}}, ["a and b differ in their judges"]),
        ({"weights": {"sentence encoder": "2"}}, ["a and b differ in their sentence encoder"]),
        (
            {"inputs": {"corpus/gold/sentences.csv": "2"}},
            ["a and b differ in the reference labels"],
        ),
        ({"decoding": {"m": {}}}, ["m: a and b differ in decoding"]),
        (
            {"served": {"m": {"served_models": ["v2"], "fingerprints": ["f1"]}}},
            ["m: a and b differ in the served model: v1 against v2"],
        ),
    ],
)
def test_whatever_differs_besides_the_model_is_named(tmp_path, monkeypatch, change, words):
    monkeypatch.chdir(tmp_path)
    for run, more in (("a", {}), ("b", change)):
        files.write_json(f"outputs/{run}/manifest.json", MANIFEST | more)
        path = f"outputs/{run}/responses/m.parquet"
        files.write_parquet(path, responses(["m"], run), files.RESPONSES)
    assert versions.warnings(["a", "b"], {"m": {"a": "m", "b": "m"}}) == words


def test_drift_within_a_run_is_named_with_its_extent():
    steady = responses(["m"], "x")
    assert drift.within(drift.served(steady)) == []
    later = responses(["m"], "x", served="v2", items=("T3-00",))
    mixed = pd.concat([steady, later, responses(["n"], "y", fingerprint=None)])
    found = drift.served(mixed)
    assert found["answers"].tolist() == [2, 1, 2] and found["fingerprint"].tolist()[2] == ""
    assert drift.within(found) == ["m: its answers come from 2 models: v1 (2), v2 (1)"]


def test_a_statistic_that_is_undefined_throughout_does_not_stop_anything():
    tables = {"a": table(1, ["m"]), "b": table(2, ["m"])}
    for each in tables.values():
        each[["ar_minus", "ar_plus", "delta_ar"]] = np.nan
    lines = versions.series(tables)
    steps = versions.steps(versions.aligned(tables, lines), SCORE, SETTINGS)
    assert steps.loc[steps["statistic"] == "delta_ar", "change"].isna().all()
    assert not steps.loc[steps["statistic"] == "psi_mean", "change"].isna().any()
    assert changes.text(float("nan"), 0, 0) == "–"


def test_the_report_on_two_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(REPO))
    for name in ("notebooks", "paper"):
        (tmp_path / name).symlink_to(REPO / name)
    for seed, (run, model) in enumerate((("old", "m"), ("new", "n"))):
        items = table(seed, ["m"]).assign(model=model)
        files.write_parquet(f"outputs/{run}/items.parquet", items, files.ITEMS)
        path = f"outputs/{run}/responses/{model}.parquet"
        files.write_parquet(path, responses([model], run), files.RESPONSES)
        mine = {"decoding": {model: {}}, "served": {model: MANIFEST["served"]["m"]}}
        files.write_json(f"outputs/{run}/manifest.json", MANIFEST | mine | {"bootstrap": SETTINGS})
    assert compare.main(["--runs", "old new"]) == 0
    folder = Path(capsys.readouterr().out.strip()).parent
    found = json.loads((folder / "results.json").read_text())
    assert found == {"items": 20, "runs": ["old", "new"], "warnings": []}
    assert len(pd.read_csv(folder / "steps.csv")) == len(changes.STATISTICS)
    assert (folder / "report.html").exists() and (folder / "timeline.svg").exists()


def test_runs_that_cannot_be_compared_are_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    files.write_json("outputs/a/manifest.json", MANIFEST)
    files.write_json("outputs/b/manifest.json", {"run": "b"})
    for runs, words in (
        ("a", "two or more different runs"),
        ("a a", "two or more different runs"),
        ("a none", "outputs/none/manifest.json: not there"),
        ("a b", "b: starts from released scores"),
    ):
        assert compare.main(["--runs", runs]) == 1
        said = capsys.readouterr().err
        assert words in said and len(said.splitlines()) == 1
