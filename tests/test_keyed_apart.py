"""What takes a recorded answer and what asks anew, clause by clause."""

import json

import pandas as pd
import pytest

from esfp import answers, calls, files, generate, judge, llm_judges, params, replies
from esfp.corpus import load_prompt
from tests.conftest import REPO
from tests.test_generate import ask
from tests.test_judge import responses
from tests.test_llm_judges import PROMPTS, asker, bodies, labels, named

PROVIDER = {"base_url": "http://here/v1", "decoding": {"temperature": 0.5, "max_tokens": 9}}
PROMPT = pd.DataFrame({"item_id": ["T1-01"], "type": ["T1"], "phrasing": ["P0"]})


def shas(system="Be brief.", samples=1, prompt="Is it so?", candidate=None, **provider):
    candidate = params.Candidate(**({"name": "m", "provider": "p"} | (candidate or {})))
    provider = params.Provider.model_validate(PROVIDER | provider)
    table = generate.plan(PROMPT.assign(prompt=prompt), candidate, provider, system, samples)
    return table["request_sha"].tolist()


@pytest.mark.parametrize(
    "change",
    [
        {"system": "Be long."},
        {"prompt": "Is it so, in your view?"},  # another item or another template
        {"base_url": "http://there/v1"},
        {"base_url": "http://here/v2"},
        {"decoding": {"temperature": 0.6, "max_tokens": 9}},
        {"decoding": {"max_tokens": 9}},
        {"decoding": {"temperature": 0.5, "max_tokens": 10}},
        {"candidate": {"decoding": {"temperature": 0.6}}},
        {"candidate": {"model": "n"}},
        {"system_role": "developer"},
        {"system_role": "user"},
        {"limit_parameter": "max_completion_tokens"},
        {"limit_parameter": "none"},
        {"omit_temperature": True},
        {"extra_body": {"provider": {"order": ["a"]}}},
    ],
)
def test_what_shapes_an_answer_never_takes_an_old_one(change):
    assert not set(shas()) & set(shas(**change))


@pytest.mark.parametrize(
    "change",
    [
        {"concurrency": 2, "retries": 0, "timeout": 5.0, "requests_per_minute": 9.0},
        {"key_env": "ANOTHER_KEY", "extra_headers": {"X-Title": "a name"}, "json_mode": "plain"},
        {"base_url": "http://here/v1/"},
        {"candidate": {"vendor": "V", "type": "reasoning"}},
        {"candidate": {"name": "a name of its own", "model": "m"}},
    ],
)
def test_what_does_not_shape_it_asks_nothing_anew(change):
    assert shas() == shas(**change)


def test_repeats_are_apart_and_more_of_them_keep_the_first():
    assert len(set(shas(samples=5))) == 5
    assert shas(samples=5)[:2] == shas(samples=2)


def test_weights_are_known_by_their_content_not_by_their_place():
    weights = {"path": "a.gguf", "sha256": "0" * 64}
    moved, other = weights | {"path": "b.gguf"}, weights | {"sha256": "1" * 64}
    first, second, third = (
        shas(base_url=None, embedded={"weights": one}) for one in (weights, moved, other)
    )
    assert first == second and first != third


def test_a_better_parser_of_answers_costs_no_call(tmp_path, bad, monkeypatch):
    before = ask(tmp_path, bad, ["think"], ["P0"])
    assert before["text"].str.startswith("The claim").all()
    asked = len(bad.log())
    monkeypatch.setattr(answers.text, "strip_trace", lambda raw: (raw.split()[-1], "parsed anew"))
    after = ask(tmp_path, bad, ["think"], ["P0"])
    assert (after["text"].tolist(), after["trace"].tolist()) == (["is."], ["parsed anew"])
    assert len(bad.log()) == asked


