"""Where a reply belongs when it comes: others may have been sent and answered meanwhile.

A host may ask several times at once, send on what it read of a stream before the stream is closed, or go on with words
of its own. Some SDKs tell of a reply from a thread of their own, when the next request is out already.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from harken.events import Event, Output
from harken.events.prints import CapturedConversation, chain, print_of
from harken.formats.kit.jsonl import parse
from harken.formats.transcript.entry import TranscriptEntry
from harken.formats.transcript.events import EPOCH, draft_of, event_of, plain, plain_json

LATE = "late"
"""The kind of an entry that came when its conversation had gone on without it."""
_FIELDS = ("role", "content", "tool_name", "tool_call_id", "tool_input", "metadata")


class FoundPlace(NamedTuple):
    """What becomes of a reply."""

    stands: bool
    """Whether it is part of the conversation, at its end."""
    is_said: bool = False
    """Whether what was sent since says it already."""
    cut: int | None = None
    """How many entries stay before it: it takes the place of another reply to the same request."""


class PlaceOfReply:
    """Where the reply to a request belongs, kept from when the request is sent."""

    def __init__(self, conversation: CapturedConversation, end: int | None = None) -> None:
        """The request ends so many prints behind the beginning; where nothing is said, at the end of all."""
        self._conversation = conversation
        self.behind = conversation.last_entry
        self._end = len(conversation.chain) if end is None else end
        self._link = conversation.chain[self._end - 1] if self._end else 0

    def find(self, events: Sequence[Event]) -> FoundPlace:
        """Look where the reply stands now, and make room for it in the conversation."""
        conversation, end, cut = self._conversation, self._end, None
        links = conversation.chain
        if len(links) < end or (links[end - 1] if end else 0) != self._link:
            return FoundPlace(stands=False)
        own = chain(self._link, (one for one in map(print_of, events) if one is not None))
        if len(links) > end:
            if conversation.answered != (end, len(links)):
                return FoundPlace(stands=False, is_said=bool(own) and links[end : end + len(own)] == own)
            _, cut = conversation.cut(end)
        elif conversation.answered == (end, end) and conversation.last_entry.number != self.behind.number:
            cut = conversation.cut_behind(self.behind)  # thinking alone, in which nothing is compared
        conversation.answered = (end, end + len(own))
        return FoundPlace(stands=True, cut=cut)


def aside(events: Sequence[Event], beside: list[dict[str, Any]], *, is_said: bool) -> list[Event]:
    """A reply as entries that are no part of the conversation, and what stands beside them; of one that was sent on
    meanwhile only what was not sent (thinking) is an entry."""
    found: list[Event] = []
    for at, event in enumerate(events):
        if (draft := draft_of(event, {})) is None:
            found.append(event)
            continue
        said = {name: value for name in _FIELDS if (value := getattr(draft, name)) is not None}
        found.append(Output(raw=plain_json(said), cause=event.cause, api_id=event.api_id))
        if not (is_said and print_of(event) is not None):
            about = {**said.pop("metadata", {}), "kind": LATE, **beside[at].get("metadata", {})}
            beside[at] = {**plain(said), **beside[at], "metadata": about}
    return found


def told_aside(event: Event) -> list[Event]:
    """What a reply said of which `aside` made an entry."""
    if not isinstance(event, Output) or (said := parse(event.raw)) is None or said.get("role") != "assistant":
        return []
    fields: dict[str, Any] = {name: said.get(name) for name in _FIELDS}
    entry = TranscriptEntry(**fields, created_at=EPOCH)
    return [event_of(entry).replace(api_id=event.api_id, index=event.index)]
