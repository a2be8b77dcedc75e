"""Lines of params files: an error names the one to change, in whichever file it is."""

import pytest

from esfp import lines, params, preflight
from esfp.failures import Failure

BASE = """\
# what others extend
providers:
  mine:
    base_url: http://here
    decoding: {temperature: 0.5}
  flow: {base_url: 'http://there', key_env: KEY}

generate:
  candidates:
    - name: a
      provider: mine
    - {name: b, provider: flow, model: its-id}

judge:
  judges:
    - {name: big, kind: llm, provider: mine, model: m}
"""
MORE = """\
extends: base.yaml
judge:
  judges:
    - name: other
      kind: llm
      provider: flow
      model: n

providers:
  mine:
    timeout: 5.0
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "base.yaml").write_text(BASE)
    (tmp_path / "more.yaml").write_text(MORE)
    return tmp_path


@pytest.mark.parametrize(
    ("place", "spot"),
    [
        ("providers.mine.timeout", ("more.yaml", 11, 3)),
        ("providers.mine.base_url", ("base.yaml", 4, 3)),
        ("providers.mine.decoding.temperature", ("base.yaml", 5, 4)),
        ("providers.mine.json_mode", ("more.yaml", 10, 2)),  # not there yet: where it would go
        ("providers.flow.key_env", ("base.yaml", 6, 3)),
        ("generate.candidates.0.name", ("base.yaml", 10, 4)),
        ("generate.candidates.1.model", ("base.yaml", 12, 4)),
        ("generate.candidates.0.model", ("base.yaml", 10, 3)),
        ("judge.judges.0.model", ("more.yaml", 7, 4)),
        ("judge.judges.0.llm.model", ("more.yaml", 7, 4)),  # the tag of a kind is no key
        ("judge.judges.0.decoding", ("more.yaml", 4, 3)),  # a list takes the other's place
        ("nothing.here", ("more.yaml", 1, 0)),
    ],
)
def test_a_value_is_found_where_it_stands(folder, place, spot):
    path, line, found = lines.find("more.yaml", place.split("."))
    assert (str(path), line, found) == spot


def test_what_cannot_be_read_costs_the_line_alone(folder):
    (folder / "more.yaml").write_text("extends: [\n")
    assert lines.named("more.yaml", ("a", "b")) == "more.yaml: a.b"
    assert lines.at("none.yaml", ("a", "b")) == "none.yaml"


def error(path):
    with pytest.raises(params.ParamsError) as error:
        params.load(path)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("timeout: 5.0", "timeout: five"), "more.yaml line 11: 'providers.mine.timeout'"),
        (("timeout:", "timout:"), "more.yaml line 11: unknown key 'providers.mine.timout'; did"),
        (("model: n", "modle: n"), "more.yaml line 4: 'judge.judges.0.llm.model' is missing"),
        (("provider: flow", "provider: flaw"), "more.yaml line 6: judge.judges.0.provider: "),
        (("kind: llm", "kind: words"), "more.yaml line 6: unknown key 'judge.judges.0.words.prov"),
        (("mine:\n", "'mine':\n    key_env: a-b\n"), "more.yaml line 10: providers.mine: key_env"),
        (("timeout:", "api_key: sk-ant-0a1B2c3D4e5F6g7H8i9J\n    #"), "more.yaml line 11: 'prov"),
    ],
)
def test_errors_name_the_line(folder, change, words):
    (folder / "more.yaml").write_text(MORE.replace(*change))
    assert error("more.yaml").startswith(words)


def test_an_error_in_the_file_that_is_extended_names_that_file(folder):
    (folder / "base.yaml").write_text(BASE.replace("name: a", "nam: a"))
    assert error("more.yaml").startswith("base.yaml line 10: ")
    (folder / "base.yaml").write_text(BASE.replace("name: b", "name: a"))
    assert error("more.yaml").startswith("base.yaml line 9: generate.candidates: the name 'a'")


def test_a_failed_first_call_names_the_line(folder, monkeypatch):
    loaded = params.load("more.yaml")
    provider = loaded.providers["flow"]
    judge = preflight.Target("judge.judges.0", "flow", provider, None)

    def change(status, words, **more):
        failure = Failure("endpoint", words, status=status, **more)
        return preflight.to_change(failure, judge)

    assert change(404, "no such model") == "judge.judges.0.model"  # without a runner: the key
    monkeypatch.setenv("ESFP_PARAMS", "more.yaml")
    assert change(404, "no such model") == "more.yaml line 7: judge.judges.0.model"
    assert change(401, "wrong").startswith("base.yaml line 6: providers.flow.key_env (the variable")
    assert change(None, "refused", unreachable=True) == "base.yaml line 6: providers.flow.base_url"
    assert change(400, "the role 'system' is unknown") == (
        "base.yaml line 6: providers.flow.system_role, which is not there yet"
    )
