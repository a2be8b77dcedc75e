"""Checks of ranks, scoring rules and rank correlations.

Every public function here is a check that paper/claims.yaml may name; it takes the evidence and
returns one or more readings.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from esfp.claims_evidence import MEASURES, Evidence, Reading
from esfp.equations import CPC_BONUS, WEIGHTS, composite
from esfp.rankings import RULES, VARIABLES, correlations, sensitivity

COMPOSITE = [rule for rule in RULES if not rule.endswith("_alone")]
GRID = 50  # steps along each weight


def _order(scores, models: list[str]) -> list[str]:
    return [models[i] for i in np.argsort(-np.asarray(scores), kind="stable")]


def _scores(evidence: Evidence, weights, bonus=CPC_BONUS, scaled=None) -> np.ndarray:
    ar, scd, psi, kappa = (evidence.column(name) for name in MEASURES)
    return composite(ar, scd, psi if scaled is None else scaled, kappa, weights, bonus)[1]


# ---- places ----------------------------------------------------------------------------------


def place(evidence: Evidence, model: str, column: str) -> list[Reading]:
    """A model's place in a column, the largest first; models that tie share the better place."""
    values = evidence.column(column)
    return [Reading(int(1 + (values > evidence.cell(model, column)).sum()))]


def among(evidence: Evidence, model: str, column: str, first: int) -> list[Reading]:
    """Whether a model is among the first places of a column."""
    (reading,) = place(evidence, model, column)
    return [Reading(f"place {reading.value} of {len(evidence.table)}", true=reading.value <= first)]


def standard_above(evidence: Evidence, model: str) -> list[Reading]:
    """Number of models that are not of the reasoning type and rank above the model."""
    table = evidence.table
    above = table["esfp"] > table.loc[model, "esfp"]
    return [Reading(int((above & ~table["type"].str.contains("reasoning")).sum()))]


def below(evidence: Evidence, model: str, than: str, columns: list[str]) -> list[Reading]:
    """Whether a model lies below another in every column."""
    pairs = {c: (evidence.cell(model, c), evidence.cell(than, c)) for c in columns}
    text = ", ".join(f"{name} {a:.3f} < {b:.3f}" for name, (a, b) in pairs.items() if a < b)
    other = [name for name, (a, b) in pairs.items() if a >= b]
    return [Reading(text + (f"; not in {', '.join(other)}" if other else ""), true=not other)]


def first_names(evidence: Evidence, column: str, count: int, names: list[str]) -> list[Reading]:
    """Whether exactly the named models have the largest values of a column."""
    found = evidence.table[column].astype(float).nlargest(count).index.tolist()
    return [Reading(", ".join(found), true=set(found) == set(names))]


def below_median(evidence: Evidence, column: str, models: list[str]) -> list[Reading]:
    """Whether all the named models lie below the median of a column."""
    median = float(np.median(evidence.column(column)))
    values = [evidence.cell(model, column) for model in models]
    text = f"{', '.join(f'{value:.3f}' for value in values)}; median {median:.4f}"
    return [Reading(text, true=max(values) < median)]


def _above_medians(evidence: Evidence) -> pd.DataFrame:
    both = evidence.table[["flex", "cpc_kappa"]].astype(float)
    return both > both.median()


def quadrant(evidence: Evidence, model: str, flex: str, consistency: str) -> list[Reading]:
    """Whether a model lies where it is said to, high or low of the median of flex and of kappa."""
    there = _above_medians(evidence).loc[model]
    found = ["high" if there[name] else "low" for name in ("flex", "cpc_kappa")]
    text = f"{found[0]} flexibility, {found[1]} consistency"
    return [Reading(text, true=found == [flex, consistency])]


def high_in_both(evidence: Evidence, names: list[str]) -> list[Reading]:
    """Whether exactly the named models lie above the medians of flex and of kappa."""
    above = _above_medians(evidence)
    found = above.index[above.all(axis=1)].tolist()
    return [Reading(", ".join(found) or "none", true=set(found) == set(names))]


def alone_in_consistency(evidence: Evidence, model: str) -> list[Reading]:
    """Whether a model is alone at high kappa: by the largest gap, and by the figure's median."""
    kappa = evidence.table["cpc_kappa"].astype(float).sort_values(ascending=False)
    widest = int(np.argmax(-np.diff(kappa.to_numpy())))
    apart = kappa.index[: widest + 1].tolist()
    above = kappa.index[kappa > kappa.median()].tolist()
    return [
        Reading(", ".join(apart), true=apart == [model], label="above the widest gap"),
        Reading(", ".join(above), true=above == [model], label="above the median line"),
    ]


# ---- scoring rules ---------------------------------------------------------------------------


def _table6(evidence: Evidence) -> pd.DataFrame:
    table = evidence.table.reset_index(drop=True)
    return sensitivity(table, evidence.printed).set_index("rule")


def tau(evidence: Evidence, rule: str) -> list[Reading]:
    """Kendall's tau of a rule of Table 6 with the published ranking, ties kept and broken."""
    row = _table6(evidence).loc[rule]
    readings = [Reading(row["tau"], label="tau-b")]
    if row["tau_high"] > row["tau_low"]:
        readings += [
            Reading(row["tau_low"], label="tie broken one way"),
            Reading(row["tau_high"], label="the other way"),
        ]
    return readings


def leads(evidence: Evidence, rule: str) -> list[Reading]:
    """The model that a rule of Table 6 puts first."""
    return [Reading(_table6(evidence).loc[rule, "rank1"])]


