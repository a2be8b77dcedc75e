"""Ablations of a run, and sweeps of one parameter: what changes, and by how much?

An ablation is a file of params/ablations/ laid over the base, a sweep is one parameter at several
values. The table of items of each is computed from what is recorded, without a call, and kept by
the hash of all that it depends on, so that a second time nothing is.
"""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from esfp import files, layers, params

FOLDER = Path("params/ablations")
# settings that do not reach the table of items, by stage; the score's are applied to it
UNREAD = {
    "generate": ("judges",),
    "judge": ("self_judged",),
    "embed": (),
    "score": ("psi_ceiling", "weights", "cpc_bonus"),
}


class LeftOut(files.DataError):
    """An ablation needs calls that nobody has made; the text says which."""


@dataclass
class Variant:
    """One variation of the base."""

    name: str
    question: str
    values: params.Params
    run: str  # whose recorded answers are taken, beside the base's

    def depends_on(self, base: str) -> str:
        """Hash of all that its table of items depends on, settings, data and code."""
        settings = {
            stage: params.stage_parameters(self.values, stage, self.run)
            for stage in ("generate", "judge", "embed", "score")
        }
        for stage, unread in UNREAD.items():
            for key in ("run_dir", "prices", "reuse", *unread):
                settings[stage].pop(key, None)
        data = {file for group in params.inputs(self.values).values() for file in group}
        for run in {base, self.run, *self.values.generate.reuse}:
            for folder in ("responses", "judged", "stances"):
                data |= set(map(str, Path("outputs", run, folder).glob("*.parquet")))
        if self.run != base:
            data |= {
                f"outputs/{self.run}/{made}" for made in ("items.parquet", "params/score.yaml")
            }
        data |= set(map(str, Path(__file__).parent.glob("*.py")))
        sums = {file: checksum(file) for file in sorted(data) if Path(file).exists()}
        return hashlib.sha256(json.dumps([settings, sums]).encode()).hexdigest()


@cache
def checksum(file: str) -> str:
    """sha256 of a file."""
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


def question(path: Path) -> str:
    """The comment that a params file begins with."""
    lines = path.read_text(encoding="utf-8").splitlines()
    end = next((n for n, line in enumerate(lines) if not line.startswith("#")), len(lines))
    return " ".join(line.lstrip("# ").strip() for line in lines[:end])


def _rebased(path: Path, base: Path) -> dict:
    """Values of an ablation laid over `base`, whatever run its file extends."""
    data = layers.read(path)
    parent = layers.extended(path, data)
    data.pop("extends", None)
    below = parent is not None and parent.parent == path.parent
    return layers.over(_rebased(parent, base) if below else layers.resolve(base), data, path)


def from_files(base: Path, folder: Path = FOLDER) -> tuple[list[Variant], dict[str, str]]:
    """The ablations of `folder`, laid over `base`; and what is wrong with the others, by name."""
    found, wrong = [], {}
    for path in sorted(folder.glob("*.yaml")):
        try:
            values = params.validate(_rebased(path, base), path)
            found.append(Variant(path.stem, question(path), values, params.run_name(path)))
        except files.DataError as error:
            wrong[path.stem] = str(error)
    return found, wrong


def from_grid(base: Path, parameter: str, values: str) -> tuple[list[Variant], dict[str, str]]:
    """The base with `parameter` (its place, with dots) at each of `values` (as in a YAML list)."""
    try:
        grid = yaml.load(f"[{values}]", Loader=layers.Loader)  # noqa: S506 (a SafeLoader)
    except yaml.YAMLError:
        raise files.DataError(f"VALUES={values}: write them as 0.3,0.4,0.5") from None
    found, wrong = [], {}
    for value in grid:
        change: Any = value
        for part in reversed(parameter.split(".")):
            change = {part: change}
        shown = yaml.safe_dump(value, default_flow_style=True, width=200).split("\n...")[0].strip()
        name = f"{parameter}={shown}"
        try:
            laid = params.validate(layers.over(layers.resolve(base), change, base), base)
            found.append(Variant(name, "", laid, params.run_name(base)))
        except files.DataError as error:
            wrong[name] = str(error)
    return found, wrong


def tables(variants: list[Variant], base: Variant, folder: Path) -> dict[str, dict[str, str]]:
    """Write each variant's table of items to `folder`, where it is not there yet.

    Returns
    -------
    dict
        By variant: `items`, the file; or why there is none, `left_out` (it needs calls) or
        `failed`.
    """
    outcome, bench, kept = {}, None, set()
    for variant in (base, *variants):
        path = folder / "items" / f"{variant.depends_on(base.run)[:16]}.parquet"
        wanting = path.with_suffix(".left_out")
        kept |= {path, wanting}
        try:
            if wanting.exists():
                raise LeftOut(wanting.read_text(encoding="utf-8"))
            if not path.exists():
                from esfp import variants as computing  # slow to import, and rarely needed

                bench = bench or computing.Bench(base)
                print(f"{base.run}: {variant.name}", file=sys.stderr)
                files.write_parquet(path, bench.items(variant), files.ITEMS)
            outcome[variant.name] = {"items": str(path)}
        except LeftOut as reason:
            files.write_text(wanting, str(reason))
            outcome[variant.name] = {"left_out": str(reason)}
        except Exception as error:  # one ablation's fault is not the others'
            words = str(error) if isinstance(error, files.DataError) else repr(error)
            outcome[variant.name] = {"failed": " ".join(words.split())}
    for stale in set((folder / "items").glob("*")) - kept:
        stale.unlink()
    return outcome
