"""Every call a run will make, as a frame, and which of them are answered already."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path

import pandas as pd

from esfp import calls, files, generate, llm_judges, pace
from esfp.corpus import load, load_phrasings, load_prompt, prompts, subset
from esfp.judge import split
from esfp.params import LLMJudge, Params
from esfp.questions import Question, fold

MESSAGE = 4  # tokens that frame a message in a chat template
ANSWER_TOKENS = 160  # 120 words, the upper end of what the response prompt calls ideal
TRACE_TOKENS = 1500  # of a reasoning model, before its answer
STANCE_TOKENS = 10
ECHO_TOKENS = 25  # of a label beside the first words of its sentence
STAND_IN = " ".join(  # for an answer that is not there yet: six sentences of 20 words
    ["There are good reasons to hold this view, and there are others that a careful reader would "
     "set against it."] * 6
)  # fmt: skip
COLUMNS = (
    "stage model asked model_id provider item_id type phrasing sample sha answered messages "
    "reserved answer_tokens"
).split()


def items(params: Params, per_type: int | None = None) -> pd.DataFrame:
    """Items of the run, or the first `per_type` of each type among them."""
    mine = subset(load(params.corpus.items), params.corpus.per_type, params.corpus.types)
    return subset(mine, per_type)


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
    """One row a call of the run: whom it asks, about what, with which messages.

    Returns
    -------
    DataFrame
        stage (answers, labels, stances), model (the candidate), asked (the candidate's or the
        judge's name), model_id (sent to the endpoint), provider, the other response keys, sha,
        answered, messages (their texts), reserved (tokens that tokens_per_minute is charged),
        answer_tokens (estimated). A question that comes up twice is asked, and counted, once.
    """
    journal = journalled(run)
    known = journal | recorded(run)
    for other in params.generate.reuse:
        known = recorded(other) | known
    judged = dict(journal)
    for other in params.judge.reuse:
        judged = journalled(other) | judged
    parts = [_answers(params, candidate, known) for candidate in params.generate.candidates]
    parts += _judgements(params, pd.concat(parts, ignore_index=True), known, judged)
    frame = pd.concat(parts, ignore_index=True)
    return frame.loc[~(frame["known"] & frame.duplicated("sha")), COLUMNS].reset_index(drop=True)


def trials(params: Params, run: str, frame: pd.DataFrame) -> int:
    """How many judges will be tried with one short call first, apart from the calls of `every`."""
    left = set(frame.loc[~frame["answered"], "asked"])
    answers = {candidate.name for candidate in params.generate.candidates}
    providers = {name: provider.model_dump() for name, provider in params.providers.items()}
    journal = journalled(run)
    shas = {
        llm_judges.target(judge.model_dump(), providers).request.sha
        for judge in _llm_judges(params)
        if params.providers[judge.provider].embedded is None and left & {judge.name, *answers}
    }
    return len(shas - set(journal))


def _llm_judges(params: Params) -> list[LLMJudge]:
    return [judge for judge in params.judge.judges if isinstance(judge, LLMJudge)]


def _calls(requests: list[calls.Request]) -> dict[str, list]:
    """Columns that say what is sent."""
    return {
        "sha": [request.sha for request in requests],
        "messages": [tuple(text for _, text in request.messages) for request in requests],
        "reserved": [pace.tokens(request.sent()) for request in requests],
    }


def _answers(params: Params, candidate, known: dict[str, dict]) -> pd.DataFrame:
    """Calls of the generate stage to one candidate."""
    templates = load_phrasings(params.corpus.phrasings)["templates"]
    planned = generate.plan(
        prompts(items(params), templates),
        candidate,
        params.providers[candidate.provider],
        load_prompt(params.generate.system_prompt),
        params.generate.samples,
        params.generate.again,
    )
    trace = TRACE_TOKENS if "reasoning" in candidate.type.lower() else 0
    return planned.assign(
        stage="answers",
        asked=candidate.name,
        model_id=candidate.model or candidate.name,
        provider=candidate.provider,
        known=True,
        answered=planned["request_sha"].isin(set(known)),
        answer_tokens=float(ANSWER_TOKENS + trace),
        **_calls(planned["request"].tolist()),
    )


def _judgements(
    params: Params, answers: pd.DataFrame, known: dict[str, dict], judged: dict[str, dict]
) -> list[pd.DataFrame]:
    """Calls to judges: about the answers that are ok, with a stand-in for each one to come."""
    found = [known.get(sha, {"status": "ok", "text": None}) for sha in answers["sha"]]
    texts = answers[files.KEYS].assign(
        status=[answer["status"] for answer in found],
        known=[answer["text"] is not None for answer in found],
        text=[STAND_IN if answer["text"] is None else answer["text"] for answer in found],
    )
    texts = files.regular(texts[texts["status"] == "ok"], params.generate.samples)
    read = texts[texts["phrasing"].isin(params.stance_phrasings())]
    sentences = split(texts, params.judge.sentences)
    stance_judge = params.judge.stance_judge
    folded = fold(stance_judge, read, sentences) if params.judge.stance_call == "folded" else {}
    asker = llm_judges.Asker(
        "",
        {},
        load_prompt(params.judge.judge_prompt),
        load_prompt(params.judge.stance_prompt),
        folded=folded,
        audit=params.judge.audit,
    )
    lists = sentences.groupby(files.KEYS, sort=False)["sentence"].agg(list).to_dict()
    alone = {key: text for key, text in _by_key(read) if (stance_judge, *key) not in folded}
    parts = []
    for judge in _llm_judges(params):
        values = judge.model_dump(mode="json")
        asked = {"labels": asker.label_questions(lists, values)}
        if judge.name == stance_judge:
            asked["stances"] = asker.stance_questions(alone, values)
        parts += [
            _asked(params, judge, stage, texts, questions, judged)
            for stage, questions in asked.items()
            if questions
        ]
    return parts


def _by_key(texts: pd.DataFrame) -> zip:
    """(response key, text) of each row."""
    return zip(texts[files.KEYS].itertuples(index=False, name=None), texts["text"], strict=True)


def _asked(
    params: Params, judge: LLMJudge, stage: str, texts: pd.DataFrame, questions, judged
) -> pd.DataFrame:
    """Calls to one judge: the questions about those of `texts` that have one."""
    some = [key in questions for key, _ in _by_key(texts)]
    ordered = [questions[key] for key, _ in _by_key(texts[some])]
    provider, values = params.providers[judge.provider], judge.model_dump(mode="json")
    requests = [llm_judges.build(provider, values, question) for question in ordered]
    return texts[some].assign(
        stage=stage,
        asked=judge.name,
        model_id=judge.model,
        provider=judge.provider,
        answered=[request.sha in judged for request in requests],
        answer_tokens=[_reply_tokens(question) for question in ordered],
        **_calls(requests),
    )


def _reply_tokens(question: Question) -> float:
    asked = question.schema["properties"]
    labels = 0
    if "labels" in asked:
        each = ECHO_TOKENS if "properties" in asked["labels"]["items"] else 3
        labels = 6 + each * asked["labels"]["maxItems"]
    return float(labels + (STANCE_TOKENS if "stance" in asked else 0))
