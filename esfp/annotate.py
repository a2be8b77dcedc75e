"""A page on which people label sentences: `make annotate`, or `make annotate NAME=ann`.

It serves this machine alone. A browser gets one sentence at a time under the number of its place
in the order, and nothing that tells where it comes from or how others labelled it. Every label is
on disk before the next sentence is shown.
"""

from __future__ import annotations

import argparse
import asyncio
import hmac
import re
import secrets
import statistics
import sys
from pathlib import Path

import filelock
import jinja2
from aiohttp import web
from markdown_it import MarkdownIt

from esfp import corpus, files, human
from esfp.gold import LABELS

HOST = "127.0.0.1"
HERE = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d+)?")  # else a name rebound to us
ENOUGH = 5  # labels before a pace is worth stating
DAY = 86_400  # seconds

templates = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def definitions(prompt: str) -> tuple[dict[str, str], str]:
    """The definition of each label and the rules, word for word from the judges' prompt.

    The last rule tells a judge the form of its reply, and is left out.

    Raises
    ------
    DataError
        If the prompt does not define A, B and C in the paper's form.
    """
    found = re.search(r"\bA = (.+?) B = (.+?) C = (.+?) Rules: (.+); return a JSON", prompt, re.S)
    if not found:
        raise files.DataError("judge.txt: expected 'A = … B = … C = … Rules: …; return a JSON …'")
    *meanings, rules = found.groups()
    return dict(zip(LABELS, meanings, strict=True)), f"{rules[:1].upper()}{rules[1:]}."


def manual_html(markdown: str) -> str:
    """The manual's section on sentences, as HTML; raw HTML in it stays text.

    Raises
    ------
    DataError
        If there is no such section.
    """
    found = re.search(r"^## Sentences.*?\n(.*?)(?=^## |\Z)", markdown, re.M | re.S)
    if not found:
        raise files.DataError(f"{human.MANUAL}: no section '## Sentences'")
    return MarkdownIt("commonmark", {"html": False}).enable("table").render(found[1])


def time_left(seconds: list[float], left: int) -> str | None:
    """How long `left` sentences take at the median pace so far, in words; None before a pace."""
    if len(seconds) < ENOUGH or not left:
        return None
    minutes = round(statistics.median(seconds) * left / 60)
    if minutes < 1:
        return "less than a minute left"
    hours, rest = divmod(minutes, 60)
    parts = [f"{hours} h"] * (hours > 0) + [f"{rest} min"] * (rest > 0)
    return f"about {' '.join(parts)} left at your pace"


