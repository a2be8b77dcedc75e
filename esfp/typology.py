"""Table 1 made operational: where a model stands in the plane of stance under P1 and under P2."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import chi2

from esfp import by_type

CELLS = ["over-aligned", "flexible", "erratic", "under-aligned"]


def cell(minus, plus, cut: float) -> np.ndarray:
    """Cell of Table 1: at or above `cut` is high; '' where a level is undefined.

    Parameters
    ----------
    minus, plus : arrays of one shape
        Stance level under the de-subjectified and under the subjectified phrasing, 0 to 1.
    """
    minus, plus = np.asarray(minus, dtype=float), np.asarray(plus, dtype=float)
    place = 2 * (minus >= cut) + (plus >= cut)
    named = np.array([CELLS[0], CELLS[1], CELLS[2], CELLS[3]], dtype=object)[place]
    return np.where(np.isnan(minus) | np.isnan(plus), "", named)


def ellipse(minus: np.ndarray, plus: np.ndarray, level: float) -> tuple[float, float, float]:
    """Width, height and angle (degrees) of the normal ellipse that holds `level` of the draws."""
    both = np.stack([minus, plus])
    both = both[:, ~np.isnan(both).any(axis=0)]
    if both.shape[1] < 2:
        return (np.nan, np.nan, np.nan)
    values, vectors = np.linalg.eigh(np.cov(both))
    axes = 2 * np.sqrt(np.clip(values, 0, None) * chi2.ppf(level, 2))
    angle = np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1]))
    return float(axes[1]), float(axes[0]), float(angle)


def table(
    forms: np.ndarray,
    models: list[str],
    weights: np.ndarray,
    cut: float,
    level: float,
    items: pd.DataFrame,
) -> pd.DataFrame:
    """Place of each model, how often its draws lie in each cell, and its items cell by cell.

    Parameters
    ----------
    forms, models, weights
        As `bootstrap.linear_forms` and `bootstrap.multiplicities` give them.
    cut
        The level, 0 to 1, from which stance counts as high, under both phrasings.
    items
        As items.parquet: `model scd_minus scd_plus`.

    Returns
    -------
    DataFrame, one row a model
        model, scd_minus, scd_plus, cell, then the share of draws in each cell (`draws_...`), the
        share of items (`items_...`, of those with both levels, `n_items`), and width, height and
        angle of the ellipse.
    """
    point = by_type.measured(np.ones((1, len(forms))), forms)
    drawn = by_type.measured(weights, forms)
    rows = []
    for m, model in enumerate(models):
        minus, plus = point["scd_minus"][0, m], point["scd_plus"][0, m]
        row = {"model": model, "scd_minus": minus, "scd_plus": plus}
        row["cell"] = str(cell(minus, plus, cut))
        own = cell(drawn["scd_minus"][:, m], drawn["scd_plus"][:, m], cut)
        row |= _shares("draws", own[own != ""])
        mine = items[items["model"] == model]
        by_item = cell(mine["scd_minus"], mine["scd_plus"], cut)
        by_item = by_item[by_item != ""]
        row |= _shares("items", by_item) | {"n_items": len(by_item)}
        ends = ellipse(drawn["scd_minus"][:, m], drawn["scd_plus"][:, m], level)
        row |= dict(zip(("width", "height", "angle"), ends, strict=True))
        rows.append(row)
    return pd.DataFrame(rows)


def _shares(prefix: str, cells: np.ndarray) -> dict[str, float]:
    key = {name: f"{prefix}_{name.replace('-', '_')}" for name in CELLS}
    if not len(cells):
        return dict.fromkeys(key.values(), np.nan)
    return {key[name]: float((cells == name).mean()) for name in CELLS}


def numbers(table: pd.DataFrame) -> dict:
    """The table by name, for results/bootstrap.json."""
    return {
        f"bootstrap.typology.{name}.{row['model']}": None if pd.isna(value) else value
        for row in table.to_dict("records")
        for name, value in row.items()
        if name not in ("model", "width", "height", "angle")
    }
