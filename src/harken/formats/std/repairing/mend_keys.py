"""Keys that are spelled in another way than the standard does: `sessionId`, `Tool-Calls`. They are renamed where the
type of the object has such a field and the object has it not; what is inside `params`, a result or an unknown field is
nobody's but the tool's."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from msgspec import inspect

from harken.formats.std.document import Json
from harken.formats.std.findings import at
from harken.formats.std.models import (
    PAYLOADS,
    AgentsByRole,
    AgentSummary,
    FileChange,
    MultiAgentSession,
    OldPhase,
    StdObject,
    output_model,
)
from harken.formats.std.parts import inner, objects, text
from harken.formats.std.spellings import plain_key

from .mending import Mending


def rename_keys(doc: Mending) -> bool:
    """Rename them all over the document; whether there were any."""
    before, data = len(doc.changes), doc.data
    _rename(doc, data, MultiAgentSession, "")
    for place, phase in objects(data.get("phases")):
        _rename(doc, phase, OldPhase, f"phases[{place}]")
    for place, sub in objects(data.get("sub_sessions")):
        if isinstance(output := sub.get("output"), dict):
            said = {plain_key(key): value for key, value in output.items()}
            _rename_output(doc, output, output_model(said, text(inner(sub, "agent"), "agent_type")), place)
    for place, message in objects(data.get("messages")):
        if isinstance(payload := message.get("payload"), dict) and (
            model := PAYLOADS.get(text(message, "message_type"))
        ):
            _rename(doc, payload, model, f"messages[{place}].payload")
            _rename_here(doc, payload, _OF_ANY_PAYLOAD, f"messages[{place}].payload")
    rows = inner(data, "summary").get("agents")
    if isinstance(rows, dict):
        _rename(doc, rows, AgentsByRole, "summary.agents")
    for place, row in objects(rows):
        _rename(doc, row, AgentSummary, f"summary.agents[{place}]")
    return len(doc.changes) > before


_OF_ANY_PAYLOAD = ("task_id",)
"""What every payload may have: an assignment whose task is no object names it so."""


def _rename_output(doc: Mending, output: Json, model: type[StdObject], place: int) -> None:
    path = f"sub_sessions[{place}].output"
    _rename(doc, output, model, path)
    for key, files in inner(output, "changes").items():
        for number, change in objects(files):  # each may be a path alone, so that the type does not say what it is
            _rename(doc, change, FileChange, f"{at(f'{path}.changes', key)}[{number}]")


def _rename(doc: Mending, holder: Json, model: type[StdObject], path: str) -> None:
    """Rename the keys of an object and of the objects in it, as far as their types are known."""
    fields = _fields(model)
    if not holder.keys() <= fields.keys():
        _rename_here(doc, holder, fields, path)
    for key, below in fields.items():
        if below is None or not (value := holder.get(key)):
            continue
        if isinstance(value, dict):
            _rename(doc, value, below, at(path, key))
        for place, item in objects(value):
            _rename(doc, item, below, at(at(path, key), place))


def _rename_here(doc: Mending, holder: Json, fields: Iterable[str], path: str) -> None:
    plain = {key: plain_key(key) for key in holder}
    meant = list(plain.values())
    new = {key: name for key, name in plain.items() if key != name and name in fields and meant.count(name) == 1}
    if not new:
        return
    renamed = [(new.get(key, key), value) for key, value in holder.items()]
    holder.clear()
    holder.update(renamed)
    said = ", ".join(f"`{key}` is `{name}` now" for key, name in new.items())
    doc.tell("missing-field", path, f"{said}: the spelling that the standard has")


@cache
def _fields(model: type[StdObject]) -> dict[str, type[StdObject] | None]:
    """The fields of a type, each with the type of the object, or of the objects, that it holds."""
    described = inspect.type_info(model)
    assert isinstance(described, inspect.StructType)
    return {field.encode_name: _struct_in(field.type) for field in described.fields}


def _struct_in(info: inspect.Type) -> type[StdObject] | None:
    match info:
        case inspect.StructType():
            return info.cls if issubclass(info.cls, StdObject) else None
        case inspect.Metadata():
            return _struct_in(info.type)
        case inspect.ListType():
            return _struct_in(info.item_type)
        case inspect.UnionType():
            return next(filter(None, map(_struct_in, info.types)), None)
        case _:
            return None
