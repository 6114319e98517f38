"""The records of a session as they are counted: every version of it, each record once, and which it carried over.

**Carried over** is what a session began with and did not make. There are three ways to know it:

1. Harken wrote the session's beginning (`resume`, `run --from`, `chat --from`), and remembered how much of it: the
   annotation `instantiated` on the commit that it continues. This holds for every runtime and across runtimes.
2. The session's chain hangs from commits of another session.
3. Another session has the record under the same name (`Format.shared_names`): a runtime's own forks copy records. Who
   has it first can only be told where several sessions are counted together; so this is left to the sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import msgspec

from harken import formats
from harken.events import Event, Metric
from harken.events.records import SessionRecord, by_record
from harken.formats import Format
from harken.formats.session_log import FORMAT as LOG
from harken.store.base import SessionRow, Store

from .materialize import materialize
from .names import REMEMBERED, RESUMED_BRANCH, Remembered
from .walk import ROOT

NATIVE = "1"
"""The tier of a resume in the same runtime, whose records keep their names."""


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
    they count by ids of their own, and a copy may hold a later one."""
    told: list[SessionRecord] = []
    known: dict[str, list[Event]] = {}
    remembered = find_remembered(store, row.session)
    written = _written(store, row, remembered) if remembered else Beginning()
    # The names that a translation made up are nobody's but its copies', which carry over the same.
    made_up = remembered is not None and remembered.tier != NATIVE
    for tip in dict.fromkeys((row.stand, *row.older)):
        version = _Version(store, row, tip)
        records: dict[str, list[Event]] = {}
        for event in version.events:
            records.setdefault(event.message_id, []).append(event)
        again = {name for name in records.keys() & known.keys() if name and _is_same(name, records, known)}
        for place, record in enumerate(by_record(version.events)):
            name = record[0].message_id
            events = [event for event in record if _is_request(event)] if name in again else record
            carried = written.has(name, place) or version.inherited.has(name, place)
            if events:
                shared = version.shared(name) if made_up or not carried else ""
                told.append(SessionRecord(events=events, name=shared, carried=carried))
        known |= records
    return told


def file_records(data: bytes, format: Format, path: str) -> Iterator[SessionRecord]:
    """The records of a file that is in no store, each with what its copies in other sessions are called too."""
    shared = _sharing(format, data, path)
    for record in by_record(format.read(data)):
        yield SessionRecord(events=record, name=shared(record[0].message_id))


def find_remembered(store: Store, session: str) -> Remembered | None:
    """What was remembered when Harken wrote the session's beginning; None where it did not."""
    name = store.find_name(RESUMED_BRANCH + session)
    for note in reversed(store.annotations(name.target)) if name is not None else ():
        if note.key == REMEMBERED:
            try:
                told = msgspec.json.decode(note.value, type=Remembered)
            except msgspec.MsgspecError:
                continue
            if told.session == session:
                return told
    return None


def _written(store: Store, row: SessionRow, remembered: Remembered) -> Beginning:
    """The records that Harken wrote as the session's beginning."""
    whole = materialize(store, store.get_commit(row.tip), stop=ROOT) if row.tip else None
    format = formats.get(whole.format) if whole else None
    if whole is None or format is None or not _is_in_own_format(format, remembered.runtime):
        return Beginning()  # a recording of the run, which hangs from the commit that it continues
    data = whole.bytes if remembered.records is not None else whole.bytes[: remembered.prefix]
    return Beginning.of(islice(by_record(format.read(data)), remembered.records))


class _Version:
    """A session as it stood at a commit."""

    def __init__(self, store: Store, row: SessionRow, tip: str) -> None:
        self.events: list[Event] = []
        self.shared: Callable[[str], str] = str
        self.inherited = Beginning()
        if tip:
            whole = materialize(store, store.get_commit(tip), stop=ROOT)
            format = formats.get(whole.format)
            self.events = format.read(whole.bytes)
            own = _is_in_own_format(format, row.runtime)
            self.shared = _sharing(format if own else _format_of(row, format), whole.bytes if own else b"", _scope(row))
            self.inherited = _inherited(store, tip)


def _is_in_own_format(format: Format, runtime: str) -> bool:
    """Whether what was read are the runtime's own records; Harken's own log belongs to no program."""
    return format.runtime == runtime or format.name == LOG.name


def _format_of(row: SessionRow, format: Format) -> Format:
    """The format that names the records of a session's runtime, where a recording of it was read."""
    known = (formats.find(name) for name in formats.names())
    return next((each for each in known if each is not None and each.runtime == row.runtime), format)


def _sharing(format: Format, data: bytes, scope: str) -> Callable[[str], str]:
    if format.shared_names is not None:
        shared = format.shared_names(data)
        return lambda name: f"{format.name} {found}" if (found := shared(name)) else ""
    # Other sessions have other records under these names, but the agents inside a file have the file's.
    return lambda name: f"{scope} {name}" if name and not name.startswith("@") else ""


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
    whole = materialize(store, below, stop=ROOT)
    return Beginning.of(by_record(formats.get(whole.format).read(whole.bytes)))


def _session_of(name: str) -> str:
    """The session of an agent's chain is its parent's."""
    return name.partition("/")[0]


def _is_same(name: str, records: dict[str, list[Event]], known: dict[str, list[Event]]) -> bool:
    return not name.startswith("@") or records[name] == known[name]


def _is_request(event: Event) -> bool:
    return isinstance(event, Metric) and bool(event.api_id)
