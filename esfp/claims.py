"""A ledger of claims: each statement of the original, recomputed, with a verdict.

paper/claims.yaml holds the statements in our words with the printed value; a check is the name of
a public function of the modules below and its arguments. Nothing else can be called from the file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import isfunction
from pathlib import Path
from types import ModuleType

import pandas as pd
import yaml

from esfp import (
    claims_correlations,
    claims_design,
    claims_facts,
    claims_formulas,
    claims_intervals,
    claims_ranks,
    claims_rules,
    claims_tables,
    corpus,
)
from esfp.claims_evidence import Evidence, Reading
from esfp.files import DataError
from esfp.published import read_printed, read_released
from esfp.rankings import TINY

HOLDS, ROUNDING = "holds", "holds within rounding"
FAILS, DEPENDS = "does not hold", "depends"
OPEN = "not checkable from what was released"
VERDICTS = (HOLDS, ROUNDING, FAILS, DEPENDS, OPEN)
SHORT = dict(zip(VERDICTS, ("holds", "rounding", "fails", "depends", "open"), strict=True))
THEMES: dict[str, ModuleType] = {
    "tables": claims_tables,
    "ranks": claims_ranks,
    "rules": claims_rules,
    "correlations": claims_correlations,
    "intervals": claims_intervals,
    "design": claims_design,
    "formulas": claims_formulas,
    "facts": claims_facts,
}
DOCUMENTS = ("paper", "write-up")
KEYS = {"id", "place", "says", "printed", "tolerance", "check", "because", "needs", "beside"}


@dataclass(frozen=True)
class Claim:
    """One statement: where it stands, what it says, how it is checked, why it fares as it does."""

    id: str
    document: str
    place: str
    says: str
    printed: str | None = None  # a number as printed, with < > ≤ ≥ where it is a bound, or a name
    tolerance: float | None = None  # in place of half a unit of the last printed digit
    check: dict | None = None
    because: str = ""  # shown unless the claim holds
    needs: str = ""  # what a check would need
    beside: str | None = None  # the claim of the other document that says otherwise

    @property
    def call(self) -> str:
        """The check as it is called."""
        if self.check is None:
            return ""
        ((name, arguments),) = self.check.items()
        return f"{name}({', '.join(f'{k}={v}' for k, v in (arguments or {}).items())})"


def _functions(module: ModuleType) -> dict[str, Callable]:
    own = {
        k: f for k, f in vars(module).items() if isfunction(f) and f.__module__ == module.__name__
    }
    return {name: function for name, function in own.items() if not name.startswith("_")}


CHECKS = {name: f for module in THEMES.values() for name, f in _functions(module).items()}


def theme(claim: Claim) -> str | None:
    """Name of the module that holds the claim's check; None without one."""
    if claim.check is None:
        return None
    return next(
        name for name, module in THEMES.items() if next(iter(claim.check)) in _functions(module)
    )


# ---- reading ---------------------------------------------------------------------------------


def load(path: str | Path) -> list[Claim]:
    """Read claims.yaml.

    Raises
    ------
    DataError
        With one line: not YAML, a claim without its parts, an id twice, an unknown check.
    """
    try:
        documents = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except yaml.YAMLError as error:
        raise DataError(f"{path}: not valid YAML ({' '.join(str(error).split())})") from None
    if not isinstance(documents, dict) or set(documents) - set(DOCUMENTS):
        raise DataError(f"{path}: expected lists of claims below {' and '.join(DOCUMENTS)}")
    claims = [
        _claim(path, document, entry) for document in documents for entry in documents[document]
    ]
    ids = [claim.id for claim in claims]
    for claim in claims:
        if ids.count(claim.id) > 1:
            raise DataError(f"{path}: {claim.id}: the id is there twice")
        if claim.beside not in (None, *ids):
            raise DataError(f"{path}: {claim.id}: beside names no claim: {claim.beside}")
    return claims


def _claim(path, document: str, entry: dict) -> Claim:
    name = f"{path}: {entry.get('id', entry)}"
    if unknown := set(entry) - KEYS:
        raise DataError(f"{name}: unknown key '{sorted(unknown)[0]}'")
    for key in ("id", "place", "says"):
        if not entry.get(key):
            raise DataError(f"{name}: has no {key}")
    if ("check" in entry) == ("needs" in entry):
        raise DataError(f"{name}: give a check, or what one would need (needs)")
    if "check" in entry:
        check = entry["check"]
        if not isinstance(check, dict) or len(check) != 1:
            raise DataError(f"{name}: check is one function with its arguments")
        if next(iter(check)) not in CHECKS:
            known = ", ".join(sorted(CHECKS))
            raise DataError(f"{name}: no check '{next(iter(check))}'; there are {known}")
    return Claim(document=document, **entry)


