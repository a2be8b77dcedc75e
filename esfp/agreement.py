"""Agreement between judges, and how well one finds the labels of a reference.

Section 4.4 of the paper; its Section 8 names the judges' disagreement as what was not logged.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from sklearn.metrics import cohen_kappa_score, precision_recall_fscore_support

from esfp.coefficients import (
    agreed_and_spread,
    coincidences,
    estimates,
    gwet_ac1,
    interval,
    krippendorff_alpha,
    one_hot,
    precision_recall,
    resample,
    two_raters,
)
from esfp.gold import LABELS

ALL_MODELS = "all models"


def cohen_kappa(first: Sequence[str], second: Sequence[str]) -> float:
    """Cohen's κ of two raters over the same units; NaN where it is undefined.

    κ = (p_o − p_e) / (1 − p_e), with p_o the share of units on which they agree and p_e the share
    expected from their label frequencies (Cohen, 1960). It is undefined without units, and where
    both give one and the same label throughout.
    """
    first, second = list(first), list(second)
    if not first or len({*first, *second}) < 2:
        return np.nan
    return float(cohen_kappa_score(first, second))


def kappa_interval(
    first: Sequence[str],
    second: Sequence[str],
    groups: Sequence[str],
    draws: int = 2000,
    seed: int = 0,
    level: float = 0.95,
) -> tuple[float, float]:
    """Percentile interval of Cohen's κ, whole groups of units being drawn with replacement.

    Parameters
    ----------
    first, second
        The labels of two raters of the same units.
    groups
        The group, here the item, of each unit.

    Returns
    -------
    low, high : float
        NaN with fewer than two groups, or where κ is undefined in every draw.
    """
    labels, coded = np.unique([*first, *second], return_inverse=True)
    if len(labels) < 2:
        return np.nan, np.nan
    one, other = np.split(one_hot(coded, len(labels)), 2)
    _, drawn = resample(_tables(one, other), groups, draws, seed)
    return interval(two_raters(drawn)["kappa"], level)


def _tables(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Each unit's table of the one's label by the other's; zeros where either is missing."""
    return one[:, :, None] * other[:, None, :]


def against_reference(
    reference: Sequence[str], rated: Sequence[str], labels: list[str]
) -> dict[str, float]:
    """κ, share agreed, and each label's precision and recall, the reference being right.

    Returns
    -------
    dict
        kappa, agreement, then precision_X and recall_X for each of `labels`; NaN where a label
        was never given (precision) or is not in the reference (recall).
    """
    reference, rated = np.array(list(reference), object), np.array(list(rated), object)
    precision, recall, _, _ = precision_recall_fscore_support(
        reference, rated, labels=labels, zero_division=np.nan
    )
    out = {"kappa": cohen_kappa(reference, rated), "agreement": float(np.mean(reference == rated))}
    for place, label in enumerate(labels):
        out[f"precision_{label}"] = float(precision[place])
        out[f"recall_{label}"] = float(recall[place])
    return out


def pooled(labelled: pd.DataFrame) -> pd.DataFrame:
    """The rows of each model, and where there are several those of all once more as one."""
    if labelled["model"].nunique() < 2:
        return labelled
    return pd.concat([labelled.assign(model=ALL_MODELS), labelled], ignore_index=True)


def parts(labelled: pd.DataFrame) -> pd.DataFrame:
    """`pooled`, whole and by type and phrasing: the rows thrice, with a column `part`.

    Returns
    -------
    DataFrame
        The rows of part 'all', then those of T1 to T6, then those of P0 to P4.
    """
    whole = pooled(labelled)
    named = [
        whole.assign(part=whole[name]).sort_values("part", kind="stable")
        for name in ("type", "phrasing")
    ]
    return pd.concat([whole.assign(part="all"), *named], ignore_index=True)


