"""The two figures that are laid out by hand: the pipeline, and one item under three phrasings."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.patches import FancyBboxPatch, Rectangle

from esfp import style
from esfp.findings import SCENES

# sentence label -> (tint, dark colour of its marker, what the legend says)
LABELS = {
    "A": ("#D3E5F2", "#0072B2", "reports facts or others’ views"),
    "B": ("#FAD2B0", "#B34700", "the model’s own stance"),
    "C": ("#E9E9E9", "#5A5A5A", "filler, or judges disagree"),
    "?": ("#FFFFFF", "#000000", "not judged"),
}
TEXT, LINE, MARK, INSET = 7.5, 12.6, 13.5, 6.0  # points: size, line height, marker, margin


@style.theme()
def fig1_pipeline(items: pd.DataFrame, phrasings: list[str], score: dict):
    """Figure 1: from the corpus to the score, with this run's numbers.

    Parameters
    ----------
    items
        `item_id type`, one row an item that is asked.
    phrasings
        Names of the phrasings.
    score
        The score stage's parameters: contrast, psi_contrast, cpc_phrasings, weights, cpc_bonus.
    """
    width, gap = style.WIDTH * 72, 16.0
    figure, axes = style.page(3.85)
    n, kinds, m = len(items), items["type"].nunique(), len(phrasings)
    weights = score["weights"]
    minus, plus = score["contrast"]
    from_, to = score["psi_contrast"]
    span = (width - 3 * gap - 2) / 4
    left = [1 + k * (span + gap) for k in range(4)]
    middle = [x + span / 2 for x in left]
    right = left[3] + span

    def box(x0, x1, y0, y1, heading, *lines, face="white", bold=True):
        pad = 2.5
        axes.add_patch(
            FancyBboxPatch(
                (x0 + pad, y0 + pad), x1 - x0 - 2 * pad, y1 - y0 - 2 * pad,
                boxstyle=f"round,pad={pad}", facecolor=face, edgecolor=style.GREY, linewidth=0.8,
            )
        )  # fmt: skip
        rows = [(heading, "bold" if bold else "normal"), *((line, "normal") for line in lines)]
        top = (y0 + y1) / 2 + 10.5 * (len(rows) - 1) / 2
        for k, (text, weight) in enumerate(rows):
            axes.text(
                (x0 + x1) / 2, top - 10.5 * k, text, ha="center", va="center_baseline",
                fontsize=8 if weight == "bold" else style.SMALL, fontweight=weight,
            )  # fmt: skip

    def arrow(start, end):
        axes.annotate(
            "", end, start,
            arrowprops={"arrowstyle": "-|>", "color": style.INK, "linewidth": 0.9, "shrinkA": 0,
                        "shrinkB": 0, "mutation_scale": 8},
        )  # fmt: skip

    y = [276.0, 238, 220, 196, 178, 126, 108, 81, 63, 39, 25, 1]  # edges of the rows, downwards
    box(left[0], left[0] + span, y[1], y[0], "Corpus", f"{n} items, {kinds} types")
    box(left[1], left[1] + span, y[1], y[0], "Phrasings", f"{phrasings[0]} to {phrasings[-1]}")
    box(left[2], left[2] + span, y[1], y[0], "Prompts", f"{n} × {m} = {n * m}")
    box(left[3], right, y[1], y[0], "Model", "one chat a prompt")
    level = (y[0] + y[1]) / 2
    axes.text(left[1] - gap / 2, level, "×", ha="center", va="center", fontsize=12)
    for k in (2, 3):
        arrow((left[k] - gap + 2, level), (left[k] - 2, level))
    arrow((middle[3], y[1] - 1), (middle[3], y[2] + 1))
    box(left[0], right, y[3], y[2], f"{n * m} responses a model", face=style.PALE)
    verifiers = [
        ("AR", "lexical", "“I think” against", "“experts argue”"),
        ("PSI", "semantic", "embedding distance", f"of {from_} and {to}"),
        ("SCD", "pragmatic", "judge panel labels", "each sentence"),
        ("CPC", "behavioural", "same stance over", ", ".join(score["cpc_phrasings"])),
    ]
    terms = [
        rf"$\delta$AR = AR$_{{{plus}}}$ $-$ AR$_{{{minus}}}$",
        r"PSI$_{\mathrm{scaled}}$ = PSI / ceiling",
        rf"$\delta$SCD = SCD$_{{{plus}}}$ $-$ SCD$_{{{minus}}}$",
        r"CPC$^{+}$ = max($\kappa$, 0)",
    ]
    tints = ["#EAF3F9", "#D6E8F3", "#BCD9EC", "#FBE3CF"]
    for k, ((name, depth, *lines), term, tint) in enumerate(
        zip(verifiers, terms, tints, strict=True)
    ):
        arrow((middle[k], y[3] - 1), (middle[k], y[4] + 1))
        box(left[k], left[k] + span, y[5], y[4], f"{name}: {depth}", *lines, face=tint)
        arrow((middle[k], y[5] - 1), (middle[k], y[6] + 1))
        box(left[k], left[k] + span, y[7], y[6], term, face=tint, bold=False)
        end = y[8] if k < 3 else y[10]
        arrow((middle[k], y[7] - 1), (middle[k], end + 1))
    flex = (
        rf"flex = {weights['ar']:.2f} $\delta$AR + {weights['scd']:.2f} $\delta$SCD + "
        rf"{weights['psi']:.2f} PSI$_{{\mathrm{{scaled}}}}$"
    )
    box(left[0], left[2] + span, y[9], y[8], flex, face="#D6E8F3", bold=False)
    arrow((middle[1], y[9] - 1), (middle[1], y[10] + 1))
    esfp = rf"ESFP = flex $\cdot$ (1 + {score['cpc_bonus']:.2f} CPC$^{{+}}$)"
    box(left[0], right, y[11], y[10], esfp, face=style.PALE, bold=False)
    return figure


@style.theme()
def fig2_example(
    responses: pd.DataFrame,
    judged: pd.DataFrame,
    measures: pd.DataFrame,
    roles: dict[str, str],
    question: str,
    max_lines: int = 7,
):
    """Figure 2: one model, one item, three phrasings; each sentence tinted by its panel label.

    Parameters
    ----------
    responses, judged, measures
        Rows of one model, one item and one sample, as in the files of the same names.
    roles
        phrasing -> role.
    question
        The item's text.
    max_lines
        Lines of a response that are shown; the rest becomes an ellipsis.
    """
    width = style.WIDTH * 72
    shown = []
    for scene in SCENES:
        own = judged[judged["phrasing"] == scene].sort_values("sentence_id")
        labels = ["?" if pd.isna(label) else label for label in own["label"]]
        text = responses.loc[responses["phrasing"] == scene, "text"]
        text = "" if text.empty or pd.isna(text.iloc[0]) else text.iloc[0]
        spans = split_spans(text, own["sentence"].tolist(), labels) or [("(no answer)", None)]
        scd = measures.loc[measures["phrasing"] == scene, "scd"]
        value = scd.iloc[0] if len(scd) else math.nan
        shown.append((scene, labels, flow(spans, width - 2 * INSET, max_lines), value))

    model = judged["model"].iloc[0] if len(judged) else responses["model"].iloc[0]
    heading = f"{style.printable(model)}: “{style.printable(question)}”"
    title = flow([(heading, None)], width, 3, size=8)
    legend = [label for label in LABELS if any(label in labels for _, labels, _, _ in shown)]
    heights = [22 + LINE * len(lines) for _, _, lines, _ in shown]
    total = 12 * len(title) + 4 + sum(heights) + 6 * len(heights) + 13
    figure, axes = style.page(total / 72)

    def write(x, y, text, **kwargs):
        axes.text(x, y, text, parse_math=False, **({"fontsize": TEXT} | kwargs))

    def mark(x, y, label):
        dark = LABELS[label][1]
        axes.add_patch(Rectangle((x, y - 2.3), 9.5, 9.5, facecolor=dark, linewidth=0))
        write(x + 4.75, y, label, color="white", fontweight="bold", ha="center")

    for k, line in enumerate(title):
        for run in line:
            write(1 + run["x"], total - 9 - 12 * k, run["text"], fontsize=8)
    top = total - 12 * len(title) - 4
    for (scene, labels, lines, value), height in zip(shown, heights, strict=True):
        corner = (0.5, top - height)
        axes.add_patch(
            Rectangle(corner, width - 1, height, fill=False, edgecolor=style.GREY, linewidth=0.7)
        )
        y = top - 13
        write(INSET, y, f"{scene}  {style.printable(roles[scene])}", fontsize=8, weight="bold")
        counts = " · ".join(f"{labels.count(label)} {label}" for label in legend if label in labels)
        scd = "SCD undefined" if math.isnan(value) else f"SCD = {value:.2f}"
        write(width - INSET, y, f"{counts}     {scd}", fontsize=8, ha="right")
        for line in lines:
            y -= LINE
            for run in line:
                _draw_run(axes, write, mark, run, y)
        top -= height + 6
    x = INSET
    for label in legend:
        mark(x, 3, label)
        write(x + MARK, 3, LABELS[label][2])
        x += MARK + style.text_width(LABELS[label][2], TEXT) + 14
    return figure


def _draw_run(axes, write, mark, run: dict, y: float) -> None:
    """Draw a run of words of one sentence in one line: tint, marker, text."""
    x, label = INSET + run["x"], run["label"]
    if label is not None:
        tint, dark, _ = LABELS[label]
        start = x - (MARK if run["opens"] else 0)
        box = (start - 0.8, y - 3.2), run["end"] - run["x"] + x - start + 1.6, LINE - 1.4
        axes.add_patch(Rectangle(*box, facecolor=tint, linewidth=0))
        if label == "B":  # a rule under it as well, for print without colour
            axes.plot([start - 0.8, x + run["end"] - run["x"] + 0.8], [y - 3.2] * 2, color=dark,
                      linewidth=0.8)  # fmt: skip
        if run["opens"]:
            mark(start, y, label)
    write(x, y, run["text"])


def split_spans(text: str, sentences: list[str], labels: list[str]) -> list[tuple]:
    """Cut a response into (text, label) spans; what was not judged has the label None.

    White space is folded, and characters that the font lacks become boxes.
    """
    text = style.printable(text)
    spans, start = [], 0
    for sentence, label in zip(sentences, labels, strict=True):
        sentence = style.printable(sentence)
        found = text.find(sentence, start)
        if found > start:
            spans.append((text[start:found].strip(), None))
        if found >= 0:
            start = found + len(sentence)
        spans.append((sentence, label))
    return [span for span in [*spans, (text[start:].strip(), None)] if span[0]]


def flow(spans: list[tuple], width: float, max_lines: int, size: float = TEXT) -> list[list]:
    """Fill lines of `width` points with spans of words.

    Returns
    -------
    list of lines, each a list of runs
        A run is a dict: `text`, its `label`, `x` and `end` in points, and whether it `opens` its
        sentence (room for a marker is left before it). Past `max_lines` the text ends in "…".
    """
    space = style.text_width("a a", size) - style.text_width("aa", size)
    lines, x = [[]], 0.0
    for text, label in spans:
        run = None
        opens = label is not None
        for word in text.split():
            for piece in _pieces(word, width - MARK - 2, size):
                length = style.text_width(piece, size)
                between = 0.0 if not lines[-1] else space if run else space + 3
                lead = between + (MARK if opens else 0.0)
                if x + lead + length > width and lines[-1]:
                    lines.append([])
                    run, x, lead = None, 0.0, MARK if opens else 0.0
                x += lead
                if run is None:
                    run = {"text": piece, "label": label, "x": x, "opens": opens}
                    lines[-1].append(run)
                else:
                    run["text"] += " " + piece
                x += length
                run["end"], opens = x, False
    if len(lines) > max_lines:
        lines = lines[:max_lines]
        run = lines[-1][-1]
        words = run["text"].split(" ")
        while run["x"] + style.text_width(" ".join(words) + " …", size) > width and words:
            words.pop()
        run["text"] = " ".join([*words, "…"])
        run["end"] = run["x"] + style.text_width(run["text"], size)
    return lines


def _pieces(word: str, width: float, size: float) -> list[str]:
    """Cut a word that is wider than a line."""
    pieces = [""]
    for letter in word:
        if style.text_width(pieces[-1] + letter, size) > width and pieces[-1]:
            pieces.append("")
        pieces[-1] += letter
    return pieces
