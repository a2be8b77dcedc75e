"""Tables as text, for what is printed rather than written."""

from __future__ import annotations

import pandas as pd


def aligned(table: pd.DataFrame, left: int = 1) -> str:
    """Columns of equal width under their names.

    Parameters
    ----------
    table
        Strings only.
    left
        So many columns are set to the left, the others to the right.
    """
    rows = [list(table.columns), *table.to_numpy().tolist()]
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if place < left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
