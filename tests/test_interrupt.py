"""Stopping a run: Ctrl-C ends it at once, its kernel with it, and nothing answered is lost."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from esfp import calls
from tests.conftest import ENVIRONMENT


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda n: n.name)
def test_ctrl_c_ends_within_two_seconds_and_keeps_what_is_done(workspace, bad, number):
    path = workspace.params("run", bad.base_url, models=("wait-0.4",))
    command = [sys.executable, "-m", "esfp.run", "generate", "--params", str(path)]
    process = subprocess.Popen(
        command, cwd=workspace.root, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True
    )
    while len(bad.log()) < 7:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    kernels = psutil.Process(process.pid).children(recursive=True)
    assert kernels
    start = time.monotonic()
    os.kill(process.pid, number)
    _, words = process.communicate(timeout=20)
    assert time.monotonic() - start < 2
    assert process.returncode == 130
    assert "give the same command again" in words
    assert "Traceback" not in words
    assert not [kernel for kernel in kernels if kernel.is_running()]
    notebooks = workspace.root / "outputs/run/notebooks"
    assert not list(notebooks.glob("*partial*"))
    asked = len(bad.log())
    with calls.Journal(workspace.root / "outputs/run/journal.sqlite") as journal:
        kept = journal._db.execute("SELECT count(*) FROM calls").fetchone()[0]
    assert asked - 4 <= kept  # all but those in flight
    done = workspace.stage("generate", path)
    assert done.returncode == 0, done.stderr
    assert len(bad.log()) <= 21 + 4


def test_an_interrupt_of_a_bare_call_ends_it(tmp_path, bad):
    program = f"""
import sys, threading, time, _thread
from esfp import calls
from esfp.providers import Provider
provider = Provider(base_url={bad.base_url!r}, concurrency=4)
requests = [calls.build(provider, "wait-5", "", f"what is your take {{i}}", {{}}) for i in range(8)]
threading.Timer(1.0, _thread.interrupt_main).start()
start = time.monotonic()
with calls.Journal({str(tmp_path / "journal.sqlite")!r}) as journal:
    try:
        calls.complete(requests, provider, journal)
    except KeyboardInterrupt:
        print(time.monotonic() - start)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], env=ENVIRONMENT, capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 3
