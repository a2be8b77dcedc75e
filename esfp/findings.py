"""What a run has to show: its tables, which figures it has data for, the numbers behind them."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from esfp import cells, files, style
from esfp.rankings import FEWEST_MODELS

CEILING, FLOOR = 0.6, 0.05  # mean δSCD of an item, caption of Figure 6
SCENES = ("P0", "P2", "P4")  # the phrasings of Figure 2
STANDINGS = ("table17_differences", "table18_ranks", "table19_power", "fig11_ranks", "fig12_power")
PROFILES = (
    *("table12_rigid", "table13_types", "table14_typology", "table15_bands", "table16_compliance"),
    *("table20_mixed", "table25_readings", "table24_licensed", "fig9_types", "fig10_typology"),
)
MULTIVERSE = ("table21_multiverse", "fig13_specifications", "fig14_weights")
ITEMS = ("table22_items", "fig15_items_null")


def plan(
    released: bool,
    models: int,
    compared: Collection[str] = ("judge", "stance"),
    floors: bool = True,
    items: bool = True,
) -> dict[str, str | None]:
    """Say for each table and figure None, or the reason why this run does not have it.

    Parameters
    ----------
    released
        The run starts from released score tables and has nothing per item.
    models
        Number of scored models.
    compared
        Which offline judges the run has compared with others: of sentences (judge), of responses
        (stance).
    floors
        Some model has two answers to the prompts of PSI.
    items
        The items of the run could be analysed.
    """
    stems = [
        *("table1_typology", "table2_phrasings", "table3_corpus", "table4_models"),
        *("table5_leaderboard", "table6_sensitivity", "table7_quantities", "table8_judges"),
        *("table9_judge_comparison", "table10_stance_comparison", "table11_psi"),
        *STANDINGS,
        *PROFILES,
        *MULTIVERSE,
        *ITEMS,
        *("fig1_pipeline", "fig2_example", "fig3_scores", "fig4_gradient"),
        *("fig5_structure", "fig6_items", "fig7_decomposition", "fig8_judges", "fig16_floor"),
    ]
    reasons = dict.fromkeys(stems)
    if not floors:
        reasons["fig16_floor"] = "needs two answers to a prompt; generate.again asks for a second"
    if released:
        by_item = ("fig2_example", "fig4_gradient", "fig6_items", "table8_judges", "fig8_judges")
        for stem in (*by_item, *STANDINGS, *PROFILES, *ITEMS):
            reasons[stem] = "needs responses by item; the released tables have one row a model"
    offline = {"judge": "table9_judge_comparison", "stance": "table10_stance_comparison"}
    for kind, stem in offline.items():
        if kind not in compared:
            reasons[stem] = "needs an offline judge; this run has none"
    if models < 2 and not released:
        for stem in (*STANDINGS, *MULTIVERSE):
            reasons[stem] = f"needs two models with a score; this run has {models}"
    if not items and not released:
        for stem in ITEMS:
            reasons[stem] = "needs three models that define most items"
    if models < FEWEST_MODELS:
        for stem in ("table6_sensitivity", "fig5_structure"):
            reasons[stem] = f"needs {FEWEST_MODELS} models or more; this run has {models}"
    return reasons


def paths(run_dir: str | Path, stem: str) -> list[Path]:
    """Return the files of a table or figure of a run."""
    table = stem.startswith("table")
    folder = Path(run_dir, "tables" if table else "figures")
    return [folder / f"{stem}.{suffix}" for suffix in (cells.FORMATS if table else style.FORMATS)]


def forget(run_dir: str | Path, stem: str) -> None:
    """Delete a table or figure that an earlier state of the run had and this one has not."""
    for path in paths(run_dir, stem):
        path.unlink(missing_ok=True)


def read_parameters(run_dir: str | Path, stage: str) -> dict:
    """Read the resolved parameters of a stage; empty where the run does not have the stage.

    Raises
    ------
    DataError
        If the file is missing.
    """
    path = Path(run_dir, "params", f"{stage}.yaml")
    if not path.exists():
        raise files.DataError(f"{path}: not there; run the stage through `python -m esfp.run`")
    return yaml.safe_load(path.read_text(encoding="utf-8")) or {}


def read_table(path: str | Path) -> pd.DataFrame:
    """Read a CSV of an earlier stage; names stay text, only an empty cell is missing.

    Raises
    ------
    DataError
        If the file is missing.
    """
    if not Path(path).exists():
        raise files.DataError(f"{path}: not there; run the score stage first")
    texts = "model vendor endpoint type rank1 labels statistic first second".split()
    names = dict.fromkeys(texts, str)
    types = names | {"rank": "Int64"}
    return pd.read_csv(path, dtype=types, keep_default_na=False, na_values=[""])


def read_results(run_dir: str | Path, stage: str) -> dict:
    """Read the numbers that a stage left; empty where the run does not have the stage."""
    path = Path(run_dir, "results", f"{stage}.json")
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def gradient(measures: pd.DataFrame) -> pd.DataFrame:
    """Mean AR and SCD by phrasing (Section 6.2), each over the items where it is defined.

    Samples of an item are averaged first, so that every item weighs the same.

    Returns
    -------
    DataFrame
        One row a model x phrasing: `model phrasing ar scd n_ar n_scd`.
    """
    cells = ["model", "phrasing", "item_id"]
    by_item = measures.groupby(cells, sort=False)[["ar", "scd"]].mean()
    by_phrasing = by_item.groupby(cells[:2], sort=False)
    counts = by_phrasing.count().add_prefix("n_")
    return by_phrasing.mean().join(counts).reset_index().sort_values(cells[:2], kind="stable")


def spread(items: pd.DataFrame) -> pd.DataFrame:
    """Mean and spread of δSCD over the models, item by item (Section 6.3, Figure 6b).

    Returns
    -------
    DataFrame
        One row an item whose δSCD is defined for two models, or for the only one: `item_id mean
        sd n group`; `sd` is the sample standard deviation (n - 1), missing for one model; `group`
        is `ceiling` (mean above 0.6), `floor` (mean below 0.05) or `between`.
    """
    table = (
        items.dropna(subset="delta_scd")
        .groupby("item_id", sort=False)["delta_scd"]
        .agg(mean="mean", sd="std", n="count")
        .reset_index()
    )
    table = table[table["n"] >= min(items["model"].nunique(), 2)].reset_index(drop=True)
    table["group"] = np.select(
        [table["mean"] > CEILING, table["mean"] < FLOOR], ["ceiling", "floor"], "between"
    )
    return table


def choose_example(measures: pd.DataFrame, model: str, item_id: str | None = None) -> str:
    """Choose the item of Figure 2: the widest rise of SCD from P0 to P2.

    Items with an SCD under all of P0, P2 and P4 come first; ties go to the higher SCD under P4,
    then to the earlier item_id. An item that is named is only checked.

    Raises
    ------
    DataError
        The model, or the named item, has no responses in this run.
    """
    own = measures[measures["model"] == model]
    if own.empty or (item_id is not None and item_id not in set(own["item_id"])):
        what = f"example_item '{item_id}'" if len(own) else f"example_model '{model}'"
        raise files.DataError(
            f"figures: {what} has no responses in this run; name one that was asked"
        )
    if item_id is not None:
        return item_id
    own = own[own["sample"] == own["sample"].min()]
    scd = own.pivot_table(index="item_id", columns="phrasing", values="scd", dropna=False)
    scd = scd.reindex(columns=list(SCENES))
    ranking = pd.DataFrame(
        {
            "known": scd.notna().sum(axis=1),
            "rise": (scd["P2"] - scd["P0"]).round(9),
            "last": scd["P4"],
        }
    ).fillna(-np.inf)
    ranking = ranking.sort_index().sort_values(list(ranking), ascending=False, kind="stable")
    return ranking.index[0]


def read_example(
    run_dir: str | Path, measures: pd.DataFrame, model: str, item_id: str
) -> tuple[pd.DataFrame, ...]:
    """Read what Figure 2 shows: responses, judged and measures of one item's first sample."""
    judges = [judge["name"] for judge in read_parameters(run_dir, "judge")["judges"]]
    frames = [
        files.read_parquet(Path(run_dir, folder, f"{files.slug(model)}.parquet"), schema)
        for folder, schema in (
            ("responses", files.RESPONSES),
            ("judged", files.judged_schema(judges)),
        )
    ]
    owns = [
        frame[(frame["model"] == model) & (frame["item_id"] == item_id)]
        for frame in (*frames, measures)
    ]
    return tuple(own[own["sample"] == own["sample"].min()] for own in owns)


def facts(means: pd.DataFrame, items: pd.DataFrame) -> dict[str, float]:
    """Numbers of Figures 4 and 6 by name, for the prose.

    Parameters
    ----------
    means
        As `gradient` returns it.
    items
        `model item_id delta_scd`.
    """
    found = {}
    for row in means.itertuples():
        for name in ("ar", "scd", "n_ar", "n_scd"):
            found[f"figures.{name}.{row.model}.{row.phrasing}"] = getattr(row, name)
    quartiles = items.groupby("model")["delta_scd"].quantile([0.25, 0.5, 0.75])
    for (model, share), value in quartiles.items():
        found[f"figures.delta_scd_items.{model}.q{share * 100:.0f}"] = value
    counts = spread(items)["group"].value_counts()
    for group in ("ceiling", "between", "floor"):
        found[f"figures.items.{group}"] = int(counts.get(group, 0))
    return found
