"""A variant's table of items, from recorded answers, labels and vectors, without a call.

The stages' own functions do the work; what is added here is where their inputs are found. An
answer is known by its request. A label is taken over where the judge is the same and has read the
same: an offline judge a sentence on an item, a language model a whole response.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pandas as pd
import yaml

from esfp import corpus, coverage, encoder, files, generate, judge, llm_judges, params, score
from esfp.ablations import LeftOut, Variant
from esfp.gold import load_gold

SENTENCE = ["item_id", "sentence"]


@cache
def _answers(run: str) -> pd.DataFrame:
    """Recorded answers of a run; none where there is no such run."""
    paths = sorted(Path("outputs", run, "responses").glob("*.parquet"))
    tables = [files.read_parquet(path, files.RESPONSES) for path in paths]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


class Bench:
    """What the variants of one base share: its labels, and every judge that had to be trained."""

    def __init__(self, base: Variant) -> None:
        self.run = base.run
        self.base = params.stage_parameters(base.values, "judge", base.run)
        self.trained: dict[str, object] = {}
        self.vectors: dict[str, pd.DataFrame] = {}
        models = [model["name"] for model in self.base["models"]]
        names = [each["name"] for each in self.base["judges"]]
        out = Path("outputs", base.run)
        self.judged = files.read_shards(out / "judged", models, files.judged_schema(names))
        stances = files.read_shards(out / "stances", models, files.STANCES)
        answers = _answers(base.run)[[*files.KEYS, "text"]]
        self.stances = stances.merge(answers, on=files.KEYS)

    def items(self, variant: Variant) -> pd.DataFrame:
        """The table of items (files.ITEMS).

        Raises
        ------
        LeftOut
            If an answer or a language model's label is not recorded.
        DataError
            If the variant cannot be scored.
        """
        if variant.run != self.run and (finished := _finished(variant)) is not None:
            return finished
        values = params.stage_parameters(variant.values, "score", variant.run)
        names = [model["name"] for model in values["models"]]
        items, responses = self.responses(variant)
        judged, stances = self.labels(variant, items, responses)
        embeddings = self.embeddings(variant, responses)
        lexicons = corpus.load_lexicons(values["corpus"]["lexicons"])
        measures = score.measures(responses, judged, stances, lexicons)
        contrast, psi, cpc = (values[k] for k in ("contrast", "psi_contrast", "cpc_phrasings"))
        used = {"ar": contrast, "scd": contrast, "psi": psi, "cpc": cpc}
        share = coverage.coverage(measures, responses, embeddings, names, len(items), used)
        coverage.require(share, values["min_coverage"], values["run_dir"])
        only = values["compliant_only"]
        distances = score.psi(score.usable(embeddings, responses, only), psi)
        kept = score.usable(measures, responses, only)
        return score.items(kept, distances, items, names, contrast, cpc)

    def responses(self, variant: Variant) -> tuple[pd.DataFrame, pd.DataFrame]:
        """(items, responses) of a variant, each answer found by its request."""
        values = params.stage_parameters(variant.values, "generate", variant.run)
        items, prompts = generate.load_prompts(values["corpus"])
        system = corpus.load_prompt(values["system_prompt"])
        planned = pd.concat(
            generate.plan(
                prompts,
                params.Candidate.model_validate(candidate),
                params.Provider.model_validate(values["providers"][candidate["provider"]]),
                system,
                values["samples"],
            )
            for candidate in values["candidates"]
        )
        runs = dict.fromkeys([variant.run, self.run, *values["reuse"]])
        known = pd.concat([_answers(run) for run in runs]).drop_duplicates("request_sha")
        known = known.drop(columns=files.KEYS)
        found = planned.drop(columns="request").merge(known, on="request_sha", how="left")
        missing = int(found["status"].isna().sum())
        if missing:
            raise LeftOut(
                f"{missing} of {len(found)} answers are not recorded; `make all "
                f"PARAMS=params/{variant.run}.yaml` asks for them"
            )
        return items, found[files.RESPONSES.names]

    def labels(self, variant: Variant, items, responses) -> tuple[pd.DataFrame, pd.DataFrame]:
        """(judged, stances) of a variant."""
        values = params.stage_parameters(variant.values, "judge", variant.run)
        judged = judge.split(responses, values["sentences"])
        for each in values["judges"]:
            judged[f"label_{each['name']}"] = self._labels(variant, values, each, judged)
        judged["label"] = judge.panel(judged, values["judges"], values["panel"])
        return judged, self._stances(variant, values, items, responses)

    def _labels(self, variant: Variant, values: dict, mine: dict, sentences: pd.DataFrame):
        """One judge's labels: the base's where they are the same, else of the judge trained."""
        if mine["kind"] == "llm":
            needs = [*files.KEYS, "sentence_id", "sentence"]
            same = _asked(values, mine) in [_asked(self.base, j) for j in self.base["judges"]]
            column = f"label_{mine['name']}"
            if not same:
                raise LeftOut(_unasked(mine["name"], variant))
            return _take(
                sentences, self.judged, needs, column, LeftOut(_unasked(mine["name"], variant))
            )
        taught = {key: values[key] for key in ("gold", "folds")}
        known = {}
        if taught == {key: self.base[key] for key in taught}:
            for other in self.base["judges"]:
                if other["kind"] == mine["kind"]:
                    rows = self.judged.drop_duplicates(SENTENCE).set_index(SENTENCE)
                    known = rows[f"label_{other['name']}"].to_dict()
        keys = list(zip(*(sentences[key] for key in SENTENCE), strict=True))
        new = [key for key in dict.fromkeys(keys) if key not in known]
        if new:
            key = json.dumps([mine["kind"], taught])
            if key not in self.trained:
                gold = load_gold(taught["gold"])[0]
                self.trained[key] = judge.train([mine], gold, taught["folds"])[mine["name"]]
            found = self.trained[key].predict(*map(pd.Series, zip(*new, strict=True)))
            known |= dict(zip(new, found, strict=True))
        return [known[key] for key in keys]

    def _stances(self, variant: Variant, values: dict, items, responses) -> pd.DataFrame:
        """Stances: the base's where judge and answer are the same, else of the judge trained."""
        how = ("stance_judge", "gold", "folds", "stance_prompt", "stance_call", "stance_phrasings")
        same = all(values[key] == self.base[key] for key in how)
        needs, ok = ["item_id", "phrasing", "text"], responses["status"].eq("ok")
        rows = self.stances.drop_duplicates(needs).set_index(needs)["stance"]
        keys = pd.MultiIndex.from_frame(responses[needs])
        if same and keys[ok].isin(rows.index).all():
            return responses[files.KEYS].assign(stance=rows.reindex(keys).where(ok.array).array)
        if values["stance_judge"] != "offline":
            raise LeftOut(_unasked(values["stance_judge"], variant))
        key = json.dumps(["stance", values["gold"], values["folds"]])
        if key not in self.trained:
            self.trained[key] = judge.train_stance(
                "offline", load_gold(values["gold"]), values["folds"]
            )
        claims = items.set_index("item_id")["text"]
        asker = llm_judges.Asker("", {}, "", "")
        phrasings = values["stance_phrasings"]
        return judge.stances(responses, claims, "offline", [], self.trained[key], asker, phrasings)

    def embeddings(self, variant: Variant, responses: pd.DataFrame) -> pd.DataFrame:
        """Vectors of the answers that are ok; the encoder keeps those of every text it has seen."""
        how = params.stage_parameters(variant.values, "embed", variant.run)
        answered = responses[responses["status"] == "ok"]
        key = json.dumps([how["package"], how["path"], *answered["request_sha"]])
        if key not in self.vectors:
            vectors = encoder.encode(
                answered["text"].tolist(), how["package"], how["path"], how["batch_size"]
            )
            self.vectors[key] = answered[files.KEYS].assign(embedding=list(vectors))
        return self.vectors[key]


