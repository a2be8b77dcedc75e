"""How firm a ranking is: other scoring rules, and rank correlations over few models.

Three-decimal tables tie models that were not tied. Ties are kept (Kendall's tau-b, mid-ranks),
and beside each statistic stand its values under the least and the most agreeing order of the
tied models.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations, permutations

import numpy as np
import pandas as pd
from scipy import stats

from esfp.equations import CPC_BONUS, leaderboard, psi_ceiling

HALF_UNIT = 0.0005  # of a number printed with three decimals
TINY = 1e-9  # for comparisons of floats that should be equal
RULES = {  # Table 6: weights of delta AR, delta SCD and scaled PSI; ceiling; CPC multiplier
    "published": ((0.20, 0.50, 0.30), "p95", "on"),
    "psi_ceiling_max": ((0.20, 0.50, 0.30), "max", "on"),
    "equal_weights": ((1 / 3, 1 / 3, 1 / 3), "p95", "on"),
    "scd_heavy": ((0.10, 0.70, 0.20), "p95", "on"),
    "psi_heavy": ((0.30, 0.30, 0.40), "p95", "on"),
    "ar_scd_even": ((0.40, 0.40, 0.20), "p95", "on"),
    "cpc_off": ((0.20, 0.50, 0.30), "p95", "off"),
    "scd_alone": ((0.0, 1.0, 0.0), "p95", "off"),
    "ar_alone": ((1.0, 0.0, 0.0), "p95", "off"),
    "psi_alone": ((0.0, 0.0, 1.0), "p95", "off"),
}
VARIABLES = ["esfp", "delta_ar", "delta_scd", "psi_scaled", "psi_mean", "cpc_kappa"]
FEWEST_MODELS = 3  # below this a rank correlation says nothing
MOST_PERMUTED = 8  # above this the exact p is left out: 9! orders and more


def break_ties(x, y, agree: bool) -> tuple[np.ndarray, np.ndarray]:
    """Rank x and y without ties, tied values in the order that agrees most (or least).

    Returns
    -------
    rank_x, rank_y : arrays of 0 .. n - 1
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    sign = 1 if agree else -1
    position = np.arange(len(x))
    order_x = np.lexsort((position, sign * y, x))
    order_y = np.lexsort((sign * position, sign * x, y))
    return np.argsort(order_x), np.argsort(order_y)


def sensitivity(scores: pd.DataFrame, printed: dict | None = None) -> pd.DataFrame:
    """Ranking under each rule of Table 6, against the table's own `esfp` (Section 6.4).

    Parameters
    ----------
    scores : DataFrame
        model, esfp, delta_ar, delta_scd, psi_mean, cpc_kappa. With a released table the reference
        is the published score.
    printed : dict, optional
        As `read_printed` returns it.

    Returns
    -------
    DataFrame, one row a rule
        rule, w_ar, w_scd, w_psi, psi_ceiling, cpc; tau (Kendall's tau-b, ties kept); tau_low and
        tau_high (the value under the least and the most agreeing order of tied models; equal to
        tau where none are tied); rank1; top4_same and bottom2_same (the same four models lead,
        the same two close in the same order); tau_printed, rank1_printed, verdict. No rows below
        three scored models.
    """
    scored = scores.dropna(subset=["esfp"])
    places = (printed or {}).get("sensitivity", {}).get("rules", {})
    rows = []
    for rule, (weights, ceiling_rule, cpc) in RULES.items():
        if len(scored) < FEWEST_MODELS:
            break
        bonus = CPC_BONUS if cpc == "on" else 0.0
        ranked = leaderboard(scored, psi_ceiling(scored["psi_mean"], ceiling_rule), weights, bonus)
        value = ranked.set_index("model")["esfp"].loc[scored["model"]].to_numpy()
        reference = scored["esfp"].to_numpy()
        low, high = (
            stats.kendalltau(*break_ties(value, reference, agree)).statistic
            for agree in (False, True)
        )
        lead, published = ranked["model"].tolist(), _best_first(scored)
        there = places.get(rule, {})
        tau = stats.kendalltau(value, reference).statistic
        tau_printed = float(there.get("tau", "nan"))
        rows.append(
            dict(zip(("w_ar", "w_scd", "w_psi"), weights, strict=True))
            | {
                "rule": rule,
                "psi_ceiling": ceiling_rule,
                "cpc": cpc,
                "tau": tau,
                "tau_low": low,
                "tau_high": high,
                "rank1": lead[0],
                "top4_same": set(lead[:4]) == set(published[:4]),
                "bottom2_same": lead[-2:] == published[-2:],
                "tau_printed": tau_printed,
                "rank1_printed": there.get("rank1"),
                "verdict": _tied_verdict(tau_printed, tau, (low, high), HALF_UNIT),
            }
        )
    columns = (
        "rule w_ar w_scd w_psi psi_ceiling cpc tau tau_low tau_high rank1 top4_same bottom2_same "
        "tau_printed rank1_printed verdict"
    ).split()
    return pd.DataFrame(rows, columns=columns)


