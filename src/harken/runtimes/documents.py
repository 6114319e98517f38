"""Sources that are read as a whole: a document that is rewritten, sessions of a database, the lines of one agent."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from harken import clock, ids
from harken.context.chains import RECENT, FileStamp, SourceMemory, recall, remember
from harken.formats.facts import Scan
from harken.formats.kit.claims import Claim, best
from harken.store import SessionRow, Store, Writer

from .base import Runtime, claim_of
from .databases import Same, no_versions
from .files import OpenFile, SourceUnreadable, Unfit, database_stamp, open_snapshot, whole_stamp
from .memory import Rows, find_row, top_of
from .sources import Part, Refused, SourceChanged, SourceStream, may_claim

if TYPE_CHECKING:
    from .keeping import SourceImport

DOCUMENT_LIMIT = 64 << 20
"""A document is read as a whole, so it must not be larger than this."""
ROWS_LIMIT = 512 << 20
"""The rows of a session hold what it said many times: a log repeats every state of every message."""
_BEGIN = 1024
"""Bytes in which an object begins, whatever blanks are before it."""


def claimed_by_all(file: OpenFile, head: bytes, runtimes: Sequence[Runtime]) -> tuple[Runtime, Claim] | None:
    """Who claims a file by all that is in it: the keys of a document may stand behind what was looked at first. What
    grows line by line is known by its beginning, and is not read."""
    growing = tuple(end for runtime in runtimes if runtime.source == "file" for end in runtime.read.suffixes)
    asked = [runtime for runtime in runtimes if runtime.source == "document"]
    begins = head[:_BEGIN].strip(b"\xff\xfe\xef\xbb\xbf\0 \t\r\n").startswith(b"{")
    if not asked or not begins or file.path.name.endswith(growing) or file.stamp.size > DOCUMENT_LIMIT:
        return None
    data = file.read(0, DOCUMENT_LIMIT)
    return best((runtime, claim_of(runtime, data, file.path)) for runtime in asked if may_claim(runtime, data))


def read_parts(
    file: OpenFile, runtime: Runtime, now: clock.Clock = clock.now, known: Mapping[str, str] | None = None
) -> Iterator[Part | Refused | Same]:
    """What there is of a document or of a database; of a database without the sessions whose versions are `known`."""
    if runtime.source == "document":
        yield read_document(file, runtime, now)
    else:
        yield from read_database(file.path, runtime, known or {}, now)


def whole_part(data: bytes, scan: Scan, stamp: FileStamp) -> Part:
    """Content that is scanned as a whole: a document, the rows of a session, the lines of one agent."""
    hasher = ids.ContentHasher()
    hasher.update(data)
    facts, digest = scan(data, b""), hasher.hexdigest()
    return Part(
        offset=0,
        segments=((0, data),),
        facts=facts,
        last=True,
        size=len(data),
        digest=digest,
        closed_digest=digest,
        stamp=stamp,
    )


def read_document(file: OpenFile, runtime: Runtime, now: clock.Clock = clock.now) -> Part:
    """A document as it stands, with its pieces; `SourceChanged` where it is rewritten meanwhile."""
    stamp = whole_stamp(file.path, [runtime])
    stream = SourceStream(file, 0, 0, "")
    stream.fill(DOCUMENT_LIMIT + 1)
    if not stream.ended or stream.content()[1]:
        raise Unfit(f"{file.path}: a document of more than {DOCUMENT_LIMIT >> 20} MiB")
    stream.confirm(now())
    data = stream.content()[0][0][1]
    if runtime.read.gather is not None:
        data = runtime.read.gather(file.path, data, _read_pieces(file.path, runtime, stamp))
    else:
        stamp = file.stamp
    return whole_part(data, runtime.read.scan, stamp)


def _read_pieces(path: Path, runtime: Runtime, stamp: FileStamp) -> list[tuple[Path, bytes]]:
    """The files that hold more of a document; all must be what they were when they were first looked at."""
    if stamp.size > ROWS_LIMIT:
        raise Unfit(f"{path}: a session of more than {ROWS_LIMIT >> 20} MiB")
    found = []
    try:
        for piece in runtime.read.pieces(path):
            with OpenFile(piece, unpack=False) as file:
                found.append((piece, file.read(0, file.stamp.size)))
        is_same = whole_stamp(path, [runtime]) == stamp
    except SourceUnreadable:
        is_same = False
    if not is_same:
        raise SourceChanged(f"{path}: its session was written to while it was read", hint="import it again")
    return found


def leave_replaced(
    writer: Writer, item: SourceImport, own: SessionRow, rows: dict[str, SessionRow]
) -> SessionRow | None:
    """The row that a document has had so far; None where one of another session stands in its place now. What was kept
    of the old one then stays, as a source that is not looked for any more, and the file counts as a new one."""
    sources, before = recall(own), item.before
    if item.path not in sources or before is None or before.unnamed or item.now.unnamed:
        return own
    if item.identity.session == (before.session or top_of(own)):
        return own
    left = ids.source_within(item.path, own.session)
    sources[left] = sources.pop(item.path)
    source = left if own.source == item.path else own.source
    rows[own.session] = writer.save_session(msgspec.structs.replace(own, source=source, state=remember(sources)))
    item.before = item.saved = None
    item.now = SourceMemory(call_id=item.now.call_id, spawned_from=item.now.spawned_from)
    return None


def follow_renamed(store: Store, writer: Writer, item: SourceImport, calls: dict[str, str], rows: Rows) -> None:
    """Where a document that was rewritten calls an agent by another name than before, the agent's row goes along: it is
    the same agent that the same call made. `calls` are those that made its agents now."""
    before = item.before.calls if item.before is not None and item.runtime.source == "document" else {}
    gone = {call: agent for agent, call in before.items() if agent not in calls}
    for agent, call in calls.items():
        old, name = f"{item.name}/{gone.get(call)}", f"{item.name}/{agent}"
        if call not in gone or agent in before or (row := find_row(store, old, rows)) is None:
            continue
        sources = recall(row)
        known = sources.pop(ids.source_within(item.path, gone[call]), None)
        if known is None or sources or find_row(store, name, rows) is not None:
            continue  # the agent has other files, and stays; or the name is another's
        rows.pop(old, None)
        source = ids.source_within(item.path, agent)
        state, renamed = remember({source: known}), writer.rename_session(old, name)
        rows[name] = writer.save_session(msgspec.structs.replace(renamed, agent=agent, source=source, state=state))


def read_database(
    path: Path, runtime: Runtime, known: Mapping[str, str], now: clock.Clock = clock.now
) -> Iterator[Part | Refused | Same]:
    """The sessions of a database, in one snapshot."""
    stamp = database_stamp(path)
    with open_snapshot(path) as connection:
        read_at = now()
        for session, version, rows in _versioned(connection, runtime, read_at):
            if version and known.get(session) == version:
                yield Same(key=session)
                continue
            try:
                data = rows()
            except sqlite3.Error as problem:
                why = f"{path}: the rows of {session} cannot be read ({problem})"
                yield Refused(key=session, why=why, hint="put back a copy of the file; the others are imported")
                continue
            if len(data) > ROWS_LIMIT:
                why = f"{path}: the rows of {session} are more than {ROWS_LIMIT >> 20} MiB"
                yield Refused(
                    key=session, why=why, hint="it is too large to be one conversation; the others are imported"
                )
                continue
            part = msgspec.structs.replace(whole_part(data, runtime.read.scan, stamp), key=session)
            if version:
                facts = msgspec.structs.replace(part.facts, state=version.encode())
                part = msgspec.structs.replace(part, facts=facts)
            yield part


def _versioned(
    connection: sqlite3.Connection, runtime: Runtime, read_at: int
) -> Iterator[tuple[str, str, Callable[[], bytes]]]:
    """The sessions, each with its version, where that is sure to change with the next change, and with its rows."""
    reader = runtime.read
    if reader.versions is no_versions:
        for session, data in reader.sessions(connection):
            yield session, "", partial(bytes, data)
        return
    for one in reader.versions(connection):
        is_settled = read_at - one.changed > RECENT
        yield one.key, ids.short_digest(one.version) if is_settled else "", one.rows
