"""Read the instrument: items, phrasing templates, lexicons and system prompts.

Everything under `corpus/` is data that people edit by hand, so every reader here checks what it
reads and raises `CorpusError`, whose text is one line: the file, the line, what was expected and
what to do. Source of the instrument: Sections 3.2 and 3.3, Appendices A to C of the paper.
"""

import csv
import io
from difflib import get_close_matches
from pathlib import Path

import pandas as pd
import yaml

from esfp.files import DataError

COLUMNS = ["item_id", "type", "text", "source", "topic"]
TYPES = ["T1", "T2", "T3", "T4", "T5", "T6"]
SLOT = "{question}"
SET_SIZES = {"contrast": (2, 2), "psi": (2, 2), "cpc": (2, 99)}  # fewest and most members


class CorpusError(DataError):
    """A file of the corpus cannot be used; the message is one line that says how to mend it."""


def load(path: str | Path) -> pd.DataFrame:
    """Read a table of items (Section 3.3, Table 3).

    Cells are text and stay text ("None" and "NA" are not missing values); white space around a
    cell is dropped, rows without any content are skipped, further columns are left out.

    Parameters
    ----------
    path : str or Path
        CSV file in UTF-8, with or without a byte order mark. Columns `type` and `text` are needed;
        `item_id` is numbered within each type (T1-01 ...) where the column is absent or empty,
        `source` defaults to "user" and `topic` to "".

    Returns
    -------
    DataFrame, shape (items, 5)
        Columns item_id, type, text, source, topic, in the order of the file.

    Raises
    ------
    CorpusError
        The file is missing, empty, not UTF-8 or not well-formed CSV; a column is missing; a text is
        empty or repeated; a type is unknown; an item_id is repeated or partly filled in.
    """
    lines, rows = _records(path)
    has_ids = any(row.get("item_id") for row in rows)
    counts = dict.fromkeys(TYPES, 0)
    seen: dict[tuple[str, str], int] = {}
    items = []
    for line, row in zip(lines, rows, strict=True):
        kind = row["type"]
        if kind not in TYPES:
            raise _error(
                path, line, f"unknown type {kind!r}", "write one of T1, T2, T3, T4, T5, T6"
            )
        if not row["text"]:
            raise _error(path, line, "the text is empty", "write the item or delete the row")
        counts[kind] += 1
        item_id = row["item_id"] if has_ids else f"{kind}-{counts[kind]:02d}"
        if not item_id:
            hint = "fill in every item_id, or remove the column and ids are made"
            raise _error(path, line, "the item_id is empty", hint)
        folded = " ".join(row["text"].split()).casefold()
        for key, what in (
            (("item_id", item_id), f"item_id {item_id!r}"),
            (("text", folded), "text"),
        ):
            if key in seen:
                found = f"the {what} is already used on line {seen[key]}"
                raise _error(path, line, found, "change one of the two, or delete it")
            seen[key] = line
        source, topic = row.get("source") or "user", row.get("topic", "")
        items.append((item_id, kind, row["text"], source, topic))
    return pd.DataFrame(items, columns=COLUMNS, dtype=str)


