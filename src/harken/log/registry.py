"""Who there is and ever was, and what is odd about the file: a fold over its records, without the transcripts.

The same fold runs over a file that is loaded and over each line as it is logged, so a session that was loaded knows
exactly what the one that wrote it knew.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
import orjson

from harken.formats.session_log import BLANK, ENTRY, KINDS, ROLES, Record, as_id

Data = dict[str, Any]

MAX_REPORT = 1000
"""Problems are told one by one up to this many; `Registry.counts` goes on counting."""
_RECENT = 64
_MAX_CLIMB = 10_000
_NUMBERED = re.compile(r"(?:msg_)?([0-9]{1,18})")
_NUMBERED_AGENT = re.compile(r"agent_([0-9]{1,18})")
_ID_IN_RUINS = re.compile(rb'"(?:message_id|substance|cause)"\s*:\s*"((?:msg_)?[0-9]{1,18})"')
_AGENT_IN_RUINS = re.compile(rb'"(?:agent_id|parent)"\s*:\s*"(agent_[0-9]{1,18})"')


class Problem(msgspec.Struct, frozen=True):
    """Something odd about the file; the load went on."""

    line: int
    offset: int
    what: str
    """The kind of oddity, the same words each time."""
    detail: str = ""


class AgentInfo(msgspec.Struct):
    """What is known of an agent without its transcript."""

    agent_id: str
    name: str = ""
    language_model: str = ""
    role: str = ""
    """`root`, `child` or `hook`; empty where the log does not say."""
    parent: str | None = None
    cause: str | None = None
    """The message that made it."""
    inferred: bool = False
    """Whether parent and cause follow from order and name only, as in v1."""
    created: str = ""
    """The id of its `agent_created`; empty where it was used but never created."""
    terminated: bool = False
    reason: str = ""
    """Why it was terminated."""
    entries: int = 0
    """How many entries were ever added to its transcript."""
    attributes: dict[str, Any] = msgspec.field(default_factory=dict)
    """What else its creation says (a hook's points and instructions)."""


class OpenCall(msgspec.Struct, frozen=True):
    """A tool call that has no result yet."""

    agent_id: str
    message_id: str
    call_id: str
    name: str
    arguments: Any


class Registry:
    """Agents, ids and oddities, one record at a time."""

    def __init__(self) -> None:
        self.agents: dict[str, AgentInfo] = {}
        self.messages: dict[str, str] = {}
        """Every message id and whose it is."""
        self.report: list[Problem] = []
        self.counts: dict[str, int] = {}
        """How often each kind of problem was met."""
        self.records = 0
        self._open: dict[tuple[str, str], OpenCall] = {}
        self._answered: set[tuple[str, str]] = set()
        self._first_use: dict[str, tuple[int, int]] = {}
        self._dangling: list[tuple[int, int, str, str]] = []
        self._last_message = 0
        self._last_agent = 0
        self._blank: Problem | None = None

    @property
    def root(self) -> str | None:
        """The first agent without a parent."""
        hook = None
        for info in self.agents.values():
            if info.parent is None:
                if info.role != "hook":
                    return info.agent_id
                hook = hook or info.agent_id
        return hook

    @property
    def open_calls(self) -> list[OpenCall]:
        """Calls that still wait for a result, oldest first."""
        return list(self._open.values())

    def children(self, agent_id: str) -> list[AgentInfo]:
        """Agents made by this one that are still in the tree."""
        return [info for info in self.agents.values() if info.parent == agent_id and not info.terminated]

    # One record

    def see(self, record: Record) -> None:
        """Take in a record of the file."""
        if record.problem is not None:
            self._odd(record)
        if record.data is not None:
            self.take(record.data, record.line, record.offset)

    def take(self, data: Data, line: int = 0, offset: int = 0) -> None:
        """Take in one line (with the keys of v2)."""
        self.records += 1
        kind = data.get("event_type")
        agent_id = data.get("agent_id")
        if type(agent_id) is not str:
            agent_id = as_id(agent_id) or ""
        message_id = data.get("message_id")
        if type(message_id) is not str:
            message_id = self._unnamed(message_id, line, offset)
        info = self.agents.get(agent_id)
        if info is not None:
            agent_id = info.agent_id  # one copy of the id serves every message
        if message_id in self.messages:
            if not data.get("index"):
                self.note(line, offset, "message id used twice", message_id)
        elif message_id:
            self.messages[message_id] = agent_id
        if data.get("substance") is not None or data.get("cause") is not None:
            self._follow(data, message_id, line, offset)
        if kind == ENTRY:
            if info is None:
                info = self._meet(agent_id, line, offset)
            self._entry(info, data, message_id, line, offset)
        elif kind == "agent_created":
            self._created(agent_id, data, message_id, line, offset)
        elif kind == "agent_terminated":
            info = info or self._meet(agent_id, line, offset)
            info.terminated = True
            info.reason = _text(data.get("reason"))
        elif kind not in KINDS:
            self.note(line, offset, "unknown event type", repr(kind)[:80])
        elif info is None and kind == "transcript_edit":
            self._meet(agent_id, line, offset)

    def _unnamed(self, message_id: Any, line: int, offset: int) -> str:
        self.note(line, offset, "no message id", "" if message_id is None else repr(message_id)[:80])
        return as_id(message_id) or ""

    def _meet(self, agent_id: str, line: int, offset: int) -> AgentInfo:
        if (info := self.agents.get(agent_id)) is None:
            info = self.agents[agent_id] = AgentInfo(agent_id)
            self._first_use[agent_id] = (line, offset)
        return info

    # Links

    def _follow(self, data: Data, message_id: str, line: int, offset: int) -> None:
        substance, cause = data.get("substance"), data.get("cause")
        if substance is not None and cause is not None:
            self.note(line, offset, "substance and cause on one line", message_id)
        for target in (substance, *(cause if isinstance(cause, list) else (cause,))):
            if target is None:
                continue
            if (name := as_id(target)) is None:
                self.note(line, offset, "a link that is not an id", repr(target)[:80])
            elif name not in self.messages:
                self._dangling.append((line, offset, message_id, name))

    # Transcript entries and calls

    def _entry(self, info: AgentInfo, data: Data, message_id: str, line: int, offset: int) -> None:
        if not data.get("index"):
            info.entries += 1
        role = data.get("role")
        if role == "assistant":
            if (calls := data.get("tool_calls")) is not None:
                self._calls(info.agent_id, calls, message_id, line, offset)
        elif role == "tool":
            self._result(info.agent_id, data, line, offset)
        elif role not in ROLES:
            self.note(line, offset, "unknown role", repr(role)[:80])

    def _calls(self, agent_id: str, calls: Any, message_id: str, line: int, offset: int) -> None:
        for call in calls if isinstance(calls, list) else [calls]:
            function = call.get("function") if isinstance(call, dict) else None
            if not isinstance(function, dict):
                self.note(line, offset, "not a tool call", message_id)
                continue
            call_id = as_id(call.get("id")) or ""
            key = (agent_id, call_id)
            self._answered.discard(key)
            self._open[key] = OpenCall(
                agent_id, message_id, call_id, _text(function.get("name")), function.get("arguments")
            )

    def _result(self, agent_id: str, data: Data, line: int, offset: int) -> None:
        call_id = as_id(data.get("tool_call_id")) or ""
        key = (agent_id, call_id)
        if self._open.pop(key, None) is not None:
            self._answered.add(key)
        elif key in self._answered:
            self.note(line, offset, "several results for one call", call_id)
        else:
            self.note(line, offset, "a result without its call", call_id)

    # Agents

    def _created(self, agent_id: str, data: Data, message_id: str, line: int, offset: int) -> None:
        known = agent_id in self.agents
        info = self._meet(agent_id, line, offset)
        if info.created:
            self.note(line, offset, "agent created twice", agent_id)
            return
        self._first_use.pop(agent_id, None)
        info.created = message_id
        info.name = _text(data.get("name"))
        info.language_model = _text(data.get("language_model"))
        info.role = _text(data.get("role"))
        attributes = data.get("attributes")
        info.attributes = attributes if isinstance(attributes, dict) else {}
        self._adopt(info, data, known, line, offset)

    def _adopt(self, info: AgentInfo, data: Data, known: bool, line: int, offset: int) -> None:
        cause = data.get("cause")
        causes = [name for item in (cause if isinstance(cause, list) else [cause]) if (name := as_id(item))]
        info.cause = causes[0] if causes else None
        parent = as_id(data.get("parent")) or next(
            (self.messages[name] for name in causes if self.messages.get(name)), None
        )
        if parent is None and info.role != "root":
            parent = self._infer(info, line, offset)
        if parent is None:
            if len(self.agents) > 1 and info.role != "root":
                self.note(line, offset, "no parent found", info.agent_id)
            return
        if parent == info.agent_id or (known and self._is_below(parent, info.agent_id)):
            self.note(line, offset, "an agent below itself", info.agent_id)
            return
        info.parent = self._meet(parent, line, offset).agent_id

    def _infer(self, info: AgentInfo, line: int, offset: int) -> str | None:
        """As in v1: an agent is made between a call and its result, and its name is in the arguments."""
        if not self._open:
            return None
        recent = list(self._open.values())[-_RECENT:][::-1]
        call = next((call for call in recent if info.name and _names(call.arguments, info.name)), None)
        call = call or next((call for call in recent if call.name == "task"), None) or recent[0]
        if call.agent_id == info.agent_id:
            return None
        if info.cause is None:
            info.cause = call.message_id
        info.inferred = True
        self.note(line, offset, "parent inferred", f"{info.agent_id} from {call.message_id}")
        return call.agent_id

    def _is_below(self, agent_id: str, ancestor: str) -> bool:
        at: str | None = agent_id
        for _ in range(_MAX_CLIMB):
            if at is None:
                return False
            if at == ancestor:
                return True
            info = self.agents.get(at)
            at = info.parent if info else None
        return True

    # What is odd

    def note(self, line: int, offset: int, what: str, detail: str = "") -> None:
        """Put a problem on the list."""
        count = self.counts[what] = self.counts.get(what, 0) + 1
        if count <= MAX_REPORT:
            self.report.append(Problem(line, offset, what, detail))

    def _odd(self, record: Record) -> None:
        if record.problem == BLANK:
            self.counts[BLANK] = self.counts.get(BLANK, 0) + 1
            self._blank = self._blank or Problem(record.line, record.offset, BLANK)
            return
        what, _, detail = (record.problem or "").partition(":")
        self.note(record.line, record.offset, what, detail.strip())
        if record.data is None:
            for found in _ID_IN_RUINS.findall(record.raw):
                self._reserve_message(found.decode())
            for found in _AGENT_IN_RUINS.findall(record.raw):
                self._reserve_agent(found.decode())

    def finish(self) -> None:
        """Note what only the end of the file can tell."""
        if self._blank is not None:
            at = self._blank
            self.report.append(Problem(at.line, at.offset, BLANK, f"{self.counts[BLANK]} in all, the first one here"))
            self._blank = None
        for line, offset, message_id, target in self._dangling:
            if target not in self.messages:
                self._reserve_message(target)
                self.note(line, offset, "a link outside the file", f"{message_id} to {target}")
        self._dangling.clear()
        for agent_id, (line, offset) in self._first_use.items():
            self.note(line, offset, "agent used but never created", agent_id)
        self.report.sort(key=lambda problem: problem.offset)

    # Ids

    def next_message_number(self) -> int:
        """A number above that of every message id seen, named or only mentioned."""
        last = self._last_message
        match = _NUMBERED.fullmatch
        for message_id in self.messages:
            if (found := match(message_id)) and (number := int(found[1])) > last:
                last = number
        return last + 1

    def next_agent_number(self) -> int:
        """A number above that of every agent id seen."""
        for agent_id in self.agents:
            self._reserve_agent(agent_id)
        return self._last_agent + 1

    def _reserve_message(self, message_id: str) -> None:
        if found := _NUMBERED.fullmatch(message_id):
            self._last_message = max(self._last_message, int(found[1]))

    def _reserve_agent(self, agent_id: str) -> None:
        if found := _NUMBERED_AGENT.fullmatch(agent_id):
            self._last_agent = max(self._last_agent, int(found[1]))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _names(arguments: Any, name: str) -> bool:
    if isinstance(arguments, str):
        try:
            arguments = orjson.loads(arguments)
        except orjson.JSONDecodeError:
            return False
    return isinstance(arguments, dict) and arguments.get("name") == name
