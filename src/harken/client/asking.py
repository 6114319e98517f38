"""Questions to a service by the names of operations, with the types of `harken.api`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from harken import clock as clocks
from harken import context
from harken.api import OPERATIONS
from harken.api.base import ApiRequest
from harken.api.commits import HistoryRequest
from harken.api.reference import OperationReference, reference_of
from harken.context import Ref
from harken.errors import BadRequest, Closed, NotFound, PartlyCorrupt
from harken.store import Commit, Name

from .local import NEEDS_STORE, needs_store
from .values import answer_as, commit_of
from .wire import API, JSON, ServiceReply, ServiceWire, error_in, pack, unpack

INLINE = 8 << 20
"""Bytes that go into a request; more are put before it."""
_CHANGING = """
    annotate checkpoint compact delete_key delete_name end_session forget fork fsck gc import_sessions index pin put_key
    restore resume set_name snapshot start_session summarize undo update_metadata
"""
CHANGING = frozenset(_CHANGING.split())
"""Operations that change something: they are not asked again where the connection breaks."""


class AskingService:
    """Somebody who asks a service."""

    wire: ServiceWire
    clock: clocks.Clock
    _is_closed = False

    def _check_open(self) -> None:
        if self._is_closed:
            raise Closed("this repository has been closed", hint="open it again")

    def ask_service(self, operation: str, request: ApiRequest) -> Any:
        """The answer of an operation of `harken.api`, or an iterator of its answers."""
        self._check_open()
        if (why := NEEDS_STORE.get(operation)) is not None:
            raise needs_store(operation, why)
        known, request = _reference(operation), _from_here(request)
        is_safe = operation not in CHANGING
        reply = self.wire.send("POST", f"{API}/{operation}", pack(request), JSON, is_safe=is_safe)
        if known.many:
            return AnswerLines(reply, known.answers)
        return answer_as(unpack(reply.read()), known.answers)

    def commit(self, ref: Ref) -> Commit:
        """The commit a REF names."""
        if isinstance(ref, Commit):
            return ref
        (found,) = self.ask_service("history", HistoryRequest(ref=word_of(ref), limit=1))
        return commit_of(found)

    def _get_bytes(self, ref: str) -> bytes:
        """The bytes of an artifact."""
        name = quote(ref.encode("utf-8", "surrogatepass"), safe="")
        if not ref or "/" in ref:
            raise NotFound(f"there is no artifact {ref!r:.99}", hint="art- and digits, or its full name")
        return self.wire.send("GET", f"{API}/artifacts/{name}", b"", "", is_safe=True).read()

    def _put_bytes(self, data: bytes, policy: str, expires: int | None) -> str:
        """Keep bytes; the answer is the full name of the artifact."""
        place = f"{API}/artifacts?policy={quote(policy.encode('utf-8', 'surrogatepass'))}"
        place += "" if expires is None else f"&expires={expires}"
        # Bytes have one name, however often they are kept.
        told = unpack(self.wire.send("PUT", place, data, "application/octet-stream", is_safe=True).read())
        return str(told["artifact"])


class AnswerLines(Iterator[Any]):
    """Answers as they come; an error among them is the last. Whoever stops early closes it, or lets go of it."""

    def __init__(self, reply: ServiceReply, kinds: tuple[type[msgspec.Struct], ...]) -> None:
        self._reply, self._lines, self._kinds = reply, reply.lines(), kinds

    def __next__(self) -> Any:
        told = unpack(next(self._lines))
        if (problem := error_in(told)) is not None:
            self.close()
            raise problem
        return answer_as(told, self._kinds)

    def close(self) -> None:
        """Nobody wants the rest."""
        self._lines.close()  # type: ignore[attr-defined]
        self._reply.close()

    def __del__(self) -> None:
        self.close()


def read_rest(answers: Iterator[Any], make: Any) -> list[Any]:
    """All answers, each as `make` has it; where some cannot be read, the error has the others."""
    found: list[Any] = []
    try:
        found.extend(map(make, answers))
    except PartlyCorrupt as problem:
        raise PartlyCorrupt(str(problem), rest=found, hint=problem.hint) from None
    return found


_PATHS = ("cwd", "home", "path", "paths", "prices")


def _from_here(request: ApiRequest) -> ApiRequest:
    """The request with paths as somebody in another folder has to name them."""
    found: dict[str, Any] = {}
    for name in set(_PATHS).intersection(request.__struct_fields__):
        told = getattr(request, name)
        if told:
            found[name] = path_of(told) if isinstance(told, str) else tuple(map(path_of, told))
    return msgspec.structs.replace(request, **found) if found else request


@cache
def _reference(operation: str) -> OperationReference:
    if operation not in OPERATIONS:
        raise BadRequest(f"there is no operation {operation!r:.99}", hint="`harken.api.OPERATIONS` lists them")
    return reference_of(operation)


# -- arguments as requests have them -----------------------------------------------------------------------------------


def word_of(ref: Ref) -> str:
    """A REF as text."""
    if isinstance(ref, Commit):
        return ref.id
    if isinstance(ref, Name):
        return ref.name if ref.kind == "branch" else ref.target
    if not ref:
        raise BadRequest("an empty REF names nothing", hint="a commit, a branch, a tag or a session id")
    return ref


def word_or_none(ref: Ref | None) -> str | None:
    """A REF as text, if there is one."""
    return None if ref is None else word_of(ref)


def time_of(time: str | int | datetime | None) -> str | int | None:
    """A time as requests have it; one that is none is refused where it is given."""
    return None if time is None else context.instant(time)


def path_of(path: str | os.PathLike[str]) -> str:
    """A path as the service, in a folder of its own, finds it."""
    return str(Path(path).absolute())