def _hot(labelled: pd.DataFrame, columns: list[str]) -> np.ndarray:
    """The labels of those columns as unit vectors, shape (sentences, columns, labels)."""
    coded = [pd.Categorical(labelled[name], categories=LABELS).codes for name in columns]
    return one_hot(np.column_stack(coded), len(LABELS))


def pairwise(labelled: pd.DataFrame, judges: list[str], by: list[str]) -> pd.DataFrame:
    """How far each pair of judges agrees on the sentences that both labelled.

    Parameters
    ----------
    labelled
        With `item_id` and a column `label_<judge>` for each of `judges`.
    by
        Columns; one row a group and pair.

    Returns
    -------
    DataFrame
        The columns of `by`, first, second, n, and agreement, kappa and ac1, each with the bounds
        _low and _high of its 95% interval by item.
    """
    rows = []
    for values, group in labelled.groupby(by, sort=False):
        for pair in combinations(judges, 2):
            hot = _hot(group, [f"label_{judge}" for judge in pair])
            tables = _tables(hot[:, 0], hot[:, 1])
            row = dict(zip([*by, "first", "second"], [*values, *pair], strict=True))
            row["n"] = int(tables.sum())
            rows.append(row | estimates(two_raters, tables, group["item_id"]))
    return pd.DataFrame(rows)


def panel(labelled: pd.DataFrame, judges: list[str], by: list[str]) -> pd.DataFrame:
    """How far a panel agrees as a whole, and what its disagreements became.

    Parameters
    ----------
    labelled
        As for `pairwise`, with the panel's `label`.
    by
        Columns; one row a group.

    Returns
    -------
    DataFrame
        The columns of `by`, n (sentences), missing (those that a judge did not label), and with
        their intervals agreement and kappa (means over the pairs of judges, of κ Light's), alpha
        (Krippendorff's), ac1 (Gwet's) and disputed (share of sentences, see `disputed`). Empty
        with fewer than two judges.
    """
    if len(judges) < 2:
        return pd.DataFrame()
    rows = []
    for values, group in labelled.groupby(by, sort=False):
        hot = _hot(group, [f"label_{judge}" for judge in judges])
        counts, items = hot.sum(axis=1), group["item_id"]
        pairs = [_tables(hot[:, a], hot[:, b]) for a, b in combinations(range(len(judges)), 2)]
        became_c = np.column_stack([disputed(group, judges), np.ones(len(group))])
        row = dict(zip(by, values, strict=True)) | {
            "n": len(group),
            "missing": int((counts.sum(axis=1) < len(judges)).sum()),
        }
        row |= estimates(_light, np.stack(pairs, axis=1), items)
        row |= estimates(
            lambda sums: {"alpha": krippendorff_alpha(sums)}, coincidences(counts), items
        )
        row |= estimates(lambda sums: {"ac1": gwet_ac1(sums)}, agreed_and_spread(counts), items)
        row |= estimates(lambda sums: {"disputed": sums[..., 0] / sums[..., 1]}, became_c, items)
        rows.append(row)
    return pd.DataFrame(rows)


def _light(tables: np.ndarray) -> dict[str, np.ndarray]:
    """Means over pairs of raters (Light, 1971), from sums of shape (…, pairs, q, q)."""
    found = two_raters(tables)
    return {name: found[name].mean(axis=-1) for name in ("agreement", "kappa")}


def disputed(labelled: pd.DataFrame, judges: list[str]) -> pd.Series:
    """Whether the panel's C is a disagreement: all judges answered and not alike.

    Returns
    -------
    Series of bool, index of `labelled`
    """
    columns = labelled[[f"label_{judge}" for judge in judges]]
    alike = columns.eq(columns.iloc[:, 0], axis=0).all(axis=1)
    return columns.notna().all(axis=1) & ~alike & (labelled["label"] == "C")


