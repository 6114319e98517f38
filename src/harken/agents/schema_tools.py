"""Tools whose parameters are described by a JSON schema or a pydantic model, instead of by a function's signature."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import msgspec
import orjson

from harken.errors import BadRequest

from .schemas import check_schema, schema_of
from .threads import in_thread_unless
from .tools import Tool, ToolFunction, call_parameter_of


def tool_from_schema(
    name: str,
    description: str,
    schema: Mapping[str, Any],
    function: ToolFunction,
    *,
    redo: bool = False,
    alone: bool = False,
    thread: bool | None = None,
) -> Tool:
    """A tool with the parameters that a JSON schema describes. The function is called with the arguments by name, once
    they fit the schema; a parameter annotated `Call` gets the running call."""
    given = object_schema(schema)
    check_schema(given)
    call_parameter = call_parameter_of(function)
    if call_parameter is not None and call_parameter in given["properties"]:
        raise BadRequest(
            f"the tool {name} has a parameter {call_parameter!r} in its schema and another for the running call",
            hint="give the parameter of the function another name",
        )
    return Tool(
        name=check_tool_name(name),
        description=str(description),
        function=function,
        given=given,
        call_parameter=call_parameter,
        redo=redo,
        alone=alone,
        thread=in_thread_unless(name, thread, function, call_parameter),
    )


def tool_from_model(
    model: Any,
    function: ToolFunction,
    *,
    name: str | None = None,
    description: str | None = None,
    redo: bool = False,
    alone: bool = False,
    thread: bool | None = None,
) -> Tool:
    """A tool whose arguments are a pydantic model (or a msgspec Struct, or a dataclass): the function is called with
    one value of it, and with the running call where a parameter is annotated `Call`.

    The name is that of the function, the description that of its docstring, or else of the model's."""
    if not isinstance(model, type):
        raise BadRequest(f"{model!r:.80} is no model", hint="give the class, not a value of it")
    called = name or str(getattr(function, "__name__", ""))
    said = inspect.getdoc(function) or (inspect.getdoc(model) if "__doc__" in vars(model) else "") or ""
    return Tool(
        name=check_tool_name(called),
        description=said if description is None else description,
        function=function,
        given=object_schema(_inlined(schema_of(model))),
        model=model,
        call_parameter=call_parameter_of(function),
        redo=redo,
        alone=alone,
        thread=in_thread_unless(called, thread, function, call_parameter_of(function)),
    )


def check_tool_name(name: str) -> str:
    """The name, where every provider takes it as one of a tool."""
    if not isinstance(name, str) or not 0 < len(name) <= 64 or not _PLAIN.issuperset(name):
        raise BadRequest(
            f"{name!r:.80} cannot be the name of a tool", hint="at most 64 letters, digits, `_` and `-` of ASCII"
        )
    return name


MAX_DEPTH = 100
"""How deep a schema may be."""
MAX_SIZE = 200_000
"""How many bytes a schema may have."""
_CHECKED = frozenset(
    {"type", "required", "enum", "const", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"}
)


def object_schema(schema: object) -> dict[str, Any]:
    """A schema of arguments: it must describe an object, and be of a size that one can send; else `BadRequest`."""
    if not isinstance(schema, Mapping) or schema.get("type", "object") != "object":
        raise BadRequest("the schema of a tool's arguments describes an object", hint='give {"type": "object", …}')
    try:
        size = len(orjson.dumps(schema))
    except (TypeError, ValueError):
        raise BadRequest("the schema is not JSON, or too deep", hint="give dicts, lists, texts and numbers") from None
    if size > MAX_SIZE or _is_deeper(schema, MAX_DEPTH):
        raise BadRequest("the schema is too large", hint=f"at most {MAX_SIZE} bytes, {MAX_DEPTH} levels")
    properties = schema.get("properties", {})
    if not isinstance(properties, Mapping):
        raise BadRequest("the properties of the schema are no object", hint='give {"name": {"type": "string"}, …}')
    return {"type": "object", **schema, "properties": dict(properties)}


def _is_deeper(value: object, levels: int) -> bool:
    level = [value]
    for _ in range(levels):
        level = [part for one in level for part in _parts(one)]
    return bool(level)


def _parts(value: object) -> list[object]:
    if isinstance(value, Mapping):
        return list(value.values())
    return list(value) if isinstance(value, list | tuple) else []


def safely_checked(schema: Mapping[str, Any]) -> dict[str, Any]:
    """What of a schema can be checked whoever wrote it: no regular expression, and nothing that refers to itself or
    branches without end. The rest is checked by whoever runs the tool."""
    found = _simple(schema)
    try:
        check_schema(found)
    except BadRequest:
        return {}
    return found


def _simple(schema: Mapping[str, Any]) -> dict[str, Any]:
    found = {key: value for key, value in schema.items() if key in _CHECKED}
    parts = schema.get("properties")
    if isinstance(parts, Mapping):
        found["properties"] = {name: _simple(one) if isinstance(one, Mapping) else True for name, one in parts.items()}
        if schema.get("additionalProperties") is False and "patternProperties" not in schema:
            found["additionalProperties"] = False
    if isinstance(items := schema.get("items"), Mapping):
        found["items"] = _simple(items)
    return found


_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


def _inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema whose outermost part is not a reference: providers want to see an object."""
    target = schema.get("$ref")
    if not isinstance(target, str):
        return schema
    found = schema.get("$defs", {}).get(target.rsplit("/", 1)[-1])
    return {**msgspec.to_builtins(found), "$defs": schema["$defs"]} if isinstance(found, dict) else schema
