"""Checks of rank correlations over the models, with ties kept and broken.

Every public function here is a check that paper/claims.yaml may name; it takes the evidence and
returns one or more readings.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import stats

from esfp.claims_evidence import MEASURES, Evidence, Reading
from esfp.claims_rules import variance_share


def rho(evidence: Evidence, a: str, b: str) -> list[Reading]:
    """Spearman's rho over the models: ties at mid-rank, and broken both ways."""
    row = evidence.pair(a, b)
    if row["rho_low"] == row["rho_high"]:
        return [Reading(row["rho"])]
    return [
        Reading(row["rho"], label="tie kept"),
        Reading(row["rho_low"], label="broken one way"),
        Reading(row["rho_high"], label="the other way"),
    ]


def p(evidence: Evidence, a: str, b: str) -> list[Reading]:
    """Two-sided p of Spearman's rho: t approximation and all orders; ties kept and broken."""
    row = evidence.pair(a, b)
    readings = [Reading(row["p_t"], label="t approximation", digits=4)]
    if row["rho_low"] < row["rho_high"]:
        readings.append(Reading(row["p_t_low"], label="t, tie broken one way", digits=4))
        readings.append(Reading(row["p_t_high"], label="t, the other way", digits=4))
    return [*readings, Reading(row["p_exact"], label="all orders", digits=4)]


def largest_rho(evidence: Evidence, measure: str) -> list[Reading]:
    """Largest absolute rho of a measure with the other sub-metrics, ties kept and broken."""
    others = [other for other in MEASURES if other != measure]
    rows = [evidence.pair(measure, other) for other in others]
    return [
        Reading(max(abs(row[name]) for row in rows), label=label)
        for name, label in (("rho", "ties at mid-rank"), ("rho_low", "broken one way"),
                            ("rho_high", "the other way"))
    ]  # fmt: skip


def given_for_another(evidence: Evidence, a: str, b: str, meant: list[str]) -> list[Reading]:
    """A rho that is printed for one pair beside the pair that the sentence is about."""
    return [
        Reading(evidence.pair(a, b)["rho"], label=f"{a} with {b}"),
        Reading(evidence.pair(*meant)["rho"], label=" with ".join(meant)),
    ]


def one_tie_order(evidence: Evidence) -> list[Reading]:
    """Whether one order of the tied models gives every printed value that involves scaled PSI."""
    psi = evidence.table["psi_scaled"].astype(float)
    tied = psi.index[psi.duplicated(keep=False)].tolist()
    notes = [n for n in evidence.printed["correlations"] if "psi_scaled" in (n["a"], n["b"])]
    fits = []
    for higher in tied:
        broken = psi + 1e-6 * (psi.index == higher)
        pairs = []
        for note in notes:
            other = evidence.table[note["a"] if note["b"] == "psi_scaled" else note["b"]]
            value = stats.spearmanr(broken, other.astype(float)).statistic
            text = note["rho"]
            pairs.append(round(value, len(text.partition(".")[2])) == float(text))
        printed = float(evidence.printed["sensitivity"]["rules"]["psi_alone"]["tau"])
        pairs.append(
            round(stats.kendalltau(broken, evidence.column("esfp")).statistic, 3) == printed
        )
        fits += [higher] if all(pairs) else []
    text = f"{', '.join(fits)} above the other" if fits else "no one order"
    return [Reading(text, true=bool(fits))]


def fisher_width(evidence: Evidence, a: str, b: str, at_least: float) -> list[Reading]:
    """Whether the 95% interval of a correlation (Fisher's z) is as wide as this."""
    z, n = np.arctanh(evidence.pair(a, b)["rho"]), len(evidence.table)
    reach = stats.norm.ppf(0.975) / np.sqrt(n - 3)
    low, high = np.tanh([z - reach, z + reach])
    return [Reading(f"from {low:.2f} to {high:.2f}", true=bool(high - low >= at_least))]


def closest(evidence: Evidence, measure: str) -> list[Reading]:
    """Whether a sub-metric follows the score most closely: by rank, and in the variance of flex."""
    rho = {m: evidence.pair(m, "esfp")["rho"] for m in MEASURES}
    text = ", ".join(f"{name} {value:.3f}" for name, value in rho.items())
    first = Reading(text, true=max(rho, key=rho.get) == measure, label="ρ with the score")
    (second,) = variance_share(evidence, measure)
    return [first, replace(second, label="share of the variance of flex")]
