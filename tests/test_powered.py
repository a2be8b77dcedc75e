"""Prediction-powered inference: the published packages' numbers, and intervals that cover."""

import sys
import types

import numpy as np
import pandas as pd
import pytest

from esfp import powered

SIZES = {"T1": 20, "T2": 15, "T3": 15, "T4": 24, "T5": 15, "T6": 15}  # of the corpus
STANCE = {"T1": 0.7, "T2": 0.5, "T3": 0.6, "T4": 0.1, "T5": 0.4, "T6": 0.6}  # share of items
TYPES = pd.Series(
    {f"{kind}-{place:02d}": kind for kind, size in SIZES.items() for place in range(size)}
)


@pytest.fixture(scope="module")
def ppi_py():
    """The authors' package; numba, which it only uses for speed, is stood in for."""
    stand_in = types.ModuleType("numba")
    stand_in.njit = lambda function=None, **_: function or (lambda inner: inner)
    known = sys.modules.setdefault("numba", stand_in)
    import ppi_py

    if known is stand_in:
        del sys.modules["numba"]
    return ppi_py


def beside(reference, items):
    """The reference of the first items, and NaN for the others."""
    return np.concatenate([reference, np.full(items - len(reference), np.nan)])


@pytest.mark.parametrize(("n", "others", "noise"), [(40, 60, 0.3), (400, 5000, 1.0), (30, 70, 9.0)])
def test_in_one_stratum_the_mean_is_that_of_ppi_py(ppi_py, n, others, noise):
    rng = np.random.default_rng(n)
    truth = rng.normal(0.3, 1.0, n + others)
    judged = truth + 0.2 + rng.normal(0, noise, n + others)
    ours = powered.mean(beside(truth[:n], n + others), judged)
    parts = truth[:n], judged[:n], judged[n:]
    point = ppi_py.ppi_mean_pointestimate(*parts, lam=ours.tuning)
    assert ours.value == pytest.approx(float(point[0]))
    free = ppi_py.ppi_mean_pointestimate(*parts)
    low, high = ppi_py.ppi_mean_ci(*parts, alpha=0.05)
    # the package divides variances by n and takes the normal's quantiles
    assert ours.value == pytest.approx(float(free[0]), abs=0.05 * float(high[0] - low[0]))
    wider = ours.high - ours.low
    assert wider == pytest.approx(float(high[0] - low[0]), rel=3.5 / n + 0.02)


def test_a_judge_that_is_right_narrows_the_interval_and_a_useless_one_does_no_harm():
    rng = np.random.default_rng(1)
    truth = rng.normal(0, 1, 400)
    known = beside(truth[:40], 400)
    alone = powered.mean(known, np.zeros(400))
    assert alone.tuning == 0 and alone.value == pytest.approx(truth[:40].mean())
    right = powered.mean(known, truth)
    useless = powered.mean(known, rng.normal(0, 1, 400))
    assert right.high - right.low < 0.5 * (alone.high - alone.low)
    assert useless.high - useless.low < 1.1 * (alone.high - alone.low)


def test_strata_weigh_as_their_items_do_and_need_two_references_each():
    strata = np.repeat(["large", "small"], [30, 10])
    reference = np.full(40, np.nan)
    reference[:4], reference[30:34] = [0.0, 0.1, 0.0, 0.1], [0.9, 1.0, 0.9, 1.0]
    alone = powered.mean(reference, np.zeros(40), strata)
    assert alone.value == pytest.approx(0.75 * 0.05 + 0.25 * 0.95)
    # where all of a stratum has a reference there is nothing to predict
    reference[30:] = 0.8
    whole = powered.mean(reference, np.r_[np.tile([0.3, 0.5], 15), np.zeros(10)], strata)
    assert whole.value == pytest.approx(0.75 * 0.05 + 0.25 * 0.8, abs=0.1)
    reference[31:] = np.nan
    assert np.isnan(powered.mean(reference, np.zeros(40), strata).value)


def cohort(rng):
    """SCD of the corpus's items by the reference, and by a judge that finds too little stance.

    Types differ in stance and in how much of it the judge finds; many an item has none, and some
    densities are undefined.
    """
    share = TYPES.map(STANCE).to_numpy()
    columns = {}
    for arm, often in {"minus": 0.4 * share, "plus": share}.items():
        columns[arm] = np.where(rng.random(len(TYPES)) < often, rng.beta(1.5, 2.5, len(TYPES)), 0)
    truth = pd.DataFrame(columns, index=TYPES.index)
    found = (1 - share)[:, None] * truth + rng.normal(0, 0.1, truth.shape) * (truth > 0)
    false = (rng.random(truth.shape) < 0.1) * rng.uniform(0, 0.5, truth.shape)
    missing = rng.random(truth.shape) < 0.07
    return truth.mask(missing), (found + false).clip(0, 1).mask(missing)


