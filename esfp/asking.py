"""The retry loop: what is tried again, when, and what ends a request or a whole model.

The client's own retries are off, since they would multiply with these.
"""

from __future__ import annotations

import asyncio
import collections
import datetime
import json
import random
import time
from typing import Any

from esfp import answers, failures, local_models, progress
from esfp.failures import Failure
from esfp.journal import Asked, Recorder
from esfp.pace import Pace
from esfp.providers import Provider
from esfp.request import Request

BAD_REQUESTS_IN_A_ROW = 5  # so many 400s in a row stop the model
FAILURES_IN_A_ROW = 20  # and so many calls given up for any reason
LONGEST_WAIT = 600.0  # seconds; a longer Retry-After is treated as an exhausted quota
FIRST_PAUSE = 1.0  # seconds before the second try; doubled at each one, jittered
LONGEST_PAUSE = 60.0
LAST_CALLS = 30.0  # seconds that calls under way are given when a model is stopped


class Stop(Exception):
    """Give up on this endpoint."""

    def __init__(self, words: str, failure: Failure):
        super().__init__(words)
        self.failure = failure


class Run:
    """The calls of one `complete`: workers that share a queue, a pace and a journal."""

    def __init__(
        self, client, provider: Provider, key: str | None, pace: Pace, recorder: Recorder, progress
    ):
        self.client, self.provider, self.key = client, provider, key
        self.pace, self.recorder, self.progress = pace, recorder, progress
        self.queue: collections.deque[Request] = collections.deque()
        self.failures: dict[str, str] = {}
        self.last: Failure | None = None  # the last one
        self.calling: set[asyncio.Task] = set()
        self.total = self.done = self.bad_in_a_row = self.failed_in_a_row = 0

    async def one_try(self, request: Request) -> dict[str, Any]:
        """The raw answer; raises Failure."""
        import openai

        arguments = request.sent()
        entered = await self.pace.enter(arguments)
        self.calling.add(asyncio.current_task())
        try:
            async with asyncio.timeout(self.provider.timeout):
                # the client's plain post: its typed method spends more on a call's arguments
                # than all the rest of the call costs
                body = {key: value for key, value in arguments.items() if key != "extra_body"}
                body |= arguments.get("extra_body", {})
                text = await self.client.post("/chat/completions", cast_to=str, body=body)
            if self.key is not None:
                text = text.replace(self.key, "[key]")
            try:
                raw = json.loads(text)
            except ValueError:
                page = text.lstrip().startswith("<")  # of a web server: the address is wrong
                what = "a web page" if page else "what is not JSON"
                raise Failure("transient", f"the endpoint sent {what}", web_page=page) from None
            if (problem := failures.inside(raw)) is not None:
                raise failures.from_answer(problem, self.key)
        except (openai.APIError, TimeoutError) as error:
            failure = failures.from_exception(error, self.key)
        except Failure as error:
            failure = error
        else:
            self.pace.went_well()
            return raw
        finally:
            self.pace.leave()
        if failure.verdict == "blocked":
            choice = {"message": {"content": ""}, "finish_reason": "content_filter"}
            return {"model": request.model, "choices": [choice], "error": failure.words}
        if failure.verdict == "rate_limit":
            self.pace.limited(entered, failure.wait)
        raise failure

    async def answer(self, request: Request, first: bool, asked: Asked) -> dict[str, Any]:
        """The raw answer after as many tries as it takes and may take; raises Failure or Stop."""
        tried = limited = 0
        while True:
            asked.tries += 1
            try:
                return await self.one_try(request)
            except Failure as caught:
                failure = caught  # the name after `as` ends with the block
                self.calling.discard(asyncio.current_task())
                wait = failure.wait
                if failure.verdict == "endpoint" or (first and failure.unreachable):
                    raise Stop(failure.words, failure) from None
                if (wait or 0) > LONGEST_WAIT:
                    why = f"asks to wait {wait:.0f} s ({failure.words})"
                    raise Stop(why, failure) from None
                if failure.verdict == "request":
                    raise
                if failure.verdict == "rate_limit":  # takes no try: patience ends it, for all calls
                    limited += 1
                    if first and limited > self.provider.retries:
                        raise Stop(failure.words, failure) from None
                    if time.monotonic() - self.pace.last_good > LONGEST_WAIT:
                        why = f"no answer for {LONGEST_WAIT:.0f} s: {failure.words}"
                        raise Stop(why, failure) from None
                else:
                    tried += 1
                    if tried > self.provider.retries:
                        raise
            longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** (tried + limited - 1))
            pause = longest * random.uniform(0.5, 1.5)  # noqa: S311 (jitter)
            pause = pause if wait is None else wait
            if limited:
                progress.say(f"{request.model}: {failure.words}; waiting {pause:.0f} s")
            await asyncio.sleep(pause)

    async def ask(self, request: Request, first: bool = False) -> None:
        """One request, to its end."""
        asked = Asked(request.sha, time.time())
        try:
            raw = await self.answer(request, first, asked)
            if self.provider.embedded:  # llama.cpp's own is 'unknown' in this build
                raw["system_fingerprint"] = local_models.engine()
        except (Failure, Stop) as failure:
            asked.seconds, asked.error = time.time() - asked.started_at, str(failure)
            self.recorder.put(asked)
            if isinstance(failure, Stop):
                raise
            self.failures[request.sha] = failure.words
            self.last = failure
            self.failed_in_a_row += 1
            self.bad_in_a_row = self.bad_in_a_row + 1 if failure.verdict == "request" else 0
            if self.bad_in_a_row >= BAD_REQUESTS_IN_A_ROW:
                raise Stop(failure.words, failure) from None
            if self.failed_in_a_row >= FAILURES_IN_A_ROW:
                why = f"{FAILURES_IN_A_ROW} calls failed in a row: {failure.words}"
                raise Stop(why, failure) from None
        else:
            now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
            asked.seconds = time.time() - asked.started_at
            asked.prompt_tokens, asked.completion_tokens = answers.tokens(raw)
            self.recorder.put(asked, (request.sha, request.canonical(), raw, now))
            self.calling.discard(asyncio.current_task())
            self.bad_in_a_row = self.failed_in_a_row = 0
            self.done += 1
        self.progress(self.done, len(self.failures), self.total)

    async def worker(self) -> None:
        while self.queue:
            await self.ask(self.queue.popleft())

    async def all(self, requests: list[Request]) -> None:
        """Ask every request; raises Stop when the endpoint is given up."""
        self.queue.extend(requests)
        self.total = len(requests)
        # the first call goes alone: a wrong key, model or address shows at the cost of one
        await self.ask(self.queue.popleft(), first=True)
        number = min(self.provider.concurrency, len(self.queue))
        workers = [asyncio.create_task(self.worker()) for _ in range(number)]
        if not workers:
            return
        try:
            finished, _ = await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
            if any(task.exception() for task in finished):
                self.queue.clear()
                under_way = self.calling & set(workers)
                for task in set(workers) - under_way:
                    task.cancel()
                if under_way:  # paid for already; they are let end, and not tried again
                    await asyncio.wait(under_way, timeout=min(LAST_CALLS, self.provider.timeout))
        finally:
            for task in workers:
                task.cancel()
            ends = await asyncio.gather(*workers, return_exceptions=True)
        for end in ends:
            if isinstance(end, Exception):
                raise end


def client(provider: Provider, base_url: str, key: str | None):
    """The one client that reaches an endpoint."""
    import openai

    # The client's own kind of time-out: an httpx object makes every call of version 3 fail.
    return openai.AsyncOpenAI(
        base_url=base_url,
        api_key=key or "none",
        max_retries=0,
        timeout=openai.Timeout(provider.timeout, connect=provider.connect_timeout),
        default_headers=provider.extra_headers,
        http_client=openai.DefaultAioHttpClient(),
    )
