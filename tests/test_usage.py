"""What calls took: over all executions, with what could not be used, and at the prices given."""

import contextlib
import math
import sqlite3

import pandas as pd
import pytest

from esfp import asking, calls, generate, journal, usage
from esfp.providers import Provider
from tests.test_generate import ask


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr(asking, "FIRST_PAUSE", 0.05)


ASKED = pd.DataFrame(
    [
        ("a", 0.0, 10.0, 1, None, 9, 20),  # an answer that could not be used
        ("b", 2.0, 10.0, 3, "overloaded", None, None),  # given up
        ("a", 100.0, 5.0, 2, None, 9, 30),
        ("other", 0.0, 500.0, 9, None, 99, 99),
    ],
    columns=usage.COLUMNS,
)
ANSWERS = pd.DataFrame(
    {"sha": ["a", "b", "c"], "prompt_tokens": [9, None, 5], "completion_tokens": [30, None, 7]}
)


def test_totals_by_hand():
    found = usage.totals(ASKED, ANSWERS, {"input": 2, "output": 10})
    assert found["retries"] == 1 + 3 + 2 - 2
    # c was answered elsewhere and counts with its own tokens; a counts twice
    assert (found["prompt_tokens"], found["completion_tokens"]) == (9 + 9 + 5, 20 + 30 + 7)
    assert found["minutes"] == pytest.approx((12 + 5) / 60)
    assert found["cost"] == pytest.approx((23 * 2 + 57 * 10) / 1e6)


def test_what_is_not_known_is_missing_and_not_zero():
    found = usage.totals(ASKED[:0], ANSWERS[1:2], {"input": 2, "output": 10})
    assert found.pop("minutes") is math.nan and math.isnan(found.pop("cost"))
    assert all(value is pd.NA for value in found.values())
    assert "cost" not in usage.totals(ASKED, ANSWERS)


def closing(run_dir, responses, **prices):
    asked = usage.read(run_dir, responses["request_sha"])
    return generate.summary(responses, asked, prices).set_index("model")


def test_a_closing_table_counts_all_that_was_asked(tmp_path, bad):
    models = ["500,503,ok", "cut-trace,ok", "no-usage"]
    prices = dict.fromkeys(models, {"input": 1, "output": 3})
    first = ask(
        tmp_path, bad, models, ["P0", "P1"]
    )  # the call that tries a model is one of its own
    assert first["status"].tolist() == ["ok", "ok", "ok", "truncated", "ok", "ok"]
    responses = ask(tmp_path, bad, models, ["P0", "P1"])
    table = closing(tmp_path, responses, **prices)
    flaky, cut, mute = (table.loc[name] for name in models)
    assert (flaky["calls"], flaky["ok"], flaky["retries"]) == (2, 2, 4)
    assert flaky["prompt_tokens"] == 2 * 9 and flaky["cost"] == pytest.approx(2 * 9 * 4 / 1e6)
    assert (cut["ok"], cut["truncated"], cut["retries"]) == (2, 0, 2)
    assert cut["completion_tokens"] == 4 * 9  # the answers that were cut were paid for as well
    assert pd.isna(mute[["prompt_tokens", "completion_tokens", "cost"]]).all()
    assert (table["minutes"] > 0).all()
    assert len(usage.read(tmp_path, responses["request_sha"])) == 2 + 4 + 2

    again = ask(tmp_path, bad, models, ["P0", "P1"])  # nothing asked: the account stands
    pd.testing.assert_frame_equal(closing(tmp_path, again, **prices), table)
    plain = closing(tmp_path, again)
    assert "cost" not in plain
    assert usage.line(plain.reset_index()).startswith("6 retries, 54 tokens in, 54 out, 0.")


def test_answers_of_another_journal_count_with_their_tokens_alone(tmp_path, bad):
    responses = ask(tmp_path, bad, ["ok"], ["P0"])
    row = closing(tmp_path / "elsewhere", responses, ok={"input": 1, "output": 1}).loc["ok"]
    assert (row["prompt_tokens"], row["cost"]) == (9, 18 / 1e6)
    assert pd.isna(row[["retries", "minutes"]]).all()


def test_a_request_given_up_leaves_its_tries_and_its_words(tmp_path, bad):
    provider = Provider(base_url=bad.base_url, retries=2)
    request = calls.build(provider, "500", "", "what is your take", {})
    with calls.Journal(tmp_path / "journal.sqlite") as journal:
        calls.complete([request], provider, journal)
    (row,) = usage.read(tmp_path, [request.sha]).to_dict("records")
    assert (row["tries"], row["error"]) == (3, "The server had an error")
    assert row["seconds"] > 0 and pd.isna(row["prompt_tokens"])


def test_an_endpoint_given_up_leaves_its_words_too(tmp_path, bad):
    provider = Provider(base_url=bad.base_url)
    request = calls.build(provider, "401", "", "what is your take", {})
    with calls.Journal(tmp_path / "journal.sqlite") as journal, pytest.raises(calls.CallError):
        calls.complete([request], provider, journal)
    assert usage.read(tmp_path, [request.sha])["error"].tolist() == ["Incorrect API key provided"]


def test_a_journal_of_before_askings_were_kept_has_none(tmp_path):
    path = tmp_path / "journal.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE calls (sha TEXT PRIMARY KEY, raw TEXT)")
    assert journal.askings(path, ["a"]) == []
