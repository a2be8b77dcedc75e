"""What a model does where: Tables 12 to 16, 20, 24 and 25, Figures 9 and 10."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.patches import Ellipse

from esfp import rigid, style
from esfp.cells import DASH, Cell, Column, Table, integer, interval, text, three
from esfp.typology import CELLS

MEASURES = {
    "delta_ar": r"$\delta$AR",
    "delta_scd": r"$\delta$SCD",
    "psi_mean": "PSI",
    "cpc_kappa": r"CPC $\kappa$",
}
LIMITS = {
    "too_long": "too long",
    "too_many_paragraphs": "paragraphs",
    "markdown": "markdown",
    "filler_opening": "filler",
    "cut_off": "cut off",
    "any": "any",
}


def _percent(value: float) -> Cell:
    return (DASH,) if math.isnan(value) else (f"{100 * value:.0f}%",)


def rigid_models(frame: pd.DataFrame) -> Table:
    """Table 12: reference models, the mean over the models they are made of.

    Parameters
    ----------
    frame
        As `rigid.table` returns it with a column `cell`; means are over the models that have the
        value.
    """
    names = "scd_minus scd_plus delta_ar delta_scd psi_scaled cpc_kappa esfp".split()
    means = frame.groupby("kind", sort=False)[names].mean()
    means.insert(0, "answers", [rigid.KINDS[kind] for kind in means.index])
    cells = frame.groupby("kind", sort=False)["cell"].agg(
        lambda found: ", ".join(f"{cell} {n}" for cell, n in found.value_counts().items() if cell)
    )
    return Table(
        means.assign(cells=cells).reset_index(),
        [
            Column("Model", "kind", text, "l"),
            Column(r"$\mathrm{SCD}_{-}$", "scd_minus", three),
            Column(r"$\mathrm{SCD}_{+}$", "scd_plus", three),
            Column(r"$\delta\mathrm{AR}$", "delta_ar", three),
            Column(r"$\delta\mathrm{SCD}$", "delta_scd", three),
            Column(r"$\mathrm{PSI}_{\mathrm{scaled}}$", "psi_scaled", three),
            Column(r"CPC $\kappa$", "cpc_kappa", three),
            Column("ESFP", "esfp", three),
            Column("Cells", "cells", text, "l"),
        ],
    )


def types(frame: pd.DataFrame) -> Table:
    """Table 13: the measures by model and type; see `by_type.table`."""
    shown = frame[frame["measure"].isin(MEASURES)]
    table = shown.pivot_table(
        index=["model", "type", "items"], columns="measure", values="value", sort=False,
        dropna=False,
    )  # fmt: skip
    table = table.reindex(columns=list(MEASURES)).reset_index()
    for name in MEASURES:
        ends = shown[shown["measure"] == name].set_index(["model", "type"])[["ci_low", "ci_high"]]
        table = table.join(ends.add_prefix(f"{name}_"), on=["model", "type"])
    table = table[table["items"].notna() & table[list(MEASURES)].notna().any(axis=1)]
    columns = [Column("Model", "model", text, "l"), Column("Type", "type", text, "l")]
    for name, heading in (("delta_ar", r"$\delta\mathrm{AR}$"), ("psi_mean", "PSI")):
        columns.append(Column(heading, name, three))
    columns.append(Column(r"CPC $\kappa$", "cpc_kappa", three))
    columns.append(Column(r"$\delta\mathrm{SCD}$", "delta_scd", three))
    columns.append(Column("95% interval", ("delta_scd_ci_low", "delta_scd_ci_high"), interval, "l"))
    return Table(table, columns)


def licensed(shifts: pd.DataFrame, alarms: pd.Series) -> Table:
    """Table 24: shift where licensed and on facts, the score net of the latter, and the alarm."""
    wide = shifts.pivot(index="model", columns="quantity", values=["value", "ci_low", "ci_high"])
    wide.columns = [f"{name}_{end}" for end, name in wide.columns]
    wide = wide.reindex(shifts["model"].drop_duplicates()).reset_index()
    wide["alarm"] = wide["model"].map(alarms)
    return Table(
        wide,
        [
            Column("Model", "model", text, "l"),
            Column(r"$\delta\mathrm{SCD}$ licensed", "delta_scd_licensed_value", three),
            Column("open", "delta_scd_open_value", three),
            Column("on facts", "delta_scd_control_value", three),
            Column("net", "net_shift_value", three),
            Column("95% interval", ("net_shift_ci_low", "net_shift_ci_high"), interval, "l"),
            Column("ESFP", "esfp_value", three),
            Column("ESFP, net", "esfp_net_value", three),
            Column(r"facts: $\mathrm{SCD}_{-}$", "control_minus_value", three),
            Column(r"$\mathrm{SCD}_{+}$", "control_plus_value", three),
            Column("95% interval", ("control_plus_ci_low", "control_plus_ci_high"), interval, "l"),
            Column("alarm", "alarm", text, "l"),
        ],
    )


def typology(frame: pd.DataFrame) -> Table:
    """Table 14: the cell of Table 1 of each model, of its draws and of its items."""
    keys = [name.replace("-", "_") for name in CELLS]
    return Table(
        frame.drop(columns=["width", "height", "angle"]),
        [
            Column("Model", "model", text, "l"),
            Column(r"$\mathrm{SCD}_{-}$", "scd_minus", three),
            Column(r"$\mathrm{SCD}_{+}$", "scd_plus", three),
            Column("Cell", "cell", text, "l"),
            *(
                Column(f"draws {name}", f"draws_{key}", _percent)
                for name, key in zip(CELLS, keys, strict=True)
            ),
            *(
                Column(f"items {name}", f"items_{key}", _percent)
                for name, key in zip(CELLS, keys, strict=True)
            ),
        ],
    )


def bands(frame: pd.DataFrame) -> Table:
    """Table 15: share of items inside the band of a profile; see `bands.table`."""
    return Table(
        frame,
        [
            Column("Profile", "profile", lambda name: (name.replace("_", " "),), "l"),
            Column("Model", "model", text, "l"),
            Column("items inside", "share", _percent),
            Column("95% interval", ("ci_low", "ci_high"), interval, "l"),
            Column("$n$", "n", integer),
            Column("undefined", "undefined", integer),
        ],
    )


def compliance(frame: pd.DataFrame) -> Table:
    """Table 16: share of answers that break each limit, by model and phrasing."""
    return Table(
        frame,
        [
            Column("Model", "model", text, "l"),
            Column("Phrasing", "phrasing", text, "l"),
            Column("answers", "n", integer),
            *(Column(heading, name, _percent) for name, heading in LIMITS.items()),
        ],
    )


def readings(frame: pd.DataFrame) -> Table:
    """Table 25: the score under other readings of the answers; see `compliance.readings`."""
    return Table(
        frame,
        [
            Column("Reading", "reading", text, "l"),
            Column("Model", "model", text, "l"),
            Column("answers", "answers", integer),
            Column(r"$\delta\mathrm{AR}$", "delta_ar", three),
            Column(r"$n_{\mathrm{AR}}$", "n_ar", integer),
            Column(r"$\delta\mathrm{SCD}$", "delta_scd", three),
            Column(r"$\mathrm{PSI}_{\mathrm{mean}}$", "psi_mean", three),
            Column("ESFP", "esfp", three),
            Column("rank", "rank", integer),
        ],
    )


def mixed(frame: pd.DataFrame) -> Table:
    """Table 20: contrasts of the mixed model by type; see `mixed.contrasts`."""

    def small(value: float) -> Cell:
        return ("< 0.001",) if value < 0.001 else three(value)

    return Table(
        frame.drop(columns="reason"),
        [
            Column("Model", "model", text, "l"),
            Column("Type", "type", text, "l"),
            Column("sentences", "sentences", integer),
            Column("P2 less P1", "difference", three),
            Column("95% interval", ("ci_low", "ci_high"), interval, "l"),
            Column("$p$", "p", small),
            Column("$p$ (Holm)", "p_holm", small),
        ],
    )


@style.theme()
def fig9_types(frame: pd.DataFrame, order: list[str]):
    """Figure 9: the four measures by type, one panel a measure, one line of it a model.

    Parameters
    ----------
    frame
        As `by_type.table` returns it.
    order
        Models in the order of the legend.
    """
    kinds = sorted(frame["type"].unique())
    columns = 2 if max(len(name) for name in order) > 20 else 3
    rows = math.ceil(len(order) / columns)
    figure, grid = style.new(4.3 + 0.17 * rows, nrows=2, ncols=2, sharex=True)
    looks = style.looks(order)
    for axes, (name, title) in zip(grid.flat, MEASURES.items(), strict=True):
        mine = frame[frame["measure"] == name]
        for place, (model, look) in enumerate(looks.items()):
            one = mine[mine["model"] == model].set_index("type").reindex(kinds)
            x = np.arange(len(kinds)) + 0.7 * ((place + 0.5) / len(order) - 0.5)
            axes.vlines(x, one["ci_low"], one["ci_high"], color=look["color"], linewidth=1.2)
            shape = {"marker": look["marker"], "color": look["color"], "linestyle": "none"}
            axes.plot(x, one["value"], label=style.elide(model, 34), markersize=4.5, **shape)
        axes.axhline(0, color=style.GREY, linewidth=0.7, zorder=0)
        axes.set_title(title, loc="left")
        axes.set_xticks(range(len(kinds)), kinds)
        axes.grid(axis="y", color=style.PALE)
        axes.set_ylabel("0 to 2" if name == "psi_mean" else "−1 to 1")
    sns.despine(figure)
    handles, labels = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)
    return figure


@style.theme()
def fig10_typology(frame: pd.DataFrame, cut: float, level: float = 0.95):
    """Figure 10: each model in the plane of stance under P1 and P2, its ellipse and the cells.

    Parameters
    ----------
    frame
        As `typology.table` returns it.
    """
    known = frame.dropna(subset=["scd_minus", "scd_plus"])
    figure, axes = style.new(4.4, width=5.2)
    axes.axvline(cut, color=style.GREY, linewidth=0.9, linestyle="--")
    axes.axhline(cut, color=style.GREY, linewidth=0.9, linestyle="--")
    axes.plot([0, 1], [0, 1], color=style.PALE, zorder=0)
    places = {
        "over-aligned": (0, 0),
        "flexible": (0, 1),
        "erratic": (1, 0),
        "under-aligned": (1, 1),
    }
    for name, (right, top) in places.items():
        axes.text(
            0.985 if right else 0.015, 0.985 if top else 0.015, name, color=style.GREY,
            ha="right" if right else "left", va="top" if top else "bottom", style="italic",
        )  # fmt: skip
    for row, look in zip(known.itertuples(), style.looks(known["model"]).values(), strict=True):
        if not math.isnan(row.width):
            shape = Ellipse(
                (row.scd_minus, row.scd_plus), row.width, row.height, angle=row.angle,
                facecolor=look["color"], alpha=0.15, edgecolor=look["color"],
            )  # fmt: skip
            axes.add_patch(shape)
        axes.plot(row.scd_minus, row.scd_plus, linestyle="none", marker=look["marker"],
                  color=look["color"], label=style.elide(row.model, 34))  # fmt: skip
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_aspect("equal")
    axes.set_xlabel("mean SCD under P1 (0 to 1)")
    axes.set_ylabel("mean SCD under P2 (0 to 1)")
    sns.despine(figure)
    if len(known):
        columns = 2 if len(known) > 3 else 1
        figure.legend(loc="outside lower center", ncols=columns, frameon=False)
    return figure
