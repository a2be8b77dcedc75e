"""What a failed call means and what to do about it; pure functions, nothing is asked here."""

from __future__ import annotations

import dataclasses
import email.utils
import json
import re
import time
from collections.abc import Mapping
from typing import Any, Literal

from esfp.files import DataError

Verdict = Literal["rate_limit", "transient", "request", "endpoint", "blocked"]


class CallError(DataError):
    """An endpoint cannot be used; the text is one clear line."""


_EXHAUSTED = re.compile(
    r"insufficient[_ ](?:quota|credits?|funds|balance)|exceeded your current quota|"
    r"credit balance is too low|quota[_ ]exhausted|billing[_ ](?:hard[_ ])?limit|"
    r"billing[_ ]not[_ ]active|payment required|out of credits",
    re.I,
)
_SOON = re.compile(r"(?:try again|retry) in\s+(\d+(?:\.\d+)?)\s*(ms|m?s(?:ec\w*)?)\b", re.I)
_FILTERED = re.compile(
    r"content[_ ]?(?:filter|policy|management)|responsible ?ai|moderation|"
    r"input (?:was|has been) flagged|safety (?:system|filter)",
    re.I,
)
# words that stand for a status where an endpoint states none
_WORDS = {
    402: _EXHAUSTED,
    429: re.compile(r"rate[_ ]?limit|too[_ ]many[_ ]requests|resource[_ ]exhausted|throttl", re.I),
    503: re.compile(r"overload|unavailable|no (?:host|instance|capacity)|capacity|time[d_ -]*out"
                    r"|server[_ ]error|internal|upstream|bad gateway", re.I),
    401: re.compile(r"(?:invalid|incorrect|missing|no)[_ ](?:api[_ ]?)?key|authenticat"
                    r"|unauthori[sz]ed|permission|credentials", re.I),
    404: re.compile(r"model[_ ]not[_ ]found|not[_ ]found|does not exist|no such model", re.I),
    400: re.compile(r"invalid[_ ](?:request|argument|parameter)|bad[_ ]request|unsupported"
                    r"|context[_ ]length|too long", re.I),
}  # fmt: skip


def stated_status(body: Any) -> int | None:
    """The HTTP status an error object speaks of: its number, else what its words stand for."""
    if isinstance(body, dict):
        for key in ("code", "status", "status_code", "http_status"):
            found = re.fullmatch(r"[45]\d\d", str(body.get(key, "")).strip())
            if found:
                return int(found[0])
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    return next((status for status, words in _WORDS.items() if words.search(text)), None)


def classify(status: int | None, body: Any = "", wait: float | None = None) -> Verdict:
    """What to do about a failed call.

    Parameters
    ----------
    status
        The HTTP status; None for a connection that failed, broke off or timed out. A status below
        400 is an error object inside an answer: what it says counts.
    body
        What the endpoint said, a text or an error object.
    wait
        Seconds after which it asks to come back; a quota that comes back by itself is a rate.

    Returns
    -------
    str
        'rate_limit' and 'transient': wait and try again. 'request': give up on this request.
        'endpoint': give up on the endpoint (key, model, quota). 'blocked': the endpoint's filter
        refused this request, which is an outcome and no failure.
    """
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    if status is not None and status < 400:
        status = stated_status(body)
    if status is None or status in (408, 409) or status >= 500:
        return "transient"
    if status == 429:
        code = body.get("code") if isinstance(body, dict) else None
        final = code in ("insufficient_quota", "billing_hard_limit_reached")
        passing = wait or re.search(r"per[_ ]?(?:minute|second)|retryDelay", text, re.I)
        return "endpoint" if final or (_EXHAUSTED.search(text) and not passing) else "rate_limit"
    if status in (400, 403, 422) and _FILTERED.search(text):
        return "blocked"
    return "endpoint" if status in (401, 402, 403, 404) else "request"


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds to wait by a Retry-After header, which holds seconds or an HTTP date."""
    value = headers.get("retry-after")
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        until = email.utils.parsedate_to_datetime(value).timestamp()
    except (TypeError, ValueError):
        return None
    return max(0.0, until - (time.time() if now is None else now))


def asked_wait(headers: Mapping[str, str], text: str) -> float | None:
    """Seconds the endpoint asks to wait, by its header or else by its words."""
    asked = retry_after(headers)
    if asked is None and (found := _SOON.search(text)):
        asked = float(found[1]) / (1000 if found[2].lower() == "ms" else 1)
    return asked


@dataclasses.dataclass
class Failure(Exception):
    """One failed try: what it means, in whose words, and how long it asks to wait."""

    verdict: Verdict
    words: str
    wait: float | None = None
    status: int | None = None
    unreachable: bool = False  # nothing listens at that address
    web_page: bool = False  # what listens there is a web server

    def __str__(self) -> str:
        return self.words


def one_line(text: str, key: str | None = None, longest: int = 500) -> str:
    """`text` on one line, without the key, cut to `longest` characters."""
    line = " ".join(text.encode("utf-8", "replace").decode("utf-8").split())
    if key:
        line = line.replace(key, "[key]")
    return line if len(line) <= longest else line[: longest - 1] + "…"


def inside(raw: Any) -> Any:
    """The error that an answer with status 200 holds in the place of one; None where it is one."""
    if not isinstance(raw, dict):
        return "the endpoint sent no JSON object"
    choices = raw.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        broken = choices[0].get("error") or choices[0].get("finish_reason") == "error"
        message = choices[0].get("message")
        if broken and not (isinstance(message, dict) and message.get("content")):
            return choices[0].get("error") or raw.get("error") or "the endpoint broke off"
        return None
    return raw.get("error") or raw.get("detail") or "the endpoint sent no choices"


def message(body: Any) -> str:
    """The words of an error object."""
    if isinstance(body, dict):
        for key in ("message", "error", "detail"):
            if body.get(key):
                return message(body[key])
        return json.dumps(body, ensure_ascii=False)
    return body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)


def from_exception(error: Exception, key: str | None) -> Failure:
    """A failure out of what the client raised."""
    response = getattr(error, "response", None)
    if response is None:  # no answer at all
        cause = error.__cause__
        names = {type(step).__name__ for step in (error, cause) if step is not None}
        words = " ".join(str(error).split()) or "the call took longer than its time-out"
        if cause is not None:
            told = " ".join(str(cause).split()) or type(cause).__name__
            # the client calls a connection that was lost a time-out
            lost = re.search(r"disconnect|reset|refused|closed", told, re.I)
            words = f"the connection was lost ({told})" if lost else f"{words} ({told})"
        unreachable = bool(names & {"ConnectError", "ConnectTimeout"})
        return Failure("transient", one_line(words, key), unreachable=unreachable)
    status = response.status_code
    body = getattr(error, "body", None) or response.text
    words = one_line(message(body) or str(error), key) or f"HTTP status {status}"
    wait = asked_wait(response.headers, words)
    return Failure(classify(status, body, wait), words, wait, status)


def from_answer(problem: Any, key: str | None) -> Failure:
    """A failure out of an error object inside an answer with status 200."""
    words = one_line(message(problem), key)
    wait = asked_wait({}, words)
    return Failure(classify(200, problem, wait), words, wait, stated_status(problem))
