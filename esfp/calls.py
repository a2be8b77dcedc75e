"""The one way to reach a model: an OpenAI-compatible endpoint, a journal, and one retry loop.

A request is known by the sha256 of its canonical JSON. Every completed call is written durably
to the journal (SQLite, write-ahead log) before its answer is used, so that a killed process
loses at most the calls in flight and no request is ever paid for twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import datetime
import email.utils
import hashlib
import json
import os
import random
import re
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import filelock

from esfp import text
from esfp.files import DataError
from esfp.params import Provider

FINAL = {"ok", "refused", "blocked"}  # drawing again after refusals alone would bias the measure
BAD_REQUESTS_IN_A_ROW = 5  # so many 400s in a row stop the model
LONGEST_WAIT = 600.0  # seconds; a longer Retry-After is treated as an exhausted quota


class CallError(DataError):
    """An endpoint cannot be used; the text is one clear line."""


def slug(model_name: str) -> str:
    """File-safe name, one to one: a short hash is added wherever cleaning changed something."""
    clean = re.sub(r"[^A-Za-z0-9._-]+", "-", model_name).strip(".-")[:80]
    looks_hashed = re.search(r"-[0-9a-f]{8}$", model_name)
    if clean == model_name and not looks_hashed:
        return clean
    return f"{clean}-{hashlib.sha256(model_name.encode()).hexdigest()[:8]}"


@dataclasses.dataclass(frozen=True)
class Request:
    """One single-turn chat call.

    `endpoint` is the identity of what answers: the base_url, or `sha256:…` of embedded weights.
    `decoding` holds the sampling parameters and, for judges, the response format.
    """

    endpoint: str
    model: str
    messages: tuple[tuple[str, str], ...]  # (role, content)
    decoding: dict[str, Any]
    sample: int = 0

    def canonical(self) -> str:
        """JSON with sorted keys and no white space; equal requests give equal text."""
        return json.dumps(
            dataclasses.asdict(self), sort_keys=True, ensure_ascii=False, separators=(",", ":")
        )

    @property
    def sha(self) -> str:
        """sha256 of the canonical JSON, hexadecimal."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()

    def sent(self) -> dict[str, Any]:
        """Arguments of the client's call.

        A `seed` among the decoding parameters is the run's: what is sent is derived from it and
        from the whole request, so that two prompts do not share their random numbers.
        """
        decoding = dict(self.decoding)
        if "seed" in decoding:
            decoding["seed"] = int(self.sha[:8], 16) >> 1
        known = {"temperature", "top_p", "max_tokens", "max_completion_tokens", "seed", "stop"}
        known |= {"frequency_penalty", "presence_penalty", "response_format", "reasoning_effort"}
        extra = {key: value for key, value in decoding.items() if key not in known}
        arguments = {key: value for key, value in decoding.items() if key in known}
        if extra:
            arguments["extra_body"] = extra
        messages = [{"role": role, "content": content} for role, content in self.messages]
        return {"model": self.model, "messages": messages} | arguments


def identity(provider: Provider) -> str:
    """What answers at this provider: embedded weights by their sha256, an endpoint by its URL."""
    if provider.embedded is not None:
        return f"sha256:{provider.embedded.weights.sha256}"
    return str(provider.base_url).rstrip("/")


def read_answer(raw: dict[str, Any]) -> dict[str, Any]:
    """Answer, trace and status out of a raw chat completion (pure; no call).

    Returns
    -------
    dict
        text, trace, status (ok, refused, empty, truncated, blocked, error), finish_reason,
        served_model, prompt_tokens, completion_tokens, error.
    """
    usage = raw.get("usage") or {}
    out: dict[str, Any] = {
        "text": "",
        "trace": None,
        "status": "error",
        "finish_reason": None,
        "served_model": raw.get("model"),
        "prompt_tokens": usage.get("prompt_tokens"),
        "completion_tokens": usage.get("completion_tokens"),
        "error": None,
    }
    choices = raw.get("choices")
    if not choices:
        problem = raw.get("error") or "the endpoint sent no choices"
        out["error"] = problem if isinstance(problem, str) else json.dumps(problem)
        return out
    message = choices[0].get("message") or {}
    out["finish_reason"] = choices[0].get("finish_reason")
    content = message.get("content") or ""
    if isinstance(content, list):  # some endpoints send parts
        content = "".join(part.get("text") or "" for part in content if isinstance(part, dict))
    answer, trace = text.strip_trace(content)
    separate = message.get("reasoning_content") or message.get("reasoning")
    out["text"] = answer.strip()
    out["trace"] = "\n".join(part for part in (separate, trace) if part) or None
    if message.get("refusal"):
        out["status"], out["text"] = "refused", message["refusal"]
    elif out["finish_reason"] == "content_filter":
        out["status"] = "blocked"
    elif out["text"]:
        out["status"] = "ok"
    else:
        out["status"] = "truncated" if out["finish_reason"] == "length" else "empty"
    return out


