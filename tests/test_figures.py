"""The figures: what they show, that nothing is cut or overlaps, and that bytes repeat."""

import itertools
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Annotation, Text

from esfp import diagrams, figures, files, findings, psi_figures, rankings, style
from tests.conftest import REPO

ROLES = {
    "P0": "Neutral baseline",
    "P1": "De-subjectified",
    "P2": "Subjectified",
    "P3": "Responsibility-deflected",
    "P4": "Disagree-invite",
}
SCORE = {
    "contrast": ["P1", "P2"],
    "psi_contrast": ["P0", "P1"],
    "cpc_phrasings": ["P0", "P2", "P4"],
    "weights": {"ar": 0.2, "scd": 0.5, "psi": 0.3},
    "cpc_bonus": 0.25,
}
LONG = [
    "meta-llama/Llama-3.1-405B-Instruct-Turbo-FP8-with-a-long-name",
    "Qwen/Qwen3-235B-A22B-Thinking-2507-GGUF-Q4_K_M",
    "a$b$c_{d}^model",
    "SmolLM2-135M-Instruct",
    "x",
    "mistralai/Mistral-Small-3.2-24B-Instruct-2506",
    "Gemini-3.1-Flash-Lite",
    "中文-模型",
]
PUBLISHED = [  # flex and kappa of Tables 7 and 5, to label where the paper's models stand
    ("DeepSeek-V3.2", 0.757, 0.257),
    ("Claude-Sonnet-4.6", 0.722, 0.329),
    ("Gemma-3-27B", 0.733, 0.266),
    ("GLM-5", 0.641, 0.304),
    ("Gemini-3.1-Flash-Lite", 0.551, 0.493),
    ("Claude-Haiku-4.5", 0.569, 0.301),
    ("Qwen3-Next-80B", 0.471, 0.258),
    ("Gemini-3.1-Pro", 0.378, 0.223),
]


def scores_of(names, seed=0):
    rng = np.random.default_rng(seed)
    n = len(names)
    table = pd.DataFrame(
        rng.uniform(-0.1, 1, (n, 4)), columns=["delta_ar", "delta_scd", "psi_scaled", "cpc_kappa"]
    )
    table.insert(0, "model", list(names))
    table["psi_mean"] = table["psi_scaled"] / 5
    table["flex"] = table["delta_scd"]
    table["esfp"] = table["flex"] * 1.1
    table["ci_low"], table["ci_high"] = table["esfp"] - 0.05, table["esfp"] + 0.08
    table["rank"] = table["esfp"].rank(ascending=False).astype("Int64")
    return table


def items_of(names, n=30, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        [
            {"model": name, "item_id": f"T1-{k:02d}", "delta_scd": value}
            for name in names
            for k, value in enumerate(np.round(rng.normal(0.3, 0.3, n) * 6) / 6)
        ]
    )


def floors_of(names):
    """psi.csv of these models; the last has no floor where there are others."""
    first = np.linspace(0.1, 0.4, len(names))
    table = pd.DataFrame({"model": names, "floor_first": first, "floor_second": first / 2})
    table["floor"], table["above"] = 0.75 * first, 0.1
    table["psi_paired"] = table["floor"] + table["above"]
    for name in ("floor", "above"):
        table[f"{name}_low"], table[f"{name}_high"] = table[name] - 0.02, table[name] + 0.03
    table["n_floor"] = 104
    table.loc[1:, "n_floor"] = np.where(table.index[1:] == len(names) - 1, 0, 104)
    table.loc[table["n_floor"] == 0, table.columns[1:-1]] = np.nan
    return table


def measures_of(names, n=4, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        [
            {"model": m, "item_id": f"T1-{k:02d}", "phrasing": p, "sample": 0}
            | {"ar": rng.uniform(), "scd": rng.uniform()}
            for m in names
            for k in range(n)
            for p in ROLES
        ]
    )


def judges_of(names, labels=("panel", "embedding", "a-judge-from-far-away", "corrected")):
    rng = np.random.default_rng(0)
    table = pd.DataFrame([(each, name) for each in labels for name in names])
    table.columns = ["labels", "model"]
    table["delta_scd"] = rng.uniform(-0.2, 0.6, len(table))
    table["delta_scd_low"], table["delta_scd_high"] = (
        table["delta_scd"] + by for by in (-0.1, 0.15)
    )
    corrected = table["labels"] == "corrected"
    table.loc[corrected & (table["model"] == names[-1]), "delta_scd":] = np.nan
    return table


