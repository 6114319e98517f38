"""The arguments of a call as an object."""

from __future__ import annotations

import json
from typing import Any


def params_of(data: bytes) -> dict[str, Any]:
    """The arguments; none where they are no JSON object (`has_params`)."""
    found = _read(data)
    return found if isinstance(found, dict) else {}


def has_params(data: bytes) -> bool:
    """Whether the arguments are an object, or there are none."""
    return not data.strip() or isinstance(_read(data), dict)


def _read(data: bytes) -> Any:
    def refuse(name: str) -> float:
        raise ValueError(f"{name} is no JSON")

    try:
        return json.loads(data.decode("utf-8", "strict"), parse_constant=refuse) if data.strip() else None
    except (ValueError, RecursionError):
        return None
