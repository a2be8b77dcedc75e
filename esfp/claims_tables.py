"""Checks of printed cells: can inputs with three decimals give what is printed?

Every public function here is a check that paper/claims.yaml may name; it takes the evidence and
returns one or more readings.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from esfp.claims_evidence import COUNTS, MEASURES, Evidence, Reading, half
from esfp.equations import CPC_BONUS, WEIGHTS
from esfp.published import recompute
from esfp.rankings import HALF_UNIT, TINY


def cell(evidence: Evidence, column: str, model: str) -> list[Reading]:
    """A released cell itself, with its rounding box."""
    value, reach = evidence.cell(model, column), half(column)
    return [Reading(value, value - reach, value + reach)]


def row(evidence: Evidence, model: str, columns: list[str]) -> list[Reading]:
    """A released row as it would be printed."""
    cells = [evidence.cell(model, name) for name in columns]
    shown = [f"{v:.0f}" if n in COUNTS else f"{v:.3f}" for n, v in zip(columns, cells, strict=True)]
    return [Reading(" ".join(shown))]


def follows(evidence: Evidence, quantity: str, source: str) -> list[Reading]:
    """Whether all printed cells of a column follow from the others (Eqs. 4 and 6).

    Parameters
    ----------
    quantity
        psi_scaled, flex, esfp or rank.
    source
        Where PSI comes from: psi_mean (Table 7, through the ceiling) or psi_scaled (Table 5).
    """
    rows = recompute(evidence.table.reset_index(drop=True), evidence.printed)
    rows = rows[(rows["quantity"] == quantity) & (rows["psi_from"] == source)]
    each = rows["verdict"].value_counts()
    wrong = int(each.get("differs", 0))
    text = f"{each.get('as printed', 0)} of {len(rows)} to the digit, {wrong} out of reach"
    worst = rows["difference"].abs().max()
    to_digit = int(each.get("as printed", 0)) == len(rows)
    return [Reading(f"{text}, largest difference {worst:.4f}", true=to_digit, possible=not wrong)]


def composed(evidence: Evidence) -> list[Reading]:
    """Whether flex (Table 7) and kappa (Table 5) give every printed score (Eq. 6)."""
    flex, kappa = evidence.column("flex"), evidence.column("cpc_kappa")
    esfp = evidence.column("esfp")
    value = flex * (1 + CPC_BONUS * kappa)
    low = (flex - HALF_UNIT) * (1 + CPC_BONUS * (kappa - HALF_UNIT))
    high = (flex + HALF_UNIT) * (1 + CPC_BONUS * (kappa + HALF_UNIT))
    exact = np.abs(value - esfp) <= HALF_UNIT + TINY
    reached = (low - HALF_UNIT - TINY <= esfp) & (esfp <= high + HALF_UNIT + TINY)
    text = f"{exact.sum()} of {len(esfp)} to the digit, {(~reached).sum()} out of reach"
    return [Reading(text, true=bool(exact.all()), possible=bool(reached.all()))]


def consistent(evidence: Evidence) -> list[Reading]:
    """Whether one set of unrounded PSI means and one ceiling give all printed PSI at once.

    A linear programme: every mean within its box, the ceiling their 95th percentile and within
    its own, and each scaled value's box times the ceiling around the mean.
    """
    mean, scaled = evidence.column("psi_mean"), evidence.column("psi_scaled")
    n = len(mean)
    order = np.argsort(mean, kind="stable")
    position = 0.95 * (n - 1)
    below, share = order[int(position)], position - int(position)
    above = order[min(int(position) + 1, n - 1)]
    weights = np.zeros(n + 1)  # the means, then the ceiling
    weights[below] += 1 - share
    weights[above] += share
    weights[n] = -1
    rows = []
    for i in range(n):
        upper, lower = np.zeros(n + 1), np.zeros(n + 1)
        upper[i], upper[n] = 1, -(scaled[i] + HALF_UNIT)
        lower[i], lower[n] = -1, scaled[i] - HALF_UNIT
        rows += [lower] if scaled[i] >= 1 else [upper, lower]  # a clipped one may lie higher
    printed = float(evidence.printed["psi_ceiling"]["value"])
    boxes = [(v - HALF_UNIT, v + HALF_UNIT) for v in (*mean, printed)]
    limits = np.zeros(len(rows))
    ends = [
        linprog(sign * np.eye(n + 1)[n], rows, limits, [weights], [0.0], boxes) for sign in (1, -1)
    ]
    if not all(end.success for end in ends):
        return [Reading("no such set exists")]
    low, high = (end.x[n] for end in ends)
    return [Reading(f"with a ceiling from {low:.4f} to {high:.4f}", true=True)]


def ceiling(evidence: Evidence) -> list[Reading]:
    """The 95th percentile of the cohort's mean PSI (Eq. 4)."""
    psi = evidence.column("psi_mean")
    ends = [float(np.percentile(psi + step, 95)) for step in (-HALF_UNIT, 0, HALF_UNIT)]
    return [Reading(ends[1], ends[0], ends[2], digits=4)]


