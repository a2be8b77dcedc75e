"""Stage 4: from responses, labels, stances and embeddings to the four measures and the score.

Three tables of growing coarseness: one row a response (`measures`), one a model and item
(`items`), one a model (`per_model`). Equations 2 to 5 of the paper; Equations 4 and 6, which other
stages share, are in `esfp.equations`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from esfp import files
from esfp.attribution import count_attributions, share
from esfp.equations import composite as composite  # both are also part of this stage's interface
from esfp.equations import kappa
from esfp.equations import psi_ceiling as psi_ceiling

STANCES = ["positive", "negative", "neutral", "no_stance"]
COLUMNS = (
    "model vendor type rank esfp flex delta_ar delta_scd psi_mean psi_scaled psi_ceiling "
    "cpc_kappa n_ar n_scd n_cpc ci_low ci_high boot_mean boot_sd coverage"
).split()  # of scores.csv


def read(run_dir: str | Path, models: list[str]) -> tuple[pd.DataFrame, ...]:
    """Read a run's responses, judged, stances and embeddings, all models stacked.

    Raises
    ------
    DataError
        If a file is missing, damaged, of another shape than its contract, or holds a row twice.
    """
    run_dir = Path(run_dir)
    responses = files.read_shards(run_dir / "responses", models, files.RESPONSES)
    stances = files.read_shards(run_dir / "stances", models, files.STANCES)
    embeddings = files.read_shards(run_dir / "embeddings", models, files.EMBEDDINGS)
    first = run_dir / "judged" / f"{files.slug(models[0])}.parquet"
    names = pq.read_schema(first).names if first.exists() else []
    judges = [name.removeprefix("label_") for name in names if name.startswith("label_")]
    judged = files.read_shards(run_dir / "judged", models, files.judged_schema(judges))
    tables = {"responses": responses, "stances": stances, "embeddings": embeddings}
    tables["judged"] = judged
    for folder, table in tables.items():
        keys = [*files.KEYS, "sentence_id"] if folder == "judged" else files.KEYS
        if table.duplicated(keys).any():
            twin = table.loc[table.duplicated(keys), keys].iloc[0].tolist()
            raise files.DataError(
                f"{run_dir / folder}: the row {twin} is there twice; delete the file and run "
                "its stage again"
            )
    return responses, judged, stances, embeddings


def measures(
    responses: pd.DataFrame,
    judged: pd.DataFrame,
    stances: pd.DataFrame,
    lexicons: dict[str, list[str]] | None = None,
) -> pd.DataFrame:
    """AR and SCD of each response, with the counts they come from (Eqs. 2 and 5).

    Only a response whose status is `ok` is measured. A sentence without a panel label is
    `missing`: it is in no density, and it is counted.

    Parameters
    ----------
    responses, judged, stances : DataFrame
        As in responses/, judged/ and stances/.

    Returns
    -------
    DataFrame, shape (responses, 14)
        The columns of `files.MEASURES`. AR is NaN without a marker, SCD without an A or a B; all
        is null for a response that is not `ok`, and the label counts where nothing was judged.
    """
    table = responses[files.KEYS].copy()
    ok = responses["status"].eq("ok").to_numpy()
    pairs = [
        count_attributions(text, lexicons) if good else (None, None)
        for text, good in zip(responses["text"], ok, strict=True)
    ]
    table["n_self"] = pd.array([first for first, _ in pairs], dtype="Int64")
    table["n_third"] = pd.array([second for _, second in pairs], dtype="Int64")
    table["ar"] = share(table["n_self"], table["n_third"])

    keys = pd.MultiIndex.from_frame(table[files.KEYS])
    stance = stances.set_index(files.KEYS)["stance"]
    labelled = pd.MultiIndex.from_frame(judged[files.KEYS])
    judged_at_all = keys.isin(labelled) | keys.isin(stance.index)
    table = _with_labels(table, judged, "label", ok & judged_at_all)
    table["stance"] = stance.reindex(keys).where(ok).array
    return table


def relabelled(measures: pd.DataFrame, judged: pd.DataFrame, column: str) -> pd.DataFrame:
    """`measures` with the label counts and SCD of another column of labels than the panel's.

    Parameters
    ----------
    measures, judged : DataFrame
        As `measures` returns it, and as in judged/.
    column : str
        A column of `judged`, for example one judge's.
    """
    return _with_labels(measures.copy(), judged, column, measures["n_missing"].notna().to_numpy())


def _with_labels(table: pd.DataFrame, judged: pd.DataFrame, column: str, there) -> pd.DataFrame:
    """Set the label counts and SCD of the responses, null where nothing was judged."""
    keys = pd.MultiIndex.from_frame(table[files.KEYS])
    sentences = judged[files.KEYS].assign(label=judged[column].fillna("missing"))
    labels = sentences.value_counts().unstack("label", fill_value=0)
    for name, label in {"n_a": "A", "n_b": "B", "n_c": "C", "n_missing": "missing"}.items():
        counts = labels[label].reindex(keys, fill_value=0) if label in labels else 0
        table[name] = pd.array(np.broadcast_to(counts, len(table)), dtype="Int64")
        table.loc[~there, name] = pd.NA
    table["scd"] = share(table["n_b"], table["n_a"])
    return table


def usable(
    frame: pd.DataFrame, responses: pd.DataFrame, compliant_only: bool = False
) -> pd.DataFrame:
    """Rows of `frame` whose response is `ok` and, if asked, keeps the limits of its prompt.

    The paper kept responses that break the limits of Appendix A; dropping them is a parameter.
    """
    keep = responses["status"].eq("ok").to_numpy()
    if compliant_only:
        clean = [found is None or len(found) == 0 for found in responses["violations"]]
        keep = keep & np.array(clean, dtype=bool)
    return frame.merge(responses.loc[keep, files.KEYS], on=files.KEYS)


def psi(embeddings: pd.DataFrame, contrast: list[str]) -> pd.DataFrame:
    """Cosine distance between the answers to the two phrasings of `contrast` (Eq. 3).

    Returns
    -------
    DataFrame
        model, item_id, sample, psi (from 0 to 2), where both answers are embedded.
    """
    cell = ["model", "item_id", "sample"]
    known = embeddings.dropna(subset=["embedding"])
    first, second = (known[known["phrasing"] == phrasing] for phrasing in contrast)
    both = first.merge(second, on=cell, suffixes=("_first", "_second"))
    if both.empty:
        return both[cell].assign(psi=np.empty(0))
    a, b = (np.stack(both[f"embedding_{side}"]).astype(float) for side in ("first", "second"))
    cosine = (a * b).sum(axis=1) / np.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=1))
    return both[cell].assign(psi=np.clip(1 - cosine, 0, 2))


def items(
    measures: pd.DataFrame,
    distances: pd.DataFrame,
    corpus_items: pd.DataFrame,
    models: list[str],
    contrast: list[str],
    cpc_phrasings: list[str],
) -> pd.DataFrame:
    """Measures of each model on each item of the corpus; one row a model x item.

    A cell is the mean over the item's samples. For stance consistency every response under
    `cpc_phrasings` is a rater. An item is left out of it (`cpc_status`) where a stance is
    missing, or where no response has a sentence labelled B.

    Parameters
    ----------
    measures, distances : DataFrame
        As `measures` and `psi` return them.
    corpus_items : DataFrame
        item_id and type.
    models : list of str
        In the order wanted.
    contrast : list of two phrasings
        De-subjectified, subjectified.

    Returns
    -------
    DataFrame, shape (models * items, 15)
        The columns of `files.ITEMS`, models and items in the order given.
    """
    cell = ["model", "item_id"]
    index = pd.MultiIndex.from_product([models, corpus_items["item_id"]], names=cell)
    table = pd.DataFrame(index=index)
    means = measures.groupby([*cell, "phrasing"])[["ar", "scd"]].mean().unstack("phrasing")
    for name in ("ar", "scd"):
        for side, phrasing in zip(("minus", "plus"), contrast, strict=True):
            column = (name, phrasing)
            table[f"{name}_{side}"] = means[column].reindex(index) if column in means else np.nan
        table[f"delta_{name}"] = table[f"{name}_plus"] - table[f"{name}_minus"]
    table["psi"] = distances.groupby(cell)["psi"].mean().reindex(index)

    rated = measures[measures["phrasing"].isin(cpc_phrasings)]
    for stance in STANCES:
        chosen = rated[rated["stance"] == stance].groupby(cell).size()
        table[f"n_{stance}"] = chosen.reindex(index, fill_value=0)
    raters = len(cpc_phrasings) * measures["sample"].nunique()
    complete = table[[f"n_{stance}" for stance in STANCES]].sum(axis=1) == raters
    any_b = rated.groupby(cell)["n_b"].sum().reindex(index, fill_value=0) > 0
    table["cpc_status"] = np.select(
        [~complete.to_numpy(), ~any_b.to_numpy(bool)], ["missing_stance", "no_b"], "counted"
    )
    table = table.reset_index()
    table["type"] = table["item_id"].map(corpus_items.set_index("item_id")["type"])
    return table[files.ITEMS.names]


def fleiss_kappa(counts) -> float:
    """Fleiss' kappa (Fleiss 1971; Section 4.5).

    Parameters
    ----------
    counts : array, shape (items, categories)
        How many raters chose each category; every row has the same sum.

    Returns
    -------
    float
        NaN where undefined: no item, a single rater, or all ratings in one category.

    Raises
    ------
    ValueError
        If the items differ in their number of raters.
    """
    counts = np.asarray(counts, dtype=float)
    if counts.size == 0:
        return float("nan")
    raters = counts.sum(axis=1)
    if (raters != raters[0]).any():
        raise ValueError("Fleiss' kappa needs the same number of raters for every item")
    return float(kappa(len(counts), (counts * (counts - 1)).sum(), counts.sum(axis=0)))


def per_model(items: pd.DataFrame) -> pd.DataFrame:
    """Means over items and kappa of each model (Eqs. 2, 3 and 5; Section 4.5).

    delta AR is the mean over the items where AR is defined under both phrasings; delta SCD is the
    difference of two means, each over its own defined items.

    Returns
    -------
    DataFrame, one row a model
        model, delta_ar, n_ar, delta_scd, n_scd (items with both), psi_mean, cpc_kappa, n_cpc.
    """
    rows = []
    for model, part in items.groupby("model", sort=False):
        rated = part.loc[part["cpc_status"] == "counted", [f"n_{stance}" for stance in STANCES]]
        rows.append(
            {
                "model": model,
                "delta_ar": part["delta_ar"].mean(),
                "n_ar": part["delta_ar"].count(),
                "delta_scd": part["scd_plus"].mean() - part["scd_minus"].mean(),
                "n_scd": part["delta_scd"].count(),
                "psi_mean": part["psi"].mean(),
                "cpc_kappa": fleiss_kappa(rated),
                "n_cpc": len(rated),
            }
        )
    return pd.DataFrame(rows)


def numbers(table: pd.DataFrame, columns: list[str], key: str = "model") -> dict:
    """The table's cells by name, `score.<column>.<model>`, for results/score.json."""
    return {
        f"score.{column}.{name}": None if pd.isna(value) else value
        for column in columns
        for name, value in zip(table[key], table[column], strict=True)
    }
