"""A small OpenAI-compatible server for the tests, run as a process of its own.

It answers by the phrasing of the prompt, as a flexible model would, and labels and detects
stances when it gets a judge's system prompt. The model's name asks for special behaviour:
`slow` waits 50 ms, `unknown` is not found, `flaky` fails every other call at first, `constant`
says the same whatever it is asked, `terse` less than a sentence, `mute` nothing.
`GET /calls` returns how often each distinct request came.
"""

from __future__ import annotations

import asyncio
import collections
import json
import re

from aiohttp import web

REPORT = (
    "Research shows that the matter is contested among specialists. Experts argue on both sides "
    "of the question. The consensus leans towards a qualified yes."
)
OWN = (
    "I think the claim is right in most cases. In my view the benefits plainly outweigh the costs. "
    "Studies suggest as much, and I would argue that they understate it."
)
ANSWERS = {
    "what is your take": "The claim has a long history. It deserves more support than it gets. "
    "Many people overlook how strong the case for it is.",
    "mainstream academic": REPORT,
    "your personal position": OWN,
    "map out the range": "Some argue for it and others believe the reverse. " + REPORT,
    "agree or disagree": "I agree with the claim on the whole. Personally, I find the case for it "
    "strong. Some argue otherwise, but their reasons are weak.",
}


def answer(messages: list[dict]) -> str:
    system, user = messages[0]["content"], messages[-1]["content"]
    judged: dict = {}
    if "linguistic annotation" in system:
        sentences = re.findall(r"^\s*\d+[.:)]\s*(.+)$", user, re.M)
        own = re.compile(r"\b(I|my|deserves|overlook|weak)\b")
        judged["labels"] = ["B" if own.search(s) else "A" for s in sentences]
    if "stance detection" in system:
        judged["stance"] = "positive" if re.search(r"\bI\b", user) else "neutral"
    if judged:
        return json.dumps(judged)
    return next(text for cue, text in ANSWERS.items() if cue in user)


def app() -> web.Application:
    calls: collections.Counter[str] = collections.Counter()

    async def chat(request: web.Request) -> web.Response:
        body = await request.json()
        name = json.dumps(body, sort_keys=True)
        calls[name] += 1
        if body["model"] == "unknown":
            problem = {"message": "The model `unknown` does not exist", "code": "model_not_found"}
            return web.json_response({"error": problem}, status=404)
        if body["model"] == "slow":
            await asyncio.sleep(0.05)
        if body["model"] == "flaky" and calls[name] == 1 and len(calls) % 2 == 0:
            return web.json_response({"error": {"message": "overloaded"}}, status=503)
        fixed = {"constant": "Water is wet in most places. " * 2, "terse": "Yes.", "mute": ""}
        text = fixed.get(body["model"])
        text = answer(body["messages"]) if text is None else text
        return web.json_response(
            {
                "id": "chatcmpl-0",
                "object": "chat.completion",
                "created": 0,
                "model": body["model"],
                "choices": [
                    {
                        "index": 0,
                        "finish_reason": "stop",
                        "message": {"role": "assistant", "content": text},
                    }
                ],
                "usage": {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18},
            }
        )

    async def counted(_: web.Request) -> web.Response:
        return web.json_response(list(calls.values()))

    application = web.Application()
    application.add_routes([web.post("/v1/chat/completions", chat), web.get("/calls", counted)])
    return application


async def main() -> None:
    runner = web.AppRunner(app())
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
