"""Differences and ranks over shared draws, power, coverage and variance components."""

import warnings

import numpy as np
import pandas as pd
import pingouin
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower

from esfp import bootstrap, comparisons, files, power, simulation, standings, style, variance
from tests.test_bootstrap import random_items


@pytest.fixture
def run():
    """Draws and estimates of three models, in mode full."""
    forms, models = bootstrap.linear_forms(random_items(n_items=40, missing=0.0))
    weights = bootstrap.multiplicities(40, 500, 3)
    drawn = bootstrap.resample(weights, forms, "full")
    point = bootstrap.resample(np.ones((1, 40)), forms, "full")
    return drawn, {name: values[0] for name, values in point.items()}, models, forms


def test_bca_equals_scipy_draw_for_draw():
    items = random_items(n_items=25, missing=0.0)
    forms, models = bootstrap.linear_forms(items)
    weights = bootstrap.multiplicities(25, 400, 11)
    drawn = bootstrap.resample(weights, forms, "full")
    point = bootstrap.resample(np.ones((1, 25)), forms, "full")
    left_out = bootstrap.resample(1 - np.eye(25), forms, "full")
    got = bootstrap.accelerated(drawn, point, left_out, models, 0.9)
    mine = got[(got["model"] == "a") & (got["statistic"] == "esfp")].iloc[0]

    def esfp(index, axis):
        index = np.moveaxis(np.atleast_2d(index), axis, -1).reshape(-1, np.shape(index)[axis])
        counts = np.stack([np.bincount(row, minlength=25) for row in index.astype(int)])
        return bootstrap.resample(counts.astype(float), forms, "full")["esfp"][:, 0]

    theirs = stats.bootstrap(
        (np.arange(25),),
        esfp,
        n_resamples=400,
        method="BCa",
        confidence_level=0.9,
        vectorized=True,
        rng=np.random.default_rng(11),
    ).confidence_interval
    np.testing.assert_allclose([mine["bca_low"], mine["bca_high"]], np.ravel(theirs), atol=1e-9)


def test_bca_is_left_out_where_it_is_not_defined():
    flat = {"x": np.full((50, 1), 0.3)}
    one, left = {"x": np.array([[0.3]])}, {"x": np.full((9, 1), 0.3)}
    assert bootstrap.accelerated(flat, one, left, ["m"])["bca_low"].isna().all()
    gap = {"x": np.where(np.arange(50)[:, None] == 0, np.nan, np.arange(50.0)[:, None])}
    assert bootstrap.accelerated(gap, {"x": np.array([[25.0]])}, left, ["m"])["bca_low"].isna()[0]


def test_differences_are_paired_by_draw(run):
    drawn, point, models, _ = run
    table = comparisons.differences(drawn, point, models)
    assert len(table) == 6 and (table["difference"] >= 0).all()
    row = table[table["statistic"] == "delta_scd"].iloc[0]
    first, second = (models.index(row[side]) for side in ("first", "second"))
    moved = drawn["delta_scd"][:, first] - drawn["delta_scd"][:, second]
    assert (row["ci_low"], row["ci_high"]) == pytest.approx(np.percentile(moved, [2.5, 97.5]))
    side = min((moved <= 0).sum(), (moved >= 0).sum())
    assert row["p"] == pytest.approx(min(1, 2 * (1 + side) / 501))
    for _, part in table.groupby("statistic"):
        _, theirs = pingouin.multicomp(part["p"].to_numpy(), method="holm")
        np.testing.assert_allclose(part["p_holm"], theirs)


