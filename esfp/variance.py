"""How much of the spread between answers is the items', and how much generation's.

Only a run with several samples a prompt can tell. One-way analysis of variance with the item as a
random effect, separately for each model.
"""

from __future__ import annotations

import pandas as pd


def components(values: pd.DataFrame) -> dict[str, float]:
    """Variance components of one measure of one model.

    Parameters
    ----------
    values : DataFrame
        `item_id value`, one row an item x sample; undefined values (NaN) are left out.

    Returns
    -------
    dict
        generation (mean square within items), item ((mean square between - within) / n0, at least
        0, with n0 the effective number of samples an item), reliability (ICC(1): item's share of
        the variance of a single sample), items, samples (n0). NaN where no item has two values
        or there is one item.

    References
    ----------
    Searle, Casella and McCulloch (1992), Variance Components, section 3.6; Shrout and Fleiss
    (1979), Psychological Bulletin 86, 420-428.
    """
    groups = values.dropna(subset="value").groupby("item_id")["value"]
    sizes, means, within = groups.size(), groups.mean(), groups.var(ddof=1).fillna(0)
    n, k = int(sizes.sum()), len(sizes)
    nothing = dict.fromkeys(("generation", "item", "reliability"), float("nan"))
    if k < 2 or n == k:
        return nothing | {"items": k, "samples": float(n / k) if k else float("nan")}
    generation = float((within * (sizes - 1)).sum() / (n - k))
    grand = (sizes * means).sum() / n
    between = float((sizes * (means - grand) ** 2).sum() / (k - 1))
    samples = float((n - (sizes**2).sum() / n) / (k - 1))
    item = max(0.0, (between - generation) / samples)
    total = item + generation
    reliability = item / total if total > 0 else float("nan")
    found = {"generation": generation, "item": item, "reliability": reliability}
    return found | {"items": k, "samples": samples}


def per_sample(
    measures: pd.DataFrame, distances: pd.DataFrame, contrast: list[str]
) -> pd.DataFrame:
    """delta SCD and PSI of each model, item and sample, the n-th answers of an item together.

    Parameters
    ----------
    measures, distances
        As `score.measures` and `score.psi` return them.

    Returns
    -------
    DataFrame
        `model measure item_id sample value`.
    """
    cell = ["model", "item_id", "sample"]
    wide = measures.pivot_table(index=cell, columns="phrasing", values="scd", sort=False)
    wide = wide.reindex(columns=contrast)
    shift = (wide[contrast[1]] - wide[contrast[0]]).rename("value").reset_index()
    return pd.concat(
        [
            shift.assign(measure="delta_scd"),
            distances[cell].assign(value=distances["psi"], measure="psi"),
        ],
        ignore_index=True,
    )[["model", "measure", "item_id", "sample", "value"]]


def table(values: pd.DataFrame) -> pd.DataFrame:
    """`components` of each model and measure, one row each."""
    rows = [
        {"model": model, "measure": measure} | components(part)
        for (model, measure), part in values.groupby(["model", "measure"], sort=False)
    ]
    return pd.DataFrame(rows)


def numbers(table: pd.DataFrame) -> dict:
    """Variance components by name, for results/score.json."""
    return {
        f"score.variance.{row.measure}.{name}.{row.model}": None
        if pd.isna(getattr(row, name))
        else getattr(row, name)
        for row in table.itertuples()
        for name in ("generation", "item", "reliability")
    }