def answers(texts, sentences, labels, model="m$1$", item_id="T1-01"):
    """Responses, judged and measures of one item; `sentences` and `labels` by phrasing."""
    keys = {"model": model, "item_id": item_id, "sample": 0}
    responses = pd.DataFrame([keys | {"phrasing": p, "text": t} for p, t in texts.items()])
    judged = pd.DataFrame(
        [
            keys | {"phrasing": p, "sentence_id": k, "sentence": s, "label": labels[p][k]}
            for p in texts
            for k, s in enumerate(sentences[p])
        ],
        columns=[*keys, "phrasing", "sentence_id", "sentence", "label"],
    )
    measures = pd.DataFrame([keys | {"phrasing": p, "scd": 0.25} for p in texts])
    return responses, judged, measures


def all_figures(names):
    scores, items = scores_of(names), items_of(names)
    corpus = pd.DataFrame({"item_id": ["T1-01", "T4-01"], "type": ["T1", "T4"]})
    weird = "**Bold** costs $5 and $10_{x} \\frac{1}{2}. " + "y" * 300 + ". 中文 text, Ω, end. "
    spoken = {"P0": weird * 3, "P2": "I disagree. I hold that it is so.", "P4": ""}
    parts = {"P0": [weird[:42]], "P2": ["I hold that it is so."], "P4": []}
    example = answers(spoken, parts, {"P0": ["A"], "P2": [None], "P4": []}, model=names[0])
    question = "Does it cost $5 or $10? " * 12
    yield "fig1_pipeline", diagrams.fig1_pipeline(corpus, list(ROLES), SCORE)
    yield "fig2_example", diagrams.fig2_example(*example, ROLES, question)
    yield "fig3_scores", figures.fig3_scores(scores)
    means = findings.gradient(measures_of(names))
    yield "fig4_gradient", figures.fig4_gradient(means, ROLES, names)
    if len(names) >= rankings.FEWEST_MODELS:
        yield "fig5_structure", figures.fig5_structure(scores, rankings.correlations(scores))
    yield "fig6_items", figures.fig6_items(items, names)
    yield "fig7_decomposition", figures.fig7_decomposition(scores)
    yield "fig8_judges", figures.fig8_judges(judges_of(names), names)
    yield "fig16_floor", psi_figures.fig16_floor(floors_of(names), names, ["P0", "P1"])


def texts_of(figure):
    return [t for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip()]


@pytest.mark.filterwarnings("error")  # a glyph the font lacks, a layout that does not fit
@pytest.mark.parametrize("names", [LONG[:1], LONG[3:6], LONG], ids=["one", "three", "eight"])
def test_nothing_is_cut_and_nothing_is_tiny(names):
    for stem, figure in all_figures(names):
        style.settle(figure)
        width, height = figure.get_size_inches()
        box = figure.get_tightbbox()
        assert width == style.WIDTH
        assert min(box.x0, box.y0) > -0.02, stem
        assert box.x1 < width + 0.02 and box.y1 < height + 0.02, stem
        assert min(t.get_fontsize() for t in texts_of(figure)) >= style.SMALL, stem


@pytest.mark.parametrize("case", [*range(6), "published", "twins"])
def test_labels_of_the_scatter_do_not_overlap(case):
    if case == "published":
        scores = scores_of([name for name, _, _ in PUBLISHED])
        scores[["flex", "cpc_kappa"]] = [pair for _, *pair in PUBLISHED]
    else:
        scores = scores_of(LONG, seed=0 if case == "twins" else case)
    if case == "twins":  # three models all but on one spot
        scores.loc[[1, 2], ["flex", "cpc_kappa"]] = scores.loc[0, ["flex", "cpc_kappa"]].to_list()
    figure = figures.fig5_structure(scores, rankings.correlations(scores))
    axes = figure.axes[1]
    frame = axes.get_window_extent()
    notes = [n for n in axes.texts if isinstance(n, Annotation) and n.get_text()]
    corners = [t for t in axes.texts if t.get_text() and not isinstance(t, Annotation)]
    boxes = [t.get_window_extent() for t in (*notes, *corners)]
    assert len(notes) == 8 and len(corners) == 4
    assert not [1 for a, b in itertools.combinations(boxes, 2) if a.overlaps(b)]
    dots = axes.transData.transform(scores[["flex", "cpc_kappa"]].to_numpy(float))
    for box in boxes[: len(notes)]:
        assert not any(box.contains(*dot) for dot in dots)
        assert frame.x0 <= box.x0 and box.x1 <= frame.x1 + 1
        assert frame.y0 <= box.y0 and box.y1 <= frame.y1 + 1


