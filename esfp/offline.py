"""Offline judges: small models trained on the reference labels, for runs without an endpoint.

Sentence judges of different kinds stand in for the paper's panel (Section 4.4), reading a
sentence's form through the middle layer of a sentence encoder, its words and frames, or both;
esfp.stance extracts the stance of a response (Section 4.5). They are trained anew in
every run, in seconds, and label no item that they have learnt from.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd
from scipy.special import softmax
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from esfp.cues import count_cues, frames
from esfp.encoder import encode
from esfp.files import DataError
from esfp.gold import LABELS

KINDS = ["embedding", "words", "combined"]

MIDDLE = 3  # of MiniLM's six


def vectors(layers: int | None = None) -> Pipeline:
    """Standardized all-MiniLM-L6-v2 vectors of texts, from its first `layers` layers or all."""
    return make_pipeline(FunctionTransformer(encode, kw_args={"layers": layers}), StandardScaler())


def cues() -> Pipeline:
    """Standardized counts of the hand-made cues."""
    return make_pipeline(FunctionTransformer(count_cues), StandardScaler())


def words() -> TfidfVectorizer:
    """Words and pairs of words, one-letter words too: 'I' is the point."""
    return _counted(ngram_range=(1, 2), token_pattern=r"\b\w+\b|[?!:]")  # noqa: S106 (no password)


def frame_counts() -> TfidfVectorizer:
    """Runs of one to four tokens of a sentence's frame; see `cues.frames`."""
    return _counted(analyzer=frames)


def _counted(**how) -> TfidfVectorizer:
    return TfidfVectorizer(sublinear_tf=True, min_df=2, **how)


def linear() -> LogisticRegression:
    """Labels weigh equally, however rare."""
    return LogisticRegression(class_weight="balanced", max_iter=1000)


def gaussian(rows: np.ndarray, learnt: np.ndarray) -> np.ndarray:
    """Gaussian kernel of rows with those learnt from; its width follows the latter's variance.

    That is scikit-learn's own 'scale', but as one matrix product: libsvm takes a pair at a time.
    """
    return rbf_kernel(rows, learnt, gamma=1 / (learnt.shape[1] * learnt.var()))


def kernel() -> OneVsRestClassifier:
    """A Gaussian kernel and one border a label; labels weigh equally, however rare."""
    return OneVsRestClassifier(SVC(C=2, kernel=gaussian, class_weight="balanced", random_state=0))


def side_by_side(*parts: tuple[object, float]) -> FeatureUnion:
    """Features of several kinds, each kind times its weight."""
    union = make_union(*(part for part, _ in parts))
    names = [name for name, _ in union.transformer_list]
    weights = [weight for _, weight in parts]
    return union.set_params(transformer_weights=dict(zip(names, weights, strict=True)))


def counted_parts() -> tuple[tuple[object, float], ...]:
    """Words, frames and cues, with their weights."""
    return (words(), 1), (frame_counts(), 1), (cues(), 0.1)


def combined_parts() -> tuple[tuple[object, float], ...]:
    """What the judge 'combined' reads: the vectors of the middle layer, and what is counted."""
    return (vectors(MIDDLE), 0.05), *counted_parts()


def sentence_judge(kind: str) -> Pipeline:
    """An untrained judge of sentences: texts in, labels A, B, C out.

    'embedding': a support vector machine with a Gaussian kernel on vectors from the third of six
    layers of all-MiniLM-L6-v2 and on the hand-made cues. 'words': logistic regression on words,
    pairs of words, frames and the cues. 'combined': logistic regression on all of these. The
    weights keep a few dozen cues from being drowned by 384 components, and either from drowning
    the words.
    """
    if kind == "embedding":
        return make_pipeline(side_by_side((vectors(MIDDLE), 1), (cues(), 2)), kernel())
    if kind == "words":
        return make_pipeline(side_by_side(*counted_parts()), linear())
    if kind == "combined":
        return make_pipeline(side_by_side(*combined_parts()), linear())
    raise ValueError(f"unknown kind of offline judge '{kind}'; choose one of {KINDS}")


