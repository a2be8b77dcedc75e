"""Who served the answers: one name may be another model tomorrow.

An endpoint says with each answer which model and which configuration of it (a fingerprint) served
it. Where these change within a run, its answers are not of one model (Chen, Zaharia and Zou, 2024).
"""

from __future__ import annotations

import pandas as pd


def served(responses: pd.DataFrame) -> pd.DataFrame:
    """One row a model, served model and fingerprint.

    Parameters
    ----------
    responses : DataFrame
        As in responses/ (files.RESPONSES).

    Returns
    -------
    DataFrame
        model, served_model and fingerprint ('' where the endpoint gave none), answers (so many),
        first and last (when they were made), in the order of time within a model.
    """
    known = responses[responses["created_at"].notna()].fillna(
        {"served_model": "", "fingerprint": ""}
    )
    keys = ["model", "served_model", "fingerprint"]
    table = known.groupby(keys, sort=False)["created_at"].agg(["size", "min", "max"]).reset_index()
    table = table.rename(columns={"size": "answers", "min": "first", "max": "last"})
    places = {model: place for place, model in enumerate(responses["model"].unique())}
    order = table.assign(place=table["model"].map(places)).sort_values(["place", "first"])
    return order.drop(columns="place").reset_index(drop=True)


def within(table: pd.DataFrame) -> list[str]:
    """A line for each model whose answers several models or configurations served.

    Parameters
    ----------
    table : DataFrame
        From `served`.
    """
    lines = []
    for model, rows in table.groupby("model", sort=False):
        for column, what in (("served_model", "models"), ("fingerprint", "fingerprints")):
            counts = rows.groupby(column, sort=False)["answers"].sum()
            if len(counts) > 1:
                shares = ", ".join(f"{name or 'none given'} ({n})" for name, n in counts.items())
                lines.append(f"{model}: its answers come from {len(counts)} {what}: {shares}")
    return lines
