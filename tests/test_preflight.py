"""Preflight: what is wrong with a candidate or judge shows before anything is paid for."""

import os
import subprocess
import sys

import pytest
import yaml

from tests.conftest import REPO
from tests.test_generate import PROGRAM

WITH_JUDGES = PROGRAM.replace('values["reuse"],', 'values["reuse"], values["judges"],')


def generate(workspace, base_url, models=("ok",), judges=None, key=None, **provider):
    """Run the stage's call by itself; returns its last line of error, empty where it went well."""
    path = workspace.params("run", base_url, models=models, judges=judges)
    values = yaml.safe_load((workspace.root / path).read_text())
    values["providers"]["test"] |= provider
    (workspace.root / path).write_text(yaml.safe_dump(values))
    done = subprocess.run(
        [sys.executable, "-c", WITH_JUDGES, str(path)],
        cwd=workspace.root,
        env=os.environ | {"PYTHONPATH": str(REPO)} | ({"TEST_KEY": key} if key else {}),
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stderr.strip().splitlines()[-1] if done.returncode else ""


def judge(model):
    return [{"name": "big", "kind": "llm", "provider": "test", "model": model}]


def test_every_model_that_cannot_be_used_is_named_with_the_key_to_change(workspace, bad):
    words = generate(workspace, bad.base_url, models=("404", "ok", "401"), judges=judge("403"))
    assert "404 at" in words and "[change generate.candidates.0.model]" in words
    assert "Incorrect API key provided [change providers.test.key_env" in words
    assert "403 at" in words and "ok at" not in words
    assert sorted(entry["body"]["model"] for entry in bad.log()) == ["401", "403", "404", "ok"]


def test_a_judge_is_tried_before_candidates_are_paid(workspace, bad):
    words = generate(workspace, bad.base_url, judges=judge("404"))
    assert "[change judge.judges.0.model]" in words
    assert len(bad.log()) == 2
    assert generate(workspace, bad.base_url, judges=judge("ok")) == ""
    assert len(bad.log()) == 2 + 19 + 1  # the candidate's first answer is kept
    assert generate(workspace, bad.base_url, judges=judge("ok")) == ""
    assert len(bad.log()) == 2 + 19 + 1


def test_nothing_is_tried_where_everything_is_answered(workspace, bad):
    assert generate(workspace, bad.base_url) == ""
    asked = len(bad.log())
    assert generate(workspace, bad.base_url, judges=judge("404")) == ""
    assert len(bad.log()) == asked


QUIRKS = [
    ("limit_parameter", {"limit_parameter": "max_completion_tokens"}),
    ("omit_temperature", {"omit_temperature": True}),
    ("system_role", {"system_role": "developer"}),
    ("json_mode", {"json_mode": "plain"}),
]


def test_each_refused_parameter_leads_to_its_key(workspace, bad):
    provider = {"decoding": {"max_tokens": 90, "temperature": 0.5}}
    for name, change in QUIRKS:
        words = generate(workspace, bad.base_url, ("picky",), judge("picky"), **provider)
        assert f"[change providers.test.{name}]" in words
        provider |= change
    assert generate(workspace, bad.base_url, ("picky",), judge("picky"), **provider) == ""


def test_an_address_where_nothing_listens(workspace):
    words = generate(workspace, "http://127.0.0.1:9/v1")
    assert "[change providers.test.base_url]" in words


@pytest.mark.parametrize("passing", ["500,ok", "429,ok"])
def test_what_passes_is_no_reason_to_stop(workspace, bad, passing):
    assert generate(workspace, bad.base_url, (passing,), judge("ok")) == ""


def test_a_judge_whose_label_cannot_be_read_stops_the_run_until_it_is_mended(workspace, bad):
    for asked in (2, 4):  # each time the first call that the candidate has left, and the judge
        words = generate(workspace, bad.base_url, judges=judge("judge-prose"))
        assert "label of one plain sentence cannot be read" in words
        assert "[change judge.judges.0]" in words
        assert len(bad.log()) == asked
    assert generate(workspace, bad.base_url, judges=judge("judge-cut")) == ""


def test_a_web_page_points_to_the_address(workspace, bad):
    words = generate(workspace, bad.base_url, ("200-html",), retries=0)
    assert "sent a web page" in words and "[change providers.test.base_url]" in words
    assert len(bad.log()) == 1


def test_an_endpoint_that_only_says_slow_down_ends_the_trial(workspace, bad):
    words = generate(workspace, bad.base_url, ("429",), retries=1)
    assert "Slow down" in words
    assert len(bad.log()) == 2