def fit(judge: Pipeline, gold: pd.DataFrame, without: Collection[str] = ()) -> Pipeline:
    """Train a judge on the reference sentences of split train, those of some items left out."""
    known = gold[(gold["split"] == "train") & ~gold["item_id"].isin(without)]
    with same_sums():
        return judge.fit(known["sentence"].tolist(), known["label"].to_numpy(object))


def scores(judge: Pipeline, texts: list[str]) -> np.ndarray:
    """How probable each label is to a trained judge, shape (len(texts), 3), rows summing to 1.

    Where the judge is a support vector machine, these are its distances from the three borders,
    doubled, through a softmax.
    """
    out = np.zeros((len(texts), len(LABELS)))
    if texts:
        with same_sums():
            if hasattr(judge, "predict_proba"):
                found = judge.predict_proba(texts)
            else:
                found = softmax(2 * judge.decision_function(texts), axis=1)
        out[:, [LABELS.index(label) for label in judge.classes_]] = found
    return out


def same_sums():
    """One thread in BLAS: the order of its sums, and so a label on the edge, stays the same."""
    return threadpool_limits(1, user_api="blas")


def deal(gold: pd.DataFrame, folds: int) -> dict[str, int]:
    """The fold of each item of split train: its place in sorted order, modulo `folds`.

    It depends on the items alone, so that no label can move an item. Item ids begin with the
    type, hence each fold has its share of each type.

    Raises
    ------
    DataError
        If there are fewer items than folds.
    """
    items = sorted(set(gold.loc[gold["split"] == "train", "item_id"]))
    if len(items) < folds:
        raise DataError(
            f"judge.folds: {folds} folds need as many items with reference labels to learn from, "
            f"and there are {len(items)}"
        )
    return {item: place % folds for place, item in enumerate(items)}


def members(fold: dict[str, int], number: int) -> list[str]:
    """The items of one fold."""
    return [item for item, its in fold.items() if its == number]


@dataclasses.dataclass(frozen=True)
class CrossFitted:
    """One judge for the items learnt from in each fold, which it never saw, and one for the rest.

    So whatever it labels is out of sample, the reference sentences included: those of an item
    learnt from by cross-validation, those of a held-out item because nothing saw them.
    """

    judges: list[Pipeline]  # of each fold, trained on the others; then the one trained on all
    fold: dict[str, int]

    def scores(self, items: Sequence[str], texts: Sequence[str]) -> np.ndarray:
        """Probabilities of the labels, shape (len(texts), 3), each text being on its item."""
        places = np.array([self.fold.get(item, len(self.judges) - 1) for item in items], int)
        texts = np.array([*texts, None], object)[:-1]
        out = np.empty((len(texts), len(LABELS)))
        for place in np.unique(places):
            rows = np.flatnonzero(places == place)
            out[rows] = scores(self.judges[place], texts[rows].tolist())
        return out

    def predict(self, items: Sequence[str], texts: Sequence[str]) -> list[str]:
        """The likeliest label of each text."""
        return best(self.scores(items, texts))


def best(probabilities: np.ndarray) -> list[str]:
    """The likeliest label of each row, B only where it is as likely as A and C together.

    The judge prompt asks for that caution: B only where the author's view is in the foreground.
    """
    doubtful = probabilities.copy()
    doubtful[probabilities[:, 1] < 0.5, 1] = -1
    return [LABELS[place] for place in doubtful.argmax(axis=1)]


def train(gold: pd.DataFrame, folds: int, build) -> CrossFitted:
    """Judges of one kind for every item.

    Parameters
    ----------
    gold
        Reference sentences, from `load_gold`.
    build
        Returns a new untrained judge.
    """
    fold = deal(gold, folds)
    parts = [fit(build(), gold, members(fold, number)) for number in range(folds)]
    return CrossFitted([*parts, fit(build(), gold)], fold)
