"""The journal: every completed call, durable before its answer is used.

An answer is written when it comes, and then outlives any end of the process. The disk is made to
take the writes once a second and at the end of each `complete`, so before anything is used: a
flush a call would hold up every call by several milliseconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import filelock

from esfp.failures import CallError

LARGEST = 1 << 36  # bytes; a journal that states more has a damaged header
SYNC_EVERY = 1.0  # seconds
MOST_PROBES = 100_000  # rows looked for one by one in a damaged journal

Row = tuple[str, str, dict, str]  # sha, canonical request, raw answer, created_at

_TABLES = (
    "CREATE TABLE IF NOT EXISTS calls "
    "(sha TEXT PRIMARY KEY, request TEXT, raw TEXT, created_at TEXT)",
    "CREATE TABLE IF NOT EXISTS asked "
    "(sha TEXT, started_at REAL, seconds REAL, tries INTEGER, error TEXT, "
    "prompt_tokens INTEGER, completion_tokens INTEGER)",
)


@dataclasses.dataclass
class Asked:
    """What one asking of a request took, until its answer came or it was given up.

    A request has several where it failed, or its answer could not be used, and a later run asked
    again; the journal keeps them all, and so what a run took outlives its interruptions.
    """

    sha: str
    started_at: float  # seconds since the epoch
    seconds: float = 0.0  # with the pauses between tries
    tries: int = 0
    error: str | None = None  # where it was given up
    prompt_tokens: int | None = None  # as the endpoint counts
    completion_tokens: int | None = None


class Journal:
    """Answers by request sha256, in one SQLite file a run; one process at a time.

    Raises
    ------
    CallError
        If another process holds the journal. If the file is damaged: what can be read is moved
        into a new one first, the damaged one is kept beside it, and the next run goes on.
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
            self._open()
        except sqlite3.DatabaseError as error:
            self._mend(error)

    def _open(self) -> None:
        self._db = _connect(self.path)
        problem = self._db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if problem != "ok":
            raise sqlite3.DatabaseError(" ".join(problem.split()))

    def _mend(self, error: Exception) -> None:
        """Save what can be read of a damaged journal, and say so."""
        if hasattr(self, "_db"):
            self._db.close()
        try:
            if "locked" in str(error) or "unable to open" in str(error):
                raise CallError(f"{self.path}: the journal cannot be opened: {error}")
            kept, saved = _recover(self.path)
        finally:
            self._lock.release()
        raise CallError(
            f"{self.path}: the journal is damaged ({error}); {saved} answers were recovered into a "
            f"new one, the damaged file is kept as {kept.name}, and answers in the Parquet files "
            "are kept: run the same command again to go on"
        ) from None

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_) -> None:
        self._db.close()
        self._lock.release()

    def put(self, sha: str, request: str, raw: dict, created_at: str, replace: bool = True) -> None:
        """Write one answer; it outlives this process when this returns."""
        verb = "REPLACE" if replace else "IGNORE"
        self._db.execute(
            f"INSERT OR {verb} INTO calls VALUES (?, ?, ?, ?)",  # noqa: S608 (two fixed words)
            (sha, request, _storable(json.dumps(raw, ensure_ascii=False)), created_at),
        )

    def put_all(self, rows: list[Row], asked: list[Asked] | None = None) -> None:
        """Write answers and what it took; they outlive this process when this returns."""
        try:
            with self.bulk():
                for row in rows:
                    self.put(*row)
                self._db.executemany(
                    "INSERT INTO asked VALUES (?, ?, ?, ?, ?, ?, ?)",
                    [dataclasses.astuple(one) for one in asked or []],
                )
        except sqlite3.Error as error:
            raise CallError(f"{self.path}: the journal cannot be written: {error}") from None

    def sync(self) -> None:
        """Have the disk take what was written; from any thread."""
        for path in (f"{self.path}-wal", self.path):
            with contextlib.suppress(FileNotFoundError):
                handle = os.open(path, os.O_RDWR)
                try:
                    os.fsync(handle)
                finally:
                    os.close(handle)

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

    def known(self) -> set[str]:
        """The sha of every request that is answered."""
        return {sha for (sha,) in self._db.execute("SELECT sha FROM calls")}

    def read(self, shas: Iterable[str], what: Callable[[dict, str], Any]) -> dict[str, Any]:
        """`what(raw answer, created_at)` of those of `shas` that are answered, one at a time."""
        wanted = set(shas)
        try:
            rows = self._db.execute("SELECT sha, raw, created_at FROM calls")
            return {sha: what(json.loads(raw), at) for sha, raw, at in rows if sha in wanted}
        except sqlite3.DatabaseError as error:
            self._mend(error)
            raise

    def answers(self, shas: Iterable[str]) -> dict[str, tuple[dict, str]]:
        """(raw answer, created_at) of those of `shas` that are answered."""
        return self.read(shas, lambda raw, created_at: (raw, created_at))


