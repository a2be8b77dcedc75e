"""Every defensible way to score a run: which conclusions need which choice.

A specification is one choice in each dimension. The parts of the score (delta AR, delta SCD, PSI
and kappa) depend on some dimensions, weights, ceiling and multiplier only combine them, so that
few tables give many thousands of scores.

Reference: Steegen, Tuerlinckx, Gelman and Vanpaemel (2016), Perspectives on Psychological Science
11, 702-712; Simonsohn, Simmons and Nelson (2020), Nature Human Behaviour 4, 1208-1214.
"""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pandas as pd

from esfp.equations import composite, psi_ceiling, scale

STEP = 0.1  # of the grid over the weights
FIXED_CEILING = 0.199  # the published cohort's (Section 8)
CEILINGS = {"p95": "p95", "maximum": "max", "fixed": FIXED_CEILING}
WEIGHTS = ["w_ar", "w_scd", "w_psi"]


def simplex(step: float) -> np.ndarray:
    """Weights of delta AR, delta SCD and PSI on a grid; shape (points, 3), rows sum to 1."""
    n = round(1 / step)
    points = [(a, b, n - a - b) for a in range(n + 1) for b in range(n + 1 - a)]
    return np.array(points) / n


def score(
    parts: pd.DataFrame, weights: np.ndarray, cpc_bonus: float, ceilings=CEILINGS
) -> pd.DataFrame:
    """Scores of all models under all specifications.

    A part with weight 0 need not be defined. Ranks are among the models that have a score.

    Parameters
    ----------
    parts
        One row a model and choice in the other dimensions: `model delta_ar delta_scd psi_mean
        cpc_kappa`, and a column for each of these dimensions. Every choice has all models.
    weights
        As `simplex` gives them.
    cpc_bonus
        Of the specifications with the multiplier on.

    Returns
    -------
    DataFrame, one row a specification x model
        specification (number), the dimensions, ceiling, cpc ('on', 'off'), w_ar, w_scd, w_psi,
        model, esfp, rank (1 is best; NaN without a score).
    """
    values = ["delta_ar", "delta_scd", "psi_mean", "cpc_kappa"]
    dimensions = [name for name in parts.columns if name not in ("model", *values)]
    models = parts["model"].drop_duplicates().tolist()
    tables, number = [], 0
    groups = parts.groupby(dimensions, sort=False) if dimensions else [((), parts)]
    for chosen, group in groups:
        ar, scd, psi, kappa = group.set_index("model").loc[models, values].to_numpy(float).T
        for (name, rule), cpc in product(ceilings.items(), ("on", "off")):
            scaled = scale(psi, psi_ceiling(psi, rule))
            rows = [np.where(w > 0, part, 0.0) for w, part in zip(
                weights.T[:, :, None], (ar, scd, scaled), strict=True)]  # fmt: skip
            bonus = cpc_bonus if cpc == "on" else 0.0
            _, esfp = composite(*rows, kappa, tuple(weights.T[:, :, None]), bonus)
            n = len(weights)
            table = pd.DataFrame({"specification": np.repeat(np.arange(number, number + n),
                                                             len(models))})  # fmt: skip
            table[dimensions] = list(chosen) if dimensions else []
            table["ceiling"], table["cpc"] = name, cpc
            table[WEIGHTS] = np.repeat(weights, len(models), axis=0)
            table["model"] = np.tile(models, n)
            table["esfp"] = esfp.ravel()
            better = (esfp[:, None, :] > esfp[:, :, None]).sum(axis=2)
            table["rank"] = np.where(np.isnan(esfp), np.nan, 1 + better).ravel()
            tables.append(table)
            number += n
    return pd.concat(tables, ignore_index=True)


def wide(specifications: pd.DataFrame, column: str = "esfp") -> pd.DataFrame:
    """Specifications x models."""
    models = specifications["model"].drop_duplicates().tolist()
    values = specifications[column].to_numpy().reshape(-1, len(models))
    return pd.DataFrame(values, columns=models)


def pairs(specifications: pd.DataFrame, order: list[str]) -> pd.DataFrame:
    """Share of specifications in which each pair keeps the order of the run's own score.

    Parameters
    ----------
    order
        The models with a score, best first.

    Returns
    -------
    DataFrame, one row a pair
        first, second, kept (share of the specifications in which both have a score; a tie counts
        half), specifications (how many these are).
    """
    scores = wide(specifications)
    rows = []
    for first, second in combinations(order, 2):
        both = scores[[first, second]].dropna()
        gap = both[first] - both[second]
        kept = ((gap > 0).mean() + (gap >= 0).mean()) / 2 if len(both) else np.nan
        rows.append((first, second, kept, len(both)))
    return pd.DataFrame(rows, columns=["first", "second", "kept", "specifications"])


