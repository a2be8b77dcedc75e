"""What a change of the instrument or of a model does to the scores, over shared draws of items.

Two tables of items, a reference and a variant of it, are resampled together: a draw says how often
each item is in it, and both sides are scored on that draw. What moves both alike cancels in their
difference, which is why its interval is narrower than two separate ones suggest (Efron and
Tibshirani, 1993).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats

from esfp import bootstrap, equations, files

STATISTICS = bootstrap.STATISTICS


def restrict(items: pd.DataFrame, ids: Sequence[str], models: Sequence[str]) -> pd.DataFrame:
    """Rows of these items and models, in that order."""
    order = pd.MultiIndex.from_product([models, ids], names=["model", "item_id"])
    rows = items.set_index(["model", "item_id"]).reindex(order).reset_index()
    return rows[items.columns]


def ceiling(items: pd.DataFrame, rule: str | float) -> float:
    """The PSI ceiling of a table's whole cohort (Eq. 4)."""
    means = items.groupby("model", sort=False)["psi"].mean()
    return float(equations.psi_ceiling(means, rule))


def scored(items: pd.DataFrame, weights: np.ndarray, score: dict) -> dict:
    """Every statistic in each draw, kappa and the ceiling too, by the `score` of a params file."""
    forms, _ = bootstrap.linear_forms(items)
    parts = tuple(score["weights"][name] for name in ("ar", "scd", "psi"))
    rule, bonus = score["psi_ceiling"], score["cpc_bonus"]
    return bootstrap.resample(weights, forms, "full", rule, parts, bonus)


def paired(
    reference: tuple[pd.DataFrame, dict], variant: tuple[pd.DataFrame, dict], settings: dict
) -> pd.DataFrame:
    """The change of every statistic of every model, with a percentile interval.

    Parameters
    ----------
    reference, variant : (items, score)
        A table of items and the params' `score` that is applied to it. The models are those that
        both have. A draw is of the reference's items; of the variant it holds those that are its.
    settings : dict
        The params' `bootstrap`: draws, level, seed.

    Returns
    -------
    DataFrame, one row a model x statistic
        model, statistic, reference, variant, change, low, high, n_undefined (draws in which either
        side is undefined).

    Raises
    ------
    DataError
        If the two have no model or no item in common.
    """
    ids, models = (_common(reference[0], variant[0], key) for key in ("item_id", "model"))
    drawn_from = reference[0]["item_id"].unique()
    multiplicities = bootstrap.multiplicities(len(drawn_from), settings["draws"], settings["seed"])
    ones = np.ones((1, len(drawn_from)))
    sides = []
    for (items, score), mine in ((reference, drawn_from), (variant, ids)):
        places = pd.Index(drawn_from).get_indexer(mine)
        table = restrict(items, mine, models)
        sides += [scored(table, w[:, places], score) for w in (ones, multiplicities)]
    rows = []
    for statistic in STATISTICS:
        point, drawn, point_variant, drawn_variant = (side[statistic] for side in sides)
        change = drawn_variant - drawn
        low, high = quantiles(change, settings["level"])
        for place, model in enumerate(models):
            first, second = point[0, place], point_variant[0, place]
            rows.append(
                (model, statistic, first, second, second - first, low[place], high[place])
                + (int(np.isnan(change[:, place]).sum()),)
            )
    names = "model statistic reference variant change low high n_undefined".split()
    return pd.DataFrame(rows, columns=names)


def quantiles(drawn: np.ndarray, level: float) -> np.ndarray:
    """Ends of the percentile interval of each column, over the draws that are defined."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a statistic defined in no draw
        return np.nanpercentile(drawn, [50 * (1 - level), 50 * (1 + level)], axis=0)


def _common(first: pd.DataFrame, second: pd.DataFrame, key: str) -> list[str]:
    there = set(second[key])
    found = [name for name in first[key].unique() if name in there]
    if not found:
        raise files.DataError(f"the two have no {key.removesuffix('_id')} in common")
    return found


def against_base(base: dict, variant: dict, settings: dict) -> pd.DataFrame:
    """`paired` of an ablation and its base, each with `items`, `score`, `per_type`, `models`.

    An ablation that asks fewer items of each type, or fewer models, does so to spare calls. The
    base is then set on the same ones, and both sides at the ceiling of the base's whole cohort,
    since a model alone would be its own.
    """
    first, second = base["items"], variant["items"]
    scores = [dict(base["score"]), dict(variant["score"])]
    if variant["per_type"] != base["per_type"]:
        first = first[first["item_id"].isin(second["item_id"])]
    if set(variant["models"]) < set(base["models"]):
        held = ceiling(base["items"], base["score"]["psi_ceiling"])
        scores = [score | {"psi_ceiling": held} for score in scores]
    return paired((first, scores[0]), (second, scores[1]), settings)


def order(changed: pd.DataFrame) -> dict:
    """How two orders of the models by ESFP go together.

    Parameters
    ----------
    changed : DataFrame
        As `paired` returns it.

    Returns
    -------
    dict
        tau (Kendall's tau-b; NaN below two models with a score on both sides, or where all tie),
        models (so many), swapped (the pairs that changed places, 'first over second' as they now
        stand, joined by '; ').
    """
    both = changed[changed["statistic"] == "esfp"].dropna(subset=["reference", "variant"])
    tau = float("nan")
    if both["reference"].nunique() > 1 and both["variant"].nunique() > 1:
        tau = stats.kendalltau(both["reference"], both["variant"]).statistic
    swapped = [
        f"{one.model} over {other.model}"
        for one in both.itertuples()
        for other in both.itertuples()
        if one.variant > other.variant and one.reference < other.reference
    ]
    return {"tau": tau, "models": len(both), "swapped": "; ".join(swapped)}


def text(change: float, low: float, high: float) -> str:
    """`+0.012 [−0.003, +0.027]`, or a dash where there is none."""
    if np.isnan([change, low, high]).any():
        return "–"
    shown = "{:+.3f} [{:+.3f}, {:+.3f}]".format(*(value + 0.0 for value in (change, low, high)))
    return shown.replace("-", "−")
