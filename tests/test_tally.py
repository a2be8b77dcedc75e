"""The judge stage's closing table: each question accounted for, each call counted once."""

import pandas as pd
import pytest

from esfp import judge, questions, tally, usage
from tests.test_judge import GOLD, TEXTS, responses
from tests.test_llm_judges import asker, named


def closing(asker, prices=None, self_judged=None):
    asked = usage.read(asker.run_dir, tally.shas(asker.tallies))
    return tally.table(asker.tallies, asked, prices or {}, self_judged or {})


@pytest.mark.parametrize(
    ("model", "counts"),
    [  # two responses have sentences: answered, unreadable, failed, at first, calls, asked again
        ("ok", (2, 0, 0, 2, 2, 0)),
        ("judge-short", (2, 0, 0, 1, 3, 1)),  # one of the two has one sentence, not to be shortened
        ("judge-cut", (2, 0, 0, 0, 4, 2)),
        ("judge-mute", (0, 2, 0, 0, 4, 2)),
        ("500", (0, 0, 2, 0, 2, 0)),
    ],
)
def test_what_became_of_a_judges_questions(tmp_path, bad, model, counts):
    for _ in range(2):
        one = asker(tmp_path, bad, retries=0)
        one.labels(judge.split(responses(TEXTS)), named(model))
        row = closing(one, {"big": {"input": 1, "output": 1}}).iloc[0]
        names = ["answered", "unreadable", "failed", "at_first", "calls", "asked_again"]
        assert tuple(row[names]) == counts
        assert (row["judge"], row["task"], row["responses"]) == ("big", "labels", 2)
        assert row["sentences"] == (3 if row["answered"] else 0)
        if model != "500":
            assert row["prompt_tokens"] == 9 * row["calls"]
            assert row["cost"] == pytest.approx(18 * row["calls"] / 1e6) and row["minutes"] > 0


def test_labels_and_stances_in_one_call_are_counted_once(tmp_path, bad):
    frame = responses(TEXTS)
    split = judge.split(frame)
    folded = questions.fold("big", frame, split)
    one = asker(tmp_path, bad)
    one = type(one)(one.run_dir, one.providers, one.judge_prompt, one.stance_prompt, (), folded)
    one.labels(split, named("ok"))
    judge.stances(frame, pd.Series(), "big", [named("ok")], None, one)
    table = closing(one).set_index("task")
    assert table["responses"].to_dict() == {"labels": 2, "stances": 3}
    assert table["calls"].to_dict() == {"labels": 2, "stances": 1}  # one response has no sentence
    assert table["prompt_tokens"].to_dict() == {"labels": 18, "stances": 9}
    assert table.loc["stances", "sentences"] is pd.NA


def test_offline_judges_say_what_they_labelled_and_how_long_it_took(tmp_path, bad):
    one = asker(tmp_path, bad)
    frame = responses(TEXTS)
    judges = [{"name": "w", "kind": "words"}]
    trained = judge.train(judges, GOLD, 3)
    judge.label(judge.split(frame), judges, "unanimous", trained, one)
    row = closing(one).iloc[0]
    assert (row["responses"], row["answered"], row["sentences"]) == (2, 2, 3)
    assert 0 < row["minutes"] < 1 and "calls" not in row


def test_who_judges_itself_is_marked_and_quoted(tmp_path, bad):
    one = asker(tmp_path, bad)
    one.labels(judge.split(responses(TEXTS)), named("ok"))
    self_judged = {"big": ["ok", "vendor/ok"]}
    assert closing(one, self_judged=self_judged)["self_judged"].tolist() == ["ok, vendor/ok"]
    assert closing(one)["self_judged"].tolist() == [""]
    found = tally.results(one.tallies, self_judged, audit=True)
    assert found == {
        "judge.self_judged": "ok by big, vendor/ok by big",
        "judge.audit.matched_share.big": 1.0,
        "judge.audit.shifted.big": 0,
    }
    assert tally.results(one.tallies, {}, audit=False) == {}
