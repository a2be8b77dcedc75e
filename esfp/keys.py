"""Keys: where they are read from, and how they are kept out of everything that is written."""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from typing import Any

_SHAPES = re.compile(
    r"\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}|\b(?:gsk|hf|xai|r8|nvapi|ghp|gho|github_pat|glpat|pplx|"
    r"csk|fw|tgp)[-_][A-Za-z0-9_-]{16,}|\bAIza[A-Za-z0-9_-]{30,}|\bAKIA[A-Z0-9]{16}\b|"
    r"\bxox[abprs]-[A-Za-z0-9-]{10,}|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}|"
    r"\bBearer\s+\S{8,}|\bBasic\s+[A-Za-z0-9+/=]{12,}|://[^/@\s:]+:[^/@\s]+@"
)
_SECRET_NAME = re.compile(
    r"(?:^|[-_.])(?:authorization|auth|(?:api|access|secret|subscription)[-_]?key|key|token|"
    r"secret|password|credential|cookie)s?$",
    re.I,
)
_HARMLESS = re.compile(r"^(?:key_env|sha256)$")


def looks_like_key(value: str, name: str = "") -> bool:
    """Whether a text has the shape of a key.

    Known shapes are found anywhere; under a name such as `authorization`, `x-api-key` or `token`,
    so is any long text without spaces whose characters carry more than three bits each.
    """
    if _SHAPES.search(value):
        return True
    if _HARMLESS.match(name) or not _SECRET_NAME.search(name):
        return False
    counts = Counter(value)
    bits = -sum(n / len(value) * math.log2(n / len(value)) for n in counts.values())
    return len(value) >= 16 and not re.search(r"\s", value.strip()) and bits > 3


def find(data: Any, place: tuple = ()) -> tuple | None:
    """Where in nested params something looks like a key; None where nothing does."""
    if isinstance(data, dict):
        for name, value in data.items():
            if isinstance(name, str) and looks_like_key(name):
                return place
            if (found := find(value, (*place, name))) is not None:
                return found
    elif isinstance(data, list):
        for number, value in enumerate(data):
            if (found := find(value, (*place, number))) is not None:
                return found
    elif isinstance(data, str):
        names = [str(part) for part in place if not isinstance(part, int)]
        if looks_like_key(data, names[-1] if names else ""):
            return place
    return None


def get(name: str) -> str | None:
    """The value of an environment variable, or of a line in the file .env; None where neither."""
    from dotenv import dotenv_values

    return os.environ.get(name) or dotenv_values(".env", interpolate=False).get(name) or None