def test_equal_figures_give_equal_bytes(tmp_path):
    for folder in ("a", "b"):
        items = items_of(LONG[:2])
        shown = style.save(figures.fig6_items(items, LONG[:2]), tmp_path / folder, "f")
        assert shown == tmp_path / folder / "f.png"
    stamps = []
    for suffix in style.FORMATS:
        one, other = (tmp_path / side / f"f.{suffix}" for side in "ab")
        assert one.read_bytes() == other.read_bytes() and one.stat().st_size > 5000
        stamps.append(one.stat().st_mtime_ns)
    style.save(figures.fig6_items(items, LONG[:2]), tmp_path / "a", "f")
    assert stamps == [(tmp_path / "a" / f"f.{s}").stat().st_mtime_ns for s in style.FORMATS]


def test_another_process_gives_the_same_bytes(tmp_path):
    code = (
        "from tests.test_figures import *; scores = scores_of(LONG)\n"
        "figure = figures.fig5_structure(scores, rankings.correlations(scores))\n"
        "style.save(figure, sys.argv[1], 'f')"
    )
    environment = os.environ | {"PYTHONHASHSEED": "7"}
    subprocess.run(
        [sys.executable, "-c", code, tmp_path / "b"], check=True, env=environment, cwd=REPO
    )
    scores = scores_of(LONG)
    figure = figures.fig5_structure(scores, rankings.correlations(scores))
    style.save(figure, tmp_path / "a", "f")
    for suffix in style.FORMATS:
        one, other = ((tmp_path / side / f"f.{suffix}").read_bytes() for side in "ab")
        assert one == other


def test_theme_leaves_no_trace():
    import matplotlib as mpl
    from matplotlib import pyplot

    before = dict(mpl.rcParams)
    style.settle(figures.fig3_scores(scores_of(LONG)))
    assert dict(mpl.rcParams) == before and pyplot.get_fignums() == []


# ---- single figures --------------------------------------------------------------------------


def test_responses_are_drawn_literally():
    text = "It costs $5 or $10 \\frac{1}{2} **now**. I think_so_ it is."
    parts = {p: ["It costs $5 or $10 \\frac{1}{2} **now**.", "I think_so_ it is."] for p in ROLES}
    labels = {"P0": ["A", "B"], "P1": ["A", "B"], "P2": ["C", None], "P3": ["A"] * 2, "P4": "BB"}
    figure = diagrams.fig2_example(*answers(dict.fromkeys(ROLES, text), parts, labels), ROLES, "Q$")
    texts = texts_of(figure)
    assert not any(t.get_parse_math() for t in texts)
    shown = [t.get_text() for t in texts]
    assert shown.count("It costs $5 or $10 \\frac{1}{2} **now**.") == 3  # P0, P2 and P4
    assert "m$1$: “Q$”" in shown
    # markers: A once and B three times in the panels, C and ? once; and each in the legend
    assert [shown.count(c) for c in "ABC?"] == [2, 4, 2, 2]
    assert any(s.endswith("SCD = 0.25") and s.startswith("1 A · 1 B") for s in shown)


def test_flow_breaks_words_and_ends_in_an_ellipsis():
    lines = diagrams.flow([("z" * 400, "A"), ("one two " * 60, None)], 200, 4)
    assert len(lines) == 4 and lines[0][0]["opens"] and not lines[1][0]["opens"]
    assert all(run["end"] <= 200 for line in lines for run in line)
    assert lines[-1][-1]["text"].endswith("…")
    whole = diagrams.flow([("Two short", "A"), ("sentences.", "B")], 200, 4)
    assert [(r["text"], r["label"]) for r in whole[0]] == [("Two short", "A"), ("sentences.", "B")]


def test_spans_keep_what_was_not_judged():
    spans = diagrams.split_spans("No.  Prices\nrise here. Yes.", ["Prices\nrise here."], ["B"])
    assert spans == [("No.", None), ("Prices rise here.", "B"), ("Yes.", None)]
    assert diagrams.split_spans("Other text.", ["Not in it."], ["A"])[0] == ("Not in it.", "A")


