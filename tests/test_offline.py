"""Offline judges: reference labels checked, items kept apart, the same labels every time."""

import numpy as np
import pandas as pd
import pytest

from esfp import agreement, cues, offline
from esfp.files import DataError

SENTENCES = "sentence_id,response_id,item_id,type,phrasing,voice,sentence,label\n"
STANCES = "response_id,item_id,type,phrasing,voice,text,stance\n"


@pytest.fixture
def gold(tmp_path):
    """A folder of reference labels with one sentence and one response; returns a writer."""
    folder = tmp_path / "gold"
    folder.mkdir()
    (tmp_path / "items.csv").write_text("item_id,text\nT1-01,Peace is good.\n", encoding="utf-8")

    def write(sentence="r1-1,r1,T1-01,T1,P0,v,None,A", stance="r1,T1-01,T1,P0,v,NA,neutral"):
        (folder / "sentences.csv").write_text(SENTENCES + sentence + "\n", encoding="utf-8")
        (folder / "stances.csv").write_text(STANCES + stance + "\n", encoding="utf-8")
        return folder

    return write


def test_reference_labels_are_text_and_carry_their_claim(gold):
    sentences, stances = offline.load_gold(gold())
    assert sentences["sentence"].tolist() == ["None"] and stances["text"].tolist() == ["NA"]
    assert stances["claim"].tolist() == ["Peace is good."]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sentence": "r1-1,r1,T1-01,T1,P0,v,It is.,D"}, r"sentences.csv, row 2: label 'D'"),
        ({"stance": "r1,T1-01,T1,P0,v,It is.,mixed"}, r"stances.csv, row 2: label 'mixed'"),
        ({"stance": "r1,T9-99,T1,P0,v,It is.,neutral"}, r"row 2: no item 'T9-99'"),
    ],
)
def test_wrong_reference_labels_are_named(gold, change, message):
    with pytest.raises(DataError, match=message) as error:
        offline.load_gold(gold(**change))
    assert "\n" not in str(error.value)


def test_missing_reference_labels_are_named(gold, tmp_path):
    with pytest.raises(DataError, match="sentences.csv: not there"):
        offline.load_gold(tmp_path)
    folder = gold()
    (folder / "stances.csv").write_text("response_id,item_id\n", encoding="utf-8")
    with pytest.raises(DataError, match="column 'type' is missing"):
        offline.load_gold(folder)


def test_cues_by_hand():
    text = "I think critics should not say so, but is it better?"
    found = dict(zip(cues.NAMES, cues.count_cues([text])[0], strict=True))
    present = {name for name, count in found.items() if count}
    assert present == {
        "first person",
        "starts with the speaker",
        "own view",
        "norm",
        "comparison of worth",
        "holder of a view",
        "report",
        "several sides",
        "verdict",
        "negation",
        "contrast",
        "question",
        "length",
    }
    assert found["first person"] == 1 and found["length"] == pytest.approx(np.log(12))
    assert cues.count_cues([]).shape == (0, len(cues.NAMES))


def test_a_cue_counts_at_most_three_times():
    found = dict(zip(cues.NAMES, cues.count_cues(["why? why? why? why?"])[0], strict=True))
    assert found["question"] == 3


def test_unknown_kind():
    with pytest.raises(ValueError, match="unknown kind"):
        offline.sentence_judge("oracle")


def test_more_folds_than_items():
    gold = pd.DataFrame({"item_id": ["a", "b"], "sentence": ["x", "y"], "label": ["A", "B"]})
    with pytest.raises(DataError, match="3 folds need as many items .* there are 2"):
        offline.cross_validate("words", gold, 3)


@pytest.fixture(scope="module")
def some_gold():
    """A third of the reference items: enough to learn from, quick to embed."""
    sentences, stances = offline.load_gold("corpus/gold")
    items = sorted(set(stances["item_id"]))[::3]
    return tuple(frame[frame["item_id"].isin(items)] for frame in (sentences, stances))


@pytest.mark.parametrize("kind", offline.KINDS)
def test_judges_learn_the_labels_and_repeat_themselves(kind, some_gold):
    sentences, _ = some_gold
    found = offline.cross_validate(kind, sentences, 4)
    assert agreement.cohen_kappa(sentences["label"], found) > 0.35
    assert found.index.equals(sentences.index)
    assert (offline.cross_validate(kind, sentences, 4) == found).all()


def test_judges_are_of_different_kinds(some_gold):
    sentences, _ = some_gold
    first, second = (offline.cross_validate(kind, sentences, 4) for kind in offline.KINDS)
    assert 0.2 < agreement.cohen_kappa(first, second) < 0.9


def test_stance_judge_learns_and_repeats_itself(some_gold):
    sentences, stances = some_gold
    found = offline.cross_validate_stance(stances, sentences, 4)
    assert set(found) <= set(offline.STANCES) and found.index.equals(stances.index)
    assert agreement.cohen_kappa(stances["stance"], found) > 0.1
    judge = offline.StanceJudge().fit(stances, sentences)
    pairs = [("I agree. The claim is right, in my view.", "Peace is good."), ("Yes.", "It is so.")]
    assert judge.predict(pairs) == offline.StanceJudge().fit(stances, sentences).predict(pairs)
    assert judge.predict([]) == []


def test_no_sentences_no_labels(some_gold):
    assert offline.predict(offline.train("words", some_gold[0]), []) == []
