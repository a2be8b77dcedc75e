"""Language models as labellers by probability: how likely each label is as their next token.

They are shown a few examples and then one sentence, or one response and its claim. Nothing is
generated: the probabilities of the first token are read and kept to the labels. The tables lie
beside the reference labels, so that the judge notebook compares these models with the offline
judges without having their weights. `make fewshot` adds the rows that are missing.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from esfp import calls, files, params, progress
from esfp.comparison import FEW_SHOT
from esfp.files import DataError
from esfp.gold import load_gold
from esfp.providers import Provider

PROMPTS = "corpus/few_shot.yaml"
JOURNAL = "outputs/.cache/few_shot.sqlite"
TOP = 50  # tokens whose probabilities are asked for
ASKED = {"temperature": 0, "max_tokens": 1, "logprobs": True, "top_logprobs": TOP}


@dataclasses.dataclass(frozen=True)
class Task:
    """What is asked; `question` has a slot for each column of a row that is shown.

    `answers` is label → the word that stands for it; `examples` have the question's slots and the
    `answer`.
    """

    instruction: str
    question: str
    answers: dict[str, str]
    examples: list[dict[str, str]]

    def messages(self, row: dict[str, str]) -> tuple[tuple[str, str], ...]:
        """A chat: each example asked and answered, and then the row asked."""
        turns = [("system", self.instruction)]
        for each in self.examples:
            turns += [("user", self.question.format(**each)), ("assistant", each["answer"])]
        return (*turns, ("user", self.question.format(**row)))


def load_tasks(path: str | Path = PROMPTS) -> dict[str, Task]:
    """The tasks by name, `sentences` and `stances`.

    Raises
    ------
    DataError
        If a key is missing or unknown, or an example's answer is none of the answers.
    """
    tasks = {}
    for name, fields in yaml.safe_load(Path(path).read_text(encoding="utf-8")).items():
        try:
            task = Task(**fields)
            task.messages(task.examples[0])
        except (TypeError, KeyError, IndexError) as error:
            raise DataError(f"{path}: {name}: {error}; each task has the four keys instruction, "
                            "question, answers and examples") from None  # fmt: skip
        for example in task.examples:
            if example["answer"] not in task.answers.values():
                raise DataError(
                    f"{path}: {name}: the answer '{example['answer']}' of an example is none of "
                    f"{', '.join(task.answers.values())}"
                )
        tasks[name] = task
    return tasks


def read(raw: dict, answers: dict[str, str]) -> list[float]:
    """Probabilities of the labels out of a raw completion, summing to 1.

    A token counts for the label whose word it begins, if it begins no other's. A label with no
    token among those sent is taken to be as likely as the least likely of these.

    Raises
    ------
    DataError
        If the endpoint sent no probabilities.
    """
    try:
        sent = raw["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        tokens = [(each["token"].strip(), float(each["logprob"])) for each in sent]
        least = min(value for _, value in tokens)
    except (LookupError, TypeError, ValueError):
        raise DataError("the endpoint sends no probabilities (logprobs) of its tokens") from None
    found = dict.fromkeys(answers, 0.0)
    for token, value in tokens:
        begun = [label for label, word in answers.items() if token and word.startswith(token)]
        if len(begun) == 1:
            found[begun[0]] += np.exp(value)
    sums = np.array([value or np.exp(least) for value in found.values()])
    return (sums / sums.sum()).tolist()


def labelling(provider: Provider) -> Provider:
    """A candidate's provider, without the decoding that its answers are drawn by.

    An embedded model gets room for the examples and the longest response.
    """
    embedded = provider.embedded and provider.embedded.model_copy(
        update={"slots": 4, "context": 2560}
    )
    return provider.model_copy(update={"decoding": {}, "embedded": embedded})


def requests(
    task: Task, gold: pd.DataFrame, provider: Provider, model: str
) -> dict[str, calls.Request]:
    """The request for each row, by its id."""
    return {
        row[gold.columns[0]]: calls.Request(
            calls.identity(provider), model, task.messages(row), ASKED
        )
        for row in gold.to_dict("records")
    }


def known(path: Path, key: str, labels: list[str]) -> pd.DataFrame:
    """The table so far; its columns are the row's id, judge, the labels, request and asked_on."""
    columns = [key, "judge", *labels, "request", "asked_on"]
    if not path.is_file():
        return pd.DataFrame(columns=columns)
    table = pd.read_csv(path, dtype={key: str, "request": str, "asked_on": str})
    missing = [column for column in columns if column not in table]
    if missing:
        raise DataError(f"{path}: column '{missing[0]}' is missing; delete the file to ask anew")
    return table[columns]


def ask(
    task: Task, gold: pd.DataFrame, judge: str, provider: Provider, model: str, path: Path
) -> int:
    """Add to a table the rows that it lacks; returns how many it still lacks.

    A row is known by its request (weights, prompt and text): where one of these has changed it is
    asked anew. An interrupted run keeps what was answered; held-out rows come first.
    """
    key, labels = str(gold.columns[0]), list(task.answers)
    asked = requests(task, gold.sort_values("split", kind="stable"), provider, model)
    table = known(path, key, labels)
    others, mine = (table[(table["judge"] == judge) == own] for own in (False, True))
    names = {row: request.sha[:16] for row, request in asked.items()}
    mine = mine[mine["request"] == mine[key].map(names)]
    wanted = {asked[row].sha: row for row in asked if row not in set(mine[key])}
    with calls.Journal(JOURNAL) as journal:
        try:
            pending = wanted.keys() - journal.known()
            left = [asked[row] for sha, row in wanted.items() if sha in pending]
            report = progress.reporter(f"{judge} on {path.stem}", len(asked) - len(left))
            calls.complete(left, provider, journal, report)
        finally:
            answers = journal.answers(wanted)
            rows = [
                [wanted[sha], judge, *read(raw, task.answers), sha[:16], when[:10]]
                for sha, (raw, when) in answers.items()
            ]
            new = pd.DataFrame(rows, columns=table.columns)
            new = pd.concat([each for each in (mine, new) if len(each)] or [new])
            order = {row: place for place, row in enumerate(gold[key])}
            new = new.sort_values(key, key=lambda ids: ids.map(order))
            whole = pd.concat([each for each in (others, new) if len(each)] or [new])
            files.write_csv(path, whole.sort_values("judge", kind="stable"))
    return len(asked) - len(new)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m esfp.few_shot", description=__doc__)
    parser.add_argument("--params", required=True, help="its candidates are the models asked")
    parser.add_argument("--model", help="the name of one candidate; all without it")
    parser.add_argument("--gold", default="corpus/gold")
    given = parser.parse_args(arguments)
    try:
        settings = params.load(given.params)
        candidates = [
            each for each in settings.generate.candidates if given.model in (None, each.name)
        ]
        if not candidates:
            raise DataError(f"{given.params}: no candidate is called '{given.model}'")
        sentences, stances = load_gold(given.gold)
        tables = {
            "sentences": sentences[["sentence_id", "sentence", "split"]],
            "stances": stances[["response_id", "text", "claim", "split"]],
        }
        for candidate in candidates:
            for name, task in load_tasks().items():
                path = Path(given.gold, FEW_SHOT[name])
                provider = labelling(settings.providers[candidate.provider])
                model = candidate.model or candidate.name
                left = ask(task, tables[name], candidate.name, provider, model, path)
                done = len(tables[name]) - left
                print(f"{path}: {done} of {len(tables[name])} rows by {candidate.name}")
    except DataError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