def test_parquet_of_an_older_parser_is_read_by_the_newer_one(tmp_path, bad):
    """Without a journal, a trace that the older one left in the answer is still taken out."""
    table = ask(tmp_path, bad, ["ok"], ["P0"])
    older = table.assign(text="<think>Hm.</think>The answer is yes.", n_words=5)
    files.write_parquet(tmp_path / "responses/ok.parquet", older, files.RESPONSES)
    for file in tmp_path.glob("journal.sqlite*"):
        file.unlink()
    asked = len(bad.log())
    row = ask(tmp_path, bad, ["ok"], ["P0"]).iloc[0]
    assert (row["text"], row["trace"], row["n_words"]) == ("The answer is yes.", "Hm.", 4)
    assert len(bad.log()) == asked


def test_an_edited_judge_prompt_judges_again_and_asks_no_candidate(tmp_path, bad):
    table = ask(tmp_path, bad, ["ok"])
    sentences = judge.split(table)
    for prompt, calls_of_judge in ((PROMPTS[0], 5), (PROMPTS[0] + " Be strict.", 10)):
        values = asker(tmp_path, bad).providers
        llm_judges.Asker(str(tmp_path), values, prompt, "").labels(sentences, named("judge-ok"))
        ask(tmp_path, bad, ["ok"])
        asked = [body["model"] for body in bodies(bad)]
        assert asked.count("ok") == 5 and asked.count("judge-ok") == calls_of_judge


def test_another_splitting_asks_about_those_responses_that_it_changes(tmp_path, bad):
    same = "I think that it is right. Research shows that it is so."
    changed = "Dr. Johnson holds that it is so. I think that he is right."
    frame = responses([same, changed])
    for rule, asked in (("paper", 2), ("sentencex", 3), ("paper", 3)):
        asker(tmp_path, bad).labels(judge.split(frame, rule), named("ok"))
        assert len(bodies(bad)) == asked


@pytest.mark.parametrize(
    "change",
    [
        {"json_mode": "object"},
        {"json_mode": "plain"},
        {"system_role": "user"},
        {"decoding": {"temperature": 0.0}},
        {"extra_body": {"top_k": 1}},
    ],
)
def test_what_shapes_a_judges_reply_asks_it_anew(tmp_path, bad, change):
    labels(tmp_path, bad, "ok")
    labels(tmp_path, bad, "ok", **change)
    assert len(bodies(bad)) == 2 * 2


def test_another_parsers_words_of_refusal_ask_nothing_anew(tmp_path, bad, monkeypatch):
    assert labels(tmp_path, bad, "judge-mute") == [None] * 3
    asked = len(bad.log())

    def read(raw, n, quoted):
        raise replies.Unreadable("it was refused in other words")

    monkeypatch.setattr(replies, "read_labels", read)
    assert labels(tmp_path, bad, "judge-mute") == [None] * 3
    assert len(bad.log()) == asked
    kept = json.loads((tmp_path / "unreadable/labels-big.json").read_text())
    assert kept["failed"][0]["replies"][1]["defect"] == "it was refused in other words"


def test_recorded_answers_of_this_repository_are_still_taken():
    values = params.load(REPO / "params/local.yaml")
    corpus = {name: str(REPO / path) for name, path in values.corpus.model_dump().items() if path}
    prompts = generate.load_prompts(corpus | {"per_type": None, "types": None})[1]
    system = load_prompt(REPO / values.generate.system_prompt)
    for candidate in values.generate.candidates:
        path = REPO / f"outputs/local/responses/{files.slug(candidate.name)}.parquet"
        provider = values.providers[candidate.provider]
        asked = (values.generate.samples, values.generate.again)
        planned = generate.plan(prompts, candidate, provider, system, *asked)
        recorded = files.read_parquet(path, files.RESPONSES)
        assert planned["request_sha"].tolist() == recorded["request_sha"].tolist()


def test_a_remark_is_sent_and_identifies_nothing():
    values = ("http://here", "m", (("system", "s"), ("user", "u")), {}, 1)
    one, two = calls.Request(*values, remark="It was short."), calls.Request(*values, remark="Hm.")
    assert one.sha == two.sha == calls.Request(*values).sha
    assert one.sent()["messages"][-1] == {"role": "user", "content": "u\n\nIt was short."}
