"""What a sub-agent handed in: as a developer where it changed files, as a reviewer where it reviewed, else generic.

Nothing is made up: a reviewer that states no verdict, or did not check what the standard wants to know, hands in a
generic output with what is known in its `data`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property

from harken.events import Response, ToolCall
from harken.events.base import clean
from harken.formats.std.arguments import params_of
from harken.formats.std.document import Json
from harken.formats.std.models import RequiredChange, ReviewFinding, Verification, view
from harken.formats.std.parts import inner, values
from harken.formats.std.spellings import session_status

from .file_changes import Changed, as_changes, changed_files
from .given_task import GivenTask, TasksOfAgent
from .handed_in import handed_in
from .reviews import is_reviewer
from .session_links import SessionLinks
from .spawning import SessionTree, SpawnedAgent
from .verification import verification_of

_BLOCK = re.compile(r"^```(?:json)?[ \t]*$", re.M)
_LARGEST = 1_000_000
"""Characters of a reply that is looked into for an object."""


class AgentOutputs:
    """The outputs of the agents of a session."""

    def __init__(self, tree: SessionTree, tasks: dict[str, TasksOfAgent], parts: Iterable[SpawnedAgent] = ()) -> None:
        self._tree, self._tasks = tree, tasks
        several = (part for part in parts if part.is_part)
        self._homes = {id(event): part.sub_session_id for part in several for event in part.events}

    @cached_property
    def _links(self) -> SessionLinks:
        return SessionLinks(self._tree)

    @cached_property
    def _changed(self) -> dict[str, Changed]:
        return changed_files(self._links, self._homes)

    def of(self, agent: SpawnedAgent) -> Json:
        """What an agent handed in: as the document says that it was imported from, else as its work tells."""
        if told := handed_in(agent.events):
            return self._again(agent, told)
        files = self._changed.get(agent.sub_session_id if agent.is_part else agent.agent_id, {})
        as_said = session_status(agent.told[-1].get("status")) if agent.told else None
        has_failed = (as_said or self._tasks[agent.agent_id].status_of(agent)) == "failed"
        common = {"status": "failed" if has_failed else "completed", "summary": clean(self._words(agent))}
        if is_reviewer(agent) and not agent.is_hook:
            return self._review(agent, common, as_changes(files) if files else {})
        if files:
            status, summary = common["status"], common["summary"]
            return {"task_id": agent.task_id, "status": status, "changes": as_changes(files), "summary": summary}
        return {"output_type": "generic", "task_id": agent.task_id, **common, "data": {}}

    def _again(self, agent: SpawnedAgent, told: Json) -> Json:
        """The same output, about the tasks as they are called here."""
        if "verdict" not in told:
            return {**told, "task_id": agent.task_id}
        task = self._last_review(agent)
        return {**told, "review_id": task.task_id, "task_id": task.reviewed or agent.task_id}

    def _words(self, agent: SpawnedAgent) -> str:
        """The answer that was heard last; else what the agent said last."""
        if answered := self._tasks[agent.agent_id].answered_of(agent):
            return answered.answer_words
        said = [event for event in agent.events if isinstance(event, Response)] if agent.is_part else agent.words
        brought = agent.result.output if agent.is_part and agent.result is not None else ""
        return said[-1].content if said else brought

    def _review(self, agent: SpawnedAgent, common: Json, changes: Json) -> Json:
        task = self._last_review(agent)
        told = _object_in(task.answer_words)
        verification = self._verification(agent, told)
        if task.verdict and verification.keys() >= {"tests_passed", "type_check_passed"}:
            return {
                "review_id": task.task_id,
                "task_id": task.reviewed,
                "verdict": task.verdict,
                "findings": list(_findings(told)),
                "verification": verification,
                "summary": common["summary"],
                **_required(told),
            }
        known = {
            "verdict": task.verdict,
            "reviewed_task_id": task.reviewed,
            "verification": verification,
            "changes": changes,
        }
        data = {key: value for key, value in known.items() if value}
        return {"output_type": "generic", "task_id": agent.task_id, **common, "data": data}

    def _last_review(self, agent: SpawnedAgent) -> GivenTask:
        given = self._tasks[agent.agent_id]
        return given.answered_of(agent) or given.tasks[0]

    def _verification(self, agent: SpawnedAgent, told: Json) -> Json:
        """What the reviewer says of it in so many fields; else how its commands ended."""
        said = inner(told, "verification")
        if said and view(Verification, said) is not None:
            flags = {"tests_passed": said.get("tests_passed"), "type_check_passed": said.get("type_check_passed")}
            if all(isinstance(flag, bool) for flag in flags.values()):
                return flags
        calls = [event for event in agent.events if isinstance(event, ToolCall)]
        return verification_of((call, self._links.result(call)) for call in calls)


def _findings(told: Json) -> Iterator[Json]:
    """The findings that a reply lists as the standard has them."""
    seen = {""}
    for finding in values(told.get("findings")):
        known = view(ReviewFinding, finding)
        if known is not None and (known.file or known.location) and known.finding_id not in seen:
            seen.add(known.finding_id)
            yield finding


def _required(told: Json) -> Json:
    """The changes that a reply asks for, as far as they are about findings that are listed."""
    listed = {finding["finding_id"] for finding in _findings(told)}
    changes: dict[str, Json] = {}
    for change in values(told.get("required_changes")):
        known = view(RequiredChange, change)
        if known is not None and known.change_id and listed.issuperset(known.related_findings):
            changes.setdefault(known.change_id, change)
    return {"required_changes": list(changes.values())} if changes else {}


def _object_in(reply: str) -> Json:
    """The object that a reply is, or has in a block of code; empty where there is none."""
    text = reply[:_LARGEST]
    for part in (text, *_BLOCK.split(text)[1::2]):
        if part.lstrip().startswith("{") and (found := params_of(part.encode("utf-8", "replace"))):
            return found
    return {}
