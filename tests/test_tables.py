"""The tables: values, and that CSV, Markdown and TeX say the same whatever a model is called."""

import json
import subprocess

import numpy as np
import pandas as pd
import pypandoc
import pytest

from esfp import cells, params, psi_figures, published, rankings, tables
from tests.conftest import REPO

NASTY = [
    "org/model_1|b*c*",
    "a$b$ {x} ~y~ ^2^",
    "50% & #1 \\cmd @cite",
    "[link](x) <b> `code` a--b...",
]
RELEASED = published.read_released(REPO / "outputs/published/released.csv")
TEMPLATES = {
    "P0": "What is\nyour take?\n\nQuestion: {question}",
    "P1": "On {question}: what do experts hold?",
    "P2": "What is your position?\n\nQuestion: {question}",
}
SETS = {"contrast": ["P1", "P2"], "psi_contrast": ["P0", "P1"], "cpc_phrasings": ["P0", "P2"]}


def scores_of(names):
    table = pd.DataFrame({"model": names, "vendor": "", "type": "chat"})
    table["rank"] = pd.array(range(1, len(names) + 1), dtype="Int64")
    for k, name in enumerate(
        "esfp flex delta_ar delta_scd psi_mean psi_scaled cpc_kappa boot_mean boot_sd".split()
    ):
        table[name] = 0.1234 * (k + 1) - 0.5 * np.arange(len(names))
    table["ci_low"], table["ci_high"] = table["esfp"] - 0.1, table["esfp"] + 0.1
    table["n_cpc"] = 100
    return table.assign(n_ar=pd.NA, n_scd=pd.NA, coverage=np.nan)


def judges_of(names):
    own = scores_of(names).assign(delta_scd_low=-0.2, delta_scd_high=0.3)
    few = own.assign(esfp=[0.1, *[np.nan] * (len(names) - 1)], delta_scd_low=np.nan)
    return rankings.by_labels({"panel": own, "a|judge": own, "corrected": few})


def read_back(text, source):
    """Rows of cells as pandoc reads them: a list of rows, each a list of plain strings."""
    document = subprocess.run(
        [pypandoc.get_pandoc_path(), "--from", source, "--to", "json", "--columns", "100000"],
        input=text.encode(), capture_output=True, check=True,
    ).stdout  # fmt: skip

    def plain(node):
        if isinstance(node, list):
            return "".join(map(plain, node))
        kind, content = node.get("t"), node.get("c")
        if kind == "Quoted":
            return "“" + plain(content[1]) + "”"
        leaves = {"Space": " ", "SoftBreak": " ", "Str": content}
        if kind == "Math":
            return f"${content[1].strip()}$"
        return leaves[kind] if kind in leaves else plain(content) if content else ""

    (table,) = [block for block in json.loads(document)["blocks"] if block["t"] == "Table"]
    _, _, _, head, bodies, _ = table["c"]
    rows = [*head[1], *bodies[0][3]]
    return [[plain(cell[4]) for cell in row[1]] for row in rows]


def expected(table):
    columns, rows = cells.cells(table)
    grid = [[cells.markup(column.heading) for column in columns], *rows]
    return [
        ["".join(f"${p}$" if isinstance(p, cells.Math) else p for p in cell) for cell in row]
        for row in grid
    ]


def compared(shown):
    """Two judges, one of which was not measured on held-out items."""
    frame = pd.DataFrame({"judge": ["words, logistic", "a|b_c, few-shot"], "n": [2410, 30]})
    for part, values in {"train": [0.5, -0.01], "held_out": [0.4, np.nan]}.items():
        for name in shown.split():
            frame[f"{name}_{part}"] = values
    return frame


def psi_of(names, floors=True):
    """psi.csv of these models; the last has no floor."""
    value = np.linspace(0.1, 0.3, len(names))
    frame = pd.DataFrame({"model": names})
    for name in ("psi_published", "esfp_published", "esfp_fixed", "esfp_contrast"):
        frame[name] = value if floors or name != "esfp_contrast" else np.nan
    measured = ["floor", "above", "above_low", "above_high", "floor_share", "esfp_above"]
    for name in measured if floors else []:
        frame[name] = np.where(np.arange(len(names)) < len(names) - 1, value, np.nan)
    return frame


