"""Prediction-powered inference: stance density with intervals that hold although the judge errs.

Angelopoulos et al., Prediction-powered inference, Science 382 (2023); the tuning parameter is from
Angelopoulos, Duchi and Zrnic, PPI++ (arXiv:2311.01453). The unit is the item: both arms of the
contrast are labelled, so that what they share cancels.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
from scipy import stats

from esfp import files

ARMS = ["minus", "plus"]  # the de-subjectified and the subjectified phrasing
QUANTITIES = ["scd_minus", "scd_plus", "delta_scd"]


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
    items: list[str],
    level: float = 0.95,
) -> pd.DataFrame:
    """`contrast` of each model, from a run's labelled sentences and the reference labels of them.

    An item has a reference where every sentence of its responses under both phrasings has one.

    Parameters
    ----------
    labelled
        Sentences with the response keys, `sentence` and the panel's `label`.
    phrasings
        De-subjectified, subjectified.

    Returns
    -------
    DataFrame
        model, quantity and the columns of `contrast`.
    """
    labelled = labelled[labelled["phrasing"].isin(phrasings)]
    labelled = labelled.assign(reference=attach(labelled, gold))
    tables = {}
    for name in models:
        mine = labelled[labelled["model"] == name]
        complete = mine["reference"].notna().groupby([mine["item_id"], mine["phrasing"]]).all()
        both = complete.groupby("item_id").agg(["all", "size"])
        known = both.index[both["all"] & (both["size"] == len(phrasings))]
        tables[name] = contrast(
            densities(mine, "reference", phrasings, sorted(known)),
            densities(mine, "label", phrasings, items),
            level,
        )
    return pd.concat(tables, names=["model", "quantity"]).reset_index()


def mean(reference, judged, rest, level: float = 0.95) -> Estimate:
    """The mean of what the reference would say of every item (PPI++ for a mean).

    λ·mean(rest) + mean(reference − λ·judged), with the λ from 0 to 1 that makes the variance least.

    Parameters
    ----------
    reference, judged : array, shape (n,)
        By the reference and by the judge, of the items that have a reference.
    rest : array, shape (N,)
        By the judge, of the other items.

    Returns
    -------
    Estimate
        With a normal interval; NaN throughout where fewer than two items have a reference.
    """
    reference, judged, rest = (np.asarray(part, float) for part in (reference, judged, rest))
    n, others = len(reference), len(rest)
    if n < 2:
        return Estimate(np.nan, np.nan, np.nan, np.nan)
    tuning = 0.0
    if others > 1:
        spread = np.var(np.concatenate([judged, rest]), ddof=1)
        if spread > 0:
            shared = np.cov(reference, judged)[0, 1]
            tuning = float(np.clip(shared / ((1 + n / others) * spread), 0, 1))
    error = reference - tuning * judged
    value, variance = error.mean(), error.var(ddof=1) / n
    if tuning:
        value += tuning * rest.mean()
        variance += tuning**2 * rest.var(ddof=1) / others
    half = stats.norm.ppf((1 + level) / 2) * np.sqrt(variance)
    return Estimate(float(value), float(value - half), float(value + half), tuning)


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
    ratio = at[:, 0] / at[:, 1]
    arms = ratio + (terms[:, :, 0] - ratio * terms[:, :, 1]) / at[:, 1]
    return {"scd_minus": arms[:, 0], "scd_plus": arms[:, 1], "delta_scd": arms[:, 1] - arms[:, 0]}


def contrast(reference: pd.DataFrame, judged: pd.DataFrame, level: float = 0.95) -> pd.DataFrame:
    """Mean SCD under both phrasings and δSCD (Eq. 5), corrected by the items with a reference.

    Parameters
    ----------
    reference, judged
        Index item_id, columns `minus` and `plus`: the density of the item's response under either
        phrasing, NaN where it is undefined. `judged` has all items, `reference` some of them.

    Returns
    -------
    DataFrame, index QUANTITIES
        uncorrected (the judge's labels alone, all items), labelled (the reference alone) with
        labelled_low and labelled_high, corrected with corrected_low and corrected_high, tuning,
        n (items with a reference), items. NaN where an arm is undefined throughout.
    """
    known = judged.index.isin(reference.index)
    terms = {
        "reference": _terms(reference.reindex(judged.index[known])),
        "judged": _terms(judged[known]),
        "rest": _terms(judged[~known]),
    }
    everywhere = np.concatenate([terms["judged"], terms["rest"]])
    with np.errstate(divide="ignore", invalid="ignore"):
        uncorrected = _linear(everywhere, everywhere.mean(axis=0))
        # around the reference's own means: the expansion is of what the reference would say
        at = terms["reference"].mean(axis=0) if known.any() else np.full((2, 2), np.nan)
        linear = {name: _linear(part, at) for name, part in terms.items()}
    rows = {}
    for name in QUANTITIES:
        parts = [linear[part][name] for part in ("reference", "judged", "rest")]
        alone = mean(parts[0], parts[0], [], level)
        powered = mean(*parts, level)
        rows[name] = {
            "uncorrected": float(uncorrected[name].mean()),
            "labelled": alone.value,
            "labelled_low": alone.low,
            "labelled_high": alone.high,
            "corrected": powered.value,
            "corrected_low": powered.low,
            "corrected_high": powered.high,
            "tuning": powered.tuning,
            "n": int(known.sum()),
            "items": len(judged),
        }
    return pd.DataFrame(rows).T


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
