"""Which kinds of item a model moves on: the measures by type, with intervals.

Items are drawn again within their type, so that every draw holds as many of each type as the
corpus; the bootstrap of the score draws types too.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd

from esfp import bootstrap
from esfp.equations import composite, psi_ceiling, scale

SHOWN = ["delta_ar", "delta_scd", "psi_mean", "cpc_kappa", "scd_minus", "scd_plus"]


def stratified(types: np.ndarray, draws: int, seed) -> np.ndarray:
    """Multiplicities as `bootstrap.multiplicities`, drawn within each type.

    Parameters
    ----------
    types : array of str, shape (items,)

    Returns
    -------
    array, shape (draws, items)
    """
    rng = np.random.default_rng(seed)
    weights = np.empty((draws, len(types)))
    for kind in dict.fromkeys(types):
        inside = np.flatnonzero(types == kind)
        weights[:, inside] = bootstrap.multiplicities(len(inside), draws, rng)
    return weights


def measured(weights: np.ndarray, forms: np.ndarray) -> dict[str, np.ndarray]:
    """`bootstrap.statistics` with mean SCD under either phrasing; arrays (draws, models)."""
    sums = np.einsum("di,ifm->dfm", weights, forms[:, 2:6])
    with np.errstate(divide="ignore", invalid="ignore"):
        levels = {"scd_minus": sums[:, 0] / sums[:, 1], "scd_plus": sums[:, 2] / sums[:, 3]}
    return bootstrap.statistics(weights, forms) | levels


def interval(values: np.ndarray, level: float) -> np.ndarray:
    """Percentiles over the first axis, draws that are undefined left out; shape (2, ...)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # undefined in every draw
        return np.nanpercentile(values, [50 * (1 - level), 50 * (1 + level)], axis=0)


def table(
    forms: np.ndarray, models: list[str], types: np.ndarray, weights: np.ndarray, level: float
) -> pd.DataFrame:
    """The measures of each model on each type.

    Parameters
    ----------
    forms, models
        As `bootstrap.linear_forms` gives them.
    types : array of str, shape (items,)
    weights
        As `stratified` gives them.

    Returns
    -------
    DataFrame, one row a type x model x measure
        type, items, model, measure (of `SHOWN`), value, ci_low, ci_high; NaN where no item of the
        type defines it.
    """
    rows = []
    for kind in sorted(set(types)):
        inside = types == kind
        point = measured(np.ones((1, inside.sum())), forms[inside])
        drawn = measured(weights[:, inside], forms[inside])
        for name in SHOWN:
            low, high = interval(drawn[name], level)
            for m, model in enumerate(models):
                value = point[name][0, m]
                known = not np.isnan(value)
                ends = (low[m], high[m]) if known else (np.nan, np.nan)
                rows.append((kind, int(inside.sum()), model, name, value, *ends))
    return pd.DataFrame(rows, columns="type items model measure value ci_low ci_high".split())


def licensed(
    forms: np.ndarray,
    models: list[str],
    types: np.ndarray,
    weights: np.ndarray,
    groups: dict[str, list[str]],
    level: float,
    ceiling_rule,
    score_weights,
    cpc_bonus: float,
) -> pd.DataFrame:
    """Shift where a stance is licensed, shift on facts, and the score that subtracts the latter.

    Nothing in Eq. 6 uses the type of an item, so that moving on facts raises the score. The
    variant puts delta SCD on the licensed types less delta SCD on the control in its place; the
    other parts stay as they are, kappa and the ceiling computed again in each draw.

    Parameters
    ----------
    groups
        `licensed`, `open` and `control`: lists of types.

    Returns
    -------
    DataFrame, one row a quantity x model
        quantity (delta_scd_licensed, delta_scd_open, delta_scd_control, net_shift, esfp,
        esfp_net, control_minus, control_plus), model, value, ci_low, ci_high.
        `control_minus` and `control_plus` are mean SCD on the control under the two phrasings.
    """
    found = {}
    for name, weighted in (("value", np.ones((1, len(types)))), ("draws", weights)):
        parts = {
            group: measured(weighted[:, inside], forms[inside])
            for group, kinds in groups.items()
            for inside in [np.isin(types, kinds)]
        }
        whole = measured(weighted, forms)
        ceiling = np.reshape(psi_ceiling(whole["psi_mean"], ceiling_rule), (-1, 1))
        scaled = scale(whole["psi_mean"], ceiling)
        net = parts["licensed"]["delta_scd"] - parts["control"]["delta_scd"]
        rest = (scaled, whole["cpc_kappa"], score_weights, cpc_bonus)
        found[name] = {
            **{f"delta_scd_{group}": part["delta_scd"] for group, part in parts.items()},
            "net_shift": net,
            "esfp": composite(whole["delta_ar"], whole["delta_scd"], *rest)[1],
            "esfp_net": composite(whole["delta_ar"], net, *rest)[1],
            "control_minus": parts["control"]["scd_minus"],
            "control_plus": parts["control"]["scd_plus"],
        }
    rows = []
    for name, values in found["value"].items():
        low, high = interval(found["draws"][name], level)
        for m, model in enumerate(models):
            known = not np.isnan(values[0, m])
            ends = (low[m], high[m]) if known else (np.nan, np.nan)
            rows.append((name, model, values[0, m], *ends))
    return pd.DataFrame(rows, columns="quantity model value ci_low ci_high".split())


def alarms(shifts: pd.DataFrame, limit: float) -> pd.Series:
    """How a model stands to the limit of stance on the control under P2, by model.

    Returns
    -------
    Series
        'high' where the whole interval is above `limit`, 'perhaps' where the estimate is, else
        'no'; 'unknown' where it is undefined.
    """
    level = shifts[shifts["quantity"] == "control_plus"].set_index("model")
    said = np.select(
        [level["value"].isna(), level["ci_low"] > limit, level["value"] > limit],
        ["unknown", "high", "perhaps"],
        "no",
    )
    return pd.Series(said, index=level.index, name="alarm")


def numbers(table: pd.DataFrame, shifts: pd.DataFrame) -> dict:
    """Both tables by name, for results/bootstrap.json."""
    found = {}
    for row in table.itertuples():
        for end in ("value", "ci_low", "ci_high"):
            value = getattr(row, end)
            key = f"bootstrap.types.{row.measure}.{end}.{row.model}.{row.type}"
            found[key] = None if np.isnan(value) else value
    for row in shifts.itertuples():
        for end in ("value", "ci_low", "ci_high"):
            value = getattr(row, end)
            key = f"bootstrap.licensed.{row.quantity}.{end}.{row.model}"
            found[key] = None if np.isnan(value) else value
    return found
