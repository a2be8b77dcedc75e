"""Item-rest correlations against numpy, chance against all permutations, shorter forms."""

from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest

from esfp import bootstrap, equations, files, item_analysis
from tests.test_bootstrap import random_items

pytestmark = pytest.mark.filterwarnings("error")
RULES = {
    "ceiling_rule": "p95",
    "score_weights": equations.WEIGHTS,
    "cpc_bonus": equations.CPC_BONUS,
}


def test_matrix_leaves_out_models_with_gaps_then_items():
    items = random_items(10, ("b", "a", "c", "d"), missing=0.0)
    ids = items["item_id"].unique()
    items.loc[(items["model"] == "c") & items["item_id"].isin(ids[:6]), "delta_scd"] = np.nan
    items.loc[(items["model"] == "a") & items["item_id"].isin(ids[:5]), "delta_scd"] = np.nan
    values, kept, models = item_analysis.matrix(items)
    assert models == ["b", "a", "d"] and kept == ids[5:].tolist()
    row = items[(items["model"] == "d") & (items["item_id"] == ids[7])]["delta_scd"].item()
    assert values.shape == (5, 3) and values[2, 2] == row


def test_item_rest_equals_numpy():
    values = np.random.default_rng(0).normal(size=(12, 5))
    got = item_analysis.item_rest(values)
    for i in range(12):
        rest = np.delete(values, i, axis=0).mean(axis=0)
        assert got[i] == pytest.approx(np.corrcoef(values[i], rest)[0, 1])
    stacked = item_analysis.item_rest(np.stack([values, -values, values[::-1]]))
    np.testing.assert_allclose(stacked, [got, got, got[::-1]])


def test_item_rest_is_undefined_where_nothing_varies():
    flat = np.array([[0.1, 0.1, 0.1], [0.3, 0.2, 0.4], [0.9, 0.1, 0.2]])
    assert np.isnan(item_analysis.item_rest(flat)).tolist() == [True, False, False]
    balanced = np.array([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1], [0.5, 0.6, 0.9]])
    assert np.isnan(item_analysis.item_rest(balanced)).tolist() == [False, False, True]
    assert np.isnan(item_analysis.item_rest(np.array([[0.1, 0.2, 0.4]]))).all()


def test_chance_is_near_the_mean_over_all_permutations():
    values = np.array([[0.0, 0.1, 0.7], [0.2, 0.9, 0.3], [0.4, 0.5, 0.0]])
    orders = list(permutations(range(3)))
    exact = []
    for chosen in product(orders, repeat=3):
        shuffled = np.stack([row[list(order)] for row, order in zip(values, chosen, strict=True)])
        rest = [np.delete(shuffled, i, axis=0).mean(axis=0) for i in range(3)]
        exact.append([np.corrcoef(shuffled[i], rest[i])[0, 1] for i in range(3)])
    exact = np.array(exact)
    got = item_analysis.null(values, 8000, 3)
    assert got.shape == (8000, 3)
    np.testing.assert_allclose(got.mean(axis=0), exact.mean(axis=0), atol=0.03)
    np.testing.assert_allclose(got.std(axis=0), exact.std(axis=0), atol=0.03)
    np.testing.assert_allclose(exact.mean(axis=0), 0, atol=1e-9)  # no agreement but by chance
    np.testing.assert_array_equal(got[:50], item_analysis.null(values, 8000, 3)[:50])


def test_table_by_hand():
    items = random_items(15, ("a", "b", "c", "d"), missing=0.0)
    got = item_analysis.table(items, 200, 5)
    values, ids, _ = item_analysis.matrix(items)
    chance = item_analysis.null(values, 200, 5)
    assert len(got) == 15 and got["sd"].is_monotonic_decreasing
    for row in got.itertuples():
        mine = items[items["item_id"] == row.item_id]["delta_scd"]
        assert (row.mean, row.sd) == pytest.approx((mine.mean(), mine.std()))
        i = ids.index(row.item_id)
        as_high = sum(value >= row.item_rest for value in chance[:, i])
        assert row.p == pytest.approx((1 + as_high) / 201, abs=1.5 / 201)
    assert got["p"].between(1 / 201, 1).all() and (got["n_models"] == 4).all()


def test_items_that_agree_are_significant():
    items = random_items(12, tuple("abcdefgh"), missing=0.0)
    level = items["model"].map({m: i / 8 for i, m in enumerate("abcdefgh")})
    items["delta_scd"] = level + 0.01 * items["delta_scd"]
    got = item_analysis.table(items, 300, 1)
    assert (got["item_rest"] > 0.99).all() and (got["p"] < 0.01).all()


@pytest.mark.parametrize("models", [("a",), ("a", "b")])
def test_two_models_are_too_few(models, tmp_path):
    got = item_analysis.table(random_items(8, models, missing=0.0), 50, 1)
    assert got.empty
    empty = pd.DataFrame(columns=item_analysis.COLUMNS)
    keys = item_analysis.numbers(got, None, empty)
    assert keys["bootstrap.items.analysed"] == 0 and keys["bootstrap.items.suggested"] is None
    files.write_json(tmp_path / "numbers.json", keys)