def test_gradient_figure_draws_the_means_with_distinct_looks():
    means = findings.gradient(measures_of(LONG))
    figure = figures.fig4_gradient(means, ROLES, LONG)
    for axes, column in zip(figure.axes, ("ar", "scd"), strict=True):
        lines = axes.get_lines()
        assert len({(line.get_marker()) for line in lines}) == len(LONG)
        for name, line in zip(LONG, lines, strict=True):
            own = means[means["model"] == name].set_index("phrasing")[column]
            assert line.get_ydata() == pytest.approx(own[list(ROLES)].to_numpy())


def test_stars_need_a_rank_correlation_that_is_rare():
    scores = scores_of(LONG)
    scores["delta_scd"] = scores["delta_ar"] ** 3  # rho = 1 over 8 models
    shown = texts_of(figures.fig5_structure(scores, rankings.correlations(scores)))
    assert "1.00*" in [t.get_text() for t in shown]
    few = scores.head(4)  # the exact p of a perfect order of four is 2 / 24
    shown = texts_of(figures.fig5_structure(few, rankings.correlations(few)))
    assert not [t for t in shown if t.get_text().endswith("*")]


def test_items_figure_says_what_one_model_cannot_show():
    one = figures.fig6_items(items_of(LONG[:1]), LONG[:1])
    assert "a spread\nneeds two or more models" in one.axes[1].get_xlabel()
    two = figures.fig6_items(items_of(LONG[:2]), LONG[:2])
    assert two.axes[1].get_ylabel().startswith("standard deviation")
    drawn = sum(len(line.get_xdata()) for line in two.axes[1].get_lines())
    assert drawn == 30


def test_scores_figure_without_intervals_and_without_a_score():
    scores = scores_of(LONG[:2]).assign(ci_low=np.nan, ci_high=np.nan)
    scores.loc[0, ["esfp", "rank"]] = [np.nan, pd.NA]
    figure = figures.fig3_scores(scores)
    assert figure.axes[0].get_xlabel() == "ESFP"
    assert [t.get_text() for t in figure.axes[0].texts][1] == "–"
    scores.loc[1, "cpc_kappa"] = np.nan
    shown = [t.get_text() for t in texts_of(figures.fig7_decomposition(scores))]
    assert "–" in shown and any(text.startswith("–  ") for text in shown)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("values", [[np.nan] * 3, [0.5] * 3, [0.5], [0.0, 1.0]])
def test_items_figure_of_few_or_equal_items(values):
    items = pd.DataFrame({"model": "m", "item_id": range(len(values)), "delta_scd": values})
    style.settle(figures.fig6_items(items, ["m"]))
    empty = scores_of(["m"]).assign(**dict.fromkeys(figures.SUBMETRICS, np.nan))
    style.settle(figures.fig7_decomposition(empty))
    style.settle(figures.fig8_judges(judges_of(["m"]).assign(delta_scd=np.nan), ["m"]))


def test_judges_figure_shows_one_interval_a_model_and_kind_of_labels():
    table = judges_of(["m", "n"])
    (axes,) = figures.fig8_judges(table, ["n", "m"]).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["n", "m"]
    lines = {line.get_label(): line for line in axes.lines if len(line.get_xdata()) == 2}
    shown = ["panel", "embedding alone", "a-judge-from-far-away alone"]
    assert set(shown) | {"panel, corrected by the reference"} <= set(lines)
    for each, label in zip(("panel", "embedding"), shown, strict=False):
        values = table[table["labels"] == each].set_index("model")["delta_scd"]
        np.testing.assert_allclose(lines[label].get_xdata(), values[["n", "m"]])
    gap = lines["panel, corrected by the reference"].get_xdata()
    assert np.isnan(gap).tolist() == [True, False]
    heights = [line.get_ydata()[0] for label, line in lines.items() if label in shown]
    assert -0.5 < heights[0] < heights[1] < heights[2] < 0.5


# ---- the numbers behind them -----------------------------------------------------------------


def test_gradient_averages_samples_before_items():
    rows = [("a", 0, 0.0, 1.0), ("a", 1, 1.0, np.nan), ("b", 0, 1.0, np.nan), ("b", 1, np.nan, 0.5)]
    measures = pd.DataFrame(rows, columns=["item_id", "sample", "ar", "scd"])
    measures = measures.assign(model="m", phrasing="P0")
    (row,) = findings.gradient(measures).to_dict("records")
    assert row == {"model": "m", "phrasing": "P0", "ar": 0.75, "scd": 0.75, "n_ar": 2, "n_scd": 2}


