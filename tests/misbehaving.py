"""An OpenAI-compatible server that misbehaves as real ones do, run as a process of its own.

The model's name is the script: what comes back for a prompt's first, second … request, parted by
commas, the last one for ever; `500,ok` fails once. `GET /log` returns every request that came, in
order: model, body, headers, and how many were under way; `/reset` empties it.
"""

from __future__ import annotations

import asyncio
import collections
import email.utils
import json
import re
import time

from aiohttp import web

from tests.server import answer

TRACE = "Let me think about what is asked. I think, in my view, that it is so. " * 40
LONG = TRACE * 12

# answers with status 200: (message, finish_reason)
MESSAGES = {
    "null": ({"content": None}, "stop"),
    "empty": ({"content": "  \n"}, "stop"),
    "refusal": ({"content": None, "refusal": "I cannot help with that."}, "stop"),
    "refusal-reason": ({"content": "I cannot help with that."}, "refusal"),
    "filtered": ({"content": ""}, "content_filter"),
    "cut": ({"content": "It has a long history, and the rea"}, "length"),
    "cut-trace": ({"content": f"<think>{TRACE}"}, "length"),
    "cut-field": ({"content": "", "reasoning_content": TRACE}, "length"),
    "tool": (
        {"content": None, "tool_calls": [{"id": "1", "type": "function", "function": {}}]},
        "tool_calls",
    ),
}
# {} is the answer
CONTENTS = {
    "think": f"<think>{LONG}</think>\n\n{{}}",
    "thinking": f"<thinking>{TRACE}</thinking>{{}}",
    "closed": f"{TRACE}</think>{{}}",
    "nested": f"<think>a<think>{TRACE}</think>b</think>{{}}",
    "several": f"<think>{TRACE}</think><think>again</think>{{}}",
    "harmony": f"<|channel|>analysis<|message|>{TRACE}<|end|><|start|>assistant<|channel|>final"
    "<|message|>{}<|return|>",
}


def error(status: int, message: str, code: str | None = None, **headers) -> web.Response:
    body = {"error": {"message": message, "type": "error", "code": code}}
    return web.json_response(body, status=status, headers=headers)


ERRORS = {
    "400": lambda: error(400, "Unsupported value: 'temperature'", "unsupported_value"),
    "401": lambda: error(401, "Incorrect API key provided", "invalid_api_key"),
    "403": lambda: error(403, "This account may not use the model"),
    "404": lambda: error(404, "The model does not exist", "model_not_found"),
    "400-filter": lambda: error(400, "The prompt triggered the content policy", "content_filter"),
    "429": lambda: error(429, "Slow down", "rate_limit_exceeded"),
    "429-seconds": lambda: error(429, "Slow down", **{"Retry-After": "1"}),
    "429-date": lambda: error(
        429, "Slow down", **{"Retry-After": email.utils.formatdate(time.time() + 2, usegmt=True)}
    ),
    "429-hours": lambda: error(429, "Slow down", **{"Retry-After": "7200"}),
    "429-quota": lambda: error(429, "You exceeded your current quota", "insufficient_quota"),
    "500": lambda: error(500, "The server had an error"),
    "503": lambda: error(503, "Overloaded"),
    "502": lambda: web.Response(status=502, text="<html>Bad gateway</html>"),
    "200-429": lambda: web.json_response(
        {"choices": None, "error": {"message": "Rate limited upstream", "code": 429}}
    ),
    "200-overload": lambda: web.json_response({"error": {"message": "Provider overloaded"}}),
    "200-quota": lambda: web.json_response(
        {"choices": [], "error": {"message": "Insufficient credits", "code": 402}}
    ),
    "200-none": lambda: web.json_response({"choices": None}),
    "200-html": lambda: web.Response(text="<html>Log in</html>", content_type="text/html"),
}


