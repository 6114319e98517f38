"""Mending messages: their places, and the tasks that they give or end, tell what they lack."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from itertools import pairwise
from typing import Any

from harken.formats.std.as_meant import known_type
from harken.formats.std.checking.schema import shown
from harken.formats.std.document import Json
from harken.formats.std.findings import OLD
from harken.formats.std.hearers import Hearers, agent_named
from harken.formats.std.parts import agents, inner, instant, text, values

from .mend_agents import agent
from .mend_sub_sessions import ids_among, trigger_of
from .mending import Mender, Mending, Spot, path_steps


def split_messages(doc: Mending, *, everybody: bool = False) -> bool:
    """A message to several agents becomes one to each, since the standard has one hearer; whether there were any. The
    first keeps its id, and a reply to it goes to the one that its sender heard. Who `everybody` is can be told when the
    agents are what they should be."""
    messages = doc.data.get("messages")
    if not doc.derives or not isinstance(messages, list):
        return False
    doc.start_round()
    hearers = Hearers(list(agents(doc.data)), messages)
    made: list[Any] = []
    moved: dict[int, int] = {}
    replies: dict[tuple[str, str], str] = {}
    told: list[tuple[int, list[str]]] = []
    for place, one in enumerate(messages):
        moved[place] = len(made)
        each = [one]
        if isinstance(one, dict):
            if everybody or isinstance(one.get("to_agent"), list):
                each = _one_to_each(doc, one, hearers)
            _count_on(each, len(made) - place, replies)
        if each[0] is not one:
            told.append((len(made), [text(copy, "message_id") for copy in each]))
            heard = [(text(one, "message_id"), agent_named(copy, "to_agent")) for copy in each]
            replies |= dict(zip(heard, told[-1][1], strict=True))
        made += each
    if not told:
        return False
    doc.move("messages", moved)
    doc.data["messages"] = made
    for place, ids in told:
        names, more = ", ".join(map(shown, ids[:9])), " …" if len(ids) > 9 else ""
        said = f"a message has one hearer: it stands here once for each of {len(ids)} ({names}{more})"
        doc.tell("wrong-type", f"messages[{place}].to_agent", said, derived=True)
    return True


def _one_to_each(doc: Mending, message: Json, hearers: Hearers) -> list[Json]:
    """Copies of a message, one for each of its hearers; the message itself where it has no more than one, or gives a
    task: that is one agent's, and nobody says whose."""
    named, heard = message.get("to_agent"), hearers.of(message)
    is_task = len(heard) > 1 and message.get("message_type") in _GIVEN
    if not heard or is_task or heard == [agent_named(message, "to_agent")]:
        return [message]
    given = {agent_named({"to": one}, "to"): one for one in named} if isinstance(named, list) else {}
    name, copies = text(message, "message_id"), list[Json]()
    for place, hearer in enumerate(heard):
        copied = {**(deepcopy(message) if place else message), "to_agent": given.get(hearer, hearer)}
        if place and name:
            copied["message_id"] = doc.free_id(
                "message", lambda number: f"{name}-{number + 1}", partial(_message_ids, doc)
            )
        copies.append(copied)
    copies[0][OLD + "to_agent"] = named
    return copies


def _message_ids(doc: Mending) -> list[str]:
    return [text(one, "message_id") for one in values(doc.data.get("messages"))]


def _count_on(each: list[Json], added: int, replies: dict[tuple[str, str], str]) -> None:
    """Messages behind copies that were added: their numbers go on from these, and what they reply to is the copy that
    their sender heard."""
    for place, message in enumerate(each):
        if type(sequence := message.get("sequence_number")) is int and (added or place):
            message["sequence_number"] = sequence + added + place
        if (copy := replies.get((text(message, "reply_to"), agent_named(message, "from_agent")))) is not None:
            message["reply_to"] = copy


def message_id(spot: Spot) -> bool:
    if spot.value is not None or spot.take(("id",), str):
        return isinstance(spot.value, str)
    if name := spot.doc.once("missing message", lambda: _missing_message(spot.doc.data)):
        return spot.put(name, "the only id that a reply names and no message has", derived=True)
    name = spot.doc.free_id("message", "msg-{:03}".format, lambda: ids_among(spot, "messages", "message_id"))
    return spot.put(name, "made from its place", derived=True)


def _missing_message(data: Json) -> str:
    """The id of the only message without one, where replies name one that is not there; else empty."""
    messages = values(data.get("messages"))
    ids = [text(one, "message_id") for one in messages]
    named = {text(one, "reply_to") for one in messages} - {*ids, ""}
    place = ids.index("") if ids.count("") == 1 else len(ids)
    is_answered = any(text(one, "reply_to") in named for one in messages[place + 1 :])
    return named.pop() if len(named) == 1 and is_answered else ""


def reply(spot: Spot) -> bool:
    """A reply to a message that is not there; which one it was is kept beside."""
    return spot.set_aside("which is no other message")


def sequence(spot: Spot) -> bool:
    """A number where none of the messages has one: its place."""

    def is_counted() -> bool:
        known = [one.get("sequence_number") for one in values(spot.doc.data.get("messages"))]
        return all(one is None or one == at for at, one in enumerate(known, 1))

    if spot.value is not None or not spot.doc.once("is counted", is_counted):
        return False
    return spot.put(int(path_steps(spot.path)[1]) + 1, "its place among the messages", derived=True)


