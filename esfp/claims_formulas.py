"""Checks of what Eqs. 1 to 6 and the typology allow, at values of interest.

Every public function here is a check that paper/claims.yaml may name; it takes the evidence and
returns one or more readings.
"""

from __future__ import annotations

import numpy as np

from esfp.attribution import count_attributions
from esfp.claims_design import items
from esfp.claims_evidence import MEASURES, Evidence, Reading
from esfp.equations import WEIGHTS, composite, psi_ceiling


def typology(evidence: Evidence, also: str | None = None) -> list[Reading]:
    """Number of kinds of behaviour in Table 1, and in another list."""
    first = Reading(sum(len(row) for row in evidence.printed["typology"]["cells"]), label="Table 1")
    return [first, Reading(len(evidence.printed[also]), label="write-up")] if also else [first]


def target_cell(evidence: Evidence) -> list[Reading]:
    """Where in Table 1 the flexible cell stands."""
    cells = evidence.printed["typology"]["cells"]
    ((i, j),) = [(i, row.index("flexible")) for i, row in enumerate(cells) if "flexible" in row]
    return [Reading(f"{('upper', 'lower')[i]}-{('left', 'right')[j]}")]


def weight(evidence: Evidence, measure: str, is_the: str) -> list[Reading]:
    """Whether a measure has the smallest or the largest weight (Eq. 6)."""
    by_measure = dict(zip(MEASURES, WEIGHTS, strict=False))
    end = {"smallest": min, "largest": max}[is_the](by_measure.values())
    return [Reading(f"{by_measure[measure]:.2f}", true=by_measure[measure] == end)]


def free_constants(evidence: Evidence) -> list[Reading]:
    """Constants of Eq. 6: as written, and those left free by weights that sum to one."""
    bound = 1 if abs(sum(WEIGHTS) - 1) < 1e-9 else 0
    return [
        Reading(len(WEIGHTS) + 1, label="numbers in the equation"),
        Reading(len(WEIGHTS) + 1 - bound, label="free, as the weights sum to one"),
    ]


def normalised(evidence: Evidence) -> list[Reading]:
    """Number of sub-metrics of Table 5 that are rescaled before they enter (Eqs. 2, 4, 5)."""
    return [Reading(sum(name.endswith("_scaled") for name in MEASURES))]


def inconsistent_earns(evidence: Evidence, nothing: bool) -> list[Reading]:
    """What a model keeps of its flexibility at kappa = 0: all of it (Eq. 6)."""
    kappa = evidence.column("cpc_kappa").max()
    _, least = composite(1.0, 1.0, 1.0, 0.0)
    _, most = composite(1.0, 1.0, 1.0, kappa)
    text = f"{least / most:.0%} of what the same flexibility earns with the cohort's largest κ"
    return [Reading(text, true=bool(least > 0) != nothing)]


def consistency_bonus(evidence: Evidence, kappa: float) -> list[Reading]:
    """Whether a kappa earns no bonus and costs nothing (Eq. 6)."""
    flex, esfp = composite(1.0, 1.0, 1.0, kappa)
    return [Reading(f"score over flex {float(esfp / flex):.2f}", true=bool(esfp == flex))]


def consistency_alone(evidence: Evidence) -> list[Reading]:
    """Whether consistency without any flexibility scores nothing (Eq. 6)."""
    score = float(composite(0.0, 0.0, 0.0, 1.0)[1])
    return [Reading(score, true=score == 0)]


def same_vendor(evidence: Evidence, models: list[str]) -> list[Reading]:
    """Whether models share a vendor."""
    vendors = sorted(set(evidence.table.loc[models, "vendor"]))
    return [Reading(", ".join(vendors), true=len(vendors) == 1)]


def quoted(evidence: Evidence, phrasing: str, parts: list[str]) -> list[Reading]:
    """Whether quotations of a template are in it, capitals aside."""
    template = " ".join(evidence.templates[phrasing].split()).lower()
    missing = [part for part in parts if part.lower() not in template]
    return [Reading(f"not there: {', '.join(missing)}" if missing else "there", true=not missing)]


def rigid_scores(evidence: Evidence) -> list[Reading]:
    """Whether a model without any contrast scores nothing: by Eq. 1, and by Eq. 6 with its PSI."""
    least = evidence.column("psi_scaled").min()
    score = float(composite(0.0, 0.0, least, 0.0)[1])
    return [
        Reading("0.000", true=True, label="contrast of Eq. 1"),
        Reading(f"{score:.3f} with the cohort's least PSI", true=score == 0, label="score, Eq. 6"),
    ]