def test_a_model_without_a_score_is_compared_by_what_it_has(run):
    drawn, point, models, _ = run
    point["esfp"][1], drawn["esfp"][:, 1] = np.nan, np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = comparisons.differences(drawn, point, models)
        ranks = comparisons.ranks(drawn["esfp"], point["esfp"], models)
    assert table["statistic"].value_counts().to_dict() == {"delta_scd": 3, "esfp": 1}
    assert sorted(ranks["model"]) == ["a", "c"]
    alone = comparisons.ranks(drawn["esfp"][:, :1], point["esfp"][:1], models[:1])
    assert alone[["rank", "rank_low", "rank_high", "share_1"]].iloc[0].tolist() == [1, 1, 1, 1]
    assert comparisons.ranks(drawn["esfp"][:, [1]], point["esfp"][[1]], ["b"]).empty


def test_rank_sets_by_hand():
    """Two models far above a third, with errors of one: the pair cannot be told apart."""
    rng = np.random.default_rng(0)
    point = np.array([10.0, 10.1, 0.0])
    drawn = point + rng.normal(size=(4000, 3))
    table = comparisons.rank_sets(drawn, point)
    assert table.to_numpy().tolist() == [[2, 1, 2], [1, 1, 2], [3, 3, 3]]
    error = drawn[:, 0] - drawn[:, 1]
    assert comparisons.rank_shares(drawn)[0, 1] == pytest.approx((error < 0).mean())


def test_rank_sets_hold_together_as_often_as_they_say():
    """True ranks of five close models, 400 times: all five sets hold in 95% or more."""
    rng = np.random.default_rng(1)
    truth = np.array([0.0, 0.1, 0.2, 0.4, 0.8])
    ranks = np.array([5, 4, 3, 2, 1])
    held = 0
    for _ in range(400):
        point = truth + rng.normal(scale=0.15, size=5)
        drawn = point + rng.normal(scale=0.15, size=(300, 5))
        table = comparisons.rank_sets(drawn, point)
        held += bool(((table["rank_low"] <= ranks) & (ranks <= table["rank_high"])).all())
    assert held / 400 >= 0.95


def test_tied_models_share_their_ranks():
    shares = comparisons.rank_shares(np.array([[1.0, 1.0, 0.0], [2.0, 1.0, 1.0]]))
    np.testing.assert_allclose(shares, [[0.75, 0.25, 0], [0.25, 0.5, 0.25], [0, 0.25, 0.75]])
    np.testing.assert_allclose(shares.sum(axis=0), 1)


@pytest.mark.parametrize("spread", [0.02, 0.25, 0.9])
def test_items_needed_is_the_fewest_that_will_do(spread):
    n = power.items_needed(spread)
    effect = 0.05 / spread
    assert TTestPower().power(effect, n, 0.05) >= 0.8
    assert n == 2 or TTestPower().power(effect, n - 1, 0.05) < 0.8
    assert n == pytest.approx(np.ceil(TTestPower().solve_power(effect, None, 0.05, 0.8)), abs=1)


def test_power_table(run):
    drawn, point, models, _ = run
    table = power.table(drawn, point, models, 40)
    row = table.iloc[0]
    moved = drawn["esfp"][:, 0] - drawn["esfp"][:, 1]
    assert row["spread"] == pytest.approx(np.sqrt(40) * moved.std(ddof=1))
    found = TTestPower().power(row["detectable"] / row["spread"], 40, 0.05)
    assert found == pytest.approx(0.8, abs=1e-6)
    assert power.items_needed(0.0) == 2 and np.isnan(power.items_needed(np.nan))


def test_intervals_cover_the_truth_of_synthetic_cohorts():
    """Mode full holds delta SCD as often as it says; holding kappa and the ceiling covers less."""
    population = simulation.synthetic(20_000, 5, (0.1, 0.35, 0.5))
    table = simulation.coverage(population, 104, cohorts=400, draws=1000, seed=5)
    covered = table.groupby(["statistic", "mode"])["covered"].mean()
    assert 0.93 <= covered["delta_scd", "full"] <= 0.97
    assert covered["esfp", "paper"] < covered["esfp", "full"]
    assert table["cohorts"].eq(400).all()


