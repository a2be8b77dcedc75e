"""The paper's figures: tables in, one `matplotlib.figure.Figure` out.

Model names, item texts and responses are drawn as literal text. Colour never carries a
distinction alone: markers, letters, line styles or numbers say the same.
"""

from __future__ import annotations

import math

import matplotlib.transforms as transforms
import numpy as np
import pandas as pd
import seaborn as sns

from esfp import style
from esfp.cells import number
from esfp.findings import CEILING, FLOOR, spread

SUBMETRICS = {
    "delta_ar": r"$\delta$AR",
    "delta_scd": r"$\delta$SCD",
    "psi_scaled": r"PSI$_{\mathrm{scaled}}$",
    "cpc_kappa": r"CPC $\kappa$",
}


@style.theme()
def fig3_scores(scores: pd.DataFrame, level: float = 0.95):
    """Figure 3: ESFP of each model with its bootstrap interval, ranked.

    Parameters
    ----------
    scores
        `model rank esfp ci_low ci_high`; intervals may be missing.
    level
        Coverage of the intervals.
    """
    table = scores.sort_values("rank")
    figure, axes = style.new(0.75 + 0.27 * len(table))
    y = np.arange(len(table))
    axes.hlines(y, table["ci_low"], table["ci_high"], color=style.LOW, linewidth=2.2)
    for end in ("ci_low", "ci_high"):
        axes.plot(table[end], y, "|", color=style.LOW, markersize=7, markeredgewidth=1.2)
    axes.plot(table["esfp"], y, "o", color=style.INK, markersize=5.5)
    axes.set_yticks(y, [style.elide(name, 40) for name in table["model"]])
    axes.set_ylim(len(table) - 0.4, -0.6)
    bounded = table["ci_low"].notna().any()
    axes.set_xlabel(f"ESFP ({100 * level:g}% item-level bootstrap interval)" if bounded else "ESFP")
    axes.grid(axis="x", color=style.PALE)
    axes.margins(x=0.08)
    low, high = axes.get_xlim()
    axes.set_xlim(min(low, 0), max(high, 0))
    beside = transforms.blended_transform_factory(axes.transAxes, axes.transData)
    for row, low, high, value in zip(
        y, table["ci_low"], table["ci_high"], table["esfp"], strict=True
    ):
        text = number(value, 3)
        if not math.isnan(low):
            text += f"  [{number(low, 3)}, {number(high, 3)}]"
        axes.text(1.02, row, text, transform=beside, va="center", fontsize=style.SMALL)
    sns.despine(figure, left=True)
    axes.tick_params(axis="y", length=0)
    return figure


@style.theme()
def fig4_gradient(means: pd.DataFrame, roles: dict[str, str], order: list[str]):
    """Figure 4: mean AR and mean SCD over the phrasings, one line a model.

    Parameters
    ----------
    means
        As `esfp.findings.gradient` returns it. With one model its n stand above the points.
    roles
        phrasing -> role, the phrasings in the order of the axis.
    order
        Models in the order of the legend.
    """
    columns = 3 if max(len(name) for name in order) < 26 else 2
    rows = math.ceil(len(order) / columns)
    figure, panels = style.new(2.95 + 0.16 * rows, ncols=2, sharex=True)
    x = np.arange(len(roles))
    handles = []
    for axes, column, title in zip(
        panels,
        ("ar", "scd"),
        ("(a) Attribution rate (AR)", "(b) Stance content density (SCD)"),
        strict=True,
    ):
        for model, look in style.looks(order).items():
            line = means[means["model"] == model].set_index("phrasing")[column]
            handles += axes.plot(
                x, line.reindex(list(roles)), label=style.elide(model, 34), clip_on=False, **look
            )
        axes.set_title(title, loc="left", pad=16 if len(order) == 1 else 6)
        if len(order) == 1:  # with more the numbers would be a table
            counts = means.set_index("phrasing")[f"n_{column}"].reindex(list(roles), fill_value=0)
            above = axes.get_xaxis_transform()
            for place, n in enumerate(counts):
                axes.text(place, 1.03, f"n={n}", transform=above, ha="center", size=style.SMALL)
        axes.set_ylabel(f"mean {column.upper()} (0 to 1)")
        axes.set_ylim(0, 1)
        axes.grid(axis="y", color=style.PALE)
        labels = [style.elide(f"{key} {role}", 36) for key, role in roles.items()]
        axes.set_xticks(x, labels, rotation=38, ha="right", rotation_mode="anchor")
        axes.margins(x=0.06)
    sns.despine(figure)
    figure.legend(
        handles=handles[: len(order)], loc="outside lower center", ncols=columns, frameon=False,
        handlelength=2.8,
    )  # fmt: skip
    return figure


