"""Stage 5: the vectorised bootstrap against a plain loop, scipy and values worked out by hand."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from esfp import bootstrap, equations, files, score


def random_items(n_items=30, models=("a", "b", "c"), seed=0, missing=0.15):
    """Per-item measures as 4_score writes them, with gaps and every cpc_status."""
    rng = np.random.default_rng(seed)
    frames = []
    for i, model in enumerate(models):
        table = pd.DataFrame({"model": model, "item_id": [f"T1-{j:02d}" for j in range(n_items)]})
        table["type"] = "T1"
        for name in ("ar_minus", "ar_plus", "scd_minus", "scd_plus", "psi"):
            value = rng.beta(2 + i, 3, size=n_items)
            table[name] = np.where(rng.random(n_items) < missing, np.nan, value)
        table["delta_ar"] = table["ar_plus"] - table["ar_minus"]
        table["delta_scd"] = table["scd_plus"] - table["scd_minus"]
        counts = rng.multinomial(3, rng.dirichlet(np.ones(4)), size=n_items)
        table[bootstrap.STANCES] = counts
        status = rng.choice(["counted", "no_b", "missing_stance"], n_items, p=[0.8, 0.1, 0.1])
        table["cpc_status"] = status
        table.loc[status == "missing_stance", "n_positive"] = 0
        frames.append(table)
    return pd.concat(frames, ignore_index=True)[files.ITEMS.names]


def plain_loop(items, draws, seed, mode):
    """The same bootstrap as a reader of Section 4.7 would write it, draw by draw."""
    models = items["model"].unique()
    by_model = {m: part.reset_index(drop=True) for m, part in items.groupby("model")}
    n_items = len(by_model[models[0]])
    point = score.per_model(items).set_index("model")
    rows = []
    index = np.random.default_rng(seed).integers(0, n_items, size=(draws, n_items))
    for draw in range(draws):
        drawn = pd.concat([by_model[m].iloc[index[draw]] for m in models])
        table = score.per_model(drawn)
        held = table if mode == "full" else point.loc[table["model"]].reset_index()
        table["cpc_kappa"] = held["cpc_kappa"]
        ceiling = score.psi_ceiling(held["psi_mean"])
        rows.append(equations.leaderboard(table, ceiling).assign(draw=draw))
    order = [(m, d) for m in models for d in range(draws)]
    return pd.concat(rows).set_index(["model", "draw"]).loc[order].reset_index()


@pytest.mark.parametrize("mode", ["paper", "full"])
def test_equal_to_a_plain_loop(mode):
    items = random_items()
    forms, models = bootstrap.linear_forms(items)
    drawn = bootstrap.resample(bootstrap.multiplicities(30, 12, 5), forms, mode)
    got, expected = bootstrap.table(drawn, models), plain_loop(items, 12, 5, mode)
    for name in ["model", "draw", *bootstrap.STATISTICS]:
        if name in ("model", "draw"):
            assert got[name].tolist() == expected[name].tolist()
        else:
            np.testing.assert_allclose(got[name], expected[name].astype(float), atol=1e-12)


@pytest.mark.parametrize(("mode", "level"), [("paper", 0.95), ("full", 0.9)])
def test_equal_to_scipy_draw_for_draw(mode, level):
    items = random_items(n_items=25, missing=0.05)
    forms, models = bootstrap.linear_forms(items)
    drawn = bootstrap.resample(bootstrap.multiplicities(25, 60, 11), forms, mode)

    def esfp(index):  # (draws, 25) item numbers -> (draws,) scores of the first model
        weights = np.stack([np.bincount(row, minlength=25) for row in np.atleast_2d(index)])
        values = bootstrap.resample(weights.astype(float), forms, mode)["esfp"][:, 0]
        return values if np.ndim(index) > 1 else values[0]

    result = stats.bootstrap(
        (np.arange(25),),
        lambda index, axis: esfp(index),
        n_resamples=60,
        method="percentile",
        confidence_level=level,
        rng=np.random.default_rng(11),
        vectorized=True,
    )
    np.testing.assert_allclose(drawn["esfp"][:, 0], result.bootstrap_distribution, atol=1e-12)
    bounds = bootstrap.intervals(drawn, models, level)
    mine = bounds[(bounds["statistic"] == "esfp") & (bounds["model"] == "a")].iloc[0]
    assert mine["ci_low"] == pytest.approx(result.confidence_interval.low, abs=1e-12)
    assert mine["ci_high"] == pytest.approx(result.confidence_interval.high, abs=1e-12)
    assert mine["boot_sd"] == pytest.approx(result.standard_error, abs=1e-12)


def test_scipy_on_a_plain_mean():
    items = random_items(models=("a",), missing=0)
    forms, models = bootstrap.linear_forms(items)
    drawn = bootstrap.resample(bootstrap.multiplicities(30, 500, 3), forms)
    result = stats.bootstrap(
        (items["delta_ar"].to_numpy(),),
        np.mean,
        n_resamples=500,
        method="percentile",
        rng=np.random.default_rng(3),
    )
    np.testing.assert_allclose(drawn["delta_ar"][:, 0], result.bootstrap_distribution)


def test_a_row_of_ones_gives_the_point_estimates_of_stage_4():
    items = random_items(seed=2)
    forms, models = bootstrap.linear_forms(items)
    point = bootstrap.statistics(np.ones((1, 30)), forms)
    expected = score.per_model(items)
    assert models == expected["model"].tolist()
    for name, values in point.items():
        np.testing.assert_allclose(values[0], expected[name], atol=1e-12)


def test_draws_are_those_of_the_generator():
    weights = bootstrap.multiplicities(7, 50, 42)
    index = np.random.default_rng(42).integers(0, 7, size=(50, 7))
    expected = np.stack([np.bincount(row, minlength=7) for row in index])
    np.testing.assert_array_equal(weights, expected)
    assert (weights.sum(axis=1) == 7).all()


def test_paper_mode_holds_kappa_and_the_ceiling_and_full_mode_does_not():
    forms, _ = bootstrap.linear_forms(random_items())
    weights = bootstrap.multiplicities(30, 40, 1)
    paper, full = (bootstrap.resample(weights, forms, mode) for mode in ("paper", "full"))
    assert np.ptp(paper["cpc_kappa"], axis=0).max() == 0
    assert np.ptp(full["cpc_kappa"], axis=0).min() > 0
    np.testing.assert_array_equal(paper["delta_scd"], full["delta_scd"])
    point = bootstrap.statistics(np.ones((1, 30)), forms)["psi_mean"]
    free = paper["psi_scaled"] < 1
    ratio = (paper["psi_mean"] / paper["psi_scaled"])[free]
    np.testing.assert_allclose(ratio, equations.psi_ceiling(point[0]))
    assert (full["psi_scaled"].max(axis=1) == 1).all()  # the best of each draw is at its ceiling
    fixed = bootstrap.resample(weights, forms, "full", 0.9, (0, 0, 1), 0.0)
    np.testing.assert_allclose(fixed["esfp"], np.clip(fixed["psi_mean"] / 0.9, 0, 1))


def test_equal_draws_keep_differences_between_models_paired():
    items = random_items(models=("a", "b"))
    twin = items[items["model"] == "a"].assign(model="b")
    items = pd.concat([items[items["model"] == "a"], twin], ignore_index=True)
    forms, _ = bootstrap.linear_forms(items)
    drawn = bootstrap.resample(bootstrap.multiplicities(30, 20, 9), forms, "full")
    np.testing.assert_array_equal(drawn["esfp"][:, 0], drawn["esfp"][:, 1])


def test_undefined_draws_are_counted_and_left_out():
    items = random_items(n_items=4, models=("a",), missing=0)
    items.loc[1:, ["ar_minus", "delta_ar"]] = np.nan  # AR is defined on one item of four
    items["cpc_status"] = "no_b"
    forms, models = bootstrap.linear_forms(items)
    weights = bootstrap.multiplicities(4, 200, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn = bootstrap.resample(weights, forms, "full")
        bounds = bootstrap.intervals(drawn, models).set_index("statistic")
    absent = int((weights[:, 0] == 0).sum())
    assert 0 < absent < 200
    assert bounds.loc["delta_ar", "n_undefined"] == bounds.loc["esfp", "n_undefined"] == absent
    assert bounds.loc["delta_ar", "ci_low"] == bounds.loc["delta_ar", "ci_high"]
    assert bounds.loc["cpc_kappa", "n_undefined"] == 200
    assert np.isnan(bounds.loc["cpc_kappa", ["ci_low", "boot_mean", "boot_sd"]].astype(float)).all()
    assert np.isfinite(bounds.loc["esfp", "boot_mean"])


def test_a_model_without_psi_leaves_the_ceiling_to_the_others():
    items = random_items(models=("a", "b"))
    items.loc[items["model"] == "b", "psi"] = np.nan
    forms, _ = bootstrap.linear_forms(items)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn = bootstrap.resample(bootstrap.multiplicities(30, 10, 0), forms, "full")
    assert (drawn["psi_scaled"][:, 0] == 1).all() and np.isnan(drawn["esfp"][:, 1]).all()


def test_percentiles_by_hand():
    drawn = {"esfp": np.arange(101.0)[:, None]}
    bounds = bootstrap.intervals(drawn, ["a"], 0.95).iloc[0]
    found = bounds[["ci_low", "ci_high", "boot_mean"]].tolist()
    assert found == pytest.approx([2.5, 97.5, 50.0], abs=1e-9)
    assert bounds["boot_sd"] == pytest.approx(np.sqrt(858.5))
    names = bootstrap.numbers(bootstrap.intervals(drawn, ["a"], 0.95))
    assert names["bootstrap.esfp.boot_mean.a"] == 50 and len(names) == 5


def test_models_with_other_items_are_refused():
    items = random_items()
    swapped = pd.concat([items[:30], items[31:], items[30:31]])
    for broken in (
        items[:0],
        items[1:],
        items[30:-1],
        swapped,
        items.sample(frac=1, random_state=1),
    ):
        with pytest.raises(files.DataError, match="items.parquet"):
            bootstrap.linear_forms(broken)


def test_scores_csv_is_filled_in_place(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text(
        "model,rank,esfp,ci_low,ci_high,boot_mean,boot_sd,coverage\n"
        "None,1,0.123456,,,,,1.000000\n1.0,2,,,,,,0.960000\n",
        encoding="utf-8",
    )
    bounds = pd.DataFrame(
        {
            "model": ["1.0", "None", "None"],
            "statistic": ["esfp", "esfp", "flex"],
            "ci_low": [np.nan, 0.1, 9],
            "ci_high": [np.nan, 0.2, 9],
            "boot_mean": [np.nan, 0.15, 9],
            "boot_sd": [np.nan, 0.0123456789, 9],
        }
    )
    assert bootstrap.fill_scores(path, bounds)
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[1] == "None,1,0.123456,0.100000,0.200000,0.150000,0.012346,1.000000"
    assert lines[2] == "1.0,2,,,,,,0.960000"
    assert not bootstrap.fill_scores(path, bounds)  # nothing changes the second time
    with pytest.raises(files.DataError, match="are not those"):
        bootstrap.fill_scores(path, bounds[:1])
    with pytest.raises(files.DataError, match="run 4_score first"):
        bootstrap.fill_scores(tmp_path / "none.csv", bounds)


def test_draws_fit_their_schema(tmp_path):
    forms, models = bootstrap.linear_forms(random_items())
    drawn = bootstrap.resample(bootstrap.multiplicities(30, 10, 0), forms)
    files.write_parquet(
        tmp_path / "bootstrap.parquet", bootstrap.table(drawn, models), files.BOOTSTRAP
    )
    back = files.read_parquet(tmp_path / "bootstrap.parquet", files.BOOTSTRAP)
    assert len(back) == 30 and back["draw"].tolist()[:3] == [0, 1, 2]
    assert back["esfp"].tolist()[10:20] == drawn["esfp"][:, 1].tolist()
