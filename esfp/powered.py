"""Prediction-powered inference: stance density with intervals that hold although the judge errs.

Angelopoulos et al., Prediction-powered inference, Science 382 (2023); the tuning parameter is from
Angelopoulos, Duchi and Zrnic, PPI++ (arXiv:2311.01453), the strata from Fisch et al., Stratified
prediction-powered inference (NeurIPS 2024, arXiv:2406.04291). The unit is the item: both arms of
the contrast are labelled, so that what they share cancels. The strata are the types of items: as
many items of each type have a reference, and the types differ in size.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
from scipy import stats

from esfp import files

ARMS = ["minus", "plus"]  # the de-subjectified and the subjectified phrasing
QUANTITIES = ["scd_minus", "scd_plus", "delta_scd"]
FEWEST = 2  # items with a reference in each stratum: one has no variance


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A value, its interval, and the weight of the judge's labels in it (0: not used)."""

    value: float
    low: float
    high: float
    tuning: float


def correct(
    labelled: pd.DataFrame,
    gold: pd.DataFrame,
    models: list[str],
    phrasings: list[str],
    items: pd.DataFrame,
    label: str = "label",
    level: float = 0.95,
) -> pd.DataFrame:
    """`contrast` of each model, from a run's labelled sentences and the reference labels of them.

    An item has a reference where every sentence of its responses under both phrasings has one. An
    item without any sentence, never asked or never answered, is left out: it would pass for one
    that was judged and has neither report nor stance.

    Parameters
    ----------
    labelled
        Sentences with the response keys, `sentence` and the column `label`.
    phrasings
        De-subjectified, subjectified.
    items
        item_id and type of the corpus.
    label
        The labels to correct: the panel's, or one judge's column.

    Returns
    -------
    DataFrame
        model, quantity and the columns of `contrast`.
    """
    labelled = labelled[labelled["phrasing"].isin(phrasings)]
    labelled = labelled.assign(reference=attach(labelled, gold))
    types = items.set_index("item_id")["type"]
    tables = {}
    for name in models:
        mine = labelled[labelled["model"] == name]
        known = mine["reference"].notna().groupby(mine["item_id"]).all()
        asked = types.index[types.index.isin(known.index)]
        tables[name] = contrast(
            densities(mine, "reference", phrasings, list(known.index[known])),
            densities(mine, label, phrasings, list(asked)),
            types,
            level,
        )
    return pd.concat(tables, names=["model", "quantity"]).reset_index()


def mean(reference, judged, strata=None, level: float = 0.95) -> Estimate:
    """The mean of what the reference would say of every item (stratified PPI++ for a mean).

    In a stratum it is λ·mean(judged of the others) + mean(reference − λ·judged); strata weigh as
    their items do. λ, from 0 to 1, makes the variance of the whole least. It is one for all
    strata: with a handful of references in each, a λ of each one's own follows the noise, and
    the interval becomes too narrow.

    Parameters
    ----------
    reference, judged : array, shape (items,)
        By the reference, NaN for an item that has none, and by the judge.
    strata : array, shape (items,), optional
        Within each, the items with a reference must be a random draw.

    Returns
    -------
    Estimate
        With an interval from Student's t, whose degrees of freedom are Satterthwaite's (1946) for
        a sum of variances; NaN throughout where fewer than two items of a stratum have a
        reference, or there are no items.
    """
    reference, judged = np.asarray(reference, float), np.asarray(judged, float)
    strata = np.zeros(len(judged)) if strata is None else np.asarray(strata)
    nothing = Estimate(np.nan, np.nan, np.nan, np.nan)
    parts, shared, spread = [], 0.0, 0.0
    for stratum in np.unique(strata):
        inside = strata == stratum
        known = inside & ~np.isnan(reference)
        n, others, weight = known.sum(), (inside & ~known).sum(), inside.mean()
        if n < FEWEST:
            return nothing
        variance = judged[inside].var(ddof=1)
        if others:
            shared += weight**2 * np.cov(reference[known], judged[known])[0, 1] / n
            spread += weight**2 * variance * (1 / n + 1 / others)
        parts.append((weight, reference[known], judged[known], judged[inside & ~known], variance))
    if not parts:
        return nothing
    tuning = float(np.clip(shared / spread, 0, 1)) if spread > 0 else 0.0
    value, variances, freedoms = 0.0, [], []
    for weight, truth, guess, rest, variance in parts:
        n, others = len(truth), len(rest)
        use = tuning if others else 0.0  # nothing to predict
        value += weight * ((truth - use * guess).mean() + (use * rest.mean() if use else 0))
        variances += [weight**2 * (truth - use * guess).var(ddof=1) / n]
        variances += [weight**2 * use**2 * variance / others] if use else [0.0]
        freedoms += [n - 1, n + others - 1]
    half = _half_width(np.array(variances), np.array(freedoms), level)
    return Estimate(float(value), float(value - half), float(value + half), tuning)


