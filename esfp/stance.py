"""The offline stance judge: what a whole response says of its claim (Section 4.5 of the paper).

It reads what a response's sentences do, as a judge of sentences sees it, how those that are the
author's own are built, and how near they come to the claim and to its denial.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial
from itertools import combinations

import numpy as np
import pandas as pd
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from esfp.cues import count_cues
from esfp.encoder import encode, encode_layers
from esfp.gold import LABELS
from esfp.offline import MIDDLE, deal, fit, members, same_sums, scores, sentence_judge
from esfp.text import split_sentences

LAYERS = [MIDDLE, 5, None]  # how a sentence is built, what it means, and its topic
FRAMES = [
    ("I agree. {}", "I disagree. {}"),
    ("It is true that {}", "It is false that {}"),
    ("The claim that {} is right", "The claim that {} is wrong"),
]


@dataclasses.dataclass(frozen=True)
class Read:
    """Responses cut into sentences, and whatever of them does not depend on a trained judge."""

    owner: np.ndarray  # the response of each sentence
    sentences: list[str]
    cues: np.ndarray
    form: np.ndarray
    sense: np.ndarray
    near: np.ndarray  # cosine with the claim, by layer
    side: np.ndarray  # nearer to the claim affirmed than to the claim denied, by frame


def read(texts: Sequence[str], claims: Sequence[str]) -> Read:
    """Cut responses into sentences and measure these, each beside its response's claim."""
    cut = [split_sentences(text) or [text] for text in texts]
    owner = np.repeat(np.arange(len(cut)), [len(part) for part in cut])
    sentences = [sentence for part in cut for sentence in part]
    known = sorted(set(claims))
    place = np.array([known.index(claim) for claim in claims], int)[owner]

    def cosines(vectors: np.ndarray, others: np.ndarray) -> np.ndarray:
        return np.einsum("ij,ij->i", vectors, others[place])

    form, sense, whole = vectors = encode_layers(sentences, LAYERS)
    framed = [[frame.format(claim) for claim in known] for pair in FRAMES for frame in pair]
    sides = [cosines(whole, encode(each)) for each in framed]
    near = [cosines(*each) for each in zip(vectors, encode_layers(known, LAYERS), strict=True)]
    return Read(
        owner,
        sentences,
        count_cues(sentences),
        form,
        sense,
        np.stack(near, axis=1),
        np.stack(sides[::2], axis=1) - np.stack(sides[1::2], axis=1),
    )


def features(found: Read, judge: Pipeline) -> list[np.ndarray]:
    """Blocks of features, one row a response.

    Means over sentences are plain, or weigh each by the probability that it is the author's own
    stance, so that reported views count little.
    """
    labels = scores(judge, found.sentences)
    own = labels[:, LABELS.index("B")]
    count = np.bincount(found.owner)
    first = np.cumsum(count) - count
    last = first + count - 1

    def total(values: np.ndarray) -> np.ndarray:
        return np.add.reduceat(values, first, axis=0)

    def top(values: np.ndarray) -> np.ndarray:
        return np.maximum.reduceat(values, first, axis=0)

    def mean(values: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        weights = np.ones(len(values)) if weights is None else weights + 1e-9
        return total(values * weights[:, None]) / total(weights)[:, None]

    near, side, mine = found.near, found.side, own[:, None]
    shares = [mean(labels), top(labels), labels[first], labels[last], np.log1p(total(labels))]
    nearness = [mean(near), top(near), mean(near, own), top(near * mine), near[first]]
    sides = [mean(side), mean(side, own), top(side), top(-side), side[first], total(side * mine)]
    return [
        mean(found.form),
        mean(found.sense, own),
        found.form[first],
        mean(found.cues, own),
        np.hstack([*shares, np.log1p(count)[:, None]]),
        np.hstack(nearness),
        np.hstack(sides),
    ]


def _classifier(blocks: list[np.ndarray]) -> Pipeline:
    """A support vector machine to which each block counts as much as any other, however wide."""
    weights = np.concatenate([np.full(block.shape[1], block.shape[1] ** -0.5) for block in blocks])
    gaussian = partial(rbf_kernel, gamma=0.7 / len(blocks))
    machine = SVC(C=4, kernel=gaussian, class_weight="balanced", random_state=0)
    return make_pipeline(
        StandardScaler(),
        FunctionTransformer(lambda rows: rows * weights),
        OneVsRestClassifier(machine),
    )


@dataclasses.dataclass(frozen=True)
class StanceJudge:
    """One judge for the items learnt from in each fold, which it never saw, and one for the rest.

    Each is a judge of sentences and, on what that says, a classifier of responses.
    """

    judges: list[tuple[Pipeline, Pipeline]]  # of each fold, then the one trained on all
    fold: dict[str, int]

    def predict(
        self, items: Sequence[str], texts: Sequence[str], claims: Sequence[str]
    ) -> list[str]:
        """One of four stances for each response, given its item and the item's text."""
        table = pd.DataFrame({"text": [*texts], "claim": [*claims]}, dtype=object)
        places = np.array([self.fold.get(item, len(self.judges) - 1) for item in items], int)
        out = np.empty(len(table), object)
        for place in np.unique(places):
            sentences, responses = self.judges[place]
            rows = places == place
            found = read(table["text"][rows].tolist(), table["claim"][rows].tolist())
            with same_sums():
                out[rows] = responses.predict(np.hstack(features(found, sentences)))
        return [str(stance) for stance in out]


def train(gold: tuple[pd.DataFrame, pd.DataFrame], folds: int) -> StanceJudge:
    """Stance judges for every item, from the two tables of `gold.load_gold`.

    What a classifier learns from is as uncertain as what it will be given: the sentences of each
    response are labelled by a judge that saw neither its fold nor the one the classifier is for.
    """
    sentences, stances = gold
    stances = stances[stances["split"] == "train"]
    fold = deal(sentences, folds)
    place = stances["item_id"].map(fold).to_numpy()
    every = range(folds)
    sets = [(), *combinations(every, 1), *combinations(every, 2)]
    judges = {
        frozenset(left_out): fit(
            sentence_judge("words"), sentences, [i for k in left_out for i in members(fold, k)]
        )
        for left_out in sets
    }
    parts = {
        k: read(stances["text"][place == k].tolist(), stances["claim"][place == k].tolist())
        for k in every
    }
    out = []
    for number in [*every, None]:
        used = [k for k in every if k != number]
        mine = [] if number is None else [number]
        blocks = [features(parts[k], judges[frozenset([k, *mine])]) for k in used]
        rows = np.vstack([np.hstack(block) for block in blocks])
        known = np.concatenate([stances["stance"][place == k].to_numpy(object) for k in used])
        with same_sums():
            classifier = _classifier(blocks[0]).fit(rows, known)
        out.append((judges[frozenset(mine)], classifier))
    return StanceJudge(out, fold)
