"""The records of a session as they are counted: every version of it, each record once, and which it carried over.

**Carried over** is what a session began with and did not make. There are four ways to know it:

1. Harken wrote the session's beginning (`resume`, `run --from`, `chat --from`), and remembered how much of it: the
   annotation `instantiated` on the commit that it continues. In other stores the file itself tells (`Origin`). This
   holds for every runtime and across runtimes.
2. The session's chain hangs from commits of another session.
3. A session log says so of the entries that an agent began with (`Format.carried_names`), wherever they stand.
4. Another session has the record under the same name (`Format.shared_names`): a runtime's own forks copy records. Who
   has it first can only be told where several sessions are counted together; so this is left to the sum.

Where records have no ids (Codex), two that say the same share a name, and so do two requests that used as much. Where
the session is known that this one goes on from, what stands behind the copy is called after this session too
(`_Makers`): a thread that is continued twice in the same words was continued twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import islice

import msgspec

from harken import formats
from harken.events import Event, Metric, Prompt, Response, ToolCall, ToolResult
from harken.events.records import SessionRecord, agent_of, by_record
from harken.formats import Format
from harken.formats.base import concatenate
from harken.formats.session_log import FORMAT as LOG
from harken.store.base import SessionRow, Store

from . import walk
from .chains import recall
from .materialize import everything
from .names import REMEMBERED, RESUMED_BRANCH, Remembered
from .refs import whole_session

NATIVE = "1"
"""The tier of a resume in the same runtime."""
KEEP_NAMES = (NATIVE, "2")
"""The tiers of resumes whose records keep their names: in the same runtime, also where its format is a newer one."""


_Told = tuple[SessionRecord, str, str]
"""A record, what it and all that say the same are called, and who made it."""


class Beginning(msgspec.Struct, frozen=True):
    """The records that a session began with and did not make."""

    count: int = 0
    names: frozenset[str] = frozenset()

    @classmethod
    def of(cls, records: Iterable[list[Event]]) -> Beginning:
        """These records."""
        found = [record[0].message_id for record in records]
        return cls(len(found), frozenset(filter(None, found)))

    def has(self, name: str, place: int) -> bool:
        """Whether the record is one of them; where records have no names, their place tells."""
        return name in self.names if name else place < self.count


def session_records(store: Store, row: SessionRow) -> list[SessionRecord]:
    """Every record of every version of the session that is in the store, once: where it stands, then its older tips.

    A record counts as told before where an earlier version has one of the same name or, where records are called after
    their places in the file, the same in the same place. Of such a one only the reports of requests are given again:
    they count by ids of their own, and a copy may hold a later one. Where one version names its records and another
    does not, the format says which of them are the same (`Format.unnamed_names`)."""
    return [record for record, _, _ in _told(store, row, frozenset())]


def _told(store: Store, row: SessionRow, above: frozenset[str]) -> list[_Told]:
    told: list[_Told] = []
    known: dict[str, list[Event]] = {}
    named_later = _NamedLater()
    remembered = find_remembered(store, row)
    written = _written(store, row, remembered) if remembered else Beginning()
    # The names that a translation made up are nobody's but its copies', which carry over the same.
    made_up = remembered is not None and remembered.tier not in KEEP_NAMES
    own_before = _names_before(store, row) if made_up else frozenset()
    makers = _Makers(store, row, above | {row.session}, written=remembered is not None)
    for tip in dict.fromkeys((whole_session(store, row).stand, *row.older)):
        version = _Version(store, row, tip)
        makers.begin()
        records: dict[str, list[Event]] = {}
        for event in version.events:
            records.setdefault(event.message_id, []).append(event)
        again = {name for name in records.keys() & known.keys() if name and _is_same(name, records, known)}
        told_before = named_later.told_before(version, [name for name in records if name not in known])
        for place, record in enumerate(by_record(version.events)):
            name = record[0].message_id
            if name in told_before:
                continue
            events = [event for event in record if _is_request(event)] if name in again else record
            carried = written.has(name, place) or version.inherited.has(name, place) or bool(version.carried_from(name))
            shared = version.shared(name)
            maker = makers.of(record, shared, carried=carried) if name.startswith("@") and shared else ""
            if events:
                known_as = _after(shared, maker) if not carried or (made_up and shared not in own_before) else ""
                events = [_signed(event, maker) for event in events] if maker and not carried else events
                agent = agent_of(record)
                told.append((SessionRecord(events=events, name=known_as, carried=carried, agent=agent), shared, maker))
        known |= records
    return told


class _NamedLater:
    """Finds records of one version of a session in another where only one of both names them: a program that opens an
    older file may give its records names. Asked only of formats that say so (`Format.unnamed_names`)."""

    def __init__(self) -> None:
        self._left: dict[tuple[str, bool], list[str]] = {}
        """By what a record is called without a name, and whether it has one: the records that no other stands for."""

    def told_before(self, version: _Version, names: Iterable[str]) -> set[str]:
        """Which of a version's records those before have told; a record stands for one other."""
        if version.unnamed is None:
            return set()
        found: set[str] = set()
        new: list[tuple[tuple[str, bool], str]] = []
        for name in filter(None, names):
            is_named = not name.startswith("@")
            if not (called := version.unnamed(name)):
                continue
            if left := self._left.get((called, not is_named)):
                left.pop(0)
                found.add(name)
            else:
                new.append(((called, is_named), name))
        for key, name in new:
            self._left.setdefault(key, []).append(name)
        return found


