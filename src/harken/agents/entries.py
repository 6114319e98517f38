"""A transcript read as turns: what a model is shown, which calls are open, and where an interrupted turn stands;
and what may be a word in one.

Pure functions over lists of entries (`role`, `content`, `tool_calls`, `tool_call_id`, and the log's `message_id`,
`substance`, `cause`). Entries may come from other programs, so nothing about their shape is taken for granted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from harken.errors import BadRequest
from harken.events.base import is_name
from harken.events.edits import SUMMARY
from harken.log import SeveralMessages, messages_of

from .pictures import of_results

if TYPE_CHECKING:
    from .agent import Agent

Entry = dict[str, Any]


class Asker(NamedTuple):
    """The call that asks for something: its message, and which of the calls of that message, where it has several."""

    message_id: str
    call_id: str = ""


ROLES = ("system", "user", "assistant", "tool")

STOPPED = "stopped"
"""The origin of the message that a person has stopped a turn."""
REMARK = "remark"
"""The origin of what a hook says to the agent it watches."""
SENT_BACK = "sent_back"
"""The origin of a hook's refusal of an utterance, which the agent has to say anew."""
INTERRUPTED = "Error: interrupted before it finished; whether it had any effect is not known."
OF_THE_RECORD = frozenset({"event_type", "agent_id", "timestamp", "index", "api_id"})
"""Keys of a line of the log that are not shown in a transcript."""


def usable(name: str) -> str | None:
    """A name from the log, if it can be one."""
    return name if is_name(name) else None


def check_text(text: object) -> None:
    """What is heard or said is text; `None` in words would be content that nobody meant."""
    if not isinstance(text, str):
        raise BadRequest(f"what an agent hears or says must be text, not {type(text).__name__}", hint="pass a str")


def as_entry(line: Entry) -> Entry:
    """A line of the log as an entry of a transcript: the message, its id and its links."""
    entry = {key: value for key, value in line.items() if key not in OF_THE_RECORD}
    entry["message_id"] = str(entry.get("message_id") or "")
    return SeveralMessages.of(entry, *map(as_entry, line.more)) if isinstance(line, SeveralMessages) else entry


def calls_of(entry: Entry) -> list[Entry]:
    """The tool calls of an entry; one without an id has the empty one."""
    if entry.get("role") != "assistant" or not isinstance(calls := entry.get("tool_calls"), list):
        return []
    return [
        call if isinstance(call.get("id"), str) else {**call, "id": _call_id(call.get("id"))}
        for call in calls
        if isinstance(call, dict)
    ]


def told_apart(calls: Iterable[Entry]) -> list[Entry]:
    """The calls of one message, each with an id of its own: some models give the same one twice, or none."""
    found: dict[str, Entry] = {}
    for call in calls:
        given = _call_id(call.get("id")) or "call"
        numbered = (f"{given}_{number}" for number in count(2))
        name = given if given not in found and call.get("id") else next(one for one in numbered if one not in found)
        found[name] = call if call.get("id") == name else {**call, "id": name}
    return list(found.values())


def _call_id(value: Any) -> str:
    """An id as the log reads it: text, or a whole number as its digits; empty where there is none."""
    return str(value) if isinstance(value, str) or type(value) is int else ""


def call_name(call: Entry) -> str:
    """The tool a call asks for."""
    function = call.get("function")
    return str(function.get("name", "")) if isinstance(function, dict) else ""


def call_arguments(call: Entry) -> str:
    """The arguments of a call, as JSON text; some models give the object itself."""
    function = call.get("function")
    found = function.get("arguments") if isinstance(function, dict) else ""
    return found if isinstance(found, str) else json.dumps(found, default=str) if found else ""


def is_utterance(entry: Entry) -> bool:
    """Whether the agent speaks here, rather than acts."""
    return entry.get("role") == "assistant" and not entry.get("tool_calls")


