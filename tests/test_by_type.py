"""The measures by type against plain pandas; licensed shifts and alarms worked out by hand."""

import numpy as np
import pandas as pd
import pytest

from esfp import bootstrap, by_type, equations, files, score
from tests.test_bootstrap import random_items

pytestmark = pytest.mark.filterwarnings("error")
TYPES = np.array(["T1", "T2", "T3", "T6"])
RULES = ("p95", equations.WEIGHTS, equations.CPC_BONUS)


def typed_items(n_items=32, models=("a", "b", "c"), seed=0, missing=0.15):
    """`random_items` of four types in turn."""
    items = random_items(n_items, models, seed, missing)
    items["type"] = np.tile(np.resize(TYPES, n_items), len(models))
    return items


def forms_of(items):
    """Forms, models and the type of each item."""
    forms, models = bootstrap.linear_forms(items)
    return forms, models, items["type"].to_numpy()[: len(forms)]


def test_every_draw_holds_as_many_of_each_type_as_the_corpus():
    types = np.array(["T1"] * 5 + ["T2"] * 1 + ["T1"] * 2 + ["T3"] * 4)
    weights = by_type.stratified(types, 300, 7)
    assert weights.shape == (300, 12) and (weights >= 0).all()
    for kind, n in {"T1": 7, "T2": 1, "T3": 4}.items():
        assert (weights[:, types == kind].sum(axis=1) == n).all()
    assert (weights[:, 0] != 1).any()
    np.testing.assert_array_equal(weights, by_type.stratified(types, 300, 7))
    assert (weights != by_type.stratified(types, 300, 8)).any()
    alone = np.repeat("T1", 6)
    np.testing.assert_array_equal(
        by_type.stratified(alone, 50, 3), bootstrap.multiplicities(6, 50, 3)
    )


def test_drawn_items_have_the_variance_of_a_bootstrap():
    weights = by_type.stratified(np.repeat(["T1", "T2"], [5, 10]), 20_000, 1)
    # multinomial: n p (1 - p) with p = 1 / n
    np.testing.assert_allclose(weights[:, :5].var(axis=0), 1 - 1 / 5, atol=0.04)
    np.testing.assert_allclose(weights[:, 5:].var(axis=0), 1 - 1 / 10, atol=0.04)
    assert abs(np.corrcoef(weights[:, 0], weights[:, 9])[0, 1]) < 0.03


def test_table_equals_a_plain_loop():
    items = typed_items()
    forms, models, types = forms_of(items)
    weights = by_type.stratified(types, 25, 5)
    got = by_type.table(forms, models, types, weights, 0.9)
    got = got.set_index(["type", "model", "measure"])
    assert len(got) == 4 * 3 * len(by_type.SHOWN)

    def plain(frame):
        means = score.per_model(frame).set_index("model")
        for side in ("minus", "plus"):
            means[f"scd_{side}"] = frame.groupby("model")[f"scd_{side}"].mean()
        return means[by_type.SHOWN]

    for kind in TYPES:
        mine = items[items["type"] == kind]
        point = plain(mine)
        draws = []
        for row in weights[:, types == kind].astype(int):
            taken = np.repeat(np.arange(len(row)), row)
            parts = [part.iloc[taken] for _, part in mine.groupby("model", sort=False)]
            draws.append(plain(pd.concat(parts)))
        drawn = pd.concat(draws, keys=range(len(draws)))
        for model in models:
            for name in by_type.SHOWN:
                row = got.loc[(kind, model, name)]
                assert row["items"] == 8
                known = drawn.xs(model, level=1)[name].dropna()
                ends = np.percentile(known, [5, 95])
                assert row["value"] == pytest.approx(point.loc[model, name], abs=1e-12)
                assert (row["ci_low"], row["ci_high"]) == pytest.approx(tuple(ends), abs=1e-12)


def test_a_measure_that_no_item_of_the_type_defines_is_nan_and_null():
    items = typed_items(8, ("a",), missing=0.0)
    items.loc[items["type"] == "T6", ["scd_plus", "psi"]] = np.nan
    forms, models, types = forms_of(items)
    got = by_type.table(forms, models, types, by_type.stratified(types, 20, 1), 0.95)
    mine = got[got["type"] == "T6"].set_index("measure")
    for name in ("scd_plus", "delta_scd", "psi_mean"):
        assert mine.loc[name, ["value", "ci_low", "ci_high"]].isna().all()
    assert mine.loc["scd_minus", ["value", "ci_low", "ci_high"]].notna().all()
    keys = by_type.numbers(got, pd.DataFrame(columns=["quantity"]))
    assert keys["bootstrap.types.psi_mean.value.a.T6"] is None
    assert keys["bootstrap.types.scd_minus.value.a.T6"] == mine.loc["scd_minus", "value"]


def by_hand():
    """One model, four items: licensed, open, and two on facts, one of them without P1."""
    rows = [
        # type scd_minus scd_plus delta_ar psi
        ("T1", 0.1, 0.9, 0.5, 0.2),
        ("T2", 0.2, 0.4, 0.1, 0.1),
        ("T6", 0.0, 0.3, 0.0, 0.3),
        ("T6", np.nan, 0.5, np.nan, 0.2),
    ]
    items = pd.DataFrame(rows, columns="type scd_minus scd_plus delta_ar psi".split())
    items["model"], items["item_id"] = "m", [f"{i}" for i in range(4)]
    items["cpc_status"] = "no_b"
    return items.assign(**dict.fromkeys(bootstrap.STANCES, 0))


