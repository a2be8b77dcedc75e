"""Checks of scoring rules: those of Table 6, those it leaves out, all weights.

Every public function here is a check that paper/claims.yaml may name; it takes the evidence and
returns one or more readings.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from esfp.claims_evidence import MEASURES, Evidence, Reading
from esfp.equations import CPC_BONUS, WEIGHTS, composite
from esfp.rankings import RULES

COMPOSITE = [rule for rule in RULES if not rule.endswith("_alone")]
GRID = 50  # steps along each weight


def _order(scores, models: list[str]) -> list[str]:
    return [models[i] for i in np.argsort(-np.asarray(scores), kind="stable")]


def _scores(evidence: Evidence, weights, bonus=CPC_BONUS, scaled=None) -> np.ndarray:
    ar, scd, psi, kappa = (evidence.column(name) for name in MEASURES)
    return composite(ar, scd, psi if scaled is None else scaled, kappa, weights, bonus)[1]


def tau(evidence: Evidence, rule: str) -> list[Reading]:
    """Kendall's tau of a rule of Table 6 with the published ranking, ties kept and broken."""
    row = evidence.rules.loc[rule]
    if row["tau_low"] == row["tau_high"]:
        return [Reading(row["tau"])]
    return [
        Reading(row["tau"], label="tie kept"),
        Reading(row["tau_low"], label="broken one way"),
        Reading(row["tau_high"], label="the other way"),
    ]


def leads(evidence: Evidence, rule: str) -> list[Reading]:
    """The model that a rule of Table 6 puts first."""
    return [Reading(evidence.rules.loc[rule, "rank1"])]


def least_tau(evidence: Evidence) -> list[Reading]:
    """Least tau of the rules that combine measures: those of Table 6, delta SCD alone, one more.

    The one more is the even mix of the two contrast metrics, which Table 6 does not have.
    """
    table = evidence.rules["tau"]
    even = stats.kendalltau(_scores(evidence, (0.5, 0.5, 0.0)), evidence.column("esfp")).statistic
    return [
        Reading(table[COMPOSITE].min(), label="composite rules of Table 6"),
        Reading(min(table[COMPOSITE].min(), table["scd_alone"]), label="with δSCD alone"),
        Reading(float(even), label="δAR and δSCD in equal parts, not in Table 6"),
    ]


def kept(evidence: Evidence, part: str, rules: str = "all") -> list[Reading]:
    """Whether rules keep the published top four (top4) or the order of the last two (bottom2).

    Parameters
    ----------
    rules
        composite: those that combine measures; all: also the three that take one measure alone.
    """
    same = evidence.rules[f"{part}_same"]
    readings = [Reading(*_lost(same[COMPOSITE]), label="rules that combine measures")]
    if rules == "all":
        readings.append(Reading(*_lost(same), label="all rules of Table 6"))
    return readings


def _lost(same: pd.Series) -> tuple:
    lost = same.index[~same.astype(bool)].tolist()
    text = f"lost under {', '.join(lost)}" if lost else "kept under all"
    return text, None, None, not lost


def swaps(evidence: Evidence, ahead: str, behind: str, more_than: int) -> list[Reading]:
    """Whether more than so many rules of Table 6 turn the published order of two models round."""
    turned = []
    for rule, (weights, ceiling, cpc) in RULES.items():
        psi = evidence.column("psi_mean")
        scaled = psi / psi.max() if ceiling == "max" else None
        scores = _scores(evidence, weights, CPC_BONUS if cpc == "on" else 0.0, scaled)
        by_model = dict(zip(evidence.models, scores, strict=True))
        turned += [rule] if by_model[behind] > by_model[ahead] else []
    text = f"{len(turned)} of {len(RULES)}: {', '.join(turned)}"
    return [Reading(text, true=len(turned) > more_than)]


def leaders(evidence: Evidence) -> list[Reading]:
    """Whether the first place changes with the weights: composite rules, one measure alone."""
    first = evidence.rules["rank1"]
    combined = sorted(set(first[COMPOSITE]))
    every = sorted(set(first))
    return [
        Reading(", ".join(every), true=len(every) > 1, label="all rules of Table 6"),
        Reading(", ".join(combined), true=len(combined) > 1, label="rules that combine measures"),
    ]


def left_out(evidence: Evidence, model: str) -> list[Reading]:
    """Whether a model stays first when each measure is left out in turn, the rest in proportion."""
    readings = []
    for measure in MEASURES[:3]:
        weights = [0.0 if m == measure else w for m, w in zip(MEASURES, WEIGHTS, strict=False)]
        scores = _scores(evidence, np.array(weights) / sum(weights))
        order = _order(scores, evidence.models)
        tau = stats.kendalltau(scores, evidence.column("esfp")).statistic
        text = f"{order[0]} first, τ = {tau:.3f}"
        readings.append(Reading(text, true=order[0] == model, label=f"{measure} left out"))
    return readings


