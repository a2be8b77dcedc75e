"""Prediction-powered inference: the published package's numbers, and intervals that cover."""

import sys
import types

import numpy as np
import pandas as pd
import pytest

from esfp import powered


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


@pytest.mark.parametrize(("n", "others", "noise"), [(40, 60, 0.3), (400, 5000, 1.0), (30, 70, 9.0)])
def test_the_mean_is_that_of_ppi_py(ppi_py, n, others, noise):
    rng = np.random.default_rng(n)
    truth = rng.normal(0.3, 1.0, n + others)
    judged = truth + 0.2 + rng.normal(0, noise, n + others)
    ours = powered.mean(truth[:n], judged[:n], judged[n:])
    point = ppi_py.ppi_mean_pointestimate(truth[:n], judged[:n], judged[n:], lam=ours.tuning)
    assert ours.value == pytest.approx(float(point[0]))
    free = ppi_py.ppi_mean_pointestimate(truth[:n], judged[:n], judged[n:])
    low, high = ppi_py.ppi_mean_ci(truth[:n], judged[:n], judged[n:], alpha=0.05)
    # the package divides variances by n, this one by n - 1
    assert ours.value == pytest.approx(float(free[0]), abs=0.05 * float(high[0] - low[0]))
    assert ours.high - ours.low == pytest.approx(float(high[0] - low[0]), rel=1.5 / n + 0.01)


def test_a_judge_that_is_right_narrows_the_interval_and_a_useless_one_does_no_harm():
    rng = np.random.default_rng(1)
    truth = rng.normal(0, 1, 400)
    alone = powered.mean(truth[:40], truth[:40], [])
    right = powered.mean(truth[:40], truth[:40], truth[40:])
    useless = powered.mean(truth[:40], rng.normal(0, 1, 40), rng.normal(0, 1, 360))
    assert right.high - right.low < 0.5 * (alone.high - alone.low)
    assert useless.high - useless.low < 1.1 * (alone.high - alone.low)


def cohort(rng, items):
    """SCD by the reference and by a judge that misses half of the stance under both phrasings."""
    truth = pd.DataFrame(
        {"minus": rng.beta(1, 4, items), "plus": rng.beta(2, 3, items)},
        index=[f"item {place}" for place in range(items)],
    )
    truth = truth.mask(rng.random((items, 2)) < 0.1)
    return truth, (0.5 * truth + rng.normal(0, 0.05, (items, 2))).clip(0, 1)


def test_intervals_cover_what_the_reference_would_say_although_the_judge_errs():
    expected = {"scd_minus": 0.2, "scd_plus": 0.4, "delta_scd": 0.2}
    covered = dict.fromkeys(expected, 0)
    uncorrected = 0
    for draw in range(300):
        truth, judged = cohort(np.random.default_rng(draw), 104)
        table = powered.contrast(truth.iloc[:30], judged)
        for name, value in expected.items():
            row = table.loc[name]
            covered[name] += row["corrected_low"] <= value <= row["corrected_high"]
            assert row["corrected_high"] - row["corrected_low"] < 1.02 * (
                row["labelled_high"] - row["labelled_low"]
            )
        uncorrected += abs(table.loc["delta_scd", "uncorrected"] - 0.2) < 0.05
    assert all(0.90 <= count / 300 <= 0.98 for count in covered.values()), covered
    assert uncorrected < 30  # the judge's own δSCD is half of what it should be


def test_without_reference_or_without_any_stance_nothing_is_claimed():
    truth, judged = cohort(np.random.default_rng(0), 50)
    table = powered.contrast(truth.iloc[:0], judged)
    assert table["corrected"].isna().all() and table["labelled"].isna().all()
    assert table["uncorrected"].notna().all() and (table["n"] == 0).all()
    judged["plus"] = np.nan
    truth["plus"] = np.nan
    table = powered.contrast(truth.iloc[:20], judged)
    assert table.loc["scd_minus"].notna().all()
    assert table.loc[["scd_plus", "delta_scd"], "corrected"].isna().all()


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
    items = [f"i{item}" for item in range(13)]
    table = powered.correct(labelled, gold, ["m"], ["P1", "P2"], items).set_index("quantity")
    delta = table.loc["delta_scd"]
    assert delta["n"] == 3 and delta["items"] == 13
    assert delta["uncorrected"] == pytest.approx(1 / 3)
    assert delta["corrected"] == pytest.approx(1.0)
    # a run with other words of the same model has no reference
    other = labelled.assign(sentence=labelled["sentence"] + " Else.")
    assert (powered.correct(other, gold, ["m"], ["P1", "P2"], items)["n"] == 0).all()
