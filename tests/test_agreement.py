"""Agreement: published examples, values by hand, what the coefficients owe each other."""

import math
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from statsmodels.stats import inter_rater

from esfp import agreement, agreement_figures, coefficients, score

# Krippendorff, Computing Krippendorff's alpha-reliability (2011): four observers, twelve units,
# five values, 0 where an observer gave none. Gwet (2014, p. 120) has the same table.
OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
    [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
]


def counts(raters, q):
    return coefficients.one_hot(np.array(raters).T - 1, q).sum(axis=1)


def alpha(table):
    return float(coefficients.krippendorff_alpha(coefficients.coincidences(table).sum(axis=0)))


def ac1(table):
    return float(coefficients.gwet_ac1(coefficients.agreed_and_spread(table).sum(axis=0)))


def test_alpha_of_krippendorffs_examples():
    assert alpha(counts(OBSERVERS, 5)) == pytest.approx(904 / 1216)
    binary = [[1, 2, 1, 1, 1, 1, 1, 1, 2, 1], [2, 2, 2, 1, 1, 2, 1, 1, 1, 1]]
    assert alpha(counts(binary, 2)) == pytest.approx(0.095, abs=5e-4)
    nominal = [[1, 1, 2, 2, 4, 3, 3, 3, 5, 4, 4, 1], [2, 1, 2, 2, 2, 3, 3, 3, 5, 4, 4, 4]]
    assert alpha(counts(nominal, 5)) == pytest.approx(0.692, abs=5e-4)


def test_ac1_of_gwets_examples():
    # as printed in the overview of the R package irrCAC
    abstractors = np.array([[13, 0, 0], [0, 20, 7], [0, 4, 56]])
    assert coefficients.two_raters(abstractors)["ac1"] == pytest.approx(0.8493305)
    assert coefficients.two_raters(abstractors)["kappa"] == pytest.approx(0.7964094)
    assert ac1(counts(OBSERVERS, 5)) == pytest.approx(0.77544, abs=1e-5)


def test_ac1_by_hand():
    # AB agree on two units of three; π = (3/6, 3/6, 0), p_e = (1/4 + 1/4) / 2
    table = counts([[1, 1, 2], [1, 2, 2]], 3)
    assert ac1(table) == pytest.approx((2 / 3 - 1 / 4) / (1 - 1 / 4))


def test_kappa_and_alpha_mislead_where_one_label_dominates():
    one, other = ["A"] * 98 + ["A", "B"], ["A"] * 98 + ["B", "A"]
    coded = np.array([[1 if label == "A" else 2 for label in rater] for rater in (one, other)])
    assert agreement.cohen_kappa(one, other) < 0 and alpha(counts(coded, 3)) < 0
    assert ac1(counts(coded, 3)) > 0.97


TABLES = st.integers(2, 5).flatmap(
    lambda raters: arrays.arrays(
        int, st.tuples(st.just(raters), st.integers(1, 30)), elements=st.integers(0, 3)
    )
)


@given(TABLES)
def test_alpha_is_fleiss_kappa_for_small_samples(raters):
    table = counts(np.maximum(raters, 1), 3)
    kappa, labels = score.fleiss_kappa(table), table.sum()
    if math.isnan(kappa):
        assert math.isnan(alpha(table))
        return
    assert alpha(table) == pytest.approx(1 - (1 - kappa) * (labels - 1) / labels)
    assert kappa == pytest.approx(inter_rater.fleiss_kappa(table))


@given(TABLES)
def test_coefficients_with_missing_labels_by_their_definitions(raters):
    table = counts(raters, 3)
    given = [[label for label in unit if label] for unit in raters.T]
    pairable = [unit for unit in given if len(unit) > 1]
    if not pairable:
        assert math.isnan(alpha(table)) and math.isnan(ac1(table))
        return
    agreed = [np.mean([a == b for a, b in combinations(unit, 2)]) for unit in pairable]
    labels = [label for unit in pairable for label in unit]
    weights = [len(unit) / len(labels) for unit in pairable]
    within = np.dot(weights, 1 - np.array(agreed))
    between = np.mean([a != b for a, b in combinations(labels, 2)])
    if between == 0:
        assert math.isnan(alpha(table))
    else:
        assert alpha(table) == pytest.approx(1 - within / between)
    spread = [
        np.mean([[label == k for label in unit] for k in (1, 2, 3)], 1) for unit in given if unit
    ]
    share = np.mean(spread, axis=0)
    expected = np.sum(share * (1 - share)) / 2
    assert ac1(table) == pytest.approx((np.mean(agreed) - expected) / (1 - expected))


