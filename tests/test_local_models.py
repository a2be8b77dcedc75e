"""Embedded models: the weights are the ones named, and the server is one like any other."""

import hashlib

import pytest

from esfp import calls, local_models, params
from tests.conftest import REPO

PROVIDER = params.load(REPO / "params/local.yaml").providers["smollm2"]


def test_weights_from_a_path_are_checked(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(b"weights")
    right = hashlib.sha256(b"weights").hexdigest()
    assert local_models.weights_path(params.Weights(path=str(path), sha256=right)) == path
    with pytest.raises(local_models.WeightsError) as error:
        local_models.weights_path(params.Weights(path=str(path), sha256="0" * 64))
    assert right in str(error.value) and "0" * 64 in str(error.value)
    assert "\n" not in str(error.value)


def test_missing_weights(tmp_path):
    weights = params.Weights(path=str(tmp_path / "none.gguf"), sha256="0" * 64)
    with pytest.raises(local_models.WeightsError, match="no such weights file"):
        local_models.weights_path(weights)


def test_the_embedded_model_answers_through_the_client(tmp_path):
    request = calls.Request(
        endpoint=calls.identity(PROVIDER),
        model="SmolLM2-135M-Instruct",
        messages=(("system", "Answer in one short sentence."), ("user", "What is water?")),
        decoding={"temperature": 0.0, "max_tokens": 40, "seed": 1},
    )
    with calls.Journal(tmp_path / "journal.sqlite") as journal:
        assert calls.complete([request], PROVIDER, journal) == {}
        raw, _ = journal.answers([request.sha])[request.sha]
    answer = calls.read_answer(raw)
    assert answer["status"] == "ok"
    assert len(answer["text"].split()) > 2
    assert answer["served_model"] == "SmolLM2-135M-Instruct.Q4_1.gguf"