def least_tau(evidence: Evidence) -> list[Reading]:
    """Least tau of the rules that combine measures: those of Table 6, delta SCD alone, one more.

    The one more is the even mix of the two contrast metrics, which Table 6 does not have.
    """
    table = _table6(evidence)["tau"]
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
    same = _table6(evidence)[f"{part}_same"]
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
    first = _table6(evidence)["rank1"]
    combined = sorted(set(first[COMPOSITE]))
    every = sorted(set(first))
    return [
        Reading(", ".join(every), true=len(every) > 1, label="all rules of Table 6"),
        Reading(", ".join(combined), true=len(combined) > 1, label="rules that combine measures"),
    ]


def without(evidence: Evidence, measure: str, first: str) -> list[Reading]:
    """Whether a model leads when one of the measures is left out and the rest keep their shares."""
    weights = np.array([0.0 if m == measure else w for m, w in zip(MEASURES, WEIGHTS, strict=False)])
    order = _order(_scores(evidence, weights / weights.sum()), evidence.models)
    return [Reading(" > ".join(order[:3]), true=order[0] == first)]


def dropping_keeps_order(evidence: Evidence, measure: str, steps: list[float]) -> list[Reading]:
    """Whether the ranking stays when a measure is left out, or changed for one model by a step."""
    weights = [0.0 if m == measure else w for m, w in zip(MEASURES, WEIGHTS, strict=False)]
    scores = _scores(evidence, WEIGHTS)
    published = _order(scores, evidence.models)
    found = _order(_scores(evidence, weights), evidence.models)
    bonus = 1 + CPC_BONUS * evidence.column("cpc_kappa")
    slope = WEIGHTS[MEASURES.index(measure)] * bonus
    readings = [Reading("same order" if found == published else "another order",
                        true=found == published, label=f"{measure} left out")]  # fmt: skip
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


def all_weights(evidence: Evidence, part: str, at_least: float = 1.0) -> list[Reading]:
    """Share of all weights that keep something: top4, bottom2, first or a model's top three.

    The weights are all triples of fiftieths that sum to one, CPC on.
    """
    published = _order(evidence.column("esfp"), evidence.models)
    kept_by = {
        "top4": lambda order: set(order[:4]) == set(published[:4]),
        "bottom2": lambda order: order[-2:] == published[-2:],
        "first": lambda order: order[0] == published[0],
        "third in top3": lambda order: published[2] in order[:3],
    }[part]
    grid = [(i, j, GRID - i - j) for i in range(GRID + 1) for j in range(GRID + 1 - i)]
    share = np.mean(
        [kept_by(_order(_scores(evidence, np.array(w) / GRID), evidence.models)) for w in grid]
    )
    return [Reading(f"{share:.1%} of all weights", true=bool(share >= at_least))]


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


# ---- correlations ----------------------------------------------------------------------------


def _pair(evidence: Evidence, a: str, b: str) -> pd.Series:
    a, b = sorted((a, b), key=VARIABLES.index)
    rows = correlations(evidence.table.reset_index(drop=True)).set_index(["a", "b"])
    return rows.loc[(a, b)]


def rho(evidence: Evidence, a: str, b: str) -> list[Reading]:
    """Spearman's rho over the models: ties at mid-rank, and broken both ways."""
    row = _pair(evidence, a, b)
    if row["rho_low"] == row["rho_high"]:
        return [Reading(row["rho"])]
    return [
        Reading(row["rho"], label="tie at mid-rank"),
        Reading(row["rho_low"], label="tie broken one way"),
        Reading(row["rho_high"], label="the other way"),
    ]


def p(evidence: Evidence, a: str, b: str) -> list[Reading]:
    """Two-sided p of Spearman's rho: t approximation and all orders; ties kept and broken."""
    row = _pair(evidence, a, b)
    readings = [Reading(row["p_t"], label="t approximation", digits=4)]
    if row["rho_low"] < row["rho_high"]:
        readings.append(Reading(row["p_t_low"], label="t, tie broken one way", digits=4))
        readings.append(Reading(row["p_t_high"], label="t, the other way", digits=4))
    return [*readings, Reading(row["p_exact"], label="all orders", digits=4)]


def largest_rho(evidence: Evidence, measure: str) -> list[Reading]:
    """Largest absolute rho of a measure with the other sub-metrics, ties kept and broken."""
    others = [other for other in MEASURES if other != measure]
    rows = [_pair(evidence, measure, other) for other in others]
    return [
        Reading(max(abs(row[name]) for row in rows), label=label)
        for name, label in (("rho", "ties at mid-rank"), ("rho_low", "broken one way"),
                            ("rho_high", "the other way"))
    ]  # fmt: skip


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


def tied_pairs(evidence: Evidence, columns: list[str]) -> list[Reading]:
    """Whether the released columns order all models, so that rank statistics can be recomputed."""
    tied = {name: len(evidence.models) - len(set(evidence.column(name))) for name in columns}
    text = ", ".join(f"{name}: {count} tied" for name, count in tied.items())
    return [Reading(text, true=not any(tied.values()))]


def fisher_width(evidence: Evidence, a: str, b: str, at_least: float) -> list[Reading]:
    """Whether the 95% interval of a correlation (Fisher's z) is as wide as this."""
    z, n = np.arctanh(_pair(evidence, a, b)["rho"]), len(evidence.table)
    reach = stats.norm.ppf(0.975) / np.sqrt(n - 3)
    low, high = np.tanh([z - reach, z + reach])
    return [Reading(f"from {low:.2f} to {high:.2f}", true=bool(high - low >= at_least))]
