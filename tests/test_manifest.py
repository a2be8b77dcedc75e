"""The manifest: every hash, no host; and what `make verify` finds."""

import json
import shutil
import socket

import pytest

from esfp import manifest, params, run, verify
from tests.conftest import REPO


@pytest.fixture
def released(tmp_path, monkeypatch):
    """A finished run from released scores, which needs no judge and no model."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(REPO))
    for name in ("corpus", "notebooks", "paper", "requirements.lock"):
        (tmp_path / name).symlink_to(REPO / name)
    (tmp_path / "params").mkdir()
    shutil.copy(REPO / "params/published.yaml", "params/published.yaml")
    (tmp_path / "outputs/published").mkdir(parents=True)
    for name in ("released.csv", "printed.yaml"):
        shutil.copy(REPO / "outputs/published" / name, tmp_path / "outputs/published")
    for stage in params.STAGES:
        run.run_stage(stage, tmp_path / "params/published.yaml")
    assert manifest.main(["--params", "params/published.yaml"]) == 0
    return tmp_path / "outputs/published"


def test_a_run_is_verified_until_something_changes(released, capsys):
    made = json.loads((released / "manifest.json").read_text())
    assert made["outputs"]["scores.csv"] == manifest.checksum(released / "scores.csv")
    assert len(made["outputs"]) > 10 and made["packages"]["pandas"]
    assert socket.gethostname() not in json.dumps(made) and "/home" not in json.dumps(made)
    assert verify.main(["--run", "published"]) == 0
    said = capsys.readouterr().out
    assert "the outputs belong to these inputs" in said
    count = len(made["outputs"])
    assert f"{count} of {count} files come out the same again" in said
    assert not list(released.parent.glob(".verify-*"))

    table = released / "scores.csv"
    table.write_text(table.read_text().replace("0.", "0.9", 1))
    source = released / "released.csv"
    source.write_text(source.read_text() + "\n")
    assert verify.main(["--run", "published"]) == 1
    said = capsys.readouterr().out
    assert "do not belong" in said
    assert "differs: outputs: outputs/published/scores.csv has changed" in said
    assert "differs: inputs: outputs/published/released.csv has changed" in said


def test_an_output_that_comes_out_otherwise_is_named(released, capsys):
    table = released / "correlations.csv"
    table.write_text(table.read_text() + "\n")
    assert manifest.main(["--params", "params/published.yaml"]) == 0  # a manifest of a false table
    assert verify.main(["--run", "published"]) == 1
    said = capsys.readouterr().out
    assert "differs: again: outputs/published/correlations.csv comes out otherwise" in said


def test_differences_name_what_changed_and_remarks_what_need_not_matter():
    then = {
        "run": "r",
        "params": {"score": "1", "embed": "1"},
        "inputs": {"a.csv": "1", "b.csv": "1"},
        "outputs": {},
        "weights": {"w": "1"},
        "code": {"commit": "1" * 40, "dirty": True},
        "packages": {"numpy": "1"},
    }
    now = then | {"params": {"score": "2", "embed": "1"}, "inputs": {"a.csv": "2"}}
    now |= {"weights": {"w": "2"}, "packages": {"numpy": "2"}}
    assert verify.differences(then, then) == []
    assert verify.differences(then, now) == [
        "params: those of the stage score have changed",
        "inputs: a.csv has changed",
        "inputs: b.csv is gone",
        "weights: those of w are others",
    ]
    assert verify.remarks(then, now) == [
        "made from changed files on commit 111111111111",
        "package numpy: 1 then, 2 now",
    ]


def test_a_run_without_a_manifest_is_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert verify.main(["--run", "none"]) == 1
    assert "outputs/none/manifest.json: not there" in capsys.readouterr().err


def test_language_models_are_not_asked_again():
    local = params.load(REPO / "params/local.yaml")
    assert verify.deterministic(local) == ["judge", "embed", "score", "bootstrap", "figures"]
    assert "judge" not in verify.deterministic(params.load(REPO / "params/kaggle.yaml"))
