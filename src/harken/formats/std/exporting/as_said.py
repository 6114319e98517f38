"""A session that was imported from a document is written in the words of that document, as far as an import kept them:
times, statuses, tasks, outputs and messages are what it said, not what its events would be described as."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from harken.formats.std.document import Json
from harken.formats.std.findings import OLD, at
from harken.formats.std.importing.message_events import words_of
from harken.formats.std.models import PATTERNS, Status
from harken.formats.std.parts import inner, instant, objects, orchestrator, participants, text, words_in
from harken.formats.std.spellings import fell_short, session_status

from .derived_paths import any_number
from .spawning import SpawnedAgent

T = TypeVar("T")
_WRONG = re.compile(r"messages\[(?P<message>[0-9]+)\]|sub_sessions\[(?P<output>[0-9]+)\]\.output\b")


class Unsaid(msgspec.Struct, frozen=True, kw_only=True):
    """What is not written as the document has it, since it breaks the standard in a way that no repair mends."""

    messages: frozenset[str] = frozenset()
    """The ids of messages that are written as words alone."""
    is_without_messages: bool = False
    """Whether all messages are those that the events tell."""
    outputs: frozenset[int] = frozenset()
    """The places of sub-sessions whose outputs are written as generic ones."""

    def with_these(self, errors: Iterable[str], data: Json) -> Unsaid | None:
        """Also what stands at these paths; None where that does not help, or is something else."""
        more = self
        for path in errors:
            wrong = _WRONG.match(path)
            if path.startswith("messages") and not self.is_without_messages:
                name = text(data["messages"][int(wrong["message"])], "message_id") if wrong else ""
                is_known = name in self.messages or not name
                more = msgspec.structs.replace(
                    more, messages=more.messages | {name}, is_without_messages=more.is_without_messages or is_known
                )
            elif wrong and wrong["output"] and int(wrong["output"]) not in self.outputs:
                more = msgspec.structs.replace(more, outputs=more.outputs | {int(wrong["output"])})
            else:
                return None
        return more


class AsSaid:
    """What a document said, laid over what is written of its events; nothing where there was none. That the outcome
    satisfies the standard is for others to see: everything in it may be of any type."""

    def __init__(self, said: Json, listed: object, unsaid: Unsaid | None = None) -> None:
        """`listed` is what the document lists as derived."""
        self._said, self._unsaid = said, unsaid or Unsaid()
        paths = (path for path in listed if isinstance(path, str)) if isinstance(listed, list) else ()
        self._made_up = dict.fromkeys(paths)
        """The paths of what nobody said in the document either: the export that wrote it has filled that in."""
        self._told: set[str] = set()
        """The paths of what the document says of its own."""
        self._has_messages = False

    def status(self, otherwise: Status, *, is_told: bool) -> Status:
        """How the session stands; `is_told` says whether its events tell so themselves."""
        said = session_status(self._said.get("status"))
        return self._instead(said or otherwise, "status") if said or is_told else otherwise

    def head(self, head: Json) -> Json:
        """The times of the session."""
        return self._timed(head, {"created_at": self._said, "completed_at": self._said}, "") | _stopped(self._said)

    def collaboration(self, made: Json) -> Json:
        """Who took part, with all that is said of each, and how they worked together."""
        said = inner(self._said, "collaboration")
        known = {text(one, "agent_id"): one for one in (orchestrator(self._said), *participants(self._said))}
        if said.get("pattern") in PATTERNS:
            made = made | {"pattern": self._instead(said["pattern"], "collaboration.pattern")}
        listed, main = _instances(participants(self._said)), made["orchestrator"]
        agents = [
            instance | one
            for one in ([main] if main["agent_id"] in listed else []) + made["participants"]
            for instance in listed.get(one["agent_id"], {"": {}}).values()
        ]
        if all(text(known.get(one["agent_id"]), "agent_type") for one in agents):
            places = {name: place for place, name in enumerate(listed)}
            agents.sort(key=lambda one: places.get(one["agent_id"], len(places)))
        more = {key: value for key, value in said.items() if key not in made}
        for key in ("mode", "pattern"):  # a word that the standard does not have is set aside, as a repair does
            if isinstance(said.get(key), str) and said[key] != made[key]:
                more.setdefault(OLD + key, said[key])
        return {**made, **more} | {"orchestrator": known.get(main["agent_id"], {}) | main, "participants": agents}

    def sub_session(self, made: Json, agent: SpawnedAgent, path: str) -> Json:
        """What an agent was to do, from when to when, and what came of it. Where the document has several sub-sessions
        of the agent that cannot be told apart, it is all one."""
        if not agent.told:
            return made
        first, last = agent.told[0], agent.told[-1]
        made = self._timed(made, {"started_at": first, "completed_at": last}, f"{path}.")
        task = {key: value for key, value in inner(first, "task").items() if key != "task_id"}
        task = {key: self._instead(value, f"{path}.task.{key}") for key, value in task.items()}
        made["task"] = made["task"] | task
        made["status"] = session_status(last.get("status")) or made["status"]
        made |= _stopped(last)
        made["agent"] = inner(first, "agent") | made["agent"]
        if made["status"] == "in_progress":
            made = {key: value for key, value in made.items() if key not in ("completed_at", "output")}
        elif instant(last, "completed_at") is not None:
            made["completed_at"] = last["completed_at"]
        if len(agent.told) > 1:
            return made
        if "output" in first and agent.told_tasks:
            is_wrong = path in {at("sub_sessions", place) for place in self._unsaid.outputs}
            made["output"] = _generic(first["output"], agent, made) if is_wrong else first["output"]
        return {key: value for key, value in first.items() if _is_kept(key)} | made

    def category(self, made: Json, record: str) -> Json:
        """A call with the category that it had."""
        said = text(inner(self._said, "tool_categories"), record)
        return made | {"tool_category": said} if said else made

    def messages(self, made: list[Json]) -> list[Json]:
        """What agents told each other; a document without messages leaves that to its calls."""
        said = self._said.get("messages")
        if not isinstance(said, list) or not said or self._unsaid.is_without_messages:
            return made
        self._has_messages = True
        return [_as_words(one) if text(one, "message_id") in self._unsaid.messages else one for one in said]

    def derived(self, paths: list[str]) -> list[str]:
        """The paths of what is still derived: of messages in the words of the document, what was made up there."""
        found = [one for one in paths if one not in self._told]
        if not self._has_messages:
            return found
        made_up = (one for one in self._made_up if one.startswith("messages["))
        return [*(one for one in found if not one.startswith("messages[")), *made_up]

    def filled_in(self, data: Json) -> list[str]:
        """The paths of what was written in the place of words that break the standard."""
        told = [place for place, one in objects(data["messages"]) if _is_told_as_words(one, self._unsaid)]
        fields = [at(at("messages", place), key) for place in told for key in ("message_type", "payload")]
        return [*fields, *(f"{at('sub_sessions', place)}.output" for place in sorted(self._unsaid.outputs))]

    def _timed(self, made: Json, sources: dict[str, Json], path: str) -> Json:
        said = {key: value for key, value in sources.items() if key in made and instant(value, key) is not None}
        return made | {key: self._instead(value[key], path + key) for key, value in said.items()}

    def _instead(self, said: T, path: str) -> T:
        if self._made_up.keys().isdisjoint((path, any_number(path))):
            self._told.add(path)
        return said


def _instances(participants: list[Json]) -> dict[str, dict[str, Json]]:
    """What a document says of each participant: of all its instances, where it lists several."""
    listed: dict[str, dict[str, Json]] = {}
    for one in participants:
        listed.setdefault(text(one, "agent_id"), {})[text(one, "instance_id")] = one
    return listed


def _is_kept(key: str) -> bool:
    """Whether a field of a sub-session is no mark that exports make. What a repair set aside is none."""
    return key.startswith(OLD) or not key.startswith("x_harken")


def _stopped(said: Json) -> Json:
    """A word for what ended before all was done, where the standard has only `failed`: it is kept beside, as by a
    repair."""
    return {OLD + "status": said["status"]} if fell_short(said.get("status")) else {}


def _is_told_as_words(message: Json, unsaid: Unsaid) -> bool:
    """Whether a message is one of those; of one to several a repair makes several, whose ids begin like its own."""
    is_there = OLD + "payload" in message or OLD + "message_type" in message
    return is_there and any(message["message_id"].startswith(name) for name in unsaid.messages)


def _as_words(message: Json) -> Json:
    """A message that says what it said, and is nothing more; what it was is set aside."""
    more: Json = {key: value for key, value in message.items() if key not in ("message_type", "payload")}
    old = {OLD + key: message[key] for key in ("message_type", "payload") if key in message}
    payload = {"feedback_type": "guidance", "content": words_of(message)}
    return {**more, "message_type": "feedback", "payload": payload} | old


def _generic(output: Any, agent: SpawnedAgent, made: Json) -> Json:
    """An output that holds all of another one."""
    status = "failed" if made["status"] == "failed" else "completed"
    summary = text(output, "summary") or text(inner(made, "output"), "summary") or words_in(output)
    return {"output_type": "generic", "task_id": agent.task_id, "status": status, "summary": summary, "data": output}
