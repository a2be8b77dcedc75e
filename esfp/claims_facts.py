"""Checks against what is public about the models and works, paper/public_facts.yaml.

Every public function here is a check that paper/claims.yaml may name; it takes the evidence and
returns one or more readings.
"""

from __future__ import annotations

from esfp.claims_evidence import Evidence, Reading


def open_weights(evidence: Evidence, models: list[str] | None = None) -> list[Reading]:
    """Number of models, of all or of those named, whose weights are public."""
    facts = evidence.facts["models"]
    found = [m for m in models or evidence.models if facts[m]["weights"] == "open"]
    return [Reading(len(found), label=", ".join(found))]


def proprietary(evidence: Evidence) -> list[Reading]:
    """Whether what was run is proprietary: the endpoints, and the models behind them."""
    (found,) = open_weights(evidence)
    hosted = int(evidence.table["endpoint"].ne("").sum())
    return [
        Reading(f"{hosted} of {len(evidence.table)}", true=True, label="behind hosted endpoints"),
        Reading(
            f"{found.value} of {len(evidence.table)}",
            true=found.value == 0,
            label="with open weights",
        ),
    ]


def open_source(evidence: Evidence, model: str) -> list[Reading]:
    """Whether a model is open source: public weights, and an approved licence."""
    facts = evidence.facts["models"][model]
    approved = facts["licence"] in evidence.facts["open_source_licences"]
    return [
        Reading("public", true=facts["weights"] == "open", label="weights"),
        Reading(facts["licence"], true=approved, label="licence"),
    ]


def smallest(evidence: Evidence, model: str) -> list[Reading]:
    """Whether a model is the smallest of those with a published size: in all, and a token."""
    facts = evidence.facts["models"]
    readings = []
    for label, name in (("all parameters", "total"), ("parameters used a token", "active")):
        known = {m: facts[m][name] for m in evidence.models if facts[m][name] is not None}
        least = min(known, key=known.get)
        text = f"{least}, {known[least]} billion; unknown for {len(facts) - len(known)}"
        readings.append(Reading(text, true=least == model, label=label))
    return readings


def size_range(evidence: Evidence, least: int, most: int) -> list[Reading]:
    """Whether published sizes (billions) run from one number to another, and whose the other is."""
    facts = evidence.facts["models"].values()
    known = [fact["total"] for fact in facts if fact["total"] is not None]
    judge = [name for name, size in evidence.facts["judge_sizes"].items() if size == most]
    text = f"from {min(known)} to {max(known)}"
    return [
        Reading(text, true=min(known) == least and max(known) >= most, label="upper end or more"),
        Reading(
            f"no candidate; the judge {', '.join(judge)}",
            true=most in known,
            label=f"a candidate of {most}",
        ),
    ]


def only_reasoning(evidence: Evidence, model: str) -> list[Reading]:
    """Whether a model is the only one that reasons first: by Table 4, and by public documents."""
    table = evidence.table
    typed = table.index[table["type"].str.contains("reasoning")].tolist()
    known = [m for m in evidence.models if m in evidence.facts["reasoning"]]
    return [
        Reading(", ".join(typed), true=typed == [model], label="Table 4"),
        Reading(", ".join(known), true=known == [model], label="public documents"),
    ]


def separate_factors(evidence: Evidence, work: str, factors: list[str]) -> list[Reading]:
    """Whether factors stand apart in a work, as its abstract names them."""
    named = evidence.facts["factors"][work]
    joint = [name for name in named if sum(factor in name for factor in factors) > 1]
    return [Reading(f"one factor: {', '.join(joint)}" if joint else "apart", true=not joint)]


def agreement_word(evidence: Evidence, model: str, at_least: str) -> list[Reading]:
    """Whether kappa is the largest, and what the usual words for it are (Landis and Koch 1977)."""
    bands = evidence.facts["agreement_bands"]
    kappa = evidence.cell(model, "cpc_kappa")
    word = [name for name, low in bands.items() if kappa >= low][-1]
    largest = kappa == evidence.column("cpc_kappa").max()
    return [
        Reading(f"{kappa:.3f} is the largest", true=largest, label="beside the others"),
        Reading(word, true=kappa >= bands[at_least], label="on the usual scale"),
    ]
