"""Ways to build an offline judge, each measured as the judges in use are: out of sample.

Language models that were asked by `make fewshot` have rows beside them: as they answered, and with
their probabilities as features of a small classifier that learns from the same folds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from esfp import files, offline, stance
from esfp.gold import LABELS
from esfp.judge import panel_label
from esfp.offline import MIDDLE
from esfp.replies import STANCES
from esfp.validation import against

FEW_SHOT = {"sentences": "llm_probabilities.csv", "stances": "llm_stance_probabilities.csv"}
SHOWN = ["kappa", "precision_B", "recall_B"]


def pipeline(classifier, *parts: tuple[object, float]) -> Pipeline:
    """An untrained judge: features of several kinds with their weights, and a classifier."""
    return make_pipeline(offline.side_by_side(*parts), classifier)


def candidates() -> dict[str, Callable]:
    """Builders of untrained judges of sentences, by name."""
    linear, kernel = offline.linear, offline.kernel
    return {
        "last layer, logistic": lambda: pipeline(linear(), (offline.vectors(), 0.1)),
        "last layer, kernel": lambda: pipeline(kernel(), (offline.vectors(), 1)),
        "middle layer, kernel": lambda: pipeline(kernel(), (offline.vectors(MIDDLE), 1)),
        "cues, kernel": lambda: pipeline(kernel(), (offline.cues(), 1)),
        "words and cues, logistic": lambda: pipeline(
            linear(), (offline.words(), 1), (offline.cues(), 0.1)
        ),
    } | {kind: partial(offline.sentence_judge, kind) for kind in offline.KINDS}


def few_shot(path: str | Path, key: str, labels: list[str]) -> dict[str, pd.DataFrame]:
    """Probabilities that language models gave, by model; none where there is no such file.

    Parameters
    ----------
    key
        The column that names a row of the reference.

    Returns
    -------
    dict
        model → a row a reference row, indexed by `key`, with a column a label.

    Raises
    ------
    DataError
        If a column is missing.
    """
    if not Path(path).is_file():
        return {}
    table = pd.read_csv(path, dtype={key: str, "judge": str})
    missing = [name for name in (key, "judge", *labels) if name not in table]
    if missing:
        raise files.DataError(
            f"{path}: column '{missing[0]}' is missing; make fewshot writes the file"
        )
    return {name: rows.set_index(key)[labels] for name, rows in table.groupby("judge")}


def looked_up(probabilities: pd.DataFrame) -> Pipeline:
    """Standardized log-probabilities of rows that are named by the table's index."""
    logs = np.log(probabilities.clip(1e-6))
    return make_pipeline(FunctionTransformer(lambda names: logs.loc[list(names)]), StandardScaler())


def cross_fitted(
    build: Callable, inputs: pd.Series, labels: pd.Series, gold: pd.DataFrame, folds: int
) -> pd.Series:
    """A classifier's label of each row, from one that learnt from no row of the same item.

    Parameters
    ----------
    build
        Returns a new untrained classifier of `inputs`.
    inputs, labels
        With the index of `gold`, whose `item_id` and `split` say who may learn from what.
    """
    fold = offline.deal(gold, folds)
    place = gold["item_id"].map(fold).fillna(-1)  # -1: held out, nobody learns from it
    found = pd.Series(index=gold.index, dtype=object)
    for number in sorted(place.unique()):
        mine = place == number
        known = (place != -1) & ~mine
        with offline.same_sums():
            model = build().fit(inputs[known].tolist(), labels[known].to_numpy(object))
            found[mine] = model.predict(inputs[mine].tolist())
    return found


def _asked(
    named: dict[str, pd.DataFrame], gold: pd.DataFrame, key: str, label: str, folds: int
) -> dict[str, pd.Series]:
    """The labels of language models by name: their own, and those of a classifier on them."""
    found = {}
    for name, probabilities in named.items():
        known = gold[gold[key].isin(probabilities.index)]
        own = probabilities.loc[known[key]]
        own = pd.Series(own.columns[own.to_numpy().argmax(axis=1)], known.index, dtype=object)
        found[f"{name}, few-shot"] = own
        if known.loc[known["split"] == "train", "item_id"].nunique() >= folds:
            found[f"{name}, few-shot, calibrated"] = cross_fitted(
                partial(_calibrated, probabilities), known[key], known[label], known, folds
            )
    return found


def _calibrated(probabilities: pd.DataFrame) -> Pipeline:
    return pipeline(offline.linear(), (looked_up(probabilities), 1))


