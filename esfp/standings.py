"""How sure the order of the models is: Tables 17 to 19 and Figures 11 and 12."""

from __future__ import annotations

import numpy as np
import pandas as pd
import seaborn as sns

from esfp import power, style
from esfp.cells import Cell, Column, Table, integer, interval, markup, text, three

NAMES = {"esfp": "ESFP", "delta_scd": r"$\delta\mathrm{SCD}$"}


def _statistic(name: str) -> Cell:
    return markup(NAMES[name])


def _p(value: float) -> Cell:
    return ("< 0.001",) if value < 0.001 else three(value)


def differences(frame: pd.DataFrame, level: float = 0.95) -> Table:
    """Table 17: differences of models, paired by draw; see `comparisons.differences`."""
    return Table(
        frame,
        [
            Column("", "statistic", _statistic, "l"),
            Column("Higher", "first", text, "l"),
            Column("Lower", "second", text, "l"),
            Column("difference", "difference", three),
            Column(f"{100 * level:g}% interval", ("ci_low", "ci_high"), interval, "l"),
            Column("$p$", "p", _p),
            Column("$p$ (Holm)", "p_holm", _p),
        ],
    )


def ranks(frame: pd.DataFrame, level: float = 0.95) -> Table:
    """Table 18: rank sets and rank shares; see `comparisons.ranks`."""

    def span(low: int, high: int) -> Cell:
        return (str(low) if low == high else f"{low} to {high}",)

    shares = [name for name in frame.columns if name.startswith("share_")]
    return Table(
        frame,
        [
            Column("Model", "model", text, "l"),
            Column("rank", "rank", integer),
            Column(f"ranks held with {100 * level:g}%", ("rank_low", "rank_high"), span, "l"),
            *(Column(f"rank {name.removeprefix('share_')}", name, three) for name in shares),
        ],
    )


def power_table(frame: pd.DataFrame) -> Table:
    """Table 19: items that tell two models apart; see `power.table`."""
    return Table(
        frame,
        [
            Column("", "statistic", _statistic, "l"),
            Column("Models", ("first", "second"), lambda a, b: (f"{a}, {b}",), "l"),
            Column("detectable", "detectable", three),
            Column("items needed", "items_needed", integer),
            Column("at best", "items_needed_samples", integer),
        ],
    )


@style.theme()
def fig11_ranks(frame: pd.DataFrame, level: float = 0.95):
    """Figure 11: share of draws at each rank, and the set of ranks that all models hold at once.

    Parameters
    ----------
    frame
        As `comparisons.ranks` returns it.
    """
    n = len(frame)
    figure, axes = style.new(1.3 + 0.34 * n)
    shares = frame[[f"share_{rank}" for rank in range(1, n + 1)]].to_numpy()
    sns.heatmap(
        shares, ax=axes, vmin=0, vmax=1, cmap="Blues", linewidths=2, annot=n <= 12, fmt=".2f",
        cbar_kws={"label": "share of draws (0 to 1)"},
    )  # fmt: skip
    for row, (low, high) in enumerate(zip(frame["rank_low"], frame["rank_high"], strict=True)):
        box = ((low - 1 + 0.04, row + 0.08), high - low + 0.92, 0.84)
        axes.add_patch(style.frame(*box))
    axes.set_yticks(np.arange(n) + 0.5, [style.elide(name, 34) for name in frame["model"]])
    axes.tick_params(axis="y", length=0, rotation=0)
    axes.set_xticks(np.arange(n) + 0.5, range(1, n + 1))
    axes.set_xlabel(f"rank by ESFP; framed: {100 * level:g}% set for all models at once")
    return figure


@style.theme()
def fig12_power(frame: pd.DataFrame, n_items: int):
    """Figure 12: power to find a difference of 0.05 against the number of items, by pair.

    Parameters
    ----------
    frame
        As `power.table` returns it; the pairs of its first statistic are drawn.
    n_items
        Items of this run, marked.
    """
    chosen = frame[frame["statistic"] == frame["statistic"].iloc[0]]
    chosen = chosen.sort_values("spread", kind="stable")
    if len(chosen) > 6:  # the easiest, the hardest, and what lies between
        chosen = chosen.iloc[np.linspace(0, len(chosen) - 1, 6).round().astype(int)]
    top = 2.0 * max(n_items, chosen["items_needed"].max())
    items = np.unique(np.geomspace(10, top, 40).round())
    figure, axes = style.new(2.9 + 0.18 * len(chosen))
    labels = [f"{style.elide(a, 30)}, {style.elide(b, 30)}" for a, b in
              zip(chosen["first"], chosen["second"], strict=True)]  # fmt: skip
    for row, (label, look) in zip(chosen.itertuples(), style.looks(labels).items(), strict=True):
        line = look | {"marker": None}
        axes.plot(items, power.curve(row.spread, items), label=label, **line)
    axes.axhline(power.POWER, color=style.GREY, linewidth=0.7)
    axes.axvline(n_items, color=style.GREY, linewidth=0.7, linestyle=":")
    axes.text(n_items, 1.02, "this run", ha="center", size=style.SMALL)
    axes.set_xscale("log")
    marks = [n * 10**k for k in range(1, 6) for n in (1, 2, 5) if n * 10**k <= top]
    axes.set_xticks(marks, [f"{mark:,}" for mark in marks])
    axes.minorticks_off()
    axes.set_ylim(0, 1)
    axes.set_xlabel("number of items, one sample a prompt (logarithmic)")
    axes.set_ylabel(f"power at a difference of {power.DIFFERENCE:g} (0 to 1)")
    sns.despine(figure)
    figure.legend(loc="outside lower center", ncols=1, frameon=False)
    return figure
