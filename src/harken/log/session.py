"""`Session`: the log as the state of a multi-agent system.

It hands out every id, puts every event on disk before it says so, knows every agent that ever was, and gives back
any transcript from the file. It holds no transcripts itself: what can be read from the file is read from the file.
"""

from __future__ import annotations

import os
import threading
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from harken import clock as clocks
from harken.errors import BadRequest, Conflict, HarkenError, NotFound
from harken.events import Event, Recovery
from harken.events.base import check_name, is_like_an_id, likeness
from harken.formats.session_log import ENTRY, events_of, read_groups, writing
from harken.formats.session_log.writing import GivenCause, encode, record_of, runs

from .base import AgentInfo
from .disk import Ack, LogWriter, read_chunks
from .memory import MemoryLog, memory_name
from .questions import Answerable
from .registry import Registry
from .sliced import Sliced, put_beside
from .transcripts import GAP, LogReader

if TYPE_CHECKING:  # most sessions have no slices
    from .bus import EventBus
    from .slices import SliceFactoryConfig

_HEARD_OR_SAID = frozenset({ENTRY, "piece_of_text", "transcript_edit"})
Observer = Callable[[list[Event]], object]
"""Told of events once they are acknowledged; what it raises reaches the caller, and the events stay logged."""
LineObserver = Callable[[Sequence[dict[str, Any]]], object]
"""Told of the same as lines, with what stands beside the events on them; before the observers of events."""


