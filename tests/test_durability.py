"""Nothing is lost: kills at random moments, damaged files, and keys that stay out of them."""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time

import pytest
import yaml

from esfp import calls, files
from esfp.journal import Journal
from tests import resume
from tests.conftest import ENVIRONMENT
from tests.test_generate import PROGRAM, recorded

CONCURRENCY = 8

JUDGE_PROGRAM = """
import sys
import pandas as pd
from esfp import files, llm_judges
base_url, folder = sys.argv[1:]
provider = {"base_url": base_url, "concurrency": 8}
asker = llm_judges.Asker(folder, {"test": provider}, "You are a linguistic annotation expert.", "")
big = {"name": "big", "kind": "llm", "provider": "test", "model": "wait-0.05", "decoding": {}}
rows = [
    ("m", f"T1-{n:03d}", "T1", "P0", 0, place, sentence)
    for n in range(200)
    for place, sentence in enumerate([f"I think that number {n} is right.", "Experts say so."], 1)
]
sentences = pd.DataFrame(rows, columns=[*files.KEYS, "sentence_id", "sentence"])
labels = asker.labels(sentences, big)
assert labels == ["B", "A"] * 200, labels
print(len(labels))
"""


def python(workspace, program, *arguments, **more):
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        cwd=workspace.root,
        env=ENVIRONMENT | more,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def killed(workspace, bad, kills, *command):
    """Start the program and kill it at a random moment, `kills` times; then let it end."""
    dice = random.Random(os.urandom(8))
    for _ in range(kills):
        before = len(bad.log())
        process = python(workspace, *command)
        enough = before + dice.randint(1, 30)
        while len(bad.log()) < enough and process.poll() is None:
            time.sleep(0.01)
        time.sleep(dice.uniform(0, 0.05))
        process.send_signal(signal.SIGKILL)
        process.wait()
    process = python(workspace, *command)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out


def test_two_hundred_calls_killed_five_times(workspace, bad):
    models = [{"name": "wait-0.05", "provider": "test"}]
    path = workspace.params("run", bad.base_url, generate={"candidates": models, "samples": 10})
    values = yaml.safe_load((workspace.root / path).read_text())
    values["providers"]["test"]["concurrency"] = CONCURRENCY
    (workspace.root / path).write_text(yaml.safe_dump(values))
    killed(workspace, bad, 5, PROGRAM, path)
    table = recorded(workspace, "wait-0.05")
    assert len(table) == 200 and table["status"].eq("ok").all()
    assert table["request_sha"].is_unique
    assert 200 <= len(bad.log()) <= 200 + 5 * CONCURRENCY


def test_a_judge_killed_five_times(workspace, bad):
    out = killed(workspace, bad, 5, JUDGE_PROGRAM, bad.base_url, workspace.root / "run")
    assert out.strip() == "400"
    assert 201 <= len(bad.log()) <= 201 + 5 * CONCURRENCY  # one call tries the judge


def finish(workspace, path):
    process = python(workspace, PROGRAM, path)
    _, err = process.communicate(timeout=60)
    return process.returncode, (err.strip().splitlines() or [""])[-1]


def test_a_truncated_parquet_is_named_and_rebuilt_from_the_journal(workspace, bad):
    path = workspace.params("run", bad.base_url, models=("ok",))
    assert finish(workspace, path) == (0, "")
    first, asked = recorded(workspace, "ok"), len(bad.log())
    file = workspace.root / "outputs/run/responses/ok.parquet"
    file.write_bytes(file.read_bytes()[:-200])
    code, words = finish(workspace, path)
    assert code == 1 and "ok.parquet: not a readable Parquet file" in words
    assert "kept as ok.parquet.damaged" in words and "the same command" in words
    assert recorded(workspace, "ok").equals(first)
    assert finish(workspace, path) == (0, "")
    assert recorded(workspace, "ok").equals(first) and len(bad.log()) == asked


def test_a_truncated_parquet_that_git_has_is_brought_back(workspace, bad):
    path = workspace.params("run", bad.base_url, models=("ok",))
    assert finish(workspace, path) == (0, "")
    first, asked = recorded(workspace, "ok"), len(bad.log())
    for file in (workspace.root / "outputs/run").glob("journal.sqlite*"):
        file.unlink()  # as in a fresh clone
    name = "outputs/run/responses/ok.parquet"
    for command in (["init", "-q"], ["add", name]):
        subprocess.run(["git", *command], cwd=workspace.root, check=True)
    file = workspace.root / name
    file.write_bytes(file.read_bytes()[:-200])
    with pytest.raises(files.DataError, match=f"; `git restore {file}` brings back"):
        files.read_parquet(file, files.RESPONSES)
    code, words = finish(workspace, path)
    assert code == 1 and f"`git restore {name}` brings back what was recorded" in words
    subprocess.run(["git", "restore", name], cwd=workspace.root, check=True)
    assert finish(workspace, path) == (0, "")
    assert recorded(workspace, "ok").equals(first) and len(bad.log()) == asked