@style.theme()
def fig5_structure(scores: pd.DataFrame, correlations: pd.DataFrame):
    """Figure 5: (a) rank correlations of the sub-metrics, (b) flexibility against consistency.

    Parameters
    ----------
    scores
        `model flex cpc_kappa`; a model without κ is not in (b).
    correlations
        As `esfp.rankings.correlations` returns it. A star needs both of its p values below .05:
        with four models not even a perfect order is that rare.
    """
    names = list(SUBMETRICS)
    rho = pd.DataFrame(np.eye(len(names)), index=names, columns=names)
    texts = rho.map(lambda value: number(value, 2))
    for row in correlations.itertuples():
        for one, other in ((row.a, row.b), (row.b, row.a)):
            if one in names and other in names:
                star = "*" if np.nanmax([row.p_t, row.p_exact, 0]) < 0.05 else ""
                rho.loc[one, other] = row.rho
                texts.loc[one, other] = number(row.rho, 2) + star
    figure, (left, right) = style.new(2.95, ncols=2, width_ratios=[1, 1.25])
    labels = list(SUBMETRICS.values())
    sns.heatmap(
        rho, ax=left, vmin=-1, vmax=1, cmap="vlag", square=True, annot=texts, fmt="",
        mask=np.triu(np.ones_like(rho, dtype=bool), 1), linewidths=1, linecolor="white",
        xticklabels=labels, yticklabels=labels, annot_kws={"fontsize": 8},
        cbar_kws={"label": r"Spearman's $\rho$", "shrink": 0.62, "ticks": [-1, 0, 1]},
    )  # fmt: skip
    left.set_anchor("N")
    left.set_title("(a) Rank correlation (* p < .05)", loc="left")
    left.tick_params(length=0, rotation=0)

    known = scores.dropna(subset=["flex", "cpc_kappa"])
    x, y = known["flex"].to_numpy(float), known["cpc_kappa"].to_numpy(float)
    right.plot(x, y, "o", color=style.LOW, markersize=5)
    dashed = {"color": style.GREY, "linestyle": "--", "linewidth": 0.8, "zorder": 0}
    medians = [right.axvline(np.median(x), **dashed), right.axhline(np.median(y), **dashed)]
    right.margins(x=0.22, y=0.28)
    right.set_title("(b) Flexibility and consistency", loc="left")
    right.set_xlabel("flex, before modulation by CPC")
    right.set_ylabel(r"CPC $\kappa$ (at most 1)")
    corners = [
        right.text(
            (0.98 if high else 0.02), (0.98 if steady else 0.02),
            f"{'high' if high else 'low'} flex,\n{'consistent' if steady else 'inconsistent'}",
            transform=right.transAxes, ha="right" if high else "left",
            va="top" if steady else "bottom", style="italic", fontsize=style.SMALL,
            color=style.GREY,
        )
        for high in (False, True)
        for steady in (False, True)
    ]  # fmt: skip
    sns.despine(figure, ax=right)
    style.settle(figure)
    names = [style.elide(name, 22) for name in known["model"]]
    style.place_labels(right, np.column_stack([x, y]), names, corners, medians)
    return figure


