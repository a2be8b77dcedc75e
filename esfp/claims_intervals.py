"""Checks of the bootstrap: intervals, tiers, ties, means and standard deviations.

Every public function here is a check that paper/claims.yaml may name; it takes the evidence and
returns one or more readings.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import stats

from esfp.claims_evidence import Evidence, Reading
from esfp.equations import CPC_BONUS
from esfp.published import bootstrap_excess, neighbours
from esfp.rankings import HALF_UNIT


def _interval(evidence: Evidence, model: str) -> tuple[float, float]:
    return evidence.cell(model, "ci_low"), evidence.cell(model, "ci_high")


def _ranked(evidence: Evidence, rank: int) -> str:
    order = evidence.table["esfp"].astype(float).sort_values(ascending=False, kind="stable")
    return order.index[rank - 1]


def overlap(evidence: Evidence, models: list[str]) -> list[Reading]:
    """Whether the intervals of all the models have a part in common, and how large it is."""
    lows, highs = zip(*(_interval(evidence, model) for model in models), strict=True)
    common = min(highs) - max(lows)
    widest = max(high - low for low, high in zip(lows, highs, strict=True))
    text = f"common part of width {common:.3f}, widest interval {widest:.3f}"
    return [Reading(text, true=common > 0, possible=common > -2 * HALF_UNIT)]


def overlap_heavily(evidence: Evidence, models: list[str]) -> list[Reading]:
    """Whether intervals overlap heavily: over half of the narrowest, and holding each score."""
    lows, highs = zip(*(_interval(evidence, model) for model in models), strict=True)
    common = min(highs) - max(lows)
    narrowest = min(high - low for low, high in zip(lows, highs, strict=True))
    outside = [
        f"{one} outside that of {other}"
        for one in models
        for other in models
        if not lows[models.index(other)] <= evidence.cell(one, "esfp") <= highs[models.index(other)]
    ]
    return [
        Reading(
            f"{common / narrowest:.0%} of the narrowest",
            true=common > narrowest / 2,
            label="more than half shared",
        ),
        Reading("; ".join(outside) or "yes", true=not outside, label="others' scores inside"),
    ]


def apart(evidence: Evidence, pairs: dict[str, str]) -> list[Reading]:
    """Whether, pair by pair, the interval of one model lies above that of the other."""
    readings = []
    for better, worse in pairs.items():
        low, high = evidence.cell(better, "ci_low"), evidence.cell(worse, "ci_high")
        text = f"{better} from {low:.3f}, {worse} to {high:.3f}"
        readings.append(Reading(text, true=low > high, possible=low - high > -2 * HALF_UNIT))
    return readings


def separated(evidence: Evidence, ranks: list[int]) -> list[Reading]:
    """Whether the intervals of two ranks do not overlap."""
    better, worse = (_ranked(evidence, rank) for rank in ranks)
    return apart(evidence, {better: worse})


def boundaries(evidence: Evidence) -> list[Reading]:
    """Number of neighbouring ranks whose intervals do not overlap."""
    rows = neighbours(evidence.table.reset_index(drop=True))
    apart = rows["ranks"][rows["separated"]].tolist()
    return [Reading(len(apart), label=f"below rank {', '.join(pair[0] for pair in apart)}")]


def most_reliable(evidence: Evidence, ranks: list[int]) -> list[Reading]:
    """Whether a gap between ranks is among the two clearest, read in three ways."""
    table = evidence.table.sort_values("esfp", ascending=False, kind="stable")
    low, high, score, sd = (
        table[name].to_numpy(float) for name in ("ci_low", "ci_high", "esfp", "boot_sd")
    )
    gap, error = -np.diff(score), np.hypot(sd[:-1], sd[1:])
    reach = (
        (gap - 2 * HALF_UNIT) / (error + 1.5 * HALF_UNIT),
        (gap + 2 * HALF_UNIT) / (error - 1.5 * HALF_UNIT),
    )
    k = ranks[0] - 1
    readings = []
    for label, clarity in (
        ("difference of scores", gap),
        ("distance of the intervals", low[:-1] - high[1:]),
        ("difference over its standard error", gap / error),
    ):
        text = ", ".join(f"{i + 1}|{i + 2} {value:.3f}" for i, value in enumerate(clarity))
        readings.append(Reading(text, true=(clarity > clarity[k]).sum() < 2, label=label))
    possible = (np.delete(reach[0], k) > reach[1][k]).sum() < 2
    readings[-1] = replace(readings[-1], possible=bool(possible))
    return readings


def wide(evidence: Evidence, model: str) -> list[Reading]:
    """Whether a model's interval is wide: above the median width, and among the widest three."""
    width = evidence.column("ci_high") - evidence.column("ci_low")
    own = width[evidence.models.index(model)]
    rank = int((width > own).sum()) + 1
    text = f"{own:.3f}, median {np.median(width):.3f}, widest {width.max():.3f}"
    return [
        Reading(text, true=own > np.median(width), label="above the median width"),
        Reading(f"place {rank} of {len(width)}", true=rank <= 3, label="among the widest three"),
    ]


