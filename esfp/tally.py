"""What became of the judges' questions: the closing table of the judge stage."""

from __future__ import annotations

import dataclasses
import time

import pandas as pd

from esfp import usage
from esfp.usage import TOKENS


@dataclasses.dataclass
class Tally:
    """One judge's labels or stances: what became of its questions, and what they took."""

    judge: str
    task: str  # labels or stances
    responses: int = 0  # that it was asked about
    answered: int = 0
    unreadable: int = 0  # its replies could not be used, the last one included
    failed: int = 0  # a call failed; it is made again when the stage is run again
    replies: int = 0  # first replies
    at_first: int = 0  # those of them that could be used
    shifted: int = 0  # and those whose labels stand beside words of other sentences
    sentences: int | None = None  # that got a label
    # sha → tokens of its answer
    requests: dict[str, tuple] = dataclasses.field(default_factory=dict)
    asked_again: int = 0  # those of them that follow a reply of no use
    seconds: float | None = None  # of an offline judge, training included

    def note(self, shas: set[str], answers: dict[str, dict], again: bool) -> None:
        """Take down a round of requests and what answered them."""
        for sha in sorted(shas):
            answer = answers.get(sha, {})
            self.requests[sha] = tuple(answer.get(name) for name in TOKENS)
        self.asked_again += len(shas) if again else 0


def offline(judge: str, task: str, start: float, responses: int, sentences: int | None) -> Tally:
    """Of a judge that is trained and asked here, and answers always.

    Parameters
    ----------
    start
        When it began, by `time.monotonic`.
    """
    seconds = time.monotonic() - start
    return Tally(judge, task, responses, responses, sentences=sentences, seconds=seconds)


def table(
    tallies: list[Tally],
    asked: pd.DataFrame,
    prices: dict[str, dict],
    self_judged: dict[str, list[str]],
) -> pd.DataFrame:
    """Closing table: one row a judge and task.

    Parameters
    ----------
    asked
        Every asking of the judges' requests, from `usage.read`.
    prices
        By judge: `input` and `output`, US dollars a million tokens.
    self_judged
        By judge: the models under test that are the judge's own model.

    Returns
    -------
    DataFrame
        judge, task, self_judged (those models), responses, answered, unreadable, failed,
        sentences, minutes, and for a language model at_first, shifted, calls, asked_again and the
        columns of `usage.totals`. A request that serves both tasks of a judge counts with the
        first.
    """
    rows, seen = [], set()
    for tally in tallies:
        names = ("responses", "answered", "unreadable", "failed", "sentences")
        row = {"judge": tally.judge, "task": tally.task}
        row["self_judged"] = ", ".join(self_judged.get(tally.judge, []))
        row |= {name: getattr(tally, name) for name in names}
        if tally.seconds is not None:
            rows.append(row | {"minutes": tally.seconds / 60})
            continue
        new = {sha: used for sha, used in tally.requests.items() if (tally.judge, sha) not in seen}
        seen |= {(tally.judge, sha) for sha in new}
        row |= {"at_first": tally.at_first, "shifted": tally.shifted, "calls": len(new)}
        row["asked_again"] = tally.asked_again
        answers = pd.DataFrame(
            [(sha, *used) for sha, used in new.items()], columns=["sha", *TOKENS]
        )
        rows.append(row | usage.totals(asked, answers, prices.get(tally.judge)))
    return usage.table(rows)


def shas(tallies: list[Tally]) -> set[str]:
    """Of every request that the judges' questions took."""
    return {sha for tally in tallies for sha in tally.requests}


def audited(tallies: list[Tally]) -> pd.DataFrame:
    """How often the first words beside the labels were the sentences' own at first asking.

    Returns
    -------
    DataFrame
        judge, replies, matched (the whole reply could be used), shifted (an echo was another
        sentence's, or none's), matched_share; one row a language model that labels.
    """
    rows = [
        {
            "judge": tally.judge,
            "replies": tally.replies,
            "matched": tally.at_first,
            "shifted": tally.shifted,
            "matched_share": tally.at_first / tally.replies if tally.replies else float("nan"),
        }
        for tally in tallies
        if tally.task == "labels" and tally.seconds is None
    ]
    return pd.DataFrame(rows, columns=["judge", "replies", "matched", "shifted", "matched_share"])


def results(
    tallies: list[Tally], self_judged: dict[str, list[str]], audit: bool
) -> dict[str, float | str]:
    """What prose may quote: who judges itself, and what the audit found."""
    out: dict[str, float | str] = {}
    if self_judged:
        pairs = [f"{model} by {judge}" for judge, models in self_judged.items() for model in models]
        out["judge.self_judged"] = ", ".join(pairs)
    for row in audited(tallies).to_dict("records") if audit else []:
        out[f"judge.audit.matched_share.{row['judge']}"] = row["matched_share"]
        out[f"judge.audit.shifted.{row['judge']}"] = row["shifted"]
    return out
