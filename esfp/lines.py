"""Where in a params file a value stands: its line, in this file or in one that it extends.

Read only when there is something to say: the values themselves carry no marks.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import yaml

from esfp import layers


class Spot(NamedTuple):
    """The nearest there is to a place: file, line, and how many parts of the place are there."""

    path: Path
    line: int
    found: int


def find(path: str | Path, place: Sequence) -> Spot:
    """Find the value at `place`, or the mapping that it would have to be added to.

    Parameters
    ----------
    place
        Keys and list indices from the top, such as `("providers", "mine", "base_url")`. A part
        that the file does not have at that level is skipped.

    Raises
    ------
    OSError, yaml.YAMLError, ParamsError
        If a file cannot be read.
    """
    return _find(Path(path), layers.by_name(layers.resolve(path), place))


def _find(path: Path, place: Sequence) -> Spot:
    root = _compose(path.read_text(encoding="utf-8"))
    node, line, found, in_list = root, 1, 0, False
    for part in place:
        if (step := _step(node, part)) is not None:
            in_list |= isinstance(node, yaml.SequenceNode)
            found += 1
            line, node = step
    # mappings are merged with those of the file that is extended; lists take their place
    inherits = isinstance(node, yaml.MappingNode) and not in_list
    parent = layers.extended(path, layers.read(path))
    if found < len(place) and inherits and parent:
        inherited = _find(parent, place)
        if inherited.found > found:
            return inherited
    return Spot(path, line, found)


@cache
def _compose(text: str) -> yaml.Node:
    return yaml.compose(text, Loader=yaml.SafeLoader)


def _step(node: yaml.Node, part) -> tuple[int, yaml.Node] | None:
    """(line, value) of one key, list index, or name in a list; None where there is none such."""
    if isinstance(node, yaml.MappingNode):
        pairs = [(key.start_mark, value) for key, value in node.value if key.value == str(part)]
    elif isinstance(node, yaml.SequenceNode) and isinstance(part, int):
        pairs = [(value.start_mark, value) for value in node.value[part:][:1]]
    elif isinstance(node, yaml.SequenceNode):
        named = [(value, _step(value, "name")) for value in node.value]
        named = [value for value, name in named if name and name[1].value == part]
        pairs = [(value.start_mark, value) for value in named]
    else:
        pairs = []
    return (pairs[0][0].line + 1, pairs[0][1]) if pairs else None


def at(path: str | Path, place: Sequence) -> str:
    """`file line n` of the place or the nearest there is to it; the file alone where none is."""
    try:
        spot = find(path, place)
    except (OSError, yaml.YAMLError, layers.ParamsError):
        return str(path)
    return f"{spot.path} line {spot.line}" if spot.found else str(path)


def named(path: str | Path, place: Sequence) -> str:
    """`file line n: the.place`, and that it has to be added where it is not there yet."""
    try:
        missing = find(path, place).found < len(place)
    except (OSError, yaml.YAMLError, layers.ParamsError):
        missing = False
    dotted = ".".join(map(str, place))
    return f"{at(path, place)}: {dotted}{', which is not there yet' if missing else ''}"
