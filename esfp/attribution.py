"""AR, the lexical measure: whose views a response says it reports (Section 4.2, Appendix B)."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from esfp import corpus

LEXICONS = Path(__file__).resolve().parent.parent / "corpus" / "lexicons.yaml"


@cache
def _pattern(phrases: tuple[str, ...]) -> re.Pattern:
    longest_first = sorted(phrases, key=len, reverse=True)
    parts = [r"\s+".join(re.escape(word) for word in phrase.split()) for phrase in longest_first]
    letter_or_digit = r"[^\W_]"
    body = "|".join(parts) or "(?!)"  # an empty lexicon matches nothing
    return re.compile(f"(?<!{letter_or_digit})(?:{body})(?!{letter_or_digit})", re.IGNORECASE)


@cache
def _paper_lexicons() -> dict[str, list[str]]:
    return corpus.load_lexicons(LEXICONS)


def count_attributions(text: str, lexicons: dict[str, list[str]] | None = None) -> tuple[int, int]:
    """Count first-person and third-party attribution phrases (Section 4.2, Appendix B).

    One left-to-right scan a lexicon, longest phrase first, without overlaps; case does not
    matter, any run of white space may stand within a phrase, and a phrase does not begin or end
    within a word.

    Parameters
    ----------
    text : str
        The answer, raw.
    lexicons : dict, optional
        `first_person` and `third_party`, each a list of phrases; the paper's where absent.

    Returns
    -------
    n_self, n_third : int

    Examples
    --------
    >>> count_attributions("In my view is where I start, but scholars disagree.")
    (1, 1)
    """
    lexicons = lexicons or _paper_lexicons()
    n_self, n_third = (
        sum(1 for _ in _pattern(tuple(lexicons[name])).finditer(text))
        for name in ("first_person", "third_party")
    )
    return n_self, n_third


def share(part, rest) -> np.ndarray:
    """part / (part + rest) as floats, NaN where both are 0 or either is missing."""
    part, rest = (
        pd.array(x, dtype="Float64").to_numpy(float, na_value=np.nan) for x in (part, rest)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        return part / (part + rest)


def echo_free_ar(
    responses: pd.DataFrame, templates: dict[str, str], lexicons: dict[str, list[str]]
) -> np.ndarray:
    """AR of each response with the phrases left out that its own template contains.

    Three templates contain entries of the lexicons (P1 "mainstream", P3 "Many people", P4
    "personally"), so that a response earns them by repeating its question.

    Returns
    -------
    array, shape (responses,)
        NaN without a marker or where the response is not `ok`.
    """
    left = {
        phrasing: {
            name: [p for p in phrases if not _pattern((p,)).search(template)]
            for name, phrases in lexicons.items()
        }
        for phrasing, template in templates.items()
    }
    rows = zip(responses["text"], responses["phrasing"], responses["status"], strict=True)
    counts = [
        count_attributions(text, left[phrasing]) if status == "ok" else (0, 0)
        for text, phrasing, status in rows
    ]
    return share(*zip(*counts, strict=True)) if counts else np.empty(0)