def results_by_call(entries: Sequence[Entry]) -> dict[tuple[int, str], list[Entry]]:
    """Every result with the call it answers: (place of the assistant's entry, call id) to results.

    A provider may use a call id twice in a conversation; a result belongs to the nearest call before it.
    """
    asked: dict[str, int] = {}
    found: dict[tuple[int, str], list[Entry]] = {}
    for place, entry in enumerate(entries):
        for call in calls_of(entry):
            asked[call["id"]] = place
        for message in messages_of(entry):
            call_id = _call_id(message.get("tool_call_id"))
            if message.get("role") == "tool" and call_id in asked:
                found.setdefault((asked[call_id], call_id), []).append(message)
    return found


def _shares(calls: Sequence[Entry], results: dict[tuple[int, str], list[Entry]], place: int) -> list[list[Entry]]:
    """The results of each call of one message. Calls that share an id are answered in their order, and what is left
    over belongs to the last of them."""
    shares: list[list[Entry]] = []
    for number, call in enumerate(calls):
        same = [other["id"] == call["id"] for other in calls]
        answers = results.get((place, call["id"]), [])
        earlier, is_last = sum(same[:number]), not any(same[number + 1 :])
        shares.append(answers[earlier:] if is_last else answers[earlier : earlier + 1])
    return shares


def for_model(entries: Sequence[Entry], *, unanswered: str | None = INTERRUPTED) -> list[Entry]:
    """The transcript as a provider takes it.

    Results stand right behind their call, several for one call become one, a call without a result gets one that
    says so (`unanswered`), and a result without a call is left out: a log may hold all of these, providers refuse each.
    """
    results = results_by_call(entries)
    shown: list[Entry] = []
    for place, entry in ((place, message) for place, one in enumerate(entries) for message in messages_of(one)):
        role, content = entry.get("role"), entry.get("content")
        calls = calls_of(entry)
        if role in ("system", "user") or (role == "assistant" and not calls):
            shown.append({"role": role, "content": _text(content)})
        elif role == "assistant":
            named = told_apart(calls)
            shown.append({"role": role, "content": _text(content) or None, "tool_calls": [_call(c) for c in named]})
            for call, share in zip(named, _shares(calls, results, place), strict=True):
                answers = [_text(found.get("content")) for found in share]
                answer = "\n\n".join(answers) if answers else unanswered
                shown.append({"role": "tool", "tool_call_id": call["id"], "name": call_name(call), "content": answer})
                if any("images" in found for found in share):
                    shown[-1]["images"] = of_results(share)
    return shown


def open_calls(entries: Sequence[Entry]) -> tuple[Entry, list[Entry]] | None:
    """The agent's last message and those of its calls nobody has answered, where there are any."""
    for place in range(len(entries) - 1, -1, -1):
        if entries[place].get("role") == "assistant":
            tail = entries[place:]
            calls = calls_of(tail[0])
            shares = _shares(calls, results_by_call(tail), 0)
            unanswered = [call for call, share in zip(calls, shares, strict=True) if not share]
            return (tail[0], unanswered) if unanswered else None
    return None


def last_spoken(entries: Sequence[Entry]) -> Entry | None:
    """The agent's utterance, where nothing but a hook's remark has come behind it."""
    for entry in reversed(entries):
        if entry.get("origin") != REMARK:
            return entry if is_utterance(entry) else None
    return None


def answer_to(entries: Sequence[Entry], message_id: str) -> Entry | None:
    """What the agent said first behind a message, if it has said anything."""
    places = (place for place, entry in enumerate(entries) if entry.get("message_id") == message_id)
    return next((entry for entry in entries[next(places, len(entries)) :] if is_utterance(entry)), None)


def asker(entries: Sequence[Entry]) -> Asker | None:
    """The call that asked for the turn that is not over yet; None where no call did."""
    sent_back = False
    for entry in reversed(entries):
        sent_back = sent_back or entry.get("origin") == SENT_BACK
        if entry.get("role") == "assistant":
            return asked_for(entry) if sent_back or not is_utterance(entry) else None
    return None