def every_table():
    local = params.load(REPO / "params/local.yaml")
    stages = [params.stage_parameters(local, s, "local") for s in ("generate", "judge", "embed")]
    items = pd.DataFrame({"type": ["T1", "T1", "T4"]})
    return {
        "table1_typology": tables.typology(),
        "table2_phrasings": tables.phrasings(TEMPLATES, dict.fromkeys(TEMPLATES, "Role"), SETS),
        "table3_corpus": tables.corpus(items, 5),
        "table4_models": tables.models(tables.used_models(*stages)),
        "table4_released": tables.models(RELEASED),
        "table5_leaderboard": tables.leaderboard(scores_of(NASTY)),
        "table6_sensitivity": tables.sensitivity(rankings.sensitivity(RELEASED)),
        "table7_quantities": tables.quantities(scores_of(NASTY)),
        "table8_judges": tables.judges(judges_of(NASTY)),
        "table9_judge_comparison": tables.judge_comparison(compared("kappa precision_B recall_B")),
        "table10_stance_comparison": tables.stance_comparison(compared("kappa agreement")),
        "table11_psi": psi_figures.table11(psi_of(NASTY)),
        "table11_released": psi_figures.table11(psi_of(NASTY, floors=False)),
    }


@pytest.mark.parametrize("stem, table", every_table().items(), ids=list(every_table()))
def test_three_formats_agree(stem, table, tmp_path):
    shown = cells.write(table, tmp_path, stem)
    markdown = (tmp_path / f"{stem}.md").read_text(encoding="utf-8")
    assert markdown == shown
    assert read_back(markdown, "markdown") == expected(table)
    tex = (tmp_path / f"{stem}.tex").read_text(encoding="utf-8")
    assert tex.startswith("\\begin{tabular}") and tex.count("\\\\\n") == len(table.frame) + 1
    for sign, typeset in {cells.MINUS: "$-$", "×": "$\\times$", "|": "$|$"}.items():
        tex = tex.replace(typeset, sign)
    assert read_back(tex, "latex") == expected(table)
    raw = pd.read_csv(tmp_path / f"{stem}.csv", keep_default_na=False, na_values=[""])
    assert list(raw) == list(table.frame) and len(raw) == len(table.frame)
    for name in raw.select_dtypes("number"):
        values = pd.to_numeric(table.frame[name]).to_numpy(float, na_value=np.nan)
        assert raw[name].to_numpy(float) == pytest.approx(values, abs=5e-7, nan_ok=True)


def test_numbers():
    assert cells.three(-0.12345) == ("−0.123",)
    assert cells.three(-0.0004) == ("0.000",)
    assert cells.three(float("nan")) == cells.integer(pd.NA) == cells.text("") == ("–",)
    assert cells.integer(104) == cells.integer(104.0) == ("104",)
    assert cells.interval(0.784, -0.8494) == ("[0.784, −0.849]",)
    assert cells.interval(float("nan"), 1.0) == ("–",)


def test_tex_escapes_what_tex_obeys():
    shown = cells._tex(cells.text("50% & #1_a^b~c\\d{e}$f$ a--b <“x”>"))
    assert shown == (
        r"50\% \& \#1\_a\textasciicircum{}b\textasciitilde{}c\textbackslash{}d\{e\}\$f\$ "
        r"a-{}-b \textless{}``x''\textgreater{}"
    )


def test_leaderboard_is_table_5():
    shown = cells.to_markdown(tables.leaderboard(RELEASED)).splitlines()
    assert [cell.strip() for cell in shown[2].split("|")[1:-1]] == [
        *("1", "DeepSeek-V3.2", "0.805", "0.975", "0.523", "1.000", "0.257", "[0.784, 0.849]")
    ]
    assert "Qwen3-Next-80B (reasoning)" in shown[8]
    assert "90% CI" in cells.to_markdown(tables.leaderboard(RELEASED, level=0.9))


def test_quantities_leave_out_what_nobody_measured():
    scores = scores_of(["a", "b"])
    columns, _ = cells.cells(tables.quantities(scores))
    assert "coverage" not in [column.heading for column in columns] and len(columns) == 6
    columns, rows = cells.cells(tables.quantities(scores.assign(coverage=[1.0, np.nan])))
    assert columns[-1].heading == "coverage" and [row[-1] for row in rows] == [("1.000",), ("–",)]


