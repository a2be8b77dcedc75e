"""What differs between two runs: verdicts on claims, and numbers, the largest difference first.

`python -m esfp.diff FOLDER FOLDER` compares the results.json of the two.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pandas as pd

from esfp import files

VERDICT = "claims.verdict."


def read(folder: str | Path) -> dict:
    """Read what a run's results.json holds, by name.

    Raises
    ------
    DataError
        If there is no such run, or its results.json is missing or not readable.
    """
    path = Path(folder, "results.json")
    if not path.exists():
        runs = sorted(found.parent.name for found in path.parent.parent.glob("*/results.json"))
        raise files.DataError(
            f"{path}: not there; make the run first (made so far: {', '.join(runs) or 'none'})"
        )
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise files.DataError(f"{path}: not valid JSON ({error}); make the run again") from None


def differences(a: dict, b: dict) -> pd.DataFrame:
    """Values of two runs that differ, those with the largest relative difference first.

    Returns
    -------
    DataFrame
        name, a, b, relative: |a - b| over the larger of |a| and |b|, from 0 to 2; missing for
        text and where one run has no value, and these come first.
    """
    rows = [(name, a[name], b[name]) for name in a if name in b and a[name] != b[name]]
    table = pd.DataFrame(rows, columns=["name", "a", "b"], dtype=object)
    table["relative"] = pd.Series([_relative(x, y) for _, x, y in rows], dtype=float)
    return table.sort_values(
        "relative", ascending=False, na_position="first", kind="stable", ignore_index=True
    )


def _relative(x, y) -> float:
    if not all(isinstance(value, int | float) for value in (x, y)):
        return float("nan")
    return abs(x - y) / max(abs(x), abs(y))


def report(a: str | Path, b: str | Path) -> str:
    """Write the differences of two runs for people: verdicts, then numbers."""
    first, second = read(a), read(b)
    changed = differences(first, second)
    judged = changed["name"].str.startswith(VERDICT)
    shared = first.keys() & second.keys()
    claims = sum(name.startswith(VERDICT) for name in shared)
    lines = [f"verdicts: {judged.sum()} of {claims} differ"] if claims else []
    for row in changed[judged].itertuples():
        lines.append(f"  {row.name.removeprefix(VERDICT)}: {row.a} -> {row.b}")
    lines.append(f"numbers: {(~judged).sum()} of {len(shared) - claims} differ, largest first")
    for row in changed[~judged].itertuples():
        share = "" if pd.isna(row.relative) else f"  ({row.relative:.2%})"
        lines.append(f"  {row.name}: {_shown(row.a)} -> {_shown(row.b)}{share}")
    for folder, own in ((a, first), (b, second)):
        if alone := len(own.keys() - shared):
            lines.append(f"only in {Path(folder).name}: {alone} names")
    return "\n".join(lines)


def _shown(value) -> str:
    if value is None:
        return "none"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def main(arguments: list[str]) -> int:
    """Compare from the command line; one line on stderr and 1 where it cannot be done."""
    if len(arguments) != 2:
        print("usage: python -m esfp.diff FOLDER FOLDER", file=sys.stderr)
        return 2
    try:
        print(report(*arguments))
    except files.DataError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
