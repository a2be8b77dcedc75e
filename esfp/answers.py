"""Reading a raw chat completion: answer, trace and status (pure; no call)."""

from __future__ import annotations

import json
from typing import Any

from esfp import text

FINAL = {"ok", "refused", "blocked"}  # drawing again after refusals alone would bias the measure
_LENGTH = {"length", "max_tokens", "max_output_tokens"}
_FILTER = {"content_filter", "safety", "prohibited_content", "blocklist", "recitation", "spii"}
_TRACES = ("thinking", "reasoning")  # types of parts that hold a trace


def _parts(content: Any) -> tuple[str, str, str]:
    """(answer, trace, refusal) of a message's content, which is a text, a list of parts or null."""
    if content is None or isinstance(content, str):
        return content or "", "", ""
    parts = content if isinstance(content, list) else [content]
    answer, trace, refusal = "", "", ""
    for part in parts:
        if isinstance(part, str):
            answer += part
        elif isinstance(part, dict):
            kind = part.get("type")
            if kind in _TRACES or any(name in part for name in _TRACES):
                inner = next((part[k] for k in (*_TRACES, "text") if part.get(k)), "")
                trace += "".join(_parts(inner)[:2])
            elif kind == "refusal" or part.get("refusal"):
                refusal += str(part.get("refusal") or "")
            else:
                inner = part.get("text") or part.get("content") or ""
                answer += inner if isinstance(inner, str) else str(inner.get("value") or "")
    return answer, trace, refusal


def _separate_trace(message: dict[str, Any]) -> str:
    """The trace that some endpoints send in a field of its own."""
    for key in ("reasoning_content", "reasoning", "thinking"):
        found = "".join(_parts(message.get(key))[:2])
        if found:
            return found
    details = message.get("reasoning_details")
    if isinstance(details, list):
        return "".join(str(d.get("text") or d.get("summary") or "") for d in details
                       if isinstance(d, dict))  # fmt: skip
    return ""


def _name(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _count(usage: Any, key: str) -> int | None:
    value = usage.get(key) if isinstance(usage, dict) else None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if number and 0 <= value < 1 << 53 else None


def _words(problem: Any) -> str | None:
    """An error as text; None where there is none."""
    if not problem:
        return None
    return problem if isinstance(problem, str) else json.dumps(problem, ensure_ascii=False)


def tokens(raw: dict[str, Any]) -> tuple[int | None, int | None]:
    """Tokens of the prompt and of the answer, as the endpoint counts; None where it does not."""
    usage = raw.get("usage")
    return _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")


def read_answer(raw: dict[str, Any]) -> dict[str, Any]:
    """Answer, trace and status out of a raw chat completion.

    Of several choices the first is read: the others would be draws nobody asked for.

    Returns
    -------
    dict
        text, trace, status (ok, refused, empty, truncated, blocked, error), finish_reason,
        served_model, fingerprint (of the endpoint's build, where it names one), prompt_tokens,
        completion_tokens, error.
    """
    prompt_tokens, completion_tokens = tokens(raw)
    out: dict[str, Any] = {
        "text": "",
        "trace": None,
        "status": "error",
        "finish_reason": None,
        "served_model": _name(raw.get("model")),
        "fingerprint": _name(raw.get("system_fingerprint")),
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "error": None,
    }
    choices = raw.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        out["error"] = _words(raw.get("error")) or "the endpoint sent no choices"
        return out
    message = choices[0].get("message")
    message = message if isinstance(message, dict) else {"content": message}
    reason = choices[0].get("finish_reason")
    plain = str(reason or "").lower()
    out["finish_reason"] = "length" if plain in _LENGTH else reason
    content, inner, refusal = _parts(message.get("content"))
    answer, trace = text.strip_trace(content)
    out["text"] = answer.strip()
    out["trace"] = "\n".join(p for p in (_separate_trace(message), inner, trace) if p) or None
    refusal = message.get("refusal") or refusal
    if refusal or plain == "refusal":
        out["status"] = "refused"
        out["text"] = refusal if refusal and isinstance(refusal, str) else out["text"]
    elif plain in _FILTER:
        out["status"], out["error"] = "blocked", _words(raw.get("error"))
    elif out["text"]:
        out["status"] = "ok"
    elif out["finish_reason"] == "length":
        out["status"] = "truncated"
    else:
        out["status"], out["error"] = "empty", _words(raw.get("error"))
        if message.get("tool_calls") or message.get("function_call"):
            out["error"] = "the model called a tool and said nothing"
    return out