def in_order(spot: Spot) -> bool:
    """Numbers that do not increase, of messages whose times tell their order: the list is put in the order of the
    numbers, where the times agree with that; else its places are the numbers, where they agree with these."""
    return spot.doc.once("order of messages", lambda: _put_in_order(spot.doc))


def _put_in_order(doc: Mending) -> bool:
    messages = doc.data["messages"]
    told = [one.get("sequence_number") for one in messages if isinstance(one, dict)]
    numbers = [number for number in told if isinstance(number, int)]
    times = [instant(one, "timestamp") for one in messages]
    if len(numbers) != len(messages) or None in times:
        return False
    places = sorted(range(len(messages)), key=numbers.__getitem__)
    if len(set(numbers)) == len(numbers) and _rise([times[place] for place in places]):
        doc.move("messages", {place: at for at, place in enumerate(places)})
        messages[:] = [messages[place] for place in places]
        doc.tell("sequence", "messages", "the messages stand in the order of their numbers now, as their times do")
        return True
    if not _rise(times):
        return False
    why = "its place among the messages, which stand in the order of their times"
    for at, one in enumerate(messages):
        if one["sequence_number"] != at + 1:
            path = f"messages[{at}].sequence_number"
            Spot(doc=doc, rule="sequence", path=path, holder=one, key="sequence_number").put(at + 1, why, derived=True)
    return True


def _rise(times: list[Any]) -> bool:
    return all(one <= following for one, following in pairwise(times))


def timestamp(spot: Spot) -> bool:
    """When its task began or ended, as far as that fits between the messages beside it; else not earlier than the one
    before, or not later than the one behind. Where none of them has a time, nobody knows it."""
    if spot.value is not None:
        return False
    if spot.take_time(("time", "created_at", "sent_at", "date", "datetime")):
        return True
    messages, place = spot.doc.data["messages"], int(path_steps(spot.path)[1])
    before = messages[place - 1] if place and instant(messages[place - 1], "timestamp") is not None else {}
    behind: Json = next((one for one in messages[place + 1 :][:_NEAR] if instant(one, "timestamp") is not None), {})
    for holder, key, why in (
        (*_moment_of_task(spot), "when its task began or ended"),
        (before, "timestamp", "nobody knows; not earlier than the message before"),
        (behind, "timestamp", "nobody knows; not later than the message behind"),
    ):
        when, first, last = instant(holder, key), instant(before, "timestamp"), instant(behind, "timestamp")
        if when is not None and (first is None or first <= when) and (last is None or when <= last):
            return spot.put(holder[key], why, derived=True)
    return False


_NEAR = 1000
"""How many messages are looked through for the next that has a time."""
_BEGINS = ("task_assignment", "review_request", "acknowledgment")
_ENDS = ("task_completion", "review_result")
_GIVEN = ("task_assignment", "review_request")


def _moment_of_task(spot: Spot) -> tuple[Json, str]:
    """The sub-session of the task that a message gives or ends, and which of its times is meant."""
    kind, payload = text(spot.holder, "message_type"), inner(spot.holder, "payload")
    key = "started_at" if kind in _BEGINS else "completed_at" if kind in _ENDS else ""
    name = text(inner(payload, "task"), "task_id") or text(payload, "task_id") or text(spot.holder, "correlation_id")
    by_task, by_agent = spot.doc.once("subs of messages", lambda: _subs_of_messages(spot.doc.data))
    worker = text(inner(spot.holder, "to_agent" if kind in _GIVEN else "from_agent"), "agent_id")
    found = by_task.get(name) if name else None
    if found is None and len(by_agent.get(worker, [])) == 1:  # all that it ever did
        found = by_agent[worker][0]
    if found is None or not key:
        return {}, key
    if key == "completed_at" and instant(found, key) is None:
        return trigger_of(spot, found), "ended_at"
    return found, key


def _subs_of_messages(data: Json) -> tuple[dict[str, Json], dict[str, list[Json]]]:
    """The sub-sessions by their tasks, and by the agents whose they are."""
    subs, by_agent = values(data.get("sub_sessions")), dict[str, list[Json]]()
    for sub in subs:
        by_agent.setdefault(text(inner(sub, "agent"), "agent_id"), []).append(sub)
    return {text(inner(sub, "task"), "task_id"): sub for sub in subs}, by_agent


def message_type(spot: Spot) -> bool:
    if spot.value is None:
        return spot.take(("type",), str)
    word = known_type(spot.value)
    return word is not None and spot.put(word, "the word that the standard has for it")


def payload(spot: Spot) -> bool:
    for name in ("content", "body", "message", "data", "text"):
        if (found := spot.holder.get(name)) is not None:
            return spot.put(found if isinstance(found, dict) else {"content": found}, f"as `{name}` says")
    return spot.put({}, "the message carries nothing", derived=True)


MESSAGE: dict[str, Mender] = {
    "message_id": message_id,
    "sequence_number": sequence,
    "timestamp": timestamp,
    "from_agent": agent,
    "to_agent": agent,
    "message_type": message_type,
    "payload": payload,
}
BY_RULE: dict[str, Mender] = {"sequence": in_order, "reply": reply}
