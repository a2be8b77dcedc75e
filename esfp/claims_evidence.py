"""What the claims of the original are held against, and what a check returns."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real

import numpy as np
import pandas as pd

from esfp.rankings import HALF_UNIT, VARIABLES, correlations, sensitivity

MEASURES = ("delta_ar", "delta_scd", "psi_scaled", "cpc_kappa")
WORDS = {  # how columns and scoring rules are called in what people read
    "delta_ar": "δAR",
    "delta_scd": "δSCD",
    "psi_scaled": "scaled PSI",
    "psi_mean": "raw PSI",
    "cpc_kappa": "κ",
    "esfp": "ESFP",
    "psi_alone": "PSI alone",
    "ar_alone": "δAR alone",
    "scd_alone": "δSCD alone",
    "equal_weights": "equal weights",
    "psi_heavy": "heavy on PSI",
    "scd_heavy": "heavy on δSCD",
    "ar_scd_even": "(0.40, 0.40, 0.20)",
    "cpc_off": "without the multiplier",
}
COUNTS = ("rank", "n_cpc")  # columns without decimals: nothing is rounded off


@dataclass(frozen=True)
class Evidence:
    """The released table, the printed lists, public facts, and the instrument."""

    table: pd.DataFrame  # indexed by model, in the printed order
    printed: dict
    facts: dict = field(default_factory=dict)
    templates: dict[str, str] = field(default_factory=dict)
    lexicons: dict[str, list[str]] = field(default_factory=dict)

    def column(self, name: str) -> np.ndarray:
        """Values of a column, one a model."""
        return self.table[name].to_numpy(float)

    def cell(self, model: str, name: str) -> float:
        """One cell."""
        return float(self.table.loc[model, name])

    @cached_property
    def rules(self) -> pd.DataFrame:
        """Table 6 recomputed, indexed by rule."""
        return sensitivity(self.table.reset_index(drop=True), self.printed).set_index("rule")

    @cached_property
    def pairs(self) -> pd.DataFrame:
        """Rank correlations of the score and its parts, indexed by pair."""
        return correlations(self.table.reset_index(drop=True)).set_index(["a", "b"])

    def pair(self, a: str, b: str) -> pd.Series:
        """Rank correlation of two columns."""
        return self.pairs.loc[tuple(sorted((a, b), key=VARIABLES.index))]

    @property
    def models(self) -> list[str]:
        """Names in the printed order."""
        return self.table.index.tolist()


@dataclass(frozen=True)
class Reading:
    """One way to read a claim: a recomputed value with its reach, or whether the claim is true.

    `low` and `high` are the least and the largest value that inputs within half a unit of their
    last digit allow. `possible` says that such inputs make a statement true that is not at face
    value.
    """

    value: float | str | None = None
    low: float | None = None
    high: float | None = None
    true: bool = False
    possible: bool = False
    label: str = ""
    digits: int = 3

    def __str__(self) -> str:
        shown = self.value
        counted = isinstance(shown, int | np.integer)
        if isinstance(shown, Real) and not counted:
            shown = f"{shown:.{self.digits}f}"
        if self.low is not None and self.high is not None:
            shown = f"{shown} (from {self.low:.{self.digits}f} to {self.high:.{self.digits}f})"
        if shown is None:
            shown = "yes" if self.true else "no"
        text = f"{shown} ({self.label})" if counted else f"{self.label}: {shown}"
        text = text if self.label else str(shown)
        for column, word in WORDS.items():
            text = re.sub(rf"\b{column}\b", word, text)
        return text


def half(column: str) -> float:
    """How far a printed cell of a column may be from what was rounded."""
    return 0.0 if column in COUNTS else HALF_UNIT
