"""Offline judges: small models trained on the reference labels, for runs without an endpoint.

Two sentence judges of different kinds stand in for the paper's panel (Section 4.4), one reading
meaning through sentence embeddings and one reading words and cues; a third model extracts the
stance of a response (Section 4.5). They are trained anew in every run, in seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from esfp.cues import count_cues
from esfp.encoder import encode
from esfp.files import DataError
from esfp.replies import STANCES
from esfp.text import split_sentences

LABELS = ["A", "B", "C"]
KINDS = ["embedding", "words"]

Texts = list[str]
Pairs = list[tuple[str, str]]  # a response and the claim it is about


def load_gold(folder: str | Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Reference labels: of sentences (A, B, C), and of whole responses (four stances).

    Parameters
    ----------
    folder
        Holds sentences.csv and stances.csv; items.csv stands in the folder above.

    Returns
    -------
    sentences : DataFrame
        sentence_id, response_id, item_id, type, phrasing, voice, sentence, label.
    stances : DataFrame
        response_id, item_id, type, phrasing, voice, text, stance, and the item's `claim`.

    Raises
    ------
    DataError
        If a file or a column is missing, or a label is unknown; the text names file and row.
    """
    shared = ["response_id", "item_id", "type", "phrasing", "voice"]
    sentences = _read(Path(folder, "sentences.csv"), ["sentence_id", *shared, "sentence", "label"])
    stances = _read(Path(folder, "stances.csv"), [*shared, "text", "stance"])
    _check(Path(folder, "sentences.csv"), sentences["label"], LABELS)
    _check(Path(folder, "stances.csv"), stances["stance"], STANCES)
    items = _read(Path(folder).parent / "items.csv", ["item_id", "text"])
    claims = stances["item_id"].map(items.set_index("item_id")["text"])
    if claims.isna().any():
        row = int(np.flatnonzero(claims.isna())[0])
        raise DataError(
            f"{Path(folder, 'stances.csv')}, row {row + 2}: no item "
            f"'{stances['item_id'][row]}' in {Path(folder).parent / 'items.csv'}"
        )
    return sentences, stances.assign(claim=claims)


def _read(path: Path, columns: list[str]) -> pd.DataFrame:
    if not path.is_file():
        raise DataError(f"{path}: not there; offline judges are trained on it")
    frame = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8")
    missing = [column for column in columns if column not in frame]
    if missing:
        raise DataError(f"{path}: column '{missing[0]}' is missing")
    return frame[columns]


def _check(path: Path, labels: pd.Series, known: list[str]) -> None:
    wrong = np.flatnonzero(~labels.isin(known))
    if len(wrong):
        row = int(wrong[0])
        raise DataError(
            f"{path}, row {row + 2}: label '{labels.iloc[row]}' is none of {', '.join(known)}"
        )


def _word_counts() -> TfidfVectorizer:
    word = r"\b\w+\b|[?!:]"  # one-letter words too: "I" is the point
    return TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2, token_pattern=word)


def sentence_judge(kind: str) -> Pipeline:
    """An untrained judge of sentences: texts in, labels A, B, C out.

    'embedding': logistic regression on all-MiniLM-L6-v2 vectors. 'words': a linear classifier on
    words, pairs of words, character n-grams and the hand-made cues. Labels weigh equally in
    training, however rare.
    """
    if kind == "embedding":
        return make_pipeline(
            FunctionTransformer(encode),
            LogisticRegression(class_weight="balanced", max_iter=1000),
        )
    if kind == "words":
        features = make_union(
            _word_counts(),
            TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True, min_df=2),
            make_pipeline(FunctionTransformer(count_cues), StandardScaler()),
        )
        features.set_params(transformer_weights={"pipeline": 0.1})  # else few cues drown the words
        return make_pipeline(
            features, LinearSVC(C=0.1, class_weight="balanced", random_state=0, max_iter=5000)
        )
    raise ValueError(f"unknown kind of offline judge '{kind}'; choose one of {KINDS}")


