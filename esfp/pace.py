"""How fast an endpoint is asked: its concurrency, which gives way to 429s, and its rates."""

from __future__ import annotations

import asyncio
import collections
import random
import time

from esfp.providers import Provider

ANSWER_TOKENS = 500  # assumed for an answer whose request states no limit
CHARACTERS_A_TOKEN = 4


def tokens(arguments: dict) -> int:
    """Tokens that a call may use: its characters over four, and the most it may answer."""
    characters = sum(len(message["content"]) for message in arguments["messages"])
    stated = arguments | arguments.get("extra_body", {})
    most = stated.get("max_tokens") or stated.get("max_completion_tokens") or ANSWER_TOKENS
    return characters // CHARACTERS_A_TOKEN + int(most)


class Pace:
    """A gate that at most `concurrency` calls pass at once.

    Additive increase, multiplicative decrease: a 429 halves the number, once for all the calls
    that were under way then; each success adds 1/number, so that it takes about as many successes
    as calls under way to win one back. Where the endpoint says when to come back, nobody passes
    before.
    """

    def __init__(self, provider: Provider, largest: int):
        from aiolimiter import AsyncLimiter

        self.most = provider.concurrency
        self.limit = float(self.most)
        self.busy = 0
        self.last_good = time.monotonic()
        self._cut = self._until = 0.0
        self._waiting: collections.deque[asyncio.Future] = collections.deque()
        self._requests = self._tokens = None
        if rate := provider.requests_per_minute:  # a burst of one second's worth
            burst = max(1.0, rate / 60)
            self._requests = AsyncLimiter(burst, 60 * burst / rate)
        if rate := provider.tokens_per_minute:  # of ten seconds' worth, or the largest call
            burst = max(rate / 6, float(largest))
            self._tokens = AsyncLimiter(burst, 60 * burst / rate)

    async def enter(self, arguments: dict) -> float:
        """Wait for a place; returns the time of entry, which `limited` asks for."""
        if self._requests is not None:
            await self._requests.acquire()
        if self._tokens is not None:
            await self._tokens.acquire(tokens(arguments))
        while True:
            if (pause := self._until - time.monotonic()) > 0:
                await asyncio.sleep(pause * random.uniform(1.0, 1.1))  # noqa: S311 (jitter)
            elif self.busy < int(self.limit):
                self.busy += 1
                return time.monotonic()
            else:
                place = asyncio.get_running_loop().create_future()
                self._waiting.append(place)
                await place

    def leave(self) -> None:
        """Give the place back."""
        self.busy -= 1
        free = int(self.limit) - self.busy
        while free > 0 and self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                free -= 1

    def went_well(self) -> None:
        """A call was answered."""
        self.last_good = time.monotonic()
        self.limit = min(float(self.most), self.limit + 1 / self.limit)

    def limited(self, entered: float, wait: float | None) -> None:
        """A call that entered at `entered` met a 429, which asked for a pause of `wait` s."""
        now = time.monotonic()
        if entered >= self._cut:  # calls that were under way at the last cut do not cut again
            self.limit, self._cut = max(1.0, self.limit / 2), now
        if wait:
            self._until = max(self._until, now + wait)
