"""A mixed model of sentences: stance on phrasing and type, items with a level of their own."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from scipy.stats import norm
from statsmodels.regression.mixed_linear_model import MixedLM
from statsmodels.stats.multitest import multipletests


def sentences(judged: pd.DataFrame) -> pd.DataFrame:
    """Sentences with content: `model item_id type phrasing stance`, stance 1 for B and 0 for A."""
    content = judged[judged["label"].isin(["A", "B"])]
    table = content[["model", "item_id", "type", "phrasing"]].copy()
    return table.assign(stance=content["label"].eq("B").astype(float)).reset_index(drop=True)


def contrasts(table: pd.DataFrame, contrast: list[str], level: float = 0.95) -> pd.DataFrame:
    """How much more often a sentence is a stance under P2 than under P1, by type.

    For each model a linear mixed model of the 0/1 stance of a sentence with a mean for each
    phrasing x type and a random intercept for each item (REML). The six contrasts of a model are
    corrected by Holm's method. A linear model of probabilities keeps cells without any stance,
    where a logistic one has no estimate; its standard errors take one residual variance for all.

    Parameters
    ----------
    table
        As `sentences` gives it.
    contrast : list of two phrasings
        De-subjectified, subjectified.

    Returns
    -------
    DataFrame, one row a model x type
        model, type, difference, ci_low, ci_high, p, p_holm, sentences, reason (why there is no
        estimate, else empty).
    """
    rows = []
    for model, part in table.groupby("model", sort=False):
        kinds = sorted(part["type"].unique())
        names, effects, covariance, reason = _fit(part)
        for kind in kinds:
            pair = [f"{phrasing} {kind}" for phrasing in contrast]
            row = {"model": model, "type": kind, "sentences": int((part["type"] == kind).sum())}
            row["reason"] = reason or (
                ""
                if set(pair) <= set(names)
                else f"no content sentence under {' or '.join(contrast)}"
            )
            if not row["reason"]:
                low, high = (names.index(name) for name in pair)
                row["difference"] = effects[high] - effects[low]
                variance = covariance[high, high] + covariance[low, low] - 2 * covariance[high, low]
                row["error"] = np.sqrt(variance)
            rows.append(row)
    columns = ["model", "type", "difference", "error", "sentences", "reason"]
    found = pd.DataFrame(rows).reindex(columns=columns)
    half = norm.ppf((1 + level) / 2) * found["error"]
    found["ci_low"], found["ci_high"] = found["difference"] - half, found["difference"] + half
    found["p"] = 2 * norm.sf((found["difference"] / found["error"]).abs())
    found["p_holm"] = found.groupby("model", sort=False)["p"].transform(_holm)
    return found[
        ["model", "type", "difference", "ci_low", "ci_high", "p", "p_holm", "sentences", "reason"]
    ]


def _holm(p: pd.Series) -> pd.Series:
    known = p.dropna()
    if known.empty:
        return p
    corrected = pd.Series(multipletests(known, method="holm")[1], index=known.index)
    return corrected.reindex(p.index)


def _fit(part: pd.DataFrame) -> tuple[list[str], np.ndarray, np.ndarray, str]:
    """Names, estimates and covariance of the cell means; a reason where there are none."""
    nothing = ([], np.empty(0), np.empty((0, 0)))
    if part["stance"].nunique() < 2:
        return *nothing, "all content sentences have the same label"
    if part["item_id"].nunique() < 2:
        return *nothing, "a random intercept needs two items"
    cells = part["phrasing"] + " " + part["type"]
    design = pd.get_dummies(cells, dtype=float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what it warns of is asked for below
        try:
            model = MixedLM(
                part["stance"].to_numpy(), design.to_numpy(), part["item_id"].to_numpy()
            )
            result = model.fit(reml=True, method=["bfgs", "powell"])
        except (np.linalg.LinAlgError, ValueError) as error:
            return *nothing, f"the mixed model cannot be fitted ({error})"
    n = design.shape[1]
    covariance = np.asarray(result.cov_params())[:n, :n]
    if not result.converged or not np.isfinite(covariance).all():
        return *nothing, "the mixed model did not converge"
    return list(design.columns), np.asarray(result.fe_params), covariance, ""


def numbers(table: pd.DataFrame) -> dict:
    """The contrasts by name, for results/score.json."""
    return {
        f"score.mixed.{name}.{row.model}.{row.type}": None
        if pd.isna(getattr(row, name))
        else getattr(row, name)
        for row in table.itertuples()
        for name in ("difference", "ci_low", "ci_high", "p", "p_holm")
    }
