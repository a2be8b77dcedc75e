"""The one way to reach a model: an OpenAI-compatible endpoint, a journal, and one retry loop.

A request is known by the sha256 of its canonical JSON. Every completed call is written durably
to the journal (SQLite, write-ahead log) before its answer is used, so that a killed process
loses at most the calls in flight and no request is ever paid for twice.
"""

from __future__ import annotations

import asyncio
import re
import threading
from typing import Any

from esfp import asking, keys
from esfp.answers import FINAL as FINAL  # what others reach as parts of this module
from esfp.answers import read_answer as read_answer
from esfp.failures import CallError as CallError
from esfp.failures import Failure
from esfp.failures import classify as classify
from esfp.failures import retry_after as retry_after
from esfp.files import slug as slug
from esfp.journal import Journal as Journal
from esfp.journal import Recorder
from esfp.pace import Pace, tokens
from esfp.progress import Progress
from esfp.progress import reporter as reporter
from esfp.providers import Provider
from esfp.request import Request as Request
from esfp.request import build as build
from esfp.request import identity as identity


async def _all(
    requests: list[Request],
    provider: Provider,
    base_url: str,
    key: str | None,
    journal: Journal,
    progress: Progress,
) -> dict[str, str]:
    largest = 0
    if provider.tokens_per_minute:
        largest = max(tokens(request.sent()) for request in requests)
    pace = Pace(provider, largest)
    recorder = Recorder(journal)
    client = asking.client(provider, base_url, key)
    run = asking.Run(client, provider, key, pace, recorder, progress)
    try:
        async with client:
            await run.all(requests)
    except asking.Stop as stop:
        raise CallError(
            f"{requests[0].model} at {base_url}: {stop}; {run.done} of {len(requests)} calls done "
            "and kept, run the same command again to go on"
        ) from None
    finally:
        await recorder.close()
    return run.failures


def address(provider: Provider) -> str:
    """The base_url with each `${NAME}` filled in from the environment or .env; never stored."""

    def value(match: re.Match) -> str:
        if not (found := keys.get(match[1])):
            raise CallError(
                f"the environment variable {match[1]} is not set; base_url {provider.base_url} "
                f"needs it: export {match[1]}=… and run again"
            )
        return found.rstrip("/")

    return re.sub(r"\$\{([A-Za-z_]\w*)\}", value, str(provider.base_url))


async def _probe(
    request: Request, provider: Provider, key: str | None, journal: Journal
) -> Failure | None:
    client = asking.client(provider, address(provider), key)
    recorder = Recorder(journal)
    pace = Pace(provider, tokens(request.sent()))
    run = asking.Run(client, provider, key, pace, recorder, lambda *_: None)
    try:
        async with client:
            await run.ask(request, first=True)
    except asking.Stop as stop:
        return stop.failure
    finally:
        await recorder.close()
    return run.last


def _in_a_thread(job) -> Any:
    """What a coroutine returns, run on a loop of its own: a notebook has one running already.

    An interrupt cancels the calls under way and is passed on.
    """
    box: dict[str, Any] = {}
    started = threading.Event()

    async def main() -> Any:
        box["loop"], box["task"] = asyncio.get_running_loop(), asyncio.current_task()
        started.set()
        return await job

    def target() -> None:
        try:
            box["value"] = asyncio.run(main())
        except BaseException as error:  # raised again where the result is waited for
            box["error"] = error
            started.set()

    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(0.2)
    except BaseException:
        started.wait(1)
        if "task" in box:
            box["loop"].call_soon_threadsafe(box["task"].cancel)
        thread.join(1)
        raise
    if "error" in box:
        raise box["error"]
    return box["value"]


def _key(provider: Provider) -> str | None:
    if not provider.key_env:
        return None
    key = keys.get(provider.key_env)
    if not key:
        raise CallError(
            f"the environment variable {provider.key_env} is not set; it holds the key for "
            f"{identity(provider)}: export {provider.key_env}=… (or write it into a file .env) and "
            "run again"
        )
    return key


def probe(request: Request, provider: Provider, journal: Journal) -> Failure | None:
    """Ask one request, journal its answer, and return what went wrong, None where nothing did.

    Raises
    ------
    CallError
        If the key is not set.
    """
    return _in_a_thread(_probe(request, provider, _key(provider), journal))


def complete(
    requests: list[Request],
    provider: Provider,
    journal: Journal,
    progress: Progress = lambda done, failed, total: None,
) -> dict[str, str]:
    """Ask every request once, journal each answer, and return what failed.

    Works with and without a running event loop, so notebooks and scripts call it alike.

    Parameters
    ----------
    requests
        The calls still to make; all to the same provider.

    Returns
    -------
    dict
        Request sha → the last error's words, for requests that were given up on.

    Raises
    ------
    CallError
        If the endpoint cannot be used: wrong key or model, exhausted quota, no connection.
    """
    if not requests:
        return {}
    key = _key(provider)

    def run(base_url: str) -> dict[str, str]:
        return _in_a_thread(_all(requests, provider, base_url, key, journal, progress))

    if provider.embedded is None:
        return run(address(provider))
    from esfp import local_models

    with local_models.serve(provider.embedded) as base_url:
        return run(base_url)
