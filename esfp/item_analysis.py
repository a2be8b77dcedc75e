"""Which items tell models apart, what chance alone would show, and how many could be dropped."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd

from esfp import bootstrap

COLUMNS = "kept change within change_left_out change_random".split()  # of `shorter`
STRONG = 0.8  # a correlation that is called strong
LEAST = 0.5  # share of the items that a model must define to take part in the analysis


def matrix(items: pd.DataFrame) -> tuple[np.ndarray, list[str], list[str]]:
    """delta SCD, items x models: models that define half of the items, items that all define.

    Returns
    -------
    values : array, shape (items, models)
    item_ids, models : lists of str
    """
    table = items.pivot(index="item_id", columns="model", values="delta_scd")
    table = table[items["model"].drop_duplicates().tolist()]
    table = table.loc[:, table.notna().mean() >= LEAST].dropna()
    return table.to_numpy(float), table.index.tolist(), table.columns.tolist()


def item_rest(values: np.ndarray) -> np.ndarray:
    """Correlation of each item with the mean of the others, over the models.

    Parameters
    ----------
    values : array, shape (..., items, models)

    Returns
    -------
    array, shape (..., items)
        NaN where an item, or the rest, is the same for all models.
    """
    n = values.shape[-2]
    rest = (values.sum(axis=-2, keepdims=True) - values) / max(n - 1, 1)
    a, b = (part - part.mean(axis=-1, keepdims=True) for part in (values, rest))
    spreads = np.minimum((a * a).sum(axis=-1), (b * b).sum(axis=-1))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (a * b).sum(axis=-1) / np.sqrt((a * a).sum(axis=-1) * (b * b).sum(axis=-1))
    return np.where(spreads < 1e-18, np.nan, found)  # no more than rounding


def null(values: np.ndarray, permutations: int, seed: int) -> np.ndarray:
    """Item-rest correlations where no item agrees with any other but by chance.

    The models' values are shuffled within each item, so that every item keeps its spread and
    loses its connection with the rest.

    Returns
    -------
    array, shape (permutations, items)
    """
    rng = np.random.default_rng(seed)
    shuffled = rng.permuted(np.broadcast_to(values, (permutations, *values.shape)), axis=2)
    return item_rest(shuffled)


def table(items: pd.DataFrame, permutations: int, seed: int) -> pd.DataFrame:
    """Discrimination of each item.

    Returns
    -------
    DataFrame, one row an item that all models of the analysis define, the widest spread first
        item_id, mean and sd of delta SCD over the models, item_rest, p (share of the null
        correlations of that item that are as high, one added), n_models. Empty with fewer than
        three models.
    """
    values, ids, models = matrix(items)
    columns = "item_id mean sd item_rest p n_models".split()
    if len(models) < 3 or not ids:
        return pd.DataFrame(columns=columns)
    observed, chance = item_rest(values), null(values, permutations, seed)
    with np.errstate(invalid="ignore"):
        as_high = (chance >= observed - 1e-12).sum(axis=0)
    found = pd.DataFrame(
        {
            "item_id": ids,
            "mean": values.mean(axis=1),
            "sd": values.std(axis=1, ddof=1),
            "item_rest": observed,
            "p": np.where(np.isnan(observed), np.nan, (1 + as_high) / (1 + permutations)),
            "n_models": len(models),
        }
    )
    return found.sort_values("sd", ascending=False, kind="stable", ignore_index=True)


def shorter(
    forms: np.ndarray,
    models: list[str],
    item_ids: list[str],
    spread: pd.DataFrame,
    bounds: dict[str, tuple[float, float]],
    sizes: list[int],
    draws: int,
    seed: int,
    rules: dict,
) -> pd.DataFrame:
    """Do fewer items, those that tell models apart best, give the same scores?

    For each size: the items with the widest spread are kept, and the largest change of a score is
    noted. To choose items by the models that are then scored flatters the choice, so each model
    is left out in turn, the items are chosen on the others, and it is asked whether the score of
    the one left out lies within its interval over all items. Random subsets stand beside it.

    Parameters
    ----------
    forms, models
        As `bootstrap.linear_forms` gives them.
    item_ids
        Items in the order of `forms`.
    spread
        delta SCD, index item_id, a column a model: what the spread is taken of.
    bounds
        Interval of the score by model, for the models with a score.
    sizes
        Numbers of items kept.
    draws
        Random subsets of each size.
    rules
        ceiling_rule, score_weights and cpc_bonus of `bootstrap.resample`.

    Returns
    -------
    DataFrame, one row a size
        kept, change (largest change of a score, items chosen on all models), within (share of
        left-out models whose score stays in its interval), change_left_out (their largest
        change), change_random (median over random subsets of the largest change).
    """
    rng = np.random.default_rng(seed)
    n, scored = len(forms), [models.index(name) for name in bounds]
    whole = bootstrap.resample(np.ones((1, n)), forms, "full", **rules)["esfp"][0]

    def scores(chosen: np.ndarray) -> np.ndarray:
        return bootstrap.resample(chosen.astype(float), forms, "full", **rules)["esfp"]

    def widest(columns: list[str], size: int) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # an item that one model defines
            wide = np.nanstd(spread.loc[item_ids, columns].to_numpy(float), axis=1, ddof=1)
        order = np.argsort(-np.nan_to_num(wide), kind="stable")
        chosen = np.zeros(n)
        chosen[order[:size]] = 1
        return chosen

    names = list(spread.columns)
    rows = []
    for size in sizes:
        change = np.abs(scores(widest(names, size)[None])[0] - whole)[scored].max()
        left_out, inside = [], []
        for name, (low, high) in bounds.items():
            others = [other for other in names if other != name]
            value = scores(widest(others, size)[None])[0][models.index(name)]
            left_out.append(abs(value - whole[models.index(name)]))
            inside.append(low <= value <= high)
        random = np.zeros((draws, n))
        for row in random:
            row[rng.permutation(n)[:size]] = 1
        moved = np.abs(scores(random) - whole)[:, scored].max(axis=1)
        rows.append((size, change, np.mean(inside), np.max(left_out), pd.Series(moved).median()))
    return pd.DataFrame(rows, columns=COLUMNS)


def suggestion(table: pd.DataFrame) -> int | None:
    """Fewest items from which on every left-out score stays within its interval."""
    good = table.sort_values("kept", ascending=False)
    good = good[(good["within"] == 1).cummin()]
    return int(good["kept"].min()) if len(good) else None


def numbers(table: pd.DataFrame, chance: np.ndarray | None, shorter: pd.DataFrame) -> dict:
    """What prose quotes, by name, for results/bootstrap.json."""
    found: dict = {"bootstrap.items.analysed": len(table)}
    if len(table):
        known = table["item_rest"].dropna()
        found |= {
            "bootstrap.items.models": int(table["n_models"].iloc[0]),
            "bootstrap.items.item_rest": known.mean(),
            "bootstrap.items.item_rest_above_0.8": (known > STRONG).mean(),
            "bootstrap.items.significant": float((table["p"] < 0.05).mean()),
        }
        known = pd.Series(chance.ravel()).dropna()
        found["bootstrap.items.null_item_rest"] = known.mean()
        found["bootstrap.items.null_above_0.8"] = (known > STRONG).mean()
    found["bootstrap.items.strong"] = STRONG
    found["bootstrap.items.suggested"] = suggestion(shorter) if len(shorter) else None
    if len(shorter):
        half = shorter.iloc[(shorter["kept"] - shorter["kept"].max() / 2).abs().argmin()]
        found["bootstrap.items.change_half"] = half["change"]
        found["bootstrap.items.change_random_half"] = half["change_random"]
    return found
