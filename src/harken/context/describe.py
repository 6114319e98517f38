"""A commit as people see it: its facts, the names that point at it, and always a line about what it holds."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from harken import ids
from harken.errors import BadRequest, Evicted, Forgotten, HarkenError, NotFound
from harken.events import Event
from harken.formats import Format
from harken.formats import find as find_format
from harken.formats import get as get_format
from harken.store.base import Annotation, ArtifactInfo, Commit, Store

from . import summary, walk
from .chains import is_superseded, project_of
from .names import continuations, is_own
from .readable import for_readers


class Shown(Commit, frozen=True, kw_only=True, gc=False):
    """A commit with what was said about it."""

    summary: str
    """The newest that was said about it, else a line derived from its events."""
    derived: bool = False
    """Whether nobody wrote the summary."""
    names: tuple[str, ...] = ()
    """The branches and tags that point at it, but for those that Harken keeps for itself."""
    continued_by: tuple[str, ...] = ()
    """The sessions that Harken wrote to go on from here."""
    annotations: tuple[Annotation, ...] = ()

    @property
    def superseded(self) -> bool:
        """Whether a grown file has put another commit in its place."""
        return bool(self.annotations) and is_superseded(self.annotations)


def show(store: Store, commits: Iterable[Commit]) -> list[Shown]:
    """The commits with their names and summaries, asked for together."""
    listed = list(commits)
    ids = [commit.id for commit in listed]
    names, said = store.names_at(ids), store.annotations_of(ids)
    written = {id: note.value if (note := summary.written(notes)) else "" for id, notes in said.items()}
    lines = derive(store, [commit for commit in listed if not written[commit.id]])
    return [
        Shown(
            **msgspec.structs.asdict(commit),
            summary=written[commit.id] or lines[commit.id],
            derived=not written[commit.id],
            names=tuple([name.name for name in there if not is_own(name)]) if (there := names[commit.id]) else (),
            continued_by=tuple(continuations(there)) if there else (),
            annotations=tuple(said[commit.id]),
        )
        for commit in listed
    ]


def derive(store: Store, commits: Sequence[Commit]) -> dict[str, str]:
    """A line about each commit's events; whatever is wrong with its bytes, there is a line."""
    readers = {
        name: known
        for name in {commit.format for commit in commits}
        if (known := find_format(name)) is not None and "read" in known.can
    }
    folders = _folders(store, {commit.session_id for commit in commits if commit.format in readers})
    lines = _lines(store, readers, folders, [commit for commit in commits if commit.format in readers])
    rest = [commit for commit in commits if commit.id not in lines]
    sizes = store.infos([commit.artifact for commit in rest if commit.format not in readers])
    for commit in rest:
        try:
            if commit.format in readers:
                content = _content(store, commit)
                lines[commit.id] = summary.line_of(readers[commit.format], content, folders[commit.session_id])
            else:
                lines[commit.id] = _sized(commit, sizes.get(commit.artifact))
        except Forgotten:
            lines[commit.id] = f"{commit.commit_type} in {commit.format}; it was forgotten"
        except Evicted:
            lines[commit.id] = (
                f"{commit.commit_type} in {commit.format}; its bytes are not here any more: evicted, or lost to damage"
            )
        except HarkenError as problem:
            lines[commit.id] = f"{commit.commit_type} in {commit.format}; unreadable: {problem}"
    return lines


def _folders(store: Store, sessions: Iterable[str]) -> dict[str, str]:
    """The folders that sessions worked in; empty where nobody knows."""
    found = dict.fromkeys(sessions, "")
    for session in filter(None, found):
        with contextlib.suppress(HarkenError):
            if (row := store.find_session(session)) is not None:
                found[session] = project_of(row)
    return found


def _lines(
    store: Store, readers: Mapping[str, Format], folders: Mapping[str, str], commits: Sequence[Commit]
) -> dict[str, str]:
    """A line about the events of each commit, up to the first that cannot be had. One after the other: all of their
    bytes together may be more than there is memory for."""
    lines: dict[str, str] = {}
    with contextlib.suppress(HarkenError):
        contents = store.get_many([commit.artifact for commit in commits], large=for_readers(store, commits))
        for commit, data in zip(commits, contents, strict=True):
            lines[commit.id] = summary.line_of(readers[commit.format], data, folders[commit.session_id])
    return lines


def read_deltas(store: Store, commits: Sequence[Commit]) -> Iterator[tuple[Commit, str, list[Event] | HarkenError]]:
    """What each commit adds, with the folder that was worked in, or why it cannot be read; each frame is read once."""
    folders = _folders(store, {commit.session_id for commit in commits})
    readable = [commit for commit in commits if (known := find_format(commit.format)) and "read" in known.can]
    done: set[str] = set()
    with contextlib.suppress(HarkenError):
        contents = store.get_many([commit.artifact for commit in readable], large=for_readers(store, readable))
        for commit, data in zip(readable, contents, strict=True):
            done.add(commit.id)
            yield commit, folders[commit.session_id], get_format(commit.format).read_delta(data)
    for commit in commits:  # those that are left, one by one: what cannot be had stops no other
        if commit.id not in done:
            try:
                yield commit, folders[commit.session_id], delta_events(store, commit)
            except HarkenError as problem:
                yield commit, folders[commit.session_id], problem


def _content(store: Store, commit: Commit) -> bytes:
    """The bytes of a commit's delta, for a reader."""
    return (for_readers(store, [commit]) or store.get)(commit.artifact)


def _sized(commit: Commit, info: ArtifactInfo | None) -> str:
    """A line about bytes that nobody can read, which are not read for it."""
    if info is None:
        raise NotFound(f"no artifact {ids.artifact_ref(commit.artifact)}", hint="`harken fsck` says what is lost")
    if info.evicted:
        raise Evicted(f"the bytes of {commit.short} were evicted", hint="import the session again to have them back")
    return f"{commit.commit_type} in {commit.format}, {info.size} bytes"


def delta_events(store: Store, commit: Commit) -> list[Event]:
    """What a commit adds to the conversation, as events."""
    known = find_format(commit.format)
    if known is None or "read" not in known.can:
        raise BadRequest(
            f"{commit.short} is in {commit.format}, which cannot be read here",
            hint=f"`harken materialize {commit.short}` writes its bytes as they are",
        )
    data = _content(store, commit)
    return walk.added(known, data, _begin(store, commit, data))


def _begin(store: Store, commit: Commit, data: bytes) -> int | None:
    """At which place of its chain a commit's delta begins; None where it is no part of the count."""
    _, end, last = walk.starts(store, commit.parent or "")
    if commit.commit_type not in walk.RESETS or not commit.parent:
        return end
    if last.endswith(data):  # it repeats what the delta before it ends with
        return end - len(data)
    return 0 if commit.commit_type == walk.SNAPSHOT else None


def short_of(store: Store, commit: str) -> str:
    """The shown name of a commit given by its full name; of one that is not here, all of its name."""
    try:
        return store.get_commit(commit).short
    except HarkenError:
        return ids.commit_ref(commit, len(commit))  # fewer digits may be another's name
