"""Generate: nothing asked twice, nothing lost, every failure a row."""

import os
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest
import yaml

from esfp import calls, files, generate, judge, params
from tests.conftest import REPO

PROGRAM = """
import sys
from esfp import corpus, generate, params
path = sys.argv[1]
values = params.stage_parameters(params.load(path), "generate", "run")
items, prompts = generate.load_prompts(values["corpus"])
system = corpus.load_prompt(values["system_prompt"])
table = generate.ask(
    values["run_dir"], prompts, values["candidates"], values["providers"], system,
    values["samples"], values["reuse"],
)
"""


def start(workspace, path):
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(path)],
        cwd=workspace.root,
        env=os.environ | {"PYTHONPATH": str(REPO)},
        stderr=subprocess.PIPE,
        text=True,
    )


def recorded(workspace, model="slow"):
    path = workspace.root / "outputs/run/responses" / f"{calls.slug(model)}.parquet"
    return files.read_parquet(path, files.RESPONSES)


def test_killed_at_any_moment_nothing_is_lost_or_asked_twice(workspace, server):
    candidates = [{"name": "slow", "provider": "test"}]
    path = workspace.params(
        "run", server.base_url, generate={"candidates": candidates, "samples": 5}
    )
    for _ in range(3):
        before = sum(server.calls())
        process = start(workspace, path)
        while sum(server.calls()) < before + 12:
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
    process = start(workspace, path)
    assert process.wait(120) == 0, process.stderr.read()
    table = recorded(workspace)
    assert len(table) == 4 * 5 * 5
    assert table["status"].eq("ok").all()
    # samples of one prompt look alike to the server: five calls a prompt, and those in flight
    assert 100 <= sum(server.calls()) <= 100 + 3 * 4
    after = sum(server.calls())
    assert start(workspace, path).wait(60) == 0
    assert sum(server.calls()) == after


def test_recorded_answers_need_no_journal_and_no_server(workspace, server):
    path = workspace.params("run", server.base_url)
    assert start(workspace, path).wait(60) == 0
    first = recorded(workspace, "steady")
    for file in (workspace.root / "outputs/run").glob("journal.sqlite*"):
        file.unlink()
    server.process.kill()
    assert start(workspace, path).wait(60) == 0
    assert recorded(workspace, "steady").equals(first)


def ask(run_dir, bad, models, phrasings=("P0", "P1", "P2", "P3", "P4"), **provider):
    """`generate.ask` about one item, in this process."""
    values = params.Provider(base_url=bad.base_url, **provider).model_dump()
    corpus = params.Corpus(items=str(REPO / "corpus/items.csv"), per_type=1).model_dump()
    prompts = generate.load_prompts(corpus)[1].head(5)
    prompts = prompts[prompts["phrasing"].isin(phrasings)]
    candidates = [{"name": model, "provider": "p"} for model in models]
    return generate.ask(str(run_dir), prompts, candidates, {"p": values}, "Be brief.")


EVERY_KIND = (
    "ok null empty refusal refusal-reason filtered 400-filter cut cut-trace tool think harmony "
    "field-reasoning parts-trace no-usage half-pair"
).split()


def test_what_parquet_recorded_is_read_back_as_it_was(tmp_path, bad):
    """The journal may be gone: git keeps the Parquet alone."""
    with pytest.raises(calls.CallError, match="can be used"):  # some models give no answer
        ask(tmp_path, bad, EVERY_KIND, ["P0"])
    paths = [tmp_path / f"responses/{calls.slug(model)}.parquet" for model in EVERY_KIND]
    before = [path.read_bytes() for path in paths]
    for file in tmp_path.glob("journal.sqlite*"):
        file.unlink()
    with calls.Journal(tmp_path / "journal.sqlite") as journal:
        assert generate._keep_recorded(journal, tmp_path / "responses") == []
        for path, old in zip(paths, before, strict=True):
            table = files.read_parquet(path, files.RESPONSES)
            read = journal.read(table["request_sha"], generate._row)
            rows = pd.DataFrame([read[sha] for sha in table["request_sha"]])
            again = table[[*files.KEYS, "request_sha"]].join(rows)
            files.write_parquet(path, again, files.RESPONSES)
            assert path.read_bytes() == old, path.name


def test_a_trace_that_the_prompt_opened_and_the_limit_cut_is_no_answer(tmp_path, bad):
    for asked in (5, 6):  # what was cut is asked again
        table = ask(tmp_path, bad, ["template"]).set_index("phrasing")
        assert len(bad.log()) == asked
        assert table.pop("status").to_dict() == dict.fromkeys(table.index, "ok") | {
            "P4": "truncated"
        }
        assert table.loc["P4", "text"] == "" and table["trace"].str.startswith("Let me").all()