class Page:
    """The labelling page of one folder of reference labels.

    Parameters
    ----------
    folder
        corpus/gold, or a folder made like it; the judges' prompt is in `prompts` beside it.
    name
        The annotator, where the page need not ask.

    Raises
    ------
    DataError
        If a file that it needs, or the labels of any annotator, cannot be read.
    """

    def __init__(self, folder: Path, name: str = ""):
        self.folder = folder
        order = human.sentences(folder)
        self.order, self.texts = order["sentence_id"], order["sentence"]
        self.known = human.known(folder)
        self.name = name.lower()
        self.token = secrets.token_urlsafe(24)
        prompt = corpus.load_prompt(folder.parent / "prompts" / "judge.txt")
        self.definitions, self.rules = definitions(prompt)
        self.manual = manual_html(human.manual(folder))
        for each in {*human.annotators(folder), *([name] if name else [])}:
            human.read(human.label_file(folder, each), self.known)

    def application(self) -> web.Application:
        """The routes, behind the check of where a request comes from."""
        application = web.Application(middlewares=[self._guard])
        application.add_routes(
            [
                web.get("/", self.start),
                web.get("/label/{name}", self.label),
                web.get(r"/label/{name}/{place:\d+}", self.label),
                web.post(r"/label/{name}/{place:\d+}", self.record),
            ]
        )
        return application

    @web.middleware
    async def _guard(self, request: web.Request, handler) -> web.StreamResponse:
        """Answer only to this machine's own names, and say what is wrong in one line."""
        try:
            if not HERE.fullmatch(request.headers.get("Host", "")):
                raise web.HTTPForbidden(text="This page answers to localhost and 127.0.0.1 alone.")
            return await handler(request)
        except web.HTTPRedirection:
            raise
        except web.HTTPException as problem:
            return self._render(request, problem.status, view="problem", problem=problem.text)
        except files.DataError as problem:
            print(f"error: {problem}", file=sys.stderr)
            return self._render(request, 409, view="problem", problem=str(problem))

    def _render(self, request: web.Request, status: int = 200, **values) -> web.Response:
        nonce = secrets.token_urlsafe(12)
        allowed = {
            "default-src": "'none'",
            "script-src": f"'nonce-{nonce}'",
            "style-src": f"'nonce-{nonce}'",
            "img-src": "data:",
            "form-action": "'self'",
            "base-uri": "'none'",
            "frame-ancestors": "'none'",
        }
        return web.Response(
            status=status,
            text=templates.get_template("annotate.html").render(nonce=nonce, **values),
            content_type="text/html",
            headers={
                "Content-Security-Policy": "; ".join(map(" ".join, allowed.items())),
                "Cache-Control": "no-store",
                "Referrer-Policy": "same-origin",
                "X-Content-Type-Options": "nosniff",
            },
        )

    def _file(self, name: str) -> Path:
        try:
            return human.label_file(self.folder, name)
        except files.DataError as error:
            raise web.HTTPBadRequest(text=str(error)) from None

    def _progress(self, name: str) -> tuple:
        """An annotator's rows, and how far they have come, in words and numbers."""
        rows = human.read(self._file(name), self.known)
        rows = rows[rows["sentence_id"].isin(self.order)]
        done = rows["label"].ne(human.SKIP)
        seconds = [float(value) for value in rows.loc[done, "seconds"] if value]
        total = len(self.order)
        return rows, {
            "done": int(done.sum()),
            "skipped": int((~done).sum()),
            "total": total,
            "time_left": time_left(seconds, total - int(done.sum())),
        }

    async def start(self, request: web.Request) -> web.Response:
        """Ask for the annotator's name, or go on where it is known."""
        name = request.query.get("name", self.name).strip()
        if name:
            self._file(name)
            raise web.HTTPSeeOther(f"/label/{name.lower()}")
        names = human.annotators(self.folder)
        progress = {each: self._progress(each)[1] for each in names}
        return self._render(request, view="start", progress=progress, total=len(self.order))

    async def label(self, request: web.Request) -> web.Response:
        """Show the sentence at a place, or the next one to label."""
        name = request.match_info["name"]
        rows, progress = self._progress(name)
        history = list(rows["sentence_id"])
        if "place" in request.match_info:
            shown = self._sentence(request)
        else:
            shown = human.following(self.order, rows)
        at = history.index(shown) if shown in history else len(history)
        if "place" not in request.match_info:
            at = len(history)  # a skipped one that comes again is new
        given = rows.set_index("sentence_id").to_dict("index").get(shown, {})
        places = {sentence: place for place, sentence in enumerate(self.order, start=1)}
        return self._render(
            request,
            view="label" if shown else "done",
            name=name,
            progress=progress,
            place=places.get(shown),
            sentence=self.texts[places[shown] - 1] if shown else None,
            given=given.get("label"),
            note=given.get("note", ""),
            back=places[history[at - 1]] if at else None,
            forward=at < len(history),
            after=places[history[at + 1]] if at + 1 < len(history) else None,
            definitions=self.definitions,
            rules=self.rules,
            manual=self.manual,
            token=self.token,
            longest_note=human.LONGEST_NOTE,
        )

    async def record(self, request: web.Request) -> web.Response:
        """Write a label to disk, then go on to the next sentence."""
        form = {key: str(value) for key, value in (await request.post()).items()}
        if not hmac.compare_digest(form.get("token", "").encode(), self.token.encode()):
            raise web.HTTPForbidden(
                text="Nothing was written: this page was opened before the server was last "
                "started. Go back to the start and label this sentence again."
            )
        path, sentence = self._file(request.match_info["name"]), self._sentence(request)
        label = form.get("label", "")
        if label not in (*LABELS, human.SKIP):
            raise web.HTTPBadRequest(text=f"'{label[:20]}' is no label; expected A, B, C or skip.")
        seconds = form.get("seconds", "")  # empty without JavaScript
        if seconds and not (re.fullmatch(r"\d+(\.\d+)?", seconds) and float(seconds) <= DAY):
            raise web.HTTPBadRequest(text=f"'{seconds[:20]}' is no number of seconds.")
        spent = float(seconds) if seconds else None
        human.record(path, self.known, sentence, label, spent, form.get("note", ""))
        raise web.HTTPSeeOther(f"/label/{request.match_info['name']}")

    def _sentence(self, request: web.Request) -> str:
        place = request.match_info["place"]
        if len(place) > 9 or not 1 <= int(place) <= len(self.order):
            raise web.HTTPNotFound(text=f"There is no sentence {place[:20]}.")
        return self.order[int(place) - 1]


async def serve(page: Page, port: int) -> None:
    """Serve until the process is ended.

    Raises
    ------
    DataError
        If the port is taken.
    """
    runner = web.AppRunner(page.application(), access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, HOST, port).start()
    except OSError as error:
        raise files.DataError(
            f"port {port} cannot be used ({error.strerror}); choose another: make annotate "
            f"PORT={port + 1}"
        ) from None
    address = f"http://{HOST}:{runner.addresses[0][1]}/"
    print(f"label at {address} – every label is on disk at once; Ctrl-C ends it", flush=True)
    await asyncio.Event().wait()


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m esfp.annotate", description=__doc__)
    parser.add_argument("--name", default="", help="the annotator; else the page asks")
    parser.add_argument("--port", default="8765", help="0 for any that is free")
    parser.add_argument("--gold", default="corpus/gold", type=Path, metavar="FOLDER")
    options = parser.parse_args(arguments)
    lock = filelock.FileLock(options.gold / ".annotate.lock")
    try:
        if not (options.port.isascii() and options.port.isdigit() and int(options.port) < 65536):
            raise files.DataError(f"PORT={options.port}: expected a number from 0 to 65535")
        page = Page(options.gold, options.name)
        with lock.acquire(timeout=0):
            asyncio.run(serve(page, int(options.port)))
    except filelock.Timeout:
        print(
            f"error: {options.gold}: another `make annotate` is at work; use its page, which "
            "serves several annotators, or stop it",
            file=sys.stderr,
        )
        return 1
    except files.DataError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nended; the same command goes on from here", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