class Journal:
    """Answers by request sha256, in one SQLite file a run; one process at a time.

    Raises
    ------
    CallError
        If another process holds the journal, or the file is damaged.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = filelock.FileLock(f"{self.path}.lock")
        try:
            self._lock.acquire(timeout=0)
        except filelock.Timeout:
            raise CallError(
                f"{self.path}: another process is working on this run; wait for it or stop it"
            ) from None
        try:
            self._db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS calls "
                "(sha TEXT PRIMARY KEY, request TEXT, raw TEXT, created_at TEXT)"
            )
        except sqlite3.DatabaseError as error:
            self._lock.release()
            raise CallError(
                f"{self.path}: the journal is damaged ({error}); move it away and run again: "
                "answers in the Parquet files are kept"
            ) from None

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_) -> None:
        self._db.close()
        self._lock.release()

    def put(self, sha: str, request: str, raw: dict, created_at: str, replace: bool = True) -> None:
        """Write one answer; it is on disk when this returns."""
        verb = "REPLACE" if replace else "IGNORE"
        self._db.execute(
            f"INSERT OR {verb} INTO calls VALUES (?, ?, ?, ?)",  # noqa: S608 (two fixed words)
            (sha, request, json.dumps(raw, ensure_ascii=False), created_at),
        )

    @contextlib.contextmanager
    def bulk(self) -> Iterator[None]:
        """Many writes as one transaction."""
        self._db.execute("BEGIN")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def answers(self, shas: Iterable[str]) -> dict[str, tuple[dict, str]]:
        """(raw answer, created_at) of those of `shas` that are answered."""
        wanted = set(shas)
        rows = self._db.execute("SELECT sha, raw, created_at FROM calls")
        return {sha: (json.loads(raw), when) for sha, raw, when in rows if sha in wanted}


Verdict = Literal["rate_limit", "transient", "request", "endpoint"]


def classify(status: int | None, body: str = "") -> Verdict:
    """What to do about a failed call: wait, try again, give up on it, or on the endpoint.

    `status` is the HTTP status, None for a connection that failed or timed out.
    """
    exhausted = re.search(r"insufficient[_ ]quota|exceeded your current quota|billing", body, re.I)
    if status is None or status in (408, 409) or status >= 500:
        return "transient"
    if status == 429:
        return "endpoint" if exhausted else "rate_limit"
    return "endpoint" if status in (401, 402, 403, 404) else "request"


def retry_after(headers: dict[str, str], now: float | None = None) -> float | None:
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


def _words(error: Exception, key: str | None) -> str:
    """An error in one line, without the key."""
    body = getattr(error, "body", None)
    message = body.get("message") if isinstance(body, dict) else None
    cause = error.__cause__
    line = " ".join(str(message or error).split())
    if cause is not None and not message:
        line += f" ({' '.join(str(cause).split()) or type(cause).__name__})"
    return line.replace(key, "[key]") if key else line


class _Stop(Exception):
    """Give up on this endpoint."""


Progress = Callable[[int, int, int], None]  # done, failed, total


def reporter(label: str, already: int = 0) -> Progress:
    """Progress for the terminal, through the file that the runner watches; notebooks stay clean."""
    path = os.environ.get("ESFP_PROGRESS")
    start = time.monotonic()
    last = 0.0

    def report(done: int, failed: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < 0.5 and done + failed < total:
            return
        last = now
        rate = (done + failed) / max(now - start, 1e-9)
        left = (total - done - failed) / rate if rate else float("inf")
        line = (
            f"{label}: {already + done} of {already + total} answers, {failed} failed, "
            f"{60 * rate:.0f} a minute, {left / 60:.1f} min left"
        )
        if path:
            Path(path).write_text(line, encoding="utf-8")
        elif sys.stderr.isatty():
            print(line, end="\r", file=sys.stderr)

    return report


async def _one(client, request: Request, provider: Provider, key: str | None, tries: int) -> dict:
    """One answered call, or an exception of the last try."""
    import openai

    for attempt in range(tries):
        try:
            async with asyncio.timeout(provider.timeout):
                completion = await client.chat.completions.create(**request.sent())
            return completion.model_dump(mode="json", exclude_none=True)
        except (openai.APIError, TimeoutError) as error:
            status = getattr(error, "status_code", None)
            verdict = classify(status, str(error))
            response = getattr(error, "response", None)
            asked = retry_after(dict(response.headers)) if response is not None else None
            if verdict == "endpoint" or (asked or 0) > LONGEST_WAIT:
                raise _Stop(_words(error, key)) from error
            if verdict == "request" or attempt == tries - 1:
                raise
            pause = min(60.0, 2.0**attempt) * random.uniform(0.5, 1.5)  # noqa: S311 (jitter)
            await asyncio.sleep(pause if asked is None else asked)
    raise AssertionError("unreachable: the last try returns or raises")


async def _all(
    requests: list[Request],
    provider: Provider,
    base_url: str,
    key: str | None,
    journal: Journal,
    progress: Progress,
) -> dict[str, str]:
    import openai

    client = openai.AsyncOpenAI(
        base_url=base_url, api_key=key or "none", timeout=provider.timeout, max_retries=0
    )
    failures: dict[str, str] = {}
    bad_in_a_row = done = 0
    gate = asyncio.Semaphore(provider.concurrency)

    async def work(request: Request, tries: int) -> None:
        nonlocal bad_in_a_row, done
        async with gate:
            try:
                raw = await _one(client, request, provider, key, tries)
            except (openai.APIError, TimeoutError) as error:
                failures[request.sha] = _words(error, key) or type(error).__name__
                bad_in_a_row += getattr(error, "status_code", None) == 400
                if bad_in_a_row >= BAD_REQUESTS_IN_A_ROW:
                    raise _Stop(failures[request.sha]) from error
            else:
                now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
                journal.put(request.sha, request.canonical(), raw, now)
                bad_in_a_row = 0
                done += 1
            progress(done, len(failures), len(requests))

    try:
        async with client:
            # The first call goes alone and once: a wrong key, model or address shows at no cost.
            await work(requests[0], tries=1)
            if requests[0].sha in failures:
                raise _Stop(failures.pop(requests[0].sha))
            async with asyncio.TaskGroup() as group:
                for request in requests[1:]:
                    group.create_task(work(request, provider.retries + 1))
    except (_Stop, ExceptionGroup) as stop:
        while isinstance(stop, ExceptionGroup):
            stop = stop.exceptions[0]
        if not isinstance(stop, _Stop):
            raise stop from None
        raise CallError(
            f"{requests[0].model} at {base_url}: {stop}; {done} of {len(requests)} calls done and "
            "kept, run the same command again to go on"
        ) from None
    return failures


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
    key = None
    if provider.key_env:
        key = os.environ.get(provider.key_env)
        if not key:
            raise CallError(
                f"the environment variable {provider.key_env} is not set; it holds the key for "
                f"{identity(provider)}: export {provider.key_env}=… and run again"
            )

    def run(base_url: str) -> dict[str, str]:
        with ThreadPoolExecutor(1) as thread:
            job = _all(requests, provider, base_url, key, journal, progress)
            return thread.submit(asyncio.run, job).result()

    if provider.embedded is None:
        return run(str(provider.base_url))
    from esfp import local_models

    with local_models.serve(provider.embedded) as base_url:
        return run(base_url)
