"""Recompute what a released score table lets anyone recompute, beside what was printed.

The table's inputs have three decimals, so each may be off by half a unit of the third. `low` and
`high` are the smallest and largest result that inputs within that distance can give; a printed
value is contradicted only where it lies outside them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from scipy import stats

from esfp import files
from esfp.equations import CPC_BONUS, WEIGHTS, composite, leaderboard, psi_ceiling
from esfp.rankings import HALF_UNIT, TINY

TEXT = ["model", "vendor", "endpoint", "type"]
NUMBERS = (
    "rank esfp delta_ar delta_scd psi_scaled cpc_kappa ci_low ci_high psi_mean flex n_cpc "
    "boot_mean boot_sd"
).split()


def read_released(path: str | Path) -> pd.DataFrame:
    """Read a released score table.

    Raises
    ------
    DataError
        If the file is missing, lacks a column, repeats a model, or a cell is not a number.
    """
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except FileNotFoundError:
        raise files.DataError(f"{path}: no such file; give `released:` the score table") from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise files.DataError(f"{path}: not a readable CSV table ({error})") from None
    missing = [name for name in [*TEXT, *NUMBERS] if name not in table]
    if missing or table.empty:
        raise files.DataError(
            f"{path}: "
            + (f"no column '{missing[0]}'" if missing else "no rows below the header")
            + f"; a released table has the columns {', '.join([*TEXT, *NUMBERS])}"
        )
    for name in NUMBERS:
        numbers = pd.to_numeric(table[name], errors="coerce")
        wrong = numbers.isna() & table[name].ne("")
        if wrong.any():
            row = int(wrong.to_numpy().argmax())
            raise files.DataError(
                f"{path}, line {row + 2}: {name} is '{table[name][row]}', expected a number"
            )
        table[name] = numbers.astype("Int64") if name in ("rank", "n_cpc") else numbers
    if table["model"].duplicated().any():
        twin = table.loc[table["model"].duplicated(), "model"].iloc[0]
        raise files.DataError(f"{path}: the model '{twin}' is there twice; keep one row a model")
    return table


def read_printed(released_path: str | Path) -> dict:
    """Read printed.yaml beside the released table; empty where there is none."""
    path = Path(released_path).with_name("printed.yaml")
    return yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else {}


def rescore(
    released: pd.DataFrame, rule="p95", weights=WEIGHTS, cpc_bonus: float = CPC_BONUS
) -> pd.DataFrame:
    """Score the released sub-metrics again; the intervals and n_cpc are taken over.

    What the released table does not hold (n_ar, n_scd, coverage) is null.
    """
    table = leaderboard(released, psi_ceiling(released["psi_mean"], rule), weights, cpc_bonus)
    return table.assign(n_ar=pd.NA, n_scd=pd.NA, coverage=np.nan)


def _verdict(printed: float, value: float, low: float, high: float, half: float) -> str:
    if np.isnan([printed, value]).any():
        return "not printed"
    if abs(printed - value) <= half + TINY:
        return "as printed"
    if low - half - TINY <= printed <= high + half + TINY:
        return "within rounding"
    return "differs"


def recompute(released: pd.DataFrame, printed: dict | None = None) -> pd.DataFrame:
    """Ceiling, scaled PSI, flex, ESFP and rank (Eqs. 4 and 6) beside Tables 5 and 7.

    Flex and ESFP are computed twice: from the raw PSI of Table 7 through the ceiling, and from
    the scaled PSI of Table 5, whose rounding reaches less far.

    Parameters
    ----------
    released : DataFrame
        As `read_released` returns it.
    printed : dict, optional
        As `read_printed` returns it; the ceiling is compared with it.

    Returns
    -------
    DataFrame, one row a quantity x model
        quantity, model (null for the ceiling), psi_from, printed, recomputed, low, high,
        difference (recomputed - printed), verdict: 'as printed' (equal when rounded), 'within
        rounding' (the inputs' rounding explains it), 'differs', or 'not printed'.
    """
    raw = released["psi_mean"].to_numpy(float)
    own = np.eye(len(raw), dtype=bool)

    def scaled_reach(step):  # PSI / ceiling grows with the model's own PSI and falls with others'
        psi = raw + np.where(own, step, -step)
        return np.clip(np.diag(psi) / psi_ceiling(psi), 0, 1)

    ceiling = psi_ceiling(raw)
    printed_ceiling = float((printed or {}).get("psi_ceiling", {}).get("value", "nan"))
    ends = psi_ceiling(np.stack([raw - HALF_UNIT, raw + HALF_UNIT]))
    frames = [
        _rows("psi_ceiling", [None], "psi_mean", [printed_ceiling], [ceiling], *ends[:, None])
    ]
    models = released["model"]
    scaled = np.clip(raw / ceiling, 0, 1)
    reach = scaled_reach(-HALF_UNIT), scaled_reach(HALF_UNIT)
    frames.append(_rows("psi_scaled", models, "psi_mean", released["psi_scaled"], scaled, *reach))
    given = released["psi_scaled"].to_numpy(float)
    given_reach = np.clip(given - HALF_UNIT, 0, 1), np.clip(given + HALF_UNIT, 0, 1)
    for source, psi, ends in (("psi_mean", scaled, reach), ("psi_scaled", given, given_reach)):
        values, low, high = _composite_reach(released, psi, ends)
        for i, name in enumerate(("flex", "esfp")):
            frames.append(_rows(name, models, source, released[name], values[i], low[i], high[i]))
        best = 1 + (low[1][None, :] > high[1][:, None]).sum(axis=1)
        worst = (high[1][None, :] >= low[1][:, None]).sum(axis=1)
        ranks = stats.rankdata(-values[1], method="min")
        frames.append(_rows("rank", models, source, released["rank"], ranks, best, worst))
    return pd.concat(frames, ignore_index=True)


def _composite_reach(released: pd.DataFrame, psi, ends):
    """(flex, esfp) as they are, at their smallest and at their largest."""
    ar, scd, kappa = (released[n].to_numpy(float) for n in ("delta_ar", "delta_scd", "cpc_kappa"))
    corners = [
        composite(ar + step, scd + step, end, kappa + kappa_step)
        for step, end in zip((-HALF_UNIT, HALF_UNIT), ends, strict=True)
        for kappa_step in (-HALF_UNIT, HALF_UNIT)
    ]
    return composite(ar, scd, psi, kappa), np.min(corners, axis=0), np.max(corners, axis=0)


def _rows(quantity, models, source, printed, values, low, high) -> pd.DataFrame:
    half = 0.0 if quantity == "rank" else HALF_UNIT
    table = pd.DataFrame(
        {
            "quantity": quantity,
            "model": pd.array(list(models), dtype="str"),
            "psi_from": source,
            "printed": np.asarray(printed, dtype=float),
            "recomputed": np.asarray(values, dtype=float),
            "low": np.asarray(low, dtype=float),
            "high": np.asarray(high, dtype=float),
        }
    )
    table["difference"] = table["recomputed"] - table["printed"]
    numbers = table[["printed", "recomputed", "low", "high"]].to_numpy()
    table["verdict"] = [_verdict(*row, half) for row in numbers]
    return table


def neighbours(scores: pd.DataFrame, printed: dict | None = None) -> pd.DataFrame:
    """Whether the intervals of neighbouring ranks overlap, beside the caption of Figure 3.

    Returns
    -------
    DataFrame, one row a pair of neighbouring ranks
        better, worse (models), ranks, ci_low of the better, ci_high of the worse, gap (their
        difference; negative where the intervals overlap), separated, separated_printed, verdict.
    """
    ordered = scores.sort_values("esfp", ascending=False, kind="stable").reset_index(drop=True)
    claim = (printed or {}).get("separated_ranks", {}).get("value")
    rows = []
    for i in range(len(ordered) - 1):
        better, worse = ordered.loc[i], ordered.loc[i + 1]
        gap = better["ci_low"] - worse["ci_high"]
        said = None if claim is None else [i + 1, i + 2] in claim
        verdict = "as printed" if said == (gap > 0) else "differs"
        rows.append(
            {
                "better": better["model"],
                "worse": worse["model"],
                "ranks": f"{i + 1}, {i + 2}",
                "ci_low": better["ci_low"],
                "ci_high": worse["ci_high"],
                "gap": gap,
                "separated": bool(gap > 0),
                "separated_printed": said,
                "verdict": "not printed" if said is None else verdict,
            }
        )
    return pd.DataFrame(rows)


def bootstrap_excess(released: pd.DataFrame, draws: int = 1000) -> pd.DataFrame:
    """How far the printed bootstrap mean lies above the printed score (Appendix D).

    With kappa and the ceiling held at their point estimates the composite is linear in means over
    the drawn items, so the mean over all possible draws is the score itself; the clip of scaled
    PSI at 1 can only lower it. What is left is the Monte Carlo error of `draws` draws.

    Returns
    -------
    DataFrame, one row a model
        model, esfp, boot_mean, excess, monte_carlo_se (boot_sd / sqrt(draws)), allowed (the
        rounding of both numbers and three standard errors), explained.
    """
    table = released[["model", "esfp", "boot_mean"]].copy()
    table["excess"] = table["boot_mean"] - table["esfp"]
    table["monte_carlo_se"] = released["boot_sd"] / np.sqrt(draws)
    table["allowed"] = 2 * HALF_UNIT + 3 * table["monte_carlo_se"]
    table["explained"] = table["excess"] <= table["allowed"] + TINY
    return table
