"""A session document: the JSON object it is, and of which standard. Unknown fields stay where they are."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from harken.errors import BadRecord

from .generations import Generation, as_v3, generation_of
from .json_text import Json as Json
from .json_text import dumps as dumps
from .json_text import loads as loads
from .naming import is_multi_name

Kind = Literal["std-001", "std-008"]


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """One document, in the fields of the newest generation."""

    data: Json
    """The object; nobody changes it."""
    kind: Kind
    generation: Generation = "v3"
    """What it was written as."""


def kind_of(data: Json, name: str = "") -> Kind:
    """Of which standard an object is, by what it says: `mode: single` is a single-agent session with more fields.
    Where it does not say, sub-sessions make it a multi-agent one; of what has such fields and nothing in them, the name
    of its file decides."""
    collaboration = data.get("collaboration")
    mode = collaboration.get("mode") if isinstance(collaboration, dict) else None
    if isinstance(mode, str) and (said := _MODES.get(re.sub(r"[\W_]+", "", mode[:40]).casefold())):
        return said
    is_multi = bool(data.get("sub_sessions")) or (is_multi_name(name) and not data.keys().isdisjoint(_OF_SEVERAL))
    return "std-008" if is_multi else "std-001"


_OF_SEVERAL = ("collaboration", "sub_sessions", "messages")
_MODES: dict[str, Kind] = {"multiagent": "std-008", "single": "std-001", "singleagent": "std-001"}


def parse_session(value: object, name: str = "") -> Document:
    """A document from what JSON was read into; an older generation is read as the newest. What decides is what stands
    in it, and the name of its file where that says nothing. `BadRecord` where it is no object."""
    if not isinstance(value, dict):
        raise BadRecord("a session document is a JSON object", hint="is this the right file?")
    return Document(data=as_v3(value), kind=kind_of(value, name), generation=generation_of(value))


def read(data: bytes, name: str = "") -> Document:
    """A document from the bytes of a file; `BadRecord` says where they stop being JSON. Of a field that stands twice
    in one object the last is read: `json_text.hidden_values` has the others."""
    return parse_session(loads(data), name)


def write(document: Document) -> bytes:
    """The bytes of a document: indented, fields in the order in which they stand, a line break at the end."""
    return dumps(document.data)


def as_multi_agent(document: Document) -> Document:
    """A single-agent session looked at as a multi-agent one, as the migration of STD-008 has it. Nothing that stands
    in it is replaced."""
    if document.kind == "std-008":
        return document
    wanted: Json = {
        "collaboration": {
            "mode": "single",
            "pattern": "master_worker",
            "orchestrator": {"agent_id": "main", "agent_type": "architect"},
            "participants": [],
        },
        "sub_sessions": [],
        "messages": [],
    }
    added = {key: value for key, value in wanted.items() if key not in document.data}
    return msgspec.structs.replace(document, data={**document.data, **added}) if added else document
