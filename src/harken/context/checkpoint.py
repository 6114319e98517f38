"""Making a commit: bytes, facts and the names that follow it, in one transaction."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import msgspec

from harken import clock, ids
from harken.errors import Ambiguous, BadRecord, BadRequest, Conflict, NotFound
from harken.events import Output
from harken.formats import find as find_format
from harken.formats.base import Counts, concatenate, count, weigh
from harken.store import values
from harken.store.base import Commit, Draft, Name, SessionRow, Store

from . import refs

Time = str | int | datetime | None
YEAR = 366 * 86_400 * clock.SECOND
"""A whole number below this is the present in seconds or milliseconds, taken for microseconds."""
Advance = Callable[[SessionRow | None, Commit], SessionRow]
"""The session's row as the new commit leaves it, from the row as it was."""


def instant(value: Time, now: clock.Clock = clock.now) -> int:
    """The instant a caller means: microseconds, an RFC 3339 text, a datetime, or nothing for the present."""
    if value is None:
        return now()
    if isinstance(value, datetime):
        return clock.from_datetime(value)
    if type(value) is int:
        if 0 < value < YEAR:
            raise BadRequest(
                f"{value} microseconds after 1970 began is no time that anybody means",
                hint="seconds and milliseconds have to be made microseconds; a datetime or a text will do as well",
            )
        return value
    found = clock.parse_instant(value) if isinstance(value, str) else None
    if found is None:
        raise BadRequest(f"{value!r} is no time", hint="write it like 2026-11-15T10:30:00Z")
    return found


def get_artifact(store: Store, ref: str) -> str:
    """The full name of the artifact that `art-…`, a full name or a unique beginning of one names. As of a commit's
    name, that has four digits at least."""
    digits = ref.removeprefix(ids.ARTIFACT_PREFIX).lower()
    long = len(digits) >= refs.FEWEST_CHARACTERS
    found = store.artifacts(digits, limit=9) if long and ids.is_hex(digits) else []
    if len(found) > 1:
        raise Ambiguous(
            f"several artifacts begin with {ref!r}", hint="it could be: " + ", ".join(found[: refs.CANDIDATES])
        )
    if not found:
        hint = "`harken show REF` names the artifact of a commit" if long else refs.TOO_SHORT
        raise NotFound(f"there is no artifact {ref!r}", hint=hint)
    return found[0]


def weigh_content(format: str, data: bytes, *, counted: bool) -> Counts:
    """What bytes that somebody hands over amount to, or nothing where that is counted; refused where a chain of this
    format could never be joined from them. What they say is not judged."""
    if not data:
        raise BadRequest("there is nothing to keep", hint="give data that is not empty, or the name of an artifact")
    known = find_format(format)
    if known is None:
        return Counts() if counted else weigh(len(data))
    known.join([data])
    # Lines are read one by one, whatever is wrong with another. What is read in one piece has to be whole: joined to
    # others, it would leave nothing of them.
    events = known.read_delta(data) if known.join is not concatenate and "read" in known.can else None
    if events and isinstance(bad := events[0], Output) and bad.why and bad.raw == data:
        raise BadRecord(f"these bytes are no {format}: {bad.why}", hint="they may be cut off; give all of them")
    if counted:
        return Counts()
    return known.measure(data) if events is None or known.measurer is not None else count(events)


def take_artifact(store: Store, artifact: str, format: str, *, counted: bool) -> Counts:
    """What an artifact that is to be committed amounts to; refused where its bytes would be.

    It is read only where that tells something: its bytes may be many."""
    size = store.info(artifact).size
    known = find_format(format)
    readable = known is not None and "read" in known.can
    if size and (known is None or known.join is concatenate) and (counted or not readable):
        return weigh(size)
    return weigh_content(format, store.get(artifact), counted=counted)


LARGEST = (1 << 63) - 1


def check_count(what: str, value: int | None) -> int | None:
    """A count that a store can keep."""
    if value is not None and (type(value) is not int or not 0 <= value <= LARGEST):
        raise BadRequest(f"{value!r} is no number of {what}", hint="a whole number from 0 to 2**63 - 1, or none")
    return value


def checkpoint(
    store: Store,
    draft: Draft,
    *,
    data: bytes | None = None,
    summary: str = "",
    branch: Name | None = None,
    advance: Advance | None = None,
) -> Commit:
    """Record a commit with its bytes. `branch` goes along, unless somebody else moved it; so does the session, which
    goes on from its newest commit alone.

    A commit that was there before stays what it is: its session has counted it and may have gone on since."""
    with store.write() as writer:
        artifact = draft.artifact if data is None else writer.put(data)
        draft = msgspec.structs.replace(draft, artifact=artifact)
        row = refs.find_session(store, draft.session_id) if advance is not None else None
        # What is put on a session's tip is new to the session, and not worth a question.
        on_tip = row is not None and row.tip == draft.parent
        before = find_same(store, draft) if summary or (advance is not None and not on_tip) else None
        commit = writer.commit(draft)
        if summary and not (before and _says(store, commit, summary)):
            writer.annotate(commit.id, "summary", summary, time=draft.time, who=draft.principal)
        if branch is not None:
            writer.move(branch.name, kind="branch", to=commit.id, expect=branch.target, time=draft.time, record=False)
        if advance is not None and before is None:
            if row is not None and row.tip and not on_tip:
                raise _behind(store, row)
            writer.save_session(advance(row, commit), expect=row.version if row else 0)
    return commit


def _behind(store: Store, row: SessionRow) -> Conflict:
    return Conflict(
        f"the session {row.session!r} has gone on: it is at {store.get_commit(row.tip).short} now",
        hint="go on from there (give the session as `parent`), or leave `session_id` out for a commit beside it",
    )


def find_same(store: Store, draft: Draft) -> Commit | None:
    """The commit that the draft would make, if it is there already."""
    values.check_draft(draft)
    created_at = clock.format_seconds(draft.time)
    above = store.get_commit(draft.parent).seal if draft.parent else ""
    name = values.commit_name(draft, created_at) + values.seal_of(draft, created_at, above)
    return next(iter(store.commits(name, limit=1)), None)


def _says(store: Store, commit: Commit, summary: str) -> bool:
    """Whether this is the summary that is shown already."""
    said = [note.value for note in store.annotations(commit.id) if note.key == "summary"]
    return said[-1:] == [summary]


def advance_session(runtime: str) -> Advance:
    """How a session's row follows a commit that somebody made by hand."""

    def advance(row: SessionRow | None, commit: Commit) -> SessionRow:
        row = row or SessionRow(session=commit.session_id, runtime=runtime, started=commit.time)
        return msgspec.structs.replace(
            row,
            tip=commit.id,
            ended=max(commit.time, row.ended or commit.time),
            messages=row.messages + ((commit.message_count or 0) if commit.commit_type == "delta" else 0),
        )

    return advance
