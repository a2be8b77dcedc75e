"""The embed stage: one vector a response, and what the cosine distance between two of them is.

Section 4.3 of the paper.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from esfp import files
from esfp.encoder import PACKAGE, count_pieces, encode


def embed_responses(
    responses: pd.DataFrame,
    package: str | None = PACKAGE,
    path: str | None = None,
    batch_size: int = 64,
) -> pd.DataFrame:
    """One embedding a response with status ok, in the order given.

    Returns
    -------
    DataFrame
        The response keys, `embedding` (384 float32, unit norm), `pieces` (word pieces of the
        text) and `cut` (whether the model read only its beginning).
    """
    answered = responses[responses["status"] == "ok"].reset_index(drop=True)
    texts = answered["text"].tolist()
    pieces, limit = count_pieces(texts, package, path)
    vectors = encode(texts, package, path, batch_size)
    return answered[files.KEYS].assign(embedding=list(vectors), pieces=pieces, cut=pieces > limit)


def distances(embedded: pd.DataFrame, minus: str, plus: str) -> pd.DataFrame:
    """Cosine distance between two phrasings' responses to the same item (Eq. 3).

    Returns
    -------
    DataFrame
        model, item_id, type, sample, distance (0 to 2), where both responses were embedded.
    """
    keys = ["model", "item_id", "type", "sample"]
    sides = [
        embedded.loc[embedded["phrasing"] == phrasing, [*keys, "embedding"]]
        for phrasing in (minus, plus)
    ]
    pairs = sides[0].merge(sides[1], on=keys, suffixes=("_minus", "_plus"), validate="1:1")
    cosines = [
        float(np.dot(a, b))
        for a, b in zip(pairs["embedding_minus"], pairs["embedding_plus"], strict=True)
    ]
    return pairs[keys].assign(distance=1 - np.array(cosines))


def write(
    run_dir: str | Path, embedded: pd.DataFrame, names: list[str], samples: int
) -> dict[str, float]:
    """Write embeddings/<slug>.parquet for each model and results/embed.json; return the results.

    The results count the run's regular answers; the tables hold those asked again, too.
    """
    results: dict[str, float] = {}
    for name in names:
        rows = embedded[embedded["model"] == name]
        path = Path(run_dir) / "embeddings" / f"{files.slug(name)}.parquet"
        files.write_parquet(path, rows, files.EMBEDDINGS)
        rows = files.regular(rows, samples)
        results[f"embed.n.{name}"] = len(rows)
        results[f"embed.cut_share.{name}"] = rows["cut"].mean()
        results[f"embed.pieces_median.{name}"] = rows["pieces"].median()
        results[f"embed.pieces_max.{name}"] = rows["pieces"].max()
    files.write_json(Path(run_dir) / "results" / "embed.json", results)
    return results
