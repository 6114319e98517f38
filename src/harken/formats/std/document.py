"""A session document: the JSON object it is, and of which standard. Unknown fields stay where they are."""

from __future__ import annotations

import json
from typing import Any, Literal

import msgspec

from harken.errors import BadRecord

Kind = Literal["std-001", "std-008"]
Generation = Literal["v1", "early-v2", "v2", "v3"]
Json = dict[str, Any]


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """One document, in the fields of the newest generation."""

    data: Json
    """The object; nobody changes it."""
    kind: Kind
    generation: Generation = "v3"
    """What it was written as."""


def kind_of(data: Json) -> Kind:
    """Of which standard an object is, by what it says. `mode: single` is a single-agent session with more fields."""
    collaboration = data.get("collaboration")
    is_multi = isinstance(collaboration, dict) and collaboration.get("mode") == "multi_agent"
    return "std-008" if is_multi else "std-001"


def parse_session(value: object) -> Document:
    """A document from what JSON was read into; an older generation is read as the newest. `BadRecord` where it is no
    object, or none that any generation would write."""
    if not isinstance(value, dict):
        raise BadRecord("a session document is a JSON object", hint="is this the right file?")
    return Document(data=value, kind=kind_of(value))


def read(data: bytes) -> Document:
    """A document from the bytes of a file; `BadRecord` says where they stop being JSON."""
    return parse_session(loads(data))


def write(document: Document) -> bytes:
    """The bytes of a document: indented, fields in the order in which they stand, a line break at the end."""
    return dumps(document.data)


def loads(data: bytes) -> Any:
    """JSON. Not by msgspec: numbers of any size and lone surrogates have to come back as they were."""

    def refuse(name: str) -> float:
        raise ValueError(f"{name} is no JSON")

    try:
        return json.loads(data.decode("utf-8-sig"), parse_constant=refuse)
    except (ValueError, RecursionError) as problem:
        raise BadRecord(
            f"no JSON: {problem}", hint="`harken std validate` says where, and what may be the cause"
        ) from None


def dumps(value: Any) -> bytes:
    """The bytes of a JSON value; a lone surrogate is written as the escape that it was read from."""
    text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
    return text.encode("utf-8", "backslashreplace") + b"\n"


def as_multi_agent(document: Document) -> Document:
    """A single-agent session looked at as a multi-agent one, as the migration of STD-008 has it."""
    if document.kind == "std-008" or "collaboration" in document.data:
        return document
    added: Json = {
        "collaboration": {
            "mode": "single",
            "pattern": "master_worker",
            "orchestrator": {"agent_id": "main", "agent_type": "architect"},
            "participants": [],
        },
        "sub_sessions": [],
        "messages": [],
    }
    return msgspec.structs.replace(document, data={**document.data, **added})