def _joined(probabilities: pd.DataFrame) -> Pipeline:
    parts = (*offline.combined_parts(), (looked_up(probabilities), 0.1))
    return pipeline(offline.linear(), *parts)


def sentences(
    gold: pd.DataFrame,
    folds: int,
    trained: dict[str, offline.CrossFitted] | None = None,
    asked: dict[str, pd.DataFrame] | None = None,
) -> pd.DataFrame:
    """Agreement of each candidate with the reference sentences, every label out of sample.

    Parameters
    ----------
    trained
        Candidates that are trained already, by name.
    asked
        From `few_shot`. Its models have rows over the sentences that they labelled.

    Returns
    -------
    DataFrame
        judge, and the columns of `validation.against` for all and for each part.
    """
    found = {}
    for name, build in candidates().items():
        model = (trained or {}).get(name) or offline.train(gold, folds, build)
        found[name] = model.scores(gold["item_id"], gold["sentence"])
    labels = {name: pd.Series(offline.best(each), gold.index) for name, each in found.items()}
    for pair in combinations(offline.KINDS, 2):
        averaged = np.mean([found[kind] for kind in pair], axis=0)
        labels[f"{' and '.join(pair)}, averaged"] = pd.Series(offline.best(averaged), gold.index)
        both = zip(*(labels[kind] for kind in pair), strict=True)
        labels[f"{' and '.join(pair)}, unanimous"] = pd.Series(
            [panel_label(list(each)) for each in both], gold.index
        )
    asked = asked or {}
    labels |= _asked(asked, gold, "sentence_id", "label", folds)
    for name, probabilities in asked.items():
        known = gold[gold["sentence_id"].isin(probabilities.index)]
        if f"{name}, few-shot, calibrated" in labels:
            by_text = probabilities.loc[known["sentence_id"]].set_index(known["sentence"])
            by_text = by_text[~by_text.index.duplicated()]
            joined = offline.train(known, folds, partial(_joined, by_text))
            labels[f"combined with {name}, few-shot"] = pd.Series(
                joined.predict(known["item_id"], known["sentence"]), known.index
            )
    return _measured(labels, gold, "label", LABELS)


def stances(
    gold: pd.DataFrame,
    folds: int,
    trained: stance.StanceJudge,
    asked: dict[str, pd.DataFrame] | None = None,
) -> pd.DataFrame:
    """Agreement of each way to extract a stance with the reference; see `sentences`."""
    ways = {
        "words, logistic": lambda: make_pipeline(offline.words(), offline.linear()),
        "last layer, kernel": lambda: make_pipeline(offline.vectors(), offline.kernel()),
    }
    labels = {
        name: cross_fitted(build, gold["text"], gold["stance"], gold, folds)
        for name, build in ways.items()
    }
    labels["sentences and nearness to the claim, kernel"] = pd.Series(
        trained.predict(gold["item_id"], gold["text"], gold["claim"]), gold.index
    )
    labels |= _asked(asked or {}, gold, "response_id", "stance", folds)
    return _measured(labels, gold, "stance", STANCES)


def _measured(
    labels: dict[str, pd.Series], gold: pd.DataFrame, column: str, values: list[str]
) -> pd.DataFrame:
    return pd.concat(
        [
            against(gold.loc[each.index], column, each, values).assign(judge=name)
            for name, each in labels.items()
        ]
    )


def wide(table: pd.DataFrame, parts: list[str], shown: list[str]) -> pd.DataFrame:
    """A row a judge: how many rows it labelled, and `shown` for each of `parts`, `<shown>_<part>`.

    Parameters
    ----------
    table
        From `sentences` or `stances`.
    """
    columns = [f"{what}_{part}" for part in parts for what in shown]
    out = table.pivot(index="judge", columns="part", values=["n", *shown])
    out.columns = [f"{what}_{part}" for what, part in out.columns]
    out = out.reindex(index=table["judge"].unique(), columns=["n_all", *columns])
    return out.astype({"n_all": int}).rename(columns={"n_all": "n"}).reset_index()


def write(run_dir: str | Path, kind: str, table: pd.DataFrame | None) -> None:
    """Write `<kind>_comparison.csv` of a run; None removes one that an earlier state left."""
    path = Path(run_dir, f"{kind}_comparison.csv")
    if table is None:
        path.unlink(missing_ok=True)
    else:
        files.write_csv(path, table)