def asked_for(entry: Entry) -> Asker | None:
    """The call that asked for what an agent said or did here, as far as the log says."""
    causes = causes_of(entry)
    return Asker(causes[0], call_of(entry)) if causes else None


def unheeded(entries: Sequence[Entry]) -> list[Entry]:
    """What the agent has been told since it last said or did something."""
    told: list[Entry] = []
    for entry in reversed(entries):
        if entry.get("role") == "assistant" or entry.get("origin") == SUMMARY:
            break
        told += [message for message in reversed(messages_of(entry)) if message.get("role") == "user"]
    return told[::-1]


def times_sent_back(entries: Sequence[Entry], *, by_hook: bool = True) -> int:
    """How often the agent's answer to what it was last told has been sent back, by a hook or else for its form."""
    count = 0
    for entry in reversed(entries):
        if entry.get("origin") == SENT_BACK:
            count += ("hook" in entry) == by_hook
        elif entry.get("role") == "user" and entry.get("origin") != REMARK:
            break
    return count


def is_pending(entries: Sequence[Entry]) -> bool:
    """Whether a turn was begun and not ended: told but not answered, or in the middle of acting."""
    for entry in reversed(entries):
        if entry.get("origin") == REMARK:
            continue
        if entry.get("origin") in (STOPPED, SUMMARY):
            return entry.get("origin") == SUMMARY and bool(entry.get("cause"))  # folded within a turn
        if entry.get("role") == "user" and entry.get("substance") is not None and entry.get("origin") != SENT_BACK:
            continue  # heard from another agent: whoever wants an answer asks for it
        if entry.get("role") in ("user", "tool") or calls_of(entry):
            return True
        if entry.get("role") == "assistant":
            return False
    return False


def turn_groups(entries: Sequence[Entry]) -> list[tuple[int, int]]:
    """The transcript cut into whole turns (start, end), each from what the agent was told to its last word on it.

    Instructions at the head belong to no turn. A cut never falls between a call and its result.
    """
    starts: list[int] = []
    open_ids: set[str] = set()
    previous = ""
    for place, entry in enumerate(entries):
        role = entry.get("role")
        if role == "user" and previous != "user" and not open_ids:
            starts.append(place)
        open_ids |= {call["id"] for call in calls_of(entry)}
        for message in messages_of(entry):
            role = message.get("role")
            if role == "tool":
                open_ids.discard(str(message.get("tool_call_id")))
        if role != "system":
            previous = str(role)
    return list(zip(starts, [*starts, len(entries)][1:], strict=True))


def steps(entries: Sequence[Entry]) -> list[int]:
    """The places where what came before is finished: no call before it is answered behind it, or is still open."""
    results = results_by_call(entries)
    places = {id(message): place for place, entry in enumerate(entries) for message in messages_of(entry)}
    until = 0
    found: list[int] = []
    for place, entry in enumerate(entries):
        if place >= until:
            found.append(place)
        if calls := calls_of(entry):
            for share in _shares(calls, results, place):
                until = max(until, *(places[id(one)] + 1 for one in share)) if share else len(entries) + 1
    return [*found, len(entries)] if len(entries) >= until else found


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return "" if content is None else str(content)


def _call(call: Entry) -> Entry:
    function = {"name": call_name(call), "arguments": call_arguments(call)}
    return {"id": call["id"], "type": "function", "function": function}


_NO_EFFECT = frozenset({"metric", "error", "system"})
"""What a message cost, what failed before it, and notices: no effect of its calls."""


