"""One instrument on successive versions of a model: what changed, and may the runs be compared?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from esfp import bootstrap, changes, drift, files, manifest

# what must be alike for two runs to measure alike: a name for it, and where a manifest holds it
ALIKE = {
    "items or phrasings": ("corpus_sha256",),
    "lexicons": ("lexicons_sha256",),
    "choice of items": ("corpus",),
    "prompts": ("prompts_sha256",),
    "judges": ("judge",),
    "scoring": ("score",),
    "samples a prompt": ("samples",),
    "sentence encoder": ("weights", "sentence encoder"),
}


def _at(data: Any, place: tuple[str, ...]) -> Any:
    for part in place:
        data = (data or {}).get(part)
    return data


def series(tables: dict[str, pd.DataFrame]) -> dict[str, dict[str, str]]:
    """Which model of each run is a version of which: name of the series -> run -> model.

    Where every run has one model, these are the versions; otherwise those of the same name are.

    Parameters
    ----------
    tables : dict
        run -> its table of items.

    Raises
    ------
    DataError
        If no model is in all runs.
    """
    models = {run: list(table["model"].unique()) for run, table in tables.items()}
    if all(len(names) == 1 for names in models.values()):
        versions = {run: names[0] for run, names in models.items()}
        distinct = list(dict.fromkeys(versions.values()))
        return {" to ".join(dict.fromkeys((distinct[0], distinct[-1]))): versions}
    first, *others = models.values()
    shared = [name for name in first if all(name in names for names in others)]
    if not shared:
        raise files.DataError(
            f"no model is in all of {', '.join(models)}: give runs of one model each, or runs that "
            "share a model's name"
        )
    return {name: dict.fromkeys(models, name) for name in shared}


def warnings(runs: list[str], lines: dict[str, dict[str, str]]) -> list[str]:
    """What differs between the runs besides the model, a line each; and drift within a run.

    Parameters
    ----------
    lines : dict
        From `series`.
    """
    found = {run: manifest.read(run) for run in runs}
    out = []
    for before, after in zip(runs, runs[1:], strict=False):
        first, second = found[before], found[after]
        for what, place in ALIKE.items():
            if _at(first, place) != _at(second, place):
                out.append(f"{before} and {after} differ in their {what}")
        learnt = [
            {name: digest for name, digest in each["inputs"].items() if "/gold/" in name}
            for each in (first, second)
        ]
        if learnt[0] != learnt[1]:
            out.append(f"{before} and {after} differ in the reference labels")
        for name, versions in lines.items():
            one, other = versions[before], versions[after]
            if first["decoding"][one] != second["decoding"][other]:
                out.append(f"{name}: {before} and {after} differ in decoding")
            for key, what in (("served_models", "served model"), ("fingerprints", "fingerprint")):
                a, b = first["served"][one][key], second["served"][other][key]
                if a != b:
                    shown = " against ".join(", ".join(each) or "none given" for each in (a, b))
                    out.append(f"{name}: {before} and {after} differ in the {what}: {shown}")
    for run in runs:
        names = [versions[run] for versions in lines.values()]
        responses = files.read_shards(Path("outputs", run, "responses"), names, files.RESPONSES)
        out += [f"{run}: {line}" for line in drift.within(drift.served(responses))]
    return out


def aligned(
    tables: dict[str, pd.DataFrame], lines: dict[str, dict[str, str]]
) -> dict[str, pd.DataFrame]:
    """The tables on the items that all runs have, each model under the name of its series.

    Raises
    ------
    DataError
        If the runs have no item in common.
    """
    first, *others = tables.values()
    sets = [set(table["item_id"]) for table in others]
    ids = [item for item in first["item_id"].unique() if all(item in each for each in sets)]
    if not ids:
        raise files.DataError(f"{', '.join(tables)} have no item in common")
    out = {}
    for run, table in tables.items():
        names = {versions[run]: name for name, versions in lines.items()}
        mine = table[table["model"].isin(names)]
        mine = mine.assign(model=mine["model"].map(names))
        out[run] = changes.restrict(mine, ids, list(lines))
    return out


def levels(tables: dict[str, pd.DataFrame], score: dict, settings: dict) -> pd.DataFrame:
    """Every statistic of every run with its interval, over the same draws.

    Parameters
    ----------
    tables : dict
        From `aligned`.
    score, settings : dict
        The params' `score`, its ceiling a number, and `bootstrap`.

    Returns
    -------
    DataFrame
        run, series, statistic, value, ci_low, ci_high.
    """
    rows = []
    for run, table in tables.items():
        n, names = table["item_id"].nunique(), table["model"].unique()
        draws = bootstrap.multiplicities(n, settings["draws"], settings["seed"])
        point = changes.scored(table, np.ones((1, n)), score)
        drawn = changes.scored(table, draws, score)
        for statistic in changes.STATISTICS:
            low, high = changes.quantiles(drawn[statistic], settings["level"])
            rows += [
                (run, name, statistic, point[statistic][0, at], low[at], high[at])
                for at, name in enumerate(names)
            ]
    return pd.DataFrame(rows, columns="run series statistic value ci_low ci_high".split())


def steps(tables: dict[str, pd.DataFrame], score: dict, settings: dict) -> pd.DataFrame:
    """`changes.paired` of each run against the one before, and of the last against the first."""
    runs = list(tables)
    pairs = list(zip(runs, runs[1:], strict=False))
    if len(runs) > 2:
        pairs.append((runs[0], runs[-1]))
    found = [
        changes.paired((tables[a], score), (tables[b], score), settings).assign(before=a, after=b)
        for a, b in pairs
    ]
    table = pd.concat(found, ignore_index=True).rename(columns={"model": "series"})
    return table[["before", "after", *table.columns[:-2]]]


def moved(
    first: tuple[str, pd.DataFrame],
    last: tuple[str, pd.DataFrame],
    lines: dict[str, dict[str, str]],
    phrasing: str,
    most: int = 5,
) -> pd.DataFrame:
    """Items whose δSCD moved most, with the texts of both runs under `phrasing` side by side.

    Returns
    -------
    DataFrame
        series, item_id, change (of the item's δSCD), and a column of text a run.
    """
    keys = ["model", "item_id"]
    both = first[1][[*keys, "delta_scd"]].merge(last[1][[*keys, "delta_scd"]], on=keys)
    both["change"] = both["delta_scd_y"] - both["delta_scd_x"]
    both = both.dropna(subset=["change"])
    both["size"] = both["change"].abs()
    top = both.sort_values(["size", "item_id"], ascending=[False, True], kind="stable")
    top = top.groupby("model", sort=False).head(most).drop(columns="size")
    top = top.rename(columns={"model": "series"})[["series", "item_id", "change"]]
    for run, _ in (first, last):
        models = [versions[run] for versions in lines.values()]
        texts = files.read_shards(Path("outputs", run, "responses"), models, files.RESPONSES)
        texts = texts[(texts["phrasing"] == phrasing) & (texts["sample"] == 0)]
        texts = texts.set_index(keys)["text"]
        found = zip(top["series"], top["item_id"], strict=True)
        top[run] = [texts.get((lines[name][run], item)) for name, item in found]
    return top.reset_index(drop=True)
