"""Figures of the judge notebook: how far judges agree, and on what they differ."""

from __future__ import annotations

from itertools import zip_longest

import numpy as np
import pandas as pd
import seaborn as sns

from esfp import style
from esfp.gold import LABELS

MEASURES = {"agreement": "share agreed", "kappa": "Cohen's κ", "ac1": "Gwet's AC1"}


@style.theme()
def intervals(table: pd.DataFrame):
    """Agreement by part of the run, with intervals: one row of axes a model.

    Parameters
    ----------
    table
        From `agreement.panel` by model and part.

    Returns
    -------
    Figure
    """
    models = list(table["model"].unique())
    figure, axes = style.new(1.5 * len(models) + 0.5, nrows=len(models), squeeze=False, sharex=True)
    for axis, model in zip(axes[:, 0], models, strict=True):
        rows = table[table["model"] == model]
        place = np.arange(len(rows))
        for shift, (name, look) in zip((-0.2, 0, 0.2), style.looks(MEASURES).items(), strict=True):
            value, low, high = (rows[name + end].to_numpy(float) for end in ("", "_low", "_high"))
            axis.vlines(place + shift, low, high, color=look["color"], linewidth=1)
            axis.plot(
                place + shift, value, look["marker"], color=look["color"], label=MEASURES[name],
                markersize=4,
            )  # fmt: skip
        axis.set_xticks(place, rows["part"])
        axis.set_ylim(top=1.03)
        axis.set_ylabel("agreement (at most 1)")
        axis.set_title(style.elide(model), loc="left")
        axis.grid(axis="y", color=style.PALE)
        axis.set_axisbelow(True)
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(), loc="outside upper right", ncols=3, frameon=False
    )
    sns.despine(figure)
    return figure


@style.theme()
def confusions(labelled: pd.DataFrame, first: str, second: str):
    """Labels of one judge by those of another, in per cent: by type above, by phrasing below.

    Parameters
    ----------
    labelled
        Rows of one model, or of all as one, from `agreement.parts`.

    Returns
    -------
    Figure
    """
    parts = dict(list(labelled.groupby("part")))
    types = sorted(set(labelled["type"]))
    phrasings = ["all", *sorted(set(labelled["phrasing"]))]
    pairs = list(zip_longest(types, phrasings))
    figure, axes = style.new(
        2.8, nrows=2, ncols=len(pairs), sharex=True, sharey=True, squeeze=False
    )
    for stacked, pair in zip(axes.T, pairs, strict=True):
        for axis, part in zip(stacked, pair, strict=True):
            if part is None:
                axis.axis("off")
                continue
            rows = parts[part]
            table = pd.crosstab(rows[f"label_{first}"], rows[f"label_{second}"])
            table = table.reindex(index=LABELS, columns=LABELS, fill_value=0)
            share = 100 * table / max(1, table.to_numpy().sum())
            # not seaborn's heatmap, which lays the whole figure out anew at each call
            axis.imshow(share, vmin=0, vmax=100, cmap="Blues")
            for (row, column), value in np.ndenumerate(share.to_numpy()):
                ink = "white" if value > 60 else style.INK
                look = {"ha": "center", "va": "center", "fontsize": style.SMALL, "color": ink}
                axis.text(column, row, f"{value:.0f}", **look)
            axis.set(title=part)
            axis.set_xticks(range(len(LABELS)), LABELS)
            axis.set_yticks(range(len(LABELS)), LABELS)
            axis.tick_params(length=0)
    figure.supxlabel(f"label of {style.elide(second)}", fontsize=8)
    figure.supylabel(f"label of {style.elide(first)}", fontsize=8)
    return figure
