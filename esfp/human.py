"""Labels by people: which sentences in which order, one file an annotator, how far they agree.

The labels of `make annotate` (esfp.annotate), which the judge notebook holds against each other,
the reference and the offline judges. The paper names a human-labelled subset as the first thing
to add (Section 8).
"""

from __future__ import annotations

import csv
import hashlib
import os
import re
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path

import pandas as pd

from esfp import files
from esfp.agreement import cohen_kappa, kappa_interval
from esfp.gold import LABELS

COLUMNS = ["sentence_id", "label", "labelled_at", "seconds", "note"]
SKIP = "skip"
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
LONGEST_NOTE = 500  # characters
MANUAL = "GUIDELINES.md"


def sentences(folder: str | Path) -> pd.DataFrame:
    """The sentences to label, in the order in which every annotator gets them.

    Nothing that could bias an annotator is read: neither labels nor voices. Sentences that the
    coding manual quotes, with their labels, are left out, and equal sentences are asked once.

    The order is one for all annotators, so that two who stop early have labelled the same
    sentences. It is stratified by type, phrasing and origin, each stratum being spread evenly over
    the whole, so that a beginning of any length resembles the whole. It rests on hashes of the
    ids: sentences that come or go later do not disturb the rest.

    Parameters
    ----------
    folder
        Holds sentences.csv and the coding manual.

    Returns
    -------
    DataFrame
        sentence_id, sentence.

    Raises
    ------
    DataError
        If a file or a column is missing.
    """
    frame = _gold(folder, ["sentence_id", "response_id", "type", "phrasing", "sentence"])
    examples = manual(folder)
    quoted = frame["sentence"].map(lambda sentence: sentence in examples)
    frame = frame[~quoted & ~frame["sentence"].duplicated()]
    frame = frame.iloc[frame["sentence_id"].map(_chance).argsort(kind="stable")]
    origin = frame["response_id"].str.partition("-")[0].rename("origin")
    stratum = frame.groupby([frame["type"], frame["phrasing"], origin])["sentence_id"]
    offset = frame["sentence_id"].map(lambda name: _chance(f"offset {name}"))
    place = (stratum.cumcount() + offset) / stratum.transform("size")
    return frame.iloc[place.argsort(kind="stable")][["sentence_id", "sentence"]].reset_index(
        drop=True
    )


def manual(folder: str | Path) -> str:
    """The coding manual, as Markdown.

    Raises
    ------
    DataError
        If it is not there.
    """
    try:
        return Path(folder, MANUAL).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise files.DataError(f"{Path(folder, MANUAL)}: cannot be read ({error})") from error


def known(folder: str | Path) -> set[str]:
    """The ids of all reference sentences."""
    return set(_gold(folder, ["sentence_id"])["sentence_id"])


def _gold(folder: str | Path, columns: list[str]) -> pd.DataFrame:
    path = Path(folder, "sentences.csv")
    if not path.is_file():
        raise files.DataError(f"{path}: not there; it holds the sentences to label")
    try:
        return pd.read_csv(path, dtype=str, keep_default_na=False, usecols=columns)[columns]
    except ValueError as error:  # pandas' errors, and bytes that are not UTF-8
        raise files.DataError(f"{path}: {' '.join(str(error).split())}") from error


