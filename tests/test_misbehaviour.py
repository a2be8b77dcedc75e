"""Calls against a real server that misbehaves: what is tried again, what ends, what is recorded."""

import time

import pytest

from esfp import asking, calls
from esfp.providers import Provider
from tests.misbehaving import LONG, TRACE
from tests.server import ANSWERS

TEXT = ANSWERS["what is your take"]


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr(asking, "FIRST_PAUSE", 0.05)


def ask(tmp_path, bad, script, n=3, **more):
    """Ask `n` prompts of a model that follows `script`; returns failures and read answers."""
    provider = Provider(**({"base_url": bad.base_url, "concurrency": 4, "retries": 3} | more))
    requests = [
        calls.build(provider, script, "Be brief.", f"what is your take {i}", {}) for i in range(n)
    ]
    with calls.Journal(tmp_path / "journal.sqlite") as journal:
        failures = calls.complete(requests, provider, journal)
        known = journal.answers(request.sha for request in requests)
    return failures, [calls.read_answer(raw) for raw, _ in known.values()]


@pytest.mark.parametrize(
    "trouble",
    [
        "reset",
        "half",
        "500",
        "503",
        "502",
        "429",
        "200-429",
        "200-overload",
        "200-none",
        "200-html",
    ],
)
def test_what_passes_is_tried_again_and_its_error_is_no_answer(tmp_path, bad, trouble):
    failures, found = ask(tmp_path, bad, f"{trouble},ok")
    assert failures == {}
    assert [(a["status"], a["text"]) for a in found] == [("ok", TEXT)] * 3
    assert len(bad.log()) == 6


@pytest.mark.parametrize(
    "trouble", ["reset", "half", "500", "200-overload", "200-none", "200-html"]
)
def test_what_does_not_pass_is_a_failure_and_not_recorded(tmp_path, bad, trouble):
    failures, found = ask(tmp_path, bad, trouble, n=2, retries=1)
    assert len(failures) == 2 and found == []
    assert len(bad.log()) == 4
    assert all(words and "\n" not in words for words in failures.values())


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        ("401", "Incorrect API key provided"),
        ("403", "may not use the model"),
        ("404", "The model does not exist"),
        ("429-quota", "You exceeded your current quota"),
        ("200-quota", "Insufficient credits"),
        ("429-hours", "asks to wait 7200 s"),
    ],
)
def test_what_cannot_pass_stops_the_model_after_one_call(tmp_path, bad, trouble, words):
    with pytest.raises(calls.CallError, match=words) as error:
        ask(tmp_path, bad, trouble, n=30)
    assert len(bad.log()) == 1
    assert "\n" not in str(error.value) and "0 of 30 calls done" in str(error.value)


def test_a_key_that_is_withdrawn_stops_the_model_and_keeps_what_is_done(tmp_path, bad):
    # each prompt comes once, so the script turns by prompt: the fourth and later meet a 401
    provider = Provider(base_url=bad.base_url, concurrency=2)
    good = [calls.build(provider, "ok", "", f"what is your take {i}", {}) for i in range(5)]
    wrong = [calls.build(provider, "401", "", f"what is your take {i}", {}) for i in range(40)]
    with calls.Journal(tmp_path / "journal.sqlite") as journal:
        with pytest.raises(calls.CallError, match="Incorrect API key.*5 of 45 calls done"):
            calls.complete([*good, *wrong], provider, journal)
        assert len(journal.answers(request.sha for request in good)) == 5
    assert len(bad.log()) <= 5 + 2


def test_calls_under_way_are_kept_when_the_model_is_stopped(tmp_path, bad):
    provider = Provider(base_url=bad.base_url, concurrency=4)
    slow = [calls.build(provider, "wait-0.5", "", f"what is your take {i}", {}) for i in range(3)]
    wrong = [calls.build(provider, "401", "", "what is your take", {})]
    first = [calls.build(provider, "ok", "", "what is your take", {})]
    with calls.Journal(tmp_path / "journal.sqlite") as journal:
        with pytest.raises(calls.CallError, match="4 of 5 calls done"):
            calls.complete([*first, *slow, *wrong], provider, journal)
        assert len(journal.answers(request.sha for request in slow)) == 3


def test_one_bad_request_ends_alone_and_a_run_of_them_stops_the_model(tmp_path, bad):
    failures, found = ask(tmp_path, bad, "400", n=2)
    assert list(failures.values()) == ["Unsupported value: 'temperature'"] * 2 and found == []
    with pytest.raises(calls.CallError, match="Unsupported value"):
        ask(tmp_path, bad, "400", n=50, concurrency=1)
    assert len(bad.log()) == 2 + asking.BAD_REQUESTS_IN_A_ROW


def test_an_endpoint_that_is_down_stops_the_model(tmp_path, bad, monkeypatch):
    monkeypatch.setattr(asking, "FAILURES_IN_A_ROW", 6)
    with pytest.raises(calls.CallError, match="6 calls failed in a row: The server had an error"):
        ask(tmp_path, bad, "500", n=100, retries=0)
    assert len(bad.log()) < 15


def test_a_filtered_prompt_is_blocked_and_final(tmp_path, bad):
    failures, found = ask(tmp_path, bad, "400-filter", n=8)
    assert failures == {}
    assert [(a["status"], a["text"]) for a in found] == [("blocked", "")] * 8
    assert "content policy" in found[0]["error"]
    assert len(bad.log()) == 8


@pytest.mark.parametrize(("form", "least"), [("429-seconds", 1.0), ("429-date", 0.9)])
def test_retry_after_is_kept_to_by_all_calls(tmp_path, bad, form, least):
    start = time.monotonic()
    failures, found = ask(tmp_path, bad, f"{form},ok", n=4)
    assert failures == {} and len(found) == 4
    assert time.monotonic() - start >= least
    assert len(bad.log()) == 8