class Window:
    """What the log holds since a tool call began, in its order: the memory of a tool that a crash has stopped.

    Calls of one message run side by side, so what each has brought about says by its `call_id` whose it is; what others
    asked for meanwhile stands in between. Older logs do not say: there calls ran one after the other, so it is what
    stands behind the last result. `task` and `discuss` look up each of their steps here before they take it; for a call
    that has only just begun the window is empty and nothing is read.
    """

    def __init__(self, events: Iterable[Entry] = (), call_id: str = "") -> None:
        self.events = list(events)
        self.call_id = call_id
        """Which of several calls of a message it belongs to."""
        self._own: dict[tuple[str, str], list[tuple[int, Entry]]] = {}
        for place, event in enumerate(self.events):
            self._own.setdefault((str(event.get("event_type")), str(event.get("agent_id"))), []).append((place, event))
        entries = (event for event in self.events if event.get("event_type") == "transcript_entry")
        self._heard = {(str(event.get("agent_id")), str(event.get("substance") or "")) for event in entries}

    @classmethod
    def since(cls, events: Iterable[Entry], agent_id: str, asker: Asker) -> Window:
        """The window of an open call of an agent's message."""
        message_id, call_id = asker
        kept: list[Entry] = []
        begun = False
        for event in events:
            mine = event.get("agent_id") == agent_id
            if mine and event.get("message_id") == message_id:
                begun = True
                kept = []
            elif mine and event.get("role") == "tool":
                kept = [one for one in kept if call_of(one) or message_id not in causes_of(one)]
            elif begun and not (message_id in causes_of(event) and call_id and call_of(event) not in ("", call_id)):
                kept.append(event)
        return cls(kept, call_id)

    def piece(self, agent_id: str, content: str, cause: str) -> str | None:
        """The piece of text an agent made in this call, if it did."""
        for event in self._of("piece_of_text", agent_id):
            if event.get("content") == content and cause in causes_of(event):
                return str(event["message_id"])
        return None

    def created(self, name: str, cause: str) -> str | None:
        """The agent of this name that the call made, if it did."""
        for event in self.events:
            if event.get("event_type") == "agent_created" and event.get("name") == name and cause in causes_of(event):
                return str(event["agent_id"])
        return None

    def has_heard(self, agent_id: str, substance: str) -> bool:
        """Whether an agent has this content before it."""
        return (agent_id, substance) in self._heard

    def is_asked(self, agent_id: str, prompt: str, asked_by: str) -> bool:
        """Whether an agent has heard the prompt of this call, and has not answered somebody else behind it."""
        asked = False
        for event in self._of("transcript_entry", agent_id):
            if event.get("substance") == prompt:
                asked = True
            elif asked and is_utterance(event):
                if asked_by in causes_of(event):
                    return True
                asked = False
        return asked

    def began(self, message_id: str) -> bool:
        """Whether the call had any effect yet: if so it had been approved."""
        effects = (event for event in self.events if event.get("event_type") not in _NO_EFFECT)
        caused = (event for event in effects if message_id in causes_of(event) and event.get("role") != "user")
        return any(call_of(event) == self.call_id for event in caused)

    def utterance(self, agent: Agent, after: int, asked_by: str) -> tuple[int, Entry] | None:
        """What an agent said for this call behind a place in the window, and where; one that was sent back does not
        count.

        The last word of an agent may still be under review, which is for the agent to say.
        """
        own = [one for one in self._own.get(("transcript_entry", agent.agent_id), ()) if one[0] >= after]
        for number, (place, event) in enumerate(own):
            behind = (later.get("origin") for _, later in own[number + 1 :])
            mine = is_utterance(event) and asked_by in causes_of(event)
            if mine and next((origin for origin in behind if origin != REMARK), None) != SENT_BACK:
                return place, event
        return None

    def _of(self, event_type: str, agent_id: str) -> Iterator[Entry]:
        return (event for _, event in self._own.get((event_type, agent_id), ()))


def call_of(event: Entry) -> str:
    """Which of several calls of a message has brought an event about, where it says so."""
    attributes = event.get("attributes")
    found = event.get("call_id") or (attributes.get("call_id") if isinstance(attributes, dict) else None)
    return found if isinstance(found, str) else ""


def causes_of(event: Entry) -> list[str]:
    """What brought an entry about, as far as the log says."""
    cause = event.get("cause")
    if isinstance(cause, str):
        return [cause]
    return [one for one in cause if isinstance(one, str)] if isinstance(cause, list) else []