class _Makers:
    """Which session made a record that is called after what it says; empty where the name alone has to tell."""

    def __init__(self, store: Store, row: SessionRow, above: frozenset[str], *, written: bool) -> None:
        self._store, self._row, self._above = store, row, above
        self._written = written
        """Whether Harken wrote the beginning: then it is known what was copied."""
        self._copied = True

    def begin(self) -> None:
        """Another version of the session: its records come from the first on."""
        self._copied = True

    def of(self, record: list[Event], shared: str, *, carried: bool) -> str:
        """Who made the record; the records of a version come in their order, what was copied first."""
        if carried:
            # Only a session that copied it further asks; reading the one before for nothing takes time.
            return (self._before or {}).get(shared, "") if len(self._above) > 1 else ""
        if not self._written and self._before is None:
            return ""
        copied = not self._written and self._copied and self._before is not None and shared in self._before
        if not copied and any(isinstance(event, Prompt | Response | ToolCall | ToolResult) for event in record):
            self._copied = False
        return self._before[shared] if copied and self._before is not None else self._row.session

    @cached_property
    def _before(self) -> dict[str, str] | None:
        """The makers of the records of the session that this one goes on from; None where that is not known."""
        row = self._row
        root = self._store.walk(row.tip)[-1].id if row.tip else ""
        commit = self._store.get_commit(root).forked_from if root else ""
        source = self._store.find_session(_session_of(self._store.get_commit(commit).session_id)) if commit else None
        if source is None or source.session in self._above:
            return None
        return {shared: maker for _, shared, maker in _told(self._store, source, self._above) if shared}


def _names_before(store: Store, row: SessionRow) -> frozenset[str]:
    """What a session that Harken wrote goes on from said itself, near or far, as copies of it are called in the format
    of the session. Told only where records are called after when they were said (`Format.dates_names`): there a record
    that comes back by way of another program has its old name again, and does not say that whoever has that copied
    it."""
    names: set[str] = set()
    seen = {row.session}
    format = _format_of(row, LOG)
    before = _continued(store, row) if format.dates_names else None
    while before is not None and before.session not in seen:
        seen.add(before.session)
        if _format_of(before, LOG).shared_as("@") == format.shared_as("@"):
            names |= _own_names(store, before)
        before = _continued(store, before)
    return frozenset(names)


