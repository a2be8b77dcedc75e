"""Coefficients of agreement, and their intervals by drawing groups of units.

Each coefficient is a function of sums over units. So the same function takes the sums of all units
or those of thousands of draws at once, and one matrix product makes the latter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
import pandas as pd


def one_hot(codes: np.ndarray, q: int) -> np.ndarray:
    """Labels 0 to q − 1 as unit vectors along a new last axis, −1 (missing) as zeros."""
    return np.eye(q + 1)[codes][..., :q]


def resample(
    terms: np.ndarray, groups: Sequence[str], draws: int = 2000, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Sums of `terms` over all units, and in draws of whole groups with replacement.

    Sentences on one item resemble each other, so items are what is drawn (Section 4.7 draws
    scores likewise). A draw is how often each group is in it. Equal seeds and equally many groups
    give equal draws, so that what is computed of the same groups is paired.

    Parameters
    ----------
    terms : array, shape (units, …)
    groups
        The group, here the item, of each unit.

    Returns
    -------
    total : array, shape (…)
    drawn : array, shape (draws, …)
        NaN throughout with fewer than two groups.
    """
    group, names = pd.factorize(pd.Series(groups), sort=True)
    sums = np.zeros((len(names), *terms.shape[1:]))
    np.add.at(sums, group, terms)
    if len(names) < 2:
        return sums.sum(axis=0), np.full((draws, *terms.shape[1:]), np.nan)
    return sums.sum(axis=0), np.tensordot(_multiplicities(len(names), draws, seed), sums, axes=1)


@lru_cache(maxsize=64)
def _multiplicities(groups: int, draws: int, seed: int) -> np.ndarray:
    """How often each group is in each draw; shape (draws, groups)."""
    chances = np.full(groups, 1 / groups)
    drawn = np.random.default_rng(seed).multinomial(groups, chances, size=draws).astype(float)
    drawn.flags.writeable = False
    return drawn


def interval(drawn: np.ndarray, level: float = 0.95) -> tuple[float, float]:
    """Percentile interval over those draws in which the value is defined; NaN where in none."""
    defined = drawn[~np.isnan(drawn)]
    if not len(defined):
        return np.nan, np.nan
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def estimates(
    statistics: Callable[[np.ndarray], dict[str, np.ndarray]],
    terms: np.ndarray,
    groups: Sequence[str],
) -> dict[str, float]:
    """Each of `statistics` of the sums of `terms`, with its 95% interval.

    Returns
    -------
    dict
        name, name_low and name_high for each name that `statistics` gives.
    """
    total, drawn = resample(terms, groups)
    found, among = statistics(total), statistics(drawn)
    out = {}
    for name, value in found.items():
        low, high = interval(among[name])
        out |= {name: float(value), f"{name}_low": low, f"{name}_high": high}
    return out


def two_raters(tables: np.ndarray) -> dict[str, np.ndarray]:
    """Share agreed, Cohen's κ and Gwet's AC1 of two raters.

    κ (Cohen, 1960) expects of chance what the raters' own label frequencies give, AC1 (Gwet,
    2008) see `gwet_ac1`.

    Parameters
    ----------
    tables : array, shape (…, q, q)
        Units by the label of the one and of the other; sums, not shares.

    Returns
    -------
    dict of arrays, shape (…)
        agreement, kappa, ac1; NaN without units, and κ also where both give one and the same
        label throughout.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        n = tables.sum(axis=(-2, -1))
        agreed = np.trace(tables, axis1=-2, axis2=-1) / n
        rows, columns = (tables.sum(axis=axis) / n[..., None] for axis in (-1, -2))
        return {
            "agreement": agreed,
            "kappa": _beyond(agreed, (rows * columns).sum(axis=-1)),
            "ac1": _beyond(agreed, _gwet_chance((rows + columns) / 2)),
        }


def _beyond(agreed: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Agreement beyond chance, NaN where chance alone explains all of it."""
    defined = expected < 1 - 1e-12
    return np.where(defined, (agreed - expected) / np.where(defined, 1 - expected, 1), np.nan)


