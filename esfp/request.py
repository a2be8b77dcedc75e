"""What identifies a call: the request, as its provider wants it put, and its sha256."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from typing import Any

from esfp.providers import Provider


@dataclasses.dataclass(frozen=True)
class Request:
    """One single-turn chat call.

    `endpoint` is the identity of what answers: see `identity`.
    `decoding` holds the sampling parameters and, for judges, the response format. `remark` is sent
    below the last message and identifies nothing: it says in a parser's words why an earlier answer
    was no use, and another parser's words are no reason to ask again. What sets such a request
    apart from the first is its `sample`.
    """

    endpoint: str
    model: str
    messages: tuple[tuple[str, str], ...]  # (role, content)
    decoding: dict[str, Any]
    sample: int = 0
    remark: str = ""

    def canonical(self) -> str:
        """JSON with sorted keys and no white space; equal requests give equal text."""
        # the fields themselves: dataclasses.asdict copies all of them, thrice as slowly
        return json.dumps(
            {name: vars(self)[name] for name in _FIELDS},
            sort_keys=True,
            ensure_ascii=False,
            separators=(",", ":"),
        )

    @functools.cached_property
    def sha(self) -> str:
        """sha256 of the canonical JSON, hexadecimal."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()

    def sent(self) -> dict[str, Any]:
        """Arguments of the client's call.

        A `seed` among the decoding parameters is the run's: what is sent is derived from it and
        from the whole request, so that two prompts do not share their random numbers.
        """
        decoding = dict(self.decoding)
        as_is = decoding.pop("extra_body", {})
        if "seed" in decoding:
            decoding["seed"] = int(self.sha[:8], 16) >> 1
        known = {"temperature", "top_p", "max_tokens", "max_completion_tokens", "seed", "stop"}
        known |= {"frequency_penalty", "presence_penalty", "response_format", "reasoning_effort"}
        extra = {key: value for key, value in decoding.items() if key not in known} | as_is
        arguments = {key: value for key, value in decoding.items() if key in known}
        if extra:
            arguments["extra_body"] = extra
        messages = [{"role": role, "content": content} for role, content in self.messages]
        if self.remark:
            messages[-1]["content"] += f"\n\n{self.remark}"
        return {"model": self.model, "messages": messages} | arguments


_FIELDS = [field.name for field in dataclasses.fields(Request) if field.name != "remark"]


def identity(provider: Provider) -> str:
    """What answers at this provider: an endpoint by its URL, embedded weights by their sha256.

    A chat template of the params file's adds its own sha256.
    """
    if provider.embedded is not None:
        weights, template = provider.embedded.weights, provider.embedded.chat_template
        added = "" if template is None else hashlib.sha256(template.encode()).hexdigest()
        return f"sha256:{weights.sha256}" + (f"+template:{added}" if added else "")
    return str(provider.base_url).rstrip("/")


def build(
    provider: Provider,
    model: str,
    system: str,
    user: str,
    decoding: dict[str, Any],
    sample: int = 0,
) -> Request:
    """The request for one prompt, put as this provider wants it.

    Parameters
    ----------
    model
        The id sent to the endpoint.
    decoding
        Laid over the provider's own.
    """
    wanted = provider.decoding | decoding
    if provider.omit_temperature:
        wanted.pop("temperature", None)
    if provider.limit_parameter != "max_tokens":
        written = [wanted.pop(name, None) for name in ("max_tokens", "max_completion_tokens")]
        limit = next((value for value in written if value is not None), None)
        if limit is not None and provider.limit_parameter != "none":
            wanted["max_completion_tokens"] = limit
    if provider.extra_body:
        wanted["extra_body"] = provider.extra_body
    if provider.system_role == "user":
        messages = (("user", f"{system}\n\n{user}"),)
    else:
        messages = ((provider.system_role, system), ("user", user))
    return Request(identity(provider), model, messages, wanted, sample)
