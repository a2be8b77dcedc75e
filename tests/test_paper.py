import json
import re
import unicodedata
from pathlib import Path

import matplotlib
import nbformat.v4 as nb
import pandas as pd
import pypdf
import pytest
from matplotlib.figure import Figure
from nbformat import write as write_notebook

from esfp import files, paper

PAPER = Path(__file__).parent.parent / "paper"
RELEASED = PAPER.parent / "outputs" / "published" / "released.csv"
TEXT = """---
title: "Scores of {{a.score.n|words}} models"
author: Nobody
abstract: "The best has {{a.score.esfp.Some-Model.v2|%.3f}}."
---

# First {#sec-first}

Text with {{a.score.change|%.2f}}, {{a.calls|,}} calls, {{a.share|%.1f%%}}, $p$ {{a.p|p}} and
$x = {{a.score.change|%.1f}}$. See @fig-dots, @tbl-board, @eq-sum and @sec-second, after
@fleiss1971kappa.

$$ s = \\tfrac{a}{b} $$ {#eq-sum}

![Dots of {{a.name}}.](a/figures/dots){#fig-dots alt="three dots"}

## Second {#sec-second}

::: {#tbl-board src="a/tables/board"}
The board, $\\kappa = {{a.share|%.2f}}$.
:::

| cell | value |
|------|------:|
| typed | {{a.score.change\\|%.1f}} |

: By hand. {#tbl-hand}

| model | score | other |
|-------|------:|------:|
| {{*}} | {{a.score.esfp.*\\|%.2f}} | {{a.score.rest.*}} |

: Row by row. {#tbl-rows}

::: {#tbl-long src="a/tables/board" long=yes}
It may run over pages.
:::

::: {holds="a.verdict.a = fails; a.score.n = 3"}
:::

::: {if="a/figures/absent"}
Never shown @fig-absent.
:::

::: {if="a/figures/dots a.score.n"}
Shown since both are there.
:::

# References {.unnumbered}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "a"
    for name in ("figures", "tables"):
        (folder / name).mkdir(parents=True)
    results = {"calls": 12480, "share": 0.9834, "p": 0.0002, "name": "x < *y*", "empty": None}
    results |= {"score.n": 3, "score.change": -0.25, "score.esfp.Some-Model.v2": 0.8049}
    results |= {"score.esfp.Another": -0.5, "score.rest.Another": 7, "verdict.a": "fails"}
    files.write_json(folder / "results.json", results)
    board = "| Model | κ | 95% CI |\n|:--|--:|:--|\n| Some-Model.v2 | −0.123 | [0.1, 0.2] |\n"
    (folder / "tables" / "board.md").write_text(board, encoding="utf-8")
    figure = Figure(figsize=(4, 2))
    figure.subplots().plot([1, 3, 2], "o")
    with matplotlib.rc_context({"svg.hashsalt": "a"}):
        figure.savefig(folder / "figures" / "dots.svg", metadata={"Date": None})
    figure.savefig(folder / "figures" / "dots.pdf", metadata={"CreationDate": None})
    return folder


def build(folder: Path, text: str, run: Path) -> Path:
    source = folder / "text.md"
    source.write_text(text, encoding="utf-8")
    paper.build(source, folder / "built", {"a": run})
    return folder


@pytest.fixture(scope="module")
def built(tmp_path_factory, run):
    return build(tmp_path_factory.mktemp("built"), TEXT, run)


def words(path: Path) -> str:
    """Text of a PDF or a page, blanks normalised."""
    if path.suffix == ".pdf":
        text = "\n".join(page.extract_text() for page in pypdf.PdfReader(path).pages)
    else:
        page = path.read_text(encoding="utf-8")
        unseen = r"<(style|title|annotation).*?</\1>|<[^>]+>"
        text = re.sub(unseen, "", page, flags=re.DOTALL).replace("&lt;", "<")
    return " ".join(unicodedata.normalize("NFKC", text).split())


@pytest.mark.parametrize("suffix", ["pdf", "html"])
def test_values_and_references_read_right(built, suffix):
    text = words(built / f"built.{suffix}")
    assert "Scores of three models" in text
    assert "The best has 0.805." in text
    assert "with −0.25, 12,480 calls, 98.3%, p < 0.001 and" in text
    assert "See Figure 1, Table 1, Equation 1 and Section 1.1, after Fleiss (1971)" in text
    assert "Figure 1. Dots of x < *y*." in text
    assert "Table 1. The board" in text
    assert "Table 2. By hand." in text
    assert "(1)" in text
    assert "Some-Model.v2" in text and "[0.1, 0.2]" in text
    assert "typed" in text and "−0.2" in text
    assert "Another −0.50 7 Some-Model.v2 0.80 –" in text
    assert "Table 4. It may run over pages." in text
    assert "Never shown" not in text and "Shown since both are there." in text
    assert "Psychological Bulletin" in text


def test_tex_has_labels_references_and_relative_figures(built, run):
    tex = (built / "built.tex").read_text(encoding="utf-8")
    for kind, label in (("Figure", "fig-dots"), ("Table", "tbl-board"), ("Section", "sec-second")):
        assert f"{kind}~\\ref{{{label}}}" in tex
        assert f"\\label{{{label}}}" in tex
    assert "\\begin{equation}\\label{eq-sum}" in tex
    assert "\\toprule" in tex and "\\(\\kappa\\)" in tex
    (picture,) = re.findall(r"\\includegraphics\[[^]]*\]\{([^}]*)\}", tex)
    assert not picture.startswith("/")
    assert (built / picture).resolve() == run / "figures" / "dots.pdf"


def test_pdf_embeds_its_fonts_and_names_no_date(built):
    reader = pypdf.PdfReader(built / "built.pdf")
    assert "/CreationDate" not in (reader.metadata or {})
    fonts = {
        str(font.get_object()["/BaseFont"]).split("+")[-1]
        for page in reader.pages
        for font in page["/Resources"]["/Font"].values()
    }
    assert any("Libertinus" in font for font in fonts)


def test_page_asks_the_network_for_nothing(built):
    page = (built / "built.html").read_text(encoding="utf-8")
    assert "<script" not in page and "<link" not in page and "@import" not in page
    assert re.findall(r'src="([^"]{0,5})', page) == ["data:"]
    assert not re.search(r"url\(\s*['\"]?http", page)
    assert 'title="a.score.change"' in page  # a number says where it comes from


def test_two_builds_are_the_same_bytes(built, run, tmp_path_factory):
    other = build(tmp_path_factory.mktemp("built"), TEXT, run)
    for suffix in ("pdf", "html", "tex"):
        name = f"built.{suffix}"
        assert (other / name).read_bytes() == (built / name).read_bytes(), suffix


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("{{a.score.m}}", "unknown value {{a.score.m}}; did you mean {{a.score.n}}?"),
        ("$x = {{a.nothing|%.2f}}$", "unknown value {{a.nothing}}"),
        ("{{a.empty}}", "{{a.empty}} has no value in this run (null)"),
        ("{{a.name|%.3f}}", "the format does not fit the value x < *y*"),
        ("{{a.score n}}", "a value is {{run.name}} or {{run.name|format}}"),
        ("See @fig-none.", "undefined reference @fig-none"),
        (
            '::: {holds="a.score.n > 2; a.share < a.score.n; a.calls < a.p"}\n:::',
            "the text says a.calls < a.p, but it is 12480 and 0.0002",
        ),
        (
            '::: {holds="a.verdict.a = holds"}\n:::',
            "the text says a.verdict.a = holds, but it is fails; change the sentence there",
        ),
        ("As @nobody1999 says.", "citation nobody1999 not found"),
        ("![c](a/figures/none){#fig-a}", "figures/none.svg: no such figure"),
        ("![c](a/figures/dots)", "a figure or table has no label"),
        ("![c](b/figures/dots){#fig-a}", "does not begin with the name of a run"),
        ('::: {#tbl-a src="a/tables/none"}\nc\n:::', "tables/none.md: no such table"),
        ("$$ x $$", "an equation has no label"),
        ("$\\nonsense{x}$", "Could not convert TeX math"),
    ],
)
def test_a_fault_is_one_line_and_leaves_nothing(tmp_path, run, capsys, text, line):
    source = tmp_path / "text.md"
    source.write_text(text + "\n", encoding="utf-8")
    assert paper.main([str(source), str(tmp_path / "built"), f"a={run}"]) == 1
    message = capsys.readouterr().err
    assert message.count("\n") == 1 and "text.md" in message
    assert line in message
    assert list(tmp_path.iterdir()) == [source]


def test_a_run_without_results_is_one_line(tmp_path, capsys):
    source = tmp_path / "text.md"
    source.write_text("x", encoding="utf-8")
    assert paper.main([str(source), str(tmp_path / "built"), f"a={tmp_path}"]) == 1
    assert "results.json: not there" in capsys.readouterr().err


def test_report_of_a_run_that_has_next_to_nothing(tmp_path):
    files.write_json(tmp_path / "results.json", {"score.n_models": 1})
    paper.build(PAPER / "report.md", tmp_path / "report", {"run": tmp_path})
    assert tmp_path.name in words(tmp_path / "report.pdf")


def test_notebook_page_shows_tables_and_pictures_and_obeys_no_html(tmp_path):
    nasty = '<script>alert(1)</script><img src="http://example.org/x.png">'
    frame = pd.DataFrame({"text": [nasty], "value": [0.25]})
    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><path d="M0 0h9"/></svg>'
    outputs = [
        nb.new_output("stream", text=nasty),
        nb.new_output("display_data", {"text/html": frame.to_html(), "text/plain": "frame"}),
        nb.new_output("display_data", {"text/html": nasty, "text/plain": "nasty"}),
        nb.new_output("display_data", {"text/markdown": nasty, "text/plain": "nasty"}),
        nb.new_output("display_data", {"text/markdown": "| $x$ |\n|---|\n| pipe |\n"}),
        nb.new_output("display_data", {"image/svg+xml": svg, "text/plain": "picture"}),
    ]
    notebook = nb.new_notebook(
        cells=[
            nb.new_markdown_cell(
                "# Scores\n\nWith $\\kappa$ and a picture ![](http://example.org)."
            ),
            nb.new_code_cell("show()", outputs=outputs),
        ]
    )
    write_notebook(notebook, tmp_path / "n.ipynb")
    paper.notebook_html(tmp_path / "n.ipynb", tmp_path / "n.html")
    page = (tmp_path / "n.html").read_text(encoding="utf-8")
    assert "<script" not in page and "<link" not in page
    assert re.findall(r'src="([^"]{0,18})', page) == ["data:image/svg+xml"]
    assert page.count("&lt;script&gt;alert(1)") == 4
    assert page.count("<table") == 2 and "<td>0.25</td>" in page and ">pipe</td>" in page
    assert "<math" in page


# What may hold a digit although it is typed: names, and places in a document.
ALLOWED = [
    r"\{\{.*?\}\}",  # injected
    r"\{[#.][^}]*\}|\{(if|holds)=[^}]*\}",  # labels and attributes
    r"(?<=\])\([^)]*\)",  # paths of figures
    r"(?<!\w)@[\w-]+",  # citations and cross references
    r"`[^`]*`",  # file names and commands
    r"https?://\S+",
    r"\b[PT][0-6]\b|\bP_\{?[0-4]\}?",  # phrasings and item types
    r"SmolLM2(-135M(-Instruct)?)?|Qwen2\.5-Coder-[\d.]+B-Instruct|Gemma\s+3|all-MiniLM-L6-v2",
    r"AC1",  # Gwet's coefficient
    r"95% interval",  # of prediction-powered inference and of agreement: the level is the code's
    "|".join(map(re.escape, pd.read_csv(RELEASED)["model"])),
    r"\b(Sections?|Tables?|Figures?|Equations?|Appendix)\s+\d+(\.\d+)*",  # of the original
    r"Q_\{95\}",  # the name of a percentile, defined where it is used
]


def typed_digits(text: str) -> list[str]:
    """Lines of Markdown that hold a digit which no file of a run vouches for."""
    for pattern in ALLOWED:
        text = re.sub(pattern, "_", text, flags=re.DOTALL)
    # 0 and 1 in mathematics are structure: 1 - cos, max(k, 0), clip(x, 0, 1)
    text = re.sub(r"(\$\$?)[^$]+\1", lambda m: re.sub(r"(?<![\d.,])[01](?![\d.])", "", m[0]), text)
    return [line for line in text.splitlines() if re.search(r"\d", line)]


@pytest.mark.parametrize("name", ["paper.md", "report.md"])
def test_no_number_of_the_text_is_typed(name):
    assert typed_digits((PAPER / name).read_text(encoding="utf-8")) == []


def test_the_guard_sees_a_typed_number():
    text = "As @a2020 says, {{a.b|%.3f}} of P1 in Table 5, $1 - x$.\nBut 7 and $0.25 x$.\n$\\ge 10$"
    assert typed_digits(text) == ["But 7 and $0.25 x$.", "$\\ge 10$"]


def test_every_figure_table_equation_and_work_is_referred_to():
    text = (PAPER / "paper.md").read_text(encoding="utf-8")
    labels = re.findall(r"\{#((?:fig|tbl|eq)-[\w-]+)", text)
    assert [label for label in labels if f"@{label}" not in text] == []
    works = re.findall(r"^@\w+\{(\S+),", (PAPER / "references.bib").read_text("utf-8"), re.M)
    assert [work for work in works if f"@{work}" not in text] == []


def test_parameters_and_the_name_of_a_run_can_be_quoted(tmp_path):
    results = {"score.n": 3, "score.share": 0.5, "score.no": None}
    files.write_json(tmp_path / "results.json", results)
    files.write_text(tmp_path / "params" / "score.yaml", "weights: {ar: 0.2}\npair: [P1, P2]\n")
    files.write_text(tmp_path / "params" / "judge.yaml", "null\n")
    found = paper.values({"x": tmp_path})
    assert found["x.params.score.weights.ar"] == "0.2" and found["x.params.score.pair.1"] == "P2"
    assert found["x.score.n"] == "3" and found["x.score.share"] == "0.5"  # 3 does not become 3.0
    assert found["x.score.no"] is None
    assert found["x.run"].endswith(tmp_path.name)


def test_results_of_a_nested_kind_are_refused(tmp_path):
    (tmp_path / "results.json").write_text(json.dumps({"a": {"b": 1}}))
    with pytest.raises(files.DataError, match="'a' holds dict"):
        paper.values({"x": tmp_path})
