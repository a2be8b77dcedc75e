"""What differs between two runs, and one line where it cannot be said."""

import pytest

from esfp import diff, files


def test_largest_relative_difference_comes_first_and_words_before_numbers():
    a = {"same": 1, "small": 1.0, "large": 0.1, "word": "x", "gone": None, "only": 3, "zero": 0.0}
    b = {"same": 1, "small": 1.1, "large": -0.1, "word": "y", "gone": 2.0, "zero": 5.0}
    table = diff.differences(a, b)
    assert table["name"].tolist() == ["word", "gone", "large", "zero", "small"]
    assert table["relative"].tolist()[2:] == pytest.approx([2.0, 1.0, 0.1 / 1.1])


def runs(tmp_path):
    folders = tmp_path / "first", tmp_path / "second"
    numbers = {
        "score.n": 8,
        "score.x": 0.25,
        "claims.verdict.a": "holds",
        "claims.verdict.b": "open",
    }
    files.write_json(folders[0] / "results.json", numbers)
    more = {"score.x": 0.5, "claims.verdict.a": "fails", "score.new": 1}
    files.write_json(folders[1] / "results.json", numbers | more)
    return folders


def test_report_has_verdicts_then_numbers(tmp_path):
    assert diff.report(*runs(tmp_path)).splitlines() == [
        "verdicts: 1 of 2 differ",
        "  a: holds -> fails",
        "numbers: 1 of 2 differ, largest first",
        "  score.x: 0.25 -> 0.5  (50.00%)",
        "only in second: 1 names",
    ]


def test_a_run_and_itself_do_not_differ(tmp_path):
    first, _ = runs(tmp_path)
    assert diff.report(first, first).splitlines() == [
        "verdicts: 0 of 2 differ",
        "numbers: 0 of 2 differ, largest first",
    ]


@pytest.mark.parametrize(
    ("content", "line"),
    [(None, "make the run first (made so far: first, second)"), ("{", "not valid JSON")],
)
def test_a_run_that_is_not_there_is_one_line(tmp_path, capsys, content, line):
    first, _ = runs(tmp_path)
    if content:
        files.write_text(tmp_path / "third" / "results.json", content)
    assert diff.main([str(first), str(tmp_path / "third")]) == 1
    message = capsys.readouterr().err
    assert line in message and message.count("\n") == 1


def test_without_two_folders_it_says_how(capsys):
    assert diff.main(["one"]) == 2
    assert "usage" in capsys.readouterr().err
