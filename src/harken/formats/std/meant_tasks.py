"""Sub-sessions that do not name their task: the one that a message gives their agent is meant, where only one can be,
as a repair has it. Under an id of its own, what messages say of the task would be about another, or about none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TypeVar

from .document import Json
from .parts import agent_at, inner, instant, over, task_id_of, tells_task, text, values

T = TypeVar("T")


def words_beside(sub: Json) -> str:
    """The words of a task that stand in its sub-session, where the standard has them in `task`."""
    return text(sub, "task_description") or text(sub, "description")


def with_meant_tasks(data: Json) -> Json:
    """The document, those sub-sessions with the ids of their tasks; itself where messages name none."""
    if not (meant := meant_tasks(data)):
        return data
    subs = [_with_task(sub, meant[place]) if place in meant else sub for place, sub in enumerate(data["sub_sessions"])]
    return {**data, "sub_sessions": subs}


def meant_tasks(data: Json) -> dict[int, str]:
    """The place of a sub-session that does not name its task to the id that messages give it."""
    listed = data.get("sub_sessions")
    subs = {place: sub for place, sub in enumerate(listed if isinstance(listed, list) else []) if isinstance(sub, dict)}
    open_subs = {place: sub for place, sub in subs.items() if not task_id_of(sub)}
    if not open_subs:
        return {}
    named = Counter(name for sub in subs.values() for name in {task_id_of(sub), _review_id(sub)} - {""})
    given = {name: one for name, one in _given(data) if name not in named}
    found = {place: name for place, sub in open_subs.items() if named[name := _review_id(sub)] == 1}
    for key_of_sub, key_of_task in ((_words_for, _words_given), (_doer, _doer_given)):
        taken = set(found.values())
        names = _by_key({name: key_of_task(one) for name, one in given.items() if name not in taken})
        places = _by_key({place: key_of_sub(sub) for place, sub in open_subs.items() if place not in found})
        for key, own in names.items():
            pairs = list(zip(alike := places.get(key, []), own, strict=False))
            if len(alike) == len(own) and _fit([(open_subs[place], given[name]) for place, name in pairs]):
                found |= pairs
    return found


def told_tasks(data: Json) -> set[str]:
    """The ids of all tasks and reviews that messages are about."""
    found = {text(message, "correlation_id") for message in values(data.get("messages"))}
    for message in values(data.get("messages")):
        payload = inner(message, "payload")
        found |= {text(payload, key) for key in ("task_id", "review_id", "related_task_id", "target_id")}
        found.add(text(inner(payload, "task"), "task_id"))
    return found - {""}


def _with_task(sub: Json, name: str) -> Json:
    task = sub.get("task")
    said = task if isinstance(task, dict) else {"description": task} if tells_task(sub) else {}
    return {**sub, "task": {**said, "task_id": name}} if said or task is None else sub


def _given(data: Json) -> Iterator[tuple[str, Json]]:
    """The id of every task and review that one agent is given, once, with the message."""
    found: list[tuple[str, Json]] = []
    for message in values(data.get("messages")):
        payload = inner(message, "payload")
        match message.get("message_type"):
            case "task_assignment":
                name = text(inner(payload, "task"), "task_id") or text(payload, "task_id")
            case "review_request":
                name = text(payload, "review_id")
            case _:
                continue
        if name:
            found.append((name, message))
    times = Counter(name for name, _ in found)
    return ((name, message) for name, message in found if times[name] == 1)


def _by_key(keys: dict[T, str]) -> dict[str, list[T]]:
    """Everything by its key; what has none is left out."""
    found: dict[str, list[T]] = {}
    for one, key in keys.items():
        if key:
            found.setdefault(key, []).append(one)
    return found


def _fit(pairs: list[tuple[Json, Json]]) -> bool:
    """Whether sub-sessions may be what these messages began: each agent did one thing after the other, as it was told.
    Who is not named, may be anybody, and what has no time may have been whenever."""
    done = None
    for sub, message in pairs:
        began, ended, sent = instant(sub, "started_at"), over(sub), instant(message, "timestamp")
        if _doer(sub) not in ("", _doer_given(message)) or (ended and sent and ended < sent):
            return False
        if len(pairs) > 1 and (began is None or sent is None or (done is not None and min(began, sent) < done)):
            return False
        done = ended
    return True


def _doer(sub: Json) -> str:
    return text(agent_at(sub, "agent"), "agent_id")


def _doer_given(message: Json) -> str:
    return text(agent_at(message, "to_agent"), "agent_id")


def _words_for(sub: Json) -> str:
    task = sub.get("task")
    return _plain(task if isinstance(task, str) else text(task, "description"))


def _words_given(message: Json) -> str:
    payload = inner(message, "payload")
    said = (text(part, key) for part in (inner(payload, "task"), payload) for key in _TELLING)
    return _plain(next(filter(None, said), ""))


_TELLING = ("task_description", "description", "content", "title")


def _plain(words: str) -> str:
    return " ".join(words.split()).casefold()


def _review_id(sub: Json) -> str:
    return text(inner(sub, "output"), "review_id")
