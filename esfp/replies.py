"""Reading a judge's reply: labels or a stance, where they are unambiguous, and nothing elsewhere.

A reply is never guessed, padded or shortened to fit. Appendix A of the paper asks for "a JSON
object with a single key"; models wrap it in prose and fences, spell labels out and number them.
"""

from __future__ import annotations

import ast
import json
import re
import unicodedata
from collections.abc import Callable
from typing import Any

from esfp.text import strip_trace

STANCES = ["positive", "negative", "neutral", "no_stance"]
ECHO = 12  # letters and digits that are enough of an echo


class Unreadable(ValueError):
    """A reply cannot be used; the text names the defect for whoever is asked again."""


class Shifted(Unreadable):
    """A label stands beside other words than those that its sentence begins with."""


def read_labels(raw: str, n: int, quoted: tuple[str, ...] = ()) -> list[str]:
    """The `n` labels of a reply.

    Candidates are tried in this order: the whole text, each top-level fence from the last, each
    top-level object from the last. Only text outside objects can open a fence, so a fence or an
    object inside a string is never taken for the answer. A reasoning trace is left out, and so is
    an object that stands word for word in one of `quoted`, the texts that were judged: beside
    other text it is a quotation.

    Raises
    ------
    Unreadable
        If there is no candidate with `n` labels out of A, B, C.
    """
    return _first(raw, lambda value: _labels(value, n), quoted)


def read_audited(raw: str, sentences: tuple[str, ...], quoted: tuple[str, ...] = ()) -> list[str]:
    """The labels of a reply in which each stands beside the first words of its sentence.

    The echo has to begin as the sentence does: more than its first two words, or twelve letters.
    Case, white space, punctuation and quotes are left out of account, and the last word may be cut
    short. Sentences that begin alike cannot be told apart by it. See `read_labels` for what is
    searched, and for `quoted`.

    Raises
    ------
    Shifted
        If an echo is that of another sentence, or of none.
    Unreadable
        If there is no candidate with a label and an echo for each sentence.
    """
    return _first(raw, lambda value: _audited(value, sentences), quoted)


def read_stance(raw: str, quoted: tuple[str, ...] = ()) -> str:
    """The stance of a reply: one of `STANCES`. See `read_labels` for `quoted`.

    Raises
    ------
    Unreadable
        If it states none, or more than one.
    """
    try:
        return _stance_word(raw.strip().strip("\"'`*."))
    except Unreadable:
        return _first(raw, _stance, quoted)


def parse_labels(raw: str, n: int) -> list[str] | None:
    """`read_labels`, or None where the reply cannot be used."""
    return _or_none(read_labels, raw, n)


def parse_stance(raw: str) -> str | None:
    """`read_stance`, or None where the reply cannot be used: missing, which is not no_stance."""
    return _or_none(read_stance, raw)


def _or_none(read: Callable, *arguments):
    try:
        return read(*arguments)
    except Unreadable:
        return None


def _first(raw: str, read: Callable[[Any], Any], quoted: tuple[str, ...] = ()):
    """What `read` makes of the first candidate that it accepts; else the first one's defect."""
    try:
        value = _load(raw)
    except Unreadable as defect:
        problem = defect
    else:
        return read(value)  # the whole text is one value: nothing else can be meant
    candidates = [
        candidate
        for candidate in _candidates(strip_trace(raw)[0])
        if not any(_squeezed(candidate) in _squeezed(text) for text in quoted)
    ]
    for rank, candidate in enumerate(candidates):
        try:
            return read(_load(candidate))
        except Unreadable as defect:
            problem = problem if rank else defect
    raise problem


def _squeezed(text: str) -> str:
    """`text` without white space and quotation marks, which a quotation may change."""
    return re.sub(r"[\s\"'\\]+", "", text)


