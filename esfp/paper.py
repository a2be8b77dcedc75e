"""From a Markdown text and the runs it quotes to PDF, HTML and TeX; from a notebook to HTML.

`python -m esfp.paper SOURCE STEM NAME=FOLDER …` writes STEM.pdf, STEM.html and STEM.tex. In the
text `{{NAME.key}}` is a number of FOLDER/results.json and `NAME/figures/x` a file of that run; the
filters in paper/filters say how. Equal inputs give equal bytes, and a warning is an error.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pypandoc
import typst
import yaml

from esfp import files

PAPER = Path(__file__).resolve().parent.parent / "paper"
FILTERS = ("choose", "inject", "include", "crossref")
HTML = ("--to=html5", "--embed-resources", "--mathml", f"--template={PAPER}/style/page.html")
FORMATS = {
    "html": HTML,
    "tex": ("--to=latex", "--standalone", f"--include-in-header={PAPER}/style/preamble.tex"),
    "typ": ("--to=typst", f"--template={PAPER}/style/paper.typ"),
}

FOREIGN = re.compile("[^\u0000-\u04ff\u1e00-\u22ff]")  # what the embedded fonts may not have


def _flat(prefix: str, value) -> dict:
    """Nested mappings and lists as one mapping with dotted names."""
    if not isinstance(value, dict | list):
        return {prefix: value}
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    return {k: v for name, item in pairs for k, v in _flat(f"{prefix}.{name}", item).items()}


def values(runs: dict[str, Path]) -> dict[str, str | None]:
    """Everything that a text may quote, by name: numbers as JSON writes them, or None.

    `run.key` is a number of the run's results.json, `run.params.stage.key` a parameter of one of
    its stages, and `run.run` the name of the run.

    Raises
    ------
    DataError
        If a results.json is missing or is not a flat mapping.
    """
    found = {}
    for run, folder in runs.items():
        path = folder / "results.json"
        try:
            results = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise files.DataError(
                f"{path}: not there; run the figures stage of that run first"
            ) from None
        except ValueError as error:
            raise files.DataError(f"{path}: not valid JSON ({error})") from None
        for key, value in results.items():
            if isinstance(value, dict | list):
                raise files.DataError(f"{path}: '{key}' holds {type(value).__name__}, not a number")
        results["run"] = folder.as_posix().removeprefix("outputs/")
        for stage in sorted(folder.glob("params/*.yaml")):
            results |= _flat(f"params.{stage.stem}", yaml.safe_load(stage.read_text("utf-8")))
        for key, value in results.items():
            plain = value is None or isinstance(value, str)
            found[f"{run}.{key}"] = value if plain else json.dumps(value)
    return found


def _problem(stderr: str, known: dict[str, str]) -> str:
    """The one line that matters of what pandoc said."""
    marked = re.search(r"@@(.+?)@@", stderr, re.DOTALL)
    if not marked:
        lines = [line for line in stderr.splitlines() if line.strip()]
        first = lines[0] if lines else "pandoc failed and said nothing"
        return first.removeprefix("[WARNING] ").removesuffix(":")
    line = " ".join(marked[1].split())
    unknown = re.match(r"unknown value \{\{(.+)\}\}", line)
    close = difflib.get_close_matches(unknown[1], known, n=1) if unknown else []
    return line + (f"; did you mean {{{{{close[0]}}}}}?" if close else "")


def _pandoc(source: Path, target: Path, options: list[str], context: dict) -> None:
    with tempfile.TemporaryDirectory() as folder:
        description = Path(folder) / "context.json"
        description.write_text(json.dumps(context), encoding="utf-8")
        done = subprocess.run(  # noqa: S603 (pandoc of the package, arguments of ours)
            [pypandoc.get_pandoc_path(), str(source), f"--output={target}", *options]
            + [f"--variable=styles:{_styles()}"],
            env=os.environ | {"ESFP_PAPER": str(description)},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != 0:
        raise files.DataError(f"{source}: {_problem(done.stderr, context.get('values', {}))}")


def _styles() -> str:
    return (PAPER / "style" / "page.css").read_text(encoding="utf-8")


def _pdf(source: Path, typ: Path) -> bytes:
    # typst draws a box for a character that no font has and says nothing, so other scripts and
    # emoji (in a model's name, say) may take what fonts this machine has
    foreign = FOREIGN.search(typ.read_text(encoding="utf-8")) is not None
    fonts = typst.Fonts(include_system_fonts=foreign, include_embedded_fonts=True)
    compiler = typst.Compiler(typ, root="/", font_paths=fonts)
    try:
        pdf, warnings = compiler.compile_with_warnings(format="pdf", timestamp=0)
    except typst.TypstError as error:
        raise files.DataError(f"{source}: typst: {error.message}") from None
    if warnings:
        raise files.DataError(f"{source}: typst warns: {warnings[0].message}")
    return pdf


def build(source: str | Path, stem: str | Path, runs: dict[str, str | Path]) -> list[Path]:
    """Write `stem`.html, `stem`.tex and `stem`.pdf from the Markdown `source`.

    Parameters
    ----------
    source
        Pandoc Markdown.
    stem
        Path of the results without a suffix.
    runs
        Folder of each run by the name that the text gives it.

    Raises
    ------
    DataError
        With one line: an unknown value, a missing table, figure or citation, a reference to
        nothing, or whatever else pandoc or typst complain about.
    """
    source, stem = Path(source), Path(stem)
    context = {
        "values": values({name: Path(folder) for name, folder in runs.items()}),
        "runs": {name: str(folder) for name, folder in runs.items()},
        "folder": str(stem.parent),
    }
    common = [f"--lua-filter={PAPER}/filters/{name}.lua" for name in FILTERS]
    common += ["--citeproc", f"--bibliography={PAPER}/references.bib", "--number-sections"]
    common += ["--metadata=link-citations:true", "--metadata=lang:en-GB", "--fail-if-warnings"]
    common += ["--columns=10000", "--wrap=preserve"]  # no relative widths for tables of long lines
    contents = {}
    with tempfile.TemporaryDirectory() as folder:
        for suffix, options in FORMATS.items():
            target = Path(folder) / f"paper.{suffix}"
            _pandoc(source, target, [*common, *options], context)
            contents[suffix] = target.read_bytes()
        contents["pdf"] = _pdf(source, target)
    written = [stem.with_name(f"{stem.name}.{suffix}") for suffix in ("html", "tex", "pdf")]
    for path in written:
        files.write_bytes(path, contents[path.suffix[1:]])
    return written


def notebook_html(notebook: str | Path, html: str | Path) -> None:
    """Write an executed notebook as one HTML page that needs nothing else.

    Tables and pictures survive; HTML inside text, such as what a model wrote, is shown as text.
    """
    notebook, html = Path(notebook), Path(html)
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "notebook.html"
        options = ["--from=ipynb", *HTML, f"--lua-filter={PAPER}/filters/notebook.lua"]
        _pandoc(notebook, target, [*options, f"--metadata=pagetitle:{notebook.stem}"], {})
        files.write_bytes(html, target.read_bytes())


def main(arguments: list[str]) -> int:
    """Build from the command line; one line on stderr and 1 where it cannot be done."""
    if len(arguments) < 2 or any("=" not in run for run in arguments[2:]):
        print("usage: python -m esfp.paper SOURCE STEM NAME=FOLDER …", file=sys.stderr)
        return 2
    try:
        build(*arguments[:2], dict(run.split("=", 1) for run in arguments[2:]))
    except files.DataError as error:
        print(f"esfp.paper: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
