"""Compare runs of the same instrument on successive versions of a model.

`python -m esfp.compare --runs "a b c"`, in the order of time. The report is an executed notebook
in `outputs/compare/`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from esfp import files, manifest, paper, run

NOTEBOOK = Path("notebooks/compare.ipynb")


def report(runs: list[str]) -> Path:
    """Execute the notebook on these runs; returns its page.

    Raises
    ------
    DataError
        If there are fewer than two, or one of them is not there or has no responses.
    """
    if len(runs) < 2 or len(set(runs)) < len(runs):
        raise files.DataError(f'RUNS="{" ".join(runs)}": give two or more different runs')
    for name in runs:
        if "served" not in manifest.read(name):
            raise files.DataError(f"{name}: starts from released scores; there are no responses")
    folder = Path("outputs/compare", files.slug(" ".join(runs)))
    target = folder / "report.ipynb"
    with run.alone(target):
        run.execute(NOTEBOOK, target, {"runs": runs, "folder": str(folder)})
        paper.notebook_html(target, target.with_suffix(".html"))
    return target.with_suffix(".html")


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m esfp.compare", description=__doc__)
    parser.add_argument("--runs", required=True, metavar="NAMES", help="two or more, with blanks")
    options = parser.parse_args(arguments)
    try:
        print(report(options.runs.split()))
    except files.DataError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
