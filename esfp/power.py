"""How many items it takes to tell two models apart (planning a run).

The standard error of a paired difference over n items is s / sqrt(n), with s read off the
bootstrap of a run. Student's t for paired samples then says what n gives the power wanted.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from statsmodels.stats.power import TTestPower

DIFFERENCE, POWER, ALPHA = 0.05, 0.80, 0.05


def item_spread(drawn: np.ndarray, n_items: int) -> np.ndarray:
    """Standard deviation of one item's part in the difference of every two models.

    Parameters
    ----------
    drawn : array, shape (draws, models)
        A statistic in each draw of `n_items` items.

    Returns
    -------
    array, shape (models, models)
        sqrt(n_items) times the standard deviation of the difference over the draws.
    """
    moved = drawn[:, :, None] - drawn[:, None, :]
    with np.errstate(invalid="ignore"):
        return np.sqrt(n_items) * np.nanstd(moved, axis=0, ddof=1)


def items_needed(
    spread: float, difference: float = DIFFERENCE, power: float = POWER, alpha: float = ALPHA
) -> float:
    """Items at which a difference is found with the power wanted, rounded up.

    Parameters
    ----------
    spread
        Standard deviation of one item's part, as `item_spread` gives it.

    Returns
    -------
    float
        1 item too few would not do; 2.0, the fewest for a t test, where there is no spread.
    """
    if not spread > 0:
        return 2.0 if spread == 0 else float("nan")
    effect = difference / spread
    test = TTestPower()
    low, high = 2, 4
    while test.power(effect, high, alpha) < power:
        low, high = high, 2 * high
    while high - low > 1:  # the power rises with n: halve the gap
        middle = (low + high) // 2
        low, high = (middle, high) if test.power(effect, middle, alpha) < power else (low, middle)
    return float(low if test.power(effect, low, alpha) >= power else high)


def curve(spread: float, items, difference: float = DIFFERENCE, alpha: float = ALPHA) -> np.ndarray:
    """Power at each number of items, 1 where the pair has no spread; shape of `items`."""
    if spread == 0:
        return np.ones(len(items))
    return np.array([TTestPower().power(difference / spread, n, alpha) for n in items])


def table(
    drawn: dict[str, np.ndarray],
    point: dict[str, np.ndarray],
    models: list[str],
    n_items: int,
    samples: int = 3,
    difference: float = DIFFERENCE,
) -> pd.DataFrame:
    """Items needed to tell any two models of a run apart, by statistic.

    Drawing each prompt k times instead of once divides the part of s^2 that comes from generation
    by k and leaves the part that comes from items. With one sample a prompt the two are not told
    apart: `items_needed` is right if all of s^2 were the items', and `items_needed_samples` is
    what k samples would need if all of it were generation's. The truth lies between.

    Parameters
    ----------
    drawn, point
        Statistic -> draws x models, and statistic -> models. A model without a value is left out.
    samples
        k above.

    Returns
    -------
    DataFrame, one row a statistic x pair
        statistic, first, second, spread (s), detectable (the difference found with the same power
        at this run's number of items), items_needed, items_needed_samples.
    """
    rows = []
    for name in ("esfp", "delta_scd"):
        known = np.flatnonzero(~np.isnan(point[name]))
        spreads = item_spread(drawn[name][:, known], n_items)
        for a in range(len(known)):
            for b in range(a + 1, len(known)):
                s = float(spreads[a, b])
                pair = (name, models[known[a]], models[known[b]], s)
                rows.append(
                    (
                        *pair,
                        _detectable(s, n_items),
                        items_needed(s, difference),
                        items_needed(s / samples**0.5, difference),
                    )
                )
    columns = "statistic first second spread detectable items_needed items_needed_samples"
    return pd.DataFrame(rows, columns=columns.split())


def _detectable(spread: float, n_items: int) -> float:
    if n_items < 2 or not spread > 0:
        return 0.0 if spread == 0 else float("nan")
    effect = TTestPower().solve_power(nobs=n_items, alpha=ALPHA, power=POWER)
    return float(np.squeeze(effect)) * spread


def numbers(table: pd.DataFrame) -> dict:
    """Items needed and detectable differences by name, for results/bootstrap.json."""
    return {
        f"bootstrap.power.{row.statistic}.{name}.{row.first}.{row.second}": getattr(row, name)
        for row in table.itertuples()
        for name in ("spread", "detectable", "items_needed", "items_needed_samples")
    }
