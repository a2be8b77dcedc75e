"""Specifications: the grid, their scores against `leaderboard`, shares worked out by hand."""

import numpy as np
import pandas as pd
import pytest

from esfp import equations, files, multiverse

pytestmark = pytest.mark.filterwarnings("error")
VALUES = ["delta_ar", "delta_scd", "psi_mean", "cpc_kappa"]


@pytest.fixture
def parts():
    rows = [
        ("a", 0.9, 0.5, 0.20, 0.30, "panel", "all"),
        ("b", 0.5, 0.6, 0.10, -0.1, "panel", "all"),
        ("c", np.nan, 0.1, 0.15, np.nan, "panel", "all"),
        ("c", 0.2, 0.2, 0.12, 0.10, "one judge", "all"),
        ("a", 0.9, 0.3, 0.20, 0.10, "one judge", "all"),
        ("b", 0.5, 0.4, 0.10, 0.20, "one judge", "all"),
    ]
    return pd.DataFrame(rows, columns=["model", *VALUES, "panel", "answers"])


@pytest.mark.parametrize("step", [0.5, 0.1, 0.02])
def test_simplex(step):
    grid = multiverse.simplex(step)
    n = round(1 / step)
    assert len(grid) == (n + 1) * (n + 2) // 2 == len(np.unique(grid, axis=0))
    np.testing.assert_allclose(grid.sum(axis=1), 1)
    np.testing.assert_allclose(grid * n, np.round(grid * n), atol=1e-9)
    assert grid.min() == 0 and (grid == [0, 0, 1]).all(axis=1).any()


def test_scores_equal_leaderboard(parts):
    weights = multiverse.simplex(0.25)
    table = multiverse.score(parts, weights, 0.25)
    assert table["specification"].nunique() == 2 * 3 * 2 * len(weights)
    assert len(table) == 3 * table["specification"].nunique()
    rules = {"p95": "p95", "maximum": "max", "fixed": 0.199}
    checked = 0
    for number, rows in list(table.groupby("specification"))[::5]:
        first = rows.iloc[0]
        weight = tuple(first[multiverse.WEIGHTS].astype(float))
        mine = parts[parts["panel"] == first["panel"]]
        if weight[0] == 0:
            mine = mine.fillna({"delta_ar": 0.0})
        ceiling = equations.psi_ceiling(mine["psi_mean"], rules[first["ceiling"]])
        bonus = 0.25 if first["cpc"] == "on" else 0.0
        theirs = equations.leaderboard(mine, ceiling, weight, bonus).set_index("model")
        rows = rows.set_index("model")
        assert rows.index.tolist() == ["a", "b", "c"], number
        np.testing.assert_allclose(rows["esfp"], theirs.loc[rows.index, "esfp"], atol=1e-12)
        expected = theirs.loc[rows.index, "rank"].astype(float)
        np.testing.assert_array_equal(rows["rank"], expected)
        checked += 1
    assert checked > 20


def test_an_undefined_part_counts_only_where_it_has_weight(parts):
    table = multiverse.score(parts, multiverse.simplex(0.5), 0.25)
    mine = table[(table["model"] == "c") & (table["panel"] == "panel")]
    assert mine["esfp"].isna().equals(mine["w_ar"] > 0)
    assert mine["rank"].isna().equals(mine["w_ar"] > 0)
    others = table[(table["model"] != "c") & (table["panel"] == "panel") & (table["w_ar"] > 0)]
    assert set(others["rank"]) == {1, 2}


def test_one_model_without_other_dimensions():
    one = pd.DataFrame([("a", 0.9, 0.5, 0.2, 0.3)], columns=["model", *VALUES])
    table = multiverse.score(one, multiverse.simplex(0.5), 0.25, {"run": "p95"})
    assert len(table) == 2 * 6 and (table["rank"] == 1).all()
    row = table[(table["cpc"] == "on") & (table["w_scd"] == 1)].iloc[0]
    assert row["esfp"] == pytest.approx(0.5 * (1 + 0.25 * 0.3))
    assert multiverse.pairs(table, ["a"]).empty
    assert multiverse.firsts(table)["first"].tolist() == [1.0]
    found = multiverse.influence(table, ["a"]).set_index("dimension")
    assert set(found.index) == {"cpc", "weights"} and (found["order"] == 0).all()


def test_models_that_never_move_in_meaning_neither_crash_nor_warn(parts):
    """0 of a ceiling of 0 is undefined, 0 of a fixed ceiling is 0."""
    table = multiverse.score(parts.assign(psi_mean=0.0), multiverse.simplex(0.5), 0.25)
    mine = table[table["model"] == "a"]
    undefined = (mine["w_psi"] > 0) & (mine["ceiling"] != "fixed")
    assert mine["esfp"].isna().equals(undefined)


