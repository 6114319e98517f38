"""How lines get into the log: written and acknowledged, then believed, then told; alone or as a batch."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Self

from harken.errors import BadRequest, HarkenError
from harken.events import Event
from harken.formats.session_log import ENTRY, events_of
from harken.formats.session_log.lines import LogLine

from .disk import LogWriter
from .memory import MemoryLog
from .transcripts import GAP, LogReader

_HEARD_OR_SAID = frozenset({ENTRY, "piece_of_text", "transcript_edit"})
Observer = Callable[[list[Event]], object]
"""Told of events once they are acknowledged; what it raises reaches the caller, and the events stay logged."""
LineObserver = Callable[[Sequence[LogLine]], object]
"""Told of the same as lines, with what stands beside the events on them; before the observers of events."""


class LogAppender(LogReader):
    """The writing half of a session."""

    observers: list[Observer]
    line_observers: list[LineObserver]
    lock: threading.RLock
    """Held while something is logged; whoever reads and then writes what follows from it holds it, too."""
    _writer: LogWriter | MemoryLog | None
    _batch: list[bytes] | None

    def has_left(self, agent_id: str | None) -> bool:
        """Whether an agent, or one above it, was terminated."""
        agents = self.registry.agents
        while agent_id is not None and (info := agents.get(agent_id)) is not None and not info.terminated:
            agent_id = info.parent
        return agent_id in agents

    def _commit(self, lines: bytes, records: Sequence[LogLine]) -> None:
        """Put records on disk, then believe them, then tell the observers."""
        if self._writer is None:
            raise BadRequest(f"{self.path} was opened for reading only", hint="open it without readonly=True")
        for agent_id in {data["agent_id"] for data in records if data["event_type"] in _HEARD_OR_SAID}:
            if self.has_left(agent_id):
                label = self.registry.agents[agent_id].name or agent_id
                raise BadRequest(f"{label} was terminated, and neither hears nor speaks", hint="make another agent")
        if self._batch is not None:
            self._postpone(self._batch, lines, records)
            return
        self._write(lines, records)
        self._tell(records)

    def _write(self, lines: bytes, records: Sequence[LogLine], *, believed: bool = False) -> None:
        """Append, then believe. After an interruption nobody knows where the file ends, so that was the last write."""
        assert self._writer is not None
        try:
            start = self._writer.size
            self._writer.append(lines, len(records))
            for data in records:
                place = self._places.setdefault(data["agent_id"], array("Q"))
                if place and start - place[-1] < GAP:
                    place[-1] = self._writer.size
                else:
                    place.extend((start, self._writer.size))
            if not believed:
                for data in records:
                    self.registry.take(data)
        except HarkenError:
            raise
        except BaseException:
            self._writer.interrupted()
            raise

    def _postpone(self, batch: list[bytes], lines: bytes, records: Sequence[LogLine]) -> None:
        """Believe now, write when the batch ends; half of it would be a record that only one of the two knows."""
        try:
            batch.append(lines)
            self._batched.extend(records)
            for data in records:
                self.registry.take(data)
        except BaseException:
            self._interrupted()
            raise

    def _interrupted(self) -> None:
        if self._writer is not None:
            self._writer.interrupted()

    def _tell(self, records: Sequence[LogLine]) -> None:
        for told in self.line_observers:
            told(records)
        events = [event for data in records for event in events_of(data)] if self.observers else []
        for observer in self.observers:
            observer(events)

    @contextmanager
    def batch(self) -> Iterator[Self]:
        """Acknowledge together what is logged inside: one write and one fdatasync when the block ends.

        Until then nothing in it is acknowledged. Where the block raises, what was logged is written all the same:
        it happened.
        """
        with self.lock:
            outer = self._batch
            try:
                if outer is None:
                    self._batch = []
                yield self
            finally:
                if outer is None:
                    self._leave_batch()

    def _leave_batch(self) -> None:
        try:
            lines, records = b"".join(self._batch or ()), self._batched
            self._batch, self._batched = None, []
        except BaseException:
            self._interrupted()  # what is in the batch is believed and will never be written
            raise
        if lines:
            self._write(lines, records, believed=True)
            self._tell(records)

    def flush(self) -> None:
        """Return when everything acknowledged is on disk, whatever the level of acknowledgement."""
        if self._writer is not None:
            with self.lock:
                self._writer.flush()

    def close(self) -> None:
        """Put what is left on disk and let others write; harmless when done twice."""
        if self._writer is not None:
            with self.lock:
                self._writer.close()
