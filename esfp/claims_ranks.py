"""Checks of places: ranks, medians, quadrants.

Every public function here is a check that paper/claims.yaml may name; it takes the evidence and
returns one or more readings.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from esfp.claims_evidence import Evidence, Reading


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


def siblings(evidence: Evidence, pairs: dict[str, str]) -> list[Reading]:
    """Whether the flagship of each family is below its lightweight sibling in score."""
    readings = []
    for flagship, light in pairs.items():
        a, b = (evidence.cell(model, "esfp") for model in (flagship, light))
        text = f"{a:.3f}, {light} {b:.3f}"
        readings.append(Reading(text, true=a < b, label=flagship))
    return readings