def _continued(store: Store, row: SessionRow) -> SessionRow | None:
    """The session that this one goes on from, as far as it is in the store."""
    remembered = find_remembered(store, row)
    if remembered is not None and (told := remembered.goes_on_from(None)):
        return store.find_session(_session_of(told))
    root = store.walk(row.tip)[-1].id if row.tip else ""
    commit = store.get_commit(root).forked_from if root else ""
    return store.find_session(_session_of(store.get_commit(commit).session_id)) if commit else None


def _own_names(store: Store, row: SessionRow) -> set[str]:
    """What the records are called that were made in this session."""
    remembered = find_remembered(store, row)
    written = _written(store, row, remembered) if remembered else Beginning()
    names: set[str] = set()
    for tip in dict.fromkeys((whole_session(store, row).stand, *row.older)):
        version = _Version(store, row, tip)
        made = dict.fromkeys(event.message_id for event in version.events)
        names |= {version.shared(name) for place, name in enumerate(made) if not written.has(name, place)}
    return names - {""}


def _after(shared: str, maker: str) -> str:
    return f"{shared} {maker}" if shared and maker else shared


def _signed(event: Event, maker: str) -> Event:
    """A report of a request under its maker's name, unless its id has it already."""
    if isinstance(event, Metric) and event.api_id and maker not in event.api_id:
        signed: Event = event.replace(api_id=f"{event.api_id} {maker}")
        return signed
    return event


def file_records(data: bytes, format: Format, path: str) -> Iterator[SessionRecord]:
    """The records of a file that is in no store, each with what its copies in other sessions are called too."""
    shared, carried_from = _sharing(format, data, path), _carrying(format, data)
    for record in by_record(format.read(data)):
        name = record[0].message_id
        carried = bool(carried_from(name))
        known_as = "" if carried else shared(name)
        yield SessionRecord(events=record, name=known_as, carried=carried, agent=agent_of(record))


def find_remembered(store: Store, row: SessionRow) -> Remembered | None:
    """What was remembered when Harken wrote the session's beginning, or what the file itself says of that where another
    store did; None where nobody did."""
    session = row.session
    name = store.find_name(RESUMED_BRANCH + session)
    for note in reversed(store.annotations(name.target)) if name is not None else ():
        if note.key == REMEMBERED:
            try:
                told = msgspec.json.decode(note.value, type=Remembered)
            except msgspec.MsgspecError:
                continue
            if told.session == session:
                return told
    return _told_by_file(row)


def _told_by_file(row: SessionRow) -> Remembered | None:
    told = next((known.origin for known in recall(row).values() if known.origin is not None), None)
    if told is None:
        return None
    records = told.records or None
    return Remembered(
        runtime=row.runtime, session=row.session, prefix=told.prefix, records=records, tier=told.tier, origin=told
    )


def _written(store: Store, row: SessionRow, remembered: Remembered) -> Beginning:
    """The records that Harken wrote as the session's beginning."""
    whole = everything(store, store.get_commit(row.tip)) if row.tip else None
    format = formats.get(whole.format) if whole else None
    if whole is None or format is None or not _is_in_own_format(format, remembered.runtime):
        return Beginning()  # a recording of the run, which hangs from the commit that it continues
    if remembered.origin is not None and not remembered.origin.is_of(whole.bytes):
        return Beginning()  # somebody changed what was written, and the count of its bytes means nothing
    data = whole.bytes if remembered.records is not None else whole.bytes[: remembered.prefix]
    return Beginning.of(islice(by_record(format.read(data)), remembered.records))


