"""What calls took: retries, tokens, time and dollars, over all executions of a run.

Counting what one execution did would forget all that came before an interruption; here each asking
of a request is journalled as it ends, and totals are taken over all of them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from esfp import journal

COLUMNS = [field.name for field in dataclasses.fields(journal.Asked)]
TOKENS = ["prompt_tokens", "completion_tokens"]


def read(run_dir: str | Path, shas: Iterable[str]) -> pd.DataFrame:
    """Every asking of these requests that the run's journal knows of.

    Returns
    -------
    DataFrame
        sha, started_at (s since the epoch), seconds, tries, error, prompt_tokens,
        completion_tokens; one row an asking.
    """
    rows = journal.askings(Path(run_dir) / "journal.sqlite", shas)
    return pd.DataFrame([dataclasses.astuple(row) for row in rows], columns=COLUMNS)


def totals(asked: pd.DataFrame, answers: pd.DataFrame, price: dict | None = None) -> dict:
    """What some requests took.

    Parameters
    ----------
    asked
        From `read`; askings of other requests are left out.
    answers
        `sha`, `prompt_tokens`, `completion_tokens` of each request's answer. They count for a
        request whose asking is not journalled: one that another run or an older journal answered.
    price
        `input` and `output`, US dollars a million tokens.

    Returns
    -------
    dict
        retries (tries beyond a request's first), prompt_tokens, completion_tokens (of every
        asking, also of answers that could not be used), minutes (in which at least one of the
        calls was under way, pauses before a retry included), and with a price cost, in US dollars.
        What is not known is missing.
    """
    answers = answers.drop_duplicates("sha").set_index("sha")[TOKENS].astype("Float64")
    asked = asked[asked["sha"].isin(answers.index)]
    known = asked.groupby("sha")[TOKENS].sum(min_count=1).astype("Float64")
    used = known.combine_first(answers).sum(min_count=1)
    out = {
        "retries": int(asked["tries"].sum()) - asked["sha"].nunique() if len(asked) else pd.NA,
        **{name: pd.NA if pd.isna(used[name]) else int(used[name]) for name in TOKENS},
        "minutes": _union(asked) / 60 if len(asked) else math.nan,
    }
    if price is not None:
        out["cost"] = float(used.fillna(math.nan) @ [price["input"], price["output"]]) / 1e6
    return out


def table(rows: list[dict]) -> pd.DataFrame:
    """A closing table of such rows; counts stay whole where one is missing."""
    frame = pd.DataFrame(rows)
    counts = {"sentences", "at_first", "shifted", "calls", "asked_again", "retries", *TOKENS}
    counts &= set(frame)
    return frame.astype(dict.fromkeys(counts, "Int64"))


def line(closing: pd.DataFrame) -> str:
    """Retries, tokens, time and cost of all rows of a closing table, for the terminal."""
    parts = []
    for column, words in {
        "retries": "{:,.0f} retries",
        "prompt_tokens": "{:,.0f} tokens in",
        "completion_tokens": "{:,.0f} out",
        "minutes": "{:.1f} min",
        "cost": "${:,.2f}",
    }.items():
        known = closing[column].dropna() if column in closing else []
        if len(known):
            parts.append(words.format(known.sum()))
    return ", ".join(parts)


def _union(asked: pd.DataFrame) -> float:
    """Seconds covered by the askings, those that overlap counted once."""
    covered, until = 0.0, float("-inf")
    for start, length in sorted(zip(asked["started_at"], asked["seconds"], strict=True)):
        covered += max(0.0, start + length - max(start, until))
        until = max(until, start + length)
    return covered
