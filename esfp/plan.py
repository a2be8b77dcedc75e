"""What a run will ask, use, cost and take, before any call: `make plan PARAMS=params/mine.yaml`.

The tables of `python -m esfp.plan` come from one frame with a row a call. Prompts are those that
the stages send. What is not known yet, answers and with them what judges read, is estimated by
the constants below, which the output states.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from esfp import encoder, files, plan_calls, terminal
from esfp.params import Params, ParamsError, load, run_name

FIRST_TOKEN, SPEED = 1.0, 50.0  # seconds to an answer's first token, tokens a second after it
STAGES = ["answers", "labels", "stances"]


def tokens(frame: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Add `prompt_tokens` to the calls, and say how they were counted."""
    texts = sorted({text for messages in frame["messages"] for text in messages})
    try:
        pieces = encoder.count_pieces(texts)[0] - 2  # without the two that frame a text
        how = "counted with the WordPiece tokenizer of all-MiniLM-L6-v2; a model's own may differ"
    except files.DataError:
        pieces = np.array([len(text) / 4 for text in texts])
        how = "an estimate: four characters a token"
    sizes = dict(zip(texts, (float(size) + plan_calls.MESSAGE for size in pieces), strict=True))
    totals = [sum(sizes[text] for text in messages) for messages in frame["messages"]]
    return frame.assign(prompt_tokens=totals), how


def cost(frame: pd.DataFrame, params: Params) -> pd.Series:
    """US dollars of each call; NaN without a price, 0 for an embedded model."""
    dollars = []
    for row in frame.itertuples():
        keys = (row.asked, row.model_id, row.provider)
        price = next((params.prices[key] for key in keys if key in params.prices), None)
        if price is not None:
            used = row.prompt_tokens * price.input + row.answer_tokens * price.output
            dollars.append(used / 1e6)
        else:
            dollars.append(np.nan if params.providers[row.provider].embedded is None else 0.0)
    return pd.Series(dollars, index=frame.index, dtype=float)


def priced(params: Params, run: str) -> tuple[pd.DataFrame, str]:
    """Every call with its tokens and dollars, and how the tokens were counted."""
    frame, how = tokens(plan_calls.every(params, run))
    return frame.assign(dollars=cost(frame, params)), how


def seconds(frame: pd.DataFrame, params: Params) -> float:
    """Time for calls that go out together, to one provider; NaN for an embedded model."""
    provider = params.providers[frame["provider"].iloc[0]]
    if provider.embedded is not None:
        return float("nan")
    calls = FIRST_TOKEN + frame["answer_tokens"] / SPEED
    bounds = [max(calls.sum() / provider.concurrency, calls.max())]
    if rate := getattr(provider, "requests_per_minute", None):
        bounds.append(60 * len(frame) / rate)
    if rate := getattr(provider, "tokens_per_minute", None):
        bounds.append(60 * frame["reserved"].sum() / rate)
    return max(bounds)


def totals(frame: pd.DataFrame, params: Params, by: list[str]) -> pd.DataFrame:
    """Calls, and of those left the tokens, dollars and seconds; one row a group and one of all.

    Models are asked one after another, and judges after them, so the seconds of groups add up.
    """
    rows = []
    groups = [(key, part) for key, part in frame.groupby(by, sort=False)]
    for key, part in [*groups, (("all", *[""] * (len(by) - 1)), frame)]:
        left = part[~part["answered"]]
        together = left.groupby(["stage", "model", "asked"], sort=False)
        spent = [seconds(some, params) for _, some in together]
        row = dict(zip(by, key, strict=True)) | {
            stage: int((part["stage"] == stage).sum()) for stage in STAGES
        }
        rows.append(
            row
            | {
                "calls": len(part),
                "left": len(left),
                "prompt_tokens": left["prompt_tokens"].sum(),
                "answer_tokens": left["answer_tokens"].sum(),
                "dollars": left["dollars"].sum(skipna=False) if len(left) else 0.0,
                "seconds": float(np.sum(spent)),
            }
        )
    return pd.DataFrame(rows)


def choices(frame: pd.DataFrame, params: Params, run: str) -> pd.DataFrame:
    """Cheaper ways to run the same file: calls left, dollars, and what each gives up.

    Returns
    -------
    DataFrame
        choice, left, dollars, how (the setting, or why there is none), gives up.
    """
    left = frame[~frame["answered"]]
    stances = left["stage"] == "stances"
    read = left["phrasing"].isin(params.score.cpc_phrasings)
    per_type = 5
    few = set(plan_calls.items(params, per_type)["item_id"])
    n_items = frame["item_id"].nunique()
    wider = (n_items / max(len(few), 1)) ** 0.5
    options = [
        ("as planned", left, 1.0, "", ""),
        (
            "batch, half price",
            left,
            0.5,
            "no setting, since batches go through an interface of each vendor's own",
            "time: hours of waiting, where a vendor has it",
        ),
        (
            f"stances for {', '.join(params.score.cpc_phrasings)} alone",
            left[~stances | read],
            1.0,
            "judge.stance_phrasings: cpc",
            "nothing in the score: CPC reads no other",
        ),
        (
            "stances within the labels' call",
            folded(params, run) if stances.any() else left,
            1.0,
            "judge.stance_call: folded",
            "the paper's two calls: one asks under both prompts",
        ),
        (
            "offline stances",
            left[~stances],
            1.0,
            "judge.stance_judge: offline",
            "the LLM's stances",
        ),
        (
            "offline judges",
            left[left["stage"] == "answers"],
            1.0,
            "judge.judges: embedding, combined",
            "the LLM panel",
        ),
        (
            f"{len(few)} of {n_items} items",
            left[left["item_id"].isin(few)],
            1.0,
            f"corpus.per_type: {per_type}",
            f"precision: intervals {wider:.1f} times as wide",
        ),
    ]
    rows = [
        {
            "choice": name,
            "left": len(part),
            "dollars": share * part["dollars"].sum(skipna=False) if len(part) else 0.0,
            "how": how,
            "gives up": loss,
        }
        for name, part, share, how, loss in options
        if name == "as planned"
        or len(part) < len(left)
        or (share < 1 and (left["dollars"] != 0).any())
    ]
    return pd.DataFrame(rows)