@given(st.lists(st.tuples(*[st.integers(0, 2)] * 2), min_size=1, max_size=30))
def test_two_raters_are_the_librarys_and_a_panel_of_two(pairs):
    table = np.zeros((3, 3))
    np.add.at(table, tuple(np.array(pairs).T), 1)
    found = coefficients.two_raters(table)
    one, other = (["ABC"[place] for place in rater] for rater in zip(*pairs, strict=True))
    assert found["kappa"] == pytest.approx(agreement.cohen_kappa(one, other), nan_ok=True)
    assert found["ac1"] == pytest.approx(ac1(counts(np.array(pairs).T + 1, 3)))
    precision, recall = coefficients.precision_recall(table)
    expected = agreement.against_reference(one, other, ["A", "B", "C"])
    for place, label in enumerate("ABC"):
        assert precision[place] == pytest.approx(expected[f"precision_{label}"], nan_ok=True)
        assert recall[place] == pytest.approx(expected[f"recall_{label}"], nan_ok=True)


def test_an_interval_is_what_drawing_items_one_by_one_gives():
    rng = np.random.default_rng(3)
    items = np.repeat(np.arange(20), 4)
    table = counts(rng.integers(0, 4, size=(3, 80)), 3)
    measures = {
        "alpha": (coefficients.coincidences(table), coefficients.krippendorff_alpha, alpha),
        "ac1": (coefficients.agreed_and_spread(table), coefficients.gwet_ac1, ac1),
    }
    for terms, vectorised, one_by_one in measures.values():
        draws = []
        for _ in range(2000):
            rows = np.concatenate([np.flatnonzero(items == i) for i in rng.integers(0, 20, 20)])
            draws.append(one_by_one(table[rows]))
        _, drawn = coefficients.resample(terms, items)
        found = coefficients.interval(vectorised(drawn))
        assert found == pytest.approx(np.quantile(draws, [0.025, 0.975]), abs=0.025)


LABELLED = pd.DataFrame(
    {
        "model": "m",
        "item_id": ["T1-01", "T1-02"] * 3,
        "type": "T1",
        "phrasing": ["P0"] * 4 + ["P1"] * 2,
        "label_x": ["A", "A", "B", "C", "B", None],
        "label_y": ["A", "B", "B", "C", "A", "A"],
        "label": ["A", "C", "B", "C", "C", None],
    }
)


def test_agreement_by_hand():
    whole = agreement.pairwise(LABELLED, ["x", "y"], ["model"]).iloc[0]
    # five sentences with both labels: agree on 3; x has A2 B2 C1, y has A2 B2 C1: p_e = 9/25
    assert (whole["n"], whole["agreement"]) == (5, 0.6)
    assert whole["kappa"] == pytest.approx((0.6 - 0.36) / (1 - 0.36))
    by = agreement.pairwise(LABELLED, ["x", "y"], ["model", "phrasing"]).set_index("phrasing")
    assert by.loc["P0", "agreement"] == 0.75 and by.loc["P1", "kappa"] == 0
    disputed = agreement.disputed(LABELLED, ["x", "y"])
    assert disputed.tolist() == [False, True, False, False, True, False]
    shares = agreement.shares(LABELLED, "label", ["A", "B", "C"], ["phrasing"])
    assert shares.loc["P0"].tolist() == [0.25, 0.25, 0.5, 0]
    assert shares.loc["P1"].tolist() == [0, 0, 0.5, 0.5]


def test_kappa_where_it_is_undefined():
    assert math.isnan(agreement.cohen_kappa(["A", "A"], ["A", "A"]))
    assert math.isnan(agreement.cohen_kappa([], []))
    assert agreement.cohen_kappa(["A", "B"], ["A", "B"]) == 1


