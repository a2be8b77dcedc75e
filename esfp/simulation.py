"""Does a 95% interval hold the truth in 95% of cases? A bootstrap of the bootstrap.

A population of items is given, so that its scores are known exactly: the run's own items, or a
large made-up set. Cohorts of items are drawn from it, the interval of each is computed as for a
real run, and it is counted how often it holds the population's score.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from esfp import bootstrap

MODES = ("paper", "full")
SHOWN = (("delta_scd", "full"), ("psi_mean", "full"), ("esfp", "paper"), ("esfp", "full"))


SHIFTS = (0.10, 0.20, 0.35, 0.35, 0.40, 0.50, 0.50, 0.55)
DISTANCES = (0.16, 0.16, 0.17, 0.17, 0.17, 0.17, 0.18, 0.21)


def synthetic(n_items: int, seed: int, shifts=SHIFTS, distances=DISTANCES) -> np.ndarray:
    """Linear forms of a large made-up population that looks like a cohort of frontier models.

    Answers have five to eight sentences; the chance of a stance sentence differs between items;
    attribution is defined for most items; the three ratings of an item lean to a direction of its
    own.

    Parameters
    ----------
    shifts, distances
        By how much the mean density rises from P1 to P2, and the mean PSI, one a model.

    Returns
    -------
    array, shape (items, 14, models)
        As `bootstrap.linear_forms` gives it.
    """
    rng = np.random.default_rng(seed)
    models = []
    for shift, distance in zip(shifts, distances, strict=False):
        scd = []
        for mean in (0.08, 0.08 + shift):
            sentences = rng.integers(5, 9, n_items)
            chance = rng.beta(6 * mean, 6 * (1 - mean), n_items)
            scd.append(rng.binomial(sentences, chance) / sentences)
        delta_ar = np.clip(rng.normal(0.7, 0.35, n_items), -1, 1)
        with_ar = rng.random(n_items) < 0.8
        psi = rng.beta(4, 4 / distance - 4, n_items)
        leaning = rng.dirichlet((0.5, 0.4, 0.4, 0.1), n_items)
        counts = rng.multinomial(3, leaning)
        ones = np.ones(n_items)
        columns = [delta_ar * with_ar, with_ar, scd[0], ones, scd[1], ones, psi, ones, ones]
        columns += [(counts * (counts - 1)).sum(axis=1), *counts.T]
        models.append(np.stack([np.asarray(column, dtype=float) for column in columns], axis=1))
    return np.stack(models, axis=2)


def coverage(
    population: np.ndarray,
    n_items: int,
    cohorts: int,
    draws: int,
    seed: int,
    level: float = 0.95,
    **rules,
) -> pd.DataFrame:
    """Share of simulated cohorts whose percentile interval holds the population's value.

    Parameters
    ----------
    population : array, shape (items, 14, models)
        Linear forms of the items that cohorts are drawn from, with replacement.
    n_items, cohorts, draws : int
        Items in a cohort, cohorts, and bootstrap draws within each.
    seed, level
        As for `bootstrap.multiplicities` and `bootstrap.intervals`.
    **rules
        ceiling_rule, score_weights and cpc_bonus of `bootstrap.resample`.

    Returns
    -------
    DataFrame, one row a statistic x mode x model
        statistic, mode (the modes differ in ESFP alone), model (its place in `population`),
        covered (share of the cohorts), width (mean width of the interval), cohorts (those in
        which no draw is undefined). A statistic undefined in the population is left out.
    """
    rng = np.random.default_rng(seed)
    inner = bootstrap.multiplicities(n_items, draws, rng)
    everything = np.ones((1, len(population)))
    truth = bootstrap.resample(everything, population, "full", **rules)
    ends: dict[tuple[str, str], list] = {(name, mode): [] for name, mode in SHOWN}
    for _ in range(cohorts):
        items = population[rng.integers(0, len(population), size=n_items)]
        drawn = {mode: bootstrap.resample(inner, items, mode, **rules) for mode in MODES}
        stacked = np.stack([drawn[mode][name] for name, mode in ends])
        found = np.percentile(stacked, [50 * (1 - level), 50 * (1 + level)], axis=1)
        for place, each in enumerate(ends.values()):
            each.append(found[:, place])
    rows = []
    for (name, mode), found in ends.items():
        low, high = np.moveaxis(np.array(found), 1, 0)  # cohorts x models
        known = ~np.isnan(low) & ~np.isnan(truth[name][0])
        held = known & (low <= truth[name][0]) & (truth[name][0] <= high)
        for model in np.flatnonzero(known.any(axis=0)):
            some = known[:, model]
            width = (high - low)[some, model].mean()
            rows.append((name, mode, int(model), held[some, model].mean(), width, int(some.sum())))
    return pd.DataFrame(rows, columns="statistic mode model covered width cohorts".split())


def numbers(tables: dict[str, pd.DataFrame]) -> dict:
    """Least and mean coverage over the models by name, for results/bootstrap.json."""
    found = {}
    for population, table in tables.items():
        for (name, mode), part in table.groupby(["statistic", "mode"], sort=False):
            key = f"bootstrap.covered.{population}.{mode}.{name}"
            found |= {key: part["covered"].mean(), f"{key}.least": part["covered"].min()}
    return found