def folded(params: Params, run: str) -> pd.DataFrame:
    """Calls left where each stance is asked for in the label call of the judge that gives it."""
    judge = params.judge.model_copy(update={"stance_call": "folded"})
    frame = priced(params.model_copy(update={"judge": judge}), run)[0]
    return frame[~frame["answered"]]


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _dollars(value: float) -> str:
    return "–" if np.isnan(value) else f"${value:,.2f}"


def _time(value: float) -> str:
    if np.isnan(value):
        return "–"
    minutes = round(value / 60)
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min"


def _shown(table: pd.DataFrame) -> pd.DataFrame:
    """Numbers of a table as text."""
    table = table.copy()
    for name in (*STAGES, "calls", "left", "prompt_tokens", "answer_tokens"):
        if name in table:
            table[name] = [_count(value) for value in table[name]]
    for name, show in {"dollars": _dollars, "seconds": _time}.items():
        if name in table:
            table[name] = [show(value) for value in table[name]]
    return table.rename(
        columns={"prompt_tokens": "tokens in", "answer_tokens": "tokens out"}
        | {"dollars": "cost", "seconds": "time"}
    )


def report(path: str | Path) -> str:
    """The plan of a params file, as text for the terminal.

    Raises
    ------
    DataError
        If the file or what it names is wrong, or makes no calls.
    """
    params = load(path)
    if params.generate is None:
        raise ParamsError(f"{path}: starts from released scores and makes no call")
    run = run_name(path)
    frame, how = priced(params, run)
    by_model = totals(frame, params, ["model"])
    ordered = frame.sort_values("stage", kind="stable")  # answers, labels, stances
    by_asked = totals(ordered, params, ["asked", "stage"])[:-1]
    n_items = frame["item_id"].nunique()
    again = ", ".join(params.generate.again)
    lines = [
        f"Plan of {path}: {n_items} items, {frame['phrasing'].nunique()} phrasings, "
        f"{params.generate.samples} sample(s) a prompt{again and f', {again} once more'}. "
        "No call is made.",
        "",
        terminal.aligned(_shown(by_model)),
        "",
        "By who is asked:",
        "",
        terminal.aligned(_shown(by_asked.drop(columns=STAGES)), left=2),
        "",
        *_cheaper(choices(frame, params, run)),
        *notes(frame, params, how, plan_calls.trials(params, run, frame)),
    ]
    return "\n".join(lines)


def _cheaper(options: pd.DataFrame) -> list[str]:
    """The choices as a table and a list of what each gives up; nothing where nothing is left."""
    if not options["left"].iloc[0]:
        return []
    return [
        "Cheaper choices:",
        "",
        terminal.aligned(_shown(options[["choice", "left", "dollars"]])),
        "",
        *[
            f"- {row['choice']}: {row['how']}; gives up {row['gives up']}"
            for row in options.iloc[1:].to_dict("records")
        ],
        "",
    ]


def notes(frame: pd.DataFrame, params: Params, how: str, trials: int) -> list[str]:
    """What the numbers rest on."""
    first = f" So does one short call that tries each of {trials} judges first." if trials else ""
    lines = [
        "Calls: one each; those asked again after a failure, or after a judge's reply that cannot "
        f"be read, come on top.{first} Answered ones, in this run or in one it reuses, are not "
        "left.",
        f"Tokens in: {how}, and {plan_calls.MESSAGE} more a message; not the JSON schema that "
        "goes with a judge's question.",
        f"Tokens out, an estimate: {plan_calls.ANSWER_TOKENS} an answer, "
        f"{plan_calls.TRACE_TOKENS} more where a candidate's type says reasoning.",
        f"Time, an estimate: {FIRST_TOKEN:g} s and {SPEED:g} tokens/s a call at the stated "
        "concurrency and rates; – for a model embedded here.",
    ]
    left = frame[~frame["answered"]]
    unpriced = left.loc[left["dollars"].isna(), "asked"].unique()
    if len(unpriced):
        lines.append(
            f"No price for {', '.join(unpriced)}: add, in US dollars a million tokens, "
            f"prices: {{{unpriced[0]}: {{input: …, output: …}}}}"
        )
    return lines


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m esfp.plan", description="Plan a run.")
    parser.add_argument("--params", required=True, type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    try:
        print(report(options.params))
    except files.DataError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
