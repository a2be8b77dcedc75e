"""Speed, measured side by side in one run: the vectorised bootstrap beside what one would write.

`python -m esfp.bench` writes outputs/bench/bench.json and bench.md. Every way computes the same
draws of a made-up cohort (8 models, 104 items) from the table to the intervals, with kappa and the
ceiling recomputed in each draw, and is checked to give the same scores. Ratios hold for one
machine; seconds are there to show the scale.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.inter_rater import fleiss_kappa

from esfp import bootstrap, files
from esfp.equations import composite

MODELS, ITEMS, DRAWS, SEED = 8, 104, 1000, 20261130
SLOW = 10  # draws that the pandas loop is timed on: it takes the same time for each
ROUNDS = 5


def cohort(models: int = MODELS, n_items: int = ITEMS, seed: int = SEED) -> pd.DataFrame:
    """Per-item measures of made-up models, as in items.parquet, with a tenth undefined."""
    rng = np.random.default_rng(seed)
    frames = []
    for model in range(models):
        values = {
            name: np.where(rng.random(n_items) < 0.1, np.nan, rng.beta(2, 3, n_items))
            for name in ("ar_minus", "ar_plus", "scd_minus", "scd_plus", "psi")
        }
        frame = pd.DataFrame(values).assign(model=f"model-{model}")
        frame["item_id"] = [f"T1-{item:03d}" for item in range(n_items)]
        frame["type"], frame["cpc_status"] = "T1", "counted"
        frame["delta_ar"] = frame["ar_plus"] - frame["ar_minus"]
        frame["delta_scd"] = frame["scd_plus"] - frame["scd_minus"]
        leaning = rng.dirichlet(np.ones(4), n_items)
        frame[bootstrap.STANCES] = rng.multinomial(3, leaning)
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)[files.ITEMS.names]


def _ours(items: pd.DataFrame, draws: int) -> np.ndarray:
    forms, models = bootstrap.linear_forms(items)
    drawn = bootstrap.resample(bootstrap.multiplicities(len(forms), draws, SEED), forms, "full")
    bootstrap.intervals(drawn, models)
    return drawn["esfp"]


def _picks(n_items: int, draws: int) -> np.ndarray:
    return np.random.default_rng(SEED).integers(0, n_items, size=(draws, n_items))


def _pandas(items: pd.DataFrame, draws: int) -> np.ndarray:
    """Draw by draw and model by model with pandas, kappa by statsmodels."""
    parts = [part.reset_index(drop=True) for _, part in items.groupby("model", sort=False)]
    scores = []
    for pick in _picks(len(parts[0]), draws):
        rows = []
        for part in parts:
            drawn = part.iloc[pick]
            rows.append(
                {
                    "delta_ar": drawn["delta_ar"].mean(),
                    "delta_scd": drawn["scd_plus"].mean() - drawn["scd_minus"].mean(),
                    "psi": drawn["psi"].mean(),
                    "kappa": fleiss_kappa(drawn[bootstrap.STANCES].to_numpy()),
                }
            )
        table = pd.DataFrame(rows)
        scaled = (table["psi"] / table["psi"].quantile(0.95)).clip(0, 1)
        scores.append(composite(table["delta_ar"], table["delta_scd"], scaled, table["kappa"])[1])
    return np.array(scores)


def _numpy(items: pd.DataFrame, draws: int) -> np.ndarray:
    """Draw by draw and model by model with numpy arrays alone."""
    names = ["delta_ar", "scd_minus", "scd_plus", "psi"]
    parts = [
        (part[names].to_numpy(), part[bootstrap.STANCES].to_numpy(float))
        for _, part in items.groupby("model", sort=False)
    ]
    scores = np.empty((draws, len(parts)))
    for draw, pick in enumerate(_picks(len(parts[0][0]), draws)):
        rows = []
        for values, counts in parts:
            delta_ar, low, high, psi = np.nanmean(values[pick], axis=0)
            drawn = counts[pick]
            raters = drawn[0].sum()
            agreed = ((drawn * (drawn - 1)).sum(axis=1) / (raters * (raters - 1))).mean()
            chance = ((drawn.sum(axis=0) / drawn.sum()) ** 2).sum()
            rows.append((delta_ar, high - low, psi, (agreed - chance) / (1 - chance)))
        delta_ar, delta_scd, psi, kappa = np.array(rows).T
        scaled = np.clip(psi / np.percentile(psi, 95), 0, 1)
        scores[draw] = composite(delta_ar, delta_scd, scaled, kappa)[1]
    np.percentile(scores, [2.5, 97.5], axis=0)
    return scores


def _scipy(items: pd.DataFrame, draws: int) -> np.ndarray:
    """scipy.stats.bootstrap over item numbers, all draws in one call of the statistic."""
    forms, _ = bootstrap.linear_forms(items)

    def esfp(index, axis):
        counts = np.moveaxis(np.asarray(index, int), axis, -1).reshape(-1, len(forms))
        drawn = forms[counts]  # draws x items x forms x models
        ones = np.ones((1, len(forms)))
        sums = np.einsum("oi,difm->dfm", ones, drawn)
        found = bootstrap.resample(np.eye(len(sums)), sums, "full")["esfp"]
        return found.T if np.ndim(index) > 1 else found[0]

    result = stats.bootstrap(
        (np.arange(len(forms)),), esfp, n_resamples=draws, method="percentile",
        vectorized=True, rng=np.random.default_rng(SEED),
    )  # fmt: skip
    return result.bootstrap_distribution.reshape(-1, draws).T


WAYS: dict[str, tuple[Callable, int]] = {
    "vectorised": (_ours, DRAWS),
    "numpy loop": (_numpy, DRAWS),
    "scipy.stats.bootstrap": (_scipy, DRAWS),
    "pandas and statsmodels loop": (_pandas, SLOW),
}


def measure(rounds: int = ROUNDS) -> pd.DataFrame:
    """Seconds of each way for `DRAWS` draws, the ways taking turns, and the ratio to ours.

    Returns
    -------
    DataFrame, one row a way
        way, seconds (median over the rounds), ratio (to the vectorised way, median of the
        ratios within a round), draws (timed; fewer are scaled up).

    Raises
    ------
    AssertionError
        If two ways differ in a score.
    """
    items = cohort()
    seconds: dict[str, list[float]] = {name: [] for name in WAYS}
    for _ in range(rounds + 1):  # the first warms up
        scores = {}
        for name, (way, draws) in WAYS.items():
            start = time.perf_counter()
            scores[name] = way(items, draws)
            seconds[name].append((time.perf_counter() - start) * DRAWS / draws)
        for name, (_, draws) in WAYS.items():
            np.testing.assert_allclose(scores[name], scores["vectorised"][:draws], atol=1e-9)
    timed = pd.DataFrame(seconds).iloc[1:]
    table = pd.DataFrame(
        {
            "way": list(WAYS),
            "seconds": timed.median().to_numpy(),
            "ratio": timed.div(timed["vectorised"], axis=0).median().to_numpy(),
            "draws": [draws for _, draws in WAYS.values()],
        }
    )
    return table


def machine() -> dict:
    """What the figures were measured on; nothing that names the host."""
    return {
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "processor": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "pandas": pd.__version__,
        "load_before": round(os.getloadavg()[0], 2),
    }


def main() -> int:
    """Measure and write; prints the table."""
    facts = machine() | {"date": datetime.now(UTC).date().isoformat()}
    table = measure()
    files.write_json(
        "outputs/bench/bench.json", {"machine": facts, "bootstrap": table.to_dict("records")}
    )
    lines = ["| bootstrap, 8 models × 104 items × 1,000 draws | seconds | times ours |"]
    lines += ["| :-- | --: | --: |"]
    lines += [f"| {row.way} | {row.seconds:.3g} | {row.ratio:,.0f} |" for row in table.itertuples()]
    text = "\n".join(lines) + "\n"
    files.write_text("outputs/bench/bench.md", text)
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
