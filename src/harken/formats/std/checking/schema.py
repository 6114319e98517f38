"""Checks derived from `models`: what is missing, of the wrong type, or a value nobody knows.

An object that fits its type is recognised by `msgspec.convert` at the speed of C; only one that does not is walked
through field by field to say why.
"""

from __future__ import annotations

import json
import typing
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from harken.formats.std.findings import DocumentFinding, at
from harken.formats.std.models import AgentSession, MultiAgentSession, StdObject, SubAgentSession
from harken.formats.std.spellings import plain_key

from .rule_table import found

_LARGE = (AgentSession, MultiAgentSession, SubAgentSession)
"""Types whose parts are looked at one by one, so that one bad call does not make every other one be walked through."""
_NAMES: dict[type[inspect.Type], str] = {
    inspect.StrType: "a text",
    inspect.IntType: "a whole number",
    inspect.FloatType: "a number",
    inspect.BoolType: "true or false",
    inspect.ListType: "a list",
    inspect.DictType: "an object",
    inspect.StructType: "an object",
}
_SHOWN = 60


def check(
    value: object, model: type[StdObject], path: str = "", *, optional: frozenset[str] = frozenset()
) -> Iterator[DocumentFinding]:
    """What is wrong with an object that should be of that type. Fields named as optional may be missing."""
    yield from _struct(value, _info(model), path, optional)


def shown(value: object) -> str:
    """A value of a document, short enough to stand in a sentence."""
    if isinstance(value, str):
        text = json.dumps(value[: _SHOWN + 1], ensure_ascii=False)
        return text if len(value) <= _SHOWN else text[:_SHOWN] + '…"'
    if isinstance(value, (list, dict)):
        return ("an object" if isinstance(value, dict) else "a list") if value else json.dumps(value)
    if isinstance(value, int) and abs(value) >= 10**20:
        return "a number of more than 20 digits"
    return json.dumps(value)


@cache
def _info(model: type[StdObject]) -> inspect.StructType:
    described = inspect.type_info(model)
    assert isinstance(described, inspect.StructType)
    return described


# -- the walk that explains --------------------------------------------------------------------------------------------


def _struct(
    value: object, info: inspect.StructType, path: str, optional: frozenset[str] = frozenset()
) -> Iterator[DocumentFinding]:
    if not isinstance(value, dict):
        yield _wrong_type(value, info, path)
        return
    if info.cls not in _LARGE and _fits(value, info.cls):
        yield from _vocabularies(value, _plan(info.cls), path)
        return
    for field in info.fields:
        name = field.encode_name
        if name in value and not (value[name] is None and _is_advised(field)):
            yield from _value(value[name], field.type, at(path, name))
        elif field.required and name not in optional:
            rule = "missing-advised" if _is_advised(field) else "missing-field"
            other = next((key for key in value if key != name and plain_key(key) == name), "")
            yield found(rule, at(path, name), f"`{name}` is missing" + (f"; there is {shown(other)}" if other else ""))


def _value(value: object, info: inspect.Type, path: str) -> Iterator[DocumentFinding]:
    """What is wrong with a value of any type."""
    if isinstance(info, inspect.Metadata):
        inside = list(_value(value, info.type, path))
        yield from inside or _vocabulary(value, info.extra or {}, path)
    elif isinstance(info, inspect.UnionType):
        if value is not None:
            (other,) = (one for one in info.types if not isinstance(one, inspect.NoneType))
            yield from _value(value, other, path)
    elif isinstance(info, inspect.StructType):
        yield from _struct(value, info, path)
    elif isinstance(info, inspect.LiteralType):
        if value not in info.values or not isinstance(value, str):
            yield _unknown_value(value, _as_written()[frozenset(info.values)], path)
    elif not _is_of(value, info):
        yield _wrong_type(value, info, path)
    elif isinstance(info, inspect.ListType):
        for place, item in enumerate(value if isinstance(value, list) else ()):
            yield from _value(item, info.item_type, at(path, place))
    elif isinstance(info, inspect.DictType):
        for key, item in value.items() if isinstance(value, dict) else ():
            yield from _value(item, info.value_type, at(path, key))


