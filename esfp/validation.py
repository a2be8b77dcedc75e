"""Offline judges held against the reference labels, and other kinds of judge beside them.

Every label compared was given by a judge that saw nothing of its item.
"""

from __future__ import annotations

from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline

from esfp import offline, stance
from esfp.agreement import against_reference
from esfp.files import DataError
from esfp.judge import panel, panel_label
from esfp.offline import LABELS, MIDDLE
from esfp.replies import STANCES

SHOWN = ["kappa", "precision_B", "recall_B"]


def parts(gold: pd.DataFrame) -> dict[str, pd.Series]:
    """Which rows of a reference table are in each part of it that judges are measured on.

    train and held_out (the split), recorded and written (what a model answered, what was composed).
    """
    recorded = gold["response_id"].str.startswith("recorded-")
    return {
        "train": gold["split"] == "train",
        "held_out": gold["split"] == "held_out",
        "recorded": recorded,
        "written": ~recorded,
    }


def passes(gold: pd.DataFrame, values: list[str]) -> pd.DataFrame:
    """Agreement of the second pass over the reference with the first; see `against`."""
    table = against(gold, "pass_1", gold["pass_2"], values)
    return table[["part", "n", "kappa", "agreement"]].set_index("part")


def against(
    gold: pd.DataFrame, reference: str, found: pd.Series, values: list[str]
) -> pd.DataFrame:
    """Agreement of one judge with the reference, over all of it and each of its `parts`.

    Parameters
    ----------
    reference
        The column of `gold` that is right.
    found
        The judge's, with the index of `gold`.

    Returns
    -------
    DataFrame
        part ('all' first; none that is empty), n, and the columns of `agreement.against_reference`.
    """
    rows = []
    for part, inside in ({"all": gold["split"].notna()} | parts(gold)).items():
        if inside.any():
            scores = against_reference(gold.loc[inside, reference], found[inside], values)
            rows.append({"part": part, "n": int(inside.sum())} | scores)
    return pd.DataFrame(rows)


def sentence_judges(
    judges: list[dict], rule: str, gold: pd.DataFrame, trained: dict[str, offline.CrossFitted]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Agreement of the offline judges and of their panel with the reference, out of sample.

    There is no row for the panel where a language model sits on it.

    Returns
    -------
    table : DataFrame
        judge, and the columns of `against`.
    found : DataFrame
        `gold` with the column `label_<judge>` of each offline judge and the panel's
        `label_panel`, each label given by a judge that saw no sentence of the same item.
    """
    found = gold.copy()
    for name, model in trained.items():
        found[f"label_{name}"] = model.predict(gold["item_id"], gold["sentence"])
    names = list(trained)
    if len(trained) == len(judges):
        found["label_panel"] = panel(found, judges, rule)
        names.append("panel")
    tables = [
        against(gold, "label", found[f"label_{name}"], LABELS).assign(judge=name) for name in names
    ]
    return pd.concat([pd.DataFrame({"judge": [], "part": []}), *tables]), found


def stance_judge(
    trained: stance.StanceJudge | None, gold: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Agreement of the offline stance judge with the reference, out of sample.

    Returns
    -------
    table : DataFrame
        See `against`; empty where a language model extracts stances.
    confusion : DataFrame
        Reference stances in rows, the judge's in columns, counts; empty likewise.
    """
    if trained is None:
        return pd.DataFrame(columns=["part"]), pd.DataFrame()
    found = pd.Series(
        trained.predict(gold["item_id"], gold["text"], gold["claim"]), index=gold.index
    )
    confusion = pd.crosstab(gold["stance"].rename("reference"), found.rename("judge"))
    confusion = confusion.reindex(index=STANCES, columns=STANCES, fill_value=0)
    return against(gold, "stance", found, STANCES), confusion


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
        judge, and the columns of `against` for all and for each part.
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
    columns = pd.MultiIndex.from_product([parts, SHOWN])
    return shown.reindex(index=table["judge"].unique(), columns=columns)
