"""`extends`: one file laid over another, named things of a list by name, and where a value is."""

import subprocess

import pytest
import yaml

from esfp import layers, lines, params, resolve
from tests.conftest import REPO

BASE = """\
providers: {p: {base_url: 'http://here', decoding: {temperature: 0.6}}}
generate:
  candidates:
    - {name: m, provider: p}
    - {name: n, provider: p}
judge:
  judges:
    - {name: e, kind: embedding}
    - {name: w, kind: words}
"""
CHILD = """\
extends: base.yaml
providers: {p: {decoding: {temperature: 0}}}
judge:
  judges:
    e: {kind: combined}
    w: null
    x: {kind: words}
"""


@pytest.fixture
def child(tmp_path):
    (tmp_path / "base.yaml").write_text(BASE)
    path = tmp_path / "child.yaml"
    path.write_text(CHILD)
    return path


def test_a_mapping_over_a_list_goes_to_its_things_by_name(child):
    loaded = params.load(child)
    assert [(judge.name, judge.kind) for judge in loaded.judge.judges] == [
        ("e", "combined"),
        ("x", "words"),
    ]
    assert [candidate.name for candidate in loaded.generate.candidates] == ["m", "n"]
    assert loaded.providers["p"].decoding == {"temperature": 0}


def test_a_list_takes_the_place_of_a_list_and_the_base_is_left_as_it_was():
    base = {"a": [{"name": "x", "v": {"k": 1}}], "b": [1, 2]}
    assert layers.merge(base, {"a": [{"name": "y"}]})["a"] == [{"name": "y"}]
    assert layers.merge(base, {"a": {"x": {"v": {"l": 2}}}})["a"] == [
        {"name": "x", "v": {"k": 1, "l": 2}}
    ]
    assert layers.merge(base, {"a": {"none": None}}) == base
    assert base == {"a": [{"name": "x", "v": {"k": 1}}], "b": [1, 2]}


def test_resolved_values_say_where_they_come_from(child):
    text = resolve.resolved(child)
    assert yaml.safe_load(text) == params.load(child).model_dump(mode="json")
    shown = dict(line.strip().split("  # ") for line in text.splitlines() if "  # " in line)
    assert shown["temperature: 0"] == f"{child} line 2"
    assert shown["base_url: http://here"] == f"{child.with_name('base.yaml')} line 1"
    assert shown["kind: combined"] == f"{child} line 5"
    assert shown["kind: words"] == f"{child} line 7"
    assert shown["- name: n"] == f"{child.with_name('base.yaml')} line 5"
    assert shown["cpc_bonus: 0.25"] == "default"


def test_an_error_in_a_thing_addressed_by_name_names_its_line(child):
    child.write_text(CHILD.replace("kind: words", "kind: wrods"))
    assert lines.at(child, ("judge", "judges", 1, "kind")) == f"{child} line 7"
    with pytest.raises(params.ParamsError, match=r"child.yaml line 7: 'judge.judges.1"):
        params.load(child)
    child.write_text(CHILD.replace("w: null", "w: 3"))
    with pytest.raises(params.ParamsError, match=r"child.yaml: judges.w: write keys and values"):
        params.load(child)


def test_make_resolve_prints_the_file():
    command = ["make", "-o", ".venv/installed", "resolve", "PARAMS=params/smoke.yaml"]
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True)
    assert "  per_type: 2  # params/smoke.yaml line 5\n" in done.stdout, done.stderr
    done = subprocess.run(command[:-1], cwd=REPO, capture_output=True, text=True)
    assert done.returncode == 2 and "make resolve needs a params file" in done.stderr
