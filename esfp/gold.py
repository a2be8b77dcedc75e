"""The reference labels: model-written, of sentences and of whole responses (corpus/gold)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from esfp.files import DataError
from esfp.replies import STANCES

LABELS = ["A", "B", "C"]
SPLITS = ["train", "held_out"]
SHARED = ["response_id", "item_id", "type", "phrasing", "voice", "split"]


def load_sentences(folder: str | Path) -> pd.DataFrame:
    """Reference labels of sentences.

    Parameters
    ----------
    folder
        Holds sentences.csv.

    Returns
    -------
    DataFrame
        sentence_id, response_id, item_id, type, phrasing, voice, split, sentence, pass_1, pass_2,
        label (A, B or C).

    Raises
    ------
    DataError
        If the file or a column is missing, or a label is unknown; the text names file and row.
    """
    return _labelled(Path(folder, "sentences.csv"), ["sentence_id", *SHARED, "sentence"], "label")


def load_gold(folder: str | Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Reference labels: of sentences (A, B, C), and of whole responses (four stances).

    Parameters
    ----------
    folder
        Holds sentences.csv and stances.csv; items.csv stands in the folder above.

    Returns
    -------
    sentences : DataFrame
        As `load_sentences` returns it.
    stances : DataFrame
        response_id, item_id, type, phrasing, voice, split, text, pass_1, pass_2, stance, and the
        item's `claim`.

    Raises
    ------
    DataError
        If a file or a column is missing, or a label is unknown; the text names file and row.
    """
    folder = Path(folder)
    sentences = load_sentences(folder)
    stances = _labelled(folder / "stances.csv", [*SHARED, "text"], "stance")
    _check_split(folder, sentences, stances)
    items = _read(folder.parent / "items.csv", ["item_id", "text"])
    claims = stances["item_id"].map(items.set_index("item_id")["text"])
    if claims.isna().any():
        row = int(np.flatnonzero(claims.isna())[0])
        raise DataError(
            f"{folder / 'stances.csv'}, row {row + 2}: no item "
            f"'{stances['item_id'][row]}' in {folder.parent / 'items.csv'}"
        )
    return sentences, stances.assign(claim=claims)


def _labelled(path: Path, columns: list[str], label: str) -> pd.DataFrame:
    table = _read(path, [*columns, "pass_1", "pass_2", label])
    for column in ("pass_1", "pass_2", label):
        _check(path, table[column], LABELS if label == "label" else STANCES)
    _check(path, table["split"], SPLITS)
    return table


def _read(path: Path, columns: list[str]) -> pd.DataFrame:
    if not path.is_file():
        raise DataError(f"{path}: not there; it holds the reference labels")
    frame = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8")
    missing = [column for column in columns if column not in frame]
    if missing:
        raise DataError(f"{path}: column '{missing[0]}' is missing")
    return frame[columns]


def _check(path: Path, labels: pd.Series, known: list[str]) -> None:
    wrong = np.flatnonzero(~labels.isin(known))
    if len(wrong):
        row = int(wrong[0])
        raise DataError(
            f"{path}, row {row + 2}: {labels.name} '{labels.iloc[row]}' is none of "
            f"{', '.join(known)}"
        )


def _check_split(folder: Path, *tables: pd.DataFrame) -> None:
    """An item is learnt from or held out, in both files."""
    items = pd.concat([table[["item_id", "split"]] for table in tables])
    both = items.groupby("item_id")["split"].nunique()
    if both.max() > 1:
        raise DataError(
            f"{folder}: item '{both.idxmax()}' is both in split train and in split held_out; an "
            "item's rows in sentences.csv and stances.csv must have one split"
        )
