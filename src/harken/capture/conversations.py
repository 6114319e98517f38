"""Which conversation a request goes on with, and what of it is new.

A program's loop sends its whole history each time, and one client may serve several conversations. What was captured
of a conversation is compared with the request, event by event: the conversation that is the longest beginning of the
request is continued. One that shares a beginning and then differs was altered: it is cut back to what they share.
Instructions are not compared: many conversations begin with the same ones, and some programs change them at each turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import orjson

from harken.events import Error, Event, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.events.edits import is_entry, transcript
from harken.formats.session_log import events_of
from harken.formats.session_log.lines import LogLine
from harken.formats.session_log.writing import ENTRIES
from harken.formats.transcript.entry import CONVERSATION
from harken.log import Session
from harken.log.sources import agent_of

REQUEST = "request"
"""The subtype of the notice that a request was about to be sent; a reply names it as its cause."""
Print = int
"""What two events have in common that say the same."""
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
            return hash(("result", event.id, _words(event.output), event.images))
        case System(subtype="instructions"):
            return hash(("system", _words(event.message)))
        case Thinking():
            return None
    return None


def _words(text: str) -> str:
    return _SPACES.sub(" ", text).strip() if len(text) < 10_000 else text.strip()


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

    def __init__(self, agent_id: str, name: str = "") -> None:
        self.agent_id = agent_id
        self.name = name
        self.chain: list[int] = []
        self.entry_at: list[int] = []
        """For each print, the number of the transcript's entry in which it stands."""
        self.entries = 0
        self.instructions: dict[Print, int] = {}
        """The instructions that were given, and the entry in which each stands."""
        self.replies: dict[str, int] = {}
        """By the provider's names of replies: how many prints there were after each."""

    def say(self, records: Iterable[Sequence[Event]]) -> None:
        """Records were added to the transcript."""
        for record in records:
            for event in record:
                if (one := print_of(event)) is None:
                    continue
                if isinstance(event, System):
                    self.instructions[one] = self.entries
                    continue
                self.chain += chain(self.chain[-1] if self.chain else 0, (one,))
                self.entry_at.append(self.entries)
            self.entries += 1

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


class Conversations:
    """The conversations of one session, for whatever clients speak in it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._all: list[CapturedConversation] = []
        self.by_reply: dict[str, CapturedConversation] = {}
        """By the provider's id of a reply or of a conversation."""
        if not session.readonly:
            mark_missing(session)
        for agent_id, info in session.agents.items():
            if info.entries and info.role != "hook":
                self._all.append(self._read(agent_id, info.name))

    @classmethod
    def of(cls, session: Session) -> Conversations:
        """Those of a session, which are the same for every client."""
        with session.lock:
            if not isinstance(known := session.extensions.get("conversations"), cls):
                known = session.extensions["conversations"] = cls(session)
        return known

    def _read(self, agent_id: str, name: str) -> CapturedConversation:
        found = CapturedConversation(agent_id, name)
        names: dict[str, list[str]] = {}
        events: list[Event] = []
        for line in self._session.records_of([agent_id]):
            if line.get("agent_id") == agent_id:
                names.setdefault(str(line.get("message_id")), []).extend(_names(line))
                events += events_of(line)
        for record in transcript(events):
            if head := next(filter(is_entry, record), None):
                found.say([record])
                self.name(found, names.get(head.message_id, ()))
        return found

    def name(self, conversation: CapturedConversation, names: Iterable[str]) -> None:
        """The provider's names for what was said last, or for the whole conversation."""
        for name in filter(None, names):
            conversation.replies[name] = len(conversation.chain)
            self.by_reply[name] = conversation

    def after(self, name: str) -> RequestPlace | None:
        """The conversation in which a reply of this name stands, cut back to it where it went on without it."""
        conversation = self.by_reply.get(name)
        if conversation is None or (length := conversation.replies.get(name)) is None:
            return None
        return RequestPlace(conversation, 0, altered=length < len(conversation.chain), after=length)

    def find(self, prints: Sequence[Print]) -> RequestPlace | None:
        """The conversation that a request goes on with; None where it shares a beginning with none."""
        links = chain(0, prints)
        whole = {conversation.chain[-1]: conversation for conversation in self._all if conversation.chain}
        for length in range(len(links), 0, -1):
            if (found := whole.get(links[length - 1])) is not None:
                return RequestPlace(found, length, altered=False)
        best: RequestPlace | None = None
        for conversation in reversed(self._all):
            shared = _shared(conversation.chain, links)
            if shared > (best.shared if best else 0):
                best = RequestPlace(conversation, shared, altered=True)
        return best

    def named(self, name: str, prints: Sequence[Print], model: str) -> RequestPlace:
        """The conversation of a name, whatever it shares with the request; a new one where there is none."""
        for conversation in self._all:
            if conversation.name == name:
                shared = _shared(conversation.chain, chain(0, prints))
                return RequestPlace(conversation, shared, altered=shared < len(conversation.chain))
        return RequestPlace(self.begin(name, model), 0, altered=False)

    def begin(self, name: str, model: str) -> CapturedConversation:
        """A new conversation: the session's first is its primary one."""
        session = self._session
        first = session.root is None or not any(info.entries for info in session.agents.values())
        if first and not name:
            source = "primary"
        else:
            source = CONVERSATION + (name or self._free_name())
        agent_id = agent_of(session, source, language_model=model or None)
        found = CapturedConversation(agent_id, name)
        self._all.append(found)
        return found

    def _free_name(self) -> str:
        taken = {info.name for info in self._session.agents.values()}
        number = len(self._all) + 1
        while str(number) in taken:
            number += 1
        return str(number)


def _names(line: LogLine) -> Iterator[str]:
    """The names that a provider gave to a reply, or to the conversation in which it stands."""
    given = line.get(ENTRIES)
    about = [one.get("metadata") for one in given if isinstance(one, dict)] if isinstance(given, list) else []
    said = [one.get(key) for one in about if isinstance(one, dict) for key in ("response_id", "thread")]
    yield from (name for name in (line.get("api_id"), *said) if isinstance(name, str))


def _shared(one: Sequence[int], other: Sequence[int]) -> int:
    """How many links two chains begin with together; a link stands for all before it, so halving finds it."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[middle - 1] == other[middle - 1]:
            low = middle
        else:
            high = middle - 1
    return low


def mark_missing(session: Session) -> None:
    """Requests that were sent and never answered, because the program died: say so, once."""
    waiting: dict[str, str] = {}
    for line in session.records() if session.registry.records else ():
        if line.get("event_type") == "system" and line.get("subtype") == REQUEST:
            waiting[str(line.get("message_id"))] = str(line.get("agent_id"))
        elif isinstance(cause := line.get("cause"), str):
            waiting.pop(cause, None)
    for cause, agent_id in waiting.items():
        error = Error(agent_id=agent_id, message="the reply is missing: the program ended before it came", cause=cause)
        session.append([error], beside=[{"metadata": {"kind": "missing"}}])
