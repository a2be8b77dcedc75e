"""Comparing models on shared draws: differences, simultaneous rank sets, rank probabilities.

Every model has the same items in a draw, so the difference of two models is computed in each draw
and has a distribution of its own. Overlapping intervals of two models are no test of it.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
from statsmodels.stats.multitest import multipletests


def differences(
    drawn: dict[str, np.ndarray],
    point: dict[str, np.ndarray],
    models: list[str],
    level: float = 0.95,
    of: tuple[str, ...] = ("esfp", "delta_scd"),
) -> pd.DataFrame:
    """Difference of every two models, paired by draw.

    Parameters
    ----------
    drawn : dict
        Statistic -> array, shape (draws, models).
    point : dict
        Statistic -> array, shape (models,): the estimates on the items themselves.
    models : list of str
    level : float
        Of the percentile interval of a difference.
    of : tuple of str
        The statistics compared.

    Returns
    -------
    DataFrame, one row a statistic x pair
        statistic, first, second (the one with the larger estimate first), difference, ci_low,
        ci_high, p (two-sided: twice the smaller share of draws on one side of 0, one draw added
        to both sides, so that it is at least 2 / (draws + 1)), p_holm (Holm's correction within
        the statistic). A pair with a model whose estimate is undefined is left out.

    References
    ----------
    Holm (1979), Scandinavian Journal of Statistics 6, 65-70; Davison and Hinkley (1997),
    Bootstrap Methods and their Application, section 4.2.
    """
    tables = []
    for name in of:
        values, estimates = drawn[name], np.asarray(point[name], dtype=float)
        known = [i for i in np.argsort(-estimates, kind="stable") if not np.isnan(estimates[i])]
        rows = []
        for i, j in combinations(known, 2):
            moved = values[:, i] - values[:, j]
            moved = moved[~np.isnan(moved)]
            low, high = np.percentile(moved, [50 * (1 - level), 50 * (1 + level)])
            side = min((moved <= 0).sum(), (moved >= 0).sum())
            p = min(1.0, 2 * (1 + side) / (1 + len(moved)))
            gap = estimates[i] - estimates[j]
            rows.append((name, models[i], models[j], gap, low, high, p))
        columns = "statistic first second difference ci_low ci_high p".split()
        table = pd.DataFrame(rows, columns=columns)
        table["p_holm"] = multipletests(table["p"], method="holm")[1] if rows else []
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def rank_sets(drawn: np.ndarray, point: np.ndarray, level: float = 0.95) -> pd.DataFrame:
    """Ranks that are compatible with the data, for all models at once.

    All differences of two models get intervals that hold together with probability `level`: the
    estimate plus or minus c standard errors, c being the `level` quantile, over the draws, of the
    largest standardised deviation of any difference. A model's best rank counts those that are
    surely above it, its worst rank those that are not surely below it.

    Parameters
    ----------
    drawn : array, shape (draws, models)
        One statistic, defined for every model in nearly every draw; draws with a gap are left out.
    point : array, shape (models,)

    Returns
    -------
    DataFrame, one row a model, in the order given
        rank (1 is the largest estimate), rank_low, rank_high.

    References
    ----------
    Mogstad, Romano, Shaikh and Wilhelm (2024), Review of Economic Studies 91, 476-518, the
    single-step version.
    """
    point = np.asarray(point, dtype=float)
    drawn = drawn[~np.isnan(drawn).any(axis=1)]
    moved = drawn[:, :, None] - drawn[:, None, :]
    gaps = point[:, None] - point[None, :]
    error = moved.std(axis=0, ddof=1)
    other = error > 0
    wide = np.abs(moved - gaps)[:, other] / error[other]
    critical = np.quantile(wide.max(axis=1), level) if other.any() else 0.0
    above = gaps > critical * error  # row surely above column
    above |= (error == 0) & (gaps > 0)
    return pd.DataFrame(
        {
            "rank": 1 + (point[None, :] > point[:, None]).sum(axis=1),
            "rank_low": 1 + above.sum(axis=0),
            "rank_high": len(point) - above.sum(axis=1),
        }
    )


def rank_shares(drawn: np.ndarray) -> np.ndarray:
    """Share of draws in which each model has each rank; models that tie share their ranks.

    Parameters
    ----------
    drawn : array, shape (draws, models)

    Returns
    -------
    array, shape (models, ranks)
        Rows and columns sum to 1. Draws with an undefined value are left out.
    """
    drawn = drawn[~np.isnan(drawn).any(axis=1)]
    n = drawn.shape[1]
    better = (drawn[:, None, :] > drawn[:, :, None]).sum(axis=2)
    equal = (drawn[:, None, :] == drawn[:, :, None]).sum(axis=2)
    ranks = np.arange(n)
    held = (ranks >= better[..., None]) & (ranks < (better + equal)[..., None])
    return (held / equal[..., None]).mean(axis=0)


def ranks(
    drawn: np.ndarray, point: np.ndarray, models: list[str], level: float = 0.95
) -> pd.DataFrame:
    """Rank of each model that has a score, with its set and its shares, best first.

    Returns
    -------
    DataFrame
        model, rank, rank_low, rank_high, and share_1, share_2, ...: see `rank_sets` and
        `rank_shares`. Empty where no model has a score.
    """
    known = [i for i in np.argsort(-point, kind="stable") if not np.isnan(point[i])]
    if not known:
        return pd.DataFrame(columns=["model", "rank", "rank_low", "rank_high"])
    table = rank_sets(drawn[:, known], point[known], level)
    table.insert(0, "model", [models[i] for i in known])
    shares = rank_shares(drawn[:, known])
    names = [f"share_{rank}" for rank in range(1, len(known) + 1)]
    return table.join(pd.DataFrame(shares, columns=names))


def numbers(differences: pd.DataFrame, ranks: pd.DataFrame) -> dict:
    """Differences and ranks by name, for results/bootstrap.json."""
    found = {}
    for row in differences.itertuples():
        for name in ("difference", "ci_low", "ci_high", "p", "p_holm"):
            key = f"bootstrap.{row.statistic}.{name}.{row.first}.{row.second}"
            found[key] = getattr(row, name)
    for row in ranks.to_dict("records"):
        model = row.pop("model")
        found |= {f"bootstrap.ranks.{name}.{model}": value for name, value in row.items()}
    return found