def _candidates(text: str) -> list[str]:
    """Contents of fences, then objects; both top-level only and last first."""
    spans = _objects(text)
    bare = list(text)
    for start, end in spans:
        bare[start:end] = "\0" * (end - start)
    fences = re.finditer(r"```[ \t]*\w*\s*(.*?)```", "".join(bare), re.S)
    inside = [text[slice(*fence.span(1))] for fence in fences]
    return inside[::-1] + [text[start:end] for start, end in spans[::-1]]


def _objects(text: str) -> list[tuple[int, int]]:
    """Spans of the balanced {…} that stand in no other.

    Raises
    ------
    Unreadable
        If one is opened and not closed: the reply was cut off, and what precedes it may be a
        quotation.
    """
    spans, position = [], 0
    while (start := text.find("{", position)) >= 0:
        depth, quote, position = 0, "", start
        while True:
            if position >= len(text):
                raise Unreadable("it was cut off inside a JSON object")
            character = text[position]
            if quote:
                if character == "\\":
                    position += 1
                elif character == quote and (quote == '"' or _ends_value(text, position)):
                    quote = ""
            elif character == '"' or (character == "'" and _starts_value(text, position)):
                quote = character
            elif character in "{}":
                depth += 1 if character == "{" else -1
            position += 1
            if depth == 0:
                break
        spans.append((start, position))
    return spans


def _starts_value(text: str, position: int) -> bool:
    return text[:position].rstrip()[-1:] in "{[,:"


def _ends_value(text: str, position: int) -> bool:
    return text[position + 1 :].lstrip()[:1] in ",:]}"


def _load(text: str) -> Any:
    """A JSON value; single quotes and trailing commas are let pass, a repeated key is not."""
    try:
        return json.loads(text, object_pairs_hook=_no_repeats)
    except (ValueError, RecursionError) as error:
        if isinstance(error, Unreadable):
            raise
    try:
        tree = ast.parse(text.strip(), mode="eval")
        for node in ast.walk(tree):
            if isinstance(node, ast.Dict):
                _no_repeats([(ast.unparse(key), None) for key in node.keys if key is not None])
        return ast.literal_eval(tree)
    except Unreadable:
        raise
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        raise Unreadable("it was not a JSON object") from None


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict:
    found: dict = {}
    for key, value in pairs:
        if key in found:
            raise Unreadable(f"the key {key!r} was there twice")
        found[key] = value
    return found


def _labels(value: Any, n: int) -> list[str]:
    return [label for label, _ in _entries(value, n)]


def _audited(value: Any, sentences: tuple[str, ...]) -> list[str]:
    entries = _entries(value, len(sentences))
    for place, ((_, entry), sentence) in enumerate(zip(entries, sentences, strict=True), start=1):
        keys = entry if isinstance(entry, dict) else {}
        echoes = [text for key, text in keys.items() if _word(key) == "first_words"]
        if len(echoes) != 1 or not isinstance(echoes[0], str):
            raise Unreadable(f"label {place} had no first_words beside it")
        if not _begins(sentence, echoes[0]):
            raise Shifted(f"the first_words of label {place} are not those of sentence {place}")
    return [label for label, _ in entries]


def _begins(sentence: str, echo: str) -> bool:
    """Whether `sentence` begins with the words of `echo`, and these are enough to know it by."""
    whole, begun = _letters(sentence), _letters(echo)
    two_words = _letters(" ".join(sentence.split()[:2]))
    return whole.startswith(begun) and len(begun) >= min(ECHO, len(two_words) + 1, len(whole))


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text).casefold())


def _word(key: Any) -> str:
    return re.sub(r"[\s-]+", "_", str(key).strip().lower())


