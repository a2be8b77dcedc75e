"""Params files as YAML: read strictly, and one laid over another (`extends`)."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from esfp import files


class ParamsError(files.DataError):
    """A params file is wrong; the text is one clear line."""


class Loader(yaml.SafeLoader):
    """SafeLoader that reads 1e-3 as a number and refuses a repeated key."""


Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?[0-9]+(?:\.[0-9]*)?[eE][-+]?[0-9]+$"),
    list("-+0123456789"),
)


def _mapping(loader, node, deep=True):
    seen = set()
    for key_node, _ in node.value:
        key = loader.construct_object(key_node, deep=True)
        if key in seen:
            line = key_node.start_mark.line + 1
            raise ParamsError(f"line {line}: the key '{key}' is there twice")
        seen.add(key)
    return yaml.SafeLoader.construct_mapping(loader, node, deep=deep)


Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def read(path: Path) -> dict:
    """The keys and values of one file, `extends` among them.

    Raises
    ------
    ParamsError
        If it is missing, no UTF-8, no YAML, or not a mapping; or if a key is there twice.
    """
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=Loader)  # noqa: S506 (a SafeLoader)
    except FileNotFoundError:
        raise ParamsError(f"{path}: no such params file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ParamsError(f"{path}: cannot be read as UTF-8 text ({error})") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "invalid syntax"
        raise ParamsError(f"{path}: not valid YAML{where}: {problem}") from None
    except ParamsError as error:
        raise ParamsError(f"{path}: {error}") from None
    if not isinstance(data, dict):
        raise ParamsError(f"{path}: expected keys and values, found {type(data).__name__}")
    return data


def _is_named(items: Any) -> bool:
    """Whether a list holds things that can be told apart by their `name`."""
    named = isinstance(items, list) and all(isinstance(i, dict) and "name" in i for i in items)
    return named and len(items) > 0


def merge(base: dict, change: dict) -> dict:
    """`base` with `change` laid over it.

    Mappings merge by key. A mapping laid over a list of named things (candidates, judges) goes to
    them by name: `judges: {words: {kind: words}, combined: null}` adds or changes the one and
    takes the other out, and leaves the rest and their order. Anything else, a list too, takes the
    place of what was there.

    Raises
    ------
    ParamsError
        If what is laid over a named thing is neither a mapping nor null.
    """
    merged = dict(base)
    for key, value in change.items():
        before = merged.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            merged[key] = merge(before, value)
        elif isinstance(value, dict) and _is_named(before):
            merged[key] = _merge_named(key, before, value)
        else:
            merged[key] = value
    return merged


def _merge_named(place: str, items: list[dict], changes: dict) -> list[dict]:
    known = {item["name"]: item for item in items}
    for name, change in changes.items():
        if change is None:
            known.pop(name, None)
        elif isinstance(change, dict):
            known[name] = merge(known.get(name, {"name": name}), change)
        else:
            raise ParamsError(
                f"{place}.{name}: write keys and values to lay over it, or null to take it out"
            )
    return list(known.values())


def resolve(path: str | Path, seen: tuple[Path, ...] = ()) -> dict:
    """The values of a params file, laid over those of the file that it extends.

    Raises
    ------
    ParamsError
        With one line, as `read`; or if a file extends itself.
    """
    path = Path(path)
    if path.resolve() in seen:
        raise ParamsError(f"{path}: extends itself, directly or through another file")
    data = read(path)
    parent = extended(path, data)
    data.pop("extends", None)
    if parent is None:
        return data
    return over(resolve(parent, (*seen, path.resolve())), data, path)


def over(base: dict, data: dict, path: Path) -> dict:
    """`merge`, its error with the name of the file that `data` is from."""
    try:
        return merge(base, data)
    except ParamsError as error:
        raise ParamsError(f"{path}: {error}") from None


def extended(path: Path, data: dict) -> Path | None:
    """The file that `path`, whose values are `data`, extends.

    Raises
    ------
    ParamsError
        If `extends` is anything but one path.
    """
    parent = data.get("extends")
    if parent is None:
        return None
    if not isinstance(parent, str):
        raise ParamsError(f"{path}: extends takes the path of one params file")
    return Path(os.path.normpath(path.parent / parent))


def by_name(data: Any, place: Sequence) -> tuple:
    """`place` with each index into a list of named things replaced by the name there."""
    named = []
    for part in place:
        if isinstance(data, list) and str(part).isdigit() and int(part) < len(data):
            data, part = data[int(part)], int(part)
            name = data.get("name") if isinstance(data, dict) else None
            part = name if isinstance(name, str) else part
        else:
            data = data.get(part) if isinstance(data, dict) else None
        named.append(part)
    return tuple(named)
