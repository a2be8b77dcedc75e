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