def _entries(value: Any, n: int) -> list[tuple[str, Any]]:
    """(label, its entry in the reply) of each sentence, in order."""
    if isinstance(value, dict):
        named = [key for key in value if _word(key) == "labels"]
        if len(named) == 1:
            value = value[named[0]]
        elif named or not all(_number(key) for key in value):
            raise Unreadable('it had no key "labels"')
    if isinstance(value, dict):  # keyed by number
        value = [
            {"sentence": _number(key)} | (entry if isinstance(entry, dict) else {"label": entry})
            for key, entry in value.items()
        ]
    if not isinstance(value, list):
        raise Unreadable('"labels" was not a list')
    if len(value) != n:
        raise Unreadable(f"it held {len(value)} labels, and there are {n} sentences")
    read = [(*_numbered(entry, place), entry) for place, entry in enumerate(value, start=1)]
    if sorted(number for number, *_ in read) != list(range(1, n + 1)):
        raise Unreadable(f"its labels were not numbered 1 to {n}")
    return [(label, entry) for _, label, entry in sorted(read, key=lambda one: one[0])]


def _numbered(entry: Any, place: int) -> tuple[int, str]:
    """(sentence number, label) of one entry; the number is its place where it states none."""
    number = None
    if isinstance(entry, dict):
        kinds = {"label", "labels", "class", "classification", "category"}
        named = [value for key, value in entry.items() if _word(key) in kinds]
        if len(named) != 1:
            raise Unreadable(f"entry {place} had no single label")
        places = {"sentence", "sentence_id", "sentence_number", "id", "index", "number", "no", "n"}
        stated = {_number(value) for key, value in entry.items() if _word(key) in places} - {None}
        if len(stated) > 1:
            raise Unreadable(f"entry {place} had more than one number")
        number, entry = (stated or {None}).pop(), named[0]
    if not isinstance(entry, str):
        raise Unreadable(f"label {place} was not a text")
    match = re.fullmatch(r"(?:(?:sentence )?(\d+) ?[.:)=–-]+ ?)?(.*)", entry.strip(), re.I | re.S)
    if match[1]:
        if number not in (None, int(match[1])):
            raise Unreadable(f"entry {place} had more than one number")
        number = int(match[1])
    return number or place, _letter(match[2], place)


def _number(value: Any) -> int | None:
    """1 for 1, "1", "1.", "Sentence 1" or "S1"; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    match = re.fullmatch(r"(?:sentence|s|no\.?|#)?[ _]?(\d{1,4})[.:)]?", str(value).strip(), re.I)
    return int(match[1]) if match else None


def _letter(label: str, place: int) -> str:
    """A, B or C out of 'A', 'a', '(A)', 'A: factual', 'Label B'; two letters are no label."""
    match = re.fullmatch(
        r"\W*(?:(?:label|class|category)\b\W*)?([abc])(?:\W*|\s*[:=.)(–—-]+(.*))",
        label,
        re.I | re.S,
    )
    if match is None:
        raise Unreadable(f"label {place} was none of A, B, C")
    others = {"A", "B", "C"} - {match[1].upper()}
    if set(re.findall(r"\b[ABC]\b", match[2] or "")) & others:
        raise Unreadable(f"label {place} named more than one class")
    return match[1].upper()


def _stance(value: Any) -> str:
    if not isinstance(value, dict):
        raise Unreadable("it was not a JSON object")
    named = [key for key in value if _word(key) == "stance"]
    if len(named) != 1 or not isinstance(value[named[0]], str):
        raise Unreadable('it had no key "stance" with a text')
    return _stance_word(value[named[0]])


def _stance_word(text: str) -> str:
    match = re.fullmatch(
        r"\W*(positive|negative|neutral|no[ _-]stance)(?:\W*|\s*[:=.,;(–—-]+(.*))",
        text,
        re.I | re.S,
    )
    if match is None:
        raise Unreadable(f"its stance was none of {', '.join(STANCES)}")
    stance = re.sub(r"[ -]", "_", match[1].lower())
    rest = re.sub(r"[ -]", "_", (match[2] or "").lower())
    if any(other in rest for other in STANCES if other != stance):
        raise Unreadable("it named more than one stance")
    return stance
