"""Do a run's outputs still belong to its inputs, and do its stages make them again?

`python -m esfp.verify --run local` computes every hash of `manifest.json` anew, then executes the
stages that need no endpoint into a folder of their own and compares what they write, byte by byte.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from esfp import files, manifest, params, run

BELOW = {"inputs": "", "responses": "outputs/{run}/", "outputs": "outputs/{run}/"}


def differences(then: dict, now: dict) -> list[str]:
    """What is not as the manifest says, a line each.

    Parameters
    ----------
    then, now : dict
        The manifest, and what `manifest.build` says now.
    """
    lines = []
    for stage, digest in then["params"].items():
        if now["params"].get(stage) != digest:
            lines.append(f"params: those of the stage {stage} have changed")
    for group, folder in BELOW.items():
        before, after = then.get(group, {}), now.get(group, {})
        for file in sorted(before.keys() | after.keys()):
            if before.get(file) != after.get(file):
                what = "is gone" if file not in after else "has changed"
                what = what if file in before else "is new"
                lines.append(f"{group}: {folder.format(run=then['run'])}{file} {what}")
    for name, digest in then.get("weights", {}).items():
        if now.get("weights", {}).get(name) != digest:
            lines.append(f"weights: those of {name} are others")
    return lines


def remarks(then: dict, now: dict) -> list[str]:
    """Differences that need not change an output: code and packages."""
    lines = []
    if then["code"]["dirty"]:
        lines.append(f"made from changed files on commit {then['code']['commit'][:12]}")
    if then["code"]["commit"] != now["code"]["commit"]:
        lines.append(f"made by commit {then['code']['commit']}, this is {now['code']['commit']}")
    names = sorted(then["packages"].keys() | now["packages"].keys())
    for name in names:
        before, after = (each["packages"].get(name, "none") for each in (then, now))
        if before != after:
            lines.append(f"package {name}: {before} then, {after} now")
    return lines


def deterministic(values: params.Params) -> list[str]:
    """Stages that make their outputs again from recorded files alone."""
    if values.released is not None:
        return ["score", "figures"]
    asks = values.judge.stance_judge != "offline" or any(
        judge.kind == "llm" for judge in values.judge.judges
    )
    return [*([] if asks else ["judge"]), "embed", "score", "bootstrap", "figures"]


def executed_again(name: str, then: dict) -> list[str]:
    """Execute the deterministic stages apart; outputs that come out otherwise, a line each."""
    path = Path("params", f"{name}.yaml")
    values, before = params.load(path), Path("outputs", name)
    with tempfile.TemporaryDirectory(dir="outputs", prefix=".verify-") as folder:
        out, stages = Path(folder, "run"), deterministic(values)
        given = ["responses", "params", "provenance.json", "results/generate.json"]
        if "judge" not in stages:
            given += ["judged", "stances", "results/judge.json", "judge_*.csv", "stance_*.csv"]
        for source in (each for glob in given for each in before.glob(glob)):
            target = out / source.relative_to(before)
            target.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
        for stage in stages:
            print(f"{name}: {stage}, again", file=sys.stderr)
            notebook = f"{run.notebook_name(stage)}.ipynb"
            told = params.stage_parameters(values, stage, name) | {"run_dir": str(out)}
            run.execute(Path("notebooks", notebook), out / "notebooks" / notebook, told, path)
        found = manifest.made(out)
    return [
        f"again: outputs/{name}/{file} comes out otherwise"
        for file in sorted(found.keys() | then["outputs"].keys())
        if found.get(file) != then["outputs"].get(file)
    ]


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit code, 1 where anything differs."""
    parser = argparse.ArgumentParser(prog="python -m esfp.verify", description=__doc__)
    parser.add_argument("--run", required=True, metavar="NAME")
    name = parser.parse_args(arguments).run
    try:
        then = manifest.read(name)
        now = manifest.build(Path("params", f"{name}.yaml"))
        lines = differences(then, now)
        for line in remarks(then, now):
            print(f"note: {line}")
        belongs = "belong" if not lines else "do not belong"
        print(f"{name}: the outputs {belongs} to these inputs (made {then['made']})")
        if not lines:
            lines = executed_again(name, then)
            count = len(then["outputs"])
            print(f"{name}: {count - len(lines)} of {count} files come out the same again")
    except files.DataError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print("".join(f"differs: {line}\n" for line in lines), end="")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
