"""Run one stage of a run: `python -m esfp.run STAGE --params FILE`.

Validates the params file, executes the stage's notebook with papermill under a temporary name,
and renames it when every cell has completed, so that make never takes a half-executed notebook
for a finished one. A failed one is kept beside it as `N_stage.failed.ipynb`.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import re
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from esfp import params
from esfp.files import DataError

# Exceptions whose text is meant for the user; anything else in a cell is a fault of ours.
CLEAR_ERRORS = ("CallError", "CorpusError", "CoverageError", "DataError", "WeightsError")


def notebook_name(stage: str) -> str:
    """File stem of a stage's notebook: its place in the order, and its name."""
    return f"{params.STAGES.index(stage) + 1}_{stage}"


def check_parameters(notebook: Any, values: dict[str, Any], path: Path) -> None:
    """Refuse what papermill would only warn of.

    Raises
    ------
    DataError
        If there is not exactly one cell tagged `parameters`, or its names are not those of
        `values`, or a default's type is another.
    """
    tagged = [c for c in notebook.cells if "parameters" in c.metadata.get("tags", [])]
    if len(tagged) != 1:
        raise DataError(f"{path}: expected one cell tagged 'parameters', found {len(tagged)}")
    defaults: dict[str, Any] = {}
    exec(tagged[0].source, {}, defaults)  # noqa: S102 (our own notebook's literals)
    if set(defaults) != set(values):
        unknown, missing = sorted(set(values) - set(defaults)), sorted(set(defaults) - set(values))
        raise DataError(
            f"{path}: the parameters cell does not match the stage (not in the cell: {unknown}, "
            f"not in the stage: {missing})"
        )
    for name, default in defaults.items():
        value = values[name]
        alike = type(value) is type(default) or {type(value), type(default)} <= {int, float}
        if None not in (value, default) and not alike and name not in ("psi_ceiling", "score"):
            raise DataError(
                f"{path}: parameter '{name}' is {type(default).__name__} in the notebook, "
                f"{type(value).__name__} in the run"
            )


@contextlib.contextmanager
def _progress(path: Path) -> Iterator[None]:
    """Show on the terminal what the notebook writes to `path`."""
    stop = threading.Event()
    live = sys.stderr.isatty()

    def watch() -> None:
        shown, last, ended = "", 0.0, False
        while not ended:
            ended = stop.wait(0.5)
            line = path.read_text(encoding="utf-8") if path.exists() else ""
            soon = not live and not ended and time.monotonic() - last < 30
            if line == shown or soon:
                continue
            shown, last = line, time.monotonic()
            print(f"\r\033[K{line}" if live else line, end="" if live else "\n", file=sys.stderr)
            sys.stderr.flush()
        if live and shown:
            print(file=sys.stderr)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextlib.contextmanager
def _clean_environment(progress: Path, params_file: Path | None) -> Iterator[Path]:
    """What a kernel inherits: its own IPython folder, no plotting back-end, fixed hashes.

    Progress is written to one file that is named so, and errors may name lines of the other.
    """
    with tempfile.TemporaryDirectory() as folder:
        changes = {
            "IPYTHONDIR": folder,
            "PYTHONHASHSEED": "0",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "ESFP_PROGRESS": str(progress),
            "ESFP_PARAMS": str(params_file or ""),
        }
        before = dict(os.environ)
        os.environ.update(changes)
        os.environ.pop("MPLBACKEND", None)  # Agg here would drop every inline figure
        try:
            yield Path(folder)
        finally:
            os.environ.clear()
            os.environ.update(before)


@contextlib.contextmanager
def _kernel_ends_with_us() -> Iterator[None]:
    """Ctrl-C (or a plain kill) ends the kernel at once: it does not get the terminal's signals.

    That is safe at any moment: each answer is in the journal before it counts as done.
    """
    import psutil

    def end(number: int, _) -> None:
        signal.signal(number, signal.SIG_IGN)  # once is enough
        for child in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _normalise(notebook: Any) -> None:
    """Take out what differs between two executions of the same cells."""
    for index, cell in enumerate(notebook.cells):
        cell.id = f"cell-{index:02d}"
        for key in ("papermill", "execution"):
            cell.metadata.pop(key, None)
        for output in cell.get("outputs", []):
            if "text" in output:
                output.text = re.sub(r"0x[0-9a-f]{6,}", "0x…", output.text)
                output.text = re.sub(r"ipykernel_\d+", "ipykernel", output.text)
    notebook.metadata.pop("papermill", None)


def _unfinished(notebook: Any) -> list[int]:
    """Code cells that did not complete (a dead kernel or sys.exit leaves them so)."""
    return [
        index
        for index, cell in enumerate(notebook.cells)
        if cell.cell_type == "code"
        and cell.source.strip()
        and (
            cell.get("execution_count") is None
            or any(output.output_type == "error" for output in cell.outputs)
        )
    ]


