"""Time and memory of resuming a run of 10,000 journalled calls: `python -m tests.resume`.

The answers are those of the recorded run, so their lengths are a model's; the time of `json.loads`
of all of them is printed beside, to compare machines by.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from esfp import files, generate, params
from esfp.journal import Journal
from tests.conftest import REPO

PROMPTS, SAMPLES = 500, 20


def requests(folder: Path, samples: int) -> tuple[dict, list]:
    """Arguments of `generate.ask`, and its requests in order."""
    corpus = {name: str(REPO / path) for name, path in params.Corpus().model_dump().items() if path}
    prompts = generate.load_prompts(corpus | {"per_type": None, "types": None})[1].head(PROMPTS)
    provider = params.Provider(base_url="http://127.0.0.1:9/v1", decoding={"temperature": 0.6})
    candidate = params.Candidate(name="m", provider="p")
    system = (REPO / "corpus/prompts/response.txt").read_text(encoding="utf-8").strip()
    planned = generate.plan(prompts, candidate, provider, system, samples)
    arguments = {
        "run_dir": str(folder),
        "prompts": prompts,
        "candidates": [candidate.model_dump()],
        "providers": {"p": provider.model_dump()},
        "system_prompt": system,
        "samples": samples,
    }
    return arguments, planned["request"].tolist()


def fill(folder: Path, samples: int) -> list[str]:
    """Journal an answer to each request; returns them as JSON."""
    responses = files.read_shards(
        REPO / "outputs/local/responses", ["SmolLM2-135M-Instruct"], files.RESPONSES
    )
    texts = responses.loc[responses["status"] == "ok", "text"].tolist()
    rows = []
    for number, request in enumerate(requests(folder, samples)[1]):
        raw = {
            "id": f"chatcmpl-{number:024d}",
            "object": "chat.completion",
            "created": 1_700_000_000 + number,
            "model": "m-2026-01-01",
            "choices": [
                {
                    "index": 0,
                    "message": {
                        "role": "assistant",
                        "content": texts[number % len(texts)],
                        "refusal": None,
                        "annotations": [],
                    },
                    "logprobs": None,
                    "finish_reason": "stop",
                }
            ],
            "usage": {"prompt_tokens": 90, "completion_tokens": 160, "total_tokens": 250},
            "system_fingerprint": "fp_0123456789",
        }
        rows.append((request.sha, request.canonical(), raw, "2026-01-01T00:00:00+00:00"))
    with Journal(folder / "journal.sqlite") as journal:
        journal.put_all(rows)
    return [json.dumps(row[2], ensure_ascii=False) for row in rows]


def resume(folder: Path, samples: int) -> None:
    """Print seconds and peak megabytes of `generate.ask` with every answer in the journal."""
    arguments, _ = requests(folder, 1)
    arguments["samples"] = samples
    start = time.perf_counter()
    table = generate.ask(**arguments)
    seconds = time.perf_counter() - start
    assert len(table) == PROMPTS * samples and table["status"].eq("ok").all()
    peak = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
    print(seconds, int(peak[1]) / 1024)


def measure(samples: int) -> tuple[float, float, list[str]]:
    """(seconds, peak megabytes, the answers as JSON) of a process of its own that resumes."""
    with tempfile.TemporaryDirectory() as folder:
        raws = fill(Path(folder), samples)
        command = [sys.executable, "-m", "tests.resume", folder, str(samples)]
        done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=True)
    seconds, megabytes = map(float, done.stdout.split())
    return seconds, megabytes, raws


def reading(raws: list[str]) -> float:
    """Seconds that `json.loads` takes for all of them."""
    start = time.perf_counter()
    for raw in raws:
        json.loads(raw)
    return time.perf_counter() - start


def main() -> None:
    _, least, _ = measure(1)
    seconds, most, raws = measure(SAMPLES)
    unit = reading(raws)
    size = sum(map(len, raws)) / 1e6
    print(
        f"{len(raws)} answers of {size:.0f} MB resumed in {seconds:.2f} s, {seconds / unit:.0f} "
        f"times json.loads of them; the process grew by {most - least:.0f} MB over one that "
        f"resumes {PROMPTS}"
    )


if __name__ == "__main__":
    if len(sys.argv) == 3:
        resume(Path(sys.argv[1]), int(sys.argv[2]))
    else:
        main()
