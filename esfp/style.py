"""One look for every figure: theme, colours, text that fits, and files that come out the same.

Figures are drawn at their printed size (`WIDTH` is the text width of the paper), so a font size
here is the size in print. They are plain `matplotlib.figure.Figure` objects outside pyplot:
nothing is shown twice in a notebook and nothing global is left behind.
"""

from __future__ import annotations

import io
import itertools
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import matplotlib
import numpy as np
import seaborn as sns
from matplotlib import patheffects
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.patches import Rectangle

from esfp import files

WIDTH = 6.3  # inches
SMALL = 7.5  # points, the smallest text anywhere
FORMATS = ("svg", "pdf", "png")

# Okabe and Ito's colours without the yellow, which is lost on white paper
PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9", "#7F7F7F"]
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "p"]  # 11 and 8: pairs repeat late
DASHES = ["-", (0, (5, 1.5)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5))]
INK, GREY, PALE = "#222222", "#6B6B6B", "#EFEFEF"
HIGH, LOW = PALETTE[1], PALETTE[0]

RC = {
    "font.family": ["DejaVu Sans"],  # comes with matplotlib, so it is the same everywhere
    "mathtext.fontset": "dejavusans",
    "font.size": 8.0,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8.0,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "legend.fontsize": SMALL,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": GREY,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.linewidth": 0.7,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "xtick.major.size": 3,
    "ytick.major.size": 3,
    "lines.linewidth": 1.3,
    "lines.markersize": 5,
    "hatch.linewidth": 0.6,
    "text.hinting": "none",  # widths measured here are the widths in the vector files
    "figure.dpi": 200,
    "savefig.dpi": 200,
    "svg.fonttype": "path",
    "svg.hashsalt": "esfp",
    "pdf.fonttype": 42,
}


@contextmanager
def theme():
    """The look of all figures, for the time of a `with` block or, as `@theme()`, of a call."""
    with matplotlib.rc_context():
        sns.set_theme(context="paper", style="ticks", palette=PALETTE, rc=RC)
        yield


