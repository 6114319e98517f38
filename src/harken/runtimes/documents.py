"""Sources that are read as a whole: a document that is rewritten, sessions of a database, the lines of one agent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from harken import clock, ids
from harken.context.chains import FileStamp, SourceMemory, recall, remember
from harken.formats.facts import Scan
from harken.formats.kit.claims import Claim, best
from harken.store import SessionRow, Writer

from .base import Runtime, claim_of
from .files import OpenFile, Unfit, database_stamp, open_snapshot
from .memory import top_of
from .sources import Part, Refused, SourceStream, may_claim

if TYPE_CHECKING:
    from .keeping import SourceImport

DOCUMENT_LIMIT = 64 << 20
"""A document is read as a whole, so it must not be larger than this."""
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


def read_parts(file: OpenFile, runtime: Runtime, now: clock.Clock = clock.now) -> Iterator[Part | Refused]:
    """What there is of a document or of a database."""
    if runtime.source == "document":
        yield read_document(file, runtime.read.scan, now)
    else:
        yield from read_database(file.path, runtime)


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


def read_document(file: OpenFile, scan: Scan, now: clock.Clock = clock.now) -> Part:
    """A document as it stands; `SourceChanged` where it is rewritten meanwhile."""
    stream = SourceStream(file, 0, 0, "")
    stream.fill(DOCUMENT_LIMIT + 1)
    if not stream.ended or stream.content()[1]:
        raise Unfit(f"{file.path}: a document of more than {DOCUMENT_LIMIT >> 20} MiB")
    stream.confirm(now())
    return whole_part(stream.content()[0][0][1], scan, file.stamp)


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


def follow_renamed(
    writer: Writer,
    item: SourceImport,
    calls: dict[str, str],
    rows: dict[str, SessionRow],
    find: Callable[[str, dict[str, SessionRow]], SessionRow | None],
) -> None:
    """Where a document that was rewritten calls an agent by another name than before, the agent's row goes along: it is
    the same agent that the same call made. `calls` are those that made its agents now."""
    before = item.before.calls if item.before is not None and item.runtime.source == "document" else {}
    gone = {call: agent for agent, call in before.items() if agent not in calls}
    for agent, call in calls.items():
        old, name = f"{item.name}/{gone.get(call)}", f"{item.name}/{agent}"
        if call not in gone or agent in before or (row := find(old, rows)) is None:
            continue
        sources = recall(row)
        known = sources.pop(ids.source_within(item.path, gone[call]), None)
        if known is None or sources or find(name, rows) is not None:
            continue  # the agent has other files, and stays; or the name is another's
        rows.pop(old, None)
        source = ids.source_within(item.path, agent)
        state, renamed = remember({source: known}), writer.rename_session(old, name)
        rows[name] = writer.save_session(msgspec.structs.replace(renamed, agent=agent, source=source, state=state))


def read_database(path: Path, runtime: Runtime) -> Iterator[Part | Refused]:
    """Every session of a database, in one snapshot."""
    stamp = database_stamp(path)
    with open_snapshot(path) as connection:
        for session, data in runtime.read.sessions(connection):
            if len(data) > DOCUMENT_LIMIT:
                why = f"{path}: the rows of {session} are more than {DOCUMENT_LIMIT >> 20} MiB"
                yield Refused(
                    key=session, why=why, hint="it is too large to be one conversation; the others are imported"
                )
                continue
            yield msgspec.structs.replace(whole_part(data, runtime.read.scan, stamp), key=session)
