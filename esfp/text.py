"""Reading a response as text: its trace, its sentences, and the limits it was asked to keep.

Sections 4.1 and 4.4 and Appendix A of the paper. Pure functions of strings; nothing is read or
written here.
"""

from __future__ import annotations

import re
from typing import NamedTuple

MIN_CHARACTERS = 12  # a shorter fragment is not a sentence (Section 4.4)
MAX_SENTENCES = 25  # a response (Section 4.4)
MAX_WORDS = 150  # Appendix A, response system prompt
MAX_PARAGRAPHS = 2

_NAME = r"(?:seed:)?(think(?:ing)?|thoughts?|reasoning)"
_TAG = re.compile(
    rf"<(?P<close>/?)\s*{_NAME}(?:\s+\w+=[^<>]*)?\s*>"
    rf"|\[(?P<close2>/?){_NAME}\]|◁(?P<close3>/?){_NAME}▷"
    rf"|<\|(?:start|begin|(?P<close4>end))_(?:of_)?{_NAME}\|>",
    re.I,
)
_FINAL = re.compile(
    r"(?:<\|start\|>[^<]*)?<\|channel\|>\s*final\b[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>"
    r"(.*?)(?=<\|(?:start|end|return|call|channel)\|>|\Z)",
    re.I | re.S,
)
_HEADER = re.compile(
    r"(?:<\|start\|>[^<]*)?<\|channel\|>[^<]*(?:<\|constrain\|>[^<]*)?(?:<\|message\|>|\Z)"
    r"|<\|start\|>[^<]*|<\|(?:end|return|call|message)\|>",
    re.I,
)
_ANSWER = re.compile(r"<\|(?:start|begin|end)_(?:of_)?(?:solution|response)\|>", re.I)
# the harmony format as a server leaves it that drops the markers and keeps the channels' names
_BARE = re.compile(
    r"analysis(?:(?=[A-Z\"'])|(?=.*assistantfinal))(.*?)(?:assistantfinal(.*))?", re.S
)


def strip_trace(raw: str) -> tuple[str, str | None]:
    """Part a model's answer from the reasoning it wrote before it.

    Knows `<think>`, `<thinking>`, `<thought>`, `<reasoning>` (also `[THINK]`, `◁think▷`,
    `<|begin_of_thought|>` and `<|START_THINKING|>`), in any case, several or nested, and the
    channels of the harmony format, with its markers or without. An opening tag that is
    never closed makes all that follows a trace; a closing tag that was never opened makes all
    that precedes it one. Where a tag leaves it open, text counts as trace: an answer that is
    lost is seen and asked for again, a trace that is measured is not.

    Parameters
    ----------
    raw
        What the model returned.

    Returns
    -------
    answer : str
        The text outside every trace, stripped; '' where there is none.
    trace : str or None
        The text inside the traces, in order; None where there is none.
    """
    answer, trace = _parted(raw)
    while len(answer) < len(raw.strip()):  # tags inside a channel, or put together by what went
        raw = answer
        answer, more = _parted(raw)
        trace = "\n".join(filter(None, (trace, more))) or None
    return answer, trace


def _parted(raw: str) -> tuple[str, str | None]:
    """One pass of `strip_trace`."""
    if re.search(r"<\|channel\|>", raw, re.I):
        answer = "\n\n".join(part.strip() for part in _FINAL.findall(raw))
        return answer, _HEADER.sub("\n", _FINAL.sub("", raw)).strip() or None
    if bare := _BARE.fullmatch(raw.strip()):
        return (bare[2] or "").strip(), bare[1].strip() or None
    pieces: list[tuple[bool, str]] = []  # (is it trace, text)
    opened: list[str] = []
    position = 0
    for tag in _TAG.finditer(raw):
        pieces.append((bool(opened), raw[position : tag.start()]))
        position = tag.end()
        name = next(filter(None, tag.group(2, 4, 6, 8))).lower()
        if not any(tag.group("close", "close2", "close3", "close4")):
            opened.append(name)
        elif name in opened:  # and with it whatever was opened inside and left open
            del opened[len(opened) - 1 - opened[::-1].index(name) :]
        else:
            pieces, opened = [(True, text) for _, text in pieces], []
    pieces.append((bool(opened), raw[position:]))
    answer = _ANSWER.sub("", "".join(text for is_trace, text in pieces if not is_trace)).strip()
    trace = "\n".join(text.strip() for is_trace, text in pieces if is_trace and text.strip())
    return answer, trace or None


class Split(NamedTuple):
    """The sentences of a response, and what was left out of them."""

    sentences: list[str]
    fragments: list[str]  # under 12 characters
    beyond_cap: int  # sentences after the 25th


