"""Offline judges: reference labels checked, items kept apart, the same labels every time."""

from functools import partial
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from esfp import agreement, comparison, cues, offline, stance
from esfp.files import DataError
from esfp.gold import LABELS, load_gold
from esfp.replies import STANCES as STANCE_LABELS

KEYS = "response_id,item_id,type,phrasing,voice,split"
SENTENCES = f"sentence_id,{KEYS},sentence,pass_1,pass_2,label\n"
STANCES = f"{KEYS},text,pass_1,pass_2,stance\n"
SENTENCE = "r1-1,r1,T1-01,T1,P0,v,train,None,A,A,A"
STANCE = "r1,T1-01,T1,P0,v,train,NA,neutral,neutral,neutral"


@pytest.fixture
def gold(tmp_path):
    """A folder of reference labels with one sentence and one response; returns a writer."""
    folder = tmp_path / "gold"
    folder.mkdir()
    (tmp_path / "items.csv").write_text("item_id,text\nT1-01,Peace is good.\n", encoding="utf-8")

    def write(sentence=SENTENCE, stance=STANCE):
        (folder / "sentences.csv").write_text(SENTENCES + sentence + "\n", encoding="utf-8")
        (folder / "stances.csv").write_text(STANCES + stance + "\n", encoding="utf-8")
        return folder

    return write


def test_reference_labels_are_text_and_carry_their_claim(gold):
    sentences, stances = load_gold(gold())
    assert sentences["sentence"].tolist() == ["None"] and stances["text"].tolist() == ["NA"]
    assert stances["claim"].tolist() == ["Peace is good."]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sentence": SENTENCE.replace("A,A,A", "A,A,D")}, r"sentences.csv, row 2: label 'D'"),
        ({"sentence": SENTENCE.replace("A,A,A", "A,,A")}, r"row 2: pass_2 '' is none of A"),
        ({"sentence": SENTENCE.replace("train", "test")}, r"row 2: split 'test'"),
        ({"sentence": SENTENCE.replace("train", "held_out")}, r"item 'T1-01' is both in split"),
        ({"stance": STANCE.replace("neutral,neutral", "mixed,neutral")}, r"pass_1 'mixed'"),
        ({"stance": STANCE.replace("T1-01", "T9-99")}, r"row 2: no item 'T9-99'"),
    ],
)
def test_wrong_reference_labels_are_named(gold, change, message):
    with pytest.raises(DataError, match=message) as error:
        load_gold(gold(**change))
    assert "\n" not in str(error.value)


def test_missing_reference_labels_are_named(gold, tmp_path):
    with pytest.raises(DataError, match="sentences.csv: not there"):
        load_gold(tmp_path)
    folder = gold()
    (folder / "stances.csv").write_text("response_id,item_id\n", encoding="utf-8")
    with pytest.raises(DataError, match="column 'type' is missing"):
        load_gold(folder)


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
        "report of a belief",
        "several sides",
        "verdict",
        "negation",
        "contrast",
        "question",
        "length",
    }
    assert found["first person"] == 1 and found["length"] == pytest.approx(np.log(12))
    assert cues.count_cues([]).shape == (0, len(cues.NAMES))


@pytest.mark.parametrize(
    ("text", "cue"),
    [
        ("I would rather not say whether I agree.", "stance withheld or announced"),
        ("Others believe that it is better to be kind.", "report of a belief"),
        ("Young people say 'I think a good life needs no children'.", "quoted first person"),
        ("It is essential for teenagers to find a balance.", "prescription"),
        ("It is important to note that views differ.", "prescription for the talk"),
        ("This is a classic logical fallacy.", "fallacy"),
    ],
)
def test_cues_of_kinds_that_are_easily_confused(text, cue):
    found = dict(zip(cues.NAMES, cues.count_cues([text])[0], strict=True))
    assert found[cue] and not (cue != "prescription" and found["prescription"])


def test_a_cue_counts_at_most_three_times():
    found = dict(zip(cues.NAMES, cues.count_cues(["why? why? why? why?"])[0], strict=True))
    assert found["question"] == 3


def test_frames_keep_function_words_and_endings():
    assert cues.frames("It is, surely, true") == [
        *["^", "it", "is", ",", "*ly", ",", "*ue", "$"],
        *["^ it", "it is", "is ,", ", *ly", "*ly ,", ", *ue", "*ue $"],
        *["^ it is", "it is ,", "is , *ly", ", *ly ,", "*ly , *ue", ", *ue $"],
        *["^ it is ,", "it is , *ly", "is , *ly ,", ", *ly , *ue", "*ly , *ue $"],
    ]


