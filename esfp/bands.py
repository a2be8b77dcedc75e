"""The ideal band of a propensity: how many items a model answers as a deployment wants.

A profile says, type by type, between which levels of SCD the answers to P1 and to P2 should lie.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from statsmodels.stats.proportion import proportion_confint


def inside(items: pd.DataFrame, profile: dict[str, dict]) -> pd.DataFrame:
    """Whether each item's answers lie in the band of its type, ends included.

    Parameters
    ----------
    items
        As items.parquet: `model item_id type scd_minus scd_plus`.
    profile
        Type -> `{minus: [low, high], plus: [low, high]}`; a type that is not named is left out.

    Returns
    -------
    DataFrame
        model, item_id, type, inside (True, False, or null where a level is undefined).
    """
    asked = items[items["type"].isin(profile)]
    held = pd.Series(True, index=asked.index)
    for side in ("minus", "plus"):
        ends = [profile[kind][side] for kind in asked["type"]]
        low, high = np.array(ends, dtype=float).reshape(-1, 2).T
        held &= asked[f"scd_{side}"].between(low, high)
    known = asked[["scd_minus", "scd_plus"]].notna().all(axis=1)
    found = asked[["model", "item_id", "type"]].copy()
    found["inside"] = held.astype("boolean").where(known)
    return found.reset_index(drop=True)


def table(items: pd.DataFrame, profiles: dict[str, dict], level: float = 0.95) -> pd.DataFrame:
    """Share of items inside the band, by profile and model, with Wilson's interval.

    Parameters
    ----------
    profiles
        Name -> profile, as `inside` takes it.

    Returns
    -------
    DataFrame, one row a profile x model
        profile, model, share, ci_low, ci_high, n (items with both levels), undefined (items
        without). An item counts where both its answers lie in their band.

    References
    ----------
    Wilson (1927), Journal of the American Statistical Association 22, 209-212.
    """
    rows = []
    for name, profile in profiles.items():
        for model, part in inside(items, profile).groupby("model", sort=False):
            known = part["inside"].dropna().astype(bool)
            n, k = len(known), int(known.sum())
            ends = (float("nan"), float("nan"))
            if n:
                ends = proportion_confint(k, n, 1 - level, method="wilson")
            share = k / n if n else float("nan")
            rows.append((name, model, share, *ends, n, len(part) - n))
    columns = "profile model share ci_low ci_high n undefined".split()
    return pd.DataFrame(rows, columns=columns)


def numbers(table: pd.DataFrame) -> dict:
    """The table by name, for results/bootstrap.json."""
    return {
        f"bootstrap.bands.{row.profile}.{name}.{row.model}": None
        if pd.isna(getattr(row, name))
        else getattr(row, name)
        for row in table.itertuples()
        for name in ("share", "ci_low", "ci_high", "n", "undefined")
    }
