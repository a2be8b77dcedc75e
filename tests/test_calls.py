"""Calls: what identifies a request, what an answer is, what a failure means, and the journal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esfp import calls, failures
from esfp.params import Provider


def request(**changes):
    values = {
        "endpoint": "http://here/v1",
        "model": "m",
        "messages": (("system", "s"), ("user", "u")),
        "decoding": {"temperature": 0.6},
        "sample": 0,
    }
    return calls.Request(**(values | changes))


def test_sha_depends_on_all_that_shapes_an_answer():
    changes = [
        {},
        {"endpoint": "http://there/v1"},
        {"model": "n"},
        {"messages": (("system", "other"), ("user", "u"))},
        {"messages": (("system", "s"), ("user", "other"))},
        {"decoding": {"temperature": 0.7}},
        {"decoding": {}},
        {"sample": 1},
    ]
    assert len({request(**change).sha for change in changes}) == len(changes)
    assert request(decoding={"a": 1, "b": 2}).sha == request(decoding={"b": 2, "a": 1}).sha


def test_identity_of_an_endpoint():
    assert calls.identity(Provider(base_url="http://here/v1/")) == "http://here/v1"


def test_seed_is_derived_from_the_request():
    one, two = request(decoding={"seed": 1}), request(decoding={"seed": 1}, sample=1)
    assert one.sent()["seed"] != two.sent()["seed"]
    assert one.sent() == request(decoding={"seed": 1}).sent()
    assert "seed" not in request().sent()


def test_unknown_decoding_parameters_go_into_the_body():
    sent = request(decoding={"top_p": 0.9, "top_k": 40}).sent()
    assert sent["top_p"] == 0.9
    assert sent["extra_body"] == {"top_k": 40}


names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=100)


@given(names, names)
def test_slug_is_one_to_one_and_file_safe(a, b):
    assert (calls.slug(a) == calls.slug(b)) == (a == b)
    assert not set(calls.slug(a)) & set('/\\:*?"<>| \n\0')
    assert calls.slug(a) not in ("", ".", "..")


def test_slug_of_names_that_clean_alike():
    assert calls.slug("a/b") != calls.slug("a:b")
    assert calls.slug("a-b") == "a-b"
    assert calls.slug(calls.slug("a/b")) != calls.slug("a/b")


def completion(message, finish="stop", **more):
    return {"model": "served", "choices": [{"message": message, "finish_reason": finish}]} | more


@pytest.mark.parametrize(
    ("raw", "status", "text", "trace"),
    [
        (completion({"content": " Yes. "}), "ok", "Yes.", None),
        (completion({"content": "None"}), "ok", "None", None),
        (completion({"content": None}), "empty", "", None),
        (completion({"content": "<think>Well.</think>Yes."}), "ok", "Yes.", "Well."),
        (completion({"content": "", "reasoning_content": "Hm."}), "empty", "", "Hm."),
        (completion({"content": "<think>Hm"}, "length"), "truncated", "", "Hm"),
        (completion({"content": "Cut o"}, "length"), "ok", "Cut o", None),
        (completion({"content": None, "refusal": "No."}), "refused", "No.", None),
        (completion({"content": ""}, "content_filter"), "blocked", "", None),
        (completion({"content": [{"type": "text", "text": "Yes."}]}), "ok", "Yes.", None),
        ({"choices": None, "error": {"message": "no host"}}, "error", "", None),
    ],
)
def test_read_answer(raw, status, text, trace):
    answer = calls.read_answer(raw)
    assert (answer["status"], answer["text"], answer["trace"]) == (status, text, trace)
    assert (answer["error"] is not None) == (status == "error")


@pytest.mark.parametrize(
    ("status", "body", "verdict"),
    [
        (None, "", "transient"),
        (408, "", "transient"),
        (500, "", "transient"),
        (529, "overloaded", "transient"),
        (429, "slow down", "rate_limit"),
        (429, "You exceeded your current quota", "endpoint"),
        (400, "", "request"),
        (422, "", "request"),
        (401, "", "endpoint"),
        (403, "", "endpoint"),
        (404, "", "endpoint"),
    ],
)
def test_classify(status, body, verdict):
    assert calls.classify(status, body) == verdict


def test_retry_after_in_both_forms():
    assert calls.retry_after({"retry-after": "7"}) == 7
    date = {"retry-after": "Thu, 01 Jan 1970 00:01:00 GMT"}
    assert calls.retry_after(date, now=50) == 10
    assert calls.retry_after(date, now=90) == 0
    assert calls.retry_after({}) is None
    assert calls.retry_after({"retry-after": "soon"}) is None


def test_journal_keeps_answers_and_refuses_a_second_process(tmp_path):
    path = tmp_path / "journal.sqlite"
    with calls.Journal(path) as journal:
        journal.put("a", "", {"text": "one\u2028two"}, "now")
        journal.put("a", "", {"text": "other"}, "later", replace=False)
        with pytest.raises(calls.CallError, match="another process"):
            calls.Journal(path)
    with calls.Journal(path) as journal:
        assert journal.answers(["a", "b"]) == {"a": ({"text": "one\u2028two"}, "now")}


def test_damaged_journal_is_named(tmp_path):
    path = tmp_path / "journal.sqlite"
    path.write_bytes(b"not a database, but long enough to be taken for one" * 50)
    with pytest.raises(calls.CallError, match="journal.sqlite: the journal is damaged"):
        calls.Journal(path)


def ask(tmp_path, provider, model, n=6):
    requests = [
        calls.Request(calls.identity(provider), model, (("system", ""), ("user", text)), {})
        for text in [f"what is your take {i}" for i in range(n)]
    ]
    with calls.Journal(tmp_path / "journal.sqlite") as journal:
        failures = calls.complete(requests, provider, journal)
        return failures, journal.answers(request.sha for request in requests)


def test_complete_answers_everything_once(tmp_path, server):
    failures, answers = ask(tmp_path, Provider(base_url=server.base_url), "steady")
    assert failures == {}
    assert len(answers) == 6
    assert server.calls() == [1] * 6


def test_transient_failures_are_tried_again(tmp_path, server):
    failures, answers = ask(tmp_path, Provider(base_url=server.base_url), "flaky")
    assert failures == {}
    assert len(answers) == 6
    assert sorted(set(server.calls())) == [1, 2]


def test_unknown_model_stops_after_one_call_with_the_endpoints_words(tmp_path, server):
    with pytest.raises(calls.CallError, match="The model `unknown` does not exist"):
        ask(tmp_path, Provider(base_url=server.base_url), "unknown")
    assert server.calls() == [1]


def test_refused_connection_is_one_clear_line(tmp_path):
    with pytest.raises(calls.CallError, match="http://127.0.0.1:9/v1") as error:
        ask(tmp_path, Provider(base_url="http://127.0.0.1:9/v1"), "m")
    assert "\n" not in str(error.value)


def test_unset_key_is_one_clear_line(tmp_path, monkeypatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    provider = Provider(base_url="http://127.0.0.1:9/v1", key_env="NO_SUCH_KEY")
    with pytest.raises(calls.CallError, match="NO_SUCH_KEY is not set"):
        ask(tmp_path, provider, "m")


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ({"message": "Rate limit reached", "code": 429}, "rate_limit"),
        ({"message": "Slow down", "code": "rate_limit_exceeded"}, "rate_limit"),
        ({"message": "Provider returned error", "code": 502}, "transient"),
        ({"message": "The model is overloaded"}, "transient"),
        ({"message": "Insufficient credits", "code": 402}, "endpoint"),
        ({"message": "You exceeded your current quota", "code": "insufficient_quota"}, "endpoint"),
        ({"message": "Incorrect API key provided"}, "endpoint"),
        ({"message": "No such model: big"}, "endpoint"),
        ({"message": "context_length_exceeded: the prompt is too long"}, "request"),
        ({"message": "Your input was flagged", "code": 403}, "blocked"),
        ("the endpoint sent no choices", "transient"),
        ({"message": "Hm."}, "transient"),
    ],
)
def test_an_error_object_inside_a_200_is_what_it_says(body, verdict):
    assert calls.classify(200, body) == verdict


def test_a_quota_that_comes_back_by_itself_is_a_rate():
    words = "You exceeded your current quota, please check your plan. Please retry in 34.07s."
    assert failures.asked_wait({}, words) == 34.07
    assert failures.asked_wait({}, "Try again in 20ms.") == 0.02
    assert failures.asked_wait({"retry-after": "3"}, words) == 3
    assert calls.classify(429, words, wait=34.07) == "rate_limit"
    assert calls.classify(429, {"message": words, "code": "insufficient_quota"}, 34) == "endpoint"


def test_words_are_one_line_without_the_key():
    assert failures.one_line("Wrong\nkey  abc.", "abc") == "Wrong key [key]."
    assert len(failures.one_line("x" * 9999)) == 500
    assert failures.message({"error": {"message": "no"}}) == "no"
    assert failures.message({"detail": [{"msg": "no"}]}) == '[{"msg": "no"}]'


def test_a_base_url_may_name_a_variable(tmp_path, server, monkeypatch):
    monkeypatch.delenv("TEST_PROXY", raising=False)
    provider = Provider(base_url="${TEST_PROXY}/v1")
    with pytest.raises(calls.CallError, match="TEST_PROXY is not set"):
        ask(tmp_path, provider, "steady")
    monkeypatch.setenv("TEST_PROXY", server.address)
    failures, answers = ask(tmp_path, provider, "steady")
    assert failures == {} and len(answers) == 6
    assert calls.identity(provider) == "${TEST_PROXY}/v1"


@pytest.mark.parametrize("message", ["Yes.", ["Yes."], None, 3])
def test_a_message_that_is_no_object(message):
    raw = {"choices": [{"message": message, "finish_reason": "stop"}]}
    assert calls.read_answer(raw)["text"] == ("Yes." if message in ("Yes.", ["Yes."]) else "")