def dropping_keeps_order(evidence: Evidence, measure: str, steps: list[float]) -> list[Reading]:
    """Whether the ranking stays when a measure is left out, or changed for one model by a step."""
    weights = [0.0 if m == measure else w for m, w in zip(MEASURES, WEIGHTS, strict=False)]
    scores = _scores(evidence, WEIGHTS)
    published = _order(scores, evidence.models)
    found = _order(_scores(evidence, weights), evidence.models)
    bonus = 1 + CPC_BONUS * evidence.column("cpc_kappa")
    slope = WEIGHTS[MEASURES.index(measure)] * bonus
    same = found == published
    text = "same order" if same else "another order"
    readings = [Reading(text, true=same, label=f"{measure} left out")]
    for step in steps:
        turned = sum(
            _order(scores + sign * step * slope * (np.arange(len(scores)) == i), evidence.models)
            != published
            for i in range(len(scores))
            for sign in (-1, 1)
        )
        text = f"{turned} of {2 * len(scores)} such changes reorder models"
        readings.append(Reading(text, true=not turned, label=f"one {measure} off by {step}"))
    return readings


def ceilings(evidence: Evidence, values: list) -> list[Reading]:
    """Whether the ranking stays under other PSI ceilings: max, or a number."""
    psi = evidence.column("psi_mean")
    published = _order(evidence.column("esfp"), evidence.models)
    readings = []
    for value in values:
        top = psi.max() if value == "max" else value
        order = _order(_scores(evidence, WEIGHTS, scaled=np.clip(psi / top, 0, 1)), evidence.models)
        text = "same ranking" if order == published else f"{order[0]} first"
        readings.append(Reading(text, true=order == published, label=f"ceiling {value}"))
    return readings


def all_weights(evidence: Evidence, part: str) -> list[Reading]:
    """Whether weights keep the top four, or the third model in the top three.

    First the composite rules of Table 6, then all triples of fiftieths that sum to one, CPC on.
    """
    published = _order(evidence.column("esfp"), evidence.models)

    def kept(weights, bonus=CPC_BONUS) -> bool:
        order = _order(_scores(evidence, weights, bonus), evidence.models)
        if part == "top4":
            return set(order[:4]) == set(published[:4])
        return published[2] in order[:3]

    tried = [kept(RULES[rule][0], CPC_BONUS if RULES[rule][2] == "on" else 0) for rule in COMPOSITE]
    grid = [(i, j, GRID - i - j) for i in range(GRID + 1) for j in range(GRID + 1 - i)]
    share = float(np.mean([kept(np.array(weights) / GRID) for weights in grid]))
    return [
        Reading(f"{sum(tried)} of {len(tried)}", true=all(tried), label="rules of Table 6"),
        Reading(f"{share:.1%}", true=share == 1, label="share of all weights"),
    ]


def variance_share(evidence: Evidence, measure: str) -> list[Reading]:
    """Whether a measure's weighted part carries most of the variance of flex over the models."""
    parts = {m: w * evidence.column(m) for m, w in zip(MEASURES, WEIGHTS, strict=False)}
    flex = sum(parts.values())
    share = {m: np.cov(part, flex)[0, 1] / flex.var(ddof=1) for m, part in parts.items()}
    text = ", ".join(f"{name} {value:.0%}" for name, value in share.items())
    return [Reading(text, true=max(share, key=share.get) == measure)]


def decides_first(evidence: Evidence, measure: str) -> list[Reading]:
    """Whether a measure gives the leader no more than the others do, against the next two."""
    i, *others = np.argsort(-evidence.column("esfp"))[:3]
    parts = {m: w * evidence.column(m) for m, w in zip(MEASURES, WEIGHTS, strict=False)}
    ahead = {m: min(part[i] - part[j] for j in others) for m, part in parts.items()}
    text = ", ".join(f"{name} {value:+.4f}" for name, value in ahead.items())
    return [Reading(f"lead over the next two: {text}", true=ahead[measure] <= 0)]


def regenerated(evidence: Evidence) -> list[Reading]:
    """Whether the released columns give every tau of Table 6: with a tie broken, and as it is."""
    verdicts = evidence.rules["verdict"]
    exact = int((verdicts == "as printed").sum())
    broken = int((verdicts == "as printed with a tie broken").sum())
    text = f"of {len(verdicts)}"
    return [
        Reading(
            f"{exact + broken} {text}",
            true=exact + broken == len(verdicts),
            label="tie broken as needed",
        ),
        Reading(f"{exact} {text}", true=exact == len(verdicts), label="tie kept"),
    ]
