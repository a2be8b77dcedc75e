"""Offline judges held against the reference labels.

Every label compared was given by a judge that saw nothing of its item.
"""

from __future__ import annotations

import pandas as pd

from esfp import offline, stance
from esfp.agreement import against_reference
from esfp.gold import LABELS
from esfp.judge import panel
from esfp.replies import STANCES


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
