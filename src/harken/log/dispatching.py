"""What is dispatched into a session: entries go to the log, every value to its slice, and all of it to the bus.

A `TranscriptEntry` is in the log before anybody hears of it. Whatever else the log says (an agent's words, a captured
reply) is an entry too: the slice hears of each line that is written, so both ways in end at one place.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from uuid import UUID

from harken.errors import BadRequest, HarkenError
from harken.formats.session_log import as_id, encode, events_of, first_digits
from harken.formats.session_log.lines import LogLine
from harken.formats.session_log.writing import ENTRIES
from harken.formats.transcript.entry import ROLES, TranscriptEntry, in_order
from harken.formats.transcript.events import derived_id, drafts_of, event_of, parse_id, rest_of

from .arriving import NumberedTranscripts
from .bus import EventBus
from .memory import is_memory_name
from .slices import MemorySlice, MemorySliceFactory, Slice, SliceFactoryConfig, SlicePolicy
from .sources import agent_of, source_of

if TYPE_CHECKING:
    from .session import Session

T = TypeVar("T")
_log = logging.getLogger("harken.slices")


@dataclass(frozen=True)
class Append:
    """Add a value to the slice."""

    item: Any


@dataclass(frozen=True)
class Replace:
    """Let these be all values of the slice."""

    items: tuple[Any, ...]


Reducer = Callable[[tuple[Any, ...], Any], "Append | Replace"]
"""From the values of a slice and an event: what is done to the slice."""


def append_all(values: tuple[Any, ...], event: Any) -> Append:
    """Every event is a value of the slice; what a slice does where nothing else was registered."""
    return Append(event)


def replace_latest(values: tuple[Any, ...], event: Any) -> Replace:
    """The newest event is the only value."""
    return Replace((event,))


class SliceAccess(Generic[T]):
    """The values of one type, as `session[T]` gives them."""

    def __init__(self, store: SliceStore, type: type[T]) -> None:
        self._store, self._type = store, type

    def all(self) -> tuple[T, ...]:
        """Every value; entries by number within their source."""
        return self._store.values(self._type)

    def latest(self) -> T | None:
        """The last of them."""
        values = self.all()
        return values[-1] if values else None

    def where(self, predicate: Callable[[T], bool]) -> tuple[T, ...]:
        """Those of which the predicate is true."""
        return tuple(value for value in self.all() if predicate(value))

    def register(self, event_type: type, reducer: Reducer) -> None:
        """Let events of a type change this slice."""
        self._store.register(self._type, event_type, reducer)

    def __len__(self) -> int:
        return len(self.all())


class SliceStore:
    """The slices of one session."""

    def __init__(self, session: Session, bus: EventBus | None, config: SliceFactoryConfig | None) -> None:
        self.bus = bus
        self._session = session
        self._config = config or SliceFactoryConfig()
        self._policies: dict[type, SlicePolicy] = {TranscriptEntry: SlicePolicy.LOG}
        self._slices: dict[type, Slice[Any]] = {}
        self._reducers: dict[type, dict[type, Reducer]] = {}
        self._numbers = EntryNumbers()
        self._agents: dict[str, str] = {}
        self._given: dict[str, TranscriptEntry] = {}
        """Entries that are being logged, by id: what comes back from the log is the same."""
        self._is_all = False
        """Whether the slice of entries holds those of this session and no others."""
        self._unwritten: list[TranscriptEntry] = []
        """Entries that are in the log and could not be written to their slice."""
        self._unread: list[LogLine] = []
        """Lines that were logged since somebody last asked for entries."""
        self._batch = BatchReading()
        self._untold: list[TranscriptEntry] = []
        """Entries that were read in a batch which is logged by now."""
        self._transcripts = NumberedTranscripts()
        self._first: dict[type, tuple[Any, ...]] = {}
        """What a STATE slice held when it was first looked at: a file has what an earlier session left."""
        self._read_log()
        session.line_observers.append(self._heard)

    # Values

    def values(self, type: type[T]) -> tuple[T, ...]:
        """What a slice holds."""
        with self._session.lock:
            if type is TranscriptEntry:
                self._read_lines()
            held: tuple[Any, ...] = self._slice(type).all()
            if type is not TranscriptEntry:
                return held
            if not self._is_all:
                # Other sessions may keep theirs in the same file, and some may stand in it twice.
                own = {entry.entry_id: entry for entry in reversed((*held, *self._unwritten))}
                held = tuple(entry for name, entry in reversed(own.items()) if name in self._numbers.ids)
            if self._numbers.late:
                held = in_order(held)
        return held

    def set_policy(self, type: type, policy: SlicePolicy) -> None:
        """Say what becomes of a slice when the session is put back; before it holds anything."""
        if not isinstance(policy, SlicePolicy):
            raise BadRequest(f"{policy!r:.80} is no policy", hint="`SlicePolicy.LOG` or `SlicePolicy.STATE`")
        with self._session.lock:
            if self.policy(type) is policy:
                return
            if type is TranscriptEntry:
                raise BadRequest("transcript entries are in the log and stay there", hint="their policy is LOG")
            if type in self._slices and self._slices[type].all():
                raise BadRequest(
                    f"the slice of {type.__name__} holds values already", hint="set its policy before the first"
                )
            self._slices.pop(type, None)
            self._policies[type] = policy

    def policy(self, type: type) -> SlicePolicy:
        """STATE, unless somebody said otherwise."""
        return self._policies.get(type, SlicePolicy.STATE)

    def register(self, slice_type: type, event_type: type, reducer: Reducer) -> None:
        """Let events of a type change a slice; of two reducers for the same the later stands."""
        if slice_type is TranscriptEntry and (event_type is not TranscriptEntry or reducer is not append_all):
            raise BadRequest("the slice of transcript entries holds what the log says", hint="register `append_all`")
        with self._session.lock:
            self._read_lines()  # a reducer hears what comes from now on
            self._reducers.setdefault(event_type, {})[slice_type] = reducer

    def snapshot(self) -> dict[type, tuple[Any, ...]]:
        """The values of every STATE slice."""
        with self._session.lock:
            return {type: held.all() for type, held in self._slices.items() if self.policy(type) is SlicePolicy.STATE}

    def restore(self, snapshot: dict[type, tuple[Any, ...]]) -> None:
        """Put every STATE slice back; one that it does not know is what it was when it was first looked at."""
        with self._session.lock:
            for type in {*snapshot, *self._slices}:
                if self.policy(type) is SlicePolicy.STATE:
                    held = self._slice(type)
                    held.replace(snapshot[type] if type in snapshot else self._first[type])

    def close(self) -> None:
        """Let go of files."""
        with ExitStack() as all:
            for held in self._slices.values():
                all.callback(held.close)

    def _slice(self, type: type) -> Slice[Any]:
        if type not in self._slices:
            is_log = self.policy(type) is SlicePolicy.LOG
            factory = self._config.log_factory if is_log else self._config.state_factory
            if type is TranscriptEntry and self._session.readonly:
                factory = MemorySliceFactory()  # whoever writes the log writes the slice
            held: Slice[Any] = factory.create(type)
            if not is_log:
                self._first[type] = held.all()
            self._slices[type] = held
        return self._slices[type]

    # Dispatch

    def dispatch(self, event: Any) -> None:
        """Take in one value."""
        if isinstance(event, TranscriptEntry):
            check_entry(event)
            self._log_entry(event)  # the slice and the bus hear of it from the log
            return
        with self._session.lock:
            for slice_type, reducer in self._reducers.get(type(event), {type(event): append_all}).items():
                self._reduce(slice_type, reducer, event)
        self._tell((event,))

    def _reduce(self, slice_type: type, reducer: Reducer, event: Any) -> None:
        held = self._slice(slice_type)
        match reducer(() if reducer is append_all else held.all(), event):
            case Append(item):
                held.extend((item,))
            case Replace(items) if self.policy(slice_type) is SlicePolicy.STATE:
                held.replace(items)
            case Replace():
                raise BadRequest(f"the slice of {slice_type.__name__} only grows", hint="its policy is LOG")

    def _log_entry(self, entry: TranscriptEntry) -> None:
        with self._session.lock:
            self._read_lines()
            self._read_batch()
            if entry.entry_id in self._numbers.ids:
                return
            number = self._numbers.free(entry.source, entry.sequence)
            if number != entry.sequence:
                entry = replace(entry, sequence=number)
            event = event_of(entry)
            name = str(entry.entry_id)
            beside = {**rest_of(entry, event), "entry_id": name}
            if number != self._numbers.free(entry.source, None):
                beside["sequence"] = number
            try:
                with self._session.batch():
                    agent_id = self._agents.get(entry.source) or agent_of(self._session, entry.source)
                    self._agents[entry.source] = agent_id
                    self._given[name] = entry
                    edits = self._transcripts.edits_behind(event, agent_id, number)
                    self._session.append([event.replace(agent_id=agent_id), *edits], beside=[beside])
            except BaseException:
                self._given.pop(name, None)
                raise

    # What the log says

    def _heard(self, lines: Sequence[LogLine]) -> None:
        """Lines were logged. They are read now where somebody waits for entries, else when one asks: a program that is
        captured and never looks at its entries does not wait for them to be made."""
        if lines is self._batch.lines:  # some were read when an entry was dispatched behind them
            self._untold += self._batch.entries
            lines = lines[self._batch.read :]
        self._unread += lines
        self._session_key()  # while the log can be read: who asks may do so when the session is closed
        if self.bus is not None or TranscriptEntry in self._reducers or not self._is_all:
            self._read_lines()

    def _read_lines(self) -> None:
        lines, self._unread = self._unread, []
        found, self._untold = self._untold, []
        found += [entry for line in lines for entry in self._entries(line)]
        if found:
            self._keep(found)
            for slice_type, reducer in self._reducers.get(TranscriptEntry, {}).items():
                for entry in found if slice_type is not TranscriptEntry else ():
                    try:
                        self._reduce(slice_type, reducer, entry)
                    except Exception:  # noqa: BLE001  the entry is logged: whoever logged it has nothing to mend
                        _log.exception("the reducer of %s failed", slice_type.__name__)
            self._tell(found)

    def _read_batch(self) -> None:
        """Number what waits in an open batch, in the order in which the log will have it: an entry that is dispatched
        behind it has the number that it has when the log is read. It is told of when it is logged."""
        if self._batch.lines is not self._session.batched:
            self._batch = BatchReading(self._session.batched)
        batch = self._batch
        for line in batch.lines[batch.read :]:
            batch.entries += self._entries(line)
        batch.read = len(batch.lines)

    def _keep(self, entries: Sequence[TranscriptEntry]) -> None:
        """Put entries into their slice. They are in the log: a slice that fails now has them when it can be written."""
        waiting = [*self._unwritten, *entries]
        try:
            self._slice(TranscriptEntry).extend(waiting)
            self._unwritten = []
        except HarkenError as problem:
            if not self._unwritten:
                _log.warning("entries are in the log and not yet in their slice: %s", problem)
            self._unwritten = waiting

    def _entries(self, line: LogLine) -> list[TranscriptEntry]:
        """The next line of the log as entries, numbered."""
        found = self._numbered(line)
        self._transcripts.take(line, found[0].sequence if found else None)
        return found

    def _numbered(self, line: LogLine) -> list[TranscriptEntry]:
        beside = line.get(ENTRIES)
        rests = beside if isinstance(beside, list) else []
        if self._given and len(rests) == 1 and (given := self._given.pop(rests[0].get("entry_id", ""), None)):
            self._numbers.take(given.source, given.sequence, given.entry_id)
            return [given]
        found = []
        for draft, rest in drafts_of(events_of(line), rests, self._numbers.tools):
            if (stored := parse_id(rest.get("entry_id"))) in self._numbers.ids:
                continue  # the same one twice is one
            source = source_of(self._session, as_id(line.get("agent_id")) or "")
            number = rest.get("sequence")
            number = self._numbers.free(source, number if type(number) is int and number >= 0 else None)
            entry_id = stored or derived_id(self._session_key(), source, number)
            self._numbers.take(source, number, entry_id)
            found.append(draft.entry(entry_id=entry_id, source=source, sequence=number))
        return found

    def _session_key(self) -> str:
        """What the ids of entries are derived from: the log, wherever it lies."""
        if not self._numbers.session:
            lines = iter(self._session.appended(0))
            waiting = map(encode, self._session.batched)  # where nothing is logged yet
            self._numbers.session = first_digits(next(lines, b"") or next(waiting, b""))
        return self._numbers.session

    def _read_log(self) -> None:
        """What the log says already. A slice in a file has most of it; what it lacks is added."""
        held = self._slice(TranscriptEntry).all()
        # Lines of an open batch are not in the log yet; the slice hears of them when they are.
        lines = (record.data for record in self._session.scan() if record.data is not None)
        logged = [entry for line in lines for entry in self._entries(line)]
        known = {entry.entry_id for entry in held}
        if is_memory_name(self._session.path):  # what the file holds is all there is
            for entry in held:
                if entry.entry_id not in self._numbers.ids:
                    self._numbers.take(entry.source, entry.sequence, entry.entry_id)
        self._is_all = not held and isinstance(self._slice(TranscriptEntry), MemorySlice)
        self._keep([entry for entry in logged if entry.entry_id not in known])

    def _tell(self, events: Iterable[Any]) -> None:
        if self.bus is not None:
            for event in events:
                self.bus.dispatch(event)


@dataclass
class BatchReading:
    """What is read of the lines of an open batch."""

    lines: list[LogLine] = field(default_factory=list)
    read: int = 0
    """How many of them."""
    entries: list[TranscriptEntry] = field(default_factory=list)


class EntryNumbers:
    """Which entries there are, and which number of a source is free."""

    def __init__(self) -> None:
        self.ids: set[UUID] = set()
        self.tools: dict[str, str] = {}
        self.session = ""
        self.late = False
        """Whether an entry came after one with a higher number."""
        self._next: dict[str, int] = {}
        self._beyond: dict[str, set[int]] = {}
        """Numbers that are taken above the first free one."""
        self._last: dict[str, int] = {}
        """The highest of them."""

    def free(self, source: str, wanted: int | None) -> int:
        """The number wanted, or where that is taken the one after all others: what is missing below may still come."""
        first = self._next.get(source, 0)
        beyond = self._beyond.get(source, ())
        if wanted is None or wanted < first or wanted in beyond:
            return self._last[source] + 1 if beyond else first
        return wanted

    def take(self, source: str, number: int, entry_id: UUID) -> None:
        """There is such an entry."""
        self.ids.add(entry_id)
        first = self._next.get(source, 0)
        if number != first:
            self._beyond.setdefault(source, set()).add(number)
            self._last[source] = max(number, self._last.get(source, number))
            self.late = True
            return
        first += 1
        if beyond := self._beyond.get(source):
            while first in beyond:
                beyond.remove(first)
                first += 1
        self._next[source] = first


def check_entry(entry: TranscriptEntry) -> None:
    """Refuse what could not be read again as it is."""
    for name, types in _TYPES.items():
        if not isinstance(value := getattr(entry, name), types) or (name == "sequence" and value is True):
            raise BadRequest(f"{name} of an entry cannot be {value!r:.80}", hint="see the fields of `TranscriptEntry`")
    if entry.role not in ROLES:
        raise BadRequest(f"{entry.role!r:.80} is no role", hint=", ".join(ROLES))


_TYPES: dict[str, Any] = {
    "role": str,
    "content": str,
    "created_at": datetime,
    "tool_name": str | None,
    "tool_call_id": str | None,
    "tool_input": dict | None,
    "metadata": dict | None,
    "entry_id": UUID,
    "sequence": int,
}
