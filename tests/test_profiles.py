"""Tables 12 to 16 and 20 to 24, Figures 9, 10 and 13 to 15, for cohorts of every kind."""

import numpy as np
import pandas as pd
import pytest

from esfp import (
    bands,
    bootstrap,
    by_type,
    cells,
    compliance,
    equations,
    item_analysis,
    mixed,
    multiverse,
    profiles,
    rigid,
    robustness,
    score,
    style,
    typology,
)
from tests.test_bootstrap import random_items
from tests.test_mixed import simulated

pytestmark = pytest.mark.filterwarnings("error")
NAMES = ["costs $5_per_$^2", "a|b_\\c", "plain", *(f"vendor/Model_with_a_long-name_{i}-70B-it-$"
         for i in range(6))]  # fmt: skip
GROUPS = {"licensed": ["T1", "T2"], "open": ["T3"], "control": ["T6"]}
VALUES = ["delta_ar", "delta_scd", "psi_mean", "cpc_kappa"]
COHORTS = [(1, 0), (2, 0), (3, 1), (9, 2), (1, 1)]  # models, and how many of them lack a score


@pytest.fixture(params=COHORTS, ids=lambda n: f"{n[0]}-models-{n[1]}-without")
def cohort(request):
    """Names, items of four types; the last models have no stance, no AR and no PSI."""
    count, without = request.param
    names = NAMES[:count]
    items = random_items(16, names, missing=0.05)
    items["type"] = np.tile(np.resize(["T1", "T2", "T3", "T6"], 16), count)
    lost = items["model"].isin(names[count - without :])
    measured = [name for name in items if name[:3] in ("ar_", "scd", "psi", "del")]
    items.loc[lost, measured] = np.nan
    items.loc[lost, "cpc_status"] = "missing_stance"
    return names, items, count - without


def forms_of(items):
    """Forms, models, types and draws."""
    forms, models = bootstrap.linear_forms(items)
    types = items["type"].to_numpy()[: len(forms)]
    return forms, models, types, by_type.stratified(types, 40, 1)


def written(table, rows, folder):
    """Write all three formats and count the rows and columns of the Markdown."""
    shown = cells.write(table, folder, "table")
    lines = shown.splitlines()
    assert len(lines) == rows + 2
    assert "nan" not in shown and "NaN" not in shown
    assert (folder / "table.tex").read_text().count(r" \\") == rows + 1
    assert len(pd.read_csv(folder / "table.csv")) == rows
    return shown


def drawn(figure):
    """Lay a figure out: nothing lies outside its page. Returns the texts of its legends."""
    style.settle(figure)
    (width, height), box = figure.get_size_inches(), figure.get_tightbbox()
    assert box.x0 > -0.01 and box.y0 > -0.01 and box.x1 < width + 0.01 and box.y1 < height + 0.01
    return [
        text.get_text() for legend in figure.findobj(style.matplotlib.legend.Legend)
        for text in legend.get_texts()
    ]  # fmt: skip


def test_types(cohort, tmp_path):
    names, items, scored = cohort
    forms, models, types, weights = forms_of(items)
    frame = by_type.table(forms, models, types, weights, 0.95)
    shown = written(profiles.types(frame), 4 * scored, tmp_path)  # nothing to show: no row
    if scored:
        row = frame[(frame["measure"] == "delta_scd")].iloc[0]
        assert cells.number(row["value"], 3) in shown
        assert f"{cells.interval(row['ci_low'], row['ci_high'])[0][1:-1]}" in shown
    legend = drawn(profiles.fig9_types(frame, names))
    assert len(legend) == len(names)


def test_licensed(cohort, tmp_path):
    names, items, scored = cohort
    forms, models, types, weights = forms_of(items)
    rules = ("p95", equations.WEIGHTS, equations.CPC_BONUS)
    shifts = by_type.licensed(forms, models, types, weights, GROUPS, 0.95, *rules)
    alarms = by_type.alarms(shifts, 0.1)
    table = profiles.licensed(shifts, alarms)
    written(table, len(names), tmp_path)
    assert table.frame["model"].tolist() == names
    net = table.frame["delta_scd_licensed_value"] - table.frame["delta_scd_control_value"]
    np.testing.assert_allclose(table.frame["net_shift_value"], net)
    assert (table.frame["alarm"] == "unknown").sum() == len(names) - scored


def test_typology(cohort, tmp_path):
    names, items, scored = cohort
    forms, models, _, weights = forms_of(items)
    frame = typology.table(forms, models, weights, 0.4, 0.95, items)
    shown = written(profiles.typology(frame), len(names), tmp_path)
    for cell in frame["cell"]:
        assert cell in shown
    figure = profiles.fig10_typology(frame, 0.4)
    assert len(figure.axes[0].patches) == scored
    assert len(drawn(figure)) == scored


