"""PSI beside other definitions of it, and its floor: what two answers to one prompt differ by.

PSI is a distance between two answers that were drawn apart, so it is above zero for a model that
does not react to the framing at all. Section 4.3 of the paper (Eq. 3 and 4) and its section 8,
which calls the contrast P0 to P1 the wrong one.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from esfp import bootstrap
from esfp.equations import CPC_BONUS, WEIGHTS, composite, leaderboard, psi_ceiling

PUBLISHED = ["P0", "P1"]  # the paper's contrast
CEILING = 0.199  # the paper's cohort's (Section 4.3)
DEFINITIONS = {"published": "p95", "fixed": CEILING, "contrast": "p95"}  # and their ceilings


def definitions(table: pd.DataFrame, weights=WEIGHTS, cpc_bonus: float = CPC_BONUS) -> pd.DataFrame:
    """Scaled PSI and score under the published definition, a fixed ceiling and another contrast.

    Parameters
    ----------
    table : DataFrame, one row a model
        model, delta_ar, delta_scd, cpc_kappa, and the mean PSI of the paper's contrast
        (`psi_published`) and of the other measures' (`psi_contrast`, all NaN where unknown).

    Returns
    -------
    DataFrame, one row a model, in the order given
        model, psi_published, psi_contrast; for each d of `DEFINITIONS` ceiling_d, scaled_d, esfp_d
        and rank_d; for the two new ones ratio_d, by which their scaled PSI is multiplied to give
        the published one (NaN where theirs is 0), and change_d, ESFP as published less theirs:
        w_psi (scaled_published - scaled_d) (1 + cpc_bonus max(kappa, 0)).
    """
    out = table[["model", "psi_published", "psi_contrast"]].copy()
    means = {"fixed": "psi_published"} | {name: f"psi_{name}" for name in ("published", "contrast")}
    for name, rule in DEFINITIONS.items():
        raw = table[means[name]].astype(float)
        ceiling = psi_ceiling(raw, rule) if raw.notna().any() else np.nan
        scored = leaderboard(table.assign(psi_mean=raw), ceiling, weights, cpc_bonus)
        scored = scored.set_index("model").loc[table["model"]]
        out[f"ceiling_{name}"] = ceiling
        for new, column in {"scaled": "psi_scaled", "esfp": "esfp", "rank": "rank"}.items():
            out[f"{new}_{name}"] = scored[column].array
    for name in ("fixed", "contrast"):
        known = out[f"scaled_{name}"].where(out[f"scaled_{name}"] > 0)
        out[f"ratio_{name}"] = out["scaled_published"] / known
        out[f"change_{name}"] = out["esfp_published"] - out[f"esfp_{name}"]
    return out


def within(embeddings: pd.DataFrame) -> pd.DataFrame:
    """Mean cosine distance between the answers to one prompt, over all pairs of them.

    With unit vectors u of n answers it is 1 - (|sum u|^2 - n) / (n (n - 1)).

    Returns
    -------
    DataFrame
        model, item_id, phrasing, within (0 to 2), where at least two answers are embedded.
    """
    keys = ["model", "item_id", "phrasing"]
    known = embeddings.dropna(subset=["embedding"])
    known = known[known.duplicated(keys, keep=False)]
    if known.empty:
        return known[keys].assign(within=np.empty(0))
    vectors = np.stack(known["embedding"]).astype(float)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    groups = known.groupby(keys, sort=False)
    place, n = groups.ngroup().to_numpy(), groups.size()
    sums = np.zeros((len(n), vectors.shape[1]))
    np.add.at(sums, place, vectors)
    cosine = ((sums**2).sum(axis=1) - n) / (n * (n - 1))
    return (1 - cosine).clip(0, 2).rename("within").reset_index()


def floor_by_item(
    embeddings: pd.DataFrame, distances: pd.DataFrame, contrast: list[str]
) -> pd.DataFrame:
    """PSI of each item beside the distances within its two prompts, averaged to the floor.

    With X and Y drawn from the answers to the two prompts and unit vectors, E d(X, Y) less the
    mean of E d(X, X') and E d(Y, Y') is half the squared distance between the mean embeddings: zero
    where the framing does not move the mean answer, never below. It is the energy distance's
    correction (Szekely and Rizzo 2013), and unbiased item by item.

    Parameters
    ----------
    embeddings : DataFrame
        Of every answer, those asked again among them.
    distances : DataFrame
        As `score.psi` returns it for `contrast`.

    Returns
    -------
    DataFrame
        model, item_id, floor_first, floor_second, floor (their mean), psi and above (psi - floor),
        where all of them are known.
    """
    cell = ["model", "item_id"]
    found = within(embeddings[embeddings["phrasing"].isin(contrast)])
    table = found.pivot(index=cell, columns="phrasing", values="within").reindex(columns=contrast)
    table.columns = ["floor_first", "floor_second"]
    table["floor"] = (table["floor_first"] + table["floor_second"]) / 2
    table["psi"] = distances.groupby(cell)["psi"].mean()
    table["above"] = table["psi"] - table["floor"]
    return table.dropna().reset_index()


def floor(
    by_item: pd.DataFrame, models: list[str], items: list[str], draws: int, level: float, seed: int
) -> pd.DataFrame:
    """Means of `floor_by_item` over items, with percentile intervals over drawn items.

    PSI and floor of an item stay together, and every model gets the draws that `5_bootstrap`
    gives it. A model without floor, or with one item, has no interval.

    Returns
    -------
    DataFrame, one row a model
        model, n_floor (items), then floor_first, floor_second, psi_paired (of the same items), and
        floor and above, each with `_low` and `_high`.
    """
    drawn = bootstrap.multiplicities(len(items), draws, seed)
    tails = [50 * (1 - level), 50 * (1 + level)]
    rows = []
    for model in models:
        mine = by_item[by_item["model"] == model].set_index("item_id").reindex(items)
        row = {"model": model, "n_floor": int(mine["floor"].count())}
        row |= mine[["floor_first", "floor_second"]].mean().to_dict()
        row["psi_paired"] = mine["psi"].mean()
        defined = mine["floor"].notna().to_numpy(float)
        hit = drawn @ defined
        for name in ("floor", "above"):
            bounds = [np.nan, np.nan]
            if row["n_floor"] > 1:
                sums = (drawn @ mine[name].fillna(0).to_numpy())[hit > 0]
                bounds = np.percentile(sums / hit[hit > 0], tails)
            row |= {name: mine[name].mean(), f"{name}_low": bounds[0], f"{name}_high": bounds[1]}
        rows.append(row)
    return pd.DataFrame(rows)


def floor_in_score(
    floors: pd.DataFrame, scores: pd.DataFrame, weights=WEIGHTS, cpc_bonus: float = CPC_BONUS
) -> pd.DataFrame:
    """What the floor is of each score, and the score that PSI above its floor gives.

    Parameters
    ----------
    floors : DataFrame
        As `floor` returns it.
    scores : DataFrame
        As `equations.leaderboard` returns it.

    Returns
    -------
    DataFrame
        `floors` with floor_scaled (by the run's ceiling, at most 1), floor_share (of flex, so of
        ESFP too, since the bonus multiplies all parts alike; NaN where flex is not above 0) and
        esfp_above.
    """
    own = scores.set_index("model").loc[floors["model"]].reset_index()
    scaled = (floors["floor"] / own["psi_ceiling"]).clip(0, 1)
    above = (floors["above"] / own["psi_ceiling"]).clip(0, 1)
    _, esfp = composite(
        own["delta_ar"], own["delta_scd"], above, own["cpc_kappa"], weights, cpc_bonus
    )
    share = weights[2] * scaled / own["flex"].where(own["flex"] > 0)
    return floors.assign(floor_scaled=scaled, floor_share=share, esfp_above=esfp)


def missing_because(floors: pd.DataFrame, contrast: list[str]) -> dict[str, str]:
    """Why a model has no floor, or its floor no share of a score, by model."""
    reasons = {}
    for row in floors.itertuples():
        if not row.n_floor:
            reasons[row.model] = (
                f"no item has two answers to {contrast[0]} and two to {contrast[1]}; "
                "generate.again asks for them"
            )
        elif np.isnan(row.floor_share):
            reasons[row.model] = "the model has no score above zero for the floor to be a share of"
    return reasons
