"""Events that are too many for memory: in a file without a name, told in order or one by its place."""

from __future__ import annotations

import pickle
import tempfile
import weakref
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import overload

import msgspec

from harken.events import Event

HELD = 4 << 20
"""Bytes of events that stay in memory."""


class HeldEvents(Sequence[Event]):
    """Events on the disk; only their places are in memory."""

    def __init__(self, events: Iterable[Event], held: int = HELD) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=held)  # noqa: SIM115 (it is closed with this object)
        weakref.finalize(self, self._file.close)
        self._starts = array("Q")
        at = 0
        for event in events:
            self._starts.append(at)
            # As a tuple, which is quicker than what a struct makes of itself.
            values = (type(event), *msgspec.structs.astuple(event))
            at += self._file.write(pickle.dumps(values, pickle.HIGHEST_PROTOCOL))
        self._starts.append(at)

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, place: int) -> Event: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Event]: ...

    def __getitem__(self, place: int | slice) -> Event | Sequence[Event]:
        if isinstance(place, slice):
            return HeldEvents(self[at] for at in range(*place.indices(len(self))))
        if not 0 <= place < len(self):
            raise IndexError(place)
        start, end = self._starts[place], self._starts[place + 1]
        self._file.seek(start)
        kind, *values = pickle.loads(self._file.read(end - start))  # noqa: S301 (only this object writes the file)
        event: Event = kind(**dict(zip(kind.__struct_fields__, values, strict=True)))
        return event

    def __iter__(self) -> Iterator[Event]:
        return (self[place] for place in range(len(self)))
