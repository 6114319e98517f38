"""A session that was imported from a document is written in the words of that document, as far as an import kept them:
times, statuses, tasks, outputs and messages are what it said, not what its events would be described as."""

from __future__ import annotations

from typing import TypeVar

from harken.formats.std.document import Json
from harken.formats.std.findings import OLD
from harken.formats.std.models import PATTERNS, Status
from harken.formats.std.parts import inner, instant, orchestrator, participants, text
from harken.formats.std.spellings import fell_short, session_status

from .derived_paths import any_number
from .spawning import SpawnedAgent

T = TypeVar("T")


class AsSaid:
    """What a document said, laid over what is written of its events; nothing where there was none. That the outcome
    satisfies the standard is for others to see: everything in it may be of any type."""

    def __init__(self, said: Json, listed: object, without: frozenset[str] = frozenset()) -> None:
        """`listed` is what the document lists as derived, `without` are the paths of what is left as the events have
        it."""
        self._said, self._without = said, without
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
        if "output" in first and agent.told_tasks and f"{path}.output" not in self._without:
            made["output"] = first["output"]
        return {key: value for key, value in first.items() if _is_kept(key)} | made

    def category(self, made: Json, record: str) -> Json:
        """A call with the category that it had."""
        said = text(inner(self._said, "tool_categories"), record)
        return made | {"tool_category": said} if said else made

    def messages(self, made: list[Json]) -> list[Json]:
        """What agents told each other; a document without messages leaves that to its calls."""
        said = self._said.get("messages")
        if not isinstance(said, list) or not said or "messages" in self._without:
            return made
        self._has_messages = True
        return said

    def derived(self, paths: list[str]) -> list[str]:
        """The paths of what is still derived: of messages in the words of the document, what was made up there."""
        found = [one for one in paths if one not in self._told]
        if not self._has_messages:
            return found
        made_up = (one for one in self._made_up if one.startswith("messages["))
        return [*(one for one in found if not one.startswith("messages[")), *made_up]

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