def _asked(values: dict, mine: dict) -> dict:
    """What a language model's labels of given responses depend on."""
    shared = ("sentences", "judge_prompt", "audit", "stance_call", "stance_judge", "stance_prompt")
    provider = values["providers"].get(mine.get("provider"))
    return {key: values[key] for key in shared} | {"judge": mine, "provider": provider}


def _unasked(name: str, variant: Variant) -> str:
    return (
        f"the judge '{name}' is a language model, and its labels are not recorded; `make all "
        f"PARAMS=params/{variant.run}.yaml` asks it"
    )


def _take(wanted, known, needs: list[str], column: str, otherwise: Exception) -> list:
    """`column` of `known` at the rows of `wanted`; `otherwise` is raised where one is missing."""
    found = known.set_index(needs)[column]
    keys = pd.MultiIndex.from_frame(wanted[needs])
    if not keys.isin(found.index).all():
        raise otherwise
    return found.reindex(keys).tolist()


def _finished(variant: Variant) -> pd.DataFrame | None:
    """The table of items of the variant's own run, where `make all` has made it as it is now."""
    out = Path("outputs", variant.run)
    made = out / "notebooks" / "4_score.ipynb"
    for stage in ("generate", "judge", "embed", "score"):
        written = out / "params" / f"{stage}.yaml"
        now = params.stage_parameters(variant.values, stage, variant.run)
        now.pop("prices", None)
        if not (made.exists() and written.exists()):
            return None
        if yaml.safe_load(written.read_text(encoding="utf-8")) != now:
            return None
        if written.stat().st_mtime > made.stat().st_mtime:
            return None
    return files.read_parquet(out / "items.parquet", files.ITEMS)
