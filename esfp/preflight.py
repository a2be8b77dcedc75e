"""Before a run is paid for: one call to every candidate and judge, and what to change.

A candidate's call is the first of those it has to answer anyway, a judge's is about one short
sentence; both are journalled, so that none is ever sent twice.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Iterable
from typing import Any

from esfp import calls, lines
from esfp.failures import Failure
from esfp.journal import Journal
from esfp.providers import Provider


@dataclasses.dataclass(frozen=True)
class Target:
    """One model to try: the place of its entry in the params file, its provider's name, a call."""

    place: str
    provider_name: str
    provider: Provider
    request: calls.Request
    read: Callable[[str], Any] | None = None  # of a judge: reads its reply, or raises ValueError


def to_change(failure: Failure, target: Target) -> str:
    """What a failed first call points to in the params file: line and key, or nothing.

    Known by the status, and for a refused request by the parameter that its words name.
    """
    words = failure.words.lower()

    def provider(key: str) -> str:
        return _named("providers", target.provider_name, key)

    def entry(key: str) -> str:
        return _named(*target.place.split("."), key)

    if failure.unreachable or failure.web_page:
        return provider("base_url")
    if failure.status in (401, 403):
        return f"{provider('key_env')} (the variable that holds the key)"
    if failure.status == 404:
        return entry("model") if "model" in words else provider("base_url")
    if failure.status in (402, 429):
        return f"nothing in providers.{target.provider_name}: its quota is used up"
    parameters = [
        (r"max_(?:completion_)?tokens", "limit_parameter"),
        (r"temperature", "omit_temperature"),
        (r"response_format|json_schema|json_object", "json_mode"),
        (r"\b(?:system|developer)\b|\broles?\b", "system_role"),
        (r"header", "extra_headers"),
        *[(re.escape(name), "extra_body") for name in target.provider.extra_body],
    ]
    found = next((key for pattern, key in parameters if re.search(pattern, words)), None)
    if found:
        return provider(found)
    if re.search(r"\bmodel\b(?! does not support)", words):
        return entry("model")
    return f"{entry('decoding')} or {provider('decoding')}"


def _named(*place: str) -> str:
    """The key as people find it: with file and line where the runner says which file it is."""
    path = os.environ.get("ESFP_PARAMS")
    return lines.named(path, place) if path else ".".join(place)


def check(targets: Iterable[Target], journal: Journal) -> None:
    """Send each target's call, unless it is answered already.

    Embedded models cost nothing and are left out. A failure that may pass (an overload, a
    time-out) is no reason to stop here.

    Raises
    ------
    CallError
        Naming every model that cannot be used, in the endpoint's words, with the key to change
        and its line.
    """
    problems = []
    for target in targets:
        if target.provider.embedded is not None:
            continue
        # a reply that was of no use is asked for anew: its judge may have been mended
        if journal.answers([target.request.sha]) and not _defect(target, journal):
            continue
        failure = calls.probe(target.request, target.provider, journal)
        if failure is None and (defect := _defect(target, journal)):
            problems.append(
                f"{target.request.model} at {target.provider.base_url}: its label of one plain "
                f"sentence cannot be read: {defect} [change {_named(*target.place.split('.'))}]"
            )
        if failure is not None and (
            failure.verdict != "transient" or failure.unreachable or failure.web_page
        ):
            problems.append(
                f"{target.request.model} at {target.provider.base_url}: {failure.words} "
                f"[change {to_change(failure, target)}]"
            )
    if problems:
        raise calls.CallError(f"stopped at the trial calls: {'; '.join(problems)}")


def _defect(target: Target, journal: Journal) -> str | None:
    """What is wrong with a judge's reply to its trial; a reply that was cut says nothing."""
    raw, _ = journal.answers([target.request.sha])[target.request.sha]
    answer = calls.read_answer(raw)
    if target.read is None or answer["finish_reason"] == "length":
        return None
    try:
        target.read(answer["text"])
    except ValueError as defect:
        return str(defect)
    return None
