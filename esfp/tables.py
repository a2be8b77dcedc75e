"""The paper's tables: which columns of a run's results they show, and under what heading."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

import pandas as pd

from esfp.cells import DASH, Cell, Column, Math, Table, integer, interval, markup, text, three
from esfp.cells import write as write


def typology() -> Table:
    """Table 1: what the levels of stance under the two prompts make of a model."""
    frame = pd.DataFrame(
        [
            ("low", "over-aligned: reports, whatever is asked", "flexible: the target"),
            ("high", "erratic: moves against the request", "under-aligned: opines unasked"),
        ],
        columns=["stance_under_minus", "low_stance_under_plus", "high_stance_under_plus"],
    )
    return Table(
        frame,
        [
            Column("", "stance_under_minus", _level, "l"),
            Column(r"Low stance under $\pi_{+}$", "low_stance_under_plus", text, "l", 0.34),
            Column(r"High stance under $\pi_{+}$", "high_stance_under_plus", text, "l", 0.34),
        ],
    )


def _level(level: str) -> Cell:
    return markup(rf"{level.capitalize()} stance under $\pi_{{-}}$")


def phrasings(
    templates: dict[str, str], roles: dict[str, str], sets: dict[str, list[str]]
) -> Table:
    """Table 2: the phrasings; the CSV also says which measures compare them.

    Parameters
    ----------
    templates, roles
        phrasing -> template, role.
    sets
        `contrast` and `psi_contrast` (two phrasings each) and `cpc_phrasings`.
    """
    users = {"contrast": "δAR, δSCD", "psi_contrast": "PSI", "cpc_phrasings": "CPC"}
    signs = dict(zip(sets["contrast"], "-+", strict=True))
    frame = pd.DataFrame(
        [
            {
                "phrasing": key,
                "role": roles[key],
                "template": re.sub(r"\s*Question: \{question\}$", "", " ".join(template.split())),
                "measures": ", ".join(name for part, name in users.items() if key in sets[part]),
            }
            for key, template in templates.items()
        ]
    )

    def role(key: str, name: str) -> Cell:
        return (name, " ", Math(rf"\pi_{{{signs[key]}}}")) if key in signs else (name,)

    return Table(
        frame,
        [
            Column("Key", "phrasing", text, "l"),
            Column("Role", ("phrasing", "role"), role, "l", 0.27),
            Column("Prompt, before the item", "template", lambda t: (f"“{t}”",), "l", 0.6),
        ],
    )


CATEGORIES = {
    "T1": ("Normative policy claims", "contested; an invitation licenses a stance"),
    "T2": ("Open-ended social phenomena", "many sides, no standard answer"),
    "T3": ("Personal value trade-offs", "one value against another; little politics"),
    "T4": ("Disciplinary facts", "verifiable; nothing licenses a stance"),
    "T5": ("Empirically contested claims", "sounds settled, is disputed; tests calibration"),
    "T6": ("Aesthetic and cultural judgements", "no objective standard"),
}


def corpus(items: pd.DataFrame, phrasings: int) -> Table:
    """Table 3: items by type.

    Parameters
    ----------
    items
        `item_id type`, one row an item that is asked.
    phrasings
        Number of phrasings.
    """
    counts = items["type"].value_counts()
    rows = [
        (kind, category, counts[kind], character)
        for kind, (category, character) in CATEGORIES.items()
        if kind in counts
    ]
    n = len(items)
    rows.append(("", "Total", n, f"× {phrasings} phrasings = {n * phrasings} prompts a model"))
    return Table(
        pd.DataFrame(rows, columns=["type", "category", "items", "epistemic_character"]),
        [
            Column("Type", "type", lambda kind: (kind,), "l"),
            Column("Category", "category", text, "l"),
            Column("Items", "items", integer),
            Column("Epistemic character", "epistemic_character", text, "l", 0.4),
        ],
    )


def models(frame: pd.DataFrame) -> Table:
    """Table 4: `vendor model endpoint type` of what answered and what measured."""
    return Table(
        frame[["vendor", "model", "endpoint", "type"]],
        [
            Column("Vendor", "vendor", text, "l"),
            Column("Model", "model", text, "l"),
            Column("Endpoint or weights", "endpoint", text, "l", 0.42),
            Column("Type", "type", text, "l"),
        ],
    )


def used_models(generate: dict, judge: dict, embed: dict) -> pd.DataFrame:
    """Candidates, judges and embedding model of a run, from its stages' parameters.

    Returns
    -------
    DataFrame
        `vendor model endpoint type`, for `models`.
    """

    def endpoint(user: dict, providers: dict) -> str:
        provider = providers[user["provider"]]
        if not provider["embedded"]:
            return f"{user['model'] or user['name']} at {provider['base_url']}"
        weights = provider["embedded"]["weights"]
        if weights["package"]:
            member = PurePosixPath(weights["member"]).name
            return f"{member} from {weights['package']} {weights['version']}"
        return weights["path"] or f"{weights['hub_file']} from {weights['hub_repo']}"

    rows = [
        (c["vendor"], c["name"], endpoint(c, generate["providers"]), c["type"])
        for c in generate["candidates"]
    ]
    trained = {
        "embedding": "sentence embeddings",
        "words": "words and cues",
        "combined": "embeddings, words and cues",
    }
    for one in judge["judges"]:
        offline = one["kind"] in trained
        source = (
            f"{trained[one['kind']]}, trained on {judge['gold']}"
            if offline
            else endpoint(one, judge["providers"])
        )
        rows.append(
            (
                one.get("vendor", ""),
                one["name"],
                source,
                "judge, offline" if offline else "judge, LLM",
            )
        )
    rows.append(("", "all-MiniLM-L6-v2", embed["package"] or embed["path"], "embedding (PSI)"))
    return pd.DataFrame(rows, columns=["vendor", "model", "endpoint", "type"])


def leaderboard(scores: pd.DataFrame, level: float = 0.95) -> Table:
    """Table 5: score, sub-metrics and interval of each model, best first."""
    names = "rank model type esfp delta_ar delta_scd psi_scaled cpc_kappa ci_low ci_high".split()

    def named(model: str, kind: str) -> Cell:
        return (f"{model} (reasoning)" if str(kind).startswith("reasoning") else model,)

    return Table(
        scores.sort_values("rank", kind="stable")[names],
        [
            Column("#", "rank", integer),
            Column("Model", ("model", "type"), named, "l"),
            Column("ESFP", "esfp", three),
            Column(r"$\delta\mathrm{AR}$", "delta_ar", three),
            Column(r"$\delta\mathrm{SCD}$", "delta_scd", three),
            Column(r"$\mathrm{PSI}_{\mathrm{scaled}}$", "psi_scaled", three),
            Column(r"CPC $\kappa$", "cpc_kappa", three),
            Column(f"{100 * level:g}% CI", ("ci_low", "ci_high"), interval, "l"),
        ],
    )


RULES = {
    "published": "Paper’s rule {weights}, CPC on",
    "psi_ceiling_max": r"$\mathrm{{PSI}}_{{\mathrm{{ceil}}}}$ = maximum, not 95th percentile",
    "equal_weights": "Equal weights (1/3, 1/3, 1/3)",
    "scd_heavy": r"{weights}, heavy on $\delta\mathrm{{SCD}}$",
    "psi_heavy": "{weights}, heavy on PSI",
    "cpc_off": "CPC multiplier removed",
    "scd_alone": r"$\delta\mathrm{{SCD}}$ alone",
    "ar_alone": r"$\delta\mathrm{{AR}}$ alone",
    "psi_alone": r"$\mathrm{{PSI}}_{{\mathrm{{scaled}}}}$ alone",
}


def sensitivity(frame: pd.DataFrame) -> Table:
    """Table 6: agreement of each scoring rule with the published ranking.

    Parameters
    ----------
    frame
        As `esfp.rankings.sensitivity` returns it.
    """

    def named(rule: str, *weights: float) -> Cell:
        shown = f"({', '.join(f'{weight:.2f}' for weight in weights)})"
        return markup(RULES.get(rule, "{weights}").format(weights=shown))

    def orders(tau: float, low: float, high: float) -> Cell:
        return interval(low, high) if max(high - tau, tau - low) > 5e-4 else (DASH,)

    return Table(
        frame,
        [
            Column("Scoring rule", ("rule", "w_ar", "w_scd", "w_psi"), named, "l"),
            Column(r"$\tau_{b}$", "tau", three),
            Column("ties broken", ("tau", "tau_low", "tau_high"), orders, optional=True),
            Column(r"printed $\tau$", "tau_printed", three, optional=True),
            Column("Rank-1 model", "rank1", text, "l"),
        ],
    )


def quantities(scores: pd.DataFrame) -> Table:
    """Table 7: what Table 5 leaves out and the score can be derived from."""
    names = "model psi_mean flex n_ar n_scd n_cpc boot_mean boot_sd coverage".split()
    return Table(
        scores.sort_values("rank", kind="stable")[names],
        [
            Column("Model", "model", text, "l"),
            Column(r"$\mathrm{PSI}_{\mathrm{mean}}$", "psi_mean", three),
            Column("flex", "flex", three),
            Column(r"$n_{\mathrm{AR}}$", "n_ar", integer, optional=True),
            Column(r"$n_{\mathrm{SCD}}$", "n_scd", integer, optional=True),
            Column(r"$n_{\mathrm{CPC}}$", "n_cpc", integer),
            Column("boot. mean", "boot_mean", three),
            Column("boot. sd", "boot_sd", three),
            Column("coverage", "coverage", three, optional=True),
        ],
    )


def judges(frame: pd.DataFrame) -> Table:
    """Table 8: score and rank under the panel, each judge alone, and the correction.

    Parameters
    ----------
    frame
        As `esfp.rankings.by_labels` returns it.
    """
    names = {"panel": "panel", "corrected": "panel, corrected"}

    def named(labels: str) -> Cell:
        return (names.get(labels, f"{labels} alone"),)

    return Table(
        frame,
        [
            Column("Labels", "labels", named, "l"),
            Column("Model", "model", text, "l"),
            Column(r"$\delta\mathrm{SCD}$", "delta_scd", three),
            Column("95% interval", ("delta_scd_low", "delta_scd_high"), interval, "l"),
            Column(r"CPC $\kappa$", "cpc_kappa", three),
            Column("ESFP", "esfp", three),
            Column("rank", "rank", integer),
            Column(r"$\tau_{b}$", "tau", three, optional=True),
        ],
    )


def judge_comparison(frame: pd.DataFrame) -> Table:
    """Table 9: ways to label sentences offline, held against the reference labels.

    Parameters
    ----------
    frame
        As `esfp.comparison.wide` returns it.
    """
    shown = {r"$\kappa$": "kappa", "prec. B": "precision_B", "rec. B": "recall_B"}
    return _comparison(frame, shown)


def stance_comparison(frame: pd.DataFrame) -> Table:
    """Table 10: ways to extract a stance offline, held against the reference stances."""
    return _comparison(frame, {r"$\kappa$": "kappa", "agreement": "agreement"})


def _comparison(frame: pd.DataFrame, shown: dict[str, str]) -> Table:
    parts = {"train": "train", "held_out": "held out"}
    names = [f"{what}_{part}" for part in parts for what in shown.values()]
    headings = [f"{heading}, {words}" for words in parts.values() for heading in shown]
    measured = zip(headings, names, strict=True)
    return Table(
        frame[["judge", "n", *names]],
        [
            Column("Judge", "judge", text, "l", 0.3),
            Column("$n$", "n", integer),
            *(Column(heading, name, three) for heading, name in measured),
        ],
    )
