"""The runner: a notebook counts as done only when every cell is, and errors are one line."""

import nbformat
import pytest

from esfp import run
from esfp.files import DataError


def notebook(tmp_path, *sources, tag="parameters", defaults="a = 1"):
    cells = [nbformat.v4.new_code_cell(source) for source in (defaults, *sources)]
    cells[0].metadata.tags = [tag]
    path = tmp_path / "note.ipynb"
    metadata = {"kernelspec": {"name": "python3", "display_name": "", "language": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=metadata), path)
    return path


def test_values_are_injected_and_show(tmp_path):
    target = tmp_path / "out" / "note.ipynb"
    run.execute(notebook(tmp_path, "print(a + 1)"), target, {"a": 41})
    executed = nbformat.read(target, as_version=4)
    assert any("a = 41" in cell.source for cell in executed.cells)
    assert executed.cells[-1].outputs[0].text == "42\n"
    assert not list(target.parent.glob("*.partial.*"))


def test_two_executions_are_byte_identical(tmp_path):
    source = notebook(
        tmp_path, "print(object())", "import pandas as pd", "pd.DataFrame({'x': [a]})"
    )
    for name in ("one", "two"):
        run.execute(source, tmp_path / name / "note.ipynb", {"a": 1})
    assert (tmp_path / "one/note.ipynb").read_bytes() == (tmp_path / "two/note.ipynb").read_bytes()


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("raise RuntimeError('first line\\nsecond')", "RuntimeError: first line second"),
        ("from esfp.files import DataError\nraise DataError('here: mend this')", "here: mend this"),
        ("import sys\nsys.exit(0)", "cell 2 did not complete"),
        ("import os\nos._exit(0)", "Dead"),
        ("assert a == 2, 'what must hold'", "AssertionError: what must hold"),
    ],
)
def test_a_failed_cell_leaves_no_target(tmp_path, cell, words):
    target = tmp_path / "out" / "note.ipynb"
    with pytest.raises(DataError) as error:
        run.execute(notebook(tmp_path, cell, "print('after')"), target, {"a": 1})
    assert words in str(error.value)
    assert "\n" not in str(error.value)
    assert not target.exists()
    assert target.with_suffix(".failed.ipynb").exists()


def test_a_stages_last_line_is_shown(tmp_path, capsys):
    cells = ["from esfp import progress", "progress.closing('stage: 3 of 3 answers; 0 retries')"]
    run.execute(notebook(tmp_path, *cells), tmp_path / "out.ipynb", {"a": 1})
    assert capsys.readouterr().err == "stage: 3 of 3 answers; 0 retries\n"
    assert not list(tmp_path.glob("*.progress"))


@pytest.mark.parametrize(
    ("more", "values", "words"),
    [
        ({}, {"b": 1}, "not in the cell: ['b'], not in the stage: ['a']"),
        ({"tag": "other"}, {"a": 1}, "expected one cell tagged 'parameters', found 0"),
        ({}, {"a": "1"}, "parameter 'a' is int in the notebook, str in the run"),
    ],
)
def test_parameters_that_papermill_would_let_through(tmp_path, more, values, words):
    with pytest.raises(DataError) as error:
        run.execute(notebook(tmp_path, **more), tmp_path / "out.ipynb", values)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("providers", "provders"), "did you mean 'providers'?"),
        (("items.csv", "none.csv"), "none.csv"),
        (("base_url: http", "key_env: NO_SUCH_KEY\n    base_url: http"), "NO_SUCH_KEY is not set"),
    ],
)
def test_bad_input_is_one_line_and_a_non_zero_exit(workspace, change, words):
    path = workspace.params("bad", "http://127.0.0.1:9/v1")
    text = (workspace.root / path).read_text().replace(*change)
    (workspace.root / path).write_text(text)
    done = workspace.stage("generate", path)
    assert done.returncode == 1
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1 and words in errors[0]
    assert "Traceback" not in done.stderr


def test_refused_connection(workspace):
    done = workspace.stage("generate", workspace.params("bad", "http://127.0.0.1:9/v1"))
    assert done.returncode == 1
    assert "steady at http://127.0.0.1:9/v1: " in done.stderr
    assert "[change params/bad.yaml line 5: providers.test.base_url]" in done.stderr
    assert "Traceback" not in done.stderr


def test_unknown_type_in_the_corpus(workspace):
    (workspace.root / "items.csv").write_text("type,text\nT9,Something.\n")
    done = workspace.stage("generate", workspace.params("bad", "http://127.0.0.1:9/v1"))
    assert done.returncode == 1
    assert "items.csv" in done.stderr and "T9" in done.stderr and "line 2" in done.stderr