def test_against_reference_by_hand():
    scores = agreement.against_reference(list("AABBC"), list("ABBBA"), ["A", "B", "C"])
    assert scores["agreement"] == 0.6
    assert (scores["precision_A"], scores["recall_A"]) == (0.5, 0.5)
    assert scores["precision_B"] == pytest.approx(2 / 3) and scores["recall_B"] == 1
    assert math.isnan(scores["precision_C"]) and scores["recall_C"] == 0
    # p_e = (2·2 + 2·3 + 1·0) / 25
    assert scores["kappa"] == pytest.approx((0.6 - 0.4) / (1 - 0.4))


def labelled(seed=1, models=("m",), judges="xyz", sentences=240):
    """Sentences of six items and two phrasings, and what judges that err make of them."""
    rng = np.random.default_rng(seed)
    true = rng.choice(list("ABC"), sentences)
    frame = pd.DataFrame({"reference": true, "sample": 0})
    frame["model"] = np.resize(models, sentences)
    place = np.arange(sentences) // len(models) % 6
    frame["type"] = [f"T{1 + i % 2}" for i in place]
    frame["item_id"] = [f"T{1 + i % 2}-{i:02d}" for i in place]
    frame["phrasing"] = rng.choice(["P0", "P2"], sentences)
    for name in judges:
        other = rng.choice(["A", "B", "C"], sentences)
        frame[f"label_{name}"] = np.where(rng.random(sentences) < 0.7, true, other)
    columns = frame[[f"label_{name}" for name in judges]]
    alike = columns.nunique(axis=1) == 1
    return frame.assign(label=columns.iloc[:, 0].where(alike, "C"))


def test_parts_of_a_run():
    frame = labelled(models=("m", "n"))
    by_part = agreement.parts(frame)
    sizes = by_part.groupby(["model", "part"]).size().unstack()
    assert list(by_part["part"].unique()) == ["all", "T1", "T2", "P0", "P2"]
    for model in ("m", "n", agreement.ALL_MODELS):
        assert sizes.loc[model, ["T1", "T2"]].sum() == sizes.loc[model, "all"]
        assert sizes.loc[model, ["P0", "P2"]].sum() == sizes.loc[model, "all"]
    assert sizes.loc[agreement.ALL_MODELS, "all"] == len(frame)
    assert set(agreement.parts(labelled())["model"]) == {"m"}  # one model is all models


def test_panel_and_pairs_by_part():
    by_part = agreement.parts(labelled())
    by = ["model", "part"]
    panels = agreement.panel(by_part, list("xyz"), by).set_index("part")
    pairs = agreement.pairwise(by_part, list("xyz"), by)
    assert list(zip(pairs["first"], pairs["second"], strict=True))[:3] == [
        *(("x", "y"), ("x", "z"), ("y", "z"))
    ]
    light = pairs.groupby("part")[["agreement", "kappa"]].mean()
    for key in ("agreement", "kappa"):
        pd.testing.assert_series_equal(panels[key], light[key], check_like=True)
    for key in ("agreement", "kappa", "alpha", "ac1", "disputed"):
        assert (panels[f"{key}_low"] < panels[key]).all()
        assert (panels[key] < panels[f"{key}_high"]).all()
    assert panels["n"].to_dict()["all"] == 240 and (panels["missing"] == 0).all()
    assert panels.loc["T1", "disputed"] == pytest.approx(
        agreement.disputed(rows := by_part[by_part["part"] == "T1"], list("xyz")).sum() / len(rows)
    )