def firsts(specifications: pd.DataFrame) -> pd.DataFrame:
    """By model: share of the specifications in which it is first and has a score, its ranks.

    Returns
    -------
    DataFrame
        model, first, scored, rank_low, rank_high, esfp_low, esfp_high (5% and 95% of its scores).
    """
    n = specifications["specification"].nunique()
    rows = []
    for model, part in specifications.groupby("model", sort=False):
        known = part.dropna(subset="esfp")
        ends = [np.nan] * 4
        if len(known):
            ends = [known["rank"].min(), known["rank"].max(), *known["esfp"].quantile([0.05, 0.95])]
        rows.append((model, (known["rank"] == 1).sum() / n, len(known) / n, *ends))
    columns = "model first scored rank_low rank_high esfp_low esfp_high".split()
    return pd.DataFrame(rows, columns=columns)


def influence(specifications: pd.DataFrame, order: list[str]) -> pd.DataFrame:
    """How much each dimension matters: to the scores, and to the order of the models.

    Returns
    -------
    DataFrame, one row a dimension
        dimension, choices, scores (share of the variance of a model's score that lies between
        the choices: eta squared, mean over the models), order (largest difference, between two
        choices, of the share of specifications that keep the run's own order throughout).
    """
    scores = wide(specifications)[order]
    count = specifications["model"].nunique()
    chosen = specifications.iloc[::count].reset_index(drop=True)
    kept = (scores.diff(axis=1).iloc[:, 1:] <= 0).all(axis=1).where(scores.notna().all(axis=1))
    chosen = chosen.assign(weights=chosen[WEIGHTS].astype(str).agg(" ".join, axis=1))
    own = ["specification", "model", "esfp", "rank", *WEIGHTS]
    rows = []
    for name in [name for name in chosen.columns if name not in own]:
        shares = []
        for model in order:
            known = scores[model].dropna()
            means = known.groupby(chosen.loc[known.index, name]).transform("mean")
            total = known.var(ddof=0)
            shares.append(means.var(ddof=0) / total if total > 0 else 0.0)
        by_choice = kept.dropna().astype(float).groupby(chosen[name]).mean()
        moved = by_choice.max() - by_choice.min() if len(by_choice) else np.nan
        rows.append((name, chosen[name].nunique(), np.mean(shares) if shares else np.nan, moved))
    table = pd.DataFrame(rows, columns=["dimension", "choices", "scores", "order"])
    return table[table["choices"] > 1].sort_values(
        "scores", ascending=False, kind="stable", ignore_index=True
    )


def leaders(parts: pd.DataFrame, step: float, cpc_bonus: float, ceiling_rule="p95") -> pd.DataFrame:
    """Which model is first over a fine grid of weights, all else as the run has it.

    Parameters
    ----------
    parts
        One row a model.

    Returns
    -------
    DataFrame, one row a point
        w_ar, w_scd, w_psi, model ('' where models tie or none has a score).
    """
    weights = simplex(step)
    found = score(parts, weights, cpc_bonus, {"run": ceiling_rule})
    scores = wide(found[found["cpc"] == "on"])
    best = scores.max(axis=1)
    alone = scores.eq(best, axis=0).sum(axis=1) == 1
    table = pd.DataFrame(weights, columns=WEIGHTS)
    return table.assign(model=scores.fillna(-np.inf).idxmax(axis=1).where(alone, ""))


def numbers(
    specifications: pd.DataFrame,
    pairs: pd.DataFrame,
    firsts: pd.DataFrame,
    influence: pd.DataFrame,
) -> dict:
    """What prose quotes, by name, for results/score.json."""
    found = {"score.multiverse.specifications": specifications["specification"].nunique()}
    for row in pairs.itertuples():
        found[f"score.multiverse.kept.{row.first}.{row.second}"] = row.kept
    for row in firsts.itertuples():
        found[f"score.multiverse.first.{row.model}"] = row.first
        found[f"score.multiverse.scored.{row.model}"] = row.scored
    for row in influence.itertuples():
        found[f"score.multiverse.scores.{row.dimension}"] = row.scores
        found[f"score.multiverse.order.{row.dimension}"] = row.order
    return {name: None if pd.isna(value) else value for name, value in found.items()}
