"""Progress for the terminal: through the file that the runner watches, so notebooks stay clean."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

Progress = Callable[[int, int, int], None]  # done, failed, total


def reporter(label: str, already: int = 0) -> Progress:
    """A function that shows calls done, calls left, rate, failures and the time left."""
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


def say(line: str) -> None:
    """Show a line in the terminal; in a notebook that is run by hand, nothing."""
    if path := os.environ.get("ESFP_PROGRESS"):
        Path(path).write_text(line, encoding="utf-8")
