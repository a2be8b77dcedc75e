"""Stage 5: how far the scores would move had other items been drawn (Section 4.7).

Items are drawn with replacement, and every model gets the same draw. A draw is a row of
multiplicities, how often each item is in it, and every statistic is a ratio of sums that are
linear in these. So one matrix product, draws x items times items x (sums of all models), does
the whole resampling, Fleiss' kappa included.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import norm

from esfp import files
from esfp.equations import CPC_BONUS, WEIGHTS, composite, kappa, psi_ceiling, scale

STATISTICS = ["delta_ar", "delta_scd", "psi_mean", "psi_scaled", "cpc_kappa", "flex", "esfp"]
MEANS = ["delta_ar", "scd_minus", "scd_plus", "psi"]
STANCES = ["n_positive", "n_negative", "n_neutral", "n_no_stance"]


def multiplicities(n_items: int, draws: int, seed) -> np.ndarray:
    """How often each item is in each draw.

    Parameters
    ----------
    n_items, draws : int
    seed : int or numpy Generator
        The draws are `default_rng(seed).integers(0, n_items, size=(draws, n_items))`.

    Returns
    -------
    array, shape (draws, items)
        Each row sums to `n_items`.
    """
    drawn = np.random.default_rng(seed).integers(0, n_items, size=(draws, n_items))
    drawn += np.arange(draws)[:, None] * n_items
    counts = np.bincount(drawn.ravel(), minlength=draws * n_items)
    return counts.reshape(draws, n_items).astype(float)


def linear_forms(items: pd.DataFrame) -> tuple[np.ndarray, list[str]]:
    """What each item adds to each sum that the statistics are ratios of.

    Parameters
    ----------
    items : DataFrame
        As in items.parquet: every model has the same items in the same order.

    Returns
    -------
    forms : array, shape (items, 14, models)
        Value (0 where undefined) and number of defined values of each of `MEANS`; then number of
        rated items, agreeing pairs, and ratings in each of `STANCES`.
    models : list of str

    Raises
    ------
    DataError
        If the models do not have the same items in the same order.
    """
    models = items["model"].unique().tolist()
    shape = (len(models), -1)
    ids = items["item_id"].to_numpy()
    if not models or len(items) % len(models):
        raise files.DataError("items.parquet: needs the same items for every model; run 4_score")
    ids = ids.reshape(shape)
    if (ids != ids[0]).any() or (items["model"].to_numpy().reshape(shape).T != models).any():
        raise files.DataError("items.parquet: the models differ in their items; run 4_score again")
    columns = []
    for name in MEANS:
        value = items[name].to_numpy(float)
        columns += [np.nan_to_num(value), ~np.isnan(value)]
    rated = items["cpc_status"].eq("counted").to_numpy()
    counts = items[STANCES].to_numpy(float) * rated[:, None]
    columns += [rated, (counts * (counts - 1)).sum(axis=1), *counts.T]
    forms = np.stack([np.asarray(column, dtype=float).reshape(shape) for column in columns])
    return np.ascontiguousarray(forms.transpose(2, 0, 1)), models


def statistics(weights: np.ndarray, forms: np.ndarray) -> dict[str, np.ndarray]:
    """The statistics that need no ceiling, in each draw.

    Parameters
    ----------
    weights : array, shape (draws, items)
        Multiplicities. A single row of ones gives the point estimates.
    forms : array, shape (items, 14, models)

    Returns
    -------
    dict
        delta_ar, delta_scd, psi_mean, cpc_kappa -> array, shape (draws, models); NaN where a
        draw holds no item on which the statistic is defined.
    """
    n_items, n_forms, n_models = forms.shape
    sums = (weights @ forms.reshape(n_items, n_forms * n_models)).reshape(-1, n_forms, n_models)
    with np.errstate(divide="ignore", invalid="ignore"):
        delta_ar, scd_minus, scd_plus, psi_mean = (
            sums[:, 2 * i] / sums[:, 2 * i + 1] for i in range(len(MEANS))
        )
    rated, pairs, totals = sums[:, 8], sums[:, 9], sums[:, 10:]
    return {
        "delta_ar": delta_ar,
        "delta_scd": scd_plus - scd_minus,
        "psi_mean": psi_mean,
        "cpc_kappa": kappa(rated, pairs, np.moveaxis(totals, 1, -1)),
    }


def resample(
    weights: np.ndarray,
    forms: np.ndarray,
    mode: str = "paper",
    ceiling_rule="p95",
    score_weights=WEIGHTS,
    cpc_bonus: float = CPC_BONUS,
) -> dict[str, np.ndarray]:
    """All statistics and the composite in each draw (Section 4.7).

    Parameters
    ----------
    weights, forms
        As for `statistics`.
    mode : {"paper", "full"}
        `paper` holds kappa and the PSI ceiling at their point estimates, `full` recomputes both
        in each draw.
    ceiling_rule, score_weights, cpc_bonus
        As for `psi_ceiling` and `composite`.

    Returns
    -------
    dict
        Each of `STATISTICS` -> array, shape (draws, models).
    """
    drawn = statistics(weights, forms)
    held = drawn if mode == "full" else statistics(np.ones((1, weights.shape[1])), forms)
    drawn["cpc_kappa"] = np.broadcast_to(held["cpc_kappa"], drawn["delta_ar"].shape)
    ceiling = np.reshape(psi_ceiling(held["psi_mean"], ceiling_rule), (-1, 1))
    drawn["psi_scaled"] = scale(drawn["psi_mean"], ceiling)
    parts = (drawn[name] for name in ("delta_ar", "delta_scd", "psi_scaled", "cpc_kappa"))
    drawn["flex"], drawn["esfp"] = composite(*parts, score_weights, cpc_bonus)
    return {name: drawn[name] for name in STATISTICS}


def intervals(drawn: dict[str, np.ndarray], models: list[str], level: float = 0.95) -> pd.DataFrame:
    """Percentile interval, mean and standard deviation over the draws that are defined.

    Returns
    -------
    DataFrame, one row a model x statistic
        model, statistic, ci_low, ci_high, boot_mean, boot_sd (n - 1 in the denominator),
        n_undefined (draws in which the statistic is undefined and which are left out).
    """
    stacked = np.stack(list(drawn.values()))
    undefined = np.isnan(stacked).sum(axis=1)
    percentile, mean, std = np.percentile, np.mean, np.std
    if undefined.any():
        percentile, mean, std = np.nanpercentile, np.nanmean, np.nanstd
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a statistic defined in no draw
        low, high = percentile(stacked, [50 * (1 - level), 50 * (1 + level)], axis=1)
        middle, spread = mean(stacked, axis=1), std(stacked, axis=1, ddof=1)
    return pd.DataFrame(
        {
            "model": np.tile(models, len(drawn)),
            "statistic": np.repeat(list(drawn), len(models)),
            "ci_low": low.ravel(),
            "ci_high": high.ravel(),
            "boot_mean": middle.ravel(),
            "boot_sd": spread.ravel(),
            "n_undefined": undefined.ravel(),
        }
    )


def accelerated(
    drawn: dict[str, np.ndarray],
    point: dict[str, np.ndarray],
    left_out: dict[str, np.ndarray],
    models: list[str],
    level: float = 0.95,
) -> pd.DataFrame:
    """Bias-corrected and accelerated (BCa) interval of each statistic.

    Parameters
    ----------
    drawn, point, left_out : dict
        Statistic -> array over models: in each draw, on the items themselves (one row), and with
        each item left out once (one row an item; the jackknife gives the acceleration). All in
        one mode.

    Returns
    -------
    DataFrame, one row a model x statistic
        model, statistic, bca_low, bca_high; NaN where BCa is not defined: a statistic undefined
        in a draw or without an item, the same value in all, or all draws on one side of it.

    References
    ----------
    Efron (1987), Journal of the American Statistical Association 82, 171-185.
    """
    rows = []
    for name, values in drawn.items():
        for m, model in enumerate(models):
            draws, value, jack = values[:, m], point[name][0, m], left_out[name][:, m]
            rows.append((model, name, *_bca(draws, value, jack, level)))
    return pd.DataFrame(rows, columns=["model", "statistic", "bca_low", "bca_high"])


def _bca(draws: np.ndarray, value: float, jack: np.ndarray, level: float) -> tuple[float, float]:
    below = ((draws < value).mean() + (draws <= value).mean()) / 2
    away = jack.mean() - jack
    if np.isnan(draws).any() or np.isnan(jack).any() or not 0 < below < 1 or not away.any():
        return float("nan"), float("nan")
    shift = norm.ppf(below)
    acceleration = (away**3).sum() / (6 * (away**2).sum() ** 1.5)
    ends = shift + norm.ppf([(1 - level) / 2, (1 + level) / 2])
    shares = norm.cdf(shift + ends / (1 - acceleration * ends))
    low, high = np.percentile(draws, 100 * shares)
    return float(low), float(high)


def table(drawn: dict[str, np.ndarray], models: list[str]) -> pd.DataFrame:
    """The draws as in bootstrap.parquet: one row a model x draw, draws numbered from 0."""
    draws = len(drawn["esfp"])
    return pd.DataFrame(
        {
            "model": np.repeat(models, draws),
            "draw": np.tile(np.arange(draws), len(models)),
            **{name: values.T.ravel() for name, values in drawn.items()},
        }
    )


def fill_scores(path: str | Path, bounds: pd.DataFrame) -> bool:
    """Write the intervals of the ESFP score into scores.csv, every other cell untouched.

    Raises
    ------
    DataError
        If the table is missing or its models are not those of `bounds`.
    """
    if not Path(path).exists():
        raise files.DataError(f"{path}: not there; run 4_score first")
    scores = pd.read_csv(path, dtype=str, keep_default_na=False)
    mine = bounds[bounds["statistic"] == "esfp"].set_index("model")
    if set(scores["model"]) != set(mine.index):
        raise files.DataError(f"{path}: its models are not those of items.parquet; run 4_score")
    for name in ("ci_low", "ci_high", "boot_mean", "boot_sd"):
        values = mine.loc[scores["model"], name]
        scores[name] = ["" if np.isnan(value) else f"{value:.6f}" for value in values]
    return files.write_csv(path, scores)


def numbers(bounds: pd.DataFrame, prefix: str = "bootstrap") -> dict:
    """The intervals by name, `<prefix>.<statistic>.<ci_low ...>.<model>`."""
    return {
        f"{prefix}.{row.statistic}.{name}.{row.model}": getattr(row, name)
        for row in bounds.itertuples()
        for name in ("ci_low", "ci_high", "boot_mean", "boot_sd", "n_undefined")
    }