def test_spread_finds_ceiling_and_floor():
    values = {"top": (0.6, 0.8), "edge": (0.6, 0.6), "low": (0.0, 0.05), "alone": (0.9, np.nan)}
    items = pd.DataFrame(
        [
            {"model": model, "item_id": item, "delta_scd": value}
            for item, pair in values.items()
            for model, value in zip("ab", pair, strict=True)
        ]
    )
    table = findings.spread(items).set_index("item_id")
    assert table["group"].to_dict() == {"top": "ceiling", "edge": "between", "low": "floor"}
    assert table.loc["top", "sd"] == pytest.approx(0.2 / np.sqrt(2))
    one = findings.spread(items[items["model"] == "a"])
    assert len(one) == 4 and one["sd"].isna().all()
    facts = findings.facts(findings.gradient(measures_of(["a"])), items)
    assert facts["figures.items.ceiling"] == facts["figures.items.floor"] == 1
    assert facts["figures.delta_scd_items.a.q50"] == pytest.approx(0.6)


def test_example_is_the_widest_rise_with_all_three_known():
    scd = {  # P0, P2, P4
        "T1-01": (0.0, 1.0, np.nan),
        "T1-02": (0.2, 0.8, 0.1),
        "T1-03": (0.1, 0.7, 0.5),
        "T1-04": (0.0, 0.5, 1.0),
        "T1-05": (0.1, 0.7, 0.5),
    }
    measures = pd.DataFrame(
        [
            {"model": "m", "item_id": item, "phrasing": p, "sample": 0, "scd": value}
            for item, values in scd.items()
            for p, value in zip(("P0", "P2", "P4"), values, strict=True)
        ]
    )
    # T1-02, T1-03 and T1-05 rise by 0.6: the higher P4 wins, then the earlier item
    assert findings.choose_example(measures, "m") == "T1-03"
    assert findings.choose_example(measures.iloc[::-1], "m") == "T1-03"
    assert findings.choose_example(measures, "m", "T1-01") == "T1-01"
    with pytest.raises(files.DataError, match="example_item 'T9'"):
        findings.choose_example(measures, "m", "T9")
    with pytest.raises(files.DataError, match="example_model 'n'"):
        findings.choose_example(measures, "n")


def test_plan_names_what_a_run_cannot_show():
    def missing(**run):
        return {stem for stem, reason in findings.plan(**run).items() if reason}

    per_item = {"fig2_example", "fig4_gradient", "fig6_items", "table8_judges", "fig8_judges"}
    per_item |= {"fig16_floor", *findings.STANDINGS}
    ranked = {"table6_sensitivity", "fig5_structure"}
    per_item |= {*findings.STANDINGS, *findings.PROFILES, *findings.ITEMS}
    assert missing(released=True, models=8, floors=False) == per_item
    alone = {*ranked, *findings.STANDINGS, *findings.MULTIVERSE}
    assert missing(released=False, models=1) == alone
    assert missing(released=False, models=3, items=False) == set(findings.ITEMS)
    assert missing(released=False, models=3) == set()
    assert len(findings.plan(False, 3)) == 40
    assert missing(released=False, models=3, compared=["judge"]) == {"table10_stance_comparison"}
    assert missing(released=False, models=3, floors=False) == {"fig16_floor"}


def test_stale_files_go_and_names_stay_text(tmp_path):
    stale = findings.paths(tmp_path, "fig5_structure") + findings.paths(tmp_path, "table6_x")
    for path in stale:
        files.write_text(path, "old")
    for stem in ("fig5_structure", "table6_x", "fig9_never_there"):
        findings.forget(tmp_path, stem)
    assert len(stale) == 6 and not any(path.exists() for path in stale)
    files.write_text(tmp_path / "scores.csv", "model,rank,esfp\nNone,1,\n1.50,,0.5\n")
    table = findings.read_table(tmp_path / "scores.csv")
    assert table["model"].tolist() == ["None", "1.50"] and table["rank"].isna().tolist() == [0, 1]
    with pytest.raises(files.DataError, match="not there"):
        findings.read_table(tmp_path / "sensitivity.csv")
    with pytest.raises(files.DataError, match="not there"):
        findings.read_parameters(tmp_path, "judge")


def test_names_are_shortened_in_the_middle_and_never_math():
    assert style.elide("short") == "short"
    assert len(style.elide("x" * 50, 20)) == 20
    assert style.elide("a$b") == r"a\$b"
    assert style.elide("名 a\n b") == "□ a b"
