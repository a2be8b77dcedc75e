"""What models that do not react would score: reference models made of a run's own answers.

Each is a rule that says which recorded answer stands under which prompt. Their labels, stances and
embeddings are those of the recorded answer, and they go through the same functions as any model.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from esfp.attribution import count_attributions, share

PHRASE = "I think "
KINDS = {
    "as answered": "the model's own answers",
    "reporter": "the answer to P1 to every prompt",
    "opiner": "the answer to P2 to every prompt",
    "prefixed": "as answered, but under P2 the answer to P1 with 'I think' before each sentence",
    "shuffled": "each item's answers in a random order of prompts",
    "noise": "under each prompt the answer to it on a random item",
}


def sources(
    kind: str, item_ids: list[str], phrasings: list[str], contrast: list[str], rng
) -> pd.DataFrame:
    """Which recorded answer stands in each cell.

    Parameters
    ----------
    kind
        A key of `KINDS`.
    contrast
        De-subjectified, subjectified.
    rng : numpy Generator
        Used by `shuffled` and `noise`.

    Returns
    -------
    DataFrame, one row an item x phrasing
        item_id, phrasing, from_item, from_phrasing.
    """
    cells = pd.MultiIndex.from_product([item_ids, phrasings], names=["item_id", "phrasing"])
    table = cells.to_frame(index=False)
    table["from_item"], table["from_phrasing"] = table["item_id"], table["phrasing"]
    if kind in ("reporter", "opiner"):
        table["from_phrasing"] = contrast[0] if kind == "reporter" else contrast[1]
    elif kind == "prefixed":
        table.loc[table["phrasing"] == contrast[1], "from_phrasing"] = contrast[0]
    elif kind == "shuffled":
        orders = [rng.permutation(phrasings) for _ in item_ids]
        table["from_phrasing"] = np.concatenate(orders)
    elif kind == "noise":
        for phrasing in phrasings:
            table.loc[table["phrasing"] == phrasing, "from_item"] = rng.permutation(item_ids)
    return table


def rearranged(frame: pd.DataFrame, source: pd.DataFrame) -> pd.DataFrame:
    """`frame` (keyed by model, item_id, type, phrasing, sample) with its answers moved.

    A cell whose source has no row has none. The type is the cell's own.
    """
    types = frame.drop_duplicates("item_id").set_index("item_id")["type"]
    there = frame.rename(columns={"item_id": "from_item", "phrasing": "from_phrasing"})
    moved = source.merge(there.drop(columns="type"), on=["from_item", "from_phrasing"])
    moved["type"] = moved["item_id"].map(types)
    return moved[frame.columns]


def prefixed(
    measures: pd.DataFrame,
    responses: pd.DataFrame,
    sentences: pd.Series,
    phrasing: str,
    source: str,
    lexicons: dict[str, list[str]],
) -> pd.DataFrame:
    """Measures in which AR under `phrasing` is that of `source`'s answer, each sentence prefixed.

    Parameters
    ----------
    measures
        Already moved by `sources('prefixed')`.
    responses
        The run's, for the text.
    sentences
        Number of judged sentences of each response, index model, item_id, phrasing, sample.
    """
    table = measures.reset_index(drop=True).copy()
    own = ["model", "item_id", "sample"]
    texts = responses[responses["phrasing"] == source].set_index(own)["text"]
    there = table["phrasing"].eq(phrasing) & table["n_self"].notna()
    rows = table.loc[there, own].itertuples(index=False)
    counts = []
    for model, item, sample in rows:
        n_self, n_third = count_attributions(str(texts[model, item, sample]), lexicons)
        n = int(sentences.get((model, item, source, sample), 0))
        counts.append((n_self + count_attributions(PHRASE * n, lexicons)[0], n_third))
    if counts:
        table.loc[there, ["n_self", "n_third"]] = np.array(counts)
    table["ar"] = share(table["n_self"], table["n_third"])
    return table


def table(scored: dict[str, list[pd.DataFrame]]) -> pd.DataFrame:
    """Mean over the random draws of each kind, one row a kind x model.

    Parameters
    ----------
    scored
        Kind -> tables as `equations.leaderboard` returns them with scd_minus and scd_plus, one a
        draw.

    Returns
    -------
    DataFrame
        kind, model, draws, scd_minus, scd_plus, delta_ar, delta_scd, psi_scaled, cpc_kappa, flex,
        esfp; NaN where no draw defines a value.
    """
    columns = "scd_minus scd_plus delta_ar delta_scd psi_scaled cpc_kappa flex esfp".split()
    tables = []
    for kind, draws in scored.items():
        models = draws[0]["model"].drop_duplicates().tolist()
        means = pd.concat(draws).groupby("model")[columns].mean().reindex(models)
        tables.append(means.reset_index().assign(kind=kind, draws=len(draws)))
    return pd.concat(tables, ignore_index=True)[["kind", "model", "draws", *columns]]


def numbers(table: pd.DataFrame) -> dict:
    """The table by name, and the mean over the models with a score, for results/score.json."""
    found = {}
    for row in table.to_dict("records"):
        for name in ("delta_ar", "delta_scd", "psi_scaled", "cpc_kappa", "flex", "esfp"):
            value = None if pd.isna(row[name]) else row[name]
            found[f"score.rigid.{_key(row['kind'])}.{name}.{row['model']}"] = value
    for kind, part in table.groupby("kind", sort=False):
        for name in ("delta_ar", "delta_scd", "psi_scaled", "esfp"):
            known = part[name].dropna()
            found[f"score.rigid.{_key(kind)}.{name}"] = float(known.mean()) if len(known) else None
    return found


def _key(kind: str) -> str:
    return kind.replace(" ", "_")