def on_reference(labelled: pd.DataFrame, judges: list[str]) -> pd.DataFrame:
    """A run's judges and their panel held against the reference labels of the run's own sentences.

    Parameters
    ----------
    labelled
        As for `panel`, with `reference`, null where a sentence has no reference label.

    Returns
    -------
    DataFrame
        model, judge ('panel' last), n (sentences that have both labels), missing (those that the
        judge did not label), and with their intervals kappa, agreement, and precision_X and
        recall_X of each label. A row a model with a reference label and judge.
    """
    known = pooled(labelled[labelled["reference"].notna()])
    columns = {judge: f"label_{judge}" for judge in judges} | {"panel": "label"}
    rows = []
    for model, group in known.groupby("model", sort=False):
        for judge, column in columns.items():
            hot = _hot(group, ["reference", column])
            tables = _tables(hot[:, 0], hot[:, 1])
            n = int(tables.sum())
            row = {"model": model, "judge": judge, "n": n, "missing": len(group) - n}
            rows.append(row | estimates(_against, tables, group["item_id"]))
    return pd.DataFrame(rows)


def _against(tables: np.ndarray) -> dict[str, np.ndarray]:
    found = two_raters(tables)
    precision, recall = precision_recall(tables)
    out = {name: found[name] for name in ("kappa", "agreement")}
    for place, label in enumerate(LABELS):
        out |= {f"precision_{label}": precision[..., place], f"recall_{label}": recall[..., place]}
    return out


def compact(table: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """For people: each of the columns `names` in one with its interval, 'value [low, high]'."""
    shown = table.drop(columns=[f"{name}_{end}" for name in names for end in ("low", "high")])
    for name in names:
        triples = table[[name, f"{name}_low", f"{name}_high"]].to_numpy(float)
        shown[name] = [_bracketed(*triple) for triple in triples]
    return shown


def _bracketed(value: float, low: float, high: float) -> str:
    if np.isnan(value):
        return "undefined"
    return f"{value:.2f}" + ("" if np.isnan(low) else f" [{low:.2f}, {high:.2f}]")


def shares(frame: pd.DataFrame, column: str, values: list[str], by: list[str]) -> pd.DataFrame:
    """Share of each value of `column` within `by`; what is null counts under 'missing'."""
    counted = frame[by].assign(value=frame[column].astype(object).fillna("missing"))
    table = pd.crosstab([counted[name] for name in by], counted["value"], normalize="index")
    return table.reindex(columns=[*values, "missing"], fill_value=0.0)


def results(
    panels: pd.DataFrame, pairs: pd.DataFrame, referenced: pd.DataFrame
) -> dict[str, float]:
    """The numbers of those tables by name; what is of all models together carries no model's.

    Parameters
    ----------
    panels, pairs
        From `panel` and `pairwise` by model and part of `parts`.
    referenced
        From `on_reference`.
    """
    out: dict[str, float] = {}
    names = {
        "agreement": "agreement_between",
        "kappa": "kappa_between",
        "disputed": "disputed_share",
    }
    for row in panels.to_dict("records"):
        part = "" if row["part"] == "all" else f"_{row['part']}"
        for key in ("agreement", "kappa", "alpha", "ac1", "disputed"):
            for end in ("", "_low", "_high"):
                name = f"judge.{names.get(key, key)}{part}{end}"
                out[name + _of(row["model"])] = row[key + end]
    for row in pairs.to_dict("records"):
        if row["part"] == "all":
            place = f".{row['first']}.{row['second']}{_of(row['model'])}"
            keys = [key for key in row if key.startswith(("n", "agreement", "kappa", "ac1"))]
            out |= {f"judge.pair.{key}{place}": row[key] for key in keys}
    for row in referenced.to_dict("records"):
        place = f".{row.pop('judge')}{_of(row.pop('model'))}"
        out |= {f"judge.reference.{key}{place}": value for key, value in row.items()}
    return out


def _of(model: str) -> str:
    return "" if model == ALL_MODELS else f".{model}"