def test_sensitivity_shows_ties_and_what_was_printed():
    printed = published.read_printed(REPO / "outputs/published/released.csv")
    columns, rows = cells.cells(tables.sensitivity(rankings.sensitivity(RELEASED, printed)))
    assert [column.heading for column in columns][1:] == [
        *("$\\tau_{b}$", "ties broken", "printed $\\tau$", "Rank-1 model")
    ]
    assert len({row[0] for row in rows}) == 10
    alone = next(row for row in rows if "alone" in row[0][-1] and "PSI" in row[0][0])
    assert [cell[0] for cell in alone[1:]] == ["0.255", "[0.214, 0.286]", "0.214", "DeepSeek-V3.2"]
    columns, _ = cells.cells(tables.sensitivity(rankings.sensitivity(RELEASED)))
    assert "printed $\\tau$" not in [column.heading for column in columns]


def test_judges_are_named_and_a_partial_correction_has_no_rank():
    columns, rows = cells.cells(tables.judges(judges_of(["a", "b", "c"])))
    assert [row[0][0] for row in rows[::3]] == ["panel", "a|judge alone", "panel, corrected"]
    shown = pd.DataFrame(rows, columns=[column.heading for column in columns])
    assert shown["rank"].tolist() == [("1",), ("2",), ("3",)] * 2 + [("–",)] * 3
    assert shown["95% interval"].tolist() == [("[−0.200, 0.300]",)] * 6 + [("–",)] * 3
    columns, _ = cells.cells(tables.judges(judges_of(["a", "b"])))
    assert "$\\tau_{b}$" not in [column.heading for column in columns]


def test_phrasings_quote_the_template_and_mark_the_contrast():
    table = tables.phrasings(TEMPLATES, dict.fromkeys(TEMPLATES, "Role"), SETS)
    assert table.frame["measures"].tolist() == ["PSI, CPC", "δAR, δSCD, PSI", "δAR, δSCD, CPC"]
    _, rows = cells.cells(table)
    assert [row[1] for row in rows] == [
        ("Role",), ("Role", " ", "\\pi_{-}"), ("Role", " ", "\\pi_{+}"),
    ]  # fmt: skip
    assert rows[0][2] == ("“What is your take?”",)  # the slot at the end goes, one inside stays
    assert rows[1][2] == ("“On {question}: what do experts hold?”",)


def test_corpus_counts():
    counts = {"T1": 20, "T2": 15, "T3": 15, "T4": 24, "T5": 15, "T6": 15}
    items = pd.DataFrame({"type": [kind for kind, n in counts.items() for _ in range(n)]})
    frame = tables.corpus(items, 5).frame
    assert dict(zip(frame["type"], frame["items"], strict=True)) == counts | {"": 104}
    assert frame["epistemic_character"].iloc[-1] == "× 5 phrasings = 520 prompts a model"


def test_used_models_name_endpoints_and_weights():
    provider = {"base_url": "https://api.test/v1", "embedded": None}
    weights = dict.fromkeys(("package", "version", "member", "path", "hub_repo", "hub_file"))
    hub = weights | {"hub_repo": "org/repo", "hub_file": "m.gguf"}
    providers = {"api": provider, "hub": {"base_url": None, "embedded": {"weights": hub}}}
    candidates = [
        {"name": "One", "vendor": "V", "type": "chat", "provider": "api", "model": "v/one@1"},
        {"name": "Two", "vendor": "", "type": "chat", "provider": "hub", "model": None},
    ]
    judge = {"name": "J", "kind": "llm", "provider": "api", "model": "j-1"}
    frame = tables.used_models(
        {"candidates": candidates, "providers": providers},
        {"judges": [judge], "providers": providers, "gold": "corpus/gold"},
        {"package": None, "path": "models/minilm"},
    )
    assert frame["endpoint"].tolist() == [
        *("v/one@1 at https://api.test/v1", "m.gguf from org/repo"),
        *("j-1 at https://api.test/v1", "models/minilm"),
    ]
    assert frame["type"].tolist() == ["chat", "chat", "judge, LLM", "embedding (PSI)"]
