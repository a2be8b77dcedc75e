"""The reference labels: every row is usable, and they cover what the judges have to handle."""

from pathlib import Path

import pandas as pd
import pytest

from esfp import corpus
from esfp.text import MIN_CHARACTERS, split_sentences

ROOT = Path(__file__).resolve().parents[1] / "corpus"
GOLD = ROOT / "gold"
RESPONSE = ["response_id", "item_id", "type", "phrasing", "voice", "split"]
PASSES = ["pass_1", "pass_2"]
TYPES = {"T1", "T2", "T3", "T4", "T5", "T6"}
PHRASINGS = {"P0", "P1", "P2", "P3", "P4"}
WRITTEN_VOICES = {
    "small_chat",
    "hedged",
    "committed",
    "encyclopedic",
    "list_like",
    "refusing",
    "disclaiming",
    "reasoning_style",
}


def read(name: str) -> pd.DataFrame:
    return pd.read_csv(GOLD / name, keep_default_na=False, dtype=str, encoding="utf-8")


@pytest.fixture(scope="module")
def sentences() -> pd.DataFrame:
    return read("sentences.csv")


@pytest.fixture(scope="module")
def stances() -> pd.DataFrame:
    return read("stances.csv")


def test_columns(sentences: pd.DataFrame, stances: pd.DataFrame) -> None:
    assert list(sentences) == ["sentence_id", *RESPONSE, "sentence", *PASSES, "label"]
    assert list(stances) == [*RESPONSE, "text", *PASSES, "stance"]
    assert (sentences != "").all(axis=None)
    assert (stances != "").all(axis=None)


@pytest.mark.parametrize("name", ["sentences.csv", "stances.csv"])
def test_files_are_utf8_with_unix_line_ends(name: str) -> None:
    raw = (GOLD / name).read_bytes()
    raw.decode("utf-8")
    assert b"\r" not in raw
    assert raw.endswith(b"\n")


def test_labels_are_those_of_the_prompts(sentences: pd.DataFrame, stances: pd.DataFrame) -> None:
    for column in (*PASSES, "label"):
        assert set(sentences[column]) == {"A", "B", "C"}
    for column in (*PASSES, "stance"):
        assert set(stances[column]) == {"positive", "negative", "neutral", "no_stance"}


def test_where_the_passes_agree_that_is_the_label(
    sentences: pd.DataFrame, stances: pd.DataFrame
) -> None:
    for table, column in ((sentences, "label"), (stances, "stance")):
        agreed = table[table["pass_1"] == table["pass_2"]]
        assert (agreed[column] == agreed["pass_1"]).all()
        disputed = table[table["pass_1"] != table["pass_2"]]
        assert 0 < len(disputed) < 0.15 * len(table)


def test_a_fifth_of_the_items_is_held_out(sentences: pd.DataFrame, stances: pd.DataFrame) -> None:
    items = corpus.load(ROOT / "items.csv")
    for table in (sentences, stances):
        split = table.groupby("item_id")["split"].agg(set)
        assert set(map(frozenset, split)) == {frozenset({"train"}), frozenset({"held_out"})}
    held_out = items["item_id"].isin(stances.loc[stances["split"] == "held_out", "item_id"])
    shares = held_out.groupby(items["type"]).mean()
    assert shares.between(0.15, 0.25).all() and set(shares.index) == TYPES


def test_ids_are_unique(sentences: pd.DataFrame, stances: pd.DataFrame) -> None:
    assert stances["response_id"].is_unique
    assert sentences["sentence_id"].is_unique


def test_items_and_phrasings_exist(stances: pd.DataFrame) -> None:
    items = corpus.load(ROOT / "items.csv").set_index("item_id")["type"]
    assert set(stances["item_id"]) <= set(items.index)
    assert (stances["item_id"].map(items) == stances["type"]).all()
    assert set(stances["phrasing"]) == PHRASINGS


def test_both_files_describe_the_same_responses(
    sentences: pd.DataFrame, stances: pd.DataFrame
) -> None:
    left = sentences[RESPONSE].drop_duplicates().reset_index(drop=True)
    cut = [len(split_sentences(text)) > 0 for text in stances["text"]]  # not so of bare numbers
    pd.testing.assert_frame_equal(left, stances.loc[cut, RESPONSE].reset_index(drop=True))