def specifications(scores, models="ab", **dimensions):
    """A table of specifications with these scores, one row of `scores` a specification."""
    scores = np.array(scores, dtype=float)
    n, m = scores.shape
    table = pd.DataFrame({"specification": np.repeat(np.arange(n), m)})
    for name, values in dimensions.items():
        table[name] = np.repeat(values, m)
    table[multiverse.WEIGHTS] = [0.2, 0.5, 0.3]
    table["model"], table["esfp"] = np.tile(list(models), n), scores.ravel()
    ranks = table.groupby("specification")["esfp"].rank(method="min", ascending=False)
    return table.assign(rank=ranks)


def test_pairs_and_firsts_by_hand():
    table = specifications([[2, 1], [3, 3], [1, 2], [4, 0], [np.nan, 5]])
    kept = multiverse.pairs(table, ["a", "b"]).iloc[0]
    assert (kept["first"], kept["second"]) == ("a", "b")
    assert kept["kept"] == 2.5 / 4 and kept["specifications"] == 4
    first = multiverse.firsts(table).set_index("model")
    assert first.loc["a", ["first", "scored"]].tolist() == [3 / 5, 4 / 5]
    assert first.loc["b", ["first", "scored"]].tolist() == [3 / 5, 1]
    assert first.loc["a", ["rank_low", "rank_high"]].tolist() == [1, 2]
    ends = first.loc["a", ["esfp_low", "esfp_high"]].tolist()
    assert ends == pytest.approx(np.percentile([2, 3, 1, 4], [5, 95]))


def test_pairs_without_a_common_specification():
    table = specifications([[np.nan, 1], [2, np.nan]])
    row = multiverse.pairs(table, ["a", "b"]).iloc[0]
    assert np.isnan(row["kept"]) and row["specifications"] == 0


def test_influence_by_hand():
    """Of a (0, 2, 4, 6) the choice x explains 16 of 20 parts of the variance; of b nothing."""
    table = specifications(
        [[0, 1], [2, 1], [4, 1], [6, 1]],
        x=["l", "l", "r", "r"],
        y=["u", "v", "u", "v"],
        z=["one"] * 4,
    )
    got = multiverse.influence(table, ["a", "b"]).set_index("dimension")
    assert got.index.tolist() == ["x", "y"]  # z and the weights leave no choice
    assert got.loc["x", "scores"] == pytest.approx((16 / 20 + 0) / 2)
    assert got.loc["y", "scores"] == pytest.approx((4 / 20 + 0) / 2)
    assert got["choices"].tolist() == [2, 2]
    assert got.loc["x", "order"] == pytest.approx(0.5)  # a is above b: 1 of 2, then 2 of 2
    assert got.loc["y", "order"] == pytest.approx(0.5)


def test_influence_of_a_crossed_design_adds_up(parts):
    """In a balanced design without interactions the shares of the variance sum to 1."""
    effects = [(x, y, 1.0 * x + 3.0 * y) for x in range(3) for y in range(4)]
    table = specifications(
        [[v] for *_, v in effects], "a", x=[x for x, *_ in effects], y=[y for _, y, _ in effects]
    )
    got = multiverse.influence(table, ["a"])
    assert got["scores"].sum() == pytest.approx(1)


def test_nobody_has_a_score(parts, tmp_path):
    parts["delta_scd"], parts["psi_mean"], parts["delta_ar"] = np.nan, np.nan, np.nan
    table = multiverse.score(parts, multiverse.simplex(0.5), 0.25)
    assert table["esfp"].isna().all() and table["rank"].isna().all()
    first, kept = multiverse.firsts(table), multiverse.pairs(table, [])
    assert (first["scored"] == 0).all() and kept.empty
    influence = multiverse.influence(table, [])
    assert influence["scores"].isna().all()
    keys = multiverse.numbers(table, kept, first, influence)
    assert keys["score.multiverse.scores.panel"] is None
    files.write_json(tmp_path / "numbers.json", keys)
    one = parts[parts["panel"] == "panel"].drop(columns=["panel", "answers"])
    assert (multiverse.leaders(one, 0.5, 0.25)["model"] == "").all()


def test_leaders():
    rows = [("a", 0.9, 0.1, 0.1, 0.0), ("b", 0.1, 0.9, 0.1, 0.0), ("c", np.nan, 0.2, 0.2, 0.0)]
    parts = pd.DataFrame(rows, columns=["model", *VALUES])
    got = multiverse.leaders(parts, 0.5, 0.25, "max").set_index(multiverse.WEIGHTS)["model"]
    assert got[1, 0, 0] == "a" and got[0, 1, 0] == "b" and got[0, 0, 1] == "c"
    assert got[0.5, 0.5, 0] == ""  # a and b tie
    assert got[0.5, 0, 0.5] == "a" and got[0, 0.5, 0.5] == "b"
    assert len(got) == 6


def test_numbers(parts, tmp_path):
    table = multiverse.score(parts, multiverse.simplex(0.5), 0.25)
    kept, first = multiverse.pairs(table, ["a", "b", "c"]), multiverse.firsts(table)
    keys = multiverse.numbers(table, kept, first, multiverse.influence(table, ["a", "b", "c"]))
    assert keys["score.multiverse.specifications"] == 72
    assert keys["score.multiverse.kept.a.b"] == kept["kept"].iloc[0]
    files.write_json(tmp_path / "numbers.json", keys)
