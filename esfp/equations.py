"""The equations that several stages share: Fleiss' kappa, the PSI ceiling, the composite.

All work on arrays of any leading shape, so that the same lines score one cohort and a thousand
bootstrap draws of it.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd

WEIGHTS = (0.20, 0.50, 0.30)  # of delta AR, delta SCD and scaled PSI (Eq. 6)
CPC_BONUS = 0.25  # (Eq. 6)


def kappa(subjects, pairs, totals) -> np.ndarray:
    """Fleiss' kappa from three sums over the subjects (Fleiss 1971; Section 4.5).

    kappa = (P - E) / (1 - E) with P the mean share of agreeing pairs of raters and E the sum of
    squared category shares. Every subject must have the same number of raters.

    Parameters
    ----------
    subjects : array, shape (...)
        Number of subjects.
    pairs : array, shape (...)
        Sum over subjects and categories of c (c - 1), where c raters chose the category.
    totals : array, shape (..., categories)
        Ratings in each category.

    Returns
    -------
    array, shape (...)
        NaN where undefined: no subject, a single rater, or all ratings in one category.
    """
    subjects, pairs, totals = (np.asarray(part, dtype=float) for part in (subjects, pairs, totals))
    ratings = totals.sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        raters = ratings / subjects
        observed = pairs / (ratings * (raters - 1))
        expected = ((totals / ratings[..., None]) ** 2).sum(axis=-1)
        return np.where(expected < 1, (observed - expected) / (1 - expected), np.nan)


def psi_ceiling(psi_means, rule="p95"):
    """Ceiling by which mean PSI is scaled (Eq. 4).

    Parameters
    ----------
    psi_means : array, shape (..., models)
        Mean PSI of each model of the cohort; an undefined one (NaN) is left out.
    rule : {"p95", "max"} or float
        95th percentile of the cohort (linear interpolation), its maximum, or a fixed value.

    Returns
    -------
    float or array, shape (...)
        NaN where no model has a PSI.
    """
    values = np.asarray(psi_means, dtype=float)
    if not isinstance(rule, str):
        return np.full(values.shape[:-1], float(rule))[()]
    share = {"p95": 95, "max": 100}[rule]
    if not np.isnan(values).any():
        return np.percentile(values, share, axis=-1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a draw in which no model has a PSI
        return np.nanpercentile(values, share, axis=-1)


def scale(psi_means, ceiling):
    """Mean PSI over its ceiling, at most 1 (Eq. 4); NaN where both are 0 or one is undefined."""
    with np.errstate(invalid="ignore"):
        return np.clip(psi_means / ceiling, 0, 1)


def composite(delta_ar, delta_scd, psi_scaled, kappa, weights=WEIGHTS, cpc_bonus=CPC_BONUS):
    """Flexibility signal and ESFP score (Eq. 6).

    flex = w_ar delta_ar + w_scd delta_scd + w_psi psi_scaled, and
    esfp = flex (1 + cpc_bonus max(kappa, 0)). An undefined kappa earns no bonus.

    Parameters
    ----------
    delta_ar, delta_scd, psi_scaled, kappa : float or array
        Of one shape, or shapes that broadcast.
    weights : sequence of three floats
    cpc_bonus : float

    Returns
    -------
    flex, esfp : float or array

    Examples
    --------
    >>> flex, esfp = composite(0.975, 0.523, 1.000, 0.257)  # DeepSeek-V3.2, Table 5
    >>> round(float(flex), 4), round(float(esfp), 4)
    (0.7565, 0.8051)
    """
    parts = (delta_ar, delta_scd, psi_scaled)
    flex = sum(weight * np.asarray(part) for weight, part in zip(weights, parts, strict=True))
    return flex, flex * (1 + cpc_bonus * np.fmax(kappa, 0.0))  # fmax: NaN counts as 0


def leaderboard(
    table: pd.DataFrame, ceiling: float, weights=WEIGHTS, cpc_bonus=CPC_BONUS
) -> pd.DataFrame:
    """Scale PSI by the ceiling, compose the score and rank (Eqs. 4 and 6).

    Parameters
    ----------
    table : DataFrame, one row a model
        With delta_ar, delta_scd, psi_mean and cpc_kappa.
    ceiling : float
        As `psi_ceiling` gives it; 1.0 in the first pass.

    Returns
    -------
    DataFrame
        With psi_ceiling, psi_scaled, flex, esfp and rank (1 is best, equal scores share the
        better rank, null without a score) set, best model first.
    """
    scaled = scale(table["psi_mean"], ceiling)
    flex, esfp = composite(
        table["delta_ar"], table["delta_scd"], scaled, table["cpc_kappa"], weights, cpc_bonus
    )
    scored = table.assign(psi_ceiling=ceiling, psi_scaled=scaled, flex=flex, esfp=esfp)
    scored["rank"] = scored["esfp"].rank(method="min", ascending=False).astype("Int64")
    return scored.sort_values("rank", kind="stable").reset_index(drop=True)
