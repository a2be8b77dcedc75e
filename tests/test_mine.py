"""One's own model beside others: the file is the user's once edited, and its row is right."""

import shlex
import subprocess

import numpy as np
import pandas as pd
import pytest
import yaml

from esfp import files, mine, params
from tests.conftest import REPO

URL = "http://localhost:8000/v1"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "name",
    ["qwen3:4b", "meta/llama-3", 'a "quoted": name', "a\\b # c", "模型", "{x}", "null", "1.0"],
)
def test_any_name_makes_a_file_that_asks_for_just_that(folder, name):
    path = mine.write_params(name, URL, "MY_KEY")
    loaded = params.load(path)
    assert [candidate.name for candidate in loaded.generate.candidates] == [name]
    assert loaded.providers["mine"].base_url == URL
    assert loaded.providers["mine"].key_env == "MY_KEY"
    assert loaded.score.psi_ceiling == mine.CEILING
    assert {judge.kind for judge in loaded.judge.judges} == {"embedding", "combined"}


def test_an_unedited_file_follows_the_command(folder, capsys):
    path = mine.write_params("m", URL)
    before = path.stat().st_mtime_ns
    assert mine.write_params("m", URL) == path
    assert path.stat().st_mtime_ns == before
    mine.write_params("m", "https://elsewhere/v1", "KEY")
    provider = params.load(path).providers["mine"]
    assert (provider.base_url, provider.key_env) == ("https://elsewhere/v1", "KEY")
    assert "edited" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "edit",
    [
        ("timeout: 600.0", "timeout: 30.0"),
        ("# Any change is kept", "# mine"),
        ("judges:", "jdges:"),
    ],
)
def test_an_edited_file_is_kept_and_said_to_be(folder, capsys, edit):
    path = mine.write_params("m", URL)
    path.write_text(path.read_text().replace(*edit))
    edited = path.read_text()
    mine.write_params("m", URL)
    assert path.read_text() == edited
    assert f"{path}: has been edited and is used as it is" in capsys.readouterr().err


def test_an_edited_file_that_asks_another_endpoint_is_an_error(folder):
    path = mine.write_params("m", URL)
    path.write_text(path.read_text().replace("timeout: 600.0", "timeout: 30.0"))
    edited = path.read_text()
    with pytest.raises(params.ParamsError, match="asks m at http://localhost:8000/v1"):
        mine.write_params("m", "https://elsewhere/v1")
    assert path.read_text() == edited


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((" ", URL, None), "MODEL is empty"),
        (("m", "localhost:8000", None), "BASE_URL=localhost:8000: expected an address"),
        (("m", URL, "sk-abc-123"), "name of an environment variable"),
    ],
)
def test_what_cannot_be_right_writes_nothing(folder, arguments, words):
    with pytest.raises(params.ParamsError, match=words) as error:
        mine.write_params(*arguments)
    assert "sk-abc-123" not in str(error.value)
    assert not list(folder.iterdir())


@pytest.mark.parametrize("given", [[], ["MODEL=m"], [f"BASE_URL={URL}"]])
def test_make_asks_for_model_and_endpoint_in_one_line(given):
    done = subprocess.run(["make", "mine", *given], cwd=REPO, capture_output=True, text=True)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "MODEL=name BASE_URL=http" in done.stderr


def write_run(run, rows, ceiling, judges):
    """A scored run: `rows` are (model, delta_ar, delta_scd, psi_mean, cpc_kappa)."""
    table = pd.DataFrame(rows, columns=["model", "delta_ar", "delta_scd", "psi_mean", "cpc_kappa"])
    table = table.assign(psi_ceiling=ceiling, ci_low=0.1, ci_high=0.9, coverage=1.0)
    files.write_csv(f"outputs/{run}/scores.csv", table)
    values = {"judges": judges} if judges else None
    files.write_text(f"outputs/{run}/params/judge.yaml", yaml.safe_dump(values))


def test_rows_stand_side_by_side_at_one_ceiling(folder):
    words = [{"name": "words", "kind": "words"}]
    write_run("mine-m", [("m", 0.5, 0.2, 0.0995, 0.4)], 0.0995, words)
    write_run("published", [("high", 1.0, 0.5, 0.3, -0.2), ("low", 0.1, 0.0, 0.1, np.nan)], 1, None)
    write_run("alike", [("twin", 0.5, 0.2, 0.0995, 0.4)], 0.5, words)
    rows = [line.split() for line in mine.compare("mine-m", "published").splitlines()[3:6]]
    # 0.2 * 0.5 + 0.5 * 0.2 + 0.3 * 0.5 = 0.35, times 1 + 0.25 * 0.4
    assert rows[0][:3] == ["*", "high", "0.750"]
    assert rows[1][:3] == ["→", "m", "0.385"] and rows[1][7] == "0.500"
    assert rows[2][:2] == ["*", "low"] and rows[2][-2:] == ["–", "1.000"]
    assert "* published scores: measured by the paper's judges" in mine.compare(
        "mine-m", "published"
    )
    beside = mine.compare("mine-m", "alike")
    assert "*" not in beside and "other judges" not in beside
    assert [line.split()[-8] for line in beside.splitlines()[3:5]] == ["0.385", "0.385"]
    write_run(
        "alike", [("twin", 0.5, 0.2, 0.0995, 0.4)], 0.5, [{"name": "embedding", "kind": "llm"}]
    )
    assert "* measured by other judges" in mine.compare("mine-m", "alike")


def test_intervals_are_drawn_at_the_ceiling_of_the_table(folder):
    write_run("mine-m", [("m", 0.5, 0.2, 0.0995, 0.4)], 1, [{"name": "w", "kind": "words"}])
    psi = np.linspace(0.05, 0.15, 101)
    draws = pd.DataFrame({"model": "m", "draw": np.arange(101), "psi_mean": psi, "cpc_kappa": 0.0})
    draws = draws.assign(delta_ar=0.5, delta_scd=0.2, psi_scaled=psi, flex=0.0, esfp=0.0)
    files.write_parquet("outputs/mine-m/bootstrap.parquet", draws, files.BOOTSTRAP)
    row = mine.scores("mine-m").iloc[0]
    expected = 0.2 + 0.3 * np.percentile(psi, [2.5, 97.5]) / mine.CEILING
    np.testing.assert_allclose([row["ci_low"], row["ci_high"]], expected)


def test_a_run_without_scores_is_one_line(folder):
    with pytest.raises(files.DataError, match="make all PARAMS=params/none.yaml"):
        mine.compare("none", "published")


def test_every_command_of_the_readme_writes_a_valid_file(folder):
    lines = (REPO / "README.md").read_text(encoding="utf-8").splitlines()
    commands = [shlex.split(line)[2:] for line in lines if line.strip().startswith("make mine ")]
    assert len(commands) >= 8
    for words in commands:
        given = dict(word.split("=", 1) for word in words)
        path = mine.write_params(given["MODEL"], given["BASE_URL"], given.get("KEY_ENV"))
        assert params.load(path).generate.candidates[0].name == given["MODEL"]
        assert set(given) <= {"MODEL", "BASE_URL", "KEY_ENV"}
