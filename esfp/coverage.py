"""How much of what a score needs is there; a model with too little of it is not scored."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from esfp import files

# the stage that a measure's labels come from, and what a response lacks without them
LABELLED_BY = {
    "ar": ("1_generate", "an answer"),
    "scd": ("2_judge", "a label on every sentence"),
    "psi": ("3_embed", "an embedding"),
    "cpc": ("2_judge", "a stance"),
}


class CoverageError(files.DataError):
    """Too little of what a score needs is there; the text is one clear line."""


def coverage(
    measures: pd.DataFrame,
    responses: pd.DataFrame,
    embeddings: pd.DataFrame,
    models: list[str],
    n_items: int,
    phrasings: dict[str, list[str]],
) -> pd.DataFrame:
    """Share of the expected responses that each measure can use, by model.

    Expected are items x the measure's phrasings x samples. A response counts where its status is
    `ok` and it is fully labelled: for AR nothing more, for SCD a panel label for every sentence,
    for PSI an embedding, for CPC a stance.

    Parameters
    ----------
    measures, responses, embeddings : DataFrame
        As `score.measures` returns them and as in responses/ and embeddings/.
    phrasings : dict
        Measure (ar, scd, psi, cpc) -> the phrasings it reads.

    Returns
    -------
    DataFrame, one row a model x measure
        model, measure, expected, covered, not_ok, final (those of not_ok that were refused or
        blocked, which no run asks again), unlabelled, coverage (share from 0 to 1).
    """
    keys = pd.MultiIndex.from_frame(measures[files.KEYS])
    embedded = pd.MultiIndex.from_frame(embeddings.dropna(subset=["embedding"])[files.KEYS])
    ok = responses["status"].eq("ok").to_numpy()
    final = responses["status"].isin(["refused", "blocked"]).to_numpy()
    labelled = {
        "ar": ok,
        "scd": measures["n_missing"].eq(0).fillna(False).to_numpy(bool),
        "psi": keys.isin(embedded),
        "cpc": measures["stance"].notna().to_numpy(),
    }
    n_samples = measures["sample"].nunique()
    rows = []
    for model in models:
        for measure, used in phrasings.items():
            mine = (measures["model"].eq(model) & measures["phrasing"].isin(used)).to_numpy()
            expected = n_items * len(used) * n_samples
            answered = int((mine & ok).sum())
            covered = int((mine & ok & labelled[measure]).sum())
            rows.append(
                {
                    "model": model,
                    "measure": measure,
                    "expected": expected,
                    "covered": covered,
                    "not_ok": expected - answered,
                    "final": int((mine & final).sum()),
                    "unlabelled": answered - covered,
                    "coverage": covered / expected if expected else 0.0,
                }
            )
    return pd.DataFrame(rows)


def require(table: pd.DataFrame, min_coverage: float, run_dir: str | Path) -> None:
    """Refuse to go on where a model's coverage of any measure is below `min_coverage`.

    Raises
    ------
    CoverageError
        One line: the model, the measure, how many responses are missing, the stage they are
        missing from and the commands that fill the gap.
    """
    short = table[table["coverage"] < min_coverage]
    if short.empty:
        return
    worst = short.loc[short["coverage"].idxmin()]
    stage, unlabelled = LABELLED_BY[worst["measure"]]
    missing = f"{worst['not_ok']} without an answer"
    missing += f" ({worst['final']} of them refused or blocked)" if worst["final"] else ""
    missing += f", {worst['unlabelled']} without {unlabelled}" if worst["unlabelled"] else ""
    others = short["model"].nunique() - 1
    raise CoverageError(
        f"{worst['model']}: only {worst['covered']} of {worst['expected']} responses can be used "
        f"for {worst['measure'].upper()} ({worst['coverage']:.3f}, min_coverage {min_coverage:g}): "
        f"{missing}{f'; {others} more models are short too' if others else ''}. "
        f"{_way_out(worst, stage, _params_file(run_dir))}"
    )


def _way_out(worst: pd.Series, stage: str, params: str) -> str:
    """What fills the larger gap that can be filled; make alone holds the stage for done."""
    askable = worst["not_ok"] - worst["final"]
    if not askable and not worst["unlabelled"]:
        return (
            "What is refused or blocked is not asked again; to score the model without it, lower "
            f"score.min_coverage in {params}"
        )
    if worst["unlabelled"] <= askable:
        stage = "1_generate"
    return (
        f"Most are missing from {stage}: `.venv/bin/python -m esfp.run {stage[2:]} --params "
        f"{params}` tries them again, then `make all PARAMS={params}` goes on; what no trying "
        "fills (refusals, replies that stay unreadable) needs a lower score.min_coverage"
    )


def _params_file(run_dir: str | Path) -> str:
    parts = Path(run_dir).parts
    below = parts[len(parts) - parts[::-1].index("outputs") :] if "outputs" in parts else parts[-1:]
    return f"params/{'/'.join(below)}.yaml"