def split_report(text: str, rule: str = "paper") -> Split:
    """Split a response into sentences and say what was dropped (Section 4.4).

    Parameters
    ----------
    text
        The answer, trace removed.
    rule
        'paper': after `.`, `!` or `?` followed by white space. 'sentencex': that library's English
        rules, which know abbreviations, quotes and line breaks. The floor and the cap are the same.

    Raises
    ------
    ValueError
        If the rule is neither.
    """
    if rule == "paper":
        parts = re.split(r"(?<=[.!?])\s+", text)
    elif rule == "sentencex":
        from sentencex import segment

        parts = segment("en", text)
    else:
        raise ValueError(f"unknown sentence rule '{rule}'; choose 'paper' or 'sentencex'")
    parts = [part.strip() for part in parts if part.strip()]
    long = [part for part in parts if len(part) >= MIN_CHARACTERS]
    short = [part for part in parts if len(part) < MIN_CHARACTERS]
    return Split(long[:MAX_SENTENCES], short, max(0, len(long) - MAX_SENTENCES))


def split_sentences(text: str, rule: str = "paper") -> list[str]:
    """The sentences that are judged: after the floor and the cap. See `split_report`."""
    return split_report(text, rule).sentences


def count_words(text: str) -> int:
    """Number of runs of non-space characters that hold a letter or a digit."""
    return len(re.findall(r"[^\W_]\S*", text))


# Each alternative begins with a character of its own, which a search can look for: the pattern is
# tried where a text holds one of them and nowhere else. (What may not precede stands after it.)
_MARKUP = re.compile(
    r"""
      \*\*(?=\S)[^\n]*?(?<=\S)\*\* | __(?=\S)[^\n]*?(?<=\S)__    # bold
    | \*(?<![\w*]\*)(?=[^\s*])[^*\n]*(?<=\S)\*(?![\w*])        # italics
    | _(?<!\w_)(?=[^\s_])[^_\n]*(?<=\S)_(?!\w)
    | `[^`\n]+` | ```                                         # code
    | \[[^\]\n]+\]\([^)\s]+\)                                 # link
    """,
    re.X,
)
_MARKED_LINE = re.compile(
    r"""
      [ \t]*[-*+•‣◦▪–][ \t]+\S                     # bullet
    | [ \t]*(?:\d{1,2}[.)]|[a-zA-Z]\))[ \t]+\S     # numbered or lettered list
    | [ \t]{0,3}\#{1,6}[ \t]+\S                    # heading
    | [ \t]*(?:-{3,}|\*{3,}|_{3,}|={3,})[ \t]*$    # rule, underlined heading
    | [ \t]*>[ \t]*\S                              # block quotation
    | [ \t]*\|.*\|[ \t]*$                          # table
    """,
    re.X,
)

_FILLER = re.compile(
    r"""\W*(?:
      (?:(?:that|this|it)(?:['’]s|\s+is)|what)?\s*(?:an?\s+|such\s+an?\s+)?(?:(?:very|really)\s+)?
        (?:great|good|excellent|interesting|fascinating|wonderful|important|thoughtful)
        \s+(?:question|topic|point)\b\s*(?:[!,.:—–]|$|and\b)
    | (?:certainly|sure(?:\s+thing)?|of\s+course|absolutely|definitely|ok(?:ay)?|alright|well
        |hello|hi|no\s+problem)\s*(?:[,.!:—–]|$)
    | (?:thank\s+you|thanks)\s+for\b
    | i(?:['’](?:d|ll|m)|\s+(?:would|will|am))\s+(?:be\s+)?(?:happy|glad|delighted)\s+to\b
    | happy\s+to\s+help\b
    | here(?:['’]s|\s+is|\s+are)\b[^.\n]*:
    | let['’]?s\s+(?:dive|explore|break|take\s+a\s+look)\b
    )""",
    re.X | re.I,
)


def _has_markdown(text: str) -> bool:
    marked = any(_MARKED_LINE.match(line) for line in text.split("\n"))
    return marked or _MARKUP.search(text) is not None


def violations(text: str, n_words: int | None = None) -> list[str]:
    """Which of the response prompt's limits a response breaks (Section 4.1, Appendix A).

    Parameters
    ----------
    n_words
        The text's words, where they have been counted already.

    Returns
    -------
    list of str
        Out of 'too_long' (more than 150 words), 'too_many_paragraphs' (more than two blocks
        parted by blank lines), 'markdown' (lists, headings, bold, italics, rules, quotations,
        tables, code, links) and 'filler_opening' ("Great question", "Certainly", ...), in this
        order.
    """
    paragraphs = [block for block in re.split(r"\n\s*\n", text) if block.strip()]
    broken = {
        "too_long": (count_words(text) if n_words is None else n_words) > MAX_WORDS,
        "too_many_paragraphs": len(paragraphs) > MAX_PARAGRAPHS,
        "markdown": _has_markdown(text),
        "filler_opening": bool(_FILLER.match(text)),
    }
    return [name for name, is_broken in broken.items() if is_broken]
