"""Agreement between judges, and how well one finds the labels of a reference."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from sklearn.metrics import cohen_kappa_score, precision_recall_fscore_support


def cohen_kappa(first: Sequence[str], second: Sequence[str]) -> float:
    """Cohen's κ of two raters over the same units; NaN where it is undefined.

    κ = (p_o − p_e) / (1 − p_e), with p_o the share of units on which they agree and p_e the share
    expected from their label frequencies (Cohen, 1960). It is undefined without units, and where
    both give one and the same label throughout.
    """
    first, second = list(first), list(second)
    if not first or len({*first, *second}) < 2:
        return np.nan
    return float(cohen_kappa_score(first, second))


def kappa_interval(
    first: Sequence[str],
    second: Sequence[str],
    groups: Sequence[str],
    draws: int = 2000,
    seed: int = 0,
    level: float = 0.95,
) -> tuple[float, float]:
    """Percentile interval of Cohen's κ, whole groups of units being drawn with replacement.

    Sentences on one item resemble each other, so items are what is drawn (Section 4.7 draws
    scores likewise). A draw is how often each group is in it, and one matrix product makes the
    tables of all draws.

    Parameters
    ----------
    first, second
        The labels of two raters of the same units.
    groups
        The group, here the item, of each unit.

    Returns
    -------
    low, high : float
        NaN with fewer than two groups, or where κ is undefined in every draw.
    """
    labels, coded = np.unique([*first, *second], return_inverse=True)
    names, group = np.unique(list(groups), return_inverse=True)
    if len(names) < 2 or len(labels) < 2:
        return np.nan, np.nan
    one, other = np.split(coded, 2)
    tables = np.zeros((len(names), len(labels), len(labels)))
    np.add.at(tables, (group, one, other), 1)
    chances = np.full(len(names), 1 / len(names))
    drawn = np.random.default_rng(seed).multinomial(len(names), chances, size=draws)
    drawn = np.tensordot(drawn, tables, axes=1)  # draws x labels x labels
    drawn /= drawn.sum(axis=(1, 2), keepdims=True)
    agreed = np.trace(drawn, axis1=1, axis2=2)
    expected = (drawn.sum(axis=1) * drawn.sum(axis=2)).sum(axis=1)
    defined = expected < 1 - 1e-12
    kappas = (agreed[defined] - expected[defined]) / (1 - expected[defined])
    if not len(kappas):
        return np.nan, np.nan
    low, high = np.quantile(kappas, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def against_reference(
    reference: Sequence[str], rated: Sequence[str], labels: list[str]
) -> dict[str, float]:
    """κ, share agreed, and each label's precision and recall, the reference being right.

    Returns
    -------
    dict
        kappa, agreement, then precision_X and recall_X for each of `labels`; NaN where a label
        was never given (precision) or is not in the reference (recall).
    """
    reference, rated = np.array(list(reference), object), np.array(list(rated), object)
    precision, recall, _, _ = precision_recall_fscore_support(
        reference, rated, labels=labels, zero_division=np.nan
    )
    out = {"kappa": cohen_kappa(reference, rated), "agreement": float(np.mean(reference == rated))}
    for place, label in enumerate(labels):
        out[f"precision_{label}"] = float(precision[place])
        out[f"recall_{label}"] = float(recall[place])
    return out


def pairwise(labelled: pd.DataFrame, judges: list[str], by: list[str]) -> pd.DataFrame:
    """Agreement and Cohen's κ of each pair of judges, over sentences that both labelled.

    Parameters
    ----------
    labelled
        With a column `label_<judge>` for each of `judges`.
    by
        Columns; one row a pair and group.

    Returns
    -------
    DataFrame
        The columns of `by`, first, second, n, agreement, kappa.
    """
    pairs = list(combinations(judges, 2))
    rows = []
    for values, group in labelled.groupby(by, sort=False):
        for first, second in pairs:
            both = group[[f"label_{first}", f"label_{second}"]].dropna()
            one, other = both.iloc[:, 0], both.iloc[:, 1]
            measured = [len(both), (one == other).mean(), cohen_kappa(one, other)]
            rows.append([*values, first, second, *measured])
    return pd.DataFrame(rows, columns=[*by, "first", "second", "n", "agreement", "kappa"])


def disputed(labelled: pd.DataFrame, judges: list[str]) -> pd.Series:
    """Whether the panel's C is a disagreement: all judges answered and not alike.

    Returns
    -------
    Series of bool, index of `labelled`
    """
    columns = labelled[[f"label_{judge}" for judge in judges]]
    return columns.notna().all(axis=1) & (columns.nunique(axis=1) > 1) & (labelled["label"] == "C")


def shares(frame: pd.DataFrame, column: str, values: list[str], by: list[str]) -> pd.DataFrame:
    """Share of each value of `column` within `by`; what is null counts under 'missing'."""
    counted = frame[by].assign(value=frame[column].astype(object).fillna("missing"))
    table = pd.crosstab([counted[name] for name in by], counted["value"], normalize="index")
    return table.reindex(columns=[*values, "missing"], fill_value=0.0)
