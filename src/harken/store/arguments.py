"""One rule for arguments: what a caller hands to a store, or to a `Repo`, is of the type that the annotation says.

A class decorator puts the check before every public method, so that a wrong argument is a `BadRequest` with a sentence
instead of whatever happens to fail further in, and the same for every store. What an annotation means is a table
(`STORE` for stores, another one for `Repo`); an annotation that is not in it stops the import of the module.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from types import FunctionType, NoneType
from typing import TypeVar

import msgspec

from .tombstones import ErasureOrder
from .values import ArgumentKind, Draft, SessionRow, guarded

C = TypeVar("C", bound=type)
TEXT = ArgumentKind("give text", (str,))
BYTES = ArgumentKind("give bytes", (bytes,))
CONTENT = ArgumentKind("give bytes, or the parts of them", (bytes, Iterable, msgspec.Struct))
PATH = ArgumentKind("give a path", (str, os.PathLike), (str, os.PathLike))
PLAIN = {
    "str": TEXT,
    "str | None": ArgumentKind("give text, or None", (str, NoneType)),
    "bytes": BYTES,
    "bool": ArgumentKind("give True or False", (bool,)),
    "int": ArgumentKind("give a whole number", (int,)),
    "int | None": ArgumentKind("give a whole number, or None", (int, NoneType)),
    "float": ArgumentKind("give a number of seconds", (float, int)),
    "dict[str, Any] | None": ArgumentKind("give a dict of JSON values, or None", (dict, NoneType)),
    "str | os.PathLike[str]": PATH,
}
STORE = PLAIN | {
    "Draft": ArgumentKind("give a Draft", (Draft,)),
    "ErasureOrder": ArgumentKind("give an ErasureOrder", (ErasureOrder,)),
    "SessionRow": ArgumentKind("give a SessionRow", (SessionRow,)),
    "Sequence[str]": ArgumentKind("give a list of text", (list, tuple, Collection), each=TEXT),
    "Iterable[str]": ArgumentKind("give a list of text", (Iterable,), each=TEXT),
    "Iterable[bytes]": ArgumentKind("give the parts, each of them bytes", (Iterable,), each=BYTES, lazy=True),
    "Iterable[Content]": ArgumentKind("give bytes, or their parts", (Iterable,), each=CONTENT, lazy=True),
    "Sequence[Draft]": ArgumentKind("give a list of Drafts", (list, tuple), each=ArgumentKind("give Drafts", (Draft,))),
    "Callable[[str], bool] | None": ArgumentKind("give a function, or None", (Callable, NoneType)),
    "Callable[[str], bytes] | None": ArgumentKind("give a function, or None", (Callable, NoneType)),
}
"""What the annotations of a store mean."""


def checks_arguments(
    kinds: dict[str, ArgumentKind], declared: type | None = None, **more: dict[str, ArgumentKind]
) -> Callable[[C], C]:
    """Put the check before every public method of a class; `declared` is the protocol whose annotations count, `more`
    the keywords that a method takes besides its own. A class with `_check_open` is asked that first."""

    def decorate(cls: C) -> C:
        for name, method in public_methods(declared or cls):
            enter = getattr(cls, "_check_open", None) if name != "close" else None
            setattr(cls, name, guarded(getattr(cls, name), parameters(method, kinds) | more.get(name, {}), enter))
        return cls

    return decorate


def public_methods(cls: type) -> list[tuple[str, FunctionType]]:
    """The methods that callers see, with their names."""
    found = [(name, getattr(cls, name)) for name in dir(cls) if not name.startswith("_")]
    return [(name, method) for name, method in found if isinstance(method, FunctionType)]


def parameters(method: FunctionType, kinds: dict[str, ArgumentKind]) -> dict[str, ArgumentKind]:
    """The kind of each parameter by its name, in order."""
    code = method.__code__
    names = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    return {name: kinds[method.__annotations__[name]] for name in names}
