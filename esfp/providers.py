"""What reaches a model: embedded weights, or an endpoint and how it wants to be asked."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from esfp import keys


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Weights(Strict):
    """Where a weights file comes from: Python packages, a local path, or a hub repository.

    A file that is spread over several packages names their number as `parts`; `{part}` in
    `package` and `member` stands for 1 … parts (`{part:02d}` with a leading zero), and in a member
    `*` for anything. The members are put together in this order.
    """

    package: str | None = None
    version: str | None = None
    member: str | None = None
    parts: Annotated[int, Field(ge=1)] = 1
    path: str | None = None
    hub_repo: str | None = None
    hub_file: str | None = None
    file_name: str | None = None  # what the server calls the model; the file's own name if absent
    sha256: Sha256

    @model_validator(mode="after")
    def one_source(self):
        sources = {
            "package, version and member": [self.package, self.version, self.member],
            "path": [self.path],
            "hub_repo and hub_file": [self.hub_repo, self.hub_file],
        }
        started = [name for name, parts in sources.items() if any(parts)]
        if len(started) != 1 or not all(sources[started[0]]):
            raise ValueError(f"give exactly one source: {'; or '.join(sources)}")
        return self


class Embedded(Strict):
    """A GGUF model served in this process by llama.cpp.

    `chat_template` (Jinja, over `messages`) stands in for the one in the weights file, and is part
    of what identifies a request. A model that was never tuned on chats has none of its own.
    """

    weights: Weights
    slots: Annotated[int, Field(ge=1)] = 8
    threads: Annotated[int, Field(ge=1)] = 2
    context: Annotated[int, Field(ge=256)] = 1280  # tokens a slot: prompt and answer
    chat_template: Annotated[str, Field(min_length=1)] | None = None


class Provider(Strict):
    """An OpenAI-compatible endpoint, or an embedded model behind one on the loopback.

    Decoding parameters, extra_body and system_role are part of what identifies a request: a
    change of one asks again. Rates, time-outs, retries and headers are not.
    """

    base_url: str | None = None
    embedded: Embedded | None = None
    # the name of the environment variable, or of the line in .env, that holds the key
    key_env: str | None = None
    concurrency: Annotated[int, Field(ge=1)] = 20  # calls at once; 429s lower it for a while
    requests_per_minute: Annotated[float, Field(gt=0)] | None = None
    tokens_per_minute: Annotated[float, Field(gt=0)] | None = None  # prompt and most of the answer
    timeout: Annotated[float, Field(gt=0)] = 120.0  # seconds, the whole call
    connect_timeout: Annotated[float, Field(gt=0)] = 10.0  # seconds, to be reached at all
    retries: Annotated[int, Field(ge=0)] = 5
    decoding: dict[str, Any] = {}
    # the name under which the limit of an answer (max_tokens) is sent; 'none' sends no limit
    limit_parameter: Literal["max_tokens", "max_completion_tokens", "none"] = "max_tokens"
    omit_temperature: bool = False  # for models that refuse one
    system_role: Literal["system", "developer", "user"] = "system"  # user: put before the prompt
    extra_body: dict[str, Any] = {}  # sent as it is, beside the parameters
    extra_headers: dict[str, str] = {}  # no keys: these are read from key_env alone
    json_mode: Literal["schema", "object", "plain"] = "schema"  # how judges are asked for JSON

    @field_validator("extra_headers")
    @classmethod
    def no_key_in_a_header(cls, headers):
        for name, value in headers.items():
            if name.lower() == "authorization" or keys.looks_like_key(value, name):
                # the value is not repeated
                raise ValueError(f"the header '{name}' looks like a key: give its variable's name "
                                 "as key_env instead")  # fmt: skip
        return headers

    @model_validator(mode="after")
    def one_endpoint(self):
        if (self.base_url is None) == (self.embedded is None):
            raise ValueError("give either base_url or embedded")
        if self.key_env and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", self.key_env):
            # the value is not quoted: it may be a key that someone pasted here
            raise ValueError("key_env takes the name of an environment variable, not a key")
        return self