def _chance(text: str) -> float:
    """A number in [0, 1) that is as good as random, and the same wherever it is computed."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6]) / 2**48


def label_file(folder: str | Path, name: str) -> Path:
    """The file of an annotator: `human_<name>.csv`.

    Raises
    ------
    DataError
        If the name would not be safe in a file name; capitals are taken as small letters.
    """
    if not NAME.fullmatch(name.lower()):
        raise files.DataError(
            f"'{name}' cannot be an annotator's name: 1 to 40 of the letters a to z, digits, - and "
            "_, beginning with a letter or a digit"
        )
    return Path(folder, f"human_{name.lower()}.csv")


def annotators(folder: str | Path) -> list[str]:
    """Names of those who have a file, in alphabetical order."""
    names = [path.stem.removeprefix("human_") for path in Path(folder).glob("human_*.csv")]
    return sorted(names)


def read(path: str | Path, known: set[str]) -> pd.DataFrame:
    """One annotator's labels, the latest last; empty where there is no file yet.

    Parameters
    ----------
    known
        The sentence ids of the reference.

    Returns
    -------
    DataFrame of str
        `COLUMNS`; label is A, B, C or 'skip', seconds may be empty.

    Raises
    ------
    DataError
        If the file is damaged; the text names the row.
    """
    path = Path(path)
    if not path.exists():
        return pd.DataFrame(columns=COLUMNS, dtype=str)
    way_out = "mend the file or restore it from a copy; nothing is written to it until then"
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header, *rows = list(csv.reader(file, strict=True)) or [[]]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise files.DataError(f"{path}: not a readable CSV file ({error}); {way_out}") from error
    if header != COLUMNS:
        raise files.DataError(f"{path}, row 1: expected {','.join(COLUMNS)}; {way_out}")
    seen: set[str] = set()
    for number, row in enumerate(rows, start=2):
        if problem := _problem(row, known, seen):
            raise files.DataError(f"{path}, row {number}: {problem}; {way_out}")
        seen.add(row[0])
    return pd.DataFrame(rows, columns=COLUMNS, dtype=str)


def _problem(row: list[str], known: set[str], seen: set[str]) -> str | None:
    if len(row) != len(COLUMNS):
        return f"expected {len(COLUMNS)} values, found {len(row)}"
    sentence_id, label, _, seconds, _ = row
    if sentence_id not in known:
        return f"no sentence '{sentence_id}' in sentences.csv"
    if sentence_id in seen:
        return f"the sentence '{sentence_id}' is there twice"
    if label not in (*LABELS, SKIP):
        return f"label '{label}' is none of {', '.join(LABELS)}, {SKIP}"
    if not re.fullmatch(r"(\d+(\.\d+)?)?", seconds):
        return f"'{seconds}' is no number of seconds"
    return None


def record(
    path: Path, known: set[str], sentence_id: str, label: str, seconds: float | None, note: str
) -> None:
    """Write one label to disk, in place of an earlier one of the same sentence.

    The file is replaced as a whole and flushed, so it holds the label, or what it held before,
    whatever ends the process or the machine. Seconds add up over visits.

    Raises
    ------
    DataError
        If the label or the sentence is unknown, or the file is damaged or cannot be written.
    """
    rows = read(path, known)
    before = rows[rows["sentence_id"] == sentence_id]
    spent = [seconds, *pd.to_numeric(before["seconds"])]
    spent = [value for value in spent if value is not None and not pd.isna(value)]
    row = [
        sentence_id,
        label,
        datetime.now(UTC).isoformat(timespec="seconds"),
        f"{sum(spent):.1f}" if spent else "",
        " ".join("".join(c if c.isprintable() else " " for c in note).split())[:LONGEST_NOTE],
    ]
    if problem := _problem(row, known, set()):
        raise files.DataError(problem)
    rows = pd.concat([rows.drop(before.index), pd.DataFrame([row], columns=COLUMNS)])
    try:
        files.write_csv(path, rows)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # the new name too
        finally:
            os.close(folder)
    except OSError as error:
        raise files.DataError(f"{path}: cannot be written ({error.strerror})") from error


def following(order: pd.Series, rows: pd.DataFrame) -> str | None:
    """The sentence to label next: the first without a row, else the one skipped longest ago."""
    open_ = order[~order.isin(rows["sentence_id"])]
    skipped = rows.loc[rows["label"].eq(SKIP) & rows["sentence_id"].isin(order), "sentence_id"]
    return next(iter([*open_[:1], *skipped[:1]]), None)


def labels(folder: str | Path, gold: pd.DataFrame) -> pd.DataFrame:
    """The labels of all annotators.

    Parameters
    ----------
    gold
        Reference sentences, with `sentence_id`.

    Returns
    -------
    DataFrame, index of `gold`
        A column an annotator: A, B, C, or null where there is none.

    Raises
    ------
    DataError
        If a file is damaged.
    """
    found = {}
    for name in annotators(folder):
        rows = read(label_file(folder, name), known(folder))
        given = rows[rows["label"] != SKIP].set_index("sentence_id")["label"]
        found[name] = gold["sentence_id"].map(given)
    return pd.DataFrame(found, index=gold.index, dtype=object)


def agreement(people: pd.DataFrame, judged: pd.DataFrame) -> pd.DataFrame:
    """κ of people with each other, with the reference, and with the offline judges.

    Parameters
    ----------
    people
        From `labels`.
    judged
        From `judge.validate_sentence_judges`: `item_id`, the reference `label`, and the
        cross-validated `label_<judge>` of each offline judge and of their panel.

    Returns
    -------
    DataFrame
        One row a pair with a sentence in common: first, second, n (sentences), items, agreement,
        kappa, and the bounds ci_low and ci_high of its 95% interval by item.
    """
    raters = {f"human {name}": column for name, column in people.items()}
    others = {"reference": judged["label"]} | {
        f"judge {name.removeprefix('label_')}": judged[name]
        for name in judged
        if name.startswith("label_")
    }
    pairs = [*combinations(raters, 2), *((human, other) for other in others for human in raters)]
    columns = ["first", "second", "n", "items", "agreement", "kappa", "ci_low", "ci_high"]
    rows = []
    for first, second in pairs:
        both = pd.concat([raters[first], (raters | others)[second], judged["item_id"]], axis=1)
        one, other, item = (both.dropna().iloc[:, i] for i in range(3))
        if len(one):
            bounds = kappa_interval(one, other, item)
            measured = [len(one), item.nunique(), (one == other).mean(), cohen_kappa(one, other)]
            rows.append([first, second, *measured, *bounds])
    return pd.DataFrame(rows, columns=columns)


def results(people: pd.DataFrame, table: pd.DataFrame) -> dict[str, float]:
    """How many people labelled how much, and each pair's figures, by name."""
    out: dict[str, float] = {
        "judge.human.annotators": int(people.notna().any().sum()),
        "judge.human.sentences": int(people.notna().any(axis=1).sum()),
    }
    for row in table.to_dict("records"):
        pair = f"{row['first']}.{row['second']}".replace(" ", "_")
        for name in ("n", "kappa", "ci_low", "ci_high"):
            out[f"judge.human.{name}.{pair}"] = row[name]
    return out