def words_alone(evidence: Evidence) -> list[Reading]:
    """Whether δAR = 1 with δSCD = 0 scores below every model, without PSI and with some."""
    readings = []
    for label, psi in (("no PSI", 0.0), ("least PSI", evidence.column("psi_scaled").min())):
        score = float(composite(1.0, 0.0, psi, 0.0)[1])
        beaten = evidence.table.index[evidence.column("esfp") < score].tolist()
        text = f"{score:.3f}, above {', '.join(beaten) or 'nobody'}"
        readings.append(Reading(text, true=not beaten, label=label))
    return readings


def words_without_stance(evidence: Evidence, ar: float, scd: float) -> list[Reading]:
    """Whether a model moves its words this much and its stance no more than that."""
    found = evidence.table.index[
        (evidence.column("delta_ar") >= ar) & (evidence.column("delta_scd") <= scd)
    ].tolist()
    return [Reading(", ".join(found) or "none", true=bool(found))]


def most_alike(evidence: Evidence, a: str, b: str) -> list[Reading]:
    """Whether two sub-metrics come apart: they are not the pair that agrees most on the models."""
    ranks = evidence.table[list(MEASURES)].astype(float).rank().corr().to_numpy()
    best = np.argmax(np.triu(ranks, 1))
    i, j = divmod(int(best), len(MEASURES))
    text = f"the most alike of all pairs, ρ = {ranks[i, j]:.3f}"
    same = {MEASURES[i], MEASURES[j]} == {a, b}
    return [Reading(text if same else f"ρ = {ranks[i, j]:.3f} is another pair's", true=not same)]


def extreme_newcomer(evidence: Evidence) -> list[Reading]:
    """Whether one more model with an extreme PSI changes every score: a high one, and a low one."""
    psi = evidence.column("psi_mean")
    readings = []
    for label, value in (("twice the largest", 2 * psi.max()), ("half the least", psi.min() / 2)):
        before = np.clip(psi / psi_ceiling(psi), 0, 1)
        after = np.clip(psi / psi_ceiling(np.append(psi, value)), 0, 1)
        moved = int((np.abs(after - before) > 1e-9).sum())
        readings.append(Reading(f"{moved} of {len(psi)}", true=moved == len(psi), label=label))
    return readings


def one_model_dominates(evidence: Evidence) -> list[Reading]:
    """Whether the 95th percentile keeps one model from setting the ceiling: its share in it."""
    psi = np.sort(evidence.column("psi_mean"))
    step = 1e-6
    share = (psi_ceiling(np.append(psi[:-1], psi[-1] + step)) - psi_ceiling(psi)) / step
    return [Reading(f"the largest makes {share:.0%} of the ceiling", true=bool(share < 0.5))]


def clipped_to_one(evidence: Evidence) -> list[Reading]:
    """Whether the model with the largest PSI has a scaled PSI of 1 by construction (Eq. 4)."""
    psi = evidence.column("psi_mean")
    text = f"{psi.max() / psi_ceiling(psi):.3f} before the clip"
    return [Reading(text, true=bool(evidence.column("psi_scaled")[psi.argmax()] == 1))]


def independent_measures(evidence: Evidence) -> list[Reading]:
    """Whether CPC is free of SCD: no model loses items from it for having no stance sentence."""
    (total,) = items(evidence)
    fewer = int((evidence.column("n_cpc") < total.value).sum())
    text = f"SCD = 0 takes items out of CPC for {fewer} of {len(evidence.table)} models"
    return [Reading(text, true=fewer == 0)]


def only_the_request_varies(evidence: Evidence) -> list[Reading]:
    """Whether templates differ in the request alone: the item is whole, no lexicon phrase is in."""
    whole = all(text.count("{question}") == 1 for text in evidence.templates.values())
    marked = [key for key, text in evidence.templates.items() if any(count_attributions(text))]
    return [
        Reading("the item stands once in each template", true=whole, label="the item"),
        Reading(
            f"phrases of the AR lexicons in {', '.join(marked)}",
            true=not marked,
            label="the rest of the prompt",
        ),
    ]


def in_lexicon(evidence: Evidence, lexicon: str, phrases: list[str]) -> list[Reading]:
    """Whether the examples are in a lexicon of Appendix B."""
    missing = [phrase for phrase in phrases if phrase not in evidence.lexicons[lexicon]]
    text = f"not there: {', '.join(missing)}" if missing else "all there"
    return [Reading(text, true=not missing)]
