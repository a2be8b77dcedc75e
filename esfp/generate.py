"""Stage 1: ask every candidate every prompt, and keep each answer with its audit.

Source: section 4.1 and appendix A of the paper.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from esfp import calls, corpus, files, llm_judges, preflight, text, usage
from esfp.params import Candidate, Provider, Weights

_ANSWER = [name for name in files.RESPONSES.names if name not in (*files.KEYS, "request_sha")]
STATUSES = ["ok", "refused", "empty", "truncated", "blocked", "error"]
VIOLATIONS = ["too_long", "too_many_paragraphs", "markdown", "filler_opening", "cut_off"]


def plan(
    prompts: pd.DataFrame,
    candidate: Candidate,
    provider: Provider,
    system_prompt: str,
    samples: int,
    again: list[str] | tuple[str, ...] = (),
) -> pd.DataFrame:
    """Every call of one candidate, in corpus order.

    Parameters
    ----------
    prompts
        item_id, type, phrasing, prompt; one row an item × phrasing.
    again
        Phrasings asked once more where the candidate does not name its own; `files.regular` leaves
        these answers out.

    Returns
    -------
    DataFrame
        The response keys, `request` (a `calls.Request`) and `request_sha`; one row an
        item × phrasing × sample.
    """
    rows = []
    again = again if candidate.again is None else candidate.again
    for row in prompts.itertuples():
        for sample in range(samples + (row.phrasing in again)):
            model = candidate.model or candidate.name
            request = calls.build(
                provider, model, system_prompt, row.prompt, candidate.decoding, sample
            )
            rows.append(
                (candidate.name, row.item_id, row.type, row.phrasing, sample, request, request.sha)
            )
    return pd.DataFrame(rows, columns=[*files.KEYS, "request", "request_sha"])


def _keep_recorded(journal: calls.Journal, folder: Path) -> list[str]:
    """Take answers recorded in Parquet over into the journal, which is read from then on.

    Returns a line on each file that is damaged; that file is put aside.
    """
    damaged = []
    for path in sorted(folder.glob("*.parquet")):
        try:
            recorded = files.read_parquet(path, files.RESPONSES).drop(columns="violations")
        except files.DataError as error:
            kept = path.with_name(f"{path.name}.damaged")
            path.replace(kept)
            first = f"`git restore {path}` brings back what was recorded, and "
            damaged.append(
                f"{str(error).split(';')[0]}; it is kept as {kept.name}, what the journal holds of "
                f"it is written again; {first if files.in_git(path) else ''}"
                "the same command asks for the rest"
            )
            continue
        new = (recorded["status"] != "error") & ~recorded["request_sha"].isin(journal.known())
        recorded = recorded[new].astype(object)
        with journal.bulk():
            for row in recorded.where(recorded.notna(), None).to_dict("records"):
                key = "refusal" if row["status"] == "refused" else "content"
                message = {key: row["text"], "reasoning_content": row["trace"]}
                raw = {
                    "model": row["served_model"],
                    "system_fingerprint": row["fingerprint"],
                    "choices": [{"message": message, "finish_reason": row["finish_reason"]}],
                    "error": row["error"],
                    "usage": {name: row[name] for name in ("prompt_tokens", "completion_tokens")},
                }
                journal.put(row["request_sha"], "", raw, row["created_at"], replace=False)
    return damaged


def _row(raw: dict | None, created_at: str | None, error: str | None = None) -> dict:
    """One answer as columns of the responses table."""
    if raw is None:
        empty = dict.fromkeys(_ANSWER)
        return empty | {"text": "", "status": "error", "error": error, "n_words": 0}
    answer = calls.read_answer(raw)
    n_words = text.count_words(answer["text"])
    broken = text.violations(answer["text"], n_words) if answer["status"] == "ok" else []
    if answer["status"] == "ok" and answer["finish_reason"] == "length":
        broken = [*broken, "cut_off"]
    return answer | {"n_words": n_words, "violations": broken, "created_at": created_at}


def _read(journal: calls.Journal, shas: list[str], answered: dict[str, dict]) -> None:
    """Add what the journal holds of `shas` to the candidate's answers."""
    if shas:
        answered |= journal.read(shas, _row)
        _take_cut_traces(answered)


def _take_cut_traces(answered: dict[str, dict]) -> None:
    """A cut answer without a trace is a trace, where all the model's finished answers have one.

    Many chat templates open the trace in the prompt; until the model closes it, nothing marks it.
    """
    ok = [row for row in answered.values() if row["status"] == "ok"]
    ended = [row for row in ok if row["finish_reason"] != "length"]
    if not ended or not all(row["trace"] for row in ended):
        return
    for row in ok:
        if row["finish_reason"] == "length" and not row["trace"]:
            row |= {"status": "truncated", "trace": row["text"], "text": ""}
            row |= {"n_words": 0, "violations": []}


