"""Who there is and ever was, and what is odd about the file: a fold over its records, without the transcripts.

The same fold runs over a file that is loaded and over each line as it is logged, so a session that was loaded knows
exactly what the one that wrote it knew.

It folds lines and not events: making the events of a log takes three times as long as decoding it, and loading one must
not. What it says of a file is what it says of the lines of the file's events, and what a plain fold over them says
(a law in tests/log/test_registry_law.py); it says more where a line is no event, and of what is odd about the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from harken.events.base import likeness
from harken.formats.session_log import BLANK, ENTRY, HEAD, KINDS, ROLES, Group, LogRecord, as_id, shown
from harken.formats.session_log.lines import LogLine
from harken.formats.session_log.reading import object_of, text_of

from .base import BEGINS_WITH, CUT_OFF, AgentInfo, LogProblem, OpenCall
from .questions import SUBTYPES, WithQuestions

MAX_REPORT = 1000
"""Problems are told one by one up to this many; `Registry.counts` goes on counting."""
MAX_DETAIL = 200
MODEL = "model"
"""The subtype of the `system` event that gives an agent another model; its message is the name."""
_RECENT = 64
_ROLES = frozenset(ROLES)
_OF_AN_AGENT = frozenset({ENTRY, "agent_created", "agent_terminated", "transcript_edit"})
_MAX_CLIMB = 10_000
_NUMBERED = re.compile(r"(?:msg_)?([0-9]{1,18})")
_PLAIN_ID = re.compile(r"msg_[1-9][0-9]{0,17}")
_NUMBERED_AGENT = re.compile(r"agent_([0-9]{1,18})")
_ID_IN_RUINS = re.compile(rb'"(?:message_id|substance|cause)"\s*:\s*"((?:msg_)?[0-9]{1,18})"')
_AGENT_IN_RUINS = re.compile(rb'"(?:agent_id|parent)"\s*:\s*"(agent_[0-9]{1,18})"')


class Registry(WithQuestions):
    """Agents, ids and oddities, one record at a time."""

    def __init__(self) -> None:
        self.agents: dict[str, AgentInfo] = {}
        self.messages: dict[str, str] = {}
        """Every message id and whose it is."""
        self.report: list[LogProblem] = []
        self.counts: dict[str, int] = {}
        """How often each kind of problem was met."""
        self.own_ids: set[str] = set()  # what the agent ids that we did not give would be taken for
        self._below: dict[str, list[AgentInfo]] = {}
        self.moves = 0
        """How often an agent came into the tree or left it."""
        self._open: dict[tuple[str, str], tuple[tuple[str, LogLine], ...]] = {}
        self._answered: set[tuple[str, str]] = set()
        self._first_use: dict[str, tuple[int, int]] = {}
        self._begun: dict[str, tuple[int, int]] = {}
        self._dangling: list[tuple[tuple[int, int], str, str]] = []
        # Where the line stands that is being taken in: known outright, or as a line of a group.
        self._place = (0, 0)
        self._group: Group | None = None
        self._at = self._last_message = self._last_agent = 0
        self._blank: LogProblem | None = None

    @property
    def records(self) -> int:
        """How many records there are."""
        return len(self.messages)

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
        return [OpenCall.of(key, call) for key, calls in self._open.items() for call in calls]

    def children(self, agent_id: str) -> list[AgentInfo]:
        """Agents made by this one that are still in the tree."""
        return [info for info in self._below.get(agent_id, ()) if not info.terminated]

    def before(self, agent_id: str) -> tuple[int, ...]:
        """From the root down to this agent: after how many of the same name each came below its parent."""
        found: list[int] = []
        at = self.agents.get(agent_id)
        while at is not None and len(found) < _MAX_CLIMB:
            same = [info.agent_id for info in self._below.get(at.parent or "", ()) if info.name == at.name]
            found.append(same.index(at.agent_id) if at.agent_id in same else 0)
            at = self.agents.get(at.parent) if at.parent is not None else None
        return tuple(reversed(found))

    def read(self, groups: Iterable[Group]) -> None:
        """Take in a whole file."""
        for _ in self.fold(groups):
            pass

    def fold(self, groups: Iterable[Group]) -> Iterator[Iterable[tuple[LogLine, bytes, int]]]:
        """Take in a whole file; gives what could be read of it: lines with their bytes and where each begins."""
        for group in groups:
            if group.plain is not None:
                self._take_plain(group)
                yield zip(group.plain, group.raws, group.offsets(), strict=False)
            else:
                yield self._take_odd(group)
        self.finish()

    def fold_lines(self, lines: Iterable[LogLine]) -> Iterator[LogLine]:
        """Take in lines that are already read (with the keys of v2), and hand each on."""
        for number, data in enumerate(lines):
            self._place = (number + 1, number)  # there are no bytes to count, so lines are
            self.take(data)
            yield data
        self.finish()

    def _take_odd(self, group: Group) -> list[tuple[LogLine, bytes, int]]:
        self._group = None
        found = []
        for record in group.records():
            self._place = (record.line, record.offset)
            if record.problem is not None:
                self._odd(record)
            if record.data is not None:
                self.take(record.data)
                found.append((record.data, record.raw, record.offset))
        return found

    def _take_plain(self, group: Group) -> None:
        """What `take` does, in a hurry, for entries that hold no surprise; any other line is handed on to it."""
        self._group = group
        agents, messages = self.agents, self.messages
        for self._at, data in enumerate(group.plain or ()):
            try:
                message_id, info, role = data["message_id"], agents[data["agent_id"]], data["role"]
                plain = (
                    data["event_type"] == ENTRY
                    and type(message_id) is str
                    and message_id
                    and message_id not in messages
                    and "index" not in data
                    and "cause" not in data
                    and role in _ROLES
                    and ("substance" not in data or data["substance"] in messages)
                )
            except (KeyError, TypeError):
                plain = False
            if not plain:
                self.take(data)
                continue
            messages[message_id] = info.agent_id
            info.entries += 1
            if role == "tool":
                self._result(info.agent_id, data)
            elif "tool_calls" in data and role == "assistant":
                self._calls(info.agent_id, data["tool_calls"], message_id)

    def take(self, data: LogLine) -> None:
        """Take in one line (with the keys of v2)."""
        kind, agent_id, message_id = data.get("event_type"), data.get("agent_id"), data.get("message_id")
        if type(message_id) is not str or not message_id:
            message_id = self._unnamed(message_id)
        agent_id, met = agent_id if type(agent_id) is str else as_id(agent_id) or "", False
        if (info := self.agents.get(agent_id)) is not None:
            agent_id = info.agent_id  # one copy of the id serves all its messages
        elif type(kind) is str and kind in _OF_AN_AGENT:
            info, met = self._meet(agent_id), True
        first = not data.get("index")
        if message_id not in self.messages:
            self.messages[message_id] = agent_id
        elif first:
            self.note("message id used twice", message_id)
        if "substance" in data or "cause" in data:
            self._follow(data, message_id)
        if kind == ENTRY and info is not None:
            if first:
                info.entries += 1
            role = data.get("role")
            if role == "assistant" and "tool_calls" in data:
                self._calls(agent_id, data["tool_calls"], message_id)
            elif role == "tool":
                self._result(agent_id, data)
            elif type(role) is not str or role not in _ROLES:
                self.note("unknown role", shown(role))
        else:
            self._other(kind, info, data, message_id, met)

    def _other(self, kind: Any, info: AgentInfo | None, data: LogLine, message_id: str, met: bool) -> None:
        if kind == "agent_created" and info is not None:
            self._created(info, data, message_id, met)
        elif kind == "agent_terminated" and info is not None:
            info.terminated = True
            self.moves += 1
            info.reason = text_of(data.get("reason"))
        elif kind == "transcript_edit" and info is not None:
            info.edits += 1
        elif kind == "system" and info is not None and data.get("subtype") == MODEL:
            info.language_model = text_of(data.get("message")) or info.language_model
        elif kind == "system" and info is not None and text_of(data.get("subtype")) in SUBTYPES:
            self.questions.take(data, message_id, info.agent_id)
        elif kind == "piece_of_text" and not self.messages[message_id]:
            # v1 does not say who made it: whoever made the call that caused it.
            self.messages[message_id] = self.messages.get(as_id(data.get("cause")) or "", "")
        elif type(kind) is not str or kind not in KINDS:
            self.note("unknown event type", shown(kind))

    def _unnamed(self, message_id: Any) -> str:
        self.note("no message id", "" if message_id is None else shown(message_id))
        return as_id(message_id) or f"@{self._here()[1]}"

    def _meet(self, agent_id: str) -> AgentInfo:
        if (info := self.agents.get(agent_id)) is None:
            info = self.agents[agent_id] = AgentInfo(agent_id)
            self._first_use[agent_id] = self._here()
            if not _NUMBERED_AGENT.fullmatch(agent_id):
                self.own_ids.add(likeness(agent_id))
        return info

    # Links

    def _follow(self, data: LogLine, message_id: str) -> None:
        substance, cause = data.get("substance"), data.get("cause")
        if substance is not None and cause is not None:
            self.note("substance and cause on one line", message_id)
        for target in (substance, *(cause if isinstance(cause, list) else (cause,))):
            if target is None:
                continue
            if (name := as_id(target)) is None:
                self.note("a link that is not an id", shown(target))
            elif name not in self.messages:
                self._dangling.append((self._here(), message_id, name))

    # Calls

    def _calls(self, agent_id: str, calls: Any, message_id: str) -> None:
        if calls is None:
            return
        for call in calls if type(calls) is list else [calls]:
            if type(call) is not dict or type(call.get("function")) is not dict:
                self.note("not a tool call", message_id)
                continue
            call_id = call.get("id")
            key = (agent_id, call_id if type(call_id) is str else as_id(call_id) or "")
            before = self._open.pop(key, ())  # the same id in another message is a later call
            self._open[key] = (*(one for one in before if one[0] == message_id), (message_id, call["function"]))

    def _result(self, agent_id: str, data: LogLine) -> None:
        call_id = data.get("tool_call_id")
        if type(call_id) is not str:
            call_id = as_id(call_id) or ""
        key = (agent_id, call_id)
        if waiting := self._open.pop(key, ()):
            self._answered.add(key)
            if waiting[1:]:
                self._open[key] = waiting[1:]
        elif key in self._answered:
            self.note("several results for one call", call_id)
        else:
            self.note("a result without its call", call_id)

    # Agents

    def _created(self, info: AgentInfo, data: LogLine, message_id: str, met: bool) -> None:
        if info.created:
            self.note("agent created twice", info.agent_id)
            return
        self._first_use.pop(info.agent_id, None)
        info.created = message_id
        info.name = text_of(data.get("name"))
        info.language_model = text_of(data.get("language_model"))
        info.role = text_of(data.get("role"))
        info.attributes = object_of(data.get("attributes"))
        if type(count := info.attributes.get(BEGINS_WITH)) is int:
            info.begins_with, self._begun[info.agent_id] = count, self._here()
        self._adopt(info, data, met)

    def _adopt(self, info: AgentInfo, data: LogLine, met: bool) -> None:
        cause = data.get("cause")
        causes = [name for item in (cause if isinstance(cause, list) else [cause]) if (name := as_id(item))]
        info.cause = causes[0] if causes else None
        parent = as_id(data.get("parent")) or self.owner(causes)
        if parent is None and info.role != "root":
            parent = self._infer(info)
        if parent is None:
            if len(self.agents) > 1 and info.role != "root":
                self.note("no parent found", info.agent_id)
            return
        if parent == info.agent_id or (not met and self._is_below(parent, info.agent_id)):
            self.note("an agent below itself", info.agent_id)
            return
        info.parent = self._meet(parent).agent_id
        self._below.setdefault(info.parent, []).append(info)
        self.moves += 1

    def owner(self, message_ids: Iterable[str]) -> str | None:
        """Whose the first of these messages is that is anybody's."""
        return next((self.messages[name] for name in message_ids if self.messages.get(name)), None)

    def _infer(self, info: AgentInfo) -> str | None:
        """As in v1: an agent is made between a call and its result, and its name is in the arguments."""
        if not self._open:
            return None
        recent = [OpenCall.of(key, calls[-1]) for key, calls in islice(reversed(self._open.items()), _RECENT)]
        call = next((call for call in recent if info.name and object_of(call.arguments).get("name") == info.name), None)
        call = call or next((call for call in recent if call.name == "task"), None) or recent[0]
        if call.agent_id == info.agent_id:
            return None
        if info.cause is None:
            info.cause = call.message_id
        info.inferred = True
        self.note("parent inferred", f"{info.agent_id} from {call.message_id}")
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

    def note(self, what: str, detail: str = "", place: tuple[int, int] | None = None) -> None:
        """Put a problem on the list; without a place it is about the line that is being taken in."""
        count = self.counts[what] = self.counts.get(what, 0) + 1
        if count <= MAX_REPORT:
            self.report.append(LogProblem(*(place or self._here()), what, detail[:MAX_DETAIL]))

    def _here(self) -> tuple[int, int]:
        return self._place if self._group is None else self._group.place(self._at)

    def _odd(self, record: LogRecord) -> None:
        problem = record.problem or ""
        if problem == BLANK:
            self.counts[BLANK] = self.counts.get(BLANK, 0) + 1
            self._blank = self._blank or LogProblem(*self._place, BLANK)
            return
        what, _, detail = problem.partition(":")
        self.note(what, detail.strip())
        if record.data is None:  # an id in a broken line may have been given to somebody
            for found in _ID_IN_RUINS.findall(record.raw[:HEAD]):
                self._reserve_message(found.decode())
            for found in _AGENT_IN_RUINS.findall(record.raw[:HEAD]):
                self._reserve_agent(found.decode())

    def finish(self) -> None:
        """Note what only the end of the file can tell."""
        self._group, self._place = None, (0, 0)
        if (at := self._blank) is not None:
            detail = f"{self.counts[BLANK]} in all, the first one here"
            self.report.append(LogProblem(at.line, at.offset, BLANK, detail))
            self._blank = None
        for place, message_id, target in self._dangling:
            if target not in self.messages:
                self._reserve_message(target)
                self.note("a link outside the file", f"{message_id} to {target}", place)
        self._dangling.clear()
        for agent_id, place in self._first_use.items():
            self.note("agent used but never created", agent_id, place)
        for info, place in ((self.agents[agent_id], place) for agent_id, place in self._begun.items()):
            if info.entries < info.begins_with and not info.terminated:
                self.note(CUT_OFF, f"{info.agent_id} has {info.entries} of {info.begins_with} entries", place)
        self.report.sort(key=lambda problem: problem.offset)

    # Ids

    def next_message_number(self) -> int:
        """A number above that of every message id seen, named or only mentioned."""
        longest = max(map(len, self.messages), default=0)
        last = max((name for name in self.messages if len(name) == longest), default="")
        if _PLAIN_ID.fullmatch(last):  # no shorter id of this form can be larger
            return max(self._last_message, int(last[4:])) + 1
        numbers = (int(found[1]) for name in self.messages if (found := _NUMBERED.fullmatch(name)))
        return max(self._last_message, max(numbers, default=0)) + 1

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
