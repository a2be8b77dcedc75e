"""One model of yours beside a cohort: `make mine MODEL=name BASE_URL=…`.

`python -m esfp.mine params …` writes the params file of the model's run, and `python -m esfp.mine
table …` prints its row among those of another run, once both are scored.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from pydantic import ValidationError

from esfp import files, params, terminal
from esfp.equations import composite, leaderboard

CEILING = 0.199  # of PSI in the paper's cohort (Section 4.3), so that rows can stand side by side
TEMPLATE = """\
# {name}, beside others: written by `make mine`, and yours to edit.
# Any change is kept; the same command goes on with the file as it is.
providers:
  mine:
    base_url: {base_url}
    key_env: {key_env}  # the name of the variable that holds the key; null for none
    concurrency: {concurrency}  # calls at a time: as many as the server answers in parallel
    timeout: 600.0  # seconds, the whole call
    decoding: {{}}  # the server's own; or, say, {{temperature: 0.7}}
    # a small model that does not know when to stop needs a limit: {{max_tokens: 1024}}

# for a first try, six items instead of 104:
# corpus: {{per_type: 1}}

generate:
  candidates:
    - name: {name}
      provider: mine

judge:
  judges:  # offline, trained on the reference labels
    - {{name: embedding, kind: embedding}}
    - {{name: combined, kind: combined}}
    # a language model with the paper's prompts instead:
    # - {{name: big, kind: llm, provider: mine, model: its-id}}
    # and, for stances: stance_judge: big

score:
  psi_ceiling: {ceiling}  # of the paper's cohort; a cohort of one is its own ceiling
"""


def render(name: str, base_url: str, key_env: str | None) -> str:
    """The params file of a model, as text.

    Raises
    ------
    ParamsError
        If a value cannot be right; a key pasted for its variable's name is not repeated.
    """
    if not name.strip():
        raise params.ParamsError("MODEL is empty; give the name that the server knows it by")
    if not re.match(r"https?://|\$\{", base_url):
        raise params.ParamsError(
            f"BASE_URL={base_url}: expected an address such as http://localhost:8000/v1"
        )
    if key_env and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key_env):
        raise params.ParamsError("KEY_ENV takes the name of an environment variable, not a key")
    near = re.match(r"https?://(localhost|127\.|\[::1\])", base_url)
    return TEMPLATE.format(
        name=json.dumps(name, ensure_ascii=False),  # a JSON string is a YAML string
        base_url=json.dumps(base_url, ensure_ascii=False),
        key_env=key_env or "null",
        concurrency=8 if near else 20,
        ceiling=CEILING,
    )


def asked_for(text: str) -> tuple[str, str, str | None] | None:
    """Model, base_url and key variable in the text of a params file; None if it has none such."""
    try:
        values = params.Params.model_validate(yaml.safe_load(text))
        (candidate,) = values.generate.candidates
        provider = values.providers[candidate.provider]
    except (yaml.YAMLError, ValidationError, AttributeError, ValueError):
        return None
    return candidate.name, str(provider.base_url), provider.key_env


def write_params(name: str, base_url: str, key_env: str | None = None) -> Path:
    """Write `params/mine-<slug>.yaml` unless somebody has edited it; returns its path.

    An edited file is taken as it is, and stderr says so.

    Raises
    ------
    ParamsError
        If a value cannot be right, or an edited file asks for another endpoint or key.
    """
    path = Path("params", f"mine-{files.slug(name)}.yaml")
    text = render(name, base_url, key_env)
    if not path.exists():
        files.write_text(path, text)
        print(f"{path}: written; edit it to change how the model is asked", file=sys.stderr)
        return path
    there = path.read_text(encoding="utf-8")
    before = asked_for(there)
    if before and there == render(*before):  # as we wrote it
        files.write_text(path, text)
    elif before in (None, (name, base_url, key_env)):
        print(f"{path}: has been edited and is used as it is", file=sys.stderr)
    else:
        raise params.ParamsError(
            f"{path}: has been edited and asks {before[0]} at {before[1]} (key_env "
            f"{before[2] or 'null'}), not what the command says; change the file or delete it"
        )
    return path


def judges(run: str) -> set[str] | None:
    """Judges of a run, language models by their id; None for a run of released scores."""
    path = Path("outputs", run, "params", "judge.yaml")
    values = yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else None
    if not values:
        return None
    return {judge.get("model") or judge["kind"] for judge in values["judges"]}


def n_items(run: str) -> int | None:
    """Items that a run's scores rest on; None for a run of released scores."""
    path = Path("outputs", run, "items.parquet")
    return files.read_parquet(path, files.ITEMS)["item_id"].nunique() if path.exists() else None