def fill(path, n=400):
    rows = [
        (f"{i:064x}", "{}", {"choices": [{"message": {"content": f"answer {i} " * 40}}]}, "now")
        for i in range(n)
    ]
    with Journal(path) as journal:
        journal.put_all(rows)
        journal._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return [row[0] for row in rows]


@pytest.mark.parametrize(
    ("damage", "least"),
    [
        (lambda data: data[: len(data) // 2], 100),  # a copy that broke off
        (lambda data: data[:80_000] + os.urandom(8192) + data[88_192:], 300),  # bad blocks
        (lambda data: b"\0" * 4096 + data[4096:], 0),  # the header is gone: nothing can be read
    ],
)
def test_a_damaged_journal_is_named_and_what_can_be_read_is_recovered(tmp_path, damage, least):
    path = tmp_path / "journal.sqlite"
    shas = fill(path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(calls.CallError, match="the journal is damaged") as error:
        with Journal(path) as journal:
            journal.answers(shas)
    assert "answers were recovered into a new one" in str(error.value)
    assert "\n" not in str(error.value)
    assert (tmp_path / "journal.sqlite.damaged-1").exists()
    with Journal(path) as journal:
        found = journal.answers(shas)
    assert least <= len(found) < 400
    for sha, (raw, when) in found.items():
        content = raw["choices"][0]["message"]["content"]
        assert content == f"answer {int(sha, 16)} " * 40 and when == "now"


def test_a_damaged_journal_costs_no_recorded_answer(workspace, bad):
    path = workspace.params("run", bad.base_url, models=("ok",))
    assert finish(workspace, path) == (0, "")
    first, asked = recorded(workspace, "ok"), len(bad.log())
    for file in (workspace.root / "outputs/run").glob("journal.sqlite*"):
        file.unlink()
    (workspace.root / "outputs/run/journal.sqlite").write_bytes(b"no database " * 2000)
    code, words = finish(workspace, path)
    assert code == 1 and "journal.sqlite: the journal is damaged" in words
    assert finish(workspace, path) == (0, "")
    assert recorded(workspace, "ok").equals(first) and len(bad.log()) == asked


def test_a_second_process_is_told(workspace, bad):
    path = workspace.params("run", bad.base_url, models=("ok",))
    with Journal(workspace.root / "outputs/run/journal.sqlite"):
        code, words = finish(workspace, path)
    assert code == 1 and "another process is working on this run" in words
    assert bad.log() == []


def test_a_long_run_is_resumed_fast_and_in_little_memory():
    _, least, _ = resume.measure(1)
    seconds, most, raws = resume.measure(8)
    more = len(raws) - len(raws) // 8
    assert (most - least) * 1e6 / more < 10_000  # 100 MB for 10,000 answers
    assert seconds / resume.reading(raws) < 60  # 3 s for 10,000 is about 35 on a quiet machine


KEY = "sk-test-0a1B2c3D4e5F6g7H8i9J0k"


@pytest.mark.parametrize("model", ["ok", "echo-key", "echo-key-answer", "500"])
def test_a_key_is_written_nowhere(workspace, bad, model):
    path = workspace.params("run", bad.base_url, models=(model,))
    values = yaml.safe_load((workspace.root / path).read_text())
    values["providers"]["test"] |= {"key_env": "TEST_KEY", "retries": 0}
    (workspace.root / path).write_text(yaml.safe_dump(values))
    (workspace.root / ".env").write_text(f"TEST_KEY={KEY}\n")
    done = workspace.stage("generate", path)
    assert (done.returncode == 0) == (model in ("ok", "echo-key-answer"))
    assert bad.log()[0]["headers"]["authorization"] == f"Bearer {KEY}"
    written = [file for file in (workspace.root / "outputs").rglob("*") if file.is_file()]
    assert any(file.name == "journal.sqlite" for file in written)
    for file in written:
        assert KEY.encode() not in file.read_bytes(), file
    for table in written:
        if table.suffix == ".parquet":
            frame = files.read_parquet(table, files.RESPONSES)
            assert KEY not in json.dumps(frame.astype(str).to_dict("records"))
    journal = sqlite3.connect(workspace.root / "outputs/run/journal.sqlite")
    assert KEY not in str(journal.execute("SELECT * FROM calls").fetchall())
    assert KEY not in done.stdout + done.stderr
    if model == "echo-key":
        assert "Wrong key Bearer [key]" in done.stderr
