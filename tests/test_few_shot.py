"""Few-shot labels: what is asked, how probabilities are read, and that no row is asked twice."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pandas as pd
import pytest

from esfp import corpus, few_shot
from esfp.files import DataError
from esfp.gold import load_gold
from tests.conftest import REPO

TASKS = few_shot.load_tasks(REPO / "corpus/few_shot.yaml")


def completion(*top):
    """A raw answer whose first token has these alternatives, (token, probability) each."""
    sent = [{"token": token, "logprob": float(np.log(share))} for token, share in top]
    return {
        "choices": [
            {
                "message": {"role": "assistant", "content": top[0][0]},
                "finish_reason": "length",
                "logprobs": {"content": [{"token": top[0][0], "top_logprobs": sent}]},
            }
        ]
    }


def test_examples_cover_every_label_and_no_item():
    items = corpus.load(REPO / "corpus/items.csv")["text"].tolist()
    gold = load_gold(REPO / "corpus/gold")
    for task, texts in zip(TASKS.values(), gold, strict=True):
        shown = {example["answer"] for example in task.examples}
        assert shown == set(task.answers.values())
        known = {*items, *texts.get("sentence", texts.get("text"))}
        assert not known & {text for example in task.examples for text in example.values()}


def test_the_row_is_asked_last_and_without_its_answer():
    messages = TASKS["sentences"].messages({"sentence": "It {is} so.", "split": "train"})
    assert [role for role, _ in messages[:3]] == ["system", "user", "assistant"]
    assert messages[-1] == ("user", "Sentence: It {is} so.\nLabel:")
    assert len(messages) == 2 + 2 * len(TASKS["sentences"].examples)


def test_probabilities_are_kept_to_the_labels():
    answers = {"A": "A", "B": "B", "C": "C"}
    raw = completion(("B", 0.5), (" B", 0.1), ("A", 0.2), ("The", 0.15), ("", 0.05))
    assert few_shot.read(raw, answers) == pytest.approx([0.2 / 0.85, 0.6 / 0.85, 0.05 / 0.85])


def test_a_token_counts_for_the_one_word_that_it_begins():
    answers = TASKS["stances"].answers
    raw = completion(("neg", 0.4), ("n", 0.3), ("none", 0.2), ("pos", 0.08), ("neutral", 0.02))
    found = dict(zip(answers, few_shot.read(raw, answers), strict=True))
    assert found == pytest.approx(
        {"negative": 4 / 7, "no_stance": 2 / 7, "positive": 0.8 / 7, "neutral": 0.2 / 7}
    )


def test_an_endpoint_without_probabilities_is_named():
    with pytest.raises(DataError, match="sends no probabilities"):
        few_shot.read({"choices": [{"message": {"content": "A"}, "logprobs": None}]}, {"A": "A"})


def test_wrong_examples_are_named(tmp_path):
    path = tmp_path / "few_shot.yaml"
    task = {"instruction": "i", "question": "{x}", "answers": {"A": "a"}}
    path.write_text(json.dumps({"sentences": task | {"examples": [{"x": "?", "answer": "b"}]}}))
    with pytest.raises(DataError, match="sentences: the answer 'b' of an example is none of a"):
        few_shot.load_tasks(path)
    path.write_text(json.dumps({"sentences": task | {"examples": [{"y": "?", "answer": "a"}]}}))
    with pytest.raises(DataError, match="sentences: .*'x'"):
        few_shot.load_tasks(path)


@pytest.fixture
def endpoint():
    """A server that says A to everything; its `asked` are the last messages it got."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):  # noqa: N802
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            self.server.asked.append(body["messages"][-1]["content"])
            assert body["top_logprobs"] == few_shot.TOP and body["max_tokens"] == 1
            raw = completion(("A", 0.6), ("positive", 0.3), ("B", 0.1))
            answer = json.dumps(raw | {"model": body["model"]}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_):
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running.asked = []
    threading.Thread(target=running.serve_forever, daemon=True).start()
    yield running
    running.shutdown()
    running.server_close()


def test_only_missing_rows_are_asked(endpoint, tmp_path, monkeypatch):
    monkeypatch.setattr(few_shot, "JOURNAL", tmp_path / "journal.sqlite")
    provider = few_shot.labelling(
        few_shot.Provider(base_url=f"http://127.0.0.1:{endpoint.server_port}/v1")
    )
    gold = pd.DataFrame(
        {
            "sentence_id": ["s1", "s2", "s3"],
            "sentence": ["One.", "None", "Three."],
            "split": ["train", "held_out", "train"],
        }
    )
    path = tmp_path / "llm.csv"

    def ask(rows, judge="big"):
        del endpoint.asked[:]
        left = few_shot.ask(TASKS["sentences"], rows, judge, provider, judge, path)
        assert left == 0
        return [text.split("Sentence: ")[1].split("\n")[0] for text in endpoint.asked]

    assert ask(gold[:2]) == ["None", "One."]  # held out first
    (tmp_path / "journal.sqlite").unlink()  # the table alone says what is there
    assert ask(gold) == ["Three."]
    assert ask(gold) == []
    assert sorted(ask(gold[:1].assign(sentence="Changed."))) == ["Changed."]
    assert sorted(ask(gold, "other")) == ["None", "One.", "Three."]
    table = pd.read_csv(path, dtype=str)
    assert list(table) == ["sentence_id", "judge", "A", "B", "C", "request", "asked_on"]
    assert table["judge"].tolist() == ["big", "other", "other", "other"]
    assert table[["A", "B", "C"]].astype(float).sum(axis=1).tolist() == pytest.approx([1] * 4)