def test_a_judge_that_failed_leaves_the_others_agreement():
    frame = labelled()
    frame.loc[frame.index % 4 == 0, "label_z"] = None
    frame.loc[frame.index % 4 == 0, "label"] = None
    row = agreement.panel(frame, list("xyz"), ["model"]).iloc[0]
    assert (row["n"], row["missing"]) == (240, 60)
    pairs = agreement.pairwise(frame, list("xyz"), ["model"])
    assert pairs["n"].tolist() == [240, 180, 180]
    silent = frame.assign(label_z=None)
    two = agreement.panel(silent, list("xy"), ["model"]).iloc[0]
    three = agreement.panel(silent, list("xyz"), ["model"]).iloc[0]
    assert (three["alpha"], three["ac1"]) == (two["alpha"], two["ac1"])
    assert math.isnan(three["kappa"])  # a pair of it has no sentence
    assert agreement.panel(frame, ["x"], ["model"]).empty


def test_on_the_runs_own_reference_sentences():
    frame = labelled(models=("m", "n", "o"))
    frame.loc[frame["model"] == "o", "reference"] = None
    frame.loc[frame.index % 5 == 0, "label_x"] = None
    table = agreement.on_reference(frame, list("xyz")).set_index(["model", "judge"])
    assert list(table.index.unique("model")) == [agreement.ALL_MODELS, "m", "n"]
    assert list(table.index.unique("judge")) == ["x", "y", "z", "panel"]
    mine = frame[(frame["model"] == "m") & frame["label_x"].notna()]
    row = table.loc[("m", "x")]
    assert (row["n"], row["missing"]) == (len(mine), 80 - len(mine))
    expected = agreement.against_reference(mine["reference"], mine["label_x"], list("ABC"))
    assert row[list(expected)].to_dict() == pytest.approx(expected)
    bounds = agreement.kappa_interval(mine["reference"], mine["label_x"], mine["item_id"])
    assert (row["kappa_low"], row["kappa_high"]) == pytest.approx(bounds)
    assert agreement.on_reference(frame.assign(reference=None), list("xyz")).empty


def test_results_by_name():
    frame = labelled(models=("m", "n"), judges="xy")
    by_part = agreement.parts(frame)
    by = ["model", "part"]
    panels = agreement.panel(by_part, ["x", "y"], by)
    pairs = agreement.pairwise(by_part, ["x", "y"], by)
    out = agreement.results(panels, pairs, agreement.on_reference(frame, ["x", "y"]))
    row = panels[(panels["model"] == "n") & (panels["part"] == "P2")].iloc[0]
    assert out["judge.alpha_P2.n"] == row["alpha"] and out["judge.ac1_P2_low.n"] == row["ac1_low"]
    assert out["judge.kappa_between_high.m"] == out["judge.pair.kappa_high.x.y.m"]
    assert out["judge.agreement_between"] == 1 - out["judge.disputed_share"]  # of all models
    assert out["judge.reference.n.panel"] == out["judge.pair.n.x.y"] == len(frame)
    assert out["judge.reference.precision_B_low.x.m"] <= out["judge.reference.precision_B.x.m"]
    none = pd.DataFrame()
    assert agreement.results(none, none, none) == {}


def test_values_with_their_intervals_for_people():
    table = pd.DataFrame({"k": [0.5, np.nan, 1], "k_low": [0.25, np.nan, np.nan]})
    shown = agreement.compact(table.assign(k_high=[0.75, np.nan, np.nan], n=9), ["k"])
    assert shown["k"].tolist() == ["0.50 [0.25, 0.75]", "undefined", "1.00"]
    assert list(shown) == ["k", "n"]


def test_figures_show_every_part():
    by_part = agreement.parts(labelled(models=("m", "n")))
    panels = agreement.panel(by_part, list("xyz"), ["model", "part"])
    figure = agreement_figures.intervals(panels)
    assert [axis.get_title(loc="left") for axis in figure.axes] == [agreement.ALL_MODELS, "m", "n"]
    assert [label.get_text() for label in figure.axes[-1].get_xticklabels()] == [
        *("all", "T1", "T2", "P0", "P2")
    ]
    pooled = by_part[by_part["model"] == agreement.ALL_MODELS]
    axes = [axis for axis in agreement_figures.confusions(pooled, "x", "y").axes if axis.axison]
    assert [axis.get_title() for axis in axes] == ["T1", "T2", "all", "P0", "P2"]
    for axis in axes:
        assert sum(float(cell.get_text()) for cell in axis.texts) == pytest.approx(100, abs=4.5)
