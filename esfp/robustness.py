"""What conclusions hang on: Tables 21 and 22, Figures 13 to 15."""

from __future__ import annotations

import numpy as np
import pandas as pd
import seaborn as sns

from esfp import style
from esfp.cells import Cell, Column, Table, integer, interval, text, three
from esfp.multiverse import WEIGHTS, wide

BINS = 120
NAMES = {
    "panel": "labels",
    "splitter": "sentences",
    "attribution": "AR",
    "psi_contrast": "PSI between",
    "answers": "answers",
    "ceiling": "ceiling",
    "cpc": "multiplier",
}


def multiverse(firsts: pd.DataFrame, order: list[str], kept: pd.DataFrame) -> Table:
    """Table 21: how often a model is first, its range, and how often it stays above the next.

    Parameters
    ----------
    firsts, kept
        As `multiverse.firsts` and `multiverse.pairs` return them.
    order
        Models with a score, best first; the others follow.
    """
    table = firsts.set_index("model")
    table = table.reindex([*order, *(name for name in table.index if name not in order)])
    beside = kept.set_index(["first", "second"])["kept"]
    pairs = dict(zip(order, order[1:], strict=False))
    table["above_next"] = [
        beside.get((name, pairs[name]), np.nan) if name in pairs else np.nan for name in table.index
    ]

    def span(low: float, high: float) -> Cell:
        if np.isnan(low):
            return ("–",)
        return (f"{low:.0f}" if low == high else f"{low:.0f} to {high:.0f}",)

    return Table(
        table.reset_index(),
        [
            Column("Model", "model", text, "l"),
            Column("first", "first", three),
            Column("above the next", "above_next", three),
            Column("ranks", ("rank_low", "rank_high"), span, "l"),
            Column("middle 90% of ESFP", ("esfp_low", "esfp_high"), interval, "l"),
            Column("with a score", "scored", three),
        ],
    )


def shorter(frame: pd.DataFrame) -> Table:
    """Table 22: what dropping the least discriminating items changes."""
    return Table(
        frame,
        [
            Column("items kept", "kept", integer),
            Column("largest change", "change", three),
            Column("left-out models inside", "within", three),
            Column("their largest change", "change_left_out", three),
            Column("random items", "change_random", three),
        ],
    )


