"""How the claims are shown: as a page, as a table of the paper, and in the notebook."""

from __future__ import annotations

from pathlib import Path

import jinja2
import pandas as pd

from esfp.cells import Column, Table, text
from esfp.claims import DOCUMENTS, FAILS, VERDICTS

CSS = Path(__file__).resolve().parent.parent / "paper" / "style" / "page.css"
PAGES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=jinja2.StrictUndefined,
)


def absent(released: str | None) -> str | None:
    """Say why a run has no ledger; None where it has one."""
    if released and Path(released).with_name("printed.yaml").exists():
        return None
    return "needs a released table with what was printed about it (printed.yaml)"


def failing(ledger: pd.DataFrame) -> Table:
    """Table 23: every claim that does not hold, with what the check found and why.

    Parameters
    ----------
    ledger
        As `esfp.claims.evaluate` returns it.
    """
    rows = ledger[ledger["verdict"] == FAILS].copy()
    rows["where"] = rows["document"].str.capitalize() + ": " + rows["place"]
    return Table(
        rows[["id", "where", "says", "printed", "recomputed", "because"]],
        [
            Column("Place", "where", text, "l", 0.16),
            Column("What is said", "says", text, "l", 0.24),
            Column("Recomputed", "recomputed", text, "l", 0.22),
            Column("Why it does not hold", "because", text, "l", 0.3),
        ],
    )


def computed(ledger: pd.DataFrame, theme: str) -> str:
    """One row a claim of a theme, for the notebook: the call and what it gave, with an anchor."""
    rows = ledger[ledger["theme"] == theme].to_dict("records")
    return PAGES.get_template("claims.html").render(rows=rows).strip()


def page(ledger: pd.DataFrame) -> str:
    """Write the whole ledger as one page; each result links to where the notebook computes it."""
    rows = ledger.to_dict("records")
    return PAGES.get_template("claims.html").render(
        ledger=rows,
        others={row["id"]: row for row in rows},
        documents=DOCUMENTS,
        verdicts=VERDICTS,
        css=CSS.read_text(encoding="utf-8"),
    )
