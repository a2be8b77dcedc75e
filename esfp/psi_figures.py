"""What a reader sees of `esfp.psi`: the table of definitions and floors, and the floors drawn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import seaborn as sns

from esfp import style
from esfp.cells import DASH, Cell, Column, Table, interval, text, three


def table11(frame: pd.DataFrame, level: float = 0.95) -> Table:
    """Table 11: PSI and its floor, and the score under other definitions of PSI.

    Parameters
    ----------
    frame
        As psi.csv holds it; a run of released scores has no floor.
    level
        Of the intervals.
    """

    def percent(share: float) -> Cell:
        return (DASH if pd.isna(share) else f"{100 * share:.0f}%",)

    bounds = ("above_low", "above_high")
    columns = [
        Column("Model", "model", text, "l"),
        Column("PSI", "psi_published", three),
        Column("floor", "floor", three, optional=True),
        Column("above", "above", three, optional=True),
        Column(f"{100 * level:g}% CI", bounds, interval, "l", optional=True),
        Column("share", "floor_share", percent, optional=True),
        Column("ESFP", "esfp_published", three),
        Column("less floor", "esfp_above", three, optional=True),
        Column("fixed", "esfp_fixed", three),
        Column("contrast", "esfp_contrast", three, optional=True),
    ]
    there = [column for column in columns if set(np.atleast_1d(column.source)) <= set(frame)]
    return Table(frame, there)


@style.theme()
def fig16_floor(frame: pd.DataFrame, order: list[str], contrast: list[str]):
    """Figure 16: PSI of each model beside the distances within either prompt, and what is above.

    Parameters
    ----------
    frame
        As psi.csv holds it, for a run with floors.
    order
        Models from top to bottom.
    contrast
        The two phrasings of PSI.
    """
    first, second = contrast
    shown = frame[frame["n_floor"] > 0]
    kinds = {
        f"two answers to {first}": ("floor_first", "floor_first", "floor_first"),
        f"two answers to {second}": ("floor_second", "floor_second", "floor_second"),
        "floor: their mean": ("floor", "floor_low", "floor_high"),
        f"PSI: {first} to {second}": ("psi_paired", "psi_paired", "psi_paired"),
        "PSI above the floor": ("above", "above_low", "above_high"),
    }
    table = pd.concat(
        [
            shown[["model", *names]]
            .set_axis(["model", "value", "low", "high"], axis=1)
            .assign(estimate=kind)
            for kind, names in kinds.items()
        ]
    )
    rows = [name for name in order if name in set(shown["model"])]
    figure, axes = style.new(1.1 + 0.75 * len(rows))
    style.estimates(axes, table, rows)
    axes.set_xlabel("mean cosine distance (0 to 2), floor and excess with interval over items")
    axes.grid(axis="x", color=style.PALE)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    sns.despine(figure, left=True)
    return figure
