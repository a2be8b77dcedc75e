"""Language models as judges: how they are asked, and what is done with a reply of no use.

Sections 4.4 and 4.5 of the paper; what is asked is in esfp.questions.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pandas as pd

from esfp import calls, files, preflight
from esfp.providers import Provider
from esfp.questions import Folded, Question, folded_question, labels_question, stance_question
from esfp.replies import Shifted, Unreadable
from esfp.tally import Tally

MOST_ROUNDS = 3  # requests a question: as it is, and after a defect or an answer cut short
MORE_ROOM = 4  # times the room after an answer that was cut


def build(
    provider: Provider, judge: dict, question: Question, remark: str = "", room: int = 1
) -> calls.Request:
    """The request for one question; the limit of its answer is `room` times the question's own.

    `remark` says why an earlier answer was no use: the request is then the question's second draw.
    A limit that the params file states is kept where it is the larger one.
    """
    stated = provider.decoding | judge.get("decoding", {})
    names = ("max_completion_tokens", "max_tokens")
    name = next((name for name in names if name in stated), "max_tokens")
    decoding = judge.get("decoding", {}) | {name: max(stated.get(name, 0), question.room) * room}
    if provider.json_mode == "schema":
        key = question.schema["required"][0]
        whole = {"name": key, "strict": True, "schema": question.schema}
        decoding["response_format"] = {"type": "json_schema", "json_schema": whole}
    elif provider.json_mode == "object":
        decoding["response_format"] = {"type": "json_object"}
    request = calls.build(
        provider, judge["model"], question.system, question.user, decoding, sample=int(bool(remark))
    )
    return dataclasses.replace(request, remark=remark)


def target(judge: dict, providers: dict[str, dict]) -> preflight.Target:
    """One short question to a judge, asked as all its questions are."""
    provider = Provider.model_validate(providers[judge["provider"]])
    question = labels_question(
        ["Water is made of hydrogen and oxygen."],
        "You are a linguistic annotation expert. Label each sentence A, B or C; answer in JSON.",
    )
    request = build(provider, judge, question)
    place = judge.get("place", f"judge.judges ({judge['name']})")
    return preflight.Target(place, judge["provider"], provider, request, question.read)


@dataclasses.dataclass(frozen=True)
class Asker:
    """Where judges are reached and what has been answered already.

    `run_dir` holds the journal; `reuse` names runs whose journals are read too. Prompts are texts.
    `folded` says whose stance is asked for together with the labels: see `questions.fold`. With
    `audit`, each label has to stand beside the first words of its sentence. `tallies` says what
    became of each judge's questions; it grows as they are asked.
    """

    run_dir: str
    providers: dict[str, dict]
    judge_prompt: str
    stance_prompt: str
    reuse: tuple[str, ...] = ()
    folded: Folded = dataclasses.field(default_factory=dict)
    audit: bool = False
    tallies: list[Tally] = dataclasses.field(default_factory=list)

    def labels(self, sentences: pd.DataFrame, judge: dict) -> list[str | None]:
        """This judge's label of each row; None for all rows of a response where it failed."""
        groups = list(sentences.groupby(files.KEYS, sort=False))
        lists = {key: group["sentence"].tolist() for key, group in groups}
        found = pd.Series(index=sentences.index, dtype=object)
        replied = self._ask(judge, self.label_questions(lists, judge), "labels")
        self.tallies[-1].sentences = sum(len(read or []) for read in replied)
        for (_, group), read in zip(groups, replied, strict=True):
            found.loc[group.index] = read if read is not None else [None] * len(group)
        return [None if pd.isna(label) else label for label in found]

    def stances(self, responses: pd.DataFrame, judge: dict) -> list[str | None]:
        """This judge's stance of each response; None where it failed.

        Of a folded call the answer is in the journal by then. Labels and stance are each taken
        from the first reply in which they can be read: a reply that is right in one and of no use
        in the other is asked for again, and what was right in it stays.
        """
        keys = responses[files.KEYS].itertuples(index=False, name=None)
        texts = dict(zip(keys, responses["text"], strict=True))
        return self._ask(judge, self.stance_questions(texts, judge), "stance")

    def label_questions(self, sentences: dict[tuple, list[str]], judge: dict) -> dict:
        """The question about each response's sentences; keyed as they are, by response."""
        return {
            key: self._folded_question(judge, key, "labels")
            or labels_question(listed, self.judge_prompt, self.audit)
            for key, listed in sentences.items()
        }

    def stance_questions(self, texts: dict[tuple, str], judge: dict) -> dict:
        """The question about each response's text; keyed as they are, by response."""
        return {
            key: self._folded_question(judge, key, "stance")
            or stance_question(text, self.stance_prompt)
            for key, text in texts.items()
        }

    def _folded_question(self, judge: dict, key: tuple, part) -> Question | None:
        both = self.folded.get((judge["name"], *key))
        prompts = (self.judge_prompt, self.stance_prompt)
        return both and folded_question(*both, prompts, part, self.audit)

    def _ask(self, judge: dict, asked: dict[tuple, Question], kind: str) -> list:
        """What each reply says, None where no reply could be used.

        An unusable reply is asked for once more with its defect named; one that was cut by the
        limit is asked for once more with more room, and never repaired.
        """
        provider = Provider.model_validate(self.providers[judge["provider"]])
        keys, questions = list(asked), list(asked.values())
        found: list = [None] * len(questions)
        tries: dict[int, list[tuple[str, str]]] = {}  # place → (reply, its defect)
        turns = dict.fromkeys(range(len(questions)), ("", 1))  # place → (remark, room)
        tally = Tally(judge["name"], {"stance": "stances"}.get(kind, kind), len(questions))
        unanswered = set()
        with calls.Journal(Path(self.run_dir) / "journal.sqlite") as journal:
            for round_ in range(MOST_ROUNDS):
                requests = {
                    place: build(provider, judge, questions[place], remark, room)
                    for place, (remark, room) in turns.items()
                }
                replied = self._answers(judge, list(requests.values()), provider, journal)
                tally.note({request.sha for request in requests.values()}, replied, round_ > 0)
                following = {}
                for place, request in requests.items():
                    if request.sha not in replied:
                        unanswered.add(place)  # asked again when the stage is run again
                        continue
                    tally.replies += round_ == 0
                    question, (remark, room) = questions[place], turns[place]
                    answer = replied[request.sha]
                    try:
                        if answer["finish_reason"] == "length":
                            raise Unreadable("it was cut off by the token limit")
                        found[place] = question.read(answer["text"])
                        tally.at_first += round_ == 0
                    except Unreadable as defect:
                        tally.shifted += round_ == 0 and isinstance(defect, Shifted)
                        tries.setdefault(place, []).append((answer["text"], str(defect)))
                        if answer["finish_reason"] == "length":
                            if room == 1 and provider.limit_parameter != "none":
                                following[place] = (remark, MORE_ROOM)
                        elif not remark:
                            remark = f"An earlier answer was no use: {defect}."
                            following[place] = (remark, room)
                turns = following
        failed = [place for place in tries if found[place] is None]
        self._keep(judge, kind, {keys[place]: tries[place] for place in failed})
        tally.answered = sum(read is not None for read in found)
        tally.failed = len(unanswered)
        tally.unreadable = len(set(failed) - unanswered)
        self.tallies.append(tally)
        return found

    def _keep(self, judge: dict, kind: str, failed: dict[tuple, list[tuple[str, str]]]) -> None:
        """Write replies that could not be used where a person can look at them."""
        path = Path(self.run_dir, "unreadable", f"{kind}-{judge['name']}.json")
        if not failed:
            path.unlink(missing_ok=True)
            return
        entries = [
            dict(zip(files.KEYS, key, strict=True))
            | {"replies": [{"raw": raw, "defect": defect} for raw, defect in tries]}
            for key, tries in failed.items()
        ]
        files.write_json(path, {"judge": judge["name"], "kind": kind, "failed": entries})

    def _answers(
        self,
        judge: dict,
        requests: list[calls.Request],
        provider: Provider,
        journal: calls.Journal,
    ) -> dict[str, dict]:
        """Answers by request sha: those recorded, and for the rest the model's.

        Any recorded answer counts, an empty one too: what follows is another request.
        """
        asked = {request.sha: request for request in requests}
        for run in self.reuse:
            path = Path("outputs", run, "journal.sqlite")
            if not path.exists():
                raise files.DataError(f"judge.reuse: run '{run}' has no journal at {path}")
            with calls.Journal(path) as other, journal.bulk():
                for sha, (raw, when) in other.answers(asked).items():
                    journal.put(sha, asked[sha].canonical(), raw, when, replace=False)
        recorded = journal.read(asked, lambda *_: True)
        pending = [request for sha, request in asked.items() if sha not in recorded]
        if pending:
            preflight.check([target(judge, self.providers)], journal)
        label = f"judge {judge['name']}"
        calls.complete(pending, provider, journal, calls.reporter(label, len(recorded)))
        return journal.read(asked, lambda raw, _: calls.read_answer(raw))
