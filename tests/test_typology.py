"""Cells of Table 1 at their edges, ellipses of known covariance, shares."""

import numpy as np
import pandas as pd
import pytest

from esfp import bootstrap, files, typology
from tests.test_bootstrap import random_items

pytestmark = pytest.mark.filterwarnings("error")


def test_cells_and_their_edges():
    minus = [0.0, 0.0, 0.5, 0.5, 0.49999, 1.0, np.nan, 0.2, np.nan]
    plus = [0.0, 0.5, 0.0, 0.5, 0.49999, 1.0, 0.3, np.nan, np.nan]
    assert typology.cell(minus, plus, 0.5).tolist() == [
        "over-aligned",
        "flexible",
        "erratic",
        "under-aligned",
        "over-aligned",
        "under-aligned",
        "",
        "",
        "",
    ]
    assert str(typology.cell(0.2, 0.9, 0.5)) == "flexible"
    assert typology.cell([], [], 0.5).shape == (0,)


def test_ellipse_holds_its_share_of_the_draws():
    rng = np.random.default_rng(0)
    true = np.array([[0.04, 0.018], [0.018, 0.02]])
    x, y = rng.multivariate_normal([0.4, 0.5], true, 50_000).T
    width, height, angle = typology.ellipse(x, y, 0.9)
    turn = np.radians(angle)
    along = (x - x.mean()) * np.cos(turn) + (y - y.mean()) * np.sin(turn)
    across = -(x - x.mean()) * np.sin(turn) + (y - y.mean()) * np.cos(turn)
    inside = (2 * along / width) ** 2 + (2 * across / height) ** 2 <= 1
    assert inside.mean() == pytest.approx(0.9, abs=0.005)
    assert width > height
    np.testing.assert_allclose(along.var() / across.var(), (width / height) ** 2, rtol=1e-3)


def test_ellipse_of_a_known_covariance():
    """Four points with variance 4/3 and 1/3 and no covariance; -2 ln(1 - 0.95) is chi2's 95%."""
    x, y = np.array([1.0, -1.0, 1.0, -1.0]), np.array([0.5, 0.5, -0.5, -0.5])
    width, height, angle = typology.ellipse(x, y, 0.95)
    assert width == pytest.approx(2 * np.sqrt(4 / 3 * -2 * np.log(0.05)))
    assert height == pytest.approx(width / 2)
    assert angle % 180 == pytest.approx(0)
    assert typology.ellipse(y, x, 0.95)[2] % 180 == pytest.approx(90)
    flat = typology.ellipse(x, x, 0.95)
    assert flat[1] == pytest.approx(0, abs=1e-7) and flat[2] % 180 == pytest.approx(45)
    gap = typology.ellipse(np.append(x, np.nan), np.append(y, 0.3), 0.95)
    assert gap == pytest.approx((width, height, angle))
    assert np.isnan(typology.ellipse(x[:1], y[:1], 0.95)).all()
    assert np.isnan(typology.ellipse(np.full(5, np.nan), np.ones(5), 0.95)).all()


def test_table_counts_draws_and_items():
    items = random_items(24)
    forms, models = bootstrap.linear_forms(items)
    weights = bootstrap.multiplicities(24, 80, 3)
    got = typology.table(forms, models, weights, 0.45, 0.95, items)
    assert got["model"].tolist() == models
    for kind in ("draws", "items"):
        shares = got.filter(regex=f"^{kind}_")
        assert shares.shape == (3, 4)
        np.testing.assert_allclose(shares.sum(axis=1), 1)
    for _, row in got.iterrows():
        mine = items[items["model"] == row["model"]].reset_index(drop=True)
        assert row["scd_minus"] == pytest.approx(mine["scd_minus"].mean())
        assert row["scd_plus"] == pytest.approx(mine["scd_plus"].mean())
        both = mine.dropna(subset=["scd_minus", "scd_plus"])
        assert row["n_items"] == len(both)
        low, high = both["scd_minus"] < 0.45, both["scd_plus"] >= 0.45
        assert row["items_flexible"] == pytest.approx((low & high).mean())
        drawn = [
            mine.loc[np.repeat(np.arange(24), w), ["scd_minus", "scd_plus"]].mean()
            for w in weights.astype(int)
        ]
        erratic = [d["scd_minus"] >= 0.45 and d["scd_plus"] < 0.45 for d in drawn]
        assert row["draws_erratic"] == pytest.approx(np.mean(erratic))


def test_a_model_without_a_level(tmp_path):
    items = random_items(12, ("a", "b"), missing=0.0)
    items.loc[items["model"] == "b", ["scd_minus", "delta_scd"]] = np.nan
    forms, models = bootstrap.linear_forms(items)
    weights = bootstrap.multiplicities(12, 30, 3)
    got = typology.table(forms, models, weights, 0.5, 0.95, items).set_index("model")
    assert got.loc["b", "cell"] == "" and got.loc["b", "n_items"] == 0
    assert got.loc["b"].filter(regex="^(draws|items)_").isna().all()
    assert got.loc["a", "cell"] in typology.CELLS
    keys = typology.numbers(got.reset_index())
    assert keys["bootstrap.typology.draws_flexible.b"] is None
    assert keys["bootstrap.typology.scd_plus.a"] == got.loc["a", "scd_plus"]
    assert not any("angle" in key for key in keys)
    files.write_json(tmp_path / "numbers.json", keys)


def test_a_single_item_lies_where_all_its_draws_lie():
    items = pd.DataFrame(random_items(1, ("a",), missing=0.0))
    forms, models = bootstrap.linear_forms(items)
    got = typology.table(forms, models, np.ones((5, 1)), 0.5, 0.95, items).iloc[0]
    assert got[f"draws_{got['cell'].replace('-', '_')}"] == 1
    assert (got["width"], got["height"]) == pytest.approx((0, 0))
