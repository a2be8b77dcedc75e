"""Every call a run will make, as a frame, and which of them are answered already."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path

import pandas as pd

from esfp import calls, files, generate, llm_judges
from esfp.corpus import load, load_phrasings, load_prompt, prompts, subset
from esfp.judge import split
from esfp.params import LLMJudge, Params

MESSAGE = 4  # tokens that frame a message in a chat template
ANSWER_TOKENS = 160  # 120 words, the upper end of what the response prompt calls ideal
TRACE_TOKENS = 1500  # of a reasoning model, before its answer
STANCE_TOKENS = 10
SENTENCE = (  # of 20 words; six stand in for an answer that is not there yet
    "There are good reasons to hold this view, and there are others that a careful reader would "
    "set against it."
)
STAND_IN = [SENTENCE] * 6
COLUMNS = (
    "stage model asked model_id provider item_id type phrasing sample sha answered system user "
    "answer_tokens"
).split()


def items(params: Params, per_type: int | None = None) -> pd.DataFrame:
    """Items of the run, or the first `per_type` of each type among them."""
    return subset(subset(load(params.corpus.items), params.corpus.per_type), per_type)


def journalled(run: str) -> dict[str, dict]:
    """Final answers in a run's journal by request sha; a run under way is not disturbed."""
    path = Path("outputs", run, "journal.sqlite").resolve()
    if not path.exists():
        return {}
    found = {}
    try:
        with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
            for sha, raw in database.execute("SELECT sha, raw FROM calls"):
                answer = calls.read_answer(json.loads(raw))
                if answer["status"] in calls.FINAL:
                    found[sha] = answer
    except sqlite3.DatabaseError as error:
        raise files.DataError(f"{path}: the journal cannot be read ({error})") from None
    return found


def recorded(run: str) -> dict[str, dict]:
    """Final answers in a run's responses/ by request sha."""
    found = {}
    for path in sorted(Path("outputs", run, "responses").glob("*.parquet")):
        table = files.read_parquet(path, files.RESPONSES)
        table = table[table["status"].isin(calls.FINAL)].set_index("request_sha")
        found |= table[["status", "text"]].to_dict("index")
    return found


def every(params: Params, run: str) -> pd.DataFrame:
    """One row a call of the run: whom it asks, about what, with which prompt.

    Returns
    -------
    DataFrame
        stage (answers, labels, stances), model (the candidate), asked (the candidate's or the
        judge's name), model_id (sent to the endpoint), provider, the other response keys, sha,
        answered, system and user (the prompt), answer_tokens (estimated).
    """
    journal = journalled(run)
    known = journal | recorded(run)
    for other in params.generate.reuse:
        known = recorded(other) | known
    judged = dict(journal)
    for other in params.judge.reuse:
        judged = journalled(other) | judged
    asked = [judge for judge in params.judge.judges if isinstance(judge, LLMJudge)]
    parts = []
    for candidate in params.generate.candidates:
        answers = _answers(params, candidate, known)
        parts.append(answers)
        if asked:
            texts = _texts(answers, known)
            parts += [_labels(params, judge, texts, judged) for judge in asked]
            parts += [
                _stances(params, judge, texts, judged)
                for judge in asked
                if judge.name == params.judge.stance_judge
            ]
    return pd.concat(parts, ignore_index=True)[COLUMNS]


def _answers(params: Params, candidate, known: dict[str, dict]) -> pd.DataFrame:
    """Calls of the generate stage to one candidate."""
    templates = load_phrasings(params.corpus.phrasings)["templates"]
    provider = params.providers[candidate.provider]
    planned = generate.plan(
        prompts(items(params), templates),
        candidate,
        provider,
        load_prompt(params.generate.system_prompt),
        params.generate.samples,
    )
    trace = TRACE_TOKENS if "reasoning" in candidate.type.lower() else 0
    return planned.assign(
        stage="answers",
        asked=candidate.name,
        model_id=candidate.model or candidate.name,
        provider=candidate.provider,
        sha=planned["request_sha"],
        answered=planned["request_sha"].isin(set(known)),
        system=[request.messages[0][1] for request in planned["request"]],
        user=[request.messages[-1][1] for request in planned["request"]],
        answer_tokens=float(ANSWER_TOKENS + trace),
    )


def _texts(answers: pd.DataFrame, known: dict[str, dict]) -> pd.DataFrame:
    """What there will be to judge: known answers that are ok, and a stand-in for each to come."""
    found = [known.get(sha, {"status": "ok", "text": None}) for sha in answers["sha"]]
    texts = answers[files.KEYS].assign(
        status=[answer["status"] for answer in found], text=[answer["text"] for answer in found]
    )
    return texts[texts["status"] == "ok"].reset_index(drop=True)


def _asked(params: Params, judge: LLMJudge, stage: str, texts, questions, judged) -> pd.DataFrame:
    """Calls to one judge; one question a row of `texts`, the same question being asked once."""
    path = params.judge.judge_prompt if stage == "labels" else params.judge.stance_prompt
    system, provider = load_prompt(path), params.providers[judge.provider]
    values = judge.model_dump(mode="json")
    shas = [
        llm_judges.build(provider, values, system, question, question.user).sha
        for question in questions
    ]
    rows = texts.assign(
        stage=stage,
        asked=judge.name,
        model_id=judge.model,
        provider=judge.provider,
        sha=shas,
        answered=[sha in judged for sha in shas],
        system=system,
        user=[question.user for question in questions],
        answer_tokens=float(STANCE_TOKENS),
    )
    return rows[~(rows["text"].notna() & rows.duplicated("sha"))]


def _labels(params: Params, judge: LLMJudge, texts: pd.DataFrame, judged: dict) -> pd.DataFrame:
    known = texts[texts["text"].notna()]
    groups = split(known, params.judge.sentences).groupby(files.KEYS, sort=False)["sentence"]
    sentences = groups.apply(list).to_dict()
    keys = list(texts[files.KEYS].itertuples(index=False, name=None))
    lists = [
        sentences.get(key, []) if text is not None else STAND_IN
        for key, text in zip(keys, texts["text"], strict=True)
    ]
    some = [bool(one) for one in lists]  # a response without a sentence is not sent
    lists = [one for one in lists if one]
    questions = [llm_judges.labels_question(one) for one in lists]
    rows = _asked(params, judge, "labels", texts[some], questions, judged)
    sizes = pd.Series([6.0 + 3 * len(one) for one in lists], index=texts.index[some])
    return rows.assign(answer_tokens=sizes)


def _stances(params: Params, judge: LLMJudge, texts: pd.DataFrame, judged: dict) -> pd.DataFrame:
    stand_in = " ".join(STAND_IN)
    questions = [llm_judges.stance_question(text or stand_in) for text in texts["text"]]
    return _asked(params, judge, "stances", texts, questions, judged)
