"""Broken limits counted by hand; the score under other readings against `leaderboard`."""

import numpy as np
import pandas as pd
import pytest

from esfp import compliance, equations, files, score
from tests.test_bootstrap import random_items

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture
def responses():
    rows = [
        ("z", "P1", "ok", ["too_long", "markdown"]),
        ("z", "P1", "ok", None),
        ("z", "P2", "ok", np.array(["too_long"])),
        ("z", "P2", "ok", []),
        ("z", "P2", "error", ["cut_off"]),
        ("a", "P1", "ok", ["filler_opening"]),
        ("silent", "P1", "empty", None),
    ]
    return pd.DataFrame(rows, columns="model phrasing status violations".split())


def test_shares_by_hand(responses):
    got = compliance.shares(responses)
    assert list(zip(got["model"], got["phrasing"], got["n"], strict=True)) == [
        ("z", "P1", 2),
        ("z", "P2", 2),
        ("z", "all", 4),
        ("a", "P1", 1),
        ("a", "all", 1),
    ]
    rows = got.set_index(["model", "phrasing"])
    assert rows.loc[("z", "P1"), [*compliance.LIMITS, "any"]].tolist() == [0.5, 0, 0.5, 0, 0, 0.5]
    assert rows.loc[("z", "all"), [*compliance.LIMITS, "any"]].tolist() == [
        0.5,
        0,
        0.25,
        0,
        0,
        0.5,
    ]
    assert rows.loc[("a", "all"), "filler_opening"] == 1
    assert (got["any"] >= got[compliance.LIMITS].max(axis=1)).all()


def test_no_usable_answer(responses):
    assert compliance.shares(responses[responses["model"] == "silent"]).empty


def test_readings_are_the_leaderboard_with_their_own_ceiling(tmp_path):
    whole = score.per_model(random_items(20, missing=0.0))
    fewer = score.per_model(random_items(20, seed=4))
    fewer.loc[0, "delta_ar"] = np.nan
    answers = {
        "all": pd.Series({"a": 40, "b": 39, "c": 40}),
        "within the limits": pd.Series({"b": 12, "c": 9}),
    }
    got = compliance.readings({"all": whole, "within the limits": fewer}, answers)
    assert got["reading"].tolist() == ["all"] * 3 + ["within the limits"] * 3
    for name, table in (("all", whole), ("within the limits", fewer)):
        mine = got[got["reading"] == name]
        expected = equations.leaderboard(table, np.percentile(table["psi_mean"], 95))
        assert mine["model"].tolist() == expected["model"].tolist()
        np.testing.assert_allclose(mine["esfp"], expected["esfp"])
        assert mine["answers"].tolist() == [answers[name].get(m, 0) for m in mine["model"]]
    keys = compliance.numbers(compliance.shares(pd.DataFrame(
        {"model": ["a"], "phrasing": ["P1"], "status": ["ok"], "violations": [["markdown"]]}
    )), got)  # fmt: skip
    assert keys["score.reading.all.scored"] == 3
    assert keys["score.reading.within_the_limits.scored"] == 2
    assert keys["score.reading.within_the_limits.esfp.a"] is None
    assert keys["score.reading.within_the_limits.rank.a"] is None
    assert keys["score.breaks.markdown.a.all"] == 1
    files.write_json(tmp_path / "numbers.json", keys)


def test_readings_take_the_rules_of_the_run():
    table = score.per_model(random_items(20, missing=0.0))
    answers = {"all": pd.Series(dtype=int)}
    got = compliance.readings({"all": table}, answers, 0.4, (0.0, 1.0, 0.0), 0.0)
    shifts = got.set_index("model")
    np.testing.assert_allclose(shifts["esfp"], shifts["delta_scd"])
    assert (got["answers"] == 0).all()