def ask(
    run_dir: str,
    prompts: pd.DataFrame,
    candidates: list[dict],
    providers: dict[str, dict],
    system_prompt: str,
    samples: int = 1,
    reuse: list[str] | None = None,
    judges: list[dict] | None = None,
    again: list[str] | tuple[str, ...] = (),
) -> pd.DataFrame:
    """Responses of all candidates: what is recorded is taken, the rest is asked for.

    A request that is answered in this run's journal or Parquet, or in a run named by `reuse`, is
    never issued again. Before the first call of several, each candidate and each of `judges` (the
    run's language models, which are asked in the next stage) is tried with one call. Writes
    `responses/<model>.parquet` after each candidate.

    Returns
    -------
    DataFrame
        The responses table (files.RESPONSES), candidates in the order given.

    Raises
    ------
    calls.CallError
        If an endpoint cannot be used. Where that shows in the first call, nothing else is asked;
        where it shows later, the other candidates are asked first. What was answered is kept.
    files.DataError
        If a recorded file is damaged; what the journal holds of it has been written again.
    """
    folder = Path(run_dir) / "responses"
    tables, stopped = [], []
    with calls.Journal(Path(run_dir) / "journal.sqlite") as journal:
        damaged = _keep_recorded(journal, folder)
        for run in reuse or []:
            other = Path("outputs") / run
            if not (other / "responses").is_dir():
                raise files.DataError(f"generate.reuse: there is no run at {other}")
            damaged += _keep_recorded(journal, other / "responses")
        work = []
        for values in candidates:
            candidate = Candidate.model_validate(values)
            provider = Provider.model_validate(providers[candidate.provider])
            planned = plan(prompts, candidate, provider, system_prompt, samples, again)
            answered: dict[str, dict] = {}
            _read(journal, planned["request_sha"].tolist(), answered)
            if damaged:
                _write(folder, candidate, planned, answered, {})
                continue
            final = {sha for sha, row in answered.items() if row["status"] in calls.FINAL}
            pending = planned.loc[~planned["request_sha"].isin(final), "request"].tolist()
            work.append((candidate, provider, planned, pending, answered))
        if damaged:
            raise files.DataError("; ".join(damaged))
        if any(pending for *_, pending, _ in work):
            _preflight(work, judges or [], providers, journal)
        for candidate, provider, planned, pending, answered in work:
            asked = [request.sha for request in pending]
            _read(journal, asked, answered)  # the preflight's, or those of a candidate before
            pending = [
                request
                for request in pending
                if answered.get(request.sha, {}).get("status") not in calls.FINAL
            ]
            failures: dict[str, str] = {}
            try:
                already = len(planned) - len(pending)
                failures = calls.complete(
                    pending, provider, journal, calls.reporter(candidate.name, already)
                )
            except files.DataError as error:
                stopped.append(error)
            _read(journal, asked, answered)
            tables.append(_write(folder, candidate, planned, answered, failures))
    if stopped:
        raise stopped[0]
    _require_answers(tables)
    return pd.concat(tables, ignore_index=True)


_REMEDY = {
    "refused": "it refuses every prompt: take it out of generate.candidates",
    "blocked": "a filter blocks every answer: take it out of generate.candidates",
    "truncated": "its traces use up the limit: raise max_tokens in its decoding",
    "empty": "the endpoint sent no text",
    "error": "no reason is on record",
}


def _require_answers(tables: list[pd.DataFrame]) -> None:
    """Name every candidate of whose answers none can be used, and what to do."""
    problems = []
    for table in tables:
        counts = table["status"].value_counts()
        if "ok" in counts:
            continue
        shares = ", ".join(f"{n} {status}" for status, n in counts.items())
        reason = next(iter(table["error"].dropna()), _REMEDY[counts.index[0]])
        problems.append(
            f"{table['model'].iloc[0]}: none of its {len(table)} answers can be used ({shares}): "
            f"{reason}"
        )
    if problems:
        raise calls.CallError("; ".join(problems))


def _write(
    folder: Path,
    candidate: Candidate,
    planned: pd.DataFrame,
    answered: dict[str, dict],
    failures: dict[str, str],
) -> pd.DataFrame:
    """The candidate's responses table, written where anything is answered."""
    rows = [
        answered.get(sha) or _row(None, None, failures.get(sha, "not asked"))
        for sha in planned["request_sha"]
    ]
    table = pd.concat([planned, pd.DataFrame(rows, columns=_ANSWER)], axis=1)
    if answered:
        path = folder / f"{files.slug(candidate.name)}.parquet"
        files.write_parquet(path, table, files.RESPONSES)
    return table[files.RESPONSES.names]


