"""A stream of the host, watched while the host reads it. Nothing is read that the host does not read.

The object stays the one that LiteLLM made, and of its class: it is given a class below its own, whose methods pass
everything on. A generator cannot be given one: it is read through an object of our own. However the reading ends (at
its end, closed early, broken, cancelled, forgotten), it is told once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

_WATCH = "_harken_watch"


class StreamWatch:
    """What came through one stream."""

    def __init__(self, ended: Callable[[StreamWatch], None]) -> None:
        self._ended: Callable[[StreamWatch], None] | None = ended
        self.chunks: list[Any] = []
        self.about: dict[str, Any] = {}
        """What the stream knows of itself."""
        self.exhausted = False
        self.problem: BaseException | None = None

    def end(self, stream: Any, *, exhausted: bool = False, problem: BaseException | None = None) -> None:
        """Nothing more comes, or nobody wants more; tells it once."""
        ended, self._ended = self._ended, None
        if ended is None:
            return
        self.exhausted, self.problem = exhausted, problem
        self.about = dict(vars(stream))
        ended(self)


def watch(stream: Any, ended: Callable[[StreamWatch], None]) -> Any:
    """The stream, watched from here on."""
    try:
        return _watched(stream, ended)
    except (AttributeError, TypeError):
        passing = _PassingLater if hasattr(stream, "__anext__") else _Passing
        return _watched(passing(stream), ended)


def _watched(stream: Any, ended: Callable[[StreamWatch], None]) -> Any:
    cls: Any = type(stream)
    stream.__class__ = _watched_class(cls)
    vars(stream)[_WATCH] = StreamWatch(ended)
    return stream


class _Passing:
    """Passes on what a generator gives."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["_stream"], name)

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        return next(self._stream)

    def close(self) -> None:
        self._stream.close()


class _PassingLater(_Passing):
    """The same where it is waited for."""

    def __aiter__(self) -> Any:
        return self

    async def __anext__(self) -> Any:
        return await anext(self._stream)

    async def aclose(self) -> None:
        await self._stream.aclose()


def end(stream: Any) -> None:
    """Take what came through a watched stream for all that comes."""
    vars(stream)[_WATCH].end(stream)


@cache
def _watched_class(cls: Any) -> Any:
    methods: dict[str, Any] = {
        "__del__": _forgotten(cls),
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
    }
    for name, made in (("__next__", _next), ("__anext__", _later), ("close", _closed), ("aclose", _closed_later)):
        if hasattr(cls, name):
            methods[name] = made(cls)
    return type(cls.__name__, (cls,), methods)


def _next(cls: Any) -> Any:
    def __next__(self: Any) -> Any:
        watched: StreamWatch = vars(self)[_WATCH]
        try:
            chunk = cls.__next__(self)
        except StopIteration:
            watched.end(self, exhausted=True)
            raise
        except BaseException as problem:
            watched.end(self, problem=problem)
            raise
        watched.chunks.append(chunk)
        return chunk

    return __next__


def _later(cls: Any) -> Any:
    async def __anext__(self: Any) -> Any:
        watched: StreamWatch = vars(self)[_WATCH]
        try:
            chunk = await cls.__anext__(self)
        except StopAsyncIteration:
            watched.end(self, exhausted=True)
            raise
        except BaseException as problem:
            watched.end(self, problem=problem)
            raise
        watched.chunks.append(chunk)
        return chunk

    return __anext__


def _closed(cls: Any) -> Any:
    def close(self: Any, *args: Any, **options: Any) -> Any:
        try:
            return cls.close(self, *args, **options)
        finally:
            end(self)

    return close


def _closed_later(cls: Any) -> Any:
    async def aclose(self: Any, *args: Any, **options: Any) -> Any:
        try:
            return await cls.aclose(self, *args, **options)
        finally:
            end(self)

    return aclose


def _forgotten(cls: Any) -> Any:
    def __del__(self: Any) -> None:
        end(self)
        if hasattr(cls, "__del__"):
            cls.__del__(self)

    return __del__
