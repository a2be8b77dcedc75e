"""Make the report on the ablations of a run, or on a sweep of one parameter.

`python -m esfp.ablate --base params/local.yaml`, with `--param` and `--values` for a sweep. The
report is an executed notebook below `outputs/<base>/`. An ablation that fails does not stop the
others; it is named at the end.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from dataclasses import asdict
from pathlib import Path

from esfp import files, params
from esfp.ablations import Variant, checksum, from_files, from_grid, tables

NOTEBOOK = Path("notebooks/ablations.ipynb")


def _scoring(values: params.Params) -> dict:
    """What the report has to know of a variant's params."""
    return {
        "score": values.score.model_dump(mode="json"),
        "per_type": values.corpus.per_type,
        "models": [candidate.name for candidate in values.generate.candidates],
    }


def report(base: Path, title: str, folder: Path, variants: list[Variant], wrong: dict) -> dict:
    """Compute what is missing, and execute the report's notebook where anything changed.

    Returns
    -------
    dict
        Failed variants, each with its one line.
    """
    from esfp import run

    values = params.load(base)
    if values.generate is None:
        raise files.DataError(f"{base}: starts from released scores; ablations need responses")
    target = folder / "report.ipynb"
    with run.alone(target):
        origin = Variant("base", "", values, params.run_name(base))
        outcome = tables(variants, origin, folder)
        if "items" not in outcome["base"]:
            raise files.DataError(f"the base itself: {next(iter(outcome['base'].values()))}")
        rows = [
            asdict(variant) | _scoring(variant.values) | outcome[variant.name]
            for variant in (origin, *variants)
        ]
        for row in rows:
            del row["values"], row["run"]
        failed = wrong | {row["name"]: row["failed"] for row in rows if "failed" in row}
        given = {
            "title": title,
            "folder": str(folder),
            "base": rows[0],
            "variants": [row for row in rows[1:] if "items" in row],
            "left_out": {row["name"]: row["left_out"] for row in rows if "left_out" in row},
            "failed": failed,
            "bootstrap": values.bootstrap.model_dump(mode="json"),
        }
        code = [NOTEBOOK, *sorted(Path(__file__).parent.glob("*.py"))]
        state = json.dumps([given, [checksum(str(file)) for file in code]], sort_keys=True)
        state_file = folder / "made.sha256"
        digest = hashlib.sha256(state.encode()).hexdigest()
        if not (target.exists() and state_file.exists() and state_file.read_text() == digest):
            if not given["variants"]:
                raise files.DataError(f"{base}: none of {len(rows) - 1 + len(wrong)} could be made")
            run.execute(NOTEBOOK, target, given)
            from esfp import paper

            paper.notebook_html(target, target.with_suffix(".html"))
            files.write_text(state_file, digest)
    for name, reason in given["left_out"].items():
        print(f"left out: {name}: {reason}", file=sys.stderr)
    print(target.with_suffix(".html"))
    return failed


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit code, 1 where any ablation failed."""
    parser = argparse.ArgumentParser(prog="python -m esfp.ablate", description=__doc__)
    parser.add_argument("--base", required=True, type=Path, metavar="FILE")
    parser.add_argument("--param", metavar="PLACE", help="such as score.weights.scd")
    parser.add_argument("--values", metavar="LIST", help="such as 0.3,0.4,0.5")
    options = parser.parse_args(arguments)
    try:
        out = Path("outputs", params.run_name(options.base))
        if options.param:
            made = from_grid(options.base, options.param, options.values or "")
            title, folder = f"Sweep of {options.param}", out / "sweeps" / files.slug(options.param)
        else:
            made = from_files(options.base)
            title, folder = "Ablations", out / "ablations"
        failed = report(options.base, title, folder, *made)
    except files.DataError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for name, reason in failed.items():
        print(f"failed: {name}: {reason}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
