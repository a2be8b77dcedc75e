"""Checks of the design: items, phrasings, models, judges, calls.

Every public function here is a check that paper/claims.yaml may name; it takes the evidence and
returns one or more readings.
"""

from __future__ import annotations

from esfp.claims_evidence import Evidence, Reading


def items(evidence: Evidence, of: str | None = None) -> list[Reading]:
    """Number of items, of one type or of all (Table 3)."""
    counts = evidence.printed["corpus"]["items"]
    return [Reading(counts[of] if of else sum(counts.values()))]


def item_types(evidence: Evidence) -> list[Reading]:
    """Number of item types (Table 3)."""
    return [Reading(len(evidence.printed["corpus"]["items"]))]


def largest_type(evidence: Evidence) -> list[Reading]:
    """Name of the type with the most items (Table 3)."""
    counts = evidence.printed["corpus"]["items"]
    return [Reading(max(counts, key=counts.get))]


def unequal(evidence: Evidence) -> list[Reading]:
    """Whether the types differ in their number of items (Table 3)."""
    counts = evidence.printed["corpus"]["items"].values()
    return [Reading(f"{len(set(counts))} different numbers", true=len(set(counts)) > 1)]


def phrasings(evidence: Evidence) -> list[Reading]:
    """Number of phrasing templates (Appendix A)."""
    return [Reading(len(evidence.templates))]


def measures(evidence: Evidence, above: str | None = None) -> list[Reading]:
    """Number of measures; or of those that work above a level of language."""
    levels = list(evidence.printed["metrics"]["levels"].values())
    return [Reading(len(levels) - 1 - levels.index(above) if above else len(levels))]


def models(evidence: Evidence, kind: str = "") -> list[Reading]:
    """Number of models in Table 4 whose type holds a word."""
    return [Reading(int(evidence.table["type"].str.contains(kind, regex=False).sum()))]


def vendors(evidence: Evidence) -> list[Reading]:
    """Number of vendors in Table 4."""
    return [Reading(int(evidence.table["vendor"].nunique()))]


def judges(evidence: Evidence) -> list[Reading]:
    """Number of judges that Table 4 names."""
    return [Reading(len(evidence.printed["judges"]["panel"]))]


def judge_vendors(evidence: Evidence, shared: bool = False) -> list[Reading]:
    """Number of different vendors of the judges; or of judges whose vendor has a candidate."""
    panel = evidence.printed["judges"]["panel"]
    if not shared:
        return [Reading(len(set(panel.values())))]
    there = set(evidence.table["vendor"])
    kin = [judge for judge, vendor in panel.items() if vendor in there]
    return [Reading(len(kin), label=" and ".join(kin))]


def kin(evidence: Evidence, judge: str) -> list[Reading]:
    """Number of candidates that share a judge's vendor, or the first word of its name."""
    vendor = evidence.printed["judges"]["panel"][judge]
    same = evidence.table["vendor"].eq(vendor)
    named = same & evidence.table.index.str.startswith(judge.split("-")[0])
    return [
        Reading(int(same.sum()), label="same vendor"),
        Reading(int(named.sum()), label="same model family"),
    ]


def prompts(evidence: Evidence, times: int = 1) -> list[Reading]:
    """Items times phrasings, a model; or so many times that."""
    (count,), (templates,) = items(evidence), phrasings(evidence)
    return [Reading(count.value * templates.value * times)]


def calls(evidence: Evidence, kinds: list[str], cohort: bool = False) -> list[Reading]:
    """Number of calls of some kinds (candidate, judge, stance), of a model or of the cohort."""
    (prompt,), (panel,) = prompts(evidence), judges(evidence)
    each = {**evidence.printed["calls"], "judge": panel.value}
    count = prompt.value * sum(each[kind] for kind in kinds)
    return [Reading(count * (len(evidence.table) if cohort else 1))]


def write_up_calls(evidence: Evidence) -> list[Reading]:
    """Judge calls of a model: with the judges named or the three counted, and with stances."""
    (prompt,), (panel,) = prompts(evidence), judges(evidence)
    counted = int(evidence.printed["write_up_judges"])
    return [
        Reading(prompt.value * (panel.value + 1), label="two judges and a stance"),
        Reading(prompt.value * counted, label="three judges"),
        Reading(prompt.value * (counted + 1), label="three judges and a stance"),
    ]


def judge_calls(evidence: Evidence) -> list[Reading]:
    """Judge calls of the cohort: those that label sentences, and with those that read stances."""
    labels, both = (
        calls(evidence, kinds, cohort=True)[0].value for kinds in (["judge"], ["judge", "stance"])
    )
    return [
        Reading(labels, label="sentence labels alone"),
        Reading(both, label="with stance extraction"),
    ]


def at_once(evidence: Evidence) -> list[Reading]:
    """Most prompts that are under way at once."""
    return [Reading(max(evidence.printed["concurrency"]["candidates"]))]


def word_limits(evidence: Evidence, lowest: int, highest: int) -> list[Reading]:
    """Whether the system prompt sets both limits (Appendix A)."""
    words = evidence.printed["response_words"]
    text = f"at most {words['limit']}; {words['ideal'][0]} to {words['ideal'][1]} called ideal"
    return [Reading(text, true=words["limit"] == highest and words.get("least") == lowest)]


def released_column(evidence: Evidence, name: str) -> list[Reading]:
    """Whether the released table lacks a column whose name holds a word."""
    found = [column for column in evidence.table if name in column]
    return [Reading(f"no column with '{name}'" if not found else found[0], true=not found)]


def peaks(evidence: Evidence) -> list[Reading]:
    """Number of models whose SCD does not peak at P2, by the text of Section 6.2."""
    names = evidence.printed["stronger_under_disagreement"]["models"]
    return [Reading(f"higher under P4 for {', '.join(names)}", true=not names)]


def moving_endpoints(evidence: Evidence) -> list[Reading]:
    """Whether every endpoint is pinned: no preview, no default."""
    moving = evidence.table.index[evidence.table["endpoint"].str.contains("preview|@default")]
    return [Reading(f"not pinned: {', '.join(moving)}", true=moving.empty)]