class StanceJudge:
    """The stance of a response towards a claim: logistic regression on what its sentences do.

    Each sentence is weighed by the probability that it is the author's own stance (label B), as
    the embedding judge of sentences sees it, so that reported views count little. That judge is
    trained inside this one: for the responses learnt from, on sentences of other items only.
    """

    def fit(self, stances: pd.DataFrame, sentences: pd.DataFrame, folds: int = 5) -> StanceJudge:
        """Train on the two tables of `load_gold`."""
        pairs = _pairs(stances)
        features = np.empty((len(pairs), 0))
        for _, test in _folds(stances["item_id"], folds):
            held_out = sentences["item_id"].isin(stances["item_id"].iloc[test])
            judge = _trained(sentence_judge("embedding"), sentences[~held_out])
            part = _stance_features([pairs[i] for i in test], judge)
            if not features.size:
                features = np.empty((len(pairs), part.shape[1]))
            features[test] = part
        self.sentences = _trained(sentence_judge("embedding"), sentences)
        model = LogisticRegression(C=0.01, class_weight="balanced", max_iter=1000)
        with threadpool_limits(1):
            self.model = make_pipeline(StandardScaler(), model)
            self.model.fit(features, _array(stances["stance"]))
        return self

    def predict(self, pairs: Pairs) -> list[str]:
        """One of four stances for each (response, claim)."""
        if not pairs:
            return []
        return [
            str(stance) for stance in self.model.predict(_stance_features(pairs, self.sentences))
        ]


def _stance_features(pairs: Pairs, judge: Pipeline) -> np.ndarray:
    """One row a response: its labels, the cues of its own views, how near they are to the claim.

    Shape (len(pairs), 12 + 4 cues + 3).
    """
    split = [split_sentences(response) or [response] for response, _ in pairs]
    owner = np.repeat(np.arange(len(pairs)), [len(part) for part in split])
    flat = [sentence for part in split for sentence in part]
    vectors, cues = encode(flat), count_cues(flat)
    claims = encode([claim for _, claim in pairs])
    claim_cues = count_cues([claim for _, claim in pairs])
    with threadpool_limits(1):
        labels = judge.predict_proba(flat)
    own = labels[:, LABELS.index("B")]
    near = np.einsum("ij,ij->i", vectors, claims[owner])
    rows = []
    for i in range(len(pairs)):
        mine = owner == i
        views = own[mine] @ cues[mine]
        rows.append(
            np.concatenate(
                [
                    labels[mine].mean(0), labels[mine].max(0), labels[mine][0], labels[mine][-1],
                    views, claim_cues[i],
                    [near[mine].mean(), near[mine].max(), (near * own)[mine].max()],
                ]
            )
        )  # fmt: skip
    return np.array(rows)


def _array(labels: Sequence[str]) -> np.ndarray:
    return np.array(list(labels), object)


def _trained(judge: Pipeline, sentences: pd.DataFrame) -> Pipeline:
    with threadpool_limits(1):
        return judge.fit(sentences["sentence"].tolist(), _array(sentences["label"]))


def _folds(groups: Sequence[str], folds: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """(train, test) positions, no group on both sides."""
    if len(set(groups)) < folds:
        raise DataError(
            f"judge.folds: {folds} folds need as many items with reference labels, and there are "
            f"{len(set(groups))}"
        )
    return list(GroupKFold(folds).split(groups, groups=_array(groups)))


def cross_validate(kind: str, sentences: pd.DataFrame, folds: int) -> pd.Series:
    """The label of each reference sentence by a judge that saw no sentence of its item.

    Raises
    ------
    DataError
        If there are fewer items than folds.
    """
    found = pd.Series(index=sentences.index, dtype=object)
    for train, test in _folds(sentences["item_id"], folds):
        judge = _trained(sentence_judge(kind), sentences.iloc[train])
        found.iloc[test] = judge.predict(sentences["sentence"].iloc[test].tolist())
    return found.astype(str)


def cross_validate_stance(stances: pd.DataFrame, sentences: pd.DataFrame, folds: int) -> pd.Series:
    """The stance of each reference response by a judge that saw nothing of its item."""
    found = pd.Series(index=stances.index, dtype=object)
    for train, test in _folds(stances["item_id"], folds):
        known = sentences[~sentences["item_id"].isin(stances["item_id"].iloc[test])]
        judge = StanceJudge().fit(stances.iloc[train], known)
        found.iloc[test] = judge.predict(_pairs(stances.iloc[test]))
    return found.astype(str)


def train(kind: str, sentences: pd.DataFrame) -> Pipeline:
    """A judge of sentences trained on all reference sentences."""
    return _trained(sentence_judge(kind), sentences)


def _pairs(stances: pd.DataFrame) -> Pairs:
    return list(zip(stances["text"], stances["claim"], strict=True))


def predict(judge: Pipeline, sentences: Texts) -> Texts:
    """The judge's label of each sentence."""
    if not sentences:
        return []
    with threadpool_limits(1):
        return [str(label) for label in judge.predict(sentences)]
