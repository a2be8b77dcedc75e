"""The judge stage: split responses, label every sentence by a panel, extract stances.

Sections 4.4 and 4.5 and Appendix A of the paper. Judges are offline models (esfp.offline) or
language models asked through an endpoint (esfp.llm_judges).
"""

from __future__ import annotations

import time
from collections.abc import Collection
from functools import partial
from pathlib import Path

import pandas as pd

from esfp import files, llm_judges, offline, stance, tally
from esfp.agreement import shares
from esfp.gold import LABELS
from esfp.replies import STANCES
from esfp.replies import parse_labels as parse_labels  # the stage's names for them
from esfp.replies import parse_stance as parse_stance
from esfp.text import split_report

PHRASINGS = ("P0", "P1", "P2", "P3", "P4")


def panel_label(labels: list[str | None], rule: str = "unanimous") -> str | None:
    """The panel's label of one sentence (Section 4.4).

    Parameters
    ----------
    labels
        One a judge; None where that judge failed.
    rule
        'unanimous': the label if all agree. 'majority': the label that at least two thirds of the
        judges give. Else C, which leaves the density's denominator.

    Returns
    -------
    str or None
        None where any judge failed, under either rule: the sentence is missing, which is not C.
        Counting the others alone would make it the verdict of another panel.
    """
    if rule not in ("unanimous", "majority"):
        raise ValueError(f"unknown panel rule '{rule}'; choose 'unanimous' or 'majority'")
    if not labels or any(label is None or pd.isna(label) for label in labels):
        return None
    top = max(LABELS, key=labels.count)
    needed = len(labels) if rule == "unanimous" else 2 * len(labels) / 3
    return top if labels.count(top) >= needed else "C"


def split(responses: pd.DataFrame, rule: str = "paper") -> pd.DataFrame:
    """One row a sentence of every response with status ok; the others have none.

    Returns
    -------
    DataFrame
        The response keys, `sentence_id` (from 1, within the response), `sentence`.
    """
    rows = []
    for row in _answered(responses).itertuples(index=False):
        keys = [getattr(row, key) for key in files.KEYS]
        sentences = split_report(row.text, rule).sentences
        rows += [(*keys, place, text) for place, text in enumerate(sentences, start=1)]
    return pd.DataFrame(rows, columns=[*files.KEYS, "sentence_id", "sentence"])


def split_counts(responses: pd.DataFrame, rule: str = "paper") -> pd.DataFrame:
    """What splitting kept and dropped, by model and phrasing.

    Returns
    -------
    DataFrame
        model, phrasing, responses, sentences, fragments (under 12 characters), fragment_share
        (of sentences and fragments), beyond_cap (sentences after the 25th), unsplit (responses
        with no sentence left).
    """
    answered = _answered(responses)
    reports = [split_report(text, rule) for text in answered["text"]]
    counts = answered[["model", "phrasing"]].assign(
        responses=1,
        sentences=[len(report.sentences) for report in reports],
        fragments=[len(report.fragments) for report in reports],
        beyond_cap=[report.beyond_cap for report in reports],
        unsplit=[int(not report.sentences) for report in reports],
    )
    table = counts.groupby(["model", "phrasing"], sort=False).sum().reset_index()
    share = table["fragments"] / (table["sentences"] + table["fragments"])
    table.insert(5, "fragment_share", share)
    return table


def train(judges: list[dict], gold: pd.DataFrame, folds: int) -> dict[str, offline.CrossFitted]:
    """The offline ones of `judges`, by name, trained on the reference sentences of split train."""
    return {
        judge["name"]: offline.train(gold, folds, partial(offline.sentence_judge, judge["kind"]))
        for judge in judges
        if judge["kind"] != "llm"
    }


def label(
    sentences: pd.DataFrame,
    judges: list[dict],
    rule: str,
    trained: dict[str, offline.CrossFitted],
    asker: llm_judges.Asker,
) -> pd.DataFrame:
    """Add a column `label_<judge>` for each judge, and the panel's `label`.

    Parameters
    ----------
    sentences
        What `split` returns.
    judges
        As in the params file: name and kind (one of `offline.KINDS`, or 'llm').
    trained
        From `train`; none labels an item that it has learnt from.
    asker
        Where language models are reached; its `tallies` say what became of each judge's task.

    Returns
    -------
    DataFrame
        Labels are A, B, C, or None where a judge failed.
    """
    labelled = sentences.copy()
    for judge in judges:
        column = f"label_{judge['name']}"
        if judge["kind"] == "llm":
            labelled[column] = asker.labels(sentences, judge)
        else:
            start = time.monotonic()
            model = trained[judge["name"]]
            labelled[column] = model.predict(sentences["item_id"], sentences["sentence"])
            n = sentences.groupby(files.KEYS).ngroups
            asker.tallies.append(tally.offline(judge["name"], "labels", start, n, len(sentences)))
    return labelled.assign(label=panel(labelled, judges, rule))


