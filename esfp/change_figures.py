"""Figures of changes: a forest of ablations, and a line of versions."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator

from esfp import style

NAMES = {
    "esfp": "ESFP",
    "flex": "flex",
    "delta_ar": "δAR",
    "delta_scd": "δSCD",
    "psi_mean": "PSI, mean",
    "psi_scaled": "PSI, scaled",
    "cpc_kappa": "CPC κ",
}


@style.theme()
def forest(changes: pd.DataFrame, statistics: tuple[str, ...] = ("esfp", "delta_scd")):
    """The change under each ablation with its interval, a panel a statistic, a colour a model.

    Parameters
    ----------
    changes : DataFrame
        name (of the ablation) and the columns of `changes.paired`.

    Returns
    -------
    Figure
    """
    known = changes[changes["statistic"].isin(statistics)].dropna(subset=["change"])
    names = list(dict.fromkeys(known["name"]))
    models = list(dict.fromkeys(known["model"]))
    height = 0.9 + len(names) * max(0.26, 0.1 * len(models))
    figure, axes = style.new(height, ncols=len(statistics), sharey=True, squeeze=False)
    for axis, statistic in zip(axes[0], statistics, strict=True):
        # a model without a score keeps its colour and its place
        rows = pd.MultiIndex.from_product([models, names], names=["model", "name"])
        mine = known[known["statistic"] == statistic].set_index(["model", "name"]).reindex(rows)
        mine = mine.reset_index().rename(columns={"model": "estimate", "name": "model"})
        style.estimates(axis, mine.assign(value=mine["change"]), names)
        axis.set_xlabel(f"change of {NAMES[statistic]} (no unit)")
        axis.xaxis.set_major_locator(MaxNLocator(5))
        for line in axis.get_lines():
            line.set_markersize(4)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, frameon=False)
    return figure


@style.theme()
def timeline(levels: pd.DataFrame):
    """Each measure over the versions with its interval, a panel a measure, a line a model.

    Parameters
    ----------
    levels : DataFrame
        series (the model), run, statistic, value, ci_low, ci_high; runs in the order of time.

    Returns
    -------
    Figure
    """
    shown = [name for name in NAMES if name in ("esfp", "delta_ar", "delta_scd", "psi_mean")]
    shown += ["cpc_kappa"]
    runs, series = (list(dict.fromkeys(levels[key])) for key in ("run", "series"))
    figure, axes = style.new(3.9, nrows=2, ncols=3, sharex=True)
    place = np.arange(len(runs))
    for axis, statistic in zip(axes.flat, shown, strict=False):
        for number, (name, look) in enumerate(style.looks(series).items()):
            rows = levels[(levels["statistic"] == statistic) & (levels["series"] == name)]
            rows = rows.set_index("run").reindex(runs)
            x = place + 0.12 * (number - (len(series) - 1) / 2)
            axis.vlines(x, rows["ci_low"], rows["ci_high"], color=look["color"], linewidth=1)
            axis.plot(x, rows["value"], **look, label=name)
        axis.set_ylabel(f"{NAMES[statistic]} (no unit)")
        axis.set_xticks(place, [style.elide(run, 14) for run in runs], rotation=20, ha="right")
        axis.tick_params(labelbottom=True)
        axis.set_xlim(-0.4, len(runs) - 0.6)
    axes.flat[-1].axis("off")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    axes.flat[-1].legend(handles, labels, loc="center", frameon=False)
    return figure