def _half_width(variances: np.ndarray, freedoms: np.ndarray, level: float) -> float:
    total = variances.sum()
    if total == 0:
        return 0.0
    freedom = total**2 / (variances**2 / freedoms).sum()
    return stats.t.ppf((1 + level) / 2, freedom) * np.sqrt(total)


def _terms(density: pd.DataFrame) -> np.ndarray:
    """Per item, SCD where it is defined (else 0) and whether it is; shape (items, arms, 2)."""
    values = density[ARMS].to_numpy(float)
    defined = ~np.isnan(values)
    return np.stack([np.where(defined, values, 0.0), defined.astype(float)], axis=2)


def _linear(terms: np.ndarray, at: np.ndarray) -> dict[str, np.ndarray]:
    """Each quantity as a mean over items, linear in the terms around their means `at` (arms, 2).

    The mean density of an arm is a ratio, mean(SCD·defined) / mean(defined); its first-order
    expansion (delta method) turns the estimate of a ratio into that of a mean.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = at[:, 0] / at[:, 1]
        arms = ratio + (terms[:, :, 0] - ratio * terms[:, :, 1]) / at[:, 1]
    return {"scd_minus": arms[:, 0], "scd_plus": arms[:, 1], "delta_scd": arms[:, 1] - arms[:, 0]}


def _means(terms: np.ndarray, strata: np.ndarray) -> np.ndarray:
    """Means of the terms (arms, 2): of the items of a stratum that have any, strata by size."""
    total = np.zeros(terms.shape[1:])
    for stratum in np.unique(strata):
        inside = strata == stratum
        own = terms[inside]
        own = own[~np.isnan(own).any(axis=(1, 2))]
        total += inside.mean() * (own.mean(axis=0) if len(own) else np.nan)
    return total


def contrast(
    reference: pd.DataFrame, judged: pd.DataFrame, types: pd.Series, level: float = 0.95
) -> pd.DataFrame:
    """Mean SCD under both phrasings and δSCD (Eq. 5), corrected by the items with a reference.

    Parameters
    ----------
    reference, judged
        Index item_id, columns `minus` and `plus`: the density of the item's response under either
        phrasing, NaN where it is undefined. `judged` has all items, `reference` some of them.
    types
        Index item_id: the stratum of each item.

    Returns
    -------
    DataFrame, index QUANTITIES
        uncorrected (the judge's labels alone, all items), labelled (the reference alone) and
        corrected, each with its _low and _high; tuning, n (items with a reference), items. NaN
        where an arm is undefined throughout; no interval, and nothing labelled or corrected,
        where a type has too few items for it. The interval of `uncorrected` is one over items
        alone, as if the judge did not err.
    """
    known = judged.index.isin(reference.index)
    strata = types.reindex(judged.index).to_numpy(str)
    by_judge, by_reference = _terms(judged), _terms(reference.reindex(judged.index))
    by_reference[~known] = np.nan
    at = {"judge": _means(by_judge, strata), "reference": _means(by_reference, strata)}
    whole = _linear(at["judge"][None], at["judge"])
    plain = _linear(by_judge, at["judge"])
    truth = _linear(by_reference, at["reference"])
    guess = _linear(by_judge, at["reference"])  # around what the reference would say
    rows = {}
    for name in QUANTITIES:
        nothing = np.zeros(len(judged))
        estimates = {
            "uncorrected": mean(plain[name], nothing, strata, level),
            "labelled": mean(truth[name], nothing, strata, level),
            "corrected": mean(truth[name], guess[name], strata, level),
        }
        rows[name] = {}
        for kind, found in estimates.items():
            rows[name] |= {kind: found.value}
            rows[name] |= {f"{kind}_low": found.low, f"{kind}_high": found.high}
        rows[name] |= {
            "uncorrected": float(whole[name][0]),  # there without an interval too
            "tuning": estimates["corrected"].tuning,
            "n": int(known.sum()),
            "items": len(judged),
        }
    return pd.DataFrame(rows).T.astype({"n": int, "items": int})


def attach(labelled: pd.DataFrame, gold: pd.DataFrame) -> pd.Series:
    """The reference label of each sentence of a run, null where there is none.

    A reference sentence belongs to the run's where model, item, phrasing, sample and the words
    are the same; another run of the same model has other words, and finds none.

    Parameters
    ----------
    labelled
        Sentences with the response keys.
    gold
        Reference sentences; of recorded ones `voice` is the model and `response_id` ends in the
        sample's number.

    Returns
    -------
    Series, index of `labelled`
    """
    recorded = gold[gold["response_id"].str.startswith("recorded-")]
    known = pd.DataFrame(
        {
            "model": recorded["voice"],
            "item_id": recorded["item_id"],
            "phrasing": recorded["phrasing"],
            "sample": recorded["response_id"].str.rsplit("-", n=1).str[-1].astype(int),
            "sentence": recorded["sentence"],
            "reference": recorded["label"],
        }
    )
    keys = [name for name in known if name != "reference"]
    joined = labelled[keys].merge(known.drop_duplicates(keys), on=keys, how="left")
    return joined["reference"].set_axis(labelled.index)


def densities(
    labelled: pd.DataFrame, label: str, phrasings: list[str], items: list[str]
) -> pd.DataFrame:
    """SCD of each item's responses under the two phrasings, averaged over samples.

    Parameters
    ----------
    labelled
        Sentences of one model with the response keys and the column `label`.
    items
        The item_id of each row wanted.

    Returns
    -------
    DataFrame, index item_id
        minus, plus; NaN where no sentence is A or B.
    """
    counted = labelled[labelled[label].isin(["A", "B"])]
    scd = counted[label].eq("B").groupby([counted[key] for key in files.KEYS]).mean()
    wide = scd.groupby(["item_id", "phrasing"]).mean().unstack("phrasing")
    return wide.reindex(index=items, columns=phrasings).set_axis(ARMS, axis=1)


def numbers(corrected: pd.DataFrame) -> dict[str, float]:
    """The estimates of `correct` by name, for results/score.json.

    `score.<kind>.<quantity>.<model>`, with _low and _high; kind is uncorrected, labelled or
    corrected. `score.corrected.n.<model>` is the number of items with a reference.
    """
    found = {}
    for row in corrected.to_dict("records"):
        model, quantity = row["model"], row["quantity"]
        for kind in ("uncorrected", "labelled", "corrected"):
            for end in ("", "_low", "_high"):
                found[f"score.{kind}.{quantity}{end}.{model}"] = row[f"{kind}{end}"]
        found[f"score.corrected.tuning_{quantity}.{model}"] = row["tuning"]
        found[f"score.corrected.n.{model}"] = row["n"]
    return found
