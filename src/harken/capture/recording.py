"""The document as it stands after some acts: the one fold that a living recorder and a recovery share."""

from __future__ import annotations

from collections import Counter
from typing import Any

from harken.clock import format_instant
from harken.errors import BadRecord
from harken.formats.std.checking.message_links import TaskThreads
from harken.formats.std.document import Json
from harken.formats.std.parts import inner, text
from harken.formats.std.summary import computed_summary

from .acts import (
    Act,
    AgentJoined,
    CallBegun,
    CallEnded,
    MessageSent,
    RecordingBegun,
    RecordingEnded,
    SubBegun,
    SubEnded,
    unfit,
)


class RecordedSession:
    """What has been recorded, ready to be written as a document."""

    def __init__(self) -> None:
        self.begun: RecordingBegun | None = None
        self.status = "in_progress"
        self.ended = False
        """Whether nothing may follow: it was closed as a success or a failure."""
        self.agents: dict[str, Json] = {}
        """The orchestrator, then the participants, by `agent_id`."""
        self.calls: dict[str, Json] = {}
        self.owner: dict[str, str | None] = {}
        """Call to the sub-session it was made in; None for a call of the orchestrator."""
        self.open_calls: dict[str, int] = {}
        """Call to when it began."""
        self.subs: dict[str, Json] = {}
        self.open_subs: dict[str, None] = {}
        """The sub-sessions that have not ended, in the order of their beginning."""
        self.uses: Counter[str] = Counter()
        """How many calls were made in each sub-session."""
        self.parents: dict[str, str | None] = {}
        """Sub-session to the one in which it was started."""
        self.began_in: dict[str, int] = {}
        self.last_in: dict[str, int] = {}
        """When each sub-session began, and the last instant of what was done in it."""
        self.by_task: dict[str, str] = {}
        """Task to the last sub-session that has it."""
        self.messages: dict[str, Json] = {}
        self.threads = TaskThreads()
        self.first = self.last = 0
        self.unread: list[str] = []
        """What stands in the log and could not be read."""

    # What is asked of it

    def started_of(self, sub_session_id: str | None) -> list[str]:
        """The open sub-sessions that were started in this one."""
        return [name for name in self.open_subs if self.parents[name] == sub_session_id]

    def calls_of(self, sub_session_id: str | None) -> list[str]:
        """The open calls of a sub-session, or of the orchestrator; those that wait for a sub-agent are among them."""
        return [name for name in self.open_calls if self.owner[name] == sub_session_id]

    def start_of(self, sub_session_id: str | None) -> int | None:
        """When a sub-session began; None for the orchestrator, whose first call may be from before the recording."""
        return None if sub_session_id is None else self.began_in[sub_session_id]

    def sub_of(self, message: MessageSent) -> Json:
        """The sub-session that a message is about, by the task or the review that it names; empty where it is none."""
        payload = message.payload
        names = (text(payload, "review_id"), text(payload, "task_id"), text(inner(payload, "task"), "task_id"))
        found = next((self.by_task[name] for name in names if name in self.by_task), None)
        return self.subs[found] if found is not None else {}

    # Acts

    def take(self, act: Act) -> None:
        """Take in one act; `BadRecord` where it speaks of what was never recorded."""
        match act:
            case RecordingBegun():
                self._begin(act)
            case AgentJoined():
                self.agents.setdefault(str(act.agent.get("agent_id")), act.agent)
            case CallBegun():
                self._call(act)
            case CallEnded():
                self._call_ended(act)
            case SubBegun():
                self._sub(act)
            case SubEnded():
                self._sub_ended(act)
            case MessageSent():
                self._message(act)
            case RecordingEnded():
                self.status, self.ended = act.status, act.status != "in_progress"
        self.first = min(self.first, act.time)
        self.last = max(self.last, act.time)

    def _begin(self, act: RecordingBegun) -> None:
        if self.begun is not None:
            raise unfit("a recording begins twice")
        self.begun, self.first, self.last = act, act.time, act.time
        for agent in (act.orchestrator, *act.participants):
            self.agents.setdefault(str(agent.get("agent_id")), agent)

    def _call(self, act: CallBegun) -> None:
        if act.call_id in self.calls:
            raise unfit(f"call {act.call_id!r} begins twice")
        if act.sub is not None:
            _known(self.subs, act.sub, "sub-session")
        self.calls[act.call_id] = {
            "call_id": act.call_id,
            "tool_name": act.tool_name,
            "tool_category": act.tool_category,
            "started_at": format_instant(act.time),
            "input": act.input,
        }
        self.owner[act.call_id] = act.sub
        if act.sub is not None:
            self.uses[act.sub] += 1
        self.open_calls[act.call_id] = act.time
        self._passed(act.sub, act.time)

    def _call_ended(self, act: CallEnded) -> None:
        call = _known(self.calls, act.call_id, "call")
        if (began := self.open_calls.pop(act.call_id, None)) is None:
            raise unfit(f"call {act.call_id!r} ends twice")
        self._passed(self.owner[act.call_id], act.time)
        call["ended_at"] = format_instant(act.time)
        call["duration_ms"] = round((act.time - began) / 1000)
        call["input"] = call.pop("input")  # the standard's order: times, input, output
        call["output"] = act.output
        if "subagent_info" in call:
            call["subagent_info"] = call.pop("subagent_info")

    def _passed(self, sub: str | None, time: int) -> None:
        if sub is not None:
            self.last_in[sub] = max(self.last_in[sub], time)

    def _sub(self, act: SubBegun) -> None:
        call = _known(self.calls, act.call_id, "call")
        if act.sub_session_id in self.subs:
            raise unfit(f"sub-session {act.sub_session_id!r} begins twice")
        if act.parent is not None:
            _known(self.subs, act.parent, "sub-session")
        call["subagent_info"] = {
            "subagent_type": act.agent.get("agent_type", ""),
            "sub_session_id": act.sub_session_id,
        }
        self.parents[act.sub_session_id] = act.parent
        self.open_subs[act.sub_session_id] = None
        self.began_in[act.sub_session_id] = self.last_in[act.sub_session_id] = act.time
        self.by_task[str(act.task.get("task_id"))] = act.sub_session_id
        self.subs[act.sub_session_id] = {
            "sub_session_id": act.sub_session_id,
            "parent_session_id": act.parent or (self.begun.session_id if self.begun else ""),
            "agent": act.agent,
            "triggered_by_call_id": act.call_id,
            "task": act.task,
            "started_at": format_instant(act.time),
            "status": "in_progress",
        }

    def _sub_ended(self, act: SubEnded) -> None:
        sub = _known(self.subs, act.sub_session_id, "sub-session")
        if act.sub_session_id not in self.open_subs:
            raise unfit(f"sub-session {act.sub_session_id!r} ends twice")
        del self.open_subs[act.sub_session_id], sub["status"]
        self._passed(self.parents[act.sub_session_id], act.time)
        sub |= {"completed_at": format_instant(act.time), "status": act.status}
        if act.output is not None:
            sub["output"] = act.output
        if act.tokens_used is not None:
            self.calls[sub["triggered_by_call_id"]]["subagent_info"]["tokens_used"] = act.tokens_used

    def _message(self, act: MessageSent) -> None:
        if act.message_id in self.messages:
            raise unfit(f"message {act.message_id!r} is sent twice")
        if problem := self.threads.problem({"message_type": act.message_type, "payload": act.payload}):
            raise unfit(problem[2])  # what it follows was lost
        message = self.messages[act.message_id] = {
            "message_id": act.message_id,
            "timestamp": format_instant(act.time),
            "sequence_number": len(self.messages) + 1,
            "from_agent": _known(self.agents, act.from_agent, "agent"),
            "to_agent": _known(self.agents, act.to_agent, "agent"),
            "message_type": act.message_type,
            "payload": act.payload,
            **({"correlation_id": act.correlation_id} if act.correlation_id is not None else {}),
            **({"reply_to": act.reply_to} if act.reply_to in self.messages else {}),
        }
        self.threads.take(message, act.message_id)

    # The document

    def document(self) -> Json:
        """The document: valid whenever it is made, `in_progress` until the recorder was closed."""
        begun = self.begun
        if begun is None:
            raise BadRecord("the beginning of the recording is missing", hint="nothing can be made of the rest")
        main, by_sub = self._sorted_calls()
        data: Json = {
            "session_id": begun.session_id,
            "task_title": begun.task_title,
            "user_prompt": begun.user_prompt,
            "created_at": format_instant(self.first),
            **({"completed_at": format_instant(self.last)} if self.ended else {}),
            "updated_at": format_instant(self.last),
            "status": self.status,
            **({"agent": {"model_id": begun.model}} if begun.model else {}),
            "collaboration": self._collaboration(begun),
            "tool_calls": main,
            "sub_sessions": [_whole(sub, by_sub.get(name, [])) for name, sub in self.subs.items()],
            "messages": list(self.messages.values()),
        }
        data["summary"] = computed_summary(data)
        if self.unread:
            data["x_harken"] = {"version": 1, "unread": self.unread}
        return data

    def _collaboration(self, begun: RecordingBegun) -> Json:
        # Nobody was ever given work: one agent did it all, and the standard's own migration has a mode for that.
        alone = self.ended and not self.subs
        agents = list(self.agents.values())
        return {
            "mode": "single" if alone else "multi_agent",
            "pattern": begun.pattern,
            "orchestrator": agents[0],
            "participants": agents[1:],
        }

    def _sorted_calls(self) -> tuple[list[Json], dict[str, list[Json]]]:
        """The main calls and those of each sub-session, in the order of their beginning (a program may give times of
        its own). A call by which a sub-agent starts another one is among the main calls, too: the standard looks for it
        there, and `x_harken_owner` says whose it is."""
        main: list[Json] = []
        by_sub: dict[str, list[Json]] = {}
        for call_id, call in self.calls.items():
            sub = self.owner[call_id]
            if sub is None:
                main.append(self._told(call))
                continue
            by_sub.setdefault(sub, []).append(self._told(call))
            if "subagent_info" in call:
                main.append({**self._told(call), "x_harken_owner": self.subs[sub]["agent"].get("agent_id")})
        for calls in (main, *by_sub.values()):
            calls.sort(key=lambda call: str(call["started_at"]))
        return main, by_sub

    def _told(self, call: Json) -> Json:
        """The call; one that started a sub-agent with how many calls that made."""
        if "subagent_info" not in call:
            return call
        info = call["subagent_info"]
        return {**call, "subagent_info": {**info, "tool_uses": self.uses[info["sub_session_id"]]}}


def _whole(sub: Json, calls: list[Json]) -> Json:
    """A sub-session with its calls, in the standard's order."""
    whole = {key: value for key, value in sub.items() if key != "output"}
    return {**whole, "tool_calls": calls, **({"output": sub["output"]} if "output" in sub else {})}


def _known(found: dict[str, Any], name: str, what: str) -> Any:
    if name not in found:
        raise unfit(f"there is no {what} {name!r:.80} in the recording")
    return found[name]
