"""What one context knows that another does not: messages, told apart by their ids, or by what they say."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from harken.events import Event, Output
from harken.events.cbor import encode_event
from harken.formats import find as find_format
from harken.formats.base import CONVERSATION
from harken.store.base import Commit, Store, WalkStep

from . import walk


class Diff(msgspec.Struct, frozen=True, kw_only=True):
    """Two contexts side by side."""

    ancestor: Commit | None
    """The newest commit both stand on, or None."""
    here: tuple[Event, ...]
    """What only the first knows."""
    there: tuple[Event, ...]
    """What only the second knows."""
    unread: int = 0
    """Commits that nobody here can read, for their format or what they hold; they are in neither list."""


def diff(store: Store, a: Commit, b: Commit) -> Diff:
    """Compare by the deltas since the common ancestor; compactions between do not matter."""
    chain_a, chain_b = store.walk(a.id), store.walk(b.id)
    shared = {step.id for step in chain_a} & {step.id for step in chain_b}
    only_a, unread_a = _events(store, chain_a, shared)
    only_b, unread_b = _events(store, chain_b, shared)
    # A copied session repeats its original's records in commits of its own, so ids decide and not commits.
    key = _key if a.session_id == b.session_id or _share_names([*chain_a, *chain_b]) else _content_key
    keys_a, keys_b = {key(event) for event in only_a}, {key(event) for event in only_b}
    ancestor = next((step.id for step in chain_a if step.id in shared), "")
    return Diff(
        ancestor=store.get_commit(ancestor) if ancestor else None,
        here=tuple(event for event in only_a if key(event) not in keys_b),
        there=tuple(event for event in only_b if key(event) not in keys_a),
        unread=unread_a + unread_b,
    )


def _events(store: Store, chain: Sequence[WalkStep], shared: set[str]) -> tuple[list[Event], int]:
    deltas = walk.all_deltas(chain)[::-1]
    contents = store.get_many([step.artifact for step in deltas])
    found: list[Event] = []
    at = unread = 0
    for step, data in zip(deltas, contents, strict=True):
        known = find_format(step.format)
        begin, at = at, at + walk.places(known, data)
        if step.id in shared:
            continue
        if known is None or "read" not in known.can:
            unread += 1
            continue
        events = walk.added(known, data, begin)
        said = [event for event in events if isinstance(event, CONVERSATION)]
        unread += not said and any(isinstance(event, Output) and bool(event.why) for event in events)
        found += said
    return found, unread


def _share_names(chain: Sequence[WalkStep]) -> bool:
    """Whether a name may mean the same record in two sessions; otherwise each session has others under it."""
    known = map(find_format, {step.format for step in chain})
    return any(format is not None and format.shared_names is not None for format in known)


def _content_key(event: Event) -> object:
    place = walk.place_in(event.message_id)
    name = event.message_id if place is None else ""
    return encode_event(event.replace(message_id=name, time=None, index=0, cause=None, substance=None))


def _key(event: Event) -> object:
    # Two chains have other records at the same places, and the same one at different places.
    if event.message_id and walk.place_in(event.message_id) is None:
        return event.message_id, event.index, event.kind
    return encode_event(event.replace(message_id="", time=None, index=0, cause=None, substance=None))