def test_unknown_kind():
    with pytest.raises(ValueError, match="unknown kind"):
        offline.sentence_judge("oracle")


GOLD = pd.DataFrame(
    {
        "item_id": [f"T{i % 2}-{i:02d}" for i in range(7)],
        "split": ["train"] * 6 + ["held_out"],
        "sentence": ["I think so.", "They say so.", "Here it is."] * 2 + ["I say so."],
        "label": ["B", "A", "C"] * 2 + ["B"],
    }
)


def test_items_are_dealt_by_name_and_held_out_ones_are_not():
    fold = offline.deal(GOLD, 3)
    assert fold == {"T0-00": 0, "T0-02": 1, "T0-04": 2, "T1-01": 0, "T1-03": 1, "T1-05": 2}
    assert offline.deal(pd.concat([GOLD.iloc[::-1], GOLD.iloc[:3]]), 3) == fold
    assert offline.members(fold, 1) == ["T0-02", "T1-03"]


def test_more_folds_than_items():
    with pytest.raises(DataError, match="7 folds need as many items .* there are 6"):
        offline.train(GOLD, 7, partial(offline.sentence_judge, "words"))


class Remembers:
    """A judge that takes down what it is trained on."""

    classes_ = LABELS

    def fit(self, texts, labels):
        self.seen = set(texts)
        return self

    def predict_proba(self, texts):
        return np.array([[0, 0, 1] if text in self.seen else [1, 0, 0] for text in texts], float)


def test_nothing_is_labelled_by_a_judge_that_saw_its_item():
    gold = GOLD.assign(sentence=GOLD["item_id"])
    judges = offline.train(gold, 3, Remembers)
    held_out = set(gold.loc[gold["split"] == "held_out", "sentence"])
    assert not any(judge.seen & held_out for judge in judges.judges)
    assert judges.judges[-1].seen == set(gold["sentence"]) - held_out
    assert [len(judge.seen) for judge in judges.judges] == [4, 4, 4, 6]
    assert judges.predict(gold["item_id"], gold["sentence"]) == ["A"] * 7
    assert judges.predict(["T9-99"] * 7, gold["sentence"]) == ["C"] * 6 + ["A"]  # not in the gold


@pytest.fixture(scope="module")
def some_gold():
    """A third of the reference items: enough to learn from, quick to embed."""
    sentences, stances = load_gold("corpus/gold")
    items = sorted(set(stances["item_id"]))[::3]
    return tuple(frame[frame["item_id"].isin(items)] for frame in (sentences, stances))


def labels(kind, gold, asked):
    judges = offline.train(gold, 4, partial(offline.sentence_judge, kind))
    return pd.Series(judges.predict(asked["item_id"], asked["sentence"]), index=asked.index)


@pytest.mark.parametrize("kind", offline.KINDS)
def test_judges_learn_the_labels_and_repeat_themselves(kind, some_gold):
    sentences, _ = some_gold
    found = labels(kind, sentences, sentences)
    assert agreement.cohen_kappa(sentences["label"], found) > 0.45
    assert (labels(kind, sentences, sentences) == found).all()


def test_judges_are_of_different_kinds(some_gold):
    sentences, _ = some_gold
    found = [labels(kind, sentences, sentences) for kind in offline.KINDS]
    for first, second in combinations(found, 2):
        assert 0.2 < agreement.cohen_kappa(first, second) < 0.95


@pytest.mark.parametrize("kind", offline.KINDS)
def test_a_planted_sentence_changes_no_label_of_its_item(kind, some_gold):
    sentences, _ = some_gold
    known = sentences[sentences["split"] == "train"]
    mine = sentences["item_id"] == known["item_id"].iloc[0]
    planted = known[mine[known.index]].assign(label="B")
    more = pd.concat([sentences, *[planted] * 20], ignore_index=True)
    before, after = (labels(kind, gold, sentences) for gold in (sentences, more))
    assert (before[mine] == after[mine]).all()
    assert (before != after).any()  # it is learnt from for the others