def new(height: float, width: float = WIDTH, **subplots):
    """Return a figure of `width` x `height` inches and the axes of `Figure.subplots`."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(**subplots)


def page(height: float, width: float = WIDTH):
    """Return a figure and one bare axes that fills it, its coordinates points from bottom left."""
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width * 72), ylim=(0, height * 72))
    axes.axis("off")
    return figure, axes


def settle(figure: Figure) -> None:
    """Lay the figure out once and keep that layout (it is slow, and a second pass can move it)."""
    with theme():
        figure.draw_without_rendering()
    figure.set_layout_engine("none")


def save(figure: Figure, folder: str | Path, stem: str) -> Path:
    """Write `folder/stem.svg`, `.pdf` and `.png`; equal figures give equal bytes.

    A file whose bytes would not change is left alone. Returns the path of the PNG, which a
    notebook can show.
    """
    settle(figure)
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}
    for name in FORMATS:
        sink = io.BytesIO()
        with theme():
            figure.savefig(sink, format=name, metadata=undated[name])
        files.write_bytes(Path(folder) / f"{stem}.{name}", sink.getvalue())
    return Path(folder) / f"{stem}.png"


def looks(names) -> dict[str, dict]:
    """Colour, marker and dashes a model, distinct in print without colour for 11 models."""
    cycle = zip(itertools.cycle(PALETTE), itertools.cycle(MARKERS), itertools.cycle(DASHES))
    return {
        name: {"color": color, "marker": marker, "linestyle": dashes}
        for name, (color, marker, dashes) in zip(names, cycle, strict=False)
    }


def frame(corner: tuple[float, float], width: float, height: float) -> Rectangle:
    """An empty rectangle that frames part of a plot, in data coordinates."""
    return Rectangle(corner, width, height, fill=False, edgecolor=INK, linewidth=1.6)


def estimates(axes, table, order: list[str]) -> None:
    """Draw estimates and their intervals, one row a model, one line of it an estimate.

    Parameters
    ----------
    axes
        Matplotlib axes; the value is along x.
    table
        DataFrame of model, estimate (its name in the legend), value, low, high; what is missing
        leaves a gap.
    order
        Models from top to bottom.
    """
    kinds = list(dict.fromkeys(table["estimate"]))
    for place, (kind, look) in enumerate(looks(kinds).items()):
        mine = table[table["estimate"] == kind].set_index("model").reindex(order)
        y = np.arange(len(order)) + 0.7 * ((place + 0.5) / len(kinds) - 0.5)
        axes.hlines(y, mine["low"], mine["high"], color=look["color"], linewidth=1.4)
        shape = {"marker": look["marker"], "color": look["color"], "linestyle": "none"}
        axes.plot(mine["value"], y, label=kind, **shape)
    axes.axvline(0, color=GREY, linewidth=0.7, zorder=0)
    for border in range(1, len(order)):
        axes.axhline(border - 0.5, color=PALE, zorder=0)
    axes.set_yticks(range(len(order)), [elide(name, 30) for name in order])
    axes.set_ylim(len(order) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)


def elide(name: str, limit: int = 28) -> str:
    """Shorten a name in its middle to `limit` characters; its dollar signs start no formula."""
    text = printable(name)
    if len(text) > limit:
        tail = (limit - 1) // 2
        text = f"{text[: limit - 1 - tail]}…{text[-tail:]}"
    return text.replace("$", r"\$")


@cache
def _font():
    return get_font(findfont(FontProperties(family=RC["font.family"])))


def printable(text: str) -> str:
    """One line of `text`, white space folded, a box for each character the font lacks."""
    folded = " ".join(str(text).split())
    return "".join(c if _font().get_char_index(ord(c)) else "\N{WHITE SQUARE}" for c in folded)


@cache
def _ruler():
    return FigureCanvasAgg(Figure(figsize=(0.1, 0.1), dpi=720)).get_renderer()


@cache
def text_width(text: str, size: float, weight: str = "normal") -> float:
    """Width of one line of literal text, in points."""
    prop = FontProperties(family=RC["font.family"], size=size, weight=weight)
    with matplotlib.rc_context({"text.hinting": RC["text.hinting"]}):
        width, _, _ = _ruler().get_text_width_height_descent(text, prop, ismath=False)
    return width / 10


def place_labels(axes, points: np.ndarray, labels: list[str], obstacles=(), lines=()) -> list:
    """Write each label beside its point, off every other label, point and obstacle.

    Each label tries 16 directions at growing distances and takes the cheapest place, given where
    the others stand; the rounds go on until nobody moves. The layout of the figure must be final.

    Parameters
    ----------
    axes
        Matplotlib axes inside a figure with an Agg canvas.
    points
        Shape (labels, 2), data coordinates.
    labels
        One text a point.
    obstacles
        Artists that labels keep clear of.
    lines
        Artists that labels keep clear of where that costs little.

    Returns
    -------
    list of Annotation
    """
    scale = axes.figure.dpi / 72  # pixels a point
    renderer = axes.figure.canvas.get_renderer()
    halo = [patheffects.withStroke(linewidth=2, foreground="white")]
    notes = [
        axes.annotate(
            text, point, (0, 0), textcoords="offset points", fontsize=SMALL, path_effects=halo
        )
        for text, point in zip(labels, points, strict=True)
    ]

    def extents(artists, pad: float) -> np.ndarray:
        boxes = [artist.get_window_extent(renderer).padded(pad * scale) for artist in artists]
        return np.array([box.extents for box in boxes]).reshape(-1, 4)

    sizes = extents(notes, 0)[:, 2:] - extents(notes, 0)[:, :2]
    centres = axes.transData.transform(np.asarray(points, dtype=float))
    dots = np.hstack([centres - 5 * scale, centres + 5 * scale])
    walls = np.vstack([extents(obstacles, 2), dots])
    soft, frame = extents(lines, 1), extents([axes.patch], 0)

    radius = np.repeat([7, 11, 16, 22, 30, 40], 16)
    angle = np.tile(np.arange(16) * np.pi / 8, 6)
    turn = np.column_stack([np.cos(angle), np.sin(angle)])
    steps = turn * radius[:, None] * scale
    # boxes[k, s]: label k at spot s; it hangs on its point by the side that faces it
    lower = centres[:, None] + steps - sizes[:, None] * (1 - turn) / 2
    boxes = np.concatenate([lower, lower + sizes[:, None]], axis=2)

    # parts[k, s]: the label's box, then little boxes along the line from its point to it
    nearest = np.clip(centres[:, None], boxes[..., :2], boxes[..., 2:])
    along = np.linspace(0.4, 0.9, 6)[:, None] * (nearest - centres[:, None])[..., None, :]
    along = centres[:, None, None] + along * (radius > 11)[:, None, None]
    leads = np.concatenate([along - scale, along + scale], axis=-1)
    parts = np.concatenate([boxes[..., None, :] + scale * np.array([-1, -1, 1, 1]), leads], axis=2)

    area = sizes.prod(axis=1)
    fixed = [
        50 * (_overlaps(own, walls) + area[k] - _overlaps(own, frame))
        + 0.3 * _overlaps(own, soft)
        + radius * scale
        for k, own in enumerate(boxes)
    ]
    chosen = np.full(len(notes), -1)
    for _ in range(12):
        before = chosen.copy()
        for k, own in enumerate(parts):
            others = [parts[j, spot] for j, spot in enumerate(chosen) if j != k and spot >= 0]
            hits = _overlaps(own.reshape(-1, 4), np.array(others).reshape(-1, 4))
            chosen[k] = np.argmin(fixed[k] + 50 * hits.reshape(len(radius), -1).sum(axis=1))
        if (chosen == before).all():
            break
    for k, note in enumerate(notes):
        box = boxes[k, chosen[k]]
        note.set_position((box[:2] - centres[k]) / scale)
        note.set_in_layout(False)
        if radius[chosen[k]] > 11:
            end = (np.clip(centres[k], box[:2], box[2:]) - centres[k]) / scale
            line = {"arrowstyle": "-", "color": GREY, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 3}
            leader = axes.annotate(
                "", points[k], end, textcoords="offset points", arrowprops=line, zorder=2
            )
            leader.set_in_layout(False)
    return notes


def _overlaps(boxes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Area that each of `boxes` (n, 4) shares with `others` (m, 4), summed over these: (n,)."""
    low = np.maximum(boxes[:, None, :2], others[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], others[None, :, 2:])
    return np.clip(high - low, 0, None).prod(axis=2).sum(axis=1)