@style.theme()
def fig6_items(items: pd.DataFrame, order: list[str]):
    """Figure 6: (a) δSCD of the items by model, (b) which items separate the models.

    With one model (b) shows that model's δSCD, sorted, since a spread between models needs two.

    Parameters
    ----------
    items
        `model item_id delta_scd`, missing where P1 or P2 has no SCD.
    order
        Models from top to bottom.
    """
    known = items.dropna(subset="delta_scd")
    several = len(order) > 1
    figure, (left, right) = style.new(
        max(2.5, 1.1 + 0.3 * len(order)), ncols=2, width_ratios=[1.2, 1]
    )
    sns.violinplot(
        known, x="delta_scd", y="model", order=order, orient="h", ax=left, cut=0, inner=None,
        density_norm="width", color="#CFE3F1", linewidth=0.8, width=0.85 if several else 0.55,
    )  # fmt: skip
    y = np.arange(len(order))
    quartiles = items.groupby("model")["delta_scd"].quantile([0.25, 0.5, 0.75]).unstack()
    low, median, high = quartiles.reindex(order).to_numpy().T
    left.hlines(y, low, high, color=style.INK, linewidth=1.6)
    left.plot(median, y, "D", color=style.INK, markersize=4.5, label="median, quartiles")
    left.axvline(0, color=style.GREY, linewidth=0.7, zorder=0)
    left.set_yticks(y, [style.elide(name, 24) for name in order])
    left.set_xlabel(r"$\delta$SCD of an item ($-$1 to 1)")
    left.set_ylabel("")
    left.set_title("(a) Items by model", loc="left")

    value = "sd" if several else "mean"
    table = spread(items).sort_values(
        [value, "item_id"], ascending=[False, True], ignore_index=True
    )
    for group, marker, size, color, text in (
        ("ceiling", "^", 5, style.HIGH, f"ceiling, mean > {CEILING}"),
        ("between", "o", 2.6, "#A0A0A0", "between"),
        ("floor", "v", 5, style.LOW, f"floor, mean < {FLOOR}"),
    ):
        some = table[table["group"] == group]
        right.plot(
            some.index + 1, some[value], marker, markersize=size, color=color, zorder=size,
            markeredgecolor="white", markeredgewidth=0.4 if size > 3 else 0,
            label=f"{text} ({len(some)})",
        )  # fmt: skip
    if several:
        right.set_title("(b) Spread between models", loc="left")
        right.set_ylabel(r"standard deviation of $\delta$SCD")
        right.set_xlabel("items, sorted")
        right.set_ylim(bottom=min(0, -0.02 * table[value].max()))
    else:
        for limit in (CEILING, FLOOR):
            right.axhline(limit, color=style.GREY, linestyle="--", linewidth=0.7, zorder=0)
        right.set_title(r"(b) $\delta$SCD of each item", loc="left")
        right.set_ylabel(r"$\delta$SCD ($-$1 to 1)")
        right.set_xlabel("items, sorted (a spread\nneeds two or more models)")
    handles = [*left.get_legend_handles_labels()[0], *right.get_legend_handles_labels()[0]]
    figure.legend(
        handles=handles, loc="outside lower center", ncols=4, frameon=False, handletextpad=0.1
    )
    sns.despine(figure)
    return figure


@style.theme()
def fig7_decomposition(scores: pd.DataFrame):
    """The write-up's heatmap: each sub-metric of each model, ranked by ESFP.

    Parameters
    ----------
    scores
        `model rank delta_ar delta_scd psi_scaled cpc_kappa`.
    """
    table = scores.sort_values("rank")
    values = table[list(SUBMETRICS)].astype(float)
    figure, axes = style.new(0.95 + 0.27 * len(table))
    texts = values.map(lambda value: number(value, 3))
    low, high = min(0.0, values.min(axis=None)), max(1.0, values.max(axis=None))  # NaN loses
    axes.set_facecolor(style.PALE)
    sns.heatmap(
        values, ax=axes, vmin=low, vmax=high, cmap="Blues", annot=texts, fmt="", linewidths=1,
        linecolor="white", annot_kws={"fontsize": 8}, cbar_kws={"label": "value"},
        xticklabels=list(SUBMETRICS.values()), yticklabels=False,
    )  # fmt: skip
    ranks = ["–" if pd.isna(rank) else int(rank) for rank in table["rank"]]
    names = [style.elide(name, 40) for name in table["model"]]
    labels = [f"{rank}  {name}" for rank, name in zip(ranks, names, strict=True)]
    axes.set_yticks(np.arange(len(table)) + 0.5, labels)
    axes.tick_params(length=0, rotation=0)
    axes.set_ylabel("")
    for (row, column), value in np.ndenumerate(values.to_numpy()):
        if math.isnan(value):  # seaborn leaves such a cell without its text
            axes.text(column + 0.5, row + 0.5, "–", ha="center", va="center")
    return figure


@style.theme()
def fig8_judges(judges: pd.DataFrame, order: list[str]):
    """Figure 8: δSCD of each model under the panel, each judge alone, and the correction.

    Parameters
    ----------
    judges
        As `esfp.rankings.by_labels` returns it.
    order
        Models from top to bottom.
    """
    names = {"panel": "panel", "corrected": "panel, corrected by the reference"}
    table = pd.DataFrame(
        {
            "model": judges["model"],
            "estimate": [names.get(each, f"{each} alone") for each in judges["labels"]],
            "value": judges["delta_scd"],
            "low": judges["delta_scd_low"],
            "high": judges["delta_scd_high"],
        }
    ).dropna(subset="value")
    kinds = table["estimate"].nunique()
    figure, axes = style.new(1.0 + 0.16 * kinds * len(order))
    style.estimates(axes, table, order)
    axes.set_xlabel(r"$\delta$SCD ($-$1 to 1) with 95% interval")
    axes.grid(axis="x", color=style.PALE)
    if kinds:
        figure.legend(loc="outside lower center", ncols=min(kinds, 4), frameon=False)
    sns.despine(figure, left=True)
    return figure