def test_a_single_item_has_no_rest(tmp_path):
    items = random_items(1, missing=0.0)
    got = item_analysis.table(items, 20, 1)
    assert len(got) == 1 and got[["item_rest", "p"]].isna().all(axis=None)
    chance = item_analysis.null(item_analysis.matrix(items)[0], 20, 1)
    keys = item_analysis.numbers(got, chance, pd.DataFrame(columns=item_analysis.COLUMNS))
    assert np.isnan(
        [keys["bootstrap.items.item_rest"], keys["bootstrap.items.null_above_0.8"]]
    ).all()
    files.write_json(tmp_path / "numbers.json", keys)


def parts(items):
    forms, models = bootstrap.linear_forms(items)
    spread = items.pivot(index="item_id", columns="model", values="delta_scd")[models]
    ids = items["item_id"].tolist()[: len(forms)]
    return forms, models, ids, spread


def test_shorter_forms(tmp_path):
    items = random_items(26, ("a", "b", "c", "d"), missing=0.05)
    forms, models, ids, spread = parts(items)
    drawn = bootstrap.resample(bootstrap.multiplicities(26, 400, 3), forms, "full")["esfp"]
    ends = np.percentile(drawn, [2.5, 97.5], axis=0).T
    bounds = {model: tuple(pair) for model, pair in zip(models, ends, strict=True)}
    sizes = [26, 20, 13, 5]
    got = item_analysis.shorter(forms, models, ids, spread, bounds, sizes, 40, 1, RULES)
    assert got["kept"].tolist() == sizes
    # all items kept: nothing changes, whatever was chosen
    np.testing.assert_allclose(got.iloc[0, 1:], [0, 1, 0, 0], atol=1e-12)
    assert got["within"].between(0, 1).all()
    assert (got.iloc[1:][["change", "change_left_out", "change_random"]] > 0).all(axis=None)

    whole = bootstrap.resample(np.ones((1, 26)), forms, "full")["esfp"][0]

    def kept(columns, size):  # the score on the items with the widest spread, by plain pandas
        widest = spread[columns].std(axis=1).fillna(0).reindex(ids).to_numpy()
        mine = np.sort(np.argsort(-widest, kind="stable")[:size])
        return bootstrap.resample(np.ones((1, size)), forms[mine], "full")["esfp"][0]

    for row in got.itertuples():
        assert row.change == pytest.approx(np.abs(kept(models, row.kept) - whole).max())
        left_out = []
        for m, model in enumerate(models):
            value = kept([other for other in models if other != model], row.kept)[m]
            left_out.append((abs(value - whole[m]), ends[m][0] <= value <= ends[m][1]))
        moved, inside = zip(*left_out, strict=True)
        assert row.change_left_out == pytest.approx(max(moved))
        assert row.within == pytest.approx(np.mean(inside))
    analysed = item_analysis.table(items, 50, 1)
    values, *_ = item_analysis.matrix(items)
    keys = item_analysis.numbers(analysed, item_analysis.null(values, 50, 1), got)
    assert keys["bootstrap.items.change_half"] == got["change"].iloc[2]
    assert keys["bootstrap.items.suggested"] == item_analysis.suggestion(got)
    files.write_json(tmp_path / "numbers.json", keys)


def test_the_score_of_a_model_may_be_lost_with_its_items(tmp_path):
    """AR of one model is defined on one narrow item alone; the others do not hide that."""
    items = random_items(12, ("a", "b", "c"), missing=0.0)
    narrow = items["item_id"].unique()[4]
    for name in ("scd_minus", "scd_plus", "delta_scd"):
        items.loc[items["item_id"] == narrow, name] = 0.0
    for model in ("b", "c"):
        gone = (items["model"] == model) & (items["item_id"] != narrow)
        items.loc[gone, ["ar_minus", "ar_plus", "delta_ar"]] = np.nan
    forms, models, ids, spread = parts(items)
    bounds = dict.fromkeys(models, (0.0, 1.0))
    got = item_analysis.shorter(forms, models, ids, spread, bounds, [12, 6, 1], 4, 1, RULES)
    assert got.loc[0].notna().all()
    assert got.loc[1:, ["change", "change_left_out"]].isna().all(axis=None)
    assert (got.loc[1:, "within"] < 1).all()
    keys = item_analysis.numbers(pd.DataFrame(), None, got)
    assert keys["bootstrap.items.suggested"] == 12
    files.write_json(tmp_path / "numbers.json", keys)


def test_suggestion():
    table = pd.DataFrame({"kept": [10, 30, 20, 40], "within": [1.0, 1.0, 0.5, 1.0]})
    assert item_analysis.suggestion(table) == 30  # 10 is good by chance: 20 was not
    assert item_analysis.suggestion(table.assign(within=1.0)) == 10
    assert item_analysis.suggestion(table.assign(within=0.9)) is None