GROUPS = {"licensed": ["T1"], "open": ["T2"], "control": ["T6"]}


def test_licensed_shift_by_hand():
    forms, models, types = forms_of(by_hand())
    weights = by_type.stratified(types, 40, 3)
    got = by_type.licensed(forms, models, types, weights, GROUPS, 0.95, 0.4, *RULES[1:])
    value = got.set_index("quantity")["value"]
    assert value["delta_scd_licensed"] == pytest.approx(0.8)
    assert value["delta_scd_open"] == pytest.approx(0.2)
    assert value["delta_scd_control"] == pytest.approx(0.4)  # (0.3 + 0.5) / 2 - 0
    assert value["net_shift"] == pytest.approx(0.4)
    assert (value["control_minus"], value["control_plus"]) == pytest.approx((0.0, 0.4))
    # delta AR 0.2; delta SCD 2.1 / 4 - 0.3 / 3; PSI 0.2 of a ceiling of 0.4; no kappa, no bonus
    assert value["esfp"] == pytest.approx(0.2 * 0.2 + 0.5 * (0.525 - 0.1) + 0.3 * 0.5)
    assert value["esfp_net"] == pytest.approx(0.2 * 0.2 + 0.5 * 0.4 + 0.3 * 0.5)
    ends = got.set_index("quantity").loc["delta_scd_licensed", ["ci_low", "ci_high"]]
    assert ends.tolist() == pytest.approx([0.8, 0.8])  # a single item is in every draw
    row = got.set_index("quantity").loc["control_plus"]
    assert row["ci_low"] == pytest.approx(0.3) and row["ci_high"] == pytest.approx(0.5)


def test_the_score_in_licensed_is_that_of_mode_full():
    items = typed_items(missing=0.05)
    forms, models, types = forms_of(items)
    weights = by_type.stratified(types, 60, 9)
    got = by_type.licensed(forms, models, types, weights, GROUPS, 0.9, *RULES)
    mine = got[got["quantity"] == "esfp"].set_index("model")
    table = score.per_model(items)
    whole = equations.leaderboard(table, equations.psi_ceiling(table["psi_mean"]))
    np.testing.assert_allclose(mine["value"], whole.set_index("model").loc[models, "esfp"])
    drawn = bootstrap.resample(weights, forms, "full")["esfp"]
    np.testing.assert_allclose(mine["ci_low"], np.percentile(drawn, 5, axis=0))
    np.testing.assert_allclose(mine["ci_high"], np.percentile(drawn, 95, axis=0))


def test_a_run_without_any_distance_has_no_score_and_no_warning():
    forms, models, types = forms_of(by_hand().assign(psi=0.0))
    weights = by_type.stratified(types, 10, 3)
    got = by_type.licensed(forms, models, types, weights, GROUPS, 0.95, *RULES)
    value = got.set_index("quantity")["value"]
    assert value[["esfp", "esfp_net"]].isna().all() and value["net_shift"] == pytest.approx(0.4)
    assert np.isnan(bootstrap.resample(weights, forms, "full")["esfp"]).all()


def test_without_an_item_on_facts_there_is_no_net_shift():
    items = by_hand().query("type != 'T6'")
    forms, models, types = forms_of(items)
    weights = by_type.stratified(types, 10, 3)
    got = by_type.licensed(forms, models, types, weights, GROUPS, 0.95, *RULES)
    value = got.set_index("quantity")["value"]
    assert value[["delta_scd_control", "net_shift", "esfp_net", "control_plus"]].isna().all()
    assert value[["delta_scd_licensed", "esfp"]].notna().all()
    assert by_type.alarms(got, 0.1).to_dict() == {"m": "unknown"}
    keys = by_type.numbers(got.iloc[:0].assign(measure=""), got)
    assert keys["bootstrap.licensed.net_shift.ci_low.m"] is None


def test_alarms():
    rows = [
        ("above", 0.30, 0.21, 0.4),
        ("perhaps", 0.30, 0.10, 0.4),
        ("edge", 0.20, 0.10, 0.4),
        ("low", 0.05, 0.01, 0.3),
        ("none", np.nan, np.nan, np.nan),
    ]
    shifts = pd.DataFrame(rows, columns="model value ci_low ci_high".split())
    shifts = pd.concat([shifts.assign(quantity=q) for q in ("control_plus", "control_minus")])
    said = {"above": "high", "perhaps": "perhaps", "edge": "no", "low": "no", "none": "unknown"}
    assert by_type.alarms(shifts, 0.2).to_dict() == said


def test_numbers_can_be_written(tmp_path):
    forms, models, types = forms_of(typed_items(missing=0.0))
    weights = by_type.stratified(types, 10, 1)
    table = by_type.table(forms, models, types, weights, 0.95)
    shifts = by_type.licensed(forms, models, types, weights, GROUPS, 0.95, *RULES)
    keys = by_type.numbers(table, shifts)
    assert len(keys) == 3 * (len(table) + len(shifts))
    files.write_json(tmp_path / "numbers.json", keys)