def completion(model: str, message: dict, finish: str = "stop", **more) -> dict:
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant"} | message}
    usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
    return {"id": "1", "object": "chat.completion", "created": 0, "model": model} | {
        "choices": [choice], "usage": usage
    } | more  # fmt: skip


def judged(step: str, text: str, body: dict) -> tuple[dict, str]:
    """A judge's reply (message, finish_reason) of some kind, out of the right one."""
    user = body["messages"][-1]["content"]
    value = json.loads(text)
    if step == "judge-short" and "labels" in value:  # one label too few, until it is told
        if "no use" not in user and len(value["labels"]) > 1:
            text = json.dumps({"labels": value["labels"][1:]})
    if step in ("judge-no-labels", "judge-no-stance") and "no use" not in user:
        text = json.dumps({k: v for k, v in value.items() if k != step.removeprefix("judge-no-")})
    if step in ("judge-audit", "judge-shifted") and "labels" in value:
        lines = re.findall(r"^\d+\. (.+)$", user, re.M)
        words = [" ".join(json.loads(line).split()[:5]) for line in lines]
        entries = [
            {"n": n, "first_words": echo, "label": label}
            for n, (echo, label) in enumerate(zip(words, value["labels"], strict=True), start=1)
        ]
        if step == "judge-shifted" and "no use" not in user:  # the first sentence is passed over
            for entry, echo in zip(entries, words[1:] + words[:1], strict=True):
                entry["first_words"] = echo
        text = json.dumps({"labels": entries})
    if step == "judge-cut" and body.get("max_tokens", 0) < 1000:
        return {"content": text[: len(text) // 2]}, "length"
    if step == "judge-repairable" and body.get("max_tokens", 0) < 1000:
        return {"content": text}, "length"
    if step == "judge-mute":
        text = json.dumps({"labels": []} if "labels" in value else {"verdict": "unclear"})
    if step == "judge-prose":
        return {"content": "I would call it a report."}, "stop"
    if step == "judge-refusing":
        return {"content": None, "refusal": "I will not judge that."}, "stop"
    return {"content": text}, "stop"


TRIED_WELL = (  # they go wrong after their trial
    "judge-mute",
    "judge-refusing",
    "judge-no-labels",
    "judge-no-stance",
    "empty",
)


class Endpoint:
    def __init__(self) -> None:
        self.log: list[dict] = []
        self.seen: collections.Counter[str] = collections.Counter()
        self.busy: collections.Counter[str] = collections.Counter()  # by model

    async def chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        prompt = json.dumps(body, sort_keys=True)
        self.seen[prompt] += 1
        self.busy[body["model"]] += 1
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.log.append({"body": body, "headers": headers, "busy": self.busy[body["model"]]})
        script = body["model"].split(",")
        step = script[min(self.seen[prompt], len(script)) - 1]
        try:
            return await self.act(request, step, body)
        finally:
            self.busy[body["model"]] -= 1

    async def act(self, request: web.Request, step: str, body: dict) -> web.StreamResponse:
        text = answer(body["messages"])
        model = body["model"]
        if step.startswith("varied") and not text.startswith("{"):  # no two prompts, one answer
            text += f" That is for {model} to say about: {body['messages'][-1]['content']}"
        whole = completion(model, {"content": text})
        if "Water is made" in body["messages"][-1]["content"] and step in TRIED_WELL:
            return web.json_response(whole)
        if step in ERRORS:
            return ERRORS[step]()
        if step.startswith("first-"):  # so many are answered, then the key is withdrawn
            before = sum(entry["body"]["model"] == model for entry in self.log)
            if before > int(step.removeprefix("first-")):
                return ERRORS["401"]()
        if step in MESSAGES:
            return web.json_response(completion(model, *MESSAGES[step]))
        if step in CONTENTS:
            content = CONTENTS[step].replace("{}", text)
            return web.json_response(completion(model, {"content": content}))
        if step.startswith("field-"):
            message = {"content": text, step.removeprefix("field-"): TRACE}
            return web.json_response(completion(model, message))
        if step in ("parts", "parts-trace"):
            parts = [{"type": "text", "text": text[:20]}, {"type": "text", "text": text[20:]}]
            if step == "parts-trace":
                trace = [{"type": "text", "text": TRACE}]
                parts = [{"type": "thinking", "thinking": trace}, *parts]
            return web.json_response(completion(model, {"content": parts}))
        if step == "picky":  # refuses what some models refuse
            if "max_tokens" in body:
                return error(400, "Unsupported parameter: 'max_tokens', use another")
            if "temperature" in body:
                return error(400, "Unsupported value: 'temperature' must be 1")
            if any(message["role"] == "system" for message in body["messages"]):
                return error(400, "the role 'system' is not known here")
            if body.get("response_format", {}).get("type") == "json_schema":
                return error(400, "response_format json_schema is not supported")
        if step.startswith("judge-") and text.startswith("{"):
            return web.json_response(completion(model, *judged(step, text, body)))
        if step == "choices":
            second = {"index": 1, "finish_reason": "stop", "message": {"content": "Another."}}
            return web.json_response(whole | {"choices": [*whole["choices"], second]})
        if step == "template":  # the prompt opened the trace, and some traces take all there is
            cut = "agree or disagree" in body["messages"][-1]["content"]
            content, reason = (TRACE, "length") if cut else (f"{TRACE}</think>{text}", "stop")
            return web.json_response(completion(model, {"content": content}, reason))
        if step == "half-pair":  # an emoji cut in two, as JSON may spell it
            cut = completion(model, {"content": text + "\ud83d"})
            return web.Response(text=json.dumps(cut), content_type="application/json")
        if step == "latin-1":
            data = json.dumps(completion(model, {"content": text + "é"}), ensure_ascii=False)
            return web.Response(body=data.encode("latin-1"), content_type="application/json")
        if step == "odd-usage":
            odd = {"prompt_tokens": float("nan"), "completion_tokens": 1 << 70}
            return web.Response(
                text=json.dumps(whole | {"usage": odd}), content_type="application/json"
            )
        if step == "no-usage":
            return web.json_response({key: whole[key] for key in whole if key != "usage"})
        if step == "alias":
            served = "served-1" if len(self.log) <= 3 else "served-2"
            return web.json_response(whole | {"model": served})
        if step == "echo-key":
            return error(401, f"Wrong key {request.headers.get('Authorization', '')}")
        if step == "echo-key-answer":
            said = f"Your key is {request.headers.get('Authorization', '')}. " + text
            return web.json_response(completion(model, {"content": said}))
        if step.startswith("limit-"):  # more calls at once than that are one too many
            if self.busy[model] > int(step.removeprefix("limit-")):
                return error(429, "Slow down")
            await asyncio.sleep(0.02)
        if step.startswith("wait-"):
            await asyncio.sleep(float(step.removeprefix("wait-")))
        if step in ("reset", "half", "drip"):
            return await self.broken(request, step, json.dumps(whole).encode())
        return web.json_response(whole)

    async def broken(self, request: web.Request, step: str, data: bytes) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        if step == "reset":
            response.content_length = len(data)
        await response.prepare(request)
        if step == "drip":
            for byte in data:
                await response.write(bytes([byte]))
                await asyncio.sleep(0.1)
        await response.write(data[: len(data) // 2])
        if step == "reset":
            await asyncio.sleep(0.02)
            request.transport.abort()
        return response

    async def read_log(self, _: web.Request) -> web.Response:
        return web.json_response(self.log)

    async def reset(self, _: web.Request) -> web.Response:
        self.log.clear()
        self.seen.clear()
        return web.json_response({})


async def main() -> None:
    endpoint = Endpoint()
    application = web.Application()
    application.add_routes(
        [
            web.post("/v1/chat/completions", endpoint.chat),
            web.get("/log", endpoint.read_log),
            web.get("/reset", endpoint.reset),
        ]
    )
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
