"""What agents told each other, as a document lists it: which messages say something that its calls and sub-sessions do
not, and the events of those."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from harken.events import PieceOfText, Prompt
from harken.events.base import is_name
from harken.formats.std.document import Json
from harken.formats.std.hearers import EVERYBODY, Hearers
from harken.formats.std.parts import inner, instant, task_id_of, tells_task, text, values

from .in_order import ToldRecord
from .pieces import MadeUpNames, agent_named, compact, id_of, kind_word, text_of, unread

HEARD = ":heard"
"""Behind the name of what was said: the name of the record in which it is heard."""
_GIVEN = ("task_assignment", "review_request")
_DONE = ("task_completion", "review_result")
_WORDS = ("content", "message", "text", "reason", "summary", "current_step")
_TASK_WORDS = ("task_description", "description")
"""In the task of a payload: what somebody is to do."""


class Messages(msgspec.Struct, frozen=True, kw_only=True):
    """The messages of a document, sorted."""

    told: list[Any]
    """Those that say something new, and what is no message."""
    answers: dict[str, str]
    """Sub-session to the words of its completion, where nothing else tells them."""
    repeats: list[tuple[Json, Json | None]]
    """Every message in order, with the sub-session whose beginning or end it repeats."""


def sort_messages(messages: object, subs: Iterable[Json]) -> Messages:
    """A message that repeats what the call of a sub-session or its output says is left out, once for each; so is a
    completion without words, which the status of the sub-session says."""
    repeats = _Repeats(subs)
    told: list[Any] = []
    answers: dict[str, str] = {}
    sorted_out: list[tuple[Json, Json | None]] = []
    given: list[Any] = messages if isinstance(messages, list) else [] if messages is None else [messages]
    for message in given:
        sub = repeats.take(message) if isinstance(message, dict) else None
        if isinstance(message, dict):
            sorted_out.append((message, sub))
        if sub is None:
            told.append(message)
            continue
        words = _first_words(message) if is_end(message) else ""
        if words and not text(inner(sub, "output"), "summary"):
            answers.setdefault(id_of(sub.get("sub_session_id")), words)
    return Messages(told=told, answers=answers, repeats=sorted_out)


def is_end(message: Json) -> bool:
    """Whether a message says that a task or a review is done."""
    return message.get("message_type") in _DONE


class _Repeats:
    """The beginnings and ends of sub-sessions that no message has repeated yet."""

    def __init__(self, subs: Iterable[Json]) -> None:
        self._open: dict[tuple[str, str], list[Json]] = {}
        self._taken: set[tuple[bool, int]] = set()
        for sub in subs:
            agent = agent_named(sub, "agent")
            for name in {task_id_of(sub), text(inner(sub, "output"), "review_id")} - {""}:
                self._open.setdefault((agent, name), []).append(sub)

    def take(self, message: Json) -> Json | None:
        """The sub-session whose beginning or end the message repeats."""
        kind = message.get("message_type")
        if kind not in _GIVEN and kind not in _DONE:
            return None
        ends = is_end(message)
        agent = agent_named(message, "from_agent" if ends else "to_agent")
        payload = inner(message, "payload")
        names = (text(payload, "review_id"), text(inner(payload, "task"), "task_id"), text(payload, "task_id"))
        for name in filter(None, names):
            for sub in self._open.get((agent, name), ()):
                if (ends, id(sub)) not in self._taken and (ends or tells_task(sub)):
                    self._taken.add((ends, id(sub)))
                    return sub
        return None


def message_records(message: Any, names: MadeUpNames, main: str, all_hearers: Hearers) -> list[ToldRecord]:
    """What a message is: text of one agent that others hear, as far as it names them. It is in the transcript of those
    that hear it: whether the other's model wrote it, or its program did, no document says."""
    name = names.give(id_of(message.get("message_id")) or "message" if isinstance(message, dict) else "message")
    if not isinstance(message, dict):
        return [ToldRecord(events=(unread(message, f"a message is {kind_word(message)}, not an object", name, main),))]
    sender, hearers, missed = agent_named(message, "from_agent"), all_hearers.of(message), all_hearers.too_many(message)
    if not sender and not hearers and not missed:
        return [ToldRecord(events=(unread(message, "a message names neither of its agents", name, main),))]
    words, time = words_of(message), instant(message, "timestamp")
    told = []
    if sender:
        told.append(ToldRecord(events=(PieceOfText(message_id=name, agent_id=sender, time=time, content=words),)))
    if missed:
        told.append(_unheard(message, missed, name, main))
    for hearer in hearers:
        heard = _heard(message, hearer, name, words)
        told.append(ToldRecord(events=(heard.replace(substance=name if sender else None),)))
    return told


def end_records(message: Json, answer: str, words: str, hearers: Iterable[str], names: MadeUpNames) -> list[ToldRecord]:
    """A completion for those whom it alone brings the answer of a sub-session: in the words of the answer, which is a
    record of its own, or in others that come from it. Where there is no answer, it says how the work ended."""
    name = names.give(id_of(message.get("message_id")) or "message")
    said = _first_words(message) or words or words_of(message)
    is_same = said.strip() == words.strip()
    substance, cause = (answer or None, None) if is_same else (None, answer or None)
    events = (_heard(message, hearer, name, said) for hearer in hearers)
    return [ToldRecord(events=(event.replace(substance=substance, cause=cause),)) for event in events]


def unheard_end(message: Json, missed: int, names: MadeUpNames, main: str) -> ToldRecord:
    """A completion that is too much for all that should have heard it."""
    return _unheard(message, missed, names.give(id_of(message.get("message_id")) or "message"), main)


def _heard(message: Json, hearer: str, name: str, words: str) -> Prompt:
    sender, is_one = agent_named(message, "from_agent"), hearer == agent_named(message, "to_agent")
    return Prompt(
        message_id=name + HEARD if is_one else f"{name}{HEARD}:{hearer}",
        agent_id=hearer,
        time=instant(message, "timestamp"),
        content=f"[{sender}]: {words}" if is_name(sender) else words,  # as agents hear each other in a session log
        source="injected",
        origin="agent",
    )


def _unheard(message: Json, missed: int, name: str, main: str) -> ToldRecord:
    why = f"a message to {missed} agents is in the transcript of none of them: that would be too much"
    return ToldRecord(events=(unread(message, why, name + HEARD, main),))


def words_of(message: Json) -> str:
    """What a message says: the words in its payload, or all of the payload where it has none that are known."""
    if words := _first_words(message):
        return words
    kind, payload = text_of(message.get("message_type")), message.get("payload")
    said = "" if payload is None else compact(payload).decode()
    return f"{kind}: {said}" if kind and said else kind or said


def _first_words(message: Json) -> str:
    payload = message.get("payload")
    if isinstance(payload, str):
        return text_of(payload)
    task = inner(inner(message, "payload"), "task")
    given = [inner(message, "payload").get(key) for key in _WORDS] + [message.get("content")]
    given += [task.get(key) for key in _TASK_WORDS] + [inner(message, "payload").get("context")]
    return next((text_of(words) for words in given if isinstance(words, str) and words.strip()), "")


def agents_named(messages: Iterable[Any]) -> list[Json]:
    """The agents that messages name."""
    found: list[Json] = []
    for message in values(list(messages)):
        heard = message.get("to_agent")
        for agent in (message.get("from_agent"), *(heard if isinstance(heard, list) else [heard])):
            if (name := agent_named({"agent": agent}, "agent")) and name not in EVERYBODY:
                found.append({**(agent if isinstance(agent, dict) else {}), "agent_id": name})
    return found