def load_phrasings(path: str | Path) -> dict[str, dict]:
    """Read the phrasing templates (Section 3.2, Table 2; wording in Appendix A).

    Parameters
    ----------
    path : str or Path
        YAML file: one entry a phrasing with `role` and `template`, and `sets`, which names the
        phrasings that each measure compares.

    Returns
    -------
    dict
        `templates` and `roles`: phrasing -> str, in the order of the file. `sets`: `contrast` and
        `psi` (two phrasings, from and to) and `cpc` (two or more) -> list of phrasings.

    Raises
    ------
    CorpusError
        The file is unreadable, an entry lacks a part, a template does not hold the slot
        `{question}` exactly once, or a set is missing or names an unknown phrasing.
    """
    entries = _mapping(path)
    sets = entries.pop("sets", None)
    for name, entry in entries.items():
        if not isinstance(name, str) or not isinstance(entry, dict):
            hint = "write a name such as P0, with `role` and `template` below it"
            raise _error(path, None, f"entry {name!r} is not a phrasing", hint)
        for part in ("role", "template"):
            if not isinstance(entry.get(part), str) or not entry[part].strip():
                raise _error(path, None, f"{name} has no {part}", f"add `{part}:` with a text")
        slots = entry["template"].count(SLOT)
        if slots != 1:
            found = f"the template of {name} holds {SLOT} {slots} times"
            raise _error(path, None, found, "write it exactly once, where the item goes")
    for name, (fewest, most) in SET_SIZES.items():
        members = sets.get(name) if isinstance(sets, dict) else None
        size = "two phrasings" if most == 2 else "two or more phrasings"
        if (
            not isinstance(members, list)
            or not fewest <= len(members) <= most
            or any(m not in list(entries) for m in members)
            or any(members.count(m) > 1 for m in members)
        ):
            found = f"`sets: {name}:` is not a list of {size} out of {', '.join(entries)}"
            raise _error(path, None, found, "name different phrasings that the file defines")
    return {
        "templates": {name: entry["template"] for name, entry in entries.items()},
        "roles": {name: entry["role"] for name, entry in entries.items()},
        "sets": {name: list(sets[name]) for name in SET_SIZES},
    }


def load_lexicons(path: str | Path) -> dict[str, list[str]]:
    """Read the attribution lexicons (Section 4.2; lists in Appendix B).

    Parameters
    ----------
    path : str or Path
        YAML file with the lists `first_person` and `third_party`.

    Returns
    -------
    dict
        `first_person` and `third_party` -> list of phrases, in the order of the file.

    Raises
    ------
    CorpusError
        The file is unreadable, or a list is missing, empty or holds something other than text.
    """
    entries = _mapping(path)
    for name in ("first_person", "third_party"):
        phrases = entries.get(name)
        if (
            not isinstance(phrases, list)
            or not phrases
            or not all(isinstance(p, str) and p.strip() for p in phrases)
        ):
            hint = "write one phrase a line after `- `, in quotes where YAML reads a value"
            raise _error(path, None, f"`{name}` is not a list of phrases", hint)
    return {name: entries[name] for name in ("first_person", "third_party")}


def load_prompt(path: str | Path) -> str:
    """Read a system prompt (wording in Appendix A) without the line end that closes the file.

    Raises
    ------
    CorpusError
        The file is missing, empty or not UTF-8.
    """
    return _read(path).rstrip("\r\n")


def subset(
    items: pd.DataFrame, per_type: int | None = None, types: list[str] | None = None
) -> pd.DataFrame:
    """Take the first `per_type` items of each of `types`, or all of them for None.

    Parameters
    ----------
    items : DataFrame, shape (items, 5)
        As `load` returns it.
    per_type : int, optional
        Items to keep of each type, at least 1.
    types : list of str, optional
        Types to keep.

    Returns
    -------
    DataFrame, shape (at most 6 * per_type, 5)
        In the order of `items`, with a fresh index.

    Raises
    ------
    CorpusError
        `per_type` is below 1, or there is no item of these types.
    """
    if types is not None:
        items = items[items["type"].isin(types)]
        if items.empty:
            raise CorpusError(f"corpus.types is {types}: no item is of these types")
    if per_type is None:
        return items.reset_index(drop=True)
    if per_type < 1:
        raise CorpusError(f"per_type is {per_type}: write 1 or more, or null for all items")
    return items.groupby("type", sort=False).head(per_type).reset_index(drop=True)


