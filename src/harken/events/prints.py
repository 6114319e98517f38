"""Which conversation a request goes on with, and what of it is new.

A program's loop sends its whole history each time, and one client may serve several conversations. What was captured
of a conversation is compared with the request, event by event: the conversation that is the longest beginning of the
request is continued. One that shares a beginning and then differs was altered: it is cut back to what they share.
Instructions are not compared: many conversations begin with the same ones, and some programs change them at each turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import orjson

from .base import Event
from .edits import INSTRUCTIONS, is_entry
from .messages import Prompt, Response, System
from .tools import ToolCall, ToolResult

Print = int
"""What two events have in common that say the same."""
COMPACT_SUMMARY = "compact_summary"
"""The subtype of the `system` event that is a provider's summary of what was said before."""
_SPACES = re.compile(r"\s+")


def print_of(event: Event) -> Print | None:
    """What of an event is compared; None for what a program may leave out when it sends a history again."""
    match event:
        case Prompt():
            return hash(("user", _words(event.content), event.images))
        case Response():
            return hash(("assistant", _words(event.content))) if event.content.strip() else None
        case ToolCall():
            return hash(("call", event.id, event.name, _arguments(event.input)))
        case ToolResult():
            return hash(("result", event.id, _result(event.output), event.images))
        case System(subtype="instructions"):
            return hash(("system", _words(event.message)))
        case System(subtype="compact_summary") if event.message:
            return hash(("user", _words(event.message), ()))  # in a transcript a prompt stands for what was folded
        case System(subtype="compact_summary"):
            return hash(("compaction", _sealed(event.metadata)))
    return None


def is_instructions(event: Event) -> bool:
    """Whether the event is instructions, which are not compared."""
    return isinstance(event, System) and event.subtype == INSTRUCTIONS


def _sealed(text: bytes) -> str:
    """What only the provider can read of a summary."""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return ""
    return str(found.get("encrypted_content") or "") if isinstance(found, dict) else ""


def _words(text: str) -> str:
    return _SPACES.sub(" ", text).strip() if len(text) < 10_000 else text.strip()


def _result(text: str) -> str:
    """What a tool answered; where it is JSON, however it is spaced and ordered, since SDKs send their own objects."""
    if not text.startswith("{"):
        return _words(text)
    return "\n".join(_arguments(line.encode()).decode() for line in text.split("\n"))


def _arguments(text: bytes) -> bytes:
    """Arguments however they are spaced and ordered."""
    try:
        return orjson.dumps(orjson.loads(text or b"{}"), option=orjson.OPT_SORT_KEYS)
    except (orjson.JSONDecodeError, TypeError, RecursionError):
        return text


def chain(before: int, prints: Iterable[Print]) -> list[int]:
    """For each print, what stands for it and everything before it."""
    found = []
    for one in prints:
        before = hash((before, one))
        found.append(before)
    return found


class RequestPlace(NamedTuple):
    """Where a request belongs."""

    conversation: CapturedConversation
    shared: int
    """How many prints of the request the conversation has already."""
    altered: bool
    """Whether the conversation has more than that, and so must be cut back."""
    after: int | None = None
    """Where the request names the reply it follows: how many prints of the conversation come before it."""


class CapturedConversation:
    """What is known of one conversation: its agent, and a print for each thing said in it."""

    def __init__(self, agent_id: str, name: str = "", beginnings: ByBeginning | None = None) -> None:
        self.agent_id = agent_id
        self.name = name
        self._beginnings = {} if beginnings is None else beginnings
        self.chain: list[int] = []
        self.entry_at: list[int] = []
        """For each print, the number of the transcript's entry in which it stands."""
        self.entries = 0
        self.instructions: dict[Print, int] = {}
        """The instructions that were given, and the entry in which each stands."""
        self.compactions: set[Print] = set()
        self.replies: dict[str, int] = {}
        """By the provider's names of replies: how many prints there were after each."""
        self.answered = (0, 0)
        """The place of the last captured reply among the prints."""

    def say(self, records: Iterable[Sequence[Event]]) -> None:
        """Records were added to the transcript."""
        for record in records:
            for event in record:
                if (one := print_of(event)) is None:
                    continue
                if is_instructions(event):
                    self.instructions[one] = self.entries
                    continue
                if isinstance(event, System):
                    self.compactions.add(one)
                self.chain += chain(self.chain[-1] if self.chain else 0, (one,))
                self.entry_at.append(self.entries)
                if len(self.chain) == 1 and self not in (alike := self._beginnings.setdefault(self.chain[0], [])):
                    alike.append(self)
            self.entries += any(map(is_entry, record))

    def fold(self) -> tuple[int, int]:
        """Everything behind the first instructions is about to become one entry; gives which entries these are."""
        entries = self.entries
        _, start = self.cut(0)
        return start, entries

    def forget(self) -> None:
        """Nothing of it is known any more: it is read anew."""
        self.cut(0)
        self.entries, self.instructions, self.compactions = 0, {}, set()

    def cut(self, shared: int) -> tuple[int, int]:
        """Keep so many prints, or fewer where that would split an entry; gives how many, and how many entries stay."""
        at = self.entry_at
        while 0 < shared < len(at) and at[shared - 1] == at[shared]:
            shared -= 1
        keep = at[shared] if shared < len(at) else self.entries
        del self.chain[shared:], at[shared:]
        self.instructions = {one: entry for one, entry in self.instructions.items() if entry < keep}
        self.replies = {name: length for name, length in self.replies.items() if length <= shared}
        self.entries = keep
        return shared, keep


ByBeginning = dict[int, list[CapturedConversation]]
"""Conversations by their first link, also those that were cut back since and begin in another way."""


def find_conversation(
    known: Sequence[CapturedConversation], prints: Sequence[Print], beginnings: ByBeginning | None = None
) -> RequestPlace | None:
    """The conversation that a request goes on with; None where it shares a beginning with none."""
    links = chain(0, prints)
    alike = known if beginnings is None else beginnings.get(links[0], ()) if links else ()
    whole = {conversation.chain[-1]: conversation for conversation in alike if conversation.chain}
    for length in range(len(links), 0, -1):
        if (found := whole.get(links[length - 1])) is not None:
            return RequestPlace(found, length, altered=False)
    best: RequestPlace | None = None
    for conversation in reversed(alike):
        shared = shared_links(conversation.chain, links)
        if shared > (best.shared if best else 0):
            best = RequestPlace(conversation, shared, altered=True)
    return best or _compacted(known, prints)


def _compacted(known: Sequence[CapturedConversation], prints: Sequence[Print]) -> RequestPlace | None:
    """The conversation whose summary a request has in place of all that was said before."""
    found = (one for one in reversed(known) if one.compactions and not one.compactions.isdisjoint(prints))
    return next((RequestPlace(one, 0, altered=True) for one in found), None)


def shared_links(one: Sequence[int], other: Sequence[int]) -> int:
    """How many links two chains begin with together; a link stands for all before it, so halving finds it."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[middle - 1] == other[middle - 1]:
            low = middle
        else:
            high = middle - 1
    return low