def _is_of(value: object, info: inspect.Type) -> bool:
    """Whether a value has the type, whatever is inside."""
    match info:
        case inspect.StrType():
            return isinstance(value, str)
        case inspect.BoolType():
            return isinstance(value, bool)
        case inspect.IntType():
            return not isinstance(value, bool) and (
                isinstance(value, int) or (isinstance(value, float) and value.is_integer())
            )
        case inspect.FloatType():
            return isinstance(value, (int, float)) and not isinstance(value, bool)
        case inspect.ListType():
            return isinstance(value, list)
        case inspect.DictType():
            return isinstance(value, dict)
        case _:  # Any
            return True


def _fits(value: object, model: type[Any]) -> bool:
    try:
        msgspec.convert(value, model)
    except (ValueError, RecursionError, OverflowError):  # a key may be a lone surrogate, which is no ValidationError
        return False
    return True


def _wrong_type(value: object, info: inspect.Type, path: str) -> DocumentFinding:
    wanted = _NAMES[type(info)]
    return found("wrong-type", path, f"{_name(path)} is {shown(value)}; it must be {wanted}")


def _unknown_value(value: object, known: tuple[str, ...], path: str) -> DocumentFinding:
    listed = ", ".join(known)
    return found("unknown-value", path, f"{_name(path)} is {shown(value)}; it must be one of {listed}")


def _name(path: str) -> str:
    """What a sentence calls the thing at a path: its field, with its place in a list."""
    return f"`{path.rpartition('.')[2]}`" if path else "the document"


def _is_advised(field: inspect.Field) -> bool:
    return isinstance(field.type, inspect.Metadata) and bool((field.type.extra or {}).get("advised"))


@cache
def _as_written() -> dict[frozenset[Any], tuple[str, ...]]:
    """The values of every closed list in the order in which `models` has them, which msgspec does not keep."""
    known: dict[frozenset[Any], tuple[str, ...]] = {}
    models = [StdObject]
    for model in models:
        models += model.__subclasses__()
        for hint in typing.get_type_hints(model).values():
            for one in (hint, *typing.get_args(hint)):
                if typing.get_origin(one) is typing.Literal:
                    known.setdefault(frozenset(typing.get_args(one)), typing.get_args(one))
    return known


# -- vocabularies: what an object that fits may still say --------------------------------------------------------------


def _vocabulary(value: object, extra: dict[str, Any], path: str) -> Iterator[DocumentFinding]:
    """What there is to say of a text from a list of values that is not closed."""
    if not isinstance(value, str):
        return
    if "open" in extra and value not in extra["open"]:
        listed = ", ".join(extra["open"])
        yield found(
            "open-value", path, f"{_name(path)} is {shown(value)}, which is not among the known ones ({listed})"
        )
    elif "known" in extra and value not in extra["known"]:
        if value in extra["added"]:
            yield found("open-value", path, f"{_name(path)} is {shown(value)}, which programs added to the standard")
        else:
            yield _unknown_value(value, extra["known"] + extra["added"], path)


Vocabularies = dict[str, Any]
"""Field to its vocabulary, or to the plan of the object or of the objects below it; other fields are not in it."""


@cache
def _plan(model: type[StdObject]) -> Vocabularies:
    """Where in an object there are vocabularies that are not closed."""
    found: Vocabularies = {}
    for field in _info(model).fields:
        if inside := _plan_of(field.type):
            found[field.encode_name] = inside
    return found


def _plan_of(info: inspect.Type) -> Any:
    match info:
        case inspect.Metadata():
            extra = info.extra or {}
            return (extra,) if extra.keys() & {"open", "known"} else _plan_of(info.type)
        case inspect.UnionType():
            return next(filter(None, map(_plan_of, info.types)), None)
        case inspect.ListType():
            return _plan_of(info.item_type)
        case inspect.StructType():
            return _plan(info.cls)
        case _:
            return None


def _vocabularies(value: object, plan: Vocabularies | tuple[dict[str, Any]], path: str) -> Iterator[DocumentFinding]:
    if isinstance(plan, tuple):
        yield from _vocabulary(value, plan[0], path)
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from _vocabularies(item, plan, at(path, place))
    elif isinstance(value, dict):
        for name, inside in plan.items():
            if (item := value.get(name)) is not None:
                yield from _vocabularies(item, inside, at(path, name))
