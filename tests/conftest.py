"""What several test files share: a real server, and a workspace of four items to run stages in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
import yaml

REPO = Path(__file__).resolve().parent.parent
# `make test` hands its own flags on, and a test's make would then name the folders it enters.
for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL"):
    os.environ.pop(name, None)

# Workspaces share the repository's embedding cache: the reference labels are embedded once.
ENVIRONMENT = os.environ | {"PYTHONPATH": str(REPO), "ESFP_CACHE": str(REPO / "outputs/.cache")}


class Server:
    """A running tests/server.py."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, REPO / "tests" / "server.py"], stdout=subprocess.PIPE, text=True
        )
        self.address = f"http://127.0.0.1:{int(self.process.stdout.readline())}"
        self.base_url = f"{self.address}/v1"

    def calls(self) -> list[int]:
        """How often each distinct request came."""
        with urllib.request.urlopen(f"{self.address}/calls", timeout=10) as reply:
            return json.load(reply)


@pytest.fixture
def server():
    running = Server()
    yield running
    running.process.kill()
    running.process.wait()


class Misbehaving:
    """A running tests/misbehaving.py."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.misbehaving"],
            cwd=REPO,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.address = f"http://127.0.0.1:{int(self.process.stdout.readline())}"
        self.base_url = f"{self.address}/v1"

    def log(self, reset: bool = False) -> list[dict]:
        """Every request that came since the last reset."""
        with urllib.request.urlopen(f"{self.address}/log", timeout=10) as reply:
            log = json.load(reply)
        if reset:
            urllib.request.urlopen(f"{self.address}/reset", timeout=10).close()
        return log


@pytest.fixture(scope="session")
def misbehaving():
    running = Misbehaving()
    yield running
    running.process.kill()
    running.process.wait()


@pytest.fixture
def bad(misbehaving):
    misbehaving.log(reset=True)
    return misbehaving


class Workspace:
    """A folder with the repository's notebooks, corpus and paper, and params files of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("notebooks", "corpus", "paper"):
            (root / name).symlink_to(REPO / name)
        (root / "params").mkdir()
        rows = [
            "type,text",
            "T1,Public libraries should open on Sundays.",
            "T3,Patience matters more than speed.",
            "T4,Water is made of hydrogen and oxygen.",
            "T6,Jazz is at its best in small rooms.",
        ]
        (root / "items.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")

    def params(self, name: str, base_url: str, models=("steady",), judges=None, **more) -> Path:
        """Write params/<name>.yaml that asks `models` at `base_url`."""
        values = {
            "corpus": {"items": "items.csv"},
            "providers": {"test": {"base_url": base_url, "concurrency": 4, "retries": 2}},
            "generate": {"candidates": [{"name": m, "provider": "test"} for m in models]},
            "judge": {
                "judges": judges
                or [{"name": "embedding", "kind": "embedding"}, {"name": "words", "kind": "words"}],
                "folds": 3,
            },
        }
        path = self.root / "params" / f"{name}.yaml"
        path.write_text(yaml.safe_dump(values | more, sort_keys=False), encoding="utf-8")
        return path.relative_to(self.root)

    def run(self, *arguments, **more) -> subprocess.CompletedProcess:
        """`python -m …` in this folder."""
        return subprocess.run(
            [sys.executable, "-m", *map(str, arguments)],
            cwd=self.root,
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            timeout=900,
            **more,
        )

    def stage(self, stage: str, params: Path) -> subprocess.CompletedProcess:
        return self.run("esfp.run", stage, "--params", params)


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path)
