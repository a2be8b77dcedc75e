"""Does a judge read the models of its own vendor as it reads others?

Models favour what they or their kin wrote (Panickssery et al., 2024). A higher share of B for a
vendor's own models need not be that: they may say more Bs. So a judge is also held against the
other judges and against the reference on the very same sentences, as a third party has to be in
order to tell a bias from a true difference (Spiliopoulou et al., 2025, arXiv:2508.06709).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from esfp.coefficients import estimates


def sides(judges: list[dict], models: list[dict]) -> dict[str, tuple[list[str], list[str]]]:
    """Which models a judge shares its vendor with, and which it is compared on.

    Vendors are equal where their names are but for case. A judge or a model whose vendor is not
    stated is on no side. Another judge's vendor is left out of the comparison, since that judge
    may favour it; only where nothing else is left are all other vendors taken.

    Parameters
    ----------
    judges, models
        As in the params file: name and, where it is known, vendor.

    Returns
    -------
    dict
        By judge: names of its own vendor's models, and of those that they are compared with. No
        judge for which either is empty.
    """
    vendor = {model["name"]: _vendor(model) for model in models if _vendor(model)}
    of_judges = {_vendor(judge) for judge in judges}
    found = {}
    for judge in judges:
        mine = _vendor(judge)
        own = [name for name, its in vendor.items() if its == mine]
        others = [name for name, its in vendor.items() if its != mine]
        neutral = [name for name in others if vendor[name] not in of_judges]
        if own and others:
            found[judge["name"]] = (own, neutral or others)
    return found


def note(sides: dict[str, tuple[list[str], list[str]]]) -> str:
    """Whom `compare` compares, as a Markdown list; where there is nobody, why."""
    if not sides:
        return (
            "There is nothing to compare: no judge of this run shares a stated vendor with one "
            "of its models but not with another. Offline judges have no vendor."
        )
    quoted = {
        judge: [", ".join(f"`{name}`" for name in side) for side in both]
        for judge, both in sides.items()
    }
    return "\n".join(
        f"- **{judge}**: its own vendor's {own}; others: {others}"
        for judge, (own, others) in quoted.items()
    )


def _vendor(user: dict) -> str:
    return (user.get("vendor") or "").strip().lower()


def compare(
    labelled: pd.DataFrame, judges: list[str], sides: dict[str, tuple[list[str], list[str]]]
) -> pd.DataFrame:
    """What each judge does on its own vendor's models, and on others.

    Parameters
    ----------
    labelled
        With `model`, `item_id`, a column `label_<judge>` for each of `judges`, and `reference`.
    sides
        From the function of that name.

    Returns
    -------
    DataFrame
        judge, measure, and with their 95% intervals by item own, others and difference (own −
        others). Measures are agreement with each other judge; share_B; beyond_B, by how much that
        share exceeds the mean of the other judges' on the sentences that all labelled; precision_B
        and recall_B against the reference. One that is undefined on a side has no row.
    """
    rows = []
    for judge, (own, others) in sides.items():
        read = labelled[labelled["model"].isin([*own, *others])]
        on_side = np.column_stack([read["model"].isin(own), read["model"].isin(others)])
        for measure, (above, below) in _measures(read, judge, judges).items():
            terms = np.stack([above, below], axis=1)[:, None, :] * on_side[:, :, None]
            row = estimates(_difference, terms, read["item_id"])
            if not np.isnan(row["difference"]):
                rows.append({"judge": judge, "measure": measure} | row)
    return pd.DataFrame(rows)


def _difference(sums: np.ndarray) -> dict[str, np.ndarray]:
    """From sums of shape (…, sides, 2): numerator and denominator of a share on either side."""
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = sums[..., 0] / sums[..., 1]
    own, others = shares[..., 0], shares[..., 1]
    return {"own": own, "others": others, "difference": own - others}


def _measures(
    labelled: pd.DataFrame, judge: str, judges: Sequence[str]
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Numerator and denominator of each measure, by sentence."""
    mine, reference = labelled[f"label_{judge}"], labelled["reference"]
    given, is_b = mine.notna().to_numpy(), mine.eq("B").to_numpy()
    known, is_true = reference.notna().to_numpy(), reference.eq("B").to_numpy()
    out = {}
    rest = [labelled[f"label_{other}"] for other in judges if other != judge]
    for theirs in rest:
        both = given & theirs.notna().to_numpy()
        alike = mine.eq(theirs).to_numpy()
        out[f"agreement with {theirs.name.removeprefix('label_')}"] = (both & alike, both)
    out["share_B"] = (is_b, given)
    if rest:
        all_gave = given & np.all([theirs.notna() for theirs in rest], axis=0)
        theirs = np.mean([theirs.eq("B") for theirs in rest], axis=0)
        out["beyond_B"] = ((is_b - theirs) * all_gave, all_gave)
    out["precision_B"] = (is_b & is_true, is_b & known)
    out["recall_B"] = (is_b & is_true, is_true & given)
    return {
        name: (above.astype(float), below.astype(float)) for name, (above, below) in out.items()
    }


def results(table: pd.DataFrame) -> dict[str, float]:
    """The differences of `compare` by name."""
    out: dict[str, float] = {}
    for row in table.to_dict("records"):
        measure = row["measure"].replace(" ", "_")
        for end in ("", "_low", "_high"):
            out[f"judge.own_vendor.{measure}{end}.{row['judge']}"] = row[f"difference{end}"]
    return out
