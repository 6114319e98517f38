"""`harken resume`: write a conversation into a runtime's own place, so that the runtime itself goes on with it.

The same runtime gets its own records back, under a new session id; another runtime gets a translation and the list
of what could not be said. The original is never touched. What was written is remembered: an annotation beside the
source commit, and a branch `resumed/SESSION` by which an import of the continued session finds where it came from.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from harken import clock, formats, ids
from harken.context import continued
from harken.context.chains import recall
from harken.context.names import REMEMBERED, RESUMED_BRANCH, Remembered
from harken.context.refs import owner
from harken.errors import BadRequest, HarkenError, NotFound
from harken.events import Event, Prompt
from harken.events.records import by_record
from harken.files import make_folder, write_whole
from harken.formats import Loss, Written
from harken.formats.facts import Origin
from harken.store import Commit, SessionRow, Store

from .base import Environment, Place, ResumeWriter, Runtime, user_home

if TYPE_CHECKING:
    from harken.context.shortening import Shortening

NATIVE, FIELD, RAW = "1", "2", "4"
CUT = 80
"""Titles of so many characters may be cut off; runtimes cut them at different lengths."""


class Destination(msgspec.Struct, frozen=True, kw_only=True):
    """Where a conversation is to go on."""

    runtime: Runtime
    cwd: Path
    """The folder the runtime is going to work in."""
    environ: Environment
    """What tells where the runtime keeps its sessions, unless `home` does."""
    home: Path | None = None
    """The runtime's own folder; a user's home that contains it will do."""
    shortening: Shortening | None = None
    """How much goes along, where not all of it does."""


class Resumed(msgspec.Struct, frozen=True, kw_only=True):
    """A session that is ready to be continued."""

    runtime: str
    session: str
    path: str
    command: tuple[str, ...]
    tier: str
    losses: tuple[Loss, ...] = ()
    cwd: str = ""
    environment: dict[str, str] = {}
    """What has to be set for the runtime to look there, where that is not its usual home."""
    source: str = ""
    """The commit it continues."""
    prepare: tuple[tuple[str, ...], ...] = ()
    """Commands that have to run before `command`."""


def resume(store: Store, commit: Commit, to: Destination, *, now: clock.Clock = clock.now) -> Resumed:
    """Write the conversation at a commit where the runtime finds it, and say how to go on."""
    writer = _writer(to.runtime)
    if not to.cwd.is_dir():
        raise NotFound(f"there is no folder {str(to.cwd)!r}", hint="name one that the runtime can work in")
    home = choose_home(to)
    environment = _environment(to, home)
    place = writer.place(home, Path(os.path.realpath(to.cwd)), now())
    tier, written, said = _written(store, commit, to, writer, place)
    row = owner(store, commit)
    source = row.session if row is not None else commit.session_id
    named_in, line = _name(writer, place, row, written.data, said)
    if named_in == place.path:
        written = msgspec.structs.replace(written, data=written.data + line)
    if writer.sign is not None:
        records = _records(to.runtime, written.data) if to.runtime.source == "database" else None
        tell = _teller(commit, source, place, tier, records or 0)
        written = msgspec.structs.replace(written, data=writer.sign(written.data, tell))
    kept = Remembered(
        runtime=to.runtime.name,
        session=place.session,
        prefix=len(written.data),
        records=None if to.runtime.source == "file" else _records(to.runtime, written.data),
        tier=tier,
        losses=written.losses,
        source=source,
    )
    # A store that cannot be written to says so before there is a file that nobody remembers.
    with store.write() as change:
        change.annotate(commit.id, REMEMBERED, msgspec.json.encode(kept).decode(), time=place.time)
        change.move(
            RESUMED_BRANCH + place.session, kind="branch", to=commit.id, expect="", time=place.time, record=False
        )
        if writer.write is None:
            write_new(place.path, written.data)
        else:
            writer.write(place, written.data)
    if tier == NATIVE and row is not None:
        _restore_side_files(store, row, writer, place)
    if line and named_in != place.path:
        _append(named_in, line)
    return Resumed(
        runtime=to.runtime.name,
        session=place.session,
        path=str(place.path),
        command=place.command,
        tier=tier,
        losses=written.losses,
        cwd=str(place.cwd),
        environment=environment,
        source=commit.id,
        prepare=place.prepare,
    )


def _writer(runtime: Runtime) -> ResumeWriter:
    if runtime.resume is None:
        from . import get, names

        able = [name for name in names() if "resume" in get(name).can]
        raise BadRequest(f"{runtime.name} cannot continue a conversation", hint="those that can: " + ", ".join(able))
    return runtime.resume


def choose_home(to: Destination) -> Path:
    """The runtime's own folder. That a user's home was given, which contains it, is told by what lies there, or by its
    being the home of the user who asks."""
    if to.home is None:
        return to.runtime.home(to.environ).absolute()
    given = to.home.absolute()
    inside = to.runtime.home({"HOME": str(given)})
    is_its_own = any(root.exists() for root in to.runtime.roots(given) if root != given)
    is_a_users = inside.is_dir() or given == user_home(to.environ).absolute()
    return inside if is_a_users and not is_its_own else given


def _environment(to: Destination, home: Path) -> dict[str, str]:
    """What has to be set for the program to look there, where it would not by itself."""
    if home == to.runtime.home(to.environ).absolute():
        return {}
    environment = dict(to.runtime.environment(home))
    if home != to.runtime.home(dict(to.environ) | environment).absolute():
        raise BadRequest(
            f"{to.runtime.label} cannot be told to look in {home}", hint="leave out --home, or name a folder it can use"
        )
    return environment


def _written(
    store: Store, commit: Commit, to: Destination, writer: ResumeWriter, place: Place
) -> tuple[str, Written, Callable[[], Iterable[Event]]]:
    """The tier, the bytes of the new session, what they could not say, and what is said in them."""
    runtime = to.runtime
    made = continued(
        store,
        commit,
        format=runtime.format,
        write=lambda events: writer.translated(events, place),
        shortening=to.shortening,
    )
    if made.tier == RAW:
        raise BadRequest(
            f"{commit.short} is kept as {made.format}, which {runtime.name} cannot continue",
            hint="`harken materialize` gives it in any format that can say it",
        )
    native = made.tier in (NATIVE, FIELD)
    data = writer.native(made.data, place) if native else made.data
    written = Written(data=data, losses=(*made.losses, *(writer.drops(made.data) if native else ())))
    reader = formats.get(runtime.format).reader
    return made.tier, written, lambda: made.events or (reader(made.data) if reader is not None else ())


def _teller(commit: Commit, source: str, place: Place, tier: str, records: int) -> Callable[[bytes], Origin]:
    """What the file says of its own beginning, so that other stores need not be told: given all but its first line."""
    return lambda rest: Origin(
        session=place.session,
        source=source,
        commit=commit.id,
        time=clock.format_instant(commit.time),
        size=len(rest),
        digest=ids.short_digest(rest),
        tier=tier,
        records=records,
    )


def _records(runtime: Runtime, data: bytes) -> int | None:
    """How many records a document or the rows of a database hold, where what was written can be read back."""
    known = formats.find(runtime.format)
    return None if known is None or "read" not in known.can else sum(1 for _ in by_record(known.read(data)))


def _name(
    writer: ResumeWriter, place: Place, row: SessionRow | None, data: bytes, said: Callable[[], Iterable[Event]]
) -> tuple[Path, bytes]:
    """The line that gives the session the name it had, and the file it belongs in; no line where that is nothing but
    the first words of the conversation, by which every program calls a session anyhow."""
    title = row.title if row is not None and writer.name is not None else ""
    if not title or writer.name is None:
        return place.path, b""
    is_said = msgspec.json.encode(title)[1:-1] in data
    return (place.path, b"") if is_said and _is_called_so(title, said()) else writer.name(place, title)


def _is_called_so(title: str, said: Iterable[Event]) -> bool:
    """Whether the title is what somebody said first, or a beginning of it that is as long as titles get."""
    words = next((event.content for event in said if isinstance(event, Prompt) and event.source == "user"), "")
    words = " ".join(words.split())
    return words == title or (len(title) >= CUT and words.startswith(title))


def _append(path: Path, line: bytes) -> None:
    """Put a line at the end of a list that the runtime keeps; without it the session goes by its first words."""
    with contextlib.suppress(OSError), open(path, "ab", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(line)


def _restore_side_files(store: Store, row: SessionRow, writer: ResumeWriter, place: Place) -> None:
    """Put what lay beside the original (long outputs of tools, journals) beside the new session, as far as it is
    kept."""
    side_files = {name: file for source in recall(row).values() for name, file in source.side_files.items()}
    for name, file in side_files.items():
        if (path := writer.side_file(place, name)) is not None:
            with contextlib.suppress(NotFound):
                write_new(path, store.get(file.artifact))


def write_new(path: Path, data: bytes) -> None:
    """Write a file of the new session, in folders for its owner's eyes alone."""
    try:
        make_folder(path.parent)
        write_whole(path, data)
    except OSError as problem:
        raise HarkenError(
            f"the session could not be written to {path}: {problem.strerror}", hint="--home DIR names another place"
        ) from problem
