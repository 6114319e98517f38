"""Formats that others installed: whatever their functions do, it costs only what they were asked for."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from importlib.metadata import EntryPoint
from typing import Any

import msgspec

from harken.errors import BadRecord, HarkenError
from harken.events import Event, Output

from .base import Format, concatenate, identity, weigh, whole


def load_format(point: EntryPoint) -> Format | str:
    """The format behind an entry point, or why there is none, which is logged."""
    try:
        found = point.load()
    except (Exception, SystemExit) as problem:  # noqa: BLE001  a plug-in may break in any way
        why = f"{type(problem).__name__}: {problem}"
    else:
        if isinstance(found, Format) and found.name == point.name:
            return guarded(found)
        why = f"{point.value} is no harken.formats.Format of that name"
    package = point.dist.name if point.dist else "(unknown)"
    logging.getLogger("harken").warning("the format %r of the package %s cannot be used: %s", point.name, package, why)
    return why


def guarded(found: Format) -> Format:
    """The format, each function of which answers or raises a `HarkenError`; a reader that fails gives its bytes."""

    def raising(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*given: Any) -> Any:
            try:
                return function(*given)
            except HarkenError:
                raise
            except Exception as problem:
                hint = "the plug-in is broken: install another version of it, or remove it"
                raise BadRecord(_failed(found, problem), hint=hint) from problem

        return call

    def opaque(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def read(data: bytes) -> list[Event]:
            try:
                return list(function(data))
            except Exception as problem:  # noqa: BLE001
                return [Output(raw=data, why=_failed(found, problem), media_type=found.media_type)]

        return read

    def lenient(function: Callable[[bytes], Any], otherwise: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
        @wraps(function)
        def call(data: bytes) -> Any:
            try:
                return function(data)
            except Exception:  # noqa: BLE001
                return otherwise(data)

        return call

    # Of what fails in `named_reader` nobody could say whether it was to read or to name: each is asked alone.
    direct = {name: raising(write) for name, write in found.direct.items()}
    wrapped: dict[str, Any] = {"direct": direct, "named_reader": None}
    naming = ("shared_names", "unnamed_names", "captured_names", "carried_names", "delta_names")
    others = ("join", "split", "context", "writer", "adopter", "places", *naming)
    for names, wrap in ((others, raising), (_READERS, opaque)):
        for name in names:
            function = getattr(found, name)
            if function not in (None, concatenate, whole, identity, len):
                wrapped[name] = wrap(function)
    if found.measurer is not None:
        wrapped["measurer"] = lenient(found.measurer, lambda data: weigh(len(data)))
    if found.brief_reader is not None:
        wrapped["brief_reader"] = lenient(found.brief_reader, lambda _: None)
    return msgspec.structs.replace(found, **wrapped)


_READERS = ("reader", "delta_reader", "conversation_reader")


def _failed(found: Format, problem: Exception) -> str:
    return f"the format {found.name} failed: {type(problem).__name__}: {problem}"
