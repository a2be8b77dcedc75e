"""Reading and writing the files that one stage hands the next.

Everything is written to a temporary name and renamed, and nothing is touched whose bytes
would not change, so make can trust what it sees. One declared Arrow schema a table: an
all-null column or a gappy integer column would otherwise change its type without a word.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import subprocess
import tempfile
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq


class DataError(ValueError):
    """A file is missing or is not what it should be; the text is one clear line."""


KEYS = ["model", "item_id", "type", "phrasing", "sample"]

_keys = [
    ("model", pa.string()),
    ("item_id", pa.string()),
    ("type", pa.string()),
    ("phrasing", pa.string()),
    ("sample", pa.int64()),
]

RESPONSES = pa.schema(
    [
        *_keys,
        ("text", pa.string()),
        ("trace", pa.string()),
        ("status", pa.string()),
        ("finish_reason", pa.string()),
        ("n_words", pa.int64()),
        ("violations", pa.list_(pa.string())),
        ("request_sha", pa.string()),
        ("served_model", pa.string()),
        ("fingerprint", pa.string()),
        ("prompt_tokens", pa.int64()),
        ("completion_tokens", pa.int64()),
        ("created_at", pa.string()),
        ("error", pa.string()),
    ]
)

STANCES = pa.schema([*_keys, ("stance", pa.string())])

EMBEDDINGS = pa.schema([*_keys, ("embedding", pa.list_(pa.float32(), 384))])

MEASURES = pa.schema(
    [
        *_keys,
        ("n_self", pa.int64()),
        ("n_third", pa.int64()),
        ("ar", pa.float64()),
        ("n_a", pa.int64()),
        ("n_b", pa.int64()),
        ("n_c", pa.int64()),
        ("n_missing", pa.int64()),
        ("scd", pa.float64()),
        ("stance", pa.string()),
    ]
)

ITEMS = pa.schema(
    [
        ("model", pa.string()),
        ("item_id", pa.string()),
        ("type", pa.string()),
        *[
            (name, pa.float64())
            for name in (
                "ar_minus",
                "ar_plus",
                "delta_ar",
                "scd_minus",
                "scd_plus",
                "delta_scd",
                "psi",
            )
        ],
        *[(name, pa.int64()) for name in ("n_positive", "n_negative", "n_neutral", "n_no_stance")],
        ("cpc_status", pa.string()),
    ]
)

MULTIVERSE = pa.schema(
    [("specification", pa.int32())]
    + [(name, pa.string()) for name in ("splitter", "panel", "answers", "attribution")]
    + [(name, pa.string()) for name in ("psi_contrast", "ceiling", "cpc")]
    + [(name, pa.float64()) for name in ("w_ar", "w_scd", "w_psi")]
    + [("model", pa.string()), ("esfp", pa.float64()), ("rank", pa.float64())]
)
BOOTSTRAP = pa.schema(
    [
        ("model", pa.string()),
        ("draw", pa.int64()),
        *[
            (name, pa.float64())
            for name in (
                "delta_ar",
                "delta_scd",
                "psi_mean",
                "psi_scaled",
                "cpc_kappa",
                "flex",
                "esfp",
            )
        ],
    ]
)


def slug(model_name: str) -> str:
    """File-safe name, one to one: a short hash is added wherever cleaning changed something."""
    clean = re.sub(r"[^A-Za-z0-9._-]+", "-", model_name).strip(".-")[:80]
    looks_hashed = re.search(r"-[0-9a-f]{8}$", model_name)
    if clean == model_name and not looks_hashed:
        return clean
    return f"{clean}-{hashlib.sha256(model_name.encode()).hexdigest()[:8]}"


def judged_schema(judges: list[str]) -> pa.Schema:
    """Schema of judged/<model>.parquet: response keys, sentence, one label a judge, the panel's."""
    return pa.schema(
        [
            *_keys,
            ("sentence_id", pa.int64()),
            ("sentence", pa.string()),
            *[(f"label_{judge}", pa.string()) for judge in judges],
            ("label", pa.string()),
        ]
    )


def write_bytes(path: str | Path, data: bytes) -> bool:
    """Write `data` atomically; leave the file alone when it already holds those bytes.

    Returns whether the file changed.
    """
    path = Path(path)
    if path.exists() and path.read_bytes() == data:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return True


