"""The body of a reply, heard along while the host reads it. Nothing is read that the host does not read.

For SDKs over httpx or httpx2: the stream of a response is replaced by one that passes everything on. However the
reading ends (at its end, closed early, broken, cancelled, forgotten), what came is told once.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from functools import cache
from typing import Any

BodyEnded = Callable[[bytes, BaseException | None], None]
"""Told what came of the body, and what broke it."""
END = b"\n\n"
"""Where a server-sent event ends."""


class HeardBody:
    """The stream of a response, passed on."""

    def __init__(self, stream: Any, ended: BodyEnded) -> None:
        self._stream = stream
        self._ended: BodyEnded | None = ended
        self._parts: list[bytes] = []

    def end(self, problem: BaseException | None = None) -> None:
        """Nothing more comes, or nobody wants more; tells it once."""
        ended, self._ended = self._ended, None
        if ended is not None:
            ended(b"".join(self._parts), problem)

    def has(self, text: bytes) -> bool:
        """Whether a text came already."""
        return text in b"".join(self._parts)

    def __iter__(self) -> Iterator[bytes]:
        try:
            for part in self._stream:
                for piece in _pieces(part):
                    self._parts.append(piece)
                    yield piece
        except GeneratorExit:  # the reading stopped; the response may still be open
            raise
        except BaseException as problem:
            self.end(problem)
            raise
        self.end()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for part in self._stream:
                for piece in _pieces(part):
                    self._parts.append(piece)
                    yield piece
        except GeneratorExit:
            raise
        except BaseException as problem:
            self.end(problem)
            raise
        self.end()

    def close(self) -> None:
        """Close the stream."""
        try:
            self._stream.close()
        finally:
            self.end()

    async def aclose(self) -> None:
        """Close the stream."""
        try:
            await self._stream.aclose()
        finally:
            self.end()

    def __del__(self) -> None:
        self.end()


def _pieces(part: bytes) -> list[bytes]:
    """Server-sent events that came together, one by one: a host that stops in the middle did not hear the rest."""
    if END not in part:
        return [part]
    *events, rest = part.split(END)
    pieces = [event + END for event in events]
    return [*pieces, rest] if rest else pieces


@cache
def _heard_class(bases: tuple[type, ...]) -> type[HeardBody]:
    return type("HeardStream", (HeardBody, *bases), {})


def hear(response: Any, ended: BodyEnded) -> HeardBody | None:
    """Hear the body of a response whose body was not read yet; None where that is not possible."""
    library = next(
        (cls.__module__.partition(".")[0] for cls in type(response).__mro__ if cls.__name__ == "Response"), ""
    )
    module = sys.modules.get(library)
    kinds = (getattr(module, name, None) for name in ("SyncByteStream", "AsyncByteStream"))
    bases = tuple(kind for kind in kinds if kind is not None and isinstance(response.stream, kind))
    if not bases:
        return None
    response.stream = heard = _heard_class(bases)(response.stream, ended)
    return heard


def read_body(response: Any) -> bytes | None:
    """The body of a response that was read already; None where it is still to come."""
    try:
        content: bytes = response.content
    except Exception:  # noqa: BLE001  each library has its own for a body that was not read
        return None
    return content


def decoded(response: Any, body: bytes) -> bytes:
    """The bytes of a body as they were before they were compressed for the way."""
    encoding = response.headers.get("content-encoding", "identity")
    if encoding == "identity" or not body:
        return body
    try:
        plain: bytes = type(response)(200, headers={"content-encoding": encoding}, content=body).content
    except Exception:  # noqa: BLE001  cut in the middle
        return b""
    return plain


def sent_events(body: bytes) -> Iterator[bytes]:
    """The data of each server-sent event."""
    data: list[bytes] = []
    for line in body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"):
        if line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
        elif not line and data:
            yield b"\n".join(data)
            data = []
    if data:
        yield b"\n".join(data)