def _gwet_chance(frequencies: np.ndarray) -> np.ndarray:
    return (frequencies * (1 - frequencies)).sum(axis=-1) / (frequencies.shape[-1] - 1)


def coincidences(counts: np.ndarray) -> np.ndarray:
    """What each unit adds to the coincidence matrix of Krippendorff's α.

    Parameters
    ----------
    counts : array, shape (units, q)
        How many raters gave a unit each label. Raters that gave none are not counted, and a unit
        with fewer than two labels adds nothing.

    Returns
    -------
    array, shape (units, q, q)
    """
    raters = counts.sum(axis=1)
    pairs = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(counts.shape[1])
    return pairs / np.maximum(raters - 1, 1)[:, None, None]


def krippendorff_alpha(coincident: np.ndarray) -> np.ndarray:
    """Krippendorff's α for nominal labels, any number of raters, missing labels among them.

    α = 1 − D_o / D_e, with D_o the disagreement within units and D_e that between any two labels
    of the data (Hayes and Krippendorff, 2007). With complete data it is Fleiss' κ for small
    samples: 1 − α = (1 − κ)(n − 1) / n with n the number of labels.

    Parameters
    ----------
    coincident : array, shape (…, q, q)
        Sums of `coincidences`.

    Returns
    -------
    array, shape (…)
        NaN without two labels of one unit, and where all labels are the same.
    """
    labels = coincident.sum(axis=-1)
    n = labels.sum(axis=-1)
    within = n - np.trace(coincident, axis1=-2, axis2=-1)
    between = n**2 - (labels**2).sum(axis=-1)
    defined = between > 1e-12 * n**2
    return np.where(defined, 1 - (n - 1) * within / np.where(defined, between, 1), np.nan)


def agreed_and_spread(counts: np.ndarray) -> np.ndarray:
    """What each unit adds to Gwet's AC1.

    Parameters
    ----------
    counts
        As for `coincidences`.

    Returns
    -------
    array, shape (units, 2 + q)
        The share of its pairs of raters that agree, whether it has a pair, and the share of each
        label among its own.
    """
    raters = counts.sum(axis=1)
    paired = raters > 1
    agreed = (counts * (counts - 1)).sum(axis=1) / np.where(paired, raters * (raters - 1), 1)
    return np.column_stack([agreed, paired, counts / np.maximum(raters, 1)[:, None]])


def gwet_ac1(sums: np.ndarray) -> np.ndarray:
    """Gwet's AC1 of any number of raters, missing labels among them.

    (p_a − p_e) / (1 − p_e), with p_a the mean share of agreeing pairs over units with at least two
    labels and p_e = Σ π (1 − π) / (q − 1), π being a label's mean share over all units with any
    (Gwet, 2008 and 2014). q is how many labels there are to choose from, given or not. Where one
    label dominates κ and α can be near 0 although the raters agree almost always; AC1 is then near
    the share agreed.

    Parameters
    ----------
    sums : array, shape (…, 2 + q)
        Of `agreed_and_spread`.

    Returns
    -------
    array, shape (…)
        NaN without two labels of one unit.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        frequencies = sums[..., 2:] / sums[..., 2:].sum(axis=-1, keepdims=True)
        return _beyond(sums[..., 0] / sums[..., 1], _gwet_chance(frequencies))


def precision_recall(tables: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Precision and recall of each label.

    Parameters
    ----------
    tables : array, shape (…, q, q)
        Units by the reference's label and by the rater's.

    Returns
    -------
    precision, recall : array, shape (…, q)
        NaN where the rater never gave a label, or the reference does not have it.
    """
    right = np.diagonal(tables, axis1=-2, axis2=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return right / tables.sum(axis=-2), right / tables.sum(axis=-1)