def write_text(path: str | Path, text: str) -> bool:
    """Write UTF-8 text atomically, if it differs from what is there."""
    return write_bytes(path, text.encode("utf-8"))


def write_csv(path: str | Path, frame: pd.DataFrame, digits: int = 6) -> bool:
    """Write a table for people to open: no index, `digits` decimals, empty cell for missing."""
    return write_text(
        path, frame.to_csv(index=False, float_format=f"%.{digits}f", lineterminator="\n")
    )


def _no_nan(value):
    if isinstance(value, dict):
        return {str(key): _no_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_no_nan(item) for item in value]
    if hasattr(value, "item"):  # numpy scalars
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def write_json(path: str | Path, data: dict) -> bool:
    """Write JSON with sorted keys; a number that is not finite becomes null."""
    text = json.dumps(_no_nan(data), indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return write_text(path, text + "\n")


def write_parquet(path: str | Path, frame: pd.DataFrame, schema: pa.Schema) -> bool:
    """Write `frame`'s columns named in `schema`, cast to it, atomically.

    Raises
    ------
    DataError
        If a column is missing or cannot be cast without loss.
    """
    try:
        table = pa.Table.from_pandas(frame[schema.names], schema=schema, preserve_index=False)
    except (KeyError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise DataError(f"{path}: the table does not fit its schema: {error}") from error
    sink = pa.BufferOutputStream()
    # no pandas metadata: it records library versions, and equal data should give equal bytes
    pq.write_table(table.replace_schema_metadata(None), sink, compression="zstd")
    return write_bytes(path, sink.getvalue().to_pybytes())


def left_over(folder: str | Path, models: list[str]) -> list[str]:
    """Parquet files of `folder` that belong to none of the models: of earlier params, and kept."""
    known = {slug(model) for model in models}
    return sorted(path.stem for path in Path(folder).glob("*.parquet") if path.stem not in known)


def in_git(path: str | Path) -> bool:
    """Whether git has a version of the file, so that a damaged one can be brought back."""
    try:
        asked = ["git", "ls-files", "--error-unmatch", Path(path).name]
        done = subprocess.run(asked, cwd=Path(path).parent, capture_output=True)  # noqa: S603
    except OSError:  # no git, or no such folder
        return False
    return done.returncode == 0


def read_parquet(path: str | Path, schema: pa.Schema) -> pd.DataFrame:
    """Read one table and check it against its declared schema.

    Raises
    ------
    DataError
        If the file is missing, damaged or has other columns than `schema`.
    """
    path = Path(path)
    if not path.exists():
        raise DataError(
            f"{path}: not there; delete the notebook of the stage that writes it from the run's "
            "notebooks/ and run make again"
        )
    try:
        table = pq.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        advice = "delete it and run its stage again"
        if in_git(path):
            advice = f"`git restore {path}` brings back what is recorded"
        raise DataError(f"{path}: not a readable Parquet file ({error}); {advice}") from error
    if table.schema.names != schema.names:
        missing = [name for name in schema.names if name not in table.schema.names]
        extra = [name for name in table.schema.names if name not in schema.names]
        raise DataError(
            f"{path}: columns do not match the contract (missing {missing}, unexpected {extra}); "
            "delete it and run its stage again"
        )
    frame = table.cast(schema).to_pandas()
    for field in schema:  # pandas reads a nullable integer as float; keep it an integer
        if pa.types.is_integer(field.type) and frame[field.name].dtype.kind == "f":
            frame[field.name] = frame[field.name].astype("Int64")
    return frame


def regular(frame: pd.DataFrame, samples: int) -> pd.DataFrame:
    """Rows of the run's regular answers, without those that `generate.again` asked for beyond."""
    return frame[frame["sample"] < samples].reset_index(drop=True)


def read_shards(folder: str | Path, models: list[str], schema: pa.Schema) -> pd.DataFrame:
    """Read `folder/<model's slug>.parquet` for each model and stack them in that order."""
    return pd.concat(
        [read_parquet(Path(folder) / f"{slug(model)}.parquet", schema) for model in models],
        ignore_index=True,
    )