class Session(LogReader, Sliced, Answerable):
    """One session log, open for writing by this process alone or for reading by anybody.

    A session that exists is read once: ids go on above every id in the file, and `agents` has every agent of it.
    Without a file it is in memory, and ends when it is closed.
    """

    def __init__(
        self,
        file: str | os.PathLike[str] | None = None,
        *,
        bus: EventBus | None = None,
        slice_config: SliceFactoryConfig | None = None,
        observers: Iterable[Observer] = (),
        ack: Ack = "disk",
        clock: clocks.Clock = clocks.now,
        readonly: bool = False,
    ) -> None:
        self.observers: list[Observer] = list(observers)
        self.line_observers: list[LineObserver] = []
        self.extensions: dict[str, Any] = {}  # what others keep beside it, by a name of their own; we never look at it
        self.made_as: Callable[[str], tuple[str | None, dict[str, Any]]] = lambda _: (None, {})
        """Below whom an agent was made and what else is to be logged of it, by whoever keeps the living agents."""
        self.registry = Registry()
        self._places: dict[str, array[int]] = {}
        self._seen = 0
        self._next_message = self._next_agent = 0  # looked for when the first one is needed
        self._clock, self._stamp = clock, clocks.Timestamps()
        self.lock = threading.RLock()
        self._batch: list[bytes] | None = None
        self._batched: list[dict[str, Any]] = []
        self._bus, self._slice_config = bus, slice_config
        self._writer: LogWriter | MemoryLog | None = MemoryLog() if file is None else None
        self.path = memory_name() if file is None else Path(os.path.realpath(file))
        if file is not None and not readonly:
            self._writer = LogWriter(self.path, ack=ack)
        try:
            self._load()
        except BaseException:
            self.close()
            raise

    @classmethod
    def load(cls, session_file: str | os.PathLike[str], **options: Any) -> Self:
        """Open a session that exists; `NotFound` where it does not. Takes the options of `Session`."""
        if not Path(session_file).exists():
            raise NotFound(f"there is no session log {os.fspath(session_file)}", hint="`Session(path)` makes a new one")
        return cls(session_file, **options)

    def _load(self) -> None:
        groups = read_groups(self._chunks())
        self.registry.read(groups if self._writer is not None and not self._writer.size else self._noting(groups))
        if self._writer is not None and self._writer.is_torn():
            self._heal(self._writer)

    def _chunks(self, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        writer = self._writer
        return read_chunks(self.path, start=start, end=end) if writer is None else writer.chunks(start, end)

    def _heal(self, writer: LogWriter | MemoryLog) -> None:
        """Close a torn line by appending; what is there of it stays."""
        start = writer.last_line()
        torn = Recovery(offset=start, length=writer.size - start, reason="torn last line")
        records = (record_of([torn.replace(message_id=self._allocate(), time=self._clock())]),)
        self._write(b"\n" + encode(records[0]), records)
        self._tell(records)

    @property
    def readonly(self) -> bool:
        """Whether this session cannot be written."""
        return self._writer is None

    @property
    def agents(self) -> dict[str, AgentInfo]:
        """Every agent that ever was, by id, in the order they appeared; terminated ones too."""
        return self.registry.agents

    def children(self, agent_id: str) -> list[AgentInfo]:
        """The agents below this one that have not been terminated."""
        return self.registry.children(agent_id)

    def has_left(self, agent_id: str | None) -> bool:
        """Whether an agent, or one above it, was terminated."""
        while agent_id is not None and (info := self.agents.get(agent_id)) is not None and not info.terminated:
            agent_id = info.parent
        return agent_id in self.agents

    @property
    def root(self) -> str | None:
        """The id of the first agent without a parent."""
        return self.registry.root

    def changes(self, agent_id: str) -> int:
        """How often the transcript of an agent was changed, by an entry or an edit."""
        info = self.agents.get(agent_id)
        return 0 if info is None else info.entries + info.edits

    # Logging

    def allocate_agent_id(self) -> str:
        """An id no agent of this log ever had."""
        with self.lock:
            if not self._next_agent:
                self._next_agent = self.registry.next_agent_number()
            while True:
                agent_id = f"agent_{self._next_agent:03d}"
                self._next_agent += 1
                if agent_id not in self.agents:
                    return agent_id

    def log_agent_created(
        self,
        agent_id: str,
        cause: GivenCause = None,
        name: str | None = None,
        language_model: str | None = None,
        *,
        role: str | None = None,
        parent: str | None = None,
        attributes: dict[str, Any] | None = None,
    ) -> str:
        """Log that an agent came into being; called by whoever made it, who alone knows why and under which name."""
        writing.check_agent(agent_id)
        writing.check_text(name=name, language_model=language_model, role=role, parent=parent)
        if (known := self.agents.get(agent_id)) is not None and known.created:
            raise Conflict(f"agent {agent_id!r} exists already", hint="`allocate_agent_id` gives a fresh id")
        with self.lock:
            above = self.registry.owner([cause] if isinstance(cause, str) else cause or ())
            below, own = self.made_as(agent_id)
            parent = parent or (below if below != above else None)  # else it follows from the cause
            if not is_like_an_id(agent_id) and any(
                known != agent_id and likeness(info.name) == likeness(agent_id) for known, info in self.agents.items()
            ):
                raise BadRequest(f"{agent_id!r} is the name of an agent and cannot be an id", hint="leave the id out")
            if name:
                self.check_name(name, below=parent or above, agent_id=agent_id)
            fields = {"name": name, "language_model": language_model, "role": role, "parent": parent}
            data = {key: value for key, value in fields.items() if value}
            own |= attributes or {}
            return self._log("agent_created", agent_id, data, cause=cause, last={"attributes": own or None})

    def check_name(self, name: str, *, below: str | None, agent_id: str = "") -> None:
        """Refuse what cannot be the name of a new agent or hook: what is no name, is like an agent's id, or is like the
        name of one that is there below the same agent. A log that holds such names is read all the same."""
        check_name(name)
        like = likeness(name)
        if is_like_an_id(name) or (like in self.registry.own_ids and like != likeness(agent_id)):
            raise BadRequest(f"{name!r} is an agent's id, or like one: it cannot be a name", hint="choose another name")
        for info in self.children(below) if below is not None else ():
            if info.agent_id != agent_id and likeness(info.name) == like:
                whose = self.agents[below or ""].name or ("root" if below == self.root else below)
                what = f"{whose} already has a {'hook' if info.role == 'hook' else 'subagent'} {info.name!r}"
                raise BadRequest(what, hint="choose another name, or call the one that is there")

    def log_transcript_entry(
        self, agent_id: str, message: dict[str, Any], substance: str | None = None, *, cause: GivenCause = None
    ) -> str:
        """Log an addition to an agent's transcript: a message with a role, as chat models know it."""
        return self._log(ENTRY, agent_id, writing.message_of(message), substance=substance, cause=cause)

    def log_piece_of_text(self, agent_id: str, content: str, cause: GivenCause, *, call_id: str | None = None) -> str:
        """Log text made for others to hear; it is in nobody's transcript until somebody hears it."""
        if not isinstance(content, str):
            raise BadRequest(f"content must be text, not {type(content).__name__}", hint="pass content as a str")
        return self._log("piece_of_text", agent_id, {"content": content}, cause=cause, last={"call_id": call_id})

    def log_agent_terminated(
        self, agent_id: str, *, reason: str | None = None, cause: GivenCause = None, call_id: str | None = None
    ) -> str:
        """Log that an agent left the tree; it stays in the registry."""
        writing.check_agent(agent_id)
        writing.check_text(reason=reason)
        if agent_id not in self.agents:
            raise NotFound(f"no agent {agent_id!r} in {self.path}", hint="`session.agents` has every agent")
        told = {"reason": reason} if reason else {}
        return self._log("agent_terminated", agent_id, told, cause=cause, last={"call_id": call_id})

    def log_transcript_edit(
        self,
        agent_id: str,
        action: str,
        n: int,
        *,
        start: int = 0,
        content: str | None = None,
        cause: GivenCause = None,
    ) -> str:
        """Log an edit of a transcript; `harken.events.edits` has the rule."""
        return self._log("transcript_edit", agent_id, writing.edit_of(action, n, start, content), cause=cause)

    def append(self, events: Iterable[Event], *, beside: Sequence[dict[str, Any]] = ()) -> list[str]:
        """Log any events; those without an id or a time get one. The ids of their records, in order.

        `beside` has what the transcript entry that each event is says beyond it, and stands on the same line."""
        with self.lock:
            named = self._named(list(events))
            records = [record_of(run) for run in runs(named)]
            if any(beside):
                put_beside(records, runs(named), beside)
            self._commit(b"".join(map(encode, records)), records)
        return list(dict.fromkeys(event.message_id for event in named))

    def _named(self, events: list[Event]) -> list[Event]:
        named: list[Event] = []
        fresh: set[str] = set()
        now: int | None = None
        for event in events:
            writing.check_event(event)
            changes: dict[str, Any] = {}
            if not event.message_id:
                follows = named and event.index == named[-1].index + 1 and named[-1].message_id in fresh
                changes["message_id"] = named[-1].message_id if follows else self._allocate()
                fresh.add(changes["message_id"])
            elif event.message_id in self.registry.messages and not event.index:
                raise Conflict(f"message {event.message_id!r} is in the log already", hint="leave the id empty")
            if event.time is None:
                now = self._clock() if now is None else now
                changes["time"] = now
            named.append(event.replace(**changes) if changes else event)
        return named

    def _allocate(self) -> str:
        if not self._next_message:
            self._next_message = self.registry.next_message_number()
        while True:
            message_id = f"msg_{self._next_message:03d}"
            self._next_message += 1
            if message_id not in self.registry.messages:
                return message_id

    def _log(
        self,
        kind: str,
        agent_id: str,
        fields: dict[str, Any],
        *,
        substance: str | None = None,
        cause: GivenCause = None,
        last: dict[str, Any] | None = None,
    ) -> str:
        writing.check_agent(agent_id)
        link = writing.links(substance, cause)
        with self.lock:
            message_id = self._allocate()
            data = {
                "message_id": message_id,
                "event_type": kind,
                "agent_id": agent_id,
                "timestamp": self._stamp(self._clock()),
                **fields,
                **link,
            }
            if last:
                data.update((key, value) for key, value in last.items() if value is not None)
            self._commit(encode(data), (data,))
        return message_id

    def _commit(self, lines: bytes, records: Sequence[dict[str, Any]]) -> None:
        """Put records on disk, then believe them, then tell the observers."""
        if self._writer is None:
            raise BadRequest(f"{self.path} was opened for reading only", hint="open it without readonly=True")
        for agent_id in {data["agent_id"] for data in records if data["event_type"] in _HEARD_OR_SAID}:
            if self.has_left(agent_id):
                label = self.agents[agent_id].name or agent_id
                raise BadRequest(f"{label} was terminated, and neither hears nor speaks", hint="make another agent")
        if self._batch is not None:
            self._postpone(self._batch, lines, records)
            return
        self._write(lines, records)
        self._tell(records)

    def _write(self, lines: bytes, records: Sequence[dict[str, Any]], *, believed: bool = False) -> None:
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

    def _postpone(self, batch: list[bytes], lines: bytes, records: Sequence[dict[str, Any]]) -> None:
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

    def _tell(self, records: Sequence[dict[str, Any]]) -> None:
        for told in self.line_observers:
            told(records)
        events = [event for data in records for event in events_of(data)] if self.observers else []
        for observer in self.observers:
            observer(events)

    @contextmanager
    def batch(self) -> Iterator[Self]:
        """Acknowledge together what is logged inside: one write and one fdatasync when the block ends.

        Until then nothing in it is acknowledged. Where the block raises, what was logged is written: it happened.
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
        with self.lock:
            if self._writer is not None:
                self._writer.flush()

    def close(self) -> None:
        """Put what is left on disk and let others write; harmless when done twice."""
        try:
            if self._slices is not None or self.closers is not None:
                self.close_parts()
        finally:
            if self._writer is not None:
                with self.lock:
                    self._writer.close()
