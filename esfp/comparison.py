"""Kinds of offline sentence judge, compared on the same folds and the same held-out items."""

from __future__ import annotations

from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline

from esfp import offline
from esfp.files import DataError
from esfp.judge import against, panel_label
from esfp.offline import LABELS, MIDDLE

SHOWN = ["kappa", "precision_B", "recall_B"]


def candidates() -> dict[str, object]:
    """Ways to build an untrained judge, by name."""

    def pipeline(classifier, *parts):
        return make_pipeline(offline.side_by_side(*parts), classifier)

    linear, kernel = offline.linear, offline.kernel
    return {
        "last layer, logistic": lambda: pipeline(linear(), (offline.vectors(None), 0.1)),
        "last layer, kernel": lambda: pipeline(kernel(), (offline.vectors(None), 1)),
        "middle layer, kernel": lambda: pipeline(kernel(), (offline.vectors(MIDDLE), 1)),
        "cues, kernel": lambda: pipeline(kernel(), (offline.cues(), 1)),
        "words and cues, logistic": lambda: pipeline(
            linear(), (offline.words(), 1), (offline.cues(), 0.1)
        ),
    } | {kind: partial(offline.sentence_judge, kind) for kind in offline.KINDS}


def compare(
    gold: pd.DataFrame,
    folds: int,
    trained: dict[str, offline.CrossFitted] | None = None,
    recorded: str | Path | None = None,
) -> pd.DataFrame:
    """Agreement of each candidate with the reference, every label being out of sample.

    Parameters
    ----------
    gold
        Reference sentences.
    trained
        Candidates that are trained already, by name.
    recorded
        A CSV with sentence_id, judge, A, B, C: probabilities that language models gave some of
        the sentences, for a row each; left out where there is no such file.

    Returns
    -------
    DataFrame
        judge, and the columns of `judge.against` for all and for each part.
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
    tables = [
        against(gold, "label", each, LABELS).assign(judge=name) for name, each in labels.items()
    ]
    for name, rows in _recorded(recorded):
        known = gold[gold["sentence_id"].isin(rows.index)]
        given = offline.best(rows.loc[known["sentence_id"], LABELS].to_numpy(float))
        each = pd.Series(given, known.index)
        tables.append(against(known, "label", each, LABELS).assign(judge=name))
    return pd.concat(tables)


def _recorded(path: str | Path | None) -> list[tuple[str, pd.DataFrame]]:
    if path is None or not Path(path).is_file():
        return []
    table = pd.read_csv(path)
    missing = [name for name in ("sentence_id", "judge", *LABELS) if name not in table]
    if missing:
        raise DataError(f"{path}: column '{missing[0]}' is missing")
    return [(name, rows.set_index("sentence_id")) for name, rows in table.groupby("judge")]


def wide(table: pd.DataFrame, parts: list[str]) -> pd.DataFrame:
    """`compare` with a row a judge and, for each of `parts`, κ and precision and recall of B."""
    shown = table.pivot(index="judge", columns="part", values=SHOWN).swaplevel(axis=1)
    return shown.reindex(index=table["judge"].unique())[
        [(part, name) for part in parts for name in SHOWN]
    ]