class _Version:
    """A session as it stood at a commit."""

    def __init__(self, store: Store, row: SessionRow, tip: str) -> None:
        self.events: list[Event] = []
        self.shared: Callable[[str], str] = str
        self.unnamed: Callable[[str], str] | None = None
        self.inherited = Beginning()
        self.carried_from: Callable[[str], str] = _from_nobody
        if tip:
            whole = everything(store, store.get_commit(tip))
            format = formats.get(whole.format)
            together = format.named_reader
            self.events, named = together(whole.bytes) if together is not None else (format.read(whole.bytes), None)
            own = _is_in_own_format(format, row.runtime)
            if own:
                self.shared = _sharing(format, whole.bytes, _scope(row), named)
            else:
                self.shared = _sharing(_format_of(row, format), b"", _scope(row))
            if own and row.older and format.unnamed_names is not None:
                self.unnamed = format.unnamed_names(whole.bytes)
            self.inherited = _inherited(store, tip)
            if format.join is not concatenate:
                self.events += _figures_of_answers(store, tip, format, self.events)
            self.carried_from = _carrying(format, whole.bytes)


def _figures_of_answers(store: Store, tip: str, format: Format, told: Iterable[Event]) -> Iterator[Event]:
    """What the session's answers used, where they were kept one by one: in the request that they are joined to, an
    answer is a message like any other, and has no figures."""
    own, chain = _session_of(store.get_commit(tip).session_id), store.chain(tip)
    if len(chain) < 2 or any(isinstance(event, Metric) for event in told):
        return
    answered = [
        commit
        for commit in reversed(chain)
        if commit.format == format.name
        and commit.commit_type not in walk.RESETS
        and _session_of(commit.session_id) == own
    ]
    deltas = store.get_many([commit.artifact for commit in answered])
    for commit, delta in zip(answered, deltas, strict=True):
        for event in format.read_delta(delta):
            if isinstance(event, Metric):
                yield event.replace(message_id=f"{event.message_id}:{commit.id}")


def _is_in_own_format(format: Format, runtime: str) -> bool:
    """Whether what was read are the runtime's own records; Harken's own log belongs to no program."""
    return runtime in (format.runtime, *format.shared_by) or format.name == LOG.name


def _format_of(row: SessionRow, format: Format) -> Format:
    """The format that names the records of a session's runtime, where a recording of it was read."""
    known = (formats.find(name) for name in formats.names())
    return next((each for each in known if each is not None and row.runtime in (each.runtime, *each.shared_by)), format)


def _sharing(
    format: Format, data: bytes, scope: str, named: Callable[[str], str] | None = None
) -> Callable[[str], str]:
    """What copies of the records are called; `named` is what `shared_names` would give, where that is known."""
    if format.shared_names is not None:
        shared = named or format.shared_names(data)
        return lambda name: format.shared_as(shared(name))
    # Other sessions have other records under these names, but the agents inside a file have the file's.
    return lambda name: f"{scope} {name}" if name and not name.startswith("@") else ""


def _carrying(format: Format, data: bytes) -> Callable[[str], str]:
    """From a record's name to the session that it was carried over from, as the bytes themselves say."""
    return _from_nobody if format.carried_names is None else format.carried_names(data)


def _from_nobody(name: str) -> str:
    return ""


def _scope(row: SessionRow) -> str:
    """Within what a name that is no more than a number means one record: the file, the agents inside it included."""
    return (row.source.removesuffix(f"#{row.agent}") if row.agent else row.source) or row.session


def _inherited(store: Store, tip: str) -> Beginning:
    """The records in commits of another session, from which this one's chain hangs."""
    own = _session_of(store.get_commit(tip).session_id)
    root = _session_of(store.get_commit(store.walk(tip)[-1].id).session_id)
    if not own or not root or own == root:
        return Beginning()
    below = next(link for link in store.chain(tip) if _session_of(link.session_id) not in ("", own))
    whole = everything(store, below)
    return Beginning.of(by_record(formats.get(whole.format).read(whole.bytes)))


def _session_of(name: str) -> str:
    """The session of an agent's chain is its parent's."""
    return name.partition("/")[0]


def _is_same(name: str, records: dict[str, list[Event]], known: dict[str, list[Event]]) -> bool:
    return not name.startswith("@") or records[name] == known[name]


def _is_request(event: Event) -> bool:
    return isinstance(event, Metric) and bool(event.api_id)
