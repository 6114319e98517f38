"""What a session holds beside its log: slices of values, by type. Most sessions are never asked for theirs."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast
from weakref import WeakSet

from harken.events import Event
from harken.formats.session_log.writing import ENTRIES

if TYPE_CHECKING:
    from contextvars import ContextVar

    from .bus import EventBus
    from .choosing import ChosenConversation
    from .dispatching import SliceAccess, SliceStore
    from .session import Session
    from .slices import SliceFactoryConfig, SlicePolicy
    from .sources import KnownSources

T = TypeVar("T")


class Sliced:
    """The part of a session through which values are dispatched and asked for."""

    _bus: EventBus | None = None
    _slice_config: SliceFactoryConfig | None = None
    _slices: SliceStore | None = None
    closers: list[Callable[[], object]] | None = None
    """Called before the session is closed, by whoever still has something to log."""
    sources: KnownSources | None = None
    """Which agent is which source of entries; looked for when one is first asked for."""
    chosen: ContextVar[str | None] | None = None
    """The conversation that was chosen by hand; each thread and task has its own."""

    def before_close(self, function: Callable[[], object]) -> None:
        """Have a function called before the session is closed, or the program ends without that; it must not raise."""
        self.closers = [*(self.closers or ()), function]
        _waited_for.add(self)

    def no_longer_before_close(self, function: Callable[[], object]) -> None:
        """Whoever gave the function has nothing more to log."""
        self.closers = [one for one in self.closers or () if one != function] or None

    def call_closers(self) -> None:
        """Let those log who still have something to log."""
        closers, self.closers = self.closers, None
        for function in closers or ():
            function()

    def close_parts(self) -> None:
        """Let those log who still have something to log, and close the slices."""
        try:
            self.call_closers()
        finally:
            if self._slices is not None:
                self._slices.close()

    def dispatch(self, event: object) -> None:
        """Take a value into its slice and tell the bus; a `TranscriptEntry` is in the log before that."""
        self.slices.dispatch(event)

    def __getitem__(self, type: type[T]) -> SliceAccess[T]:
        from .dispatching import SliceAccess

        return SliceAccess(self.slices, type)

    def set_policy(self, type: type, policy: SlicePolicy) -> None:
        """Whether the slice of a type is rolled back by `restore` (STATE) or never (LOG)."""
        self.slices.set_policy(type, policy)

    def snapshot(self) -> dict[type, tuple[Any, ...]]:
        """The values of every STATE slice, for `restore`."""
        return self.slices.snapshot()

    def restore(self, snapshot: dict[type, tuple[Any, ...]]) -> None:
        """Put the STATE slices back; what is logged stays."""
        self.slices.restore(snapshot)

    def conversation(self, name: str) -> ChosenConversation:
        """What a captured client says from here on, in this thread or task, is of the conversation of this name; as a
        context manager, until its block ends."""
        from .choosing import ChosenConversation

        return ChosenConversation(cast("Session", self), name)

    @property
    def slices(self) -> SliceStore:
        """What was dispatched, by type; made when it is first asked for."""
        if self._slices is None:
            from .dispatching import SliceStore  # most sessions are never asked for theirs

            with cast("Session", self).lock:
                self._slices = self._slices or SliceStore(cast("Session", self), self._bus, self._slice_config)
        return self._slices


_waited_for: WeakSet[Sliced] = WeakSet()
"""Sessions for which somebody still has something to log."""


@atexit.register
def _at_exit() -> None:
    """The program ends: later, when memory is taken back, a log may be gone before those who log."""
    for session in tuple(_waited_for):
        session.call_closers()


def put_beside(
    records: Sequence[dict[str, Any]], grouped: Sequence[list[Event]], beside: Sequence[dict[str, Any]]
) -> None:
    """What the entries of a line say beyond its events, in the same order."""
    at = 0
    for data, run in zip(records, grouped, strict=True):
        if any(own := beside[at : at + len(run)]):
            data[ENTRIES] = list(own)
        at += len(run)