def read_evidence(
    released: str | Path, facts: str | Path, phrasings: str | Path, lexicons: str | Path
) -> Evidence:
    """Read what the claims are held against: released table, printed lists, public facts."""
    table = read_released(released).set_index("model", drop=False)
    return Evidence(
        table,
        read_printed(released),
        yaml.safe_load(Path(facts).read_text(encoding="utf-8")),
        corpus.load_phrasings(phrasings)["templates"],
        corpus.load_lexicons(lexicons),
    )


# ---- judging ---------------------------------------------------------------------------------


def _number(text: str) -> tuple[str, float, float] | None:
    """(sign, number, half a unit of its last digit) of a printed number; None for a name."""
    sign = text[0] if text[0] in "<>≤≥" else "="
    digits = text.lstrip("<>≤≥ ").replace(",", "").replace("−", "-")
    try:
        value = float(digits)
    except ValueError:
        return None
    decimals = len(digits.partition(".")[2])
    return sign, value, 0.5 * 10.0**-decimals if decimals else 0.0


def _agrees(sign: str, value: float, printed: float, half: float) -> bool:
    return {
        "=": abs(value - printed) <= half + TINY,
        "<": value < printed,
        ">": value > printed,
        "≤": value <= printed + half + TINY,
        "≥": value >= printed - TINY,
    }[sign]


def judge(printed: str | None, reading: Reading, tolerance: float | None = None) -> str:
    """Hold one reading against what was printed: holds, holds within rounding, does not hold.

    Parameters
    ----------
    printed
        A number as printed, a bound such as '< 0.001', or a name; None for a statement that the
        reading itself calls true or not.
    reading
        The recomputed value, and the smallest and largest that the rounding of the inputs allows.
    """
    if printed is None:
        return HOLDS if reading.true else ROUNDING if reading.possible else FAILS
    number = _number(printed)
    if number is None:
        return HOLDS if str(reading.value) == printed else FAILS
    sign, wanted, half = number
    half = half if tolerance is None else tolerance
    if _agrees(sign, reading.value, wanted, half):
        return HOLDS
    low, high = (reading.value if end is None else end for end in (reading.low, reading.high))
    nearest = min(max(wanted, low), high)
    within = any(_agrees(sign, value, wanted, half) for value in (low, nearest, high))
    return ROUNDING if within else FAILS


def verdict(claim: Claim, readings: list[Reading]) -> str:
    """One verdict of all readings: `depends` where some agree with the print and some do not."""
    each = [judge(claim.printed, reading, claim.tolerance) for reading in readings]
    agreeing = [one != FAILS for one in each]
    if not any(agreeing):
        return FAILS
    if not all(agreeing):
        return DEPENDS
    return HOLDS if each[0] == HOLDS else ROUNDING


def evaluate(claims: list[Claim], evidence: Evidence) -> pd.DataFrame:
    """Check every claim.

    Returns
    -------
    DataFrame, one row a claim
        id, document, place, says, printed, recomputed (all readings in words), verdict, because,
        call, theme, beside.

    Raises
    ------
    DataError
        If a check cannot be made: a model or column that the table does not have.
    """
    return pd.DataFrame([_row(claim, evidence) for claim in claims])


def _row(claim: Claim, evidence: Evidence) -> dict:
    recomputed, found = "", OPEN
    if claim.check is not None:
        ((name, arguments),) = claim.check.items()
        try:
            readings = CHECKS[name](evidence, **(arguments or {}))
        except KeyError as error:
            raise DataError(f"claim {claim.id}: the released table has no {error}") from None
        except (TypeError, ValueError) as error:
            raise DataError(f"claim {claim.id}: {claim.call}: {error}") from None
        recomputed = "; ".join(map(str, readings))
        found = verdict(claim, readings)
    because = claim.needs and f"Needs {claim.needs}."
    if found not in (HOLDS, OPEN):
        because = claim.because
    return {
        "id": claim.id,
        "document": claim.document,
        "place": claim.place,
        "says": claim.says,
        "printed": claim.printed or "",
        "recomputed": recomputed,
        "verdict": found,
        "because": because,
        "call": claim.call,
        "theme": theme(claim) or "",
        "beside": claim.beside or "",
    }


def numbers(ledger: pd.DataFrame) -> dict[str, int | str]:
    """Numbers of claims by verdict, and the verdict of each in one word, for the prose."""
    found: dict[str, int | str] = {"claims.all": len(ledger)}
    for verdict, word in SHORT.items():
        found[f"claims.{word}"] = int((ledger["verdict"] == verdict).sum())
    found["claims.checked"] = len(ledger) - found["claims.open"]
    for document in DOCUMENTS:
        found[f"claims.all.{document}"] = int((ledger["document"] == document).sum())
    return found | {f"claims.verdict.{row.id}": SHORT[row.verdict] for row in ledger.itertuples()}
