"""A commit as people see it: its facts, the names that point at it, and always a line about what it holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harken.errors import Evicted, HarkenError
from harken.formats import find as find_format
from harken.store.base import Annotation, Commit, Store

from . import summary


class Shown(Commit, frozen=True, kw_only=True):
    """A commit with what was said about it."""

    summary: str
    """The newest that was said about it, else a line derived from its events."""
    derived: bool = False
    """Whether nobody wrote the summary."""
    names: tuple[str, ...] = ()
    """The branches and tags that point at it."""
    annotations: tuple[Annotation, ...] = ()

    @property
    def superseded(self) -> bool:
        """Whether a grown file has put another commit in its place."""
        return any(annotation.key == "superseded_by" for annotation in self.annotations)


def show(store: Store, commits: Iterable[Commit]) -> list[Shown]:
    """The commits with their names and summaries."""
    pointing: dict[str, list[str]] = {}
    for name in store.names():
        pointing.setdefault(name.target, []).append(name.name)
    return [_show(store, commit, pointing.get(commit.id, ())) for commit in commits]


def _show(store: Store, commit: Commit, names: Sequence[str]) -> Shown:
    said = store.annotations(commit.id)
    written = next((note.value for note in reversed(said) if note.key == "summary" and note.value), "")
    fields = {field: getattr(commit, field) for field in Commit.__struct_fields__}
    return Shown(
        **fields,
        summary=written or derive(store, commit),
        derived=not written,
        names=tuple(names),
        annotations=tuple(said),
    )


def derive(store: Store, commit: Commit) -> str:
    """A line about the commit's events; whatever is wrong with its bytes, there is a line."""
    known = find_format(commit.format)
    try:
        if known is None or "read" not in known.can:
            return _sized(store, commit)
        data = store.get(commit.artifact)
    except Evicted:
        return f"{commit.commit_type} in {commit.format}; its bytes have been let go"
    except HarkenError as problem:
        return f"{commit.commit_type} in {commit.format}; unreadable: {problem}"
    return summary.line(known.read(data))


def _sized(store: Store, commit: Commit) -> str:
    """A line about bytes that nobody can read, which are not read for it."""
    info = store.info(commit.artifact)
    if info.evicted:
        raise Evicted(f"the bytes of {commit.short} have been let go")
    return f"{commit.commit_type} in {commit.format}, {info.size} bytes"