@style.theme()
def fig13_specifications(specifications: pd.DataFrame, order: list[str]):
    """Figure 13: the score of each model over all specifications, and the choices below.

    Specifications are sorted by the lead of the run's first model over its second (with one
    model, by its score). Below, the darker a stretch, the more of its specifications make that
    choice.

    Parameters
    ----------
    specifications
        As `multiverse.score` returns it.
    order
        Models with a score, best first.
    """
    scores = wide(specifications)[order]
    lead = scores[order[0]] - scores[order[1]] if len(order) > 1 else scores[order[0]]
    place = lead.sort_values(kind="stable").dropna().index
    count = specifications["model"].nunique()
    chosen = specifications.iloc[::count].reset_index(drop=True).loc[place]
    rows = []
    for name, label in NAMES.items():
        if name in chosen and specifications[name].nunique() > 1:
            rows += [(name, value, f"{label}: {value}") for value in chosen[name].unique()]
    rows += [(name, None, label) for name, label in zip(
        WEIGHTS, (r"weight of $\delta$AR", r"weight of $\delta$SCD", "weight of PSI"),
        strict=True)]  # fmt: skip
    figure, (top, below) = style.new(
        2.2 + 0.19 * len(rows), nrows=2, ncols=1, sharex=True,
        gridspec_kw={"height_ratios": [2.0, 0.19 * len(rows)]},
    )  # fmt: skip
    bins = np.minimum(np.arange(len(place)) * BINS // max(len(place), 1), BINS - 1)
    centre = np.arange(BINS) + 0.5
    for model, look in style.looks(order).items():
        grouped = scores.loc[place, model].groupby(bins)
        low, middle, high = (grouped.quantile(q).reindex(range(BINS)) for q in (0.1, 0.5, 0.9))
        top.fill_between(centre, low, high, color=look["color"], alpha=0.15, linewidth=0)
        line = {"color": look["color"], "linestyle": look["linestyle"]}
        top.plot(centre, middle, label=style.elide(model, 34), **line)
    if len(order) > 1:
        turn = (lead.loc[place] < 0).mean() * BINS
        if 0 < turn < BINS:
            top.axvline(turn, color=style.GREY, linewidth=0.8, linestyle=":")
            below.axvline(turn, color=style.GREY, linewidth=0.8, linestyle=":")
    top.set_ylabel("ESFP (no unit)")
    figure.legend(loc="outside upper center", ncols=min(len(order), 3), frameon=False)
    density = np.zeros((len(rows), BINS))
    for row, (name, value, _) in enumerate(rows):
        made = chosen[name].astype(float) if value is None else (chosen[name] == value)
        density[row] = pd.Series(np.asarray(made, float)).groupby(bins).mean().reindex(range(BINS))
    below.imshow(
        density, aspect="auto", cmap="Greys", vmin=0, vmax=1, interpolation="none",
        extent=(0, BINS, len(rows) - 0.5, -0.5),
    )  # fmt: skip
    below.set_yticks(range(len(rows)), [label for *_, label in rows], fontsize=style.SMALL)
    below.set_xticks([])
    of = "by the lead of the first model over the second" if len(order) > 1 else "by ESFP"
    below.set_xlabel(f"{len(place):,} specifications, sorted {of}")
    sns.despine(figure)
    return figure


@style.theme()
def fig14_weights(leaders: pd.DataFrame, order: list[str], published=(0.2, 0.5, 0.3)):
    """Figure 14: who is first, over all weights of the three parts (a ternary map).

    Parameters
    ----------
    leaders
        As `multiverse.leaders` returns it.
    order
        Models in the order of the legend.
    published
        The weights marked with a cross.
    """
    figure, axes = style.new(4.0, width=5.4)

    def at(weights) -> tuple[np.ndarray, np.ndarray]:
        ar, scd, psi = np.asarray(weights, float).T
        return psi + scd / 2, scd * np.sqrt(3) / 2 + 0 * ar

    looks = style.looks(order)
    for model, look in looks.items():
        mine = leaders[leaders["model"] == model]
        if len(mine):
            x, y = at(mine[WEIGHTS].to_numpy())
            axes.scatter(x, y, s=11, marker="h", color=look["color"], linewidths=0,
                         label=style.elide(model, 34))  # fmt: skip
    tied = leaders[leaders["model"] == ""]
    if len(tied):
        axes.scatter(*at(tied[WEIGHTS].to_numpy()), s=11, marker="h", color="white",
                     edgecolors=style.GREY, linewidths=0.3, label="tie, or no score")  # fmt: skip
    corners = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]])
    axes.plot(*at(corners), color=style.INK, linewidth=0.9)
    labels = ((r"$\delta$AR alone", "top"), (r"$\delta$SCD alone", "bottom"), ("PSI alone", "top"))
    for (x, y), (label, va) in zip(zip(*at(corners[:3]), strict=True), labels, strict=True):
        axes.annotate(label, (x, y), (0, -4 if va == "top" else 4), textcoords="offset points",
                      ha="center", va=va)  # fmt: skip
    x, y = at([published])
    axes.plot(x, y, "x", color="white", markersize=9, markeredgewidth=3.5)
    axes.plot(x, y, "x", color=style.INK, markersize=8, markeredgewidth=1.6, label="the paper's",
              linestyle="none")  # fmt: skip
    axes.set_aspect("equal")
    axes.axis("off")
    axes.margins(0.08)
    figure.legend(loc="outside right upper", frameon=False, markerscale=1.4)
    return figure


@style.theme()
def fig15_items_null(table: pd.DataFrame, chance: np.ndarray):
    """Figure 15: item-rest correlations, observed and where items are shuffled between models.

    Parameters
    ----------
    table
        As `item_analysis.table` returns it.
    chance
        As `item_analysis.null` returns it.
    """
    figure, axes = style.new(2.6, width=5.4)
    edges = np.linspace(-1, 1, 21)
    for values, label, look in (
        (chance[~np.isnan(chance)], "shuffled between models", {"fill": True, "alpha": 0.25}),
        (table["item_rest"].dropna().to_numpy(), "observed", {"fill": False, "linewidth": 1.6}),
    ):
        share, _ = np.histogram(np.clip(values, -1, 1), edges)
        color = style.PALETTE[0] if label == "observed" else style.GREY
        axes.stairs(share / max(len(values), 1), edges, label=label, color=color, **look)
    axes.set_xlabel("correlation of an item with the mean of the others (−1 to 1)")
    axes.set_ylabel("share of items (0 to 1)")
    axes.legend(frameon=False, loc="upper left")
    sns.despine(figure)
    return figure
