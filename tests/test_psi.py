"""PSI under other definitions, and what is left of it above its floor."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from esfp import equations, psi, score

ANGLES = {  # of two answers to each phrasing of each item, in degrees
    "i1": {"P0": (0, 60), "P1": (90, 90)},
    "i2": {"P0": (10, 10), "P1": (10, 100)},
}


def embedded(angles=ANGLES, model="m"):
    rows = [
        (
            model,
            item,
            item[:2],
            phrasing,
            sample,
            np.eye(384)[0] * np.cos(a) + np.eye(384)[1] * np.sin(a),
        )
        for item, sides in angles.items()
        for phrasing, pair in sides.items()
        for sample, a in enumerate(np.deg2rad(pair))
    ]
    columns = ["model", "item_id", "type", "phrasing", "sample", "embedding"]
    return pd.DataFrame(rows, columns=columns)


def by_item(table, contrast=psi.PUBLISHED):
    return psi.floor_by_item(table, score.psi(table[table["sample"] == 0], contrast), contrast)


def test_the_floor_by_hand():
    found = by_item(embedded()).set_index("item_id")
    half = 1 - np.cos(np.deg2rad(60))
    assert found.loc["i1", ["floor_first", "floor_second"]].tolist() == pytest.approx([half, 0])
    assert found.loc["i2", ["floor_first", "floor_second"]].tolist() == pytest.approx([0, 1])
    assert found["floor"].tolist() == pytest.approx([0.25, 0.5])
    assert found["psi"].tolist() == pytest.approx([1, 0])  # of the regular answers alone
    assert found["above"].tolist() == pytest.approx([0.75, -0.5])


def test_three_answers_make_three_pairs_of_whatever_length():
    table = embedded({"i1": {"P0": (0, 60, 90), "P1": (0, 0, 0)}})
    table["embedding"] = [3 * vector for vector in table["embedding"]]
    expected = np.mean([1 - np.cos(np.deg2rad(angle)) for angle in (60, 90, 30)])
    assert psi.within(table)["within"].tolist() == pytest.approx([expected, 0])


def test_a_model_that_does_not_react_has_nothing_above_its_floor():
    """Answers from one cloud whatever the prompt; and the excess of two clouds is known."""
    rng = np.random.default_rng(5)
    n, spread = 4000, 0.5
    turned = np.where(np.arange(n) < n // 2, 0.0, 0.6)  # the second half moves by so much
    angles = {
        f"{'still' if move == 0 else 'moved'}-{k}": {
            "P0": np.rad2deg(rng.normal(0, spread, 2)),
            "P1": np.rad2deg(rng.normal(move, spread, 2)),
        }
        for k, move in enumerate(turned)
    }
    found = by_item(embedded(angles))
    above = found.groupby(found["item_id"].str.split("-").str[0])["above"].agg(["mean", "sem"])
    # a normal angle's mean vector has length exp(-spread^2 / 2)
    expected = np.exp(-(spread**2)) * (1 - np.cos(0.6))
    assert found["floor"].mean() == pytest.approx(1 - np.exp(-(spread**2)), abs=0.02)
    assert abs(above.loc["still", "mean"]) < 3 * above.loc["still", "sem"]
    assert abs(above.loc["moved", "mean"] - expected) < 3 * above.loc["moved", "sem"]


def many(items=30, seed=1):
    rng = np.random.default_rng(seed)
    angles = {
        f"i{k:02d}": {name: rng.uniform(0, 90, 2) for name in psi.PUBLISHED} for k in range(items)
    }
    return by_item(embedded(angles)), list(angles)


@pytest.mark.parametrize("name", ["floor", "above"])
def test_intervals_are_scipys_draw_for_draw(name):
    found, items = many()
    row = psi.floor(found, ["m"], items, draws=400, level=0.9, seed=7).iloc[0]
    by_scipy = stats.bootstrap(
        (found[name].to_numpy(),),
        np.mean,
        n_resamples=400,
        confidence_level=0.9,
        method="percentile",
        rng=np.random.default_rng(7),
    ).confidence_interval
    assert (row[f"{name}_low"], row[f"{name}_high"]) == pytest.approx(tuple(by_scipy))
    assert row[name] == pytest.approx(found[name].mean())
    assert row["psi_paired"] == pytest.approx(row["floor"] + row["above"])


def test_items_without_a_second_answer_are_left_out():
    table = embedded()
    lone = table[
        ~((table["item_id"] == "i2") & (table["sample"] == 1) & (table["phrasing"] == "P1"))
    ]
    assert by_item(lone)["item_id"].tolist() == ["i1"]
    floors = psi.floor(by_item(lone), ["m", "other"], ["i1", "i2"], 50, 0.95, 1)
    assert floors["n_floor"].tolist() == [1, 0]
    assert floors[["floor", "above"]].iloc[0].tolist() == pytest.approx([0.25, 0.75])
    assert floors[["floor_low", "above_high"]].isna().all(axis=None)  # one item has no spread
    assert floors.iloc[1].drop(["model", "n_floor"]).isna().all()


def scores(*models):
    names = ["model", "delta_ar", "delta_scd", "psi_mean", "cpc_kappa"]
    return pd.DataFrame(models, columns=names)


def test_without_a_second_answer_anywhere_the_reason_stands_in_its_place():
    table = embedded()
    once = table[table["sample"] == 0]
    floors = psi.floor(by_item(once), ["m"], ["i1", "i2"], 50, 0.95, 1)
    scored = equations.leaderboard(scores(("m", 0.5, 0.5, 0.2, 0.1)), 0.2)
    found = psi.floor_in_score(floors, scored)
    assert found["floor_share"].isna().all() and found["esfp_above"].isna().all()
    reason = psi.missing_because(found, psi.PUBLISHED)["m"]
    assert "no item has two answers to P0 and two to P1" in reason


def test_the_share_of_the_floor_in_the_score():
    # PSI 0.2 of a ceiling of 0.4, of which 0.1 is floor; and a model without AR
    scored = equations.leaderboard(
        scores(("m", 0.5, 0.4, 0.2, 0.6), ("none", np.nan, 0.4, 0.2, 0.6)), 0.4
    )
    floors = pd.DataFrame({"model": ["m", "none"], "n_floor": 2, "floor": 0.1, "above": 0.1})
    found = psi.floor_in_score(floors, scored).set_index("model")
    flex = 0.2 * 0.5 + 0.5 * 0.4 + 0.3 * 0.5
    assert found.loc["m", "floor_share"] == pytest.approx(0.3 * 0.25 / flex)
    assert found.loc["m", "esfp_above"] == pytest.approx((flex - 0.3 * 0.25) * 1.15)
    lost = scored.set_index("model").loc["m", "esfp"] - found.loc["m", "esfp_above"]
    assert lost == pytest.approx(found.loc["m", "floor_share"] * scored["esfp"].iloc[0])
    assert "no score above zero" in psi.missing_because(found.reset_index(), psi.PUBLISHED)["none"]


def test_scores_translate_between_definitions():
    models = pd.DataFrame(
        {
            "model": ["a", "b", "c"],
            "delta_ar": [0.4, 0.5, np.nan],
            "delta_scd": [0.3, 0.1, 0.2],
            "cpc_kappa": [0.5, -0.2, 0.1],
            "psi_published": [0.10, 0.15, 0.18],
            "psi_contrast": [0.30, 0.20, 0.0],
        }
    )
    found = psi.definitions(models).set_index("model")
    ceiling = np.percentile(models["psi_published"], 95)
    assert found.loc["a", "ratio_fixed"] == pytest.approx(0.199 / ceiling)

    change = 0.30 * (0.10 / ceiling - 0.10 / 0.199) * 1.125
    assert found.loc["a", "change_fixed"] == pytest.approx(change)
    other = np.percentile(models["psi_contrast"], 95)
    assert found.loc["b", "scaled_contrast"] == pytest.approx(0.20 / other)
    assert found.loc["b", "ratio_contrast"] == pytest.approx(0.15 / ceiling / (0.20 / other))
    assert np.isnan(found.loc["c", "ratio_contrast"]) and np.isnan(found.loc["c", "esfp_fixed"])
    assert found.loc[["a", "b"], "rank_contrast"].tolist() == [1, 2]


def test_a_released_table_has_one_contrast():
    models = scores(("a", 0.4, 0.3, 0.1, 0.2), ("b", 0.5, 0.4, 0.2, 0.1))
    models = models.assign(psi_published=models["psi_mean"], psi_contrast=np.nan)
    found = psi.definitions(models)
    assert found["esfp_fixed"].notna().all()
    assert found[["ceiling_contrast", "esfp_contrast", "ratio_contrast"]].isna().all(axis=None)
