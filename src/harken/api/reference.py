"""The operations described: every key of every request and answer, with its type, default and meaning.

The page docs/API.md is made of this, and so can be whatever describes the operations to a program.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import typing
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec

from . import OPERATIONS, operation

REQUIRED = "required"


class KeyReference(msgspec.Struct, frozen=True, kw_only=True):
    """A key of a request or an answer."""

    name: str
    type: str
    default: str
    """As Python writes it; `required` where there is none."""
    meaning: str


class ValueReference(msgspec.Struct, frozen=True, kw_only=True):
    """A request or an answer."""

    name: str
    meaning: str
    keys: tuple[KeyReference, ...]


class OperationReference(msgspec.Struct, frozen=True, kw_only=True):
    """An operation."""

    name: str
    meaning: str
    request: type[msgspec.Struct]
    answers: tuple[type[msgspec.Struct], ...]
    """The kinds of answers there are."""
    many: bool
    """Whether it gives any number of answers, one after the other."""


def operations() -> list[OperationReference]:
    """Every operation, by name."""
    return [reference_of(name) for name in sorted(OPERATIONS)]


def reference_of(name: str) -> OperationReference:
    """One operation."""
    function = operation(name)
    hints = typing.get_type_hints(function)
    given = hints["return"]
    many = typing.get_origin(given) is Iterator
    return OperationReference(
        name=name,
        meaning=_words(function.__doc__),
        request=hints["request"],
        answers=tuple(_structs(typing.get_args(given)[0] if many else given)),
        many=many,
    )


def value(struct: type[msgspec.Struct]) -> ValueReference:
    """A request or an answer with its keys, inherited ones first."""
    annotations = _annotations(struct)
    keys = tuple(
        KeyReference(
            name=field.name,
            type=annotations[field.name][0],
            default=REQUIRED if field.required else repr(field.default),
            meaning=annotations[field.name][1],
        )
        for field in msgspec.structs.fields(struct)
    )
    return ValueReference(name=struct.__name__, meaning=_words(struct.__doc__), keys=keys)


def inner(struct: type[msgspec.Struct]) -> list[type[msgspec.Struct]]:
    """The values that stand inside a value."""
    hints = typing.get_type_hints(struct)
    return [found for name in struct.__struct_fields__ for found in _structs(hints[name])]


@cache
def _annotations(struct: type[msgspec.Struct]) -> dict[str, tuple[str, str]]:
    """For each field its type and its docstring, as they stand in the source."""
    found: dict[str, tuple[str, str]] = {}
    for cls in reversed(struct.__mro__):
        if not (isinstance(cls, type) and issubclass(cls, msgspec.Struct)) or cls is msgspec.Struct:
            continue
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
        assert isinstance(tree, ast.ClassDef)
        for node, after in zip(tree.body, [*tree.body[1:], ast.Pass()], strict=True):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                found[node.target.id] = (ast.unparse(node.annotation), _docstring(after))
    return found


def _docstring(node: ast.AST) -> str:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return _words(node.value.value)
    return ""


def _words(text: str | None) -> str:
    return " ".join((text or "").split())


def _structs(hint: Any) -> list[type[msgspec.Struct]]:
    """The Structs that a type is made of."""
    if inspect.isclass(hint) and typing.get_origin(hint) is None and issubclass(hint, msgspec.Struct):
        return [hint]
    return [found for part in typing.get_args(hint) for found in _structs(part)]