def test_another_run_is_reused(workspace, server):
    assert start(workspace, workspace.params("run", server.base_url)).wait(60) == 0
    asked = sum(server.calls())
    (workspace.root / "outputs/run").rename(workspace.root / "outputs/earlier")
    candidates = [{"name": "steady", "provider": "test"}]
    again = workspace.params(
        "run", server.base_url, generate={"candidates": candidates, "reuse": ["earlier"]}
    )
    assert start(workspace, again).wait(60) == 0
    assert sum(server.calls()) == asked
    assert len(recorded(workspace, "steady")) == 20


def test_a_changed_temperature_asks_again_and_keeps_the_old_answers(workspace, server):
    path = workspace.params("run", server.base_url)
    assert start(workspace, path).wait(60) == 0
    first = recorded(workspace, "steady")
    values = yaml.safe_load((workspace.root / path).read_text())
    values["providers"]["test"]["decoding"] = {"temperature": 0.1}
    (workspace.root / path).write_text(yaml.safe_dump(values))
    assert start(workspace, path).wait(60) == 0
    assert sum(server.calls()) == 40
    assert not set(first["request_sha"]) & set(recorded(workspace, "steady")["request_sha"])
    with calls.Journal(workspace.root / "outputs/run/journal.sqlite") as journal:
        assert len(journal.answers(first["request_sha"])) == 20


def test_a_model_that_breaks_half_way_does_not_stop_the_others(workspace, bad):
    path = workspace.params("run", bad.base_url, models=("first-7", "ok"))
    process = start(workspace, path)
    assert process.wait(60) == 1
    words = process.stderr.read()
    assert "Incorrect API key provided; 6 of 19 calls done and kept" in words
    assert recorded(workspace, "ok")["status"].eq("ok").all()
    broken = recorded(workspace, "first-7")
    assert broken["status"].value_counts().to_dict() == {"ok": 7, "error": 13}
    assert broken.loc[broken["status"] == "error", "error"].notna().all()


@pytest.mark.parametrize("model", ["think", "closed", "harmony", "field-reasoning_content"])
def test_a_long_trace_reaches_no_judge(workspace, bad, model):
    assert start(workspace, workspace.params("run", bad.base_url, models=(model,))).wait(60) == 0
    table = recorded(workspace, model)
    assert table["status"].eq("ok").all() and table["trace"].str.len().min() > 2000
    assert not table["text"].str.contains("Let me think").any()
    sentences = judge.split(table)["sentence"]
    assert len(sentences) and not sentences.str.contains("Let me think|think>|channel").any()


def test_a_failed_call_is_a_row():
    row = generate._row(None, None, "overloaded")
    assert (row["status"], row["error"], row["text"]) == ("error", "overloaded", "")


@pytest.mark.parametrize(
    ("content", "finish", "broken"),
    [
        ("A plain answer in one paragraph.", "stop", []),
        ("word " * 151, "stop", ["too_long"]),
        ("An answer that stops in the midd", "length", ["cut_off"]),
    ],
)
def test_audit(content, finish, broken):
    raw = {"choices": [{"message": {"content": content}, "finish_reason": finish}]}
    assert generate._row(raw, "now", None)["violations"] == broken


def test_plan_crosses_prompts_and_samples():
    items, prompts = generate.load_prompts(params.Corpus(per_type=1).model_dump())
    provider = params.Provider(base_url="http://here")
    table = generate.plan(prompts, params.Candidate(name="m", provider="p"), provider, "s", 2)
    assert len(items) == 6
    assert len(table) == 6 * 5 * 2
    assert table["request_sha"].is_unique
    assert table["request"].iloc[0].messages[0] == ("system", "s")


def test_what_is_asked_again_comes_beyond_the_regular_answers():
    _, prompts = generate.load_prompts(params.Corpus(per_type=1).model_dump())
    provider = params.Provider(base_url="http://here")
    asked = (prompts, params.Candidate(name="m", provider="p"), provider, "s", 2)
    once, more = generate.plan(*asked), generate.plan(*asked, ["P0", "P1"])
    beyond = more[more["sample"] == 2]
    assert beyond["phrasing"].value_counts().to_dict() == {"P0": 6, "P1": 6}
    assert more["request_sha"].is_unique
    own = params.Candidate(name="m", provider="p", again=["P2"])
    mine = generate.plan(prompts, own, *asked[2:], ["P0", "P1"])
    assert set(mine.loc[mine["sample"] == 2, "phrasing"]) == {"P2"}
    regular = files.regular(more, 2)
    assert regular["request_sha"].tolist() == once["request_sha"].tolist()