def scores(run: str) -> pd.DataFrame:
    """scores.csv of a run with every row at the fixed PSI ceiling and the paper's weights.

    Intervals are drawn again from the run's own bootstrap at that ceiling; those of released
    scores stay as printed.

    Raises
    ------
    DataError
        If the run has not been scored.
    """
    folder = Path("outputs", run)
    if not (folder / "scores.csv").exists():
        raise files.DataError(
            f"{folder / 'scores.csv'}: not there; `make all PARAMS=params/{run}.yaml` makes it"
        )
    table = leaderboard(pd.read_csv(folder / "scores.csv", dtype={"model": str}), CEILING)
    if not (folder / "bootstrap.parquet").exists():
        return table
    draws = files.read_parquet(folder / "bootstrap.parquet", files.BOOTSTRAP)
    scaled = np.clip(draws["psi_mean"] / CEILING, 0, 1)
    parts = (draws["delta_ar"], draws["delta_scd"], scaled, draws["cpc_kappa"])
    draws["esfp"] = composite(*parts)[1]
    bounds = draws.groupby("model")["esfp"].quantile([0.025, 0.975]).unstack()
    table["ci_low"], table["ci_high"] = bounds.loc[table["model"]].to_numpy().T
    return table


def compare(run: str, cohort: str) -> str:
    """The run's rows among those of another run, as text for the terminal."""
    mine = scores(run).assign(mark="→")
    table = pd.concat([mine, scores(cohort).assign(mark="")] if cohort != run else [mine])
    table = table.sort_values("esfp", ascending=False, kind="stable").reset_index(drop=True)
    other = judges(cohort) != judges(run)
    table.loc[(table["mark"] == "") & other, "mark"] = "*"
    shown = pd.DataFrame({"": table["mark"], "model": table["model"]})
    for column, title in {
        "esfp": "ESFP",
        "ci_low": "95% from",
        "ci_high": "to",
        "delta_ar": "δAR",
        "delta_scd": "δSCD",
        "psi_scaled": "PSI",
        "cpc_kappa": "κ",
        "coverage": "coverage",
    }.items():
        shown[title] = ["–" if pd.isna(value) else f"{value:.3f}" for value in table[column]]
    lines = [
        f"{', '.join(mine['model'])} beside the run '{cohort}' (PSI ceiling {CEILING}, the "
        "paper's weights)",
        "",
        terminal.aligned(shown, left=2),
        "",
    ]
    if other and judges(cohort) is None:
        lines.append(
            "* published scores: measured by the paper's judges on the paper's items, most of "
            "which are not these. Read distances to them as rough."
        )
    elif other:
        lines.append("* measured by other judges; read distances to these rows as rough.")
    asked = n_items(run)
    lines += [
        f"→ {f'{asked} items, ' if asked else ''}judged by "
        f"{', '.join(sorted(judges(run) or ['?']))}; a score is a propensity, and higher is not "
        "better.",
        f"The whole report: outputs/{run}/report.html",
    ]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit code. `params` prints the run's name, for make."""
    parser = argparse.ArgumentParser(prog="python -m esfp.mine", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    write = commands.add_parser("params", help="write the params file of a model")
    write.add_argument("--model", required=True)
    write.add_argument("--base-url", required=True)
    write.add_argument("--key-env", default="")
    table = commands.add_parser("table", help="print a run's rows beside another run's")
    table.add_argument("run")
    table.add_argument("cohort", nargs="?", default="published")
    options = parser.parse_args(arguments)
    try:
        if options.command == "params":
            path = write_params(options.model, options.base_url, options.key_env or None)
            print(params.run_name(path))
        else:
            print(compare(options.run, options.cohort))
    except files.DataError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