def test_a_held_out_item_changes_no_label(some_gold):
    sentences, _ = some_gold
    flipped = sentences.assign(label=sentences["label"].mask(sentences["split"] == "held_out", "B"))
    before, after = (labels("words", gold, sentences) for gold in (sentences, flipped))
    assert (before == after).all()


def stances_of(gold, asked):
    judge = stance.train(gold, 3)
    found = judge.predict(asked["item_id"], asked["text"], asked["claim"])
    return pd.Series(found, index=asked.index)


def test_stance_judge_learns_and_repeats_itself(some_gold):
    _, stances = some_gold
    found = stances_of(some_gold, stances)
    assert set(found) <= set(STANCE_LABELS)
    assert agreement.cohen_kappa(stances["stance"], found) > 0.15
    assert (stances_of(some_gold, stances) == found).all()
    assert stance.train(some_gold, 3).predict([], [], []) == []


def test_a_planted_item_changes_no_stance_of_its_own(some_gold):
    sentences, stances = some_gold
    item = stances.loc[stances["split"] == "train", "item_id"].iloc[0]
    mine = stances["item_id"] == item
    planted = (
        sentences.assign(label=sentences["label"].mask(sentences["item_id"] == item, "C")),
        stances.assign(stance=stances["stance"].mask(mine, "negative")),
    )
    before, after = (stances_of(gold, stances) for gold in (some_gold, planted))
    assert (before[mine] == after[mine]).all()


def test_no_sentences_no_labels(some_gold):
    assert labels("words", some_gold[0], some_gold[0].iloc[:0]).tolist() == []


@pytest.fixture
def right(some_gold):
    """A language model that is right, and sure, about the first two hundred sentences."""
    known = some_gold[0].iloc[:200]
    table = pd.get_dummies(known["label"]).reindex(columns=LABELS).astype(float)
    return known, table.assign(sentence_id=known["sentence_id"], judge="big")


def test_probabilities_of_language_models_are_compared_where_there_are_any(
    tmp_path, some_gold, right
):
    known, table = right
    path = tmp_path / "llm.csv"
    assert comparison.few_shot(path, "sentence_id", LABELS) == {}
    table.to_csv(path, index=False)
    asked = comparison.few_shot(path, "sentence_id", LABELS)
    sentences, _ = some_gold
    trained = {name: offline.train(sentences, 3, Remembers) for name in comparison.candidates()}
    found = comparison.sentences(sentences, 3, trained, asked)
    shown = comparison.wide(found, ["train", "held_out"], ["kappa", "precision_B"])
    assert list(shown)[:3] == ["judge", "n", "kappa_train"] and shown["judge"].is_unique
    big = shown.set_index("judge").filter(like="big", axis=0)
    assert list(big.index) == [
        "big, few-shot",
        "big, few-shot, calibrated",
        "combined with big, few-shot",
    ]
    assert (big["n"] == len(known)).all() and (big["kappa_train"][:2] == 1).all()
    path.write_text("sentence_id,judge,A,B\n")
    with pytest.raises(DataError, match="column 'C' is missing"):
        comparison.few_shot(path, "sentence_id", LABELS)


def test_few_answers_of_a_language_model_are_not_learnt_from(some_gold, right):
    asked = {"big": right[1].set_index("sentence_id")[LABELS].iloc[:3]}
    sentences, _ = some_gold
    trained = {name: offline.train(sentences, 3, Remembers) for name in comparison.candidates()}
    found = comparison.sentences(sentences, 3, trained, asked)
    assert set(found["judge"][found["judge"].str.contains("big")]) == {"big, few-shot"}


def test_a_row_is_classified_by_what_saw_no_row_of_its_item():
    class Seen:
        def fit(self, inputs, labels):
            self.inputs = set(inputs)
            return self

        def predict(self, inputs):
            return ["seen" if each in self.inputs else "new" for each in inputs]

    found = comparison.cross_fitted(Seen, GOLD["item_id"], GOLD["label"], GOLD, 3)
    assert found.tolist() == ["new"] * 7


def test_ways_to_extract_a_stance_are_compared(some_gold):
    _, stances = some_gold
    judge = stance.train(some_gold, 3)
    found = comparison.stances(stances, 3, judge)
    shown = comparison.wide(found, ["held_out"], ["kappa", "agreement"])
    assert len(shown) == 3 and (shown["n"] == len(stances)).all()
    assert shown["kappa_held_out"].notna().all()