def test_intervals_cover_what_the_reference_would_say_although_the_judge_errs():
    """Four references in each type, as in the corpus: 24 of 104 items."""
    expected = 0.375 * np.average(list(STANCE.values()), weights=list(SIZES.values()))
    expected = {"scd_minus": 0.4 * expected, "scd_plus": expected, "delta_scd": 0.6 * expected}
    drawn = TYPES.groupby(TYPES).head(4).index
    covered, found, width = dict.fromkeys(expected, 0), [], []
    for seed in range(250):
        truth, judged = cohort(np.random.default_rng(seed))
        table = powered.contrast(truth.loc[drawn], judged, TYPES)
        for name, value in expected.items():
            row = table.loc[name]
            covered[name] += row["corrected_low"] <= value <= row["corrected_high"]
        row = table.loc["delta_scd"]
        found.append(row[["uncorrected", "labelled", "corrected"]].to_numpy(float))
        width.append(
            row[["labelled_high", "corrected_high"]] - row[["labelled", "corrected"]].array
        )
    assert 0.92 <= covered["delta_scd"] / 250 <= 0.98, covered
    # under the de-subjectified phrasing only a fifth of the answers have any stance, and the mean
    # of so skewed a sample is not yet Student's
    assert covered["scd_plus"] >= 0.90 * 250 and covered["scd_minus"] >= 0.86 * 250, covered
    uncorrected, labelled, corrected = np.mean(found, axis=0)
    assert corrected == pytest.approx(expected["delta_scd"], abs=0.008)
    assert labelled == pytest.approx(expected["delta_scd"], abs=0.008)
    assert uncorrected < 0.7 * expected["delta_scd"]
    assert np.mean(width, axis=0)[1] < 0.95 * np.mean(width, axis=0)[0]


def test_types_that_are_labelled_more_do_not_weigh_more():
    share = TYPES.eq("T4") / 2
    truth = pd.DataFrame({"minus": 0.0, "plus": share})
    judged = truth + np.random.default_rng(0).normal(0.2, 0.01, truth.shape)
    table = powered.contrast(truth.groupby(TYPES).head(4), judged, TYPES)
    of_items, of_labelled = share.mean(), share.groupby(TYPES).mean().mean()
    assert table.loc["scd_plus", "labelled"] == pytest.approx(of_items)
    assert abs(of_items - of_labelled) > 0.01


def test_without_reference_or_without_any_stance_nothing_is_claimed():
    truth, judged = cohort(np.random.default_rng(0))
    table = powered.contrast(truth.iloc[:0], judged, TYPES)
    assert table[["corrected", "labelled_low"]].isna().all(axis=None) and (table["n"] == 0).all()
    means = judged.mean()
    assert table.loc["delta_scd", "uncorrected"] == pytest.approx(means["plus"] - means["minus"])
    assert (table["uncorrected_low"] < table["uncorrected_high"]).all()
    # one item of the last type is too few
    few = powered.contrast(truth.iloc[:90], judged, TYPES)
    assert few["corrected"].isna().all() and few.loc["delta_scd", "n"] == 90
    alone = powered.contrast(truth.iloc[:0], judged.iloc[::20], TYPES)
    assert alone["uncorrected"].notna().all() and alone["uncorrected_low"].isna().all()
    judged["plus"] = truth["plus"] = np.nan
    table = powered.contrast(truth.groupby(TYPES).head(4), judged, TYPES)
    assert table.loc["scd_minus"].notna().all()
    assert table.loc[["scd_plus", "delta_scd"], ["uncorrected", "corrected"]].isna().all(axis=None)


def test_densities_leave_out_what_is_neither_report_nor_stance():
    rows = [
        ("i1", "P1", 0, "A"), ("i1", "P1", 0, "C"), ("i1", "P2", 0, "B"), ("i1", "P2", 0, "A"),
        ("i1", "P2", 1, "B"), ("i2", "P1", 0, "C"), ("i2", "P2", 0, "B"),
    ]  # fmt: skip
    frame = pd.DataFrame(rows, columns=["item_id", "phrasing", "sample", "label"])
    frame = frame.assign(model="m", type="T1")
    table = powered.densities(frame, "label", ["P1", "P2"], ["i1", "i2", "i3"])
    assert table.loc["i1"].tolist() == [0.0, 0.75]
    assert np.isnan(table.loc["i2", "minus"]) and table.loc["i2", "plus"] == 1.0
    assert table.loc["i3"].isna().all()


def test_a_run_is_corrected_by_the_reference_labels_of_its_own_sentences():
    rows = [
        (f"i{item}", phrasing, f"sentence {item} {phrasing} {place}.", label)
        for item in range(12)
        for phrasing in ("P1", "P2")
        for place, label in enumerate("AAB" if phrasing == "P2" else "AAA")
    ]
    labelled = pd.DataFrame(rows, columns=["item_id", "phrasing", "sentence", "label"])
    labelled = labelled.assign(model="m", type="T1", sample=0)
    gold = labelled.assign(
        response_id="recorded-m-" + labelled["item_id"] + "-" + labelled["phrasing"] + "-0",
        voice="m",
        label=["B" if phrasing == "P2" else "A" for phrasing in labelled["phrasing"]],
    )
    gold = gold[gold["item_id"].isin(["i0", "i1", "i2", "i3"])]
    gold = gold[gold["sentence"] != "sentence 3 P1 0."]  # one item lacks a sentence's label
    items = pd.DataFrame({"item_id": [f"i{item}" for item in range(12)], "type": "T1"})
    table = powered.correct(labelled, gold, ["m"], ["P1", "P2"], items).set_index("quantity")
    delta = table.loc["delta_scd"]
    assert delta["n"] == 3 and delta["items"] == 12
    assert delta["uncorrected"] == pytest.approx(1 / 3)
    assert delta["corrected"] == pytest.approx(1.0)
    # an item that was not asked is no item without stance; a model that was not asked has nothing
    items = pd.concat([items, items.assign(item_id="more " + items["item_id"])])
    both = powered.correct(labelled, gold, ["m", "n"], ["P1", "P2"], items).set_index("model")
    pd.testing.assert_frame_equal(both.loc["m"].set_index("quantity"), table.drop(columns="model"))
    assert both.loc["n", ["uncorrected", "corrected"]].isna().all(axis=None)
    # a run with other words of the same model has no reference
    other = labelled.assign(sentence=labelled["sentence"] + " Else.")
    assert (powered.correct(other, gold, ["m"], ["P1", "P2"], items)["n"] == 0).all()
