"""Where in a chain a message stands: by the name of its record, or by its place."""

from __future__ import annotations

from harken.formats import find as find_format
from harken.store.base import Store, WalkStep

from . import walk


def message_commit(store: Store, tip: str, message: str) -> WalkStep | None:
    """The commit of the chain whose delta holds the message."""
    place = walk.place_in(message)
    if place is not None and (at := _at_place(store, tip, place)):
        link, begin, data = at
        if message in _names(link.format, data, begin) or _has_unnamed(link.format, data, place - begin):
            return link
    deltas = walk.all_deltas(store.walk(tip))[::-1]
    # A name may be spelled with escapes, which is rare: such deltas are looked at when no other has it.
    for needle in (message.encode("utf-8", "replace"), b"\\u"):
        contents = store.get_many([link.artifact for link in deltas])
        for link, data in zip(deltas, contents, strict=True):
            if may_hold(link.format, data, needle) and _holds(link.format, data, message, as_stored=place is not None):
                return link
    return None


def may_hold(format: str, data: bytes, needle: bytes) -> bool:
    """Whether the delta has to be read to know; one that is no file of its format may spell names in any way."""
    return needle in data or ((known := find_format(format)) is not None and known.delta_reader is not None)


def _at_place(store: Store, tip: str, place: int) -> tuple[WalkStep, int, bytes] | None:
    """The delta that the place lies in, where it begins, and its bytes."""
    deltas = walk.all_deltas(store.walk(tip))[::-1]
    begin = 0
    for link, data in zip(deltas, store.get_many([link.artifact for link in deltas]), strict=True):
        end = begin + walk.places(find_format(link.format), data)
        if place < end:
            return link, begin, data
        begin = end
    return None


def _names(format: str, data: bytes, begin: int) -> list[str]:
    """What the records of a delta are called, each after its place if it has no name; of one that nobody can read, the
    place where it begins."""
    known = find_format(format)
    if known is None or "read" not in known.can:
        return [f"@{begin}"]
    return [event.message_id for event in walk.added(known, data, begin)]


def _has_unnamed(format: str, data: bytes, offset: int) -> bool:
    """Whether a line begins there whose record has no name; the reader of a session log leaves it without one."""
    known = find_format(format)
    if known is None or known.places is not len or known.names_stored or (offset and data[offset - 1] != 0x0A):
        return False
    first = next(iter(known.read(data[offset : data.find(b"\n", offset) + 1 or None])), None)
    return first is not None and not first.message_id


def nearest(store: Store, tip: str, place: int) -> str | None:
    """The last record called after its place that begins before this one, in the delta that the place lies in."""
    if (at := _at_place(store, tip, place)) is None:
        return None
    link, begin, data = at
    known = ((walk.place_in(name), name) for name in _names(link.format, data, begin))
    return max(((there, name) for there, name in known if there is not None and there < place), default=(0, None))[1]


def _holds(format: str, data: bytes, message: str, *, as_stored: bool) -> bool:
    """Whether a record of the delta has this name; `as_stored` passes over names that its reader made of places."""
    known = find_format(format)
    if known is None or "read" not in known.can:
        return not as_stored
    if as_stored and not known.names_stored:
        return False
    return any(event.message_id == message or event.api_id == message for event in known.read_delta(data))
