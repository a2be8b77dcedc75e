"""Which limits of the response prompt are broken, and what dropping such answers does."""

from __future__ import annotations

import pandas as pd

from esfp.equations import CPC_BONUS, WEIGHTS, leaderboard, psi_ceiling

LIMITS = ["too_long", "too_many_paragraphs", "markdown", "filler_opening", "cut_off"]


def shares(responses: pd.DataFrame) -> pd.DataFrame:
    """Share of usable answers that break each limit of Appendix A, by model and phrasing.

    Returns
    -------
    DataFrame, one row a model x phrasing, and one a model over all (phrasing 'all')
        model, phrasing, n (answers whose status is ok), one column a limit, any.
    """
    ok = responses[responses["status"] == "ok"]
    broken = ok[["model", "phrasing"]].copy()
    for limit in LIMITS:
        broken[limit] = [found is not None and limit in list(found) for found in ok["violations"]]
    broken["any"] = broken[LIMITS].any(axis=1)
    both = pd.concat([broken, broken.assign(phrasing="all")])
    grouped = both.groupby(["model", "phrasing"], sort=False)
    table = grouped[[*LIMITS, "any"]].mean()
    table.insert(0, "n", grouped.size())
    order = {model: place for place, model in enumerate(responses["model"].unique())}
    return table.reset_index().sort_values(
        ["model", "phrasing"], key=lambda c: c.map(order) if c.name == "model" else c,
        kind="stable", ignore_index=True,
    )  # fmt: skip


def readings(
    per_model: dict[str, pd.DataFrame],
    answers: dict[str, pd.Series],
    ceiling_rule="p95",
    weights=WEIGHTS,
    cpc_bonus: float = CPC_BONUS,
) -> pd.DataFrame:
    """The score under other readings of the same answers, each with its own ceiling.

    Parameters
    ----------
    per_model
        Name of the reading -> table as `score.per_model` returns it.
    answers
        Name of the reading -> number of answers that enter it, by model.

    Returns
    -------
    DataFrame, one row a reading x model
        reading, model, answers, delta_ar, n_ar, delta_scd, n_scd, psi_mean, cpc_kappa, esfp,
        rank; undefined parts stay undefined.
    """
    tables = []
    for name, table in per_model.items():
        ceiling = psi_ceiling(table["psi_mean"], ceiling_rule)
        scored = leaderboard(table, ceiling, weights, cpc_bonus)
        scored["answers"] = scored["model"].map(answers[name]).fillna(0).astype(int)
        tables.append(scored.assign(reading=name))
    columns = "reading model answers delta_ar n_ar delta_scd n_scd psi_mean cpc_kappa esfp rank"
    return pd.concat(tables, ignore_index=True)[columns.split()]


def numbers(shares: pd.DataFrame, readings: pd.DataFrame) -> dict:
    """Both tables by name, for results/score.json."""
    found = {}
    for row in shares.itertuples():
        for limit in [*LIMITS, "any"]:
            found[f"score.breaks.{limit}.{row.model}.{row.phrasing}"] = getattr(row, limit)
    for row in readings.to_dict("records"):
        reading = row["reading"].replace(" ", "_")
        for name in ("answers", "delta_ar", "n_ar", "delta_scd", "psi_mean", "esfp", "rank"):
            value = None if pd.isna(row[name]) else row[name]
            found[f"score.reading.{reading}.{name}.{row['model']}"] = value
    for name, part in readings.groupby("reading", sort=False):
        found[f"score.reading.{name.replace(' ', '_')}.scored"] = int(part["esfp"].notna().sum())
    return found