def test_the_synthetic_population_has_the_shifts_it_was_given():
    forms = simulation.synthetic(50_000, seed=1, shifts=(0.4, 0.0))
    means = bootstrap.statistics(np.ones((1, 50_000)), forms)
    np.testing.assert_allclose(means["delta_scd"][0], [0.4, 0.0], atol=0.01)
    assert 0.1 < means["cpc_kappa"][0, 0] < 0.6


def test_variance_components_by_pingouin():
    rng = np.random.default_rng(2)
    item = np.repeat(rng.normal(scale=0.3, size=60), 4)
    frame = pd.DataFrame(
        {
            "item_id": np.repeat([f"T1-{i:02d}" for i in range(60)], 4),
            "sample": np.tile(range(4), 60),
            "value": item + rng.normal(scale=0.5, size=240),
        }
    )
    found = variance.components(frame)
    anova = pingouin.anova(frame, dv="value", between="item_id", detailed=True)
    assert found["generation"] == pytest.approx(anova.loc[1, "MS"])
    assert found["item"] == pytest.approx((anova.loc[0, "MS"] - anova.loc[1, "MS"]) / 4)
    icc = pingouin.intraclass_corr(frame, "item_id", "sample", "value").set_index("Type")["ICC"]
    assert found["reliability"] == pytest.approx(icc.iloc[0])


def test_variance_components_with_gaps_and_without_samples():
    frame = pd.DataFrame({"item_id": list("aabbc"), "value": [1.0, 3.0, 2.0, 2.0, np.nan]})
    found = variance.components(frame)  # within: 2 and 0; between: 2 (2 - 2)^2 twice = 0
    assert (found["generation"], found["item"], found["items"]) == (1.0, 0.0, 2)
    single = variance.components(frame.drop_duplicates("item_id"))
    assert np.isnan(single["generation"]) and single["items"] == 2


def test_per_sample_pairs_the_nth_answers():
    rows = [("m", "T1-01", s, p, v) for s, p, v in
            [(0, "P1", 0.1), (0, "P2", 0.5), (1, "P1", 0.3), (1, "P2", 0.4)]]  # fmt: skip
    measures = pd.DataFrame(rows, columns=["model", "item_id", "sample", "phrasing", "scd"])
    distances = pd.DataFrame(
        {"model": "m", "item_id": "T1-01", "sample": [0, 1], "psi": [0.2, 0.4]}
    )
    table = variance.per_sample(measures, distances, ["P1", "P2"])
    shift = table[table["measure"] == "delta_scd"]["value"]
    np.testing.assert_allclose(shift, [0.4, 0.1])
    numbers = variance.numbers(variance.table(table))
    assert numbers["score.variance.psi.item.m"] is None


@pytest.mark.parametrize("models", [2, 9])
def test_standings_are_drawn(run, models, tmp_path):
    names = [f"a model with a name of some length {i}" for i in range(models)]
    forms, names = bootstrap.linear_forms(random_items(20, names, missing=0.0))
    drawn = bootstrap.resample(bootstrap.multiplicities(20, 200, 3), forms, "full")
    point = bootstrap.resample(np.ones((1, 20)), forms, "full")
    point = {name: values[0] for name, values in point.items()}
    ranks = comparisons.ranks(drawn["esfp"], point["esfp"], names)
    needed = power.table(drawn, point, names, 20)
    for stem, figure in (
        ("fig11_ranks", standings.fig11_ranks(ranks)),
        ("fig12_power", standings.fig12_power(needed, 20)),
    ):
        assert style.save(figure, tmp_path, stem).stat().st_size > 5000
    table = comparisons.differences(drawn, point, names)
    assert len(standings.differences(table).frame) == len(table)
    keys = comparisons.numbers(table, ranks) | power.numbers(needed)
    assert f"bootstrap.ranks.rank_low.{names[0]}" in keys
    files.write_json(tmp_path / "numbers.json", keys)