def by_labels(scored: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """The ranking under other labels than the run's: each judge's alone, or corrected ones.

    Parameters
    ----------
    scored : dict
        Labels -> one row a model: model, esfp, rank, delta_scd, delta_scd_low, delta_scd_high,
        cpc_kappa, n_cpc. The first are the run's own.

    Returns
    -------
    DataFrame, one row labels x model
        labels, the columns above, and tau: Kendall's tau-b with the run's ranking, over the
        models that have both scores, missing below three. The rank is missing where these labels
        leave out a model that the run scores, for a place among fewer says something else.
    """
    own = next(iter(scored.values())).set_index("model")["esfp"].dropna()
    tables = []
    for labels, table in scored.items():
        value = table.set_index("model")["esfp"].reindex(own.index)
        both = value.notna()
        enough = both.sum() >= FEWEST_MODELS
        tau = stats.kendalltau(value[both], own[both]).statistic if enough else np.nan
        rank = table["rank"] if both.all() else pd.array([pd.NA] * len(table), "Int64")
        tables.append(table.assign(labels=labels, rank=rank, tau=tau))
    columns = (
        "labels model rank esfp delta_scd delta_scd_low delta_scd_high cpc_kappa n_cpc tau"
    ).split()
    return pd.concat(tables, ignore_index=True)[columns]


def _best_first(scores: pd.DataFrame) -> list[str]:
    return scores.sort_values("esfp", ascending=False, kind="stable")["model"].tolist()


def _tied_verdict(printed: float, value: float, orders, half: float) -> str:
    if np.isnan(printed):
        return "not printed"
    if abs(printed - value) <= half + TINY:
        return "as printed"
    near = any(abs(printed - order) <= half + TINY for order in orders)
    return "as printed with a tie broken" if near else "differs"


def correlations(scores: pd.DataFrame, printed: dict | None = None) -> pd.DataFrame:
    """Spearman's rho between the score and its parts over the models (Sections 6.1 and 6.3).

    Parameters
    ----------
    scores : DataFrame
        One row a model with the columns of `VARIABLES`.
    printed : dict, optional
        As `read_printed` returns it.

    Returns
    -------
    DataFrame, one row a pair
        a, b, n; rho (mid-ranks for ties); rho_low and rho_high (least and most agreeing order of
        tied models); p_t (two-sided, t approximation with n - 2 degrees of freedom), p_t_low and
        p_t_high (the same at rho_low and rho_high); p_exact (two-sided, all n! orders, up to 8
        models); rho_printed, p_printed, place, rho_verdict, p_verdict. No rows below three models.
    """
    notes = {(note["a"], note["b"]): note for note in (printed or {}).get("correlations", [])}
    rows = []
    for a, b in combinations(VARIABLES, 2):
        both = scores[[a, b]].dropna()
        if {a, b} == {"psi_scaled", "psi_mean"} or len(both) < FEWEST_MODELS:
            continue
        x, y = both[a].to_numpy(float), both[b].to_numpy(float)
        rho = _pearson(stats.rankdata(x), stats.rankdata(y))
        ends = [_pearson(*break_ties(x, y, agree)) for agree in (False, True)]
        note = notes.get((a, b), {})
        text = note.get("rho", "nan")
        half = 0.5 * 10.0 ** -len(text.partition(".")[2])
        p_values = [_p_t(value, len(x)) for value in (rho, *ends)]
        rows.append(
            {
                "a": a,
                "b": b,
                "n": len(x),
                "rho": rho,
                "rho_low": ends[0],
                "rho_high": ends[1],
                "p_t": p_values[0],
                "p_t_low": p_values[1],
                "p_t_high": p_values[2],
                "p_exact": _p_exact(x, y),
                "rho_printed": float(text),
                "p_printed": note.get("p"),
                "place": note.get("place"),
                "rho_verdict": _tied_verdict(float(text), rho, ends, half),
                "p_verdict": _p_verdict(note.get("p"), *p_values),
            }
        )
    columns = (
        "a b n rho rho_low rho_high p_t p_t_low p_t_high p_exact rho_printed p_printed place "
        "rho_verdict p_verdict"
    ).split()
    return pd.DataFrame(rows, columns=columns)


def _pearson(x, y) -> float:
    x, y = x - np.mean(x), y - np.mean(y)
    scale = np.sqrt((x @ x) * (y @ y))
    return float(x @ y / scale) if scale > 0 else float("nan")


def _p_t(rho: float, n: int) -> float:
    if np.isnan(rho) or abs(rho) >= 1 - TINY:
        return float("nan") if np.isnan(rho) else 0.0
    return float(2 * stats.t.sf(abs(rho) * np.sqrt((n - 2) / (1 - rho * rho)), n - 2))


def _p_exact(x, y) -> float:
    if len(x) > MOST_PERMUTED:
        return float("nan")
    a, b = (stats.rankdata(values) - (len(x) + 1) / 2 for values in (x, y))
    if not a.any() or not b.any():
        return float("nan")
    return float((np.abs(a[_orders(len(x))] @ b) >= abs(a @ b) - TINY).mean())


@cache
def _orders(n: int) -> np.ndarray:
    return np.array(list(permutations(range(n))))


def _p_verdict(printed: str | None, p: float, *tie_broken: float) -> str:
    if printed is None:
        return "not printed"
    if printed[0] in "<>":
        bound = float(printed[1:])
        agrees = [(p < bound) == (printed[0] == "<") for p in (p, *tie_broken)]
    else:
        half = 0.5 * 10.0 ** -len(printed.partition(".")[2])
        agrees = [abs(p - float(printed)) <= half + TINY for p in (p, *tie_broken)]
    if agrees[0]:
        return "as printed"
    return "as printed with a tie broken" if any(agrees) else "differs"