def low_throughout(evidence: Evidence, model: str) -> list[Reading]:
    """Whether a model's interval reaches the score of another, so that it might not be low."""
    others = evidence.table["esfp"].drop(model).astype(float)
    high = evidence.cell(model, "ci_high")
    text = f"ends at {high:.3f}, below every other score (the next is {others.min():.3f})"
    return [Reading(text, true=high >= others.min())]


def widest(evidence: Evidence) -> list[Reading]:
    """Name of the model with the widest interval."""
    width = evidence.column("ci_high") - evidence.column("ci_low")
    return [Reading(evidence.models[int(width.argmax())])]


def centred(evidence: Evidence) -> list[Reading]:
    """Whether each interval contains its score."""
    inside = evidence.table["esfp"].between(evidence.table["ci_low"], evidence.table["ci_high"])
    return [Reading(f"{inside.sum()} of {len(inside)}", true=bool(inside.all()))]


def normal_width(evidence: Evidence) -> list[Reading]:
    """Whether each interval is about as wide as its standard deviation says (within a tenth)."""
    width = evidence.column("ci_high") - evidence.column("ci_low")
    ratio = width / (2 * stats.norm.ppf(0.975) * evidence.column("boot_sd"))
    text = f"width over 3.92 sd from {ratio.min():.2f} to {ratio.max():.2f}"
    return [Reading(text, true=bool(np.all(np.abs(ratio - 1) <= 0.1)))]


def means_above(evidence: Evidence, at_least: int) -> list[Reading]:
    """Whether several bootstrap means exceed their scores."""
    above = evidence.column("boot_mean") - evidence.column("esfp") > HALF_UNIT
    return [Reading(f"{above.sum()} of {len(above)}", true=int(above.sum()) >= at_least)]


def widest_excess(evidence: Evidence) -> list[Reading]:
    """Name of the model whose bootstrap mean exceeds its score most."""
    excess = evidence.column("boot_mean") - evidence.column("esfp")
    return [Reading(evidence.models[int(excess.argmax())])]


def reachable_means(evidence: Evidence) -> list[Reading]:
    """Whether the procedure described can give the printed bootstrap means.

    With kappa and the ceiling held the score is linear in means over the drawn items but for the
    clip at 1, so the mean over all draws is the score or less; what is left is the error of a
    finite number of draws and the rounding of both numbers.
    """
    draws = int(evidence.printed["draws"]["value"])
    rows = bootstrap_excess(evidence.table.reset_index(drop=True), draws)
    off = rows[~rows["explained"]]
    text = "; ".join(
        f"{row.model} {row.excess:+.3f} ({row.excess / row.monte_carlo_se:.0f} se)"
        for row in off.itertuples()
    )
    return [Reading(text or "all within the error of the draws", true=off.empty)]


def fewest_items(evidence: Evidence) -> list[Reading]:
    """Whether the widest spreads are not those of the models with the fewest items in kappa."""
    sd, n = evidence.table["boot_sd"].astype(float), evidence.table["n_cpc"].astype(float)
    half = len(sd) // 2
    same = set(sd.nlargest(half).index) == set(n.nsmallest(half).index)
    rho = stats.spearmanr(sd, n).statistic
    text = f"the {half} largest spreads are {'' if same else 'not '}those of the {half} fewest"
    return [Reading(f"{text}; ρ = {rho:.2f}", true=not same)]


def multiplier_ties(evidence: Evidence, models: list[str]) -> list[Reading]:
    """Whether the CPC multiplier makes the tie: with it off, the models would not overlap.

    Kappa is held in the draws, so an interval of flex is that of the score over its multiplier.
    """
    lows, highs = [], []
    for model in models:
        factor = 1 + CPC_BONUS * max(evidence.cell(model, "cpc_kappa"), 0)
        low, high = _interval(evidence, model)
        lows.append(low / factor)
        highs.append(high / factor)
    common = min(highs) - max(lows)
    text = f"without it {common:.3f} is still common to all intervals"
    return [Reading(text, true=common <= 0)]


def multiplier_closes(evidence: Evidence, better: str, worse: list[str]) -> list[Reading]:
    """Whether the CPC multiplier closes the gap of two models: by half at least."""
    readings = []
    for model in worse:
        before = evidence.cell(better, "flex") - evidence.cell(model, "flex")
        after = evidence.cell(better, "esfp") - evidence.cell(model, "esfp")
        text = f"gap {before:.3f} in flexibility, {after:.3f} in score"
        possible = after - 2 * HALF_UNIT <= (before + 2 * HALF_UNIT) / 2
        readings.append(Reading(text, true=after <= before / 2, possible=possible, label=model))
    return readings


def interval(evidence: Evidence, model: str) -> list[Reading]:
    """A model's released interval as it would be printed."""
    low, high = _interval(evidence, model)
    return [Reading(f"[{low:.3f}, {high:.3f}]")]