def _preflight(work, judges: list[dict], providers: dict[str, dict], journal) -> None:
    """Try every candidate that has calls to make, and every judge, before the others are paid."""
    targets = [
        preflight.Target(f"generate.candidates.{n}", candidate.provider, provider, pending[0])
        for n, (candidate, provider, _, pending, _) in enumerate(work)
        if pending
    ]
    targets += [llm_judges.target(judge, providers) for judge in judges]
    preflight.check(targets, journal)


def summary(
    responses: pd.DataFrame, asked: pd.DataFrame, prices: dict[str, dict] | None = None
) -> pd.DataFrame:
    """Closing table: calls, how each ended, and what they took, by model.

    Parameters
    ----------
    asked
        Every asking of the requests, from `usage.read`.
    prices
        By model: `input` and `output`, US dollars a million tokens.

    Returns
    -------
    DataFrame
        model, calls, each status, ok_share, median_words (of answers that are ok), and the columns
        of `usage.totals`.
    """
    rows = []
    for model, mine in responses.groupby("model", sort=False):
        counts = mine["status"].value_counts()
        row = {"model": model, "calls": len(mine)}
        row |= {status: int(counts.get(status, 0)) for status in STATUSES}
        row["ok_share"] = row["ok"] / row["calls"]
        row["median_words"] = mine.loc[mine["status"] == "ok", "n_words"].median()
        price = (prices or {}).get(model)
        rows.append(row | usage.totals(asked, mine.rename(columns={"request_sha": "sha"}), price))
    return usage.table(rows)


def compliance(responses: pd.DataFrame, by: str = "phrasing") -> pd.DataFrame:
    """Share of ok responses that break each limit of the response prompt, by model and `by`."""
    answered = responses[responses["status"] == "ok"]
    exploded = answered[["model", by, "violations"]].copy()
    for name in VIOLATIONS:
        exploded[name] = [name in broken for broken in exploded["violations"]]
    exploded["any"] = [len(broken) > 0 for broken in exploded.pop("violations")]
    table = exploded.groupby(["model", by], sort=False).mean(numeric_only=False)
    return table.reset_index()


def load_prompts(corpus_params: dict) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Items of the run and its prompts, item × phrasing."""
    items = corpus.load(corpus_params["items"])
    items = corpus.subset(items, corpus_params["per_type"], corpus_params["types"])
    templates = corpus.load_phrasings(corpus_params["phrasings"])["templates"]
    return items, corpus.prompts(items, templates)


def _package(weights: Weights) -> str | None:
    """Where the weights come from, as pip names it; None for a file or a hub."""
    if weights.package is None:
        return None
    first, last = (
        f"{weights.package}=={weights.version}".format(part=n) for n in (1, weights.parts)
    )
    return first if first == last else f"{first} … {last}"


def _recorded(rows: pd.DataFrame) -> dict:
    """What answered, and when."""
    return {
        "served_models": sorted(rows["served_model"].dropna().unique()),
        "fingerprints": sorted(rows["fingerprint"].dropna().unique()),
        "first_answer": rows["created_at"].dropna().min(),
        "last_answer": rows["created_at"].dropna().max(),
    }


def provenance(
    answers: pd.DataFrame, candidates: list[dict], providers: dict[str, dict], samples: int
) -> dict[str, dict]:
    """What answered, with which decoding and when, by model; what a reader needs to cite a run.

    What was asked again beyond the regular samples stands apart, under `again`.
    """
    out = {}
    for values in candidates:
        candidate = Candidate.model_validate(values)
        provider = Provider.model_validate(providers[candidate.provider])
        rows = answers[answers["model"] == candidate.name]
        beyond = rows[rows["sample"] >= samples]
        weights = provider.embedded.weights if provider.embedded else None
        out[candidate.name] = {
            "endpoint": calls.identity(provider),
            "requested_model": candidate.model or candidate.name,
            **_recorded(files.regular(rows, samples)),
            "package": _package(weights) if weights else None,
            "chat_template": provider.embedded.chat_template if provider.embedded else None,
            "decoding": provider.decoding | candidate.decoding,
        }
        if beyond["created_at"].notna().any():
            counts = beyond.loc[beyond["status"] == "ok", "phrasing"].value_counts()
            out[candidate.name]["again"] = {"ok": counts.to_dict(), **_recorded(beyond)}
    return out
