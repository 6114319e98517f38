"""A session to look at: its views and its events, from its chains in the store or from a file."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from harken import formats, ids
from harken.context import get_artifact, get_session, session_bytes, session_events
from harken.context.chains import readable_sessions
from harken.context.materialize import remake
from harken.context.standing import standing
from harken.errors import BadRequest, HarkenError, NotFound
from harken.events import Event
from harken.formats.session_log import FORMAT
from harken.store import SessionRow, Store

if TYPE_CHECKING:
    from harken.views import SessionViewer

LOG = FORMAT.name
LARGE = 16 << 20
"""A file of more bytes is looked at from the disk."""


class ArtifactParts(msgspec.Struct, frozen=True, kw_only=True):
    """The bytes of an artifact, to be read as they are needed."""

    artifact: str
    size: int
    parts: Iterator[bytes]
    """`Corrupt` at the end if they were not its bytes."""


def bytes_of(store: Store, ref: str) -> bytes:
    """The bytes of an artifact, or of an answer that `materialize` gave: that has such a name too."""
    return b"".join(parts_of(store, ref).parts)


def parts_of(store: Store, ref: str) -> ArtifactParts:
    """`bytes_of`, in parts of bounded size."""
    try:
        about = store.info(get_artifact(store, ref))
        return ArtifactParts(artifact=about.id, size=about.size, parts=store.iter_parts(about.id))
    except NotFound:
        # What materialize answered is remembered, or can be made again.
        made = remake(store, ref.removeprefix(ids.ARTIFACT_PREFIX).lower())
        if made is None:
            raise
        return ArtifactParts(artifact=ids.artifact_id(made), size=len(made), parts=iter((made,)))


def view_of(store: Store, session: str | os.PathLike[str]) -> SessionViewer:
    """The views of a session in the store, as it stands or stood at a commit, or of a log file."""
    from harken.views import SessionViewer

    if not isinstance(session, str):
        return _view_file(Path(session))
    found = standing(store, session)
    log = session_bytes(store, found.row, LOG)
    if log is not None:
        return SessionViewer.of_log((log,))
    return SessionViewer.of(session_events(store, found.row, earlier=found.earlier))


def _view_file(path: Path) -> SessionViewer:
    """The views of a log, or of the file of another runtime's session."""
    from harken.views import SessionViewer

    if path.is_dir():
        raise BadRequest(f"{path} is a folder", hint="name the session's log file in it")
    try:
        viewer = SessionViewer(path)
    except FileNotFoundError as problem:
        raise NotFound(f"there is no file {path}", hint="name a session's log file") from problem
    except (OSError, ValueError) as problem:
        raise HarkenError(f"cannot read {path}: {problem}", hint="is it a file that you may read?") from problem
    except NotFound:  # it is no log
        with in_store_of_its_own(path.absolute()) as found:
            if found is None:
                raise
            viewer = SessionViewer.of(session_events(*found))
    return viewer


@contextlib.contextmanager
def in_store_of_its_own(path: Path) -> Iterator[tuple[Store, SessionRow] | None]:
    """The session of a file as an import has it, with the sub-agents whose files lie beside it; None where no runtime
    knows it for one of its own."""
    from harken import runtimes
    from harken.runtimes.importer import Importer

    known = {name: runtimes.get(name) for name in runtimes.names()}
    with _passing_store(path) as store:
        importer = Importer(store, known.values())
        told = list(importer.run([path], named=True))
        rows = [row for row in readable_sessions(store) if row.source == told[0].source] if told else []
        if len(rows) != 1 or told[0].status == "failed":
            yield None
            return
        for _ in importer.run(known[rows[0].runtime].read.agent_files(path)):
            pass
        yield store, get_session(store, rows[0].session)


@contextlib.contextmanager
def _passing_store(path: Path) -> Iterator[Store]:
    """A store for as long as a file is looked at: in memory, unless the file is large."""
    from harken.store import open_store

    try:
        large = path.stat().st_size > LARGE
    except OSError:  # the import says what is wrong
        large = False
    with contextlib.ExitStack() as stack:
        where = Path(stack.enter_context(tempfile.TemporaryDirectory()), "store.db") if large else "memory:"
        yield stack.enter_context(contextlib.closing(open_store(where)))


def has_agents(path: Path) -> bool:
    """Whether a session's file has sub-agents inside it or beside it: an import takes longer than a look."""
    from harken import runtimes

    data, format = open_file(path)
    readers = [known.read for name in runtimes.names() if (known := runtimes.get(name)).format == format.name]
    return any(reader.side_chains(data) or any(reader.agent_files(path)) for reader in readers)


def events_of(store: Store, session: str | os.PathLike[str]) -> list[Event]:
    """Everything that happened in a session of the store, as one stream; or what a file of any format holds."""
    if not isinstance(session, str):
        return read_file(Path(session))
    found = standing(store, session)
    return session_events(store, found.row, earlier=found.earlier)


def read_file(path: Path) -> list[Event]:
    """The events of a session's file, in whatever format it is."""
    data, found = open_file(path)
    return found.read(data)


def open_file(path: Path) -> tuple[bytes, formats.Format]:
    """What a session's file holds, and its format."""
    from harken.runtimes.files import UNPACKED_LIMIT, OpenFile  # most commands do without it

    with OpenFile(path) as file:
        data = file.read(0, UNPACKED_LIMIT)
    return data, _told_by(data[: formats.HEAD], path, lambda: data)


def format_of(path: Path) -> formats.Format:
    """The format of a session's file."""
    from harken.runtimes.files import UNPACKED_LIMIT, OpenFile

    with OpenFile(path) as file:
        return _told_by(file.read(0, formats.HEAD), path, lambda: file.read(0, UNPACKED_LIMIT))


def _told_by(head: bytes, path: Path, all_of_it: Callable[[], bytes]) -> formats.Format:
    found = formats.detect(head)
    if found is None and len(head) == formats.HEAD and path.name.endswith(".json"):
        from harken.formats.std.importing.claiming import claimed_kind  # its keys may stand behind the beginning

        kind = claimed_kind(all_of_it(), str(path))
        found = formats.get(kind) if kind else None
    if found is None:
        raise BadRequest(f"{path} is in no format that Harken reads", hint="name a session's file or its id")
    return found
