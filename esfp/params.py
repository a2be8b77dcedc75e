"""Params files: one YAML file a run, validated strictly and split into one set a stage."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from esfp import files, keys, layers, lines
from esfp.layers import ParamsError as ParamsError
from esfp.layers import merge as merge
from esfp.providers import Embedded as Embedded  # parts of the params, used by other modules
from esfp.providers import Provider as Provider
from esfp.providers import Weights as Weights
from esfp.schema import Candidate as Candidate
from esfp.schema import Corpus as Corpus
from esfp.schema import LLMJudge as LLMJudge
from esfp.schema import Params as Params
from esfp.schema import Price as Price
from esfp.schema import Profile as Profile
from esfp.schema import nearest

STAGES = ["generate", "judge", "embed", "score", "bootstrap", "figures"]


def _known_keys(place: tuple) -> list[str]:
    """Names a mapping at `place` may hold, for the 'did you mean' of an unknown key."""
    schema: Any = Params.model_json_schema()
    definitions = schema["$defs"]

    def options(node):
        if "$ref" in node:
            return options(definitions[node["$ref"].split("/")[-1]])
        inner = [
            o for part in (*node.get("anyOf", []), *node.get("oneOf", [])) for o in options(part)
        ]
        return inner or [node]

    nodes = [schema]
    for part in place:
        following = []
        for node in nodes:
            if isinstance(part, int):
                following += options(node.get("items", {}))
            elif part in node.get("properties", {}):
                following += options(node["properties"][part])
            elif isinstance(node.get("additionalProperties"), dict):
                following += options(node["additionalProperties"])
        nodes = (
            following or nodes
        )  # a discriminator's tag is a step of the place, not of the schema
    return sorted({key for node in nodes for key in node.get("properties", {})})


def _one_line(path: Path, error: ValidationError) -> str:
    first = error.errors()[0]
    place = tuple(first["loc"])
    dotted = ".".join(str(part) for part in place)
    where = lines.at(path, place)
    if first["type"] == "extra_forbidden":
        known = _known_keys(place[:-1])
        hint = nearest(str(place[-1]), known) or f"; known keys: {', '.join(known)}"
        return f"{where}: unknown key '{dotted}'{hint}"
    if first["type"] == "missing":
        return f"{where}: '{dotted}' is missing"
    if first["type"] == "value_error":
        message = str(first["ctx"]["error"])
        if not dotted and (stated := re.match(r"[a-z_]+(?:\.\w+)*(?=: )", message)):
            where = lines.at(path, stated[0].split("."))
        return f"{where}: {dotted + ': ' if dotted else ''}{message}"
    got = first.get("input")
    shown = f", got {got!r}" if isinstance(got, str | int | float | bool | None) else ""
    if "key" in str(place[-1] if place else "").lower():
        shown = ""  # never repeat what may be a secret
    return f"{where}: '{dotted}': {first['msg'][0].lower()}{first['msg'][1:]}{shown}"


def load(path: str | Path) -> Params:
    """Read a params file, follow `extends`, and validate every key.

    Parameters
    ----------
    path
        YAML file. `extends: other.yaml` (relative to this file) takes the other file's values
        where this one says nothing.

    Raises
    ------
    ParamsError
        With one line: the file and its line, the key, what was expected and the nearest known key.
    """
    return validate(layers.resolve(path), Path(path))


def validate(data: dict, path: Path) -> Params:
    """Resolved values as params; `path` is the file to name where they are wrong.

    Raises
    ------
    ParamsError
        As `load`.
    """
    if (place := keys.find(data)) is not None:
        raise ParamsError(
            f"{lines.at(path, place)}: '{'.'.join(map(str, place))}' holds something shaped like a "
            "key; keys are read from the environment or a .env file: give the variable's name as "
            "key_env"
        )
    try:
        return Params.model_validate(data)
    except ValidationError as error:
        raise ParamsError(_one_line(path, error)) from None


def read_bands(paths: list[str]) -> dict[str, dict]:
    """Profiles of bands by the name of their file, as plain values.

    Raises
    ------
    ParamsError
        With one line: the file, the key, and what was expected.
    """
    profiles = {}
    for path in map(Path, paths):
        try:
            profile = Profile.model_validate(layers.read(path))
        except ValidationError as error:
            raise ParamsError(_one_line(path, error)) from None
        if path.stem in profiles:
            raise ParamsError(f"types.bands: two files are called '{path.stem}'")
        profiles[path.stem] = profile.model_dump(mode="json")
    return profiles


def run_name(path: str | Path) -> str:
    """Name of the run a params file makes: its path below params/, without the suffix."""
    path = Path(path)
    parts = path.with_suffix("").parts
    if "params" in parts:
        parts = parts[len(parts) - parts[::-1].index("params") :]
    else:
        parts = parts[-1:]
    return "/".join(parts)


def stage_parameters(params: Params, stage: str, run: str) -> dict[str, Any] | None:
    """What the notebook of `stage` is given, as plain YAML-able values.

    Returns None where the run does not have the stage: a run that starts from released score
    tables has no responses to judge, embed or resample.
    """
    if params.released is not None and stage not in ("score", "figures"):
        return None
    whole = params.model_dump(mode="json")
    out: dict[str, Any] = {"run_dir": f"outputs/{run}", "corpus": whole["corpus"]}
    if stage == "generate":
        # the judges are tried before the first call is paid, so that a mistake shows at once
        out["judges"] = [
            {key: value for key, value in judge.items() if key != "vendor"}
            | {"place": f"judge.judges.{number}"}
            for number, judge in enumerate(whole["judge"]["judges"])
            if judge["kind"] == "llm"
        ]
        users = [*whole["generate"]["candidates"], *out["judges"]]
        used = {user["provider"] for user in users}
        out["providers"] = {k: v for k, v in whole["providers"].items() if k in used}
        out["prices"] = params.prices_of(params.generate.candidates)
    if stage == "judge":
        used = {judge.get("provider") for judge in whole["judge"]["judges"]}
        out["providers"] = {k: v for k, v in whole["providers"].items() if k in used}
        out["prices"] = params.prices_of(params.judge.judges)
        out["self_judged"] = params.self_judged()
        whole["judge"]["stance_phrasings"] = params.stance_phrasings()
    if stage in ("score", "figures"):
        out["released"] = whole["released"]
    if stage == "score":
        out["bootstrap"] = {k: whole["bootstrap"][k] for k in ("draws", "level", "seed")}
        out["gold"] = (whole["judge"] or {}).get("gold")
    if stage in ("score", "figures"):
        out["cut"] = whole["types"]["cut"]
    if stage == "figures":
        out["seed"] = whole["bootstrap"]["seed"]
    if stage == "bootstrap":
        out["types"] = whole["types"] | {"bands": read_bands(params.types.bands)}
    if stage in ("judge", "embed", "score"):
        out["samples"] = (whole["generate"] or {"samples": 1})["samples"]
    if stage in ("bootstrap", "figures"):
        out["score"] = whole["score"]
    if stage != "generate":
        out["models"] = [
            {key: candidate[key] for key in ("name", "vendor", "type")}
            for candidate in (whole["generate"] or {"candidates": []})["candidates"]
        ]
    return out | whole[stage]


def inputs(params: Params) -> dict[str, list[str]]:
    """Data files that each stage reads, by stage; what make has to watch beside the code."""
    corpus = [params.corpus.items, params.corpus.phrasings, params.corpus.lexicons]
    reads: dict[str, list[str]] = {stage: list(corpus) for stage in STAGES}
    if params.generate and params.judge:
        reads["generate"].append(params.generate.system_prompt)
        gold = [f"{params.judge.gold}/{name}.csv" for name in ("sentences", "stances")]
        reads["score"].append(gold[0])
        for optional in ("human_*.csv", "llm_*.csv"):
            gold += sorted(map(str, Path(params.judge.gold).glob(optional)))
        reads["bootstrap"] += params.types.bands
        reads["judge"] += [params.judge.judge_prompt, params.judge.stance_prompt, *gold]
    if params.released:
        printed = Path(params.released).with_name("printed.yaml")
        beside = [str(printed)] if printed.exists() else []
        reads["score"] += [params.released, *beside]
        claims = ["paper/claims.yaml", "paper/public_facts.yaml"] if beside else []
        reads["figures"] += [params.released, *beside, *claims]
    return reads


def write_stage_parameters(path: str | Path) -> None:
    """Write `outputs/<run>/params/<stage>.yaml` for each stage, only where it changed.

    A stage's file holds what that stage alone depends on, so that make re-runs nothing that a
    changed value does not reach. Prices stand in `prices_<stage>.yaml`, for they reach a stage's
    closing table and nothing that it hands on. `inputs.d` beside them tells make which data files
    it reads.
    """
    params, run = load(path), run_name(path)
    rules = []
    for number, stage in enumerate(STAGES, start=1):
        values = stage_parameters(params, stage, run)
        if stage in ("generate", "judge"):
            prices = (values or {}).pop("prices", {})
            files.write_text(f"outputs/{run}/params/prices_{stage}.yaml", yaml.safe_dump(prices))
        text = yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=100)
        files.write_text(f"outputs/{run}/params/{stage}.yaml", text)
        if values is not None:
            sums = " ".join(f".make/{file}.sum" for file in inputs(params)[stage])
            rules.append(f"outputs/{run}/notebooks/{number}_{stage}.ipynb: {sums}\n")
    # an empty rule a file, so that a file that is gone is the stage's error, not make's
    gone = sorted({file for group in inputs(params).values() for file in group})
    rules += [f"{file}:\n" for file in gone]
    files.write_text(f"outputs/{run}/params/inputs.d", "".join(rules))
