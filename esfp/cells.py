"""Tables as .csv (raw values), .md (for pandoc) and .tex (booktabs).

A table is a frame and the columns that are shown of it. A cell is a tuple of parts, literal text
or `Math`; each format escapes the text in its own way, so a model may be called `a|b_$c`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from esfp import files

FORMATS = ("csv", "md", "tex")
DASH, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"


class Math(str):
    """TeX between dollar signs."""


Cell = tuple[str, ...]


@dataclass(frozen=True)
class Column:
    """One column as it is read: heading, where its values come from, how they are written."""

    heading: str  # $…$ is math
    source: str | tuple[str, ...]
    show: Callable[..., Cell]
    align: str = "r"
    share: float | None = None  # of the line's width in TeX, for text that wraps
    optional: bool = False  # left out where there is nothing to show


class Table(NamedTuple):
    frame: pd.DataFrame
    columns: list[Column]


# ---- how values are written ------------------------------------------------------------------


def markup(text: str) -> Cell:
    """Split a text of ours at its dollar signs into literal text and math."""
    parts = text.split("$")
    return tuple(Math(part) if k % 2 else part for k, part in enumerate(parts) if part)


def text(value) -> Cell:
    """Write any text literally; a dash where there is none."""
    return (str(value) if pd.notna(value) and str(value) else DASH,)


def number(value: float, digits: int) -> str:
    """Write a number with a proper minus sign; zero has none, and missing is a dash."""
    if pd.isna(value):
        return DASH
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", MINUS)


def decimals(digits: int) -> Callable[[float], Cell]:
    """Return a writer of cells with `digits` decimals."""
    return lambda value: (number(value, digits),)


three = decimals(3)


def integer(value) -> Cell:
    """Write a count."""
    return (number(value, 0),)


def interval(low: float, high: float) -> Cell:
    """Write an interval with three decimals."""
    known = pd.notna(low) and pd.notna(high)
    return (f"[{number(low, 3)}, {number(high, 3)}]" if known else DASH,)


# ---- how they are stored ---------------------------------------------------------------------

_MD = str.maketrans({c: f"\\{c}" for c in "\\`*_<>|$^~@#&{}"})
_TEX = str.maketrans(
    {c: f"\\{c}" for c in "{}$&#_%"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "|": "$|$", '"': r"\textquotedbl{}"}
    | {
        "`": r"\`{}",
        "“": "``",
        "”": "''",
        "…": r"\ldots{}",
        DASH: "--",
        MINUS: "$-$",
        "×": r"$\times$",
    }
)


def _markdown(cell: Cell) -> str:
    def literal(part: str) -> str:  # "--", "..." and "](" would become something else
        line = " ".join(part.translate(_MD).splitlines())
        return re.sub(r"--+|\.\.\.+|\]\(", lambda run: "".join(f"\\{c}" for c in run[0]), line)

    return "".join(f"${part}$" if isinstance(part, Math) else literal(part) for part in cell)


def _tex(cell: Cell) -> str:
    def literal(part: str) -> str:
        return " ".join(part.replace("--", "-\0-").translate(_TEX).splitlines()).replace("\0", "{}")

    return "".join(f"${part}$" if isinstance(part, Math) else literal(part) for part in cell)


def cells(table: Table) -> tuple[list[Column], list[list[Cell]]]:
    """Return the columns that have something to show, and the rows of cells below them."""
    shown = []
    for column in table.columns:
        sources = (column.source,) if isinstance(column.source, str) else column.source
        values = zip(*(table.frame[name] for name in sources), strict=True)
        body = [column.show(*value) for value in values]
        if not (column.optional and all(cell == (DASH,) for cell in body)):
            shown.append((column, body))
    columns, bodies = zip(*shown, strict=True)
    return list(columns), [list(row) for row in zip(*bodies, strict=True)]


def to_markdown(table: Table) -> str:
    """Write a pipe table, its columns padded to line up."""
    columns, rows = cells(table)
    grid = [[_markdown(markup(column.heading)) for column in columns]]
    grid += [[_markdown(cell) for cell in row] for row in rows]
    widths = [max(3, *map(len, column)) for column in zip(*grid, strict=True)]
    rule = [
        "-" * (width - 1) + ":" if column.align == "r" else ":" + "-" * (width - 1)
        for column, width in zip(columns, widths, strict=True)
    ]
    lines = [
        [
            cell.rjust(width) if column.align == "r" else cell.ljust(width)
            for column, cell, width in zip(columns, row, widths, strict=True)
        ]
        for row in grid
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in [lines[0], rule, *lines[1:]])


def to_tex(table: Table) -> str:
    """Write a booktabs tabular."""
    columns, rows = cells(table)
    wrap = r">{{\raggedright\arraybackslash}}p{{{:.2f}\linewidth}}"
    spec = "".join(wrap.format(c.share) if c.share else c.align for c in columns)
    head = " & ".join(_tex(markup(column.heading)) for column in columns)
    body = [" & ".join(_tex(cell) for cell in row) + r" \\" for row in rows]
    body = ["{}" + line if line.startswith("[") else line for line in body]  # not for the \\ above
    lines = [
        rf"\begin{{tabular}}{{@{{}}{spec}@{{}}}}", r"\toprule", head + r" \\", r"\midrule",
        *body, r"\bottomrule", r"\end{tabular}",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def write(table: Table, folder: str | Path, stem: str) -> str:
    """Write `folder/stem.csv`, `.md` and `.tex`; returns the Markdown, which a notebook shows."""
    folder, shown = Path(folder), to_markdown(table)
    files.write_csv(folder / f"{stem}.csv", table.frame)
    files.write_text(folder / f"{stem}.md", shown)
    files.write_text(folder / f"{stem}.tex", to_tex(table))
    return shown