def prompts(items: pd.DataFrame, templates: dict[str, str]) -> pd.DataFrame:
    """Cross items with phrasings by plain string substitution (Section 3.2).

    The item's text is the same, byte for byte, in every phrasing; braces in it have no meaning.

    Parameters
    ----------
    items : DataFrame, shape (items, 5)
        As `load` or `subset` returns it.
    templates : dict
        phrasing -> template with one `{question}`.

    Returns
    -------
    DataFrame, shape (items * phrasings, 4)
        Columns item_id, type, phrasing, prompt; all phrasings of an item follow each other.
    """
    rows = [
        (item.item_id, item.type, phrasing, template.replace(SLOT, item.text))
        for item in items.itertuples(index=False)
        for phrasing, template in templates.items()
    ]
    return pd.DataFrame(rows, columns=["item_id", "type", "phrasing", "prompt"], dtype=str)


def _error(path: str | Path, line: int | None, found: str, hint: str) -> CorpusError:
    where = f"{path}, line {line}" if line else f"{path}"
    return CorpusError(f"{where}: {found}; {hint}")


def _read(path: str | Path) -> str:
    """Decode a whole file, line ends untouched."""
    try:
        raw = Path(path).read_bytes()
    except FileNotFoundError:
        raise _error(path, None, "there is no such file", "check the path") from None
    except OSError as err:
        raise _error(path, None, f"cannot be read ({err.strerror})", "name a text file") from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as err:
        line = raw[: err.start].count(b"\n") + 1
        hint = "save it as UTF-8 (in Excel: CSV UTF-8)"
        raise _error(path, line, "the file is not UTF-8", hint) from None
    if not text.strip():
        raise _error(path, None, "the file is empty", "give it some content")
    return text


def _records(path: str | Path) -> tuple[list[int], list[dict[str, str]]]:
    """Split a CSV file into rows, each with the line of the file on which it starts."""
    reader = csv.reader(io.StringIO(_read(path), newline=""), strict=True)
    header: list[str] | None = None
    header_line, start = 1, 1
    lines, rows = [], []
    try:
        for cells in reader:
            line, start = start, reader.line_num + 1
            cells = [cell.strip() for cell in cells]
            if not any(cells):
                continue
            if header is None:
                header, header_line = cells, line
                _check_header(path, line, header)
            elif len(cells) != len(header):
                found = f"{len(cells)} cells where the header has {len(header)}"
                hint = "put double quotes around a text that holds a comma"
                raise _error(path, line, found, hint)
            else:
                lines.append(line)
                rows.append(dict(zip(header, cells, strict=True)))
    except csv.Error as err:
        hint = "close every double quote, and write a quote within a text twice"
        raise _error(path, start, f"not well-formed CSV ({err})", hint) from None
    if not rows:
        raise _error(path, header_line, "no items below the header", "add one row for each item")
    return lines, rows


def _check_header(path: str | Path, line: int, header: list[str]) -> None:
    for name in ("type", "text"):
        if name in header:
            continue
        near = get_close_matches(name, [h.lower() for h in header], n=1)
        if len(header) == 1 and ";" in header[0]:
            hint = "separate columns by commas, not semicolons"
        elif near:
            found = next(h for h in header if h.lower() == near[0])
            hint = f"rename the column {found!r} to {name!r}"
        else:
            hint = f"add it; the header has {', '.join(map(repr, header))}"
        raise _error(path, line, f"there is no column {name!r}", hint)
    for name in COLUMNS:
        if header.count(name) > 1:
            raise _error(path, line, f"the column {name!r} appears twice", "rename one of them")


def _mapping(path: str | Path) -> dict:
    """Read a YAML file whose top level is a mapping."""
    try:
        data = yaml.safe_load(_read(path))
    except yaml.YAMLError as err:
        mark = getattr(err, "problem_mark", None)
        problem = " ".join(str(getattr(err, "problem", None) or "cannot be parsed").split())
        line = mark.line + 1 if mark else None
        hint = "check indentation, colons and quotes"
        raise _error(path, line, f"not well-formed YAML ({problem})", hint) from None
    if not isinstance(data, dict):
        raise _error(path, None, "the file is not a list of `name: value` entries", "write it so")
    return data