def execute(
    source: Path, target: Path, values: dict[str, Any], params_file: Path | None = None
) -> None:
    """Execute a notebook with `values` injected; `target` appears only when all cells are done.

    Parameters
    ----------
    params_file
        Where the values come from, for errors that name a line of it. It is no parameter: a line
        that moves changes no result.

    Raises
    ------
    DataError
        If a cell fails or does not complete; the text is the cell's own one-line error.
    """
    import nbformat
    import papermill
    from papermill.exceptions import PapermillExecutionError
    from traitlets.config import Config

    if not source.exists():
        raise DataError(f"{source}: no such notebook")
    check_parameters(nbformat.read(source, as_version=4), values, source)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(".partial.ipynb")
    failed = target.with_suffix(".failed.ipynb")
    progress = target.with_suffix(".progress")
    # on Ctrl-C the kernel ends under a waiting task; that is no news to the user
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    settings = Config()
    # a kernel that is slow to end is interrupted, which is no error to tell the user of
    settings.NotebookClient.extra_arguments = ["--IPKernelApp.log_level=50"]
    error = None
    try:
        with (
            _clean_environment(progress, params_file) as folder,
            _progress(progress),
            _kernel_ends_with_us(),
        ):
            # sockets in a folder of this kernel's own: no ports that two runs could race for
            settings.KernelManager.transport = "ipc"
            settings.KernelManager.ip = str(folder / "kernel")
            settings.ConnectionFileMixin = settings.KernelManager
            papermill.execute_notebook(
                str(source),
                str(partial),
                parameters=values,
                kernel_name="python3",
                progress_bar=False,
                config=settings,
                cwd=os.getcwd(),
            )
    except KeyboardInterrupt:
        partial.unlink(missing_ok=True)
        raise
    except PapermillExecutionError as problem:
        error = str(problem.evalue)
        if problem.ename not in CLEAR_ERRORS:
            error = f"{problem.ename}: {' '.join(error.split())}"
    except Exception as problem:  # a kernel that died, a full disk: whatever papermill raises
        words = getattr(problem, "evalue", None) or str(problem) or "the kernel gave no reason"
        error = f"{type(problem).__name__}: {' '.join(words.split())}"
    finally:
        progress.unlink(missing_ok=True)
    if error is None:
        notebook = nbformat.read(partial, as_version=4)
        if unfinished := _unfinished(notebook):
            error = f"cell {unfinished[0]} did not complete"
    if error is not None:
        if partial.exists():
            os.replace(partial, failed)
        raise DataError(f"{error} [in {failed}]")
    _normalise(notebook)
    nbformat.write(notebook, partial)
    failed.unlink(missing_ok=True)
    os.replace(partial, target)


@contextlib.contextmanager
def alone(target: Path) -> Iterator[None]:
    """Keep a second process off a notebook that is being executed.

    Raises
    ------
    DataError
        If one is at it.
    """
    import filelock

    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with filelock.FileLock(target.with_suffix(".lock"), timeout=0):
            yield
    except filelock.Timeout:
        raise DataError(
            f"{target}: another process is making it; wait until it ends, or stop it"
        ) from None


def skip(stage: str, target: Path, released: str) -> None:
    """Leave a notebook that says why this run does not have the stage."""
    import nbformat

    note = nbformat.v4.new_markdown_cell(
        f"# {stage}\n\nNot part of this run: it starts from the score table `{released}`, which "
        "holds one row a model. This stage needs the single responses, and those were not released."
    )
    note["id"] = "cell-00"
    notebook = nbformat.v4.new_notebook(cells=[note])
    target.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, target.with_suffix(".partial.ipynb"))
    os.replace(target.with_suffix(".partial.ipynb"), target)


def run_stage(stage: str, path: Path) -> Path:
    """Run one stage; returns the executed notebook.

    Raises
    ------
    ParamsError, DataError
        With one clear line.
    """
    values = params.load(path)
    run = params.run_name(path)
    params.write_stage_parameters(path)
    stage_values = params.stage_parameters(values, stage, run)
    target = Path("outputs", run, "notebooks", f"{notebook_name(stage)}.ipynb")
    if stage_values is None:
        skip(stage, target, str(values.released))
    else:
        with alone(target):
            sys.stderr.write(f"{run}: {stage}\n")  # one write: stages may run side by side
            execute(Path("notebooks", f"{notebook_name(stage)}.ipynb"), target, stage_values, path)
    from esfp import paper

    paper.notebook_html(target, target.with_suffix(".html"))
    return target


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m esfp.run", description="Run one stage.")
    parser.add_argument("stage", choices=[*params.STAGES, "resolve"])
    parser.add_argument("--params", required=True, type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    try:
        if options.stage == "resolve":
            params.write_stage_parameters(options.params)
        else:
            run_stage(options.stage, options.params)
    except DataError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(
            "\nstopped; what was answered is kept. To go on from there, give the same command "
            "again.",
            file=sys.stderr,
        )
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