def extreme(evidence: Evidence, column: str, of: str) -> list[Reading]:
    """The least or the largest value of a column, or the ratio of the two."""
    values, reach = evidence.column(column), half(column)
    least, largest = values.min(), values.max()
    if of == "ratio":
        low, high = (largest - reach) / (least + reach), (largest + reach) / (least - reach)
        return [Reading(largest / least, low, high, digits=2)]
    value = {"min": least, "max": largest}[of]
    if column in COUNTS:
        return [Reading(int(value))]
    return [Reading(value, value - reach, value + reach)]


def holds_at(evidence: Evidence, column: str, of: str) -> list[Reading]:
    """Name of the model with the least or the largest value; all of them where it is tied."""
    values = evidence.column(column)
    end = {"min": values.min(), "max": values.max()}[of]
    return [Reading(" and ".join(evidence.table.index[values == end]))]


def positive(evidence: Evidence, columns: list[str]) -> list[Reading]:
    """Whether every cell of the columns is above zero."""
    least = {name: evidence.column(name).min() for name in columns}
    text = ", ".join(f"least {name} {value:.3f}" for name, value in least.items())
    return [Reading(text, true=min(least.values()) > HALF_UNIT)]


def restated(evidence: Evidence) -> list[Reading]:
    """Whether Table 7 says nothing that Table 5 implies: flex is its score over its multiplier."""
    implied = evidence.column("esfp") / (1 + CPC_BONUS * np.fmax(evidence.column("cpc_kappa"), 0))
    parts = sum(w * evidence.column(name) for w, name in zip(WEIGHTS, MEASURES[:3], strict=True))
    gap = [np.abs(way - evidence.column("flex")).max() for way in (implied, parts)]
    text = f"flex follows from Table 5 to {max(gap):.4f}"
    return [Reading(text, true=max(gap) > 4 * HALF_UNIT)]


def needed(evidence: Evidence) -> list[Reading]:
    """Whether the score needs Table 7: it is computed from Table 5 alone."""
    (reading,) = follows(evidence, "esfp", "psi_scaled")
    return [Reading(f"from Table 5 alone: {reading}", true=not reading.possible)]


def against_mean(evidence: Evidence, column: str, model: str) -> list[Reading]:
    """Whether a model's cell lies below the mean of the column."""
    value, mean = evidence.cell(model, column), evidence.column(column).mean()
    return [Reading(f"{value:.3f}, mean {mean:.3f}", true=value < mean)]


def moves_much(evidence: Evidence, column: str, model: str) -> list[Reading]:
    """Whether a value is large: by its place, and by a standard deviation above the mean."""
    values = evidence.column(column)
    own = evidence.cell(model, column)
    z = (own - values.mean()) / values.std(ddof=1)
    rank = int((values > own).sum()) + 1
    return [
        Reading(f"{rank} of {len(values)}", true=rank <= 2, label="place"),
        Reading(f"{z:+.1f} standard deviations", true=z >= 1, label="from the cohort's mean"),
    ]


def narrower(evidence: Evidence, column: str, than: list[str]) -> list[Reading]:
    """Whether a column varies less between models than others do (standard deviation)."""
    spread = {name: evidence.column(name).std(ddof=1) for name in (column, *than)}
    text = ", ".join(f"{name} {value:.3f}" for name, value in spread.items())
    return [Reading(text, true=all(spread[column] < spread[name] for name in than))]
