"""Before a run is paid for: one call to every candidate and judge, and what to change.

A candidate's call is the first of those it has to answer anyway, a judge's is about one short
sentence; both are journalled, so that none is ever sent twice.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable

from esfp import calls
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


def key_to_change(failure: Failure, target: Target) -> str:
    """The params file's key that a failed first call points to.

    Known by the status, and for a refused request by the parameter that its words name.
    """
    provider, words = f"providers.{target.provider_name}", failure.words.lower()
    if failure.unreachable:
        return f"{provider}.base_url"
    if failure.status in (401, 403):
        return f"{provider}.key_env (the variable that holds the key)"
    if failure.status == 404:
        return f"{target.place}.model" if "model" in words else f"{provider}.base_url"
    if failure.status in (402, 429):
        return f"nothing in {provider}: its quota is used up"
    named = [
        (r"max_(?:completion_)?tokens", f"{provider}.limit_parameter"),
        (r"temperature", f"{provider}.omit_temperature"),
        (r"response_format|json_schema|json_object", f"{provider}.json_mode"),
        (r"\b(?:system|developer)\b|\broles?\b", f"{provider}.system_role"),
        (r"header", f"{provider}.extra_headers"),
        *[(re.escape(name), f"{provider}.extra_body") for name in target.provider.extra_body],
        (r"\bmodel\b(?! does not support)", f"{target.place}.model"),
    ]
    found = next((key for pattern, key in named if re.search(pattern, words)), None)
    return found or f"{target.place}.decoding or {provider}.decoding"


def check(targets: Iterable[Target], journal: Journal) -> None:
    """Send each target's call, unless it is answered already.

    Embedded models cost nothing and are left out. A failure that may pass (an overload, a
    time-out) is no reason to stop here.

    Raises
    ------
    CallError
        Naming every model that cannot be used, in the endpoint's words, with the key to change.
    """
    problems = []
    for target in targets:
        if target.provider.embedded is not None or journal.answers([target.request.sha]):
            continue
        failure = calls.probe(target.request, target.provider, journal)
        if failure is not None and (failure.verdict != "transient" or failure.unreachable):
            problems.append(
                f"{target.request.model} at {target.provider.base_url}: {failure.words} "
                f"[change {key_to_change(failure, target)}]"
            )
    if problems:
        raise calls.CallError(f"nothing was asked yet: {'; '.join(problems)}")