@pytest.mark.parametrize("how", ["drip", "wait-3"])
def test_nothing_hangs(tmp_path, bad, how):
    start = time.monotonic()
    failures, found = ask(tmp_path, bad, how, n=2, timeout=0.5, retries=1)
    assert len(failures) == 2 and found == []
    assert "time" in next(iter(failures.values()))
    assert time.monotonic() - start < 5


@pytest.mark.parametrize(
    ("script", "status", "text", "trace"),
    [
        ("null", "empty", "", None),
        ("empty", "empty", "", None),
        ("tool", "empty", "", None),
        ("refusal", "refused", "I cannot help with that.", None),
        ("refusal-reason", "refused", "I cannot help with that.", None),
        ("filtered", "blocked", "", None),
        ("cut", "ok", "It has a long history, and the rea", None),
        ("cut-trace", "truncated", "", TRACE),
        ("cut-field", "truncated", "", TRACE),
        ("think", "ok", TEXT, LONG),
        ("thinking", "ok", TEXT, TRACE),
        ("closed", "ok", TEXT, TRACE),
        ("nested", "ok", TEXT, TRACE),
        ("several", "ok", TEXT, TRACE),
        ("harmony", "ok", TEXT, TRACE),
        ("field-reasoning", "ok", TEXT, TRACE),
        ("field-reasoning_content", "ok", TEXT, TRACE),
        ("parts", "ok", TEXT, None),
        ("parts-trace", "ok", TEXT, TRACE),
        ("choices", "ok", TEXT, None),
        ("no-usage", "ok", TEXT, None),
        ("odd-usage", "ok", TEXT, None),
        ("half-pair", "ok", TEXT + "\ufffd" * 3, None),
        ("latin-1", "ok", TEXT + "\ufffd", None),
    ],
)
def test_answers_as_they_come(tmp_path, bad, script, status, text, trace):
    failures, found = ask(tmp_path, bad, script, n=1)
    assert failures == {}
    answer = found[0]
    assert (answer["status"], answer["text"]) == (status, text)
    assert answer["trace"] is None if trace is None else trace.strip() in answer["trace"]
    assert answer["prompt_tokens"] == (None if "usage" in script else 9)


def test_an_alias_that_changes_half_way_is_seen(tmp_path, bad):
    _, found = ask(tmp_path, bad, "alias", n=8)
    assert {a["served_model"] for a in found} == {"served-1", "served-2"}


def test_calls_back_off_from_429s_and_come_back(tmp_path, bad):
    failures, found = ask(tmp_path, bad, "limit-4", n=150, concurrency=40, retries=0)
    assert failures == {} and len(found) == 150
    log = bad.log()
    assert len(log) < 2 * 150  # without a gate nearly every try of the first second is refused
    late = [entry["busy"] for entry in log[len(log) // 2 :]]
    assert sum(late) / len(late) < 12  # of the 40 that it was told
    assert max(late) >= 4  # and all that is allowed is used


def test_requests_per_minute_are_kept_to(tmp_path, bad):
    start = time.monotonic()
    ask(tmp_path, bad, "ok", n=9, concurrency=9, requests_per_minute=240)
    assert 1.0 <= time.monotonic() - start < 4  # four a second; the first four at once


def test_tokens_per_minute_are_kept_to(tmp_path, bad):
    start = time.monotonic()
    # 507 tokens a call, ten calls a second: the first hundred are within the burst
    ask(tmp_path, bad, "ok", n=115, concurrency=50, tokens_per_minute=507 * 600)
    assert 1.4 <= time.monotonic() - start < 5


@pytest.mark.parametrize(
    ("quirk", "sent"),
    [
        ({}, {"max_tokens": 50, "temperature": 0.5}),
        ({"limit_parameter": "max_completion_tokens"}, {"max_completion_tokens": 50}),
        ({"limit_parameter": "none"}, {"max_tokens": None, "max_completion_tokens": None}),
        ({"omit_temperature": True}, {"temperature": None}),
        ({"extra_body": {"top_k": 4, "seed": 7}}, {"top_k": 4, "seed": 7}),
    ],
)
def test_quirks_of_the_body(tmp_path, bad, quirk, sent):
    ask(tmp_path, bad, "ok", n=1, decoding={"max_tokens": 50, "temperature": 0.5}, **quirk)
    body = bad.log()[0]["body"]
    assert {key: body.get(key) for key in sent} == sent


@pytest.mark.parametrize(
    ("role", "messages"),
    [
        ("system", [("system", "Be brief."), ("user", "what is your take 0")]),
        ("developer", [("developer", "Be brief."), ("user", "what is your take 0")]),
        ("user", [("user", "Be brief.\n\nwhat is your take 0")]),
    ],
)
def test_quirk_of_the_system_role(tmp_path, bad, role, messages):
    ask(tmp_path, bad, "ok", n=1, system_role=role)
    assert [(m["role"], m["content"]) for m in bad.log()[0]["body"]["messages"]] == messages


def test_extra_headers_are_sent(tmp_path, bad):
    ask(tmp_path, bad, "ok", n=1, extra_headers={"X-Title": "a benchmark"})
    assert bad.log()[0]["headers"]["x-title"] == "a benchmark"


def test_a_key_from_the_env_file_is_sent(tmp_path, bad, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SOME_KEY", raising=False)
    (tmp_path / ".env").write_text("SOME_KEY=from-a-file\n")
    ask(tmp_path, bad, "ok", n=1, key_env="SOME_KEY")
    assert bad.log()[0]["headers"]["authorization"] == "Bearer from-a-file"