def test_bands(cohort, tmp_path):
    names, items, _ = cohort
    profile = {"T1": {"minus": [0, 0.5], "plus": [0.5, 1]}}
    frame = bands.table(items, {"opens_up": profile, "other": profile})
    shown = written(profiles.bands(frame), 2 * len(names), tmp_path)
    assert "opens up" in shown


def test_compliance_and_readings(cohort, tmp_path):
    names, items, scored = cohort
    rows = [(name, p, "ok", v) for name in names for p, v in [("P1", ["markdown"]), ("P2", None)]]
    responses = pd.DataFrame(rows, columns="model phrasing status violations".split())
    shown = written(profiles.compliance(compliance.shares(responses)), 3 * len(names), tmp_path)
    assert "50%" in shown and "100%" in shown
    table = score.per_model(items)
    answers = pd.Series(2, index=names)
    frame = compliance.readings({"one": table, "two": table}, {"one": answers, "two": answers})
    written(profiles.readings(frame), 2 * len(names), tmp_path)
    assert frame["esfp"].notna().sum() == 2 * scored


def test_rigid_models(cohort, tmp_path):
    names, items, _ = cohort
    densities = items.groupby("model")[["scd_minus", "scd_plus"]].mean()
    table = score.per_model(items).join(densities, on="model")
    scored = equations.leaderboard(table, 0.2)
    frame = rigid.table({kind: [scored, scored] for kind in rigid.KINDS})
    frame["cell"] = typology.cell(frame["scd_minus"], frame["scd_plus"], 0.4)
    table = profiles.rigid_models(frame)
    written(table, len(rigid.KINDS), tmp_path)
    mean = scored["delta_scd"].mean()
    np.testing.assert_allclose(table.frame["delta_scd"], mean)
    own = frame[frame["kind"] == "reporter"]["cell"]
    for shown in table.frame["cells"]:
        counted = dict(part.rsplit(" ", 1) for part in shown.split(", ") if part)
        assert {cell: int(n) for cell, n in counted.items()} == own[
            own != ""
        ].value_counts().to_dict()


def test_mixed(tmp_path):
    table = simulated(8, 6, NAMES[:2])
    table.loc[table["model"] == NAMES[1], "stance"] = 1.0
    frame = mixed.contrasts(table, ["P1", "P2"])
    frame.loc[0, ["p", "p_holm"]] = [1e-9, 0.5]
    shown = written(profiles.mixed(frame), 6, tmp_path)
    assert r"\< 0.001" in shown and "0.500" in shown


def specifications_of(items):
    """Specifications in two dimensions of choices, and the models with a score, best first."""
    table = score.per_model(items)[["model", *VALUES]]
    parts = pd.concat(
        [table.assign(panel=panel, answers="all") for panel in ("three judges", "one judge")]
    )
    parts.loc[parts["panel"] == "one judge", "delta_scd"] *= 0.5
    whole = multiverse.score(parts, multiverse.simplex(0.25), 0.25)
    ceiling = equations.psi_ceiling(table["psi_mean"])
    board = equations.leaderboard(table, ceiling).dropna(subset="esfp")
    return whole, board["model"].tolist(), table


def test_multiverse(cohort, tmp_path):
    names, items, scored = cohort
    whole, order, parts = specifications_of(items)
    assert len(order) == scored
    kept = multiverse.pairs(whole, order)
    table = robustness.multiverse(multiverse.firsts(whole), order, kept)
    written(table, len(names), tmp_path)
    assert table.frame["model"].tolist()[:scored] == order
    if scored > 1:
        pair = kept[(kept["first"] == order[0]) & (kept["second"] == order[1])]
        assert table.frame["above_next"].iloc[0] == pair["kept"].item()
    assert table.frame["above_next"].iloc[max(scored - 1, 0) :].isna().all()
    if order:
        legend = drawn(robustness.fig13_specifications(whole, order))
        assert len(legend) == scored
    leaders = multiverse.leaders(parts, 0.1, 0.25)
    legend = drawn(robustness.fig14_weights(leaders, names))
    first = set(leaders["model"]) - {""}
    assert len(legend) == len(first) + (leaders["model"] == "").any() + 1


def test_items(cohort):
    _, items, scored = cohort
    analysed = item_analysis.table(items, 30, 1)
    values, *_ = item_analysis.matrix(items)
    assert analysed.empty == (scored < 3)
    if len(analysed):
        chance = item_analysis.null(values, 30, 1)
        legend = drawn(robustness.fig15_items_null(analysed, chance))
        assert legend == ["shuffled between models", "observed"]


def test_shorter(tmp_path):
    frame = pd.DataFrame([(16, 0, 1, 0, 0), (8, np.nan, 0.5, np.nan, 0.1)],
                         columns=item_analysis.COLUMNS)  # fmt: skip
    assert cells.DASH in written(robustness.shorter(frame), 2, tmp_path)