def panel(labelled: pd.DataFrame, judges: list[dict], rule: str) -> list[str | None]:
    """The panel's label of each row, from the judges' columns."""
    columns = [labelled[f"label_{judge['name']}"] for judge in judges]
    return [panel_label(list(labels), rule) for labels in zip(*columns, strict=True)]


def train_stance(
    stance_judge: str, gold: tuple[pd.DataFrame, pd.DataFrame], folds: int
) -> stance.StanceJudge | None:
    """The offline stance judge; None where a language model extracts stances."""
    return stance.train(gold, folds) if stance_judge == "offline" else None


def stances(
    responses: pd.DataFrame,
    claims: pd.Series,
    stance_judge: str,
    judges: list[dict],
    trained: stance.StanceJudge | None,
    asker: llm_judges.Asker,
    phrasings: Collection[str] = PHRASINGS,
) -> pd.DataFrame:
    """One stance a response, null where the response is not ok or the judge failed (Section 4.5).

    Parameters
    ----------
    claims
        item_id → the item's text; the offline judge reads it beside the response.
    stance_judge
        'offline', or the name of a language model among `judges`, which is asked with the
        paper's prompt and reads the response alone.
    trained
        The offline judge, from `train_stance`.
    phrasings
        Those whose responses get a stance; it is null for the others.
    """
    answered = _answered(responses[responses["phrasing"].isin(phrasings)])
    if stance_judge == "offline":
        start = time.monotonic()
        items = answered["item_id"]
        found = trained.predict(items, answered["text"], items.map(claims))
        asker.tallies.append(tally.offline("offline", "stances", start, len(answered), None))
    else:
        judge = next(judge for judge in judges if judge["name"] == stance_judge)
        found = asker.stances(answered, judge)
    known = answered[files.KEYS].assign(stance=pd.Series(found, index=answered.index, dtype=object))
    return responses[files.KEYS].merge(known, on=files.KEYS, how="left", validate="1:1")


def _answered(responses: pd.DataFrame) -> pd.DataFrame:
    return responses[responses["status"] == "ok"].reset_index(drop=True)


def results(
    sentences_table: pd.DataFrame,
    stance_table: pd.DataFrame,
    counts: pd.DataFrame,
    labelled: pd.DataFrame,
    found: pd.DataFrame,
) -> dict[str, float]:
    """The stage's numbers by name: judges against the reference, and what each model's run gave.

    Parameters
    ----------
    sentences_table
        From `validation.sentence_judges`.
    stance_table
        From `validation.stance_judge`.
    counts
        From `split_counts`.
    labelled, found
        From `label` and `stances`.
    """
    out: dict[str, float] = {}
    for row in sentences_table.to_dict("records"):
        out |= _measured("judge", row, f".{row.pop('judge')}")
    for row in stance_table.to_dict("records"):
        out |= _measured("judge.stance", row, "")
    totals = counts.groupby("model")[["sentences", "fragments", "beyond_cap", "unsplit"]].sum()
    for name, row in totals.iterrows():
        out |= {f"judge.{key}.{name}": int(row[key]) for key in totals.columns}
        share = row["fragments"] / (row["sentences"] + row["fragments"])
        out[f"judge.fragment_share.{name}"] = share
    for key, frame, values in (("label", labelled, LABELS), ("stance", found, STANCES)):
        table = shares(frame, key, values, ["model"])
        for name, row in table.iterrows():
            out |= {f"judge.{key}_share.{value}.{name}": row[value] for value in table.columns}
    return out


def _measured(prefix: str, row: dict, suffix: str) -> dict[str, float]:
    """The numbers of one row of `validation.against` by name; 'all' is not named."""
    part = row.pop("part")
    end = suffix + ("" if part == "all" else f".{part}")
    return {f"{prefix}.{key}{end}": value for key, value in row.items()}


def write(
    run_dir: str | Path,
    names: list[str],
    judges: list[dict],
    labelled: pd.DataFrame,
    found: pd.DataFrame,
) -> None:
    """Write judged/<slug>.parquet and stances/<slug>.parquet for each model."""
    write_labels(run_dir, "judged", names, judges, labelled)
    for name in names:
        rows = found[found["model"] == name]
        path = Path(run_dir, "stances", f"{files.slug(name)}.parquet")
        files.write_parquet(path, rows, files.STANCES)


def write_labels(
    run_dir: str | Path, folder: str, names: list[str], judges: list[dict], labelled: pd.DataFrame
) -> None:
    """Write `folder`/<slug>.parquet for each model, in the schema of judged/."""
    schema = files.judged_schema([judge["name"] for judge in judges])
    for name in names:
        rows = labelled[labelled["model"] == name]
        files.write_parquet(Path(run_dir, folder, f"{files.slug(name)}.parquet"), rows, schema)


def forget_labels(run_dir: str | Path, folder: str) -> None:
    """Delete the labels in `folder`, which an earlier state of the run had and this has not."""
    for path in Path(run_dir, folder).glob("*.parquet"):
        path.unlink()
