"""Plans: the paper's own counts come out, what is answered is left out, and nothing is asked."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from esfp import calls, files, params, plan, plan_calls
from tests.conftest import REPO

JUDGES = [
    {"name": "first", "kind": "llm", "provider": "test", "model": "judge-1"},
    {"name": "second", "kind": "llm", "provider": "test", "model": "judge-2"},
]


@pytest.fixture(scope="module")
def cohort():
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(REPO)
        loaded = params.load("params/paper_cohort.yaml")
        frame, _ = plan.tokens(plan_calls.every(loaded, "no-such-run"))
        loaded.prices["judges"] = params.Price(input=1, output=2)
        yield loaded, frame.assign(dollars=plan.cost(frame, loaded))


def test_the_papers_counts(cohort):
    loaded, frame = cohort
    table = plan.totals(frame, loaded, ["model"]).set_index("model")
    for model in table.index.drop("all"):  # Section 4.8: per model
        assert table.loc[model, plan.STAGES].tolist() == [520, 1040, 520]
    assert len(table) == 8 + 1
    assert table.loc["all", "answers"] == 4160
    assert table.loc["all", "labels"] + table.loc["all", "stances"] == 12480
    assert table.loc["all", "left"] == 16640
    assert table.loc["all", "seconds"] == pytest.approx(table["seconds"].drop("all").sum())


def test_stances_come_from_the_primary_judge_alone(cohort):
    _, frame = cohort
    assert set(frame.loc[frame["stage"] == "stances", "asked"]) == {"qwen"}


def test_cheaper_choices(cohort):
    loaded, frame = cohort
    judged = frame[frame["stage"] != "answers"]
    table = plan.choices(judged, loaded).set_index("choice")
    whole = table.loc["as planned"]
    assert (whole["left"], table.loc["batch, half price", "left"]) == (12480, 12480)
    assert table.loc["batch, half price", "dollars"] == pytest.approx(whole["dollars"] / 2)
    assert table.loc["stances for P0, P2, P4 alone", "left"] == 8320 + 8 * 312
    fold = table.loc["stances within the labels' call"]
    assert fold["left"] == 8320
    offline = table.loc["offline stances"]
    assert offline["left"] == 8320 and offline["dollars"] < fold["dollars"] < whole["dollars"]
    assert table.loc["offline judges", "left"] == table.loc["offline judges", "dollars"] == 0
    assert table.loc["30 of 104 items", "left"] == 8 * 30 * 5 * 3


def test_a_reasoning_model_answers_with_a_trace(cohort):
    _, frame = cohort
    sizes = frame[frame["stage"] == "answers"].groupby("model")["answer_tokens"].mean()
    longer = sizes.pop("Qwen3-Next-80B")
    assert set(sizes) == {plan_calls.ANSWER_TOKENS}
    assert longer == plan_calls.ANSWER_TOKENS + plan_calls.TRACE_TOKENS


def test_counted_tokens_are_near_those_a_model_reports(monkeypatch):
    monkeypatch.chdir(REPO)
    frame, how = plan.tokens(plan_calls.every(params.load("params/local.yaml"), "local"))
    reported = files.read_shards(
        "outputs/local/responses", ["SmolLM2-135M-Instruct"], files.RESPONSES
    )
    assert how.startswith("counted")
    assert frame["prompt_tokens"].sum() == pytest.approx(reported["prompt_tokens"].sum(), rel=0.1)
    assert frame["answered"].all()


def test_without_a_tokenizer_tokens_are_said_to_be_an_estimate(monkeypatch):
    def missing(texts):
        raise files.DataError("no tokenizer")

    monkeypatch.setattr(plan.encoder, "count_pieces", missing)
    frame, how = plan.tokens(pd.DataFrame({"system": ["x" * 40], "user": ["y" * 80]}))
    assert how.startswith("an estimate")
    assert frame["prompt_tokens"].tolist() == [10 + 20 + 2 * plan_calls.MESSAGE]


def test_a_price_by_name_goes_before_id_and_provider():
    price = {name: params.Price(input=n, output=10 * n) for n, name in enumerate("mip", start=1)}
    here = SimpleNamespace(embedded=None)
    rows = [("m", "i", "p"), ("x", "i", "p"), ("x", "x", "p"), ("x", "x", "free"), ("x", "x", "q")]
    frame = pd.DataFrame(rows, columns=["asked", "model_id", "provider"])
    frame = frame.assign(prompt_tokens=1e6, answer_tokens=2e5)
    providers = {"p": here, "q": here, "free": SimpleNamespace(embedded="weights")}
    found = plan.cost(frame, SimpleNamespace(prices=price, providers=providers))
    np.testing.assert_allclose(found, [3, 6, 9, 0, np.nan])


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"concurrency": 10}, 100 * (1 + 2) / 10),
        ({"concurrency": 1000}, 3),
        ({"concurrency": 1000, "requests_per_minute": 60}, 100),
        ({"concurrency": 1000, "tokens_per_minute": 6000}, 100 * 400 / 100),
    ],
)
def test_time_is_what_the_tightest_limit_allows(limits, expected):
    frame = pd.DataFrame({"provider": ["p"] * 100, "answer_tokens": 100.0, "prompt_tokens": 300.0})
    provider = SimpleNamespace(embedded=None, **limits)
    assert plan.seconds(frame, SimpleNamespace(providers={"p": provider})) == pytest.approx(
        expected
    )


def left(path):
    frame = plan_calls.every(params.load(path), "run")
    return frame[~frame["answered"]].groupby("stage").size().to_dict()


def test_what_is_answered_is_left_out(workspace, server, monkeypatch):
    monkeypatch.chdir(workspace.root)
    judge = {"judges": JUDGES, "stance_judge": "second"}
    path = workspace.params("run", server.base_url, models=("steady", "slow"), judge=judge)
    assert left(path) == {"answers": 40, "labels": 80, "stances": 40}
    before = workspace.run("esfp.plan", "--params", path)
    assert before.returncode == 0, before.stderr
    assert server.calls() == [] and not (workspace.root / "outputs").exists()

    assert workspace.stage("generate", path).returncode == 0
    planned = plan_calls.every(params.load(path), "run")
    assert planned.groupby("stage")["answered"].mean().to_dict() == {
        "answers": 1, "labels": 0, "stances": 0
    }  # fmt: skip
    todo = left(path)  # the server gives both models the same answers: one call serves both
    asked = len(server.calls())
    done = workspace.stage("judge", path)
    assert done.returncode == 0, done.stderr
    assert len(server.calls()) - asked == todo["labels"] // 2 + todo["stances"] // 2
    assert left(path) == {}
    with calls.Journal("outputs/run/journal.sqlite"):  # a run under way is not in the way
        assert left(path) == {}
    (workspace.root / "outputs/run/journal.sqlite").unlink()
    assert left(path) == todo  # answers are in the Parquet files too


def test_the_report_says_what_it_rests_on(workspace, monkeypatch):
    monkeypatch.chdir(workspace.root)
    judge = {"judges": JUDGES, "stance_judge": "second"}
    prices = {"steady": {"input": 1000, "output": 0}}
    path = workspace.params("run", "http://127.0.0.1:9/v1", judge=judge, prices=prices)
    text = plan.report(path)
    assert "4 items, 5 phrasings, 1 sample(s) a prompt. No call is made." in text
    assert "No price for first, second: add" in text
    assert "Tokens in: counted with the WordPiece tokenizer" in text
    assert "Tokens out, an estimate" in text and "Time, an estimate" in text
    row = next(line.split() for line in text.splitlines() if line.startswith("steady  answers"))
    assert row[2:4] == ["20", "20"]
    assert float(row[6].strip("$")) == pytest.approx(int(row[4].replace(",", "")) / 1000, abs=0.01)


def test_a_run_of_released_scores_has_no_plan(workspace):
    path = workspace.root / "params" / "scores.yaml"
    path.write_text("released: scores.csv\n")
    done = workspace.run("esfp.plan", "--params", path.relative_to(workspace.root))
    assert done.returncode == 1
    assert done.stderr.startswith("error: ") and "makes no call" in done.stderr