def _storable(text: str) -> str:
    """`text` without halves of surrogate pairs, which some endpoints send and no file can hold."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        db.execute("PRAGMA journal_mode=WAL")
        # a write outlives the process at once, and a loss of power after `sync`
        db.execute("PRAGMA synchronous=NORMAL")
        for table in _TABLES:
            db.execute(table)
    except sqlite3.DatabaseError:
        db.close()
        raise
    return db


def askings(path: str | Path, shas: Iterable[str]) -> list[Asked]:
    """Every asking of `shas` that a journal knows of, in order; none where there is no journal.

    A journal that nothing was asked by since askings are kept has no table of them.
    """
    path = Path(path).resolve()
    if not path.exists():
        return []
    wanted = set(shas)
    with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
        kept = "SELECT 1 FROM sqlite_master WHERE name = 'asked'"
        if db.execute(kept).fetchone() is None:
            return []
        rows = db.execute("SELECT * FROM asked ORDER BY started_at, rowid")
        return [Asked(*row) for row in rows if row[0] in wanted]


def _recover(path: Path) -> tuple[Path, int]:
    """Put a damaged journal aside and write what can be read of it into a new one.

    Returns
    -------
    kept : Path
        The damaged file's new name.
    saved : int
        Answers in the new journal.
    """
    number = 1
    while (kept := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(f"{path}{suffix}"):
            os.replace(f"{path}{suffix}", f"{kept}{suffix}")
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        copy = Path(folder) / path.name
        for suffix in ("", "-wal"):
            if os.path.exists(f"{kept}{suffix}"):
                shutil.copyfile(f"{kept}{suffix}", f"{copy}{suffix}")
        _pad(copy)
        rows = _readable(copy)
    new = _connect(path)
    with contextlib.closing(new):
        new.execute("BEGIN")
        new.executemany("INSERT OR REPLACE INTO calls VALUES (?, ?, ?, ?)", rows)
        new.execute("COMMIT")
    return kept, len(rows)


def _pad(path: Path) -> None:
    """Bring a file that was cut off to the length its header states: SQLite reads it then."""
    header = path.read_bytes()[:100]
    if header[:16] != b"SQLite format 3\0":
        return
    page = int.from_bytes(header[16:18], "big")
    stated = (65536 if page == 1 else page) * int.from_bytes(header[28:32], "big")
    if path.stat().st_size < stated < LARGEST:
        os.truncate(path, stated)


def _readable(path: Path) -> list[tuple[str, str, str, str]]:
    """Rows of a damaged journal: read from both ends, then one by one in between."""
    whole = "SELECT rowid, sha, request, raw, created_at FROM calls NOT INDEXED "
    found: dict[int, tuple] = {}
    db = sqlite3.connect(path)
    # text that is not UTF-8 is damage too: such a row is left out below
    db.text_factory = bytes

    def take(query: str, *values: int) -> int | None:
        """Read until the first damaged page; returns the last row's number."""
        last = None
        with contextlib.suppress(sqlite3.Error):
            for last, *row in db.execute(query, values):
                found[last] = tuple(row)
        return last

    with contextlib.closing(db), contextlib.suppress(sqlite3.Error):
        low = take(whole + "ORDER BY rowid") or 0
        high = take(whole + "ORDER BY rowid DESC")
        for number in range(low + 1, min(high or low + MOST_PROBES, low + MOST_PROBES)):
            take(whole + "WHERE rowid = ?", number)
    rows = []
    for row in found.values():
        with contextlib.suppress(UnicodeDecodeError, ValueError, AttributeError):
            sha, request, raw, created_at = (value.decode("utf-8") for value in row)
            if len(sha) == 64 and isinstance(json.loads(raw), dict):
                rows.append((sha, request, raw, created_at))
    return rows


class Recorder:
    """Writes answers as they come, and every second sees to it that the disk has them."""

    def __init__(self, journal: Journal):
        self._journal = journal
        self._syncing: asyncio.Task | None = None

    def put(self, asked: Asked, row: Row | None = None) -> None:
        """Write what an asking took, and its answer; no end of this process can undo it."""
        self._journal.put_all([row] if row else [], [asked])
        if self._syncing is None:
            self._syncing = asyncio.get_running_loop().create_task(self._sync_often())

    async def close(self) -> None:
        """Everything written is on the disk when this returns."""
        if self._syncing is not None:
            self._syncing.cancel()
        self._journal.sync()

    async def _sync_often(self) -> None:
        while True:
            await asyncio.sleep(SYNC_EVERY)
            await asyncio.to_thread(self._journal.sync)