def test_every_sentence_of_a_response_is_labelled_once(
    sentences: pd.DataFrame, stances: pd.DataFrame
) -> None:
    """A sentence's id is its response's id and its place; a repeated one stands at its first."""
    labelled = {
        name: dict(zip(rows["sentence_id"], rows["sentence"], strict=True))
        for name, rows in sentences.groupby("response_id")
    }
    for row in stances.itertuples():
        first: dict[str, str] = {}  # none in an answer of nothing but numbers
        for place, sentence in enumerate(split_sentences(row.text), start=1):
            first.setdefault(sentence, f"{row.response_id}-{place:02d}")
        assert labelled.get(row.response_id, {}) == {k: s for s, k in first.items()}


def test_no_sentence_is_a_fragment(sentences: pd.DataFrame) -> None:
    assert sentences["sentence"].str.len().min() >= MIN_CHARACTERS


def test_nothing_written_is_repeated(sentences: pd.DataFrame, stances: pd.DataFrame) -> None:
    """A model may repeat itself; what was composed for this corpus may not."""
    written = sentences[sentences["response_id"].str.startswith("written-")]
    assert not written["sentence"].str.lower().duplicated().any()
    assert not stances["text"].duplicated().any()


def test_equal_sentences_have_equal_labels(sentences: pd.DataFrame) -> None:
    assert (sentences.groupby("sentence")["label"].nunique() == 1).all()


def test_there_are_enough_of_every_kind(sentences: pd.DataFrame, stances: pd.DataFrame) -> None:
    assert len(sentences) >= 420
    assert len(stances) >= 200
    for column, values in [("type", TYPES), ("phrasing", PHRASINGS)]:
        assert set(sentences[column]) == values
        counts = stances[column].value_counts()
        assert counts.max() <= 2.5 * counts.min()
        assert set(sentences.groupby(column)["label"].nunique()) == {3}
    cells = stances.groupby(["type", "phrasing"]).size()
    assert len(cells) == 30
    assert cells.min() >= 5
    assert sentences["label"].value_counts(normalize=True).min() >= 0.10
    assert stances["stance"].value_counts(normalize=True).min() >= 0.10
    assert WRITTEN_VOICES < set(stances["voice"])
    assert stances["voice"].value_counts().min() >= 8


def test_real_answers_are_among_them(sentences: pd.DataFrame, stances: pd.DataFrame) -> None:
    recorded = stances[stances["response_id"].str.startswith("recorded-")]
    assert set(recorded["voice"]) == set(stances["voice"]) - WRITTEN_VOICES
    cells = recorded.groupby(["type", "phrasing"]).size()
    assert len(cells) == 30
    assert cells.min() >= 2
    assert sentences["response_id"].isin(recorded["response_id"]).sum() >= 200


def test_the_phrasing_moves_the_labels(sentences: pd.DataFrame) -> None:
    share = sentences["label"].eq("B").groupby(sentences["phrasing"]).mean()
    assert share[["P2", "P4"]].min() > share[["P1", "P3"]].max()


def test_no_first_person_word_decides_the_label(sentences: pd.DataFrame) -> None:
    """All three labels occur with a first-person word, and most of B without a lexicon phrase."""
    first_person = corpus.load_lexicons(ROOT / "lexicons.yaml")["first_person"]
    has_pronoun = sentences["sentence"].str.contains(r"\b(?:I|my|me)\b", regex=True)
    assert set(sentences.loc[has_pronoun, "label"]) == {"A", "B", "C"}
    stance = sentences.loc[sentences["label"].eq("B"), "sentence"].str.lower()
    marked = stance.map(lambda text: any(phrase.lower() in text for phrase in first_person))
    assert marked.mean() < 0.5


def test_the_manual_says_who_labelled() -> None:
    manual = (GOLD / "GUIDELINES.md").read_text(encoding="utf-8")
    assert "model-written reference labels" in manual
    assert "No person has labelled them" in manual
