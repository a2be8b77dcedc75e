"""What a run was made from and what it made, by hash: `outputs/<run>/manifest.json`.

`python -m esfp.manifest --params params/local.yaml`. It names no machine and no user. Hashes are
sha256 of a file's bytes.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import importlib.metadata
import json
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from esfp import encoder, files, params

# of a run's folder: what is no output of the stages after the answers, or tells these again
APART = {
    *("responses", "provenance.json", "released.csv", "printed.yaml", "unreadable"),
    *("params", "results", "notebooks", "manifest.json", "ablations", "sweeps"),
}


def checksum(path: str | Path) -> str:
    """sha256 of a file."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def together(sums: dict[str, str]) -> str:
    """One sha256 for several files: of their sums, in the order of their names."""
    return hashlib.sha256(json.dumps(sums, sort_keys=True).encode()).hexdigest()


def code() -> dict[str, Any]:
    """The commit, and whether a file that git knows differs from it; nulls without git."""
    commands = (["git", "rev-parse", "HEAD"], ["git", "status", "--porcelain", "-uno"])
    try:
        commit, status = (
            subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603
            for command in commands
        )
    except (OSError, subprocess.CalledProcessError):
        return {"commit": None, "dirty": None}
    return {"commit": commit, "dirty": bool(status)}


def packages() -> dict[str, str]:
    """Installed versions of the packages that requirements.lock names, and Python's."""
    found = {"python": platform.python_version()}
    for lock in map(Path, ("requirements.lock", "nodeps.lock")):
        text = lock.read_text(encoding="utf-8") if lock.exists() else ""
        for name in re.findall(r"^([A-Za-z0-9._-]+)==", text, re.M):
            try:
                found[name] = importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                continue  # of another platform
    return found


def made(run_dir: Path) -> dict[str, str]:
    """Sums of all that the stages after the answers wrote, by path below the run's folder."""
    found = {}
    for top in sorted(run_dir.iterdir()):
        if top.name not in APART and not top.name.startswith(("journal.", "report.")):
            below = [path for path in sorted(top.rglob("*")) if path.is_file()]
            for path in [top] if top.is_file() else below:
                found[str(path.relative_to(run_dir))] = checksum(path)
    return found


def answered(run_dir: Path, models: list[str]) -> dict[str, Any]:
    """Recorded answers: their sums, and who served them, and when, by model."""
    sums, served = {}, {}
    for model in models:
        path = run_dir / "responses" / f"{files.slug(model)}.parquet"
        rows = files.read_parquet(path, files.RESPONSES)
        sums[str(path.relative_to(run_dir))] = checksum(path)
        served[model] = {
            "served_models": sorted(rows["served_model"].dropna().unique()),
            "fingerprints": sorted(rows["fingerprint"].dropna().unique()),
            "first_answer": rows["created_at"].dropna().min(),
            "last_answer": rows["created_at"].dropna().max(),
        }
    return {"responses": sums, "served": served}


def build(path: str | Path) -> dict[str, Any]:
    """The manifest of the run of a params file, from what is there now.

    Raises
    ------
    DataError
        If a file that the run reads is missing.
    """
    values, run = params.load(path), params.run_name(path)
    run_dir = Path("outputs", run)
    read = sorted({file for group in params.inputs(values).values() for file in group})
    for file in read:
        if not Path(file).exists():
            raise files.DataError(f"{file}: not there, and the run reads it")
    resolved = {}
    for stage in params.STAGES:
        given = params.stage_parameters(values, stage, run)
        resolved[stage] = hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()
    corpus = {file: checksum(file) for file in (values.corpus.items, values.corpus.phrasings)}
    out: dict[str, Any] = {
        "run": run,
        "code": code(),
        "packages": packages(),
        "params": resolved,
        "params_sha256": together(resolved),
        "inputs": {file: checksum(file) for file in read},
        "corpus_sha256": together(corpus),
        "lexicons_sha256": checksum(values.corpus.lexicons),
        "corpus": values.corpus.model_dump(mode="json"),
        "score": values.score.model_dump(mode="json"),
        "bootstrap": values.bootstrap.model_dump(mode="json"),
        "outputs": made(run_dir),
        "made": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }
    if values.generate is None:
        return out
    prompts = [values.generate.system_prompt, values.judge.judge_prompt, values.judge.stance_prompt]
    embedded = {
        name: provider.embedded.weights.sha256
        for name, provider in values.providers.items()
        if provider.embedded
    }
    model = encoder.model_folder(values.embed.package, values.embed.path)
    judging = values.judge.model_dump(mode="json", exclude={"reuse"})
    out |= {
        "prompts_sha256": {file: checksum(file) for file in prompts},
        "judge": judging,
        "weights": embedded | {"sentence encoder": encoder.fingerprint(model)},
        "decoding": {
            candidate.name: values.providers[candidate.provider].decoding | candidate.decoding
            for candidate in values.generate.candidates
        },
        "samples": values.generate.samples,
    }
    return out | answered(run_dir, [each.name for each in values.generate.candidates])


def read(run: str) -> dict[str, Any]:
    """The manifest of a run.

    Raises
    ------
    DataError
        If there is none, or it cannot be read.
    """
    path = Path("outputs", run, "manifest.json")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise files.DataError(
            f"{path}: not there; `make all PARAMS=params/{run}.yaml` makes the run and writes it"
        ) from None
    except ValueError as error:
        raise files.DataError(f"{path}: not JSON ({error}); delete it and run make") from None


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m esfp.manifest", description=__doc__)
    parser.add_argument("--params", required=True, type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    try:
        run = params.run_name(options.params)
        files.write_json(Path("outputs", run, "manifest.json"), build(options.params))
    except files.DataError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
