"""What is recorded, in the words that a log has for it."""

from __future__ import annotations

import json
from typing import Any

from harken.formats.std.document import Json
from harken.formats.std.parts import inner, text


def summary_of(output: object) -> str:
    """What a sub-agent handed in, in words."""
    if not isinstance(output, dict):
        return ""
    said = output.get("summary")
    return said if isinstance(said, str) else json.dumps(output, ensure_ascii=False)


def answer_text(output: Json) -> str:
    """What a tool answered, in words."""
    result, error = output.get("result"), output.get("error")
    if isinstance(result, dict) and isinstance(result.get("display"), str):
        return str(result["display"])
    told = [json.dumps(result, ensure_ascii=False)] if result else []
    return "\n".join([error, *told] if isinstance(error, str) else told)


_TELLING = ("task_description", "description", "summary", "content", "current_step", "reason", "verdict", "status")


def message_text(message_type: str, payload: Any) -> str:
    """A message in words: its type, and what its payload says first."""
    if isinstance(payload, str):
        return f"{message_type}: {payload}"
    for part in (payload, inner(payload, "task")):
        for key in _TELLING:
            if (said := text(part, key)).strip():
                return f"{message_type}: {said}"
    return f"{message_type}: {json.dumps(payload, ensure_ascii=False)}" if payload else message_type
