"""Mending any field by its type: a number that stands there as text, one thing in place of a list of them, a word in
another spelling. What is not required and cannot be read is set aside."""

from __future__ import annotations

from functools import cache
from typing import Any

from msgspec import inspect

from harken.formats.std.models import (
    AgentsByRole,
    AgentSession,
    AgentSummary,
    FileChange,
    MultiAgentSession,
    StdObject,
    output_model,
)
from harken.formats.std.parts import inner, text, words_in
from harken.formats.std.spellings import known_status, known_word, says_nothing

from .mending import Spot, path_steps

_LONGEST = 30
"""Digits of a number that is read from a text."""


def by_type(spot: Spot) -> bool:
    """Mend a field by what its type asks for."""
    described = _described(spot)
    if described is None or spot.value is None:
        return False
    info, is_required = described
    allowed = _words(info)
    if allowed and (word := known_word(spot.value, allowed)):
        return spot.put(word, "the word that the standard has for it")
    if _as_type(spot, _plain(info)):
        return True
    return not is_required and isinstance(spot.holder, dict) and spot.set_aside()


def _as_type(spot: Spot, info: inspect.Type) -> bool:
    said = spot.value
    match info:
        case inspect.StrType() if isinstance(said, (int, float)) and not isinstance(said, bool):
            return abs(said) < 10**_LONGEST and spot.put(str(said), "as text")
        case inspect.StrType() if isinstance(said, list) and (words := words_in(said)):
            return spot.put(words, "one line for each", keep=not all(isinstance(one, str) for one in said))
        case inspect.StrType() if isinstance(said, dict) and (words := words_in(said)):
            return spot.put(words, "the words in it", keep=len(said) > 1)
        case inspect.IntType() | inspect.FloatType() if isinstance(said, str):
            return (number := _number(said, info)) is not None and spot.put(number, "as a number")
        case inspect.BoolType() if isinstance(said, str) and said.strip().lower() in ("true", "false", "yes", "no"):
            return spot.put(said.strip().lower() in ("true", "yes"), "as true or false")
        case inspect.BoolType() if said in (0, 1) and isinstance(said, int):
            return spot.put(bool(said), "as true or false")
        case inspect.BoolType() if _is_outcome(spot) and (status := known_status(said)) in ("success", "failed"):
            return spot.put(status == "success", "as true or false")
        case inspect.ListType() if isinstance(said, str) and says_nothing(said):
            return spot.put([], "the words say that there are none", keep=True)
        case inspect.ListType() if isinstance(said, (str, dict)) and said:
            return spot.put([said], "it is the only entry")
        case inspect.StructType() if isinstance(said, list) and len(said) == 1 and isinstance(said[0], dict):
            return spot.put(said[0], "the only entry of the list")
        case _:
            return False


def _is_outcome(spot: Spot) -> bool:
    """Whether a place says how a check went."""
    return str(spot.key).endswith("passed") or ".verification.custom_checks." in spot.path


def _number(said: str, info: inspect.Type) -> float | None:
    text = said.strip().replace(",", "").replace("_", "")
    if not text.isascii() or not text.removeprefix("-").replace(".", "", 1).isdigit() or len(text) > _LONGEST:
        return None
    number = float(text) if "." in text else int(text)
    return None if isinstance(info, inspect.IntType) and isinstance(number, float) else number


# -- what the types say of a place ------------------------------------------------------------------------------------


def _described(spot: Spot) -> tuple[inspect.Type, bool] | None:
    """The type of a place, and whether it must be filled; None where the types leave it open."""
    data = spot.doc.data
    is_multi = inner(data, "collaboration").get("mode") == "multi_agent"
    info: inspect.Type | None = _info(MultiAgentSession if is_multi or "sub_sessions" in data else AgentSession)
    holder: Any = data
    is_required = True
    steps = path_steps(spot.path)
    for at, step in enumerate(steps):
        info, is_required = _below(info, step, is_required)
        if info is None:
            return None
        holder = holder.get(step) if isinstance(holder, dict) and isinstance(step, str) else _item(holder, step)
        if isinstance(_plain(info), inspect.AnyType):
            info = _of_open_place(data, steps[: at + 1], holder)
    return (info, is_required) if info is not None else None


def _item(holder: Any, step: str | int) -> Any:
    return holder[step] if isinstance(holder, list) and isinstance(step, int) and step < len(holder) else None


def _below(info: inspect.Type | None, step: str | int, is_required: bool) -> tuple[inspect.Type | None, bool]:
    plain = _plain(info) if info is not None else None
    if isinstance(step, int):
        return (plain.item_type, is_required) if isinstance(plain, inspect.ListType) else (None, False)
    if isinstance(plain, inspect.DictType):
        return plain.value_type, True
    if isinstance(plain, inspect.StructType):
        for field in plain.fields:
            if field.encode_name == step:
                return field.type, field.required
    return None, False


def _of_open_place(data: Any, steps: list[str | int], holder: Any) -> inspect.Type | None:
    """The type of what stands in a place that may hold several."""
    if steps[-1] == "output" and isinstance(holder, dict):
        sub = data["sub_sessions"][steps[1]]
        return _info(output_model(holder, text(inner(sub, "agent"), "agent_type")))
    if (
        len(steps) > 2
        and steps[-2] in ("files_created", "files_modified", "files_deleted")
        and isinstance(holder, dict)
    ):
        return _info(FileChange)
    if steps == ["summary", "agents"]:
        return _info(AgentsByRole) if isinstance(holder, dict) else inspect.ListType(_info(AgentSummary))
    return None


@cache
def _info(model: type[StdObject]) -> inspect.Type:
    return inspect.type_info(model)


def _plain(info: inspect.Type) -> inspect.Type:
    """The type without what is said of it, and without None."""
    while True:
        if isinstance(info, inspect.Metadata):
            info = info.type
        elif isinstance(info, inspect.UnionType):
            info = next(one for one in info.types if not isinstance(one, inspect.NoneType))
        else:
            return info


def _words(info: inspect.Type) -> tuple[str, ...]:
    """The words of a closed list."""
    if isinstance(info, inspect.Metadata):
        extra = info.extra or {}
        return (*extra["known"], *extra["added"]) if "known" in extra else _words(info.type)
    plain = _plain(info)
    return tuple(str(one) for one in plain.values) if isinstance(plain, inspect.LiteralType) else ()
