"""The messages of a GenAI span as a short JSON Schema: every part by its kind, and no other kinds.

It says what the published schemas of the conventions ask for, without the part of any kind that they let pass."""

from __future__ import annotations

from typing import Any

_TEXT = {"type": "string"}


def _part(kind: str, required: tuple[str, ...], **fields: Any) -> dict[str, Any]:
    return {"properties": {"type": {"const": kind}, **fields}, "required": ["type", *required]}


_SERVER = {"type": "object", "properties": {"type": _TEXT}, "required": ["type"]}
_PARTS = [
    _part("text", ("content",), content=_TEXT),
    _part("reasoning", ("content",), content=_TEXT),
    _part("tool_call", ("name",), name=_TEXT, id=_TEXT),
    _part("tool_call_response", ("response",), id=_TEXT),
    _part("server_tool_call", ("name", "server_tool_call"), name=_TEXT, id=_TEXT, server_tool_call=_SERVER),
    _part("blob", ("modality", "content"), modality=_TEXT, mime_type=_TEXT, content=_TEXT),
    _part("uri", ("modality", "uri"), modality=_TEXT, mime_type=_TEXT, uri={**_TEXT, "not": {"pattern": "^data:"}}),
]
_SAID = {"parts": {"type": "array", "minItems": 1, "items": {"type": "object", "oneOf": _PARTS}}}
_REASONS = ["stop", "length", "content_filter", "tool_call", "error"]


def _messages(roles: list[str], required: list[str], **fields: Any) -> dict[str, Any]:
    message = {"properties": {"role": {"enum": roles}, **_SAID, **fields}, "required": ["role", "parts", *required]}
    return {"type": "array", "minItems": 1, "items": {"type": "object", **message}}


INPUT = _messages(["system", "user", "assistant", "tool"], [])
OUTPUT = _messages(["assistant"], ["finish_reason"], finish_reason={"enum": _REASONS})
