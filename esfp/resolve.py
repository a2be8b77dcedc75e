"""Print a params file as a run sees it, each value with where it comes from.

`python -m esfp.resolve --params FILE`, or `make resolve PARAMS=FILE`. Values that no file states
are the defaults of `esfp.schema`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

from esfp import files, lines, params


def _leaves(node: yaml.Node, place: tuple = ()) -> Iterator[tuple[int, tuple]]:
    """(line from 0, place) of each value in a dumped document that is no mapping or list."""
    if isinstance(node, yaml.MappingNode) and node.value:
        for key, value in node.value:
            yield from _leaves(value, (*place, key.value))
    elif isinstance(node, yaml.SequenceNode) and node.value:
        for index, value in enumerate(node.value):
            yield from _leaves(value, (*place, index))
    else:
        yield node.start_mark.line, place


def resolved(path: str | Path) -> str:
    """The whole run as YAML, with `# file line n` or `# default` behind each value.

    Raises
    ------
    ParamsError
        As `params.load`.
    """
    values = params.load(path).model_dump(mode="json")
    text = yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=float("inf"))
    rows = text.splitlines()
    for row, place in _leaves(yaml.compose(text, Loader=yaml.SafeLoader)):
        spot = lines.find(path, place)
        stated = spot.found == len(place)
        rows[row] += f"  # {spot.path} line {spot.line}" if stated else "  # default"
    return "\n".join(rows) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m esfp.resolve", description=__doc__)
    parser.add_argument("--params", required=True, type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    try:
        sys.stdout.write(resolved(options.params))
    except files.DataError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
