"""SessionViewer: one session log, looked at from any side. The only file of this package that opens a file.

Every answer is a plain dict, list or text, and none needs a second look at the file. Agents are named by their id,
or by a name that only one of them has; messages by their id.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Self, TypedDict

from harken import ids
from harken.errors import BadRequest, NotFound
from harken.events import Event, Output
from harken.formats.session_log import data_of, events_of, read_groups, record_of, runs
from harken.formats.session_log.lines import LogLine
from harken.log import INCOMPLETE, Registry, read_chunks

from . import agents, dialog, flow, hearing, interventions, perspective, timeline
from . import trace as traces
from .agents import AgentRow
from .base import ParentLink
from .dialog import DialogLine
from .flow import Flow
from .hearing import Heard, Knowledge
from .index import Index, IndexBuilder
from .interventions import Comparison, Intervention
from .perspective import Impression
from .timeline import Arrow, Happening
from .trace import TraceStep


class LineProblem(TypedDict):
    """A line of the file that is wrong, or could not be read at all."""

    line: int
    problem: str


def _is_foreign(event: Event) -> bool:
    """Whether it is no line of a session log; one that nobody could read is a log's all the same."""
    return isinstance(event, Output) and b'"event_type"' not in event.raw


class SessionViewer:
    """Views of who said, heard and knew what, found by following `substance` and `cause`."""

    def __init__(self, session_file: str | os.PathLike[str]) -> None:
        """A file that has lines and not one event of a log is something else, which is `NotFound`; an empty one is a
        session in which nothing has happened yet."""
        if not ids.is_path(session_file) or isinstance(session_file, bytes):
            raise BadRequest(f"{session_file!r:.99} is no path of a file", hint="name the file of a session log")
        self._read(read_chunks(session_file))
        if self.problem_count and all(_is_foreign(record[0]) for record in self.index.records):
            raise NotFound(
                f"{os.fspath(session_file)} holds no event of a session log",
                hint="is it the right file? `harken import` takes in the sessions of other runtimes",
            )

    @classmethod
    def of(cls, events: Iterable[Event]) -> Self:
        """The same views of events, wherever they come from; a line is then the one a session log would have."""
        viewer = cls.__new__(cls)
        registry, builder = Registry(), IndexBuilder()
        for run in runs(events):
            builder.take(tuple(run))
        for _ in registry.fold_lines(map(record_of, builder.records)):
            pass
        viewer._settle(builder.finish(registry, lambda at: record_of(builder.records[at])), registry)
        return viewer

    @classmethod
    def of_log(cls, chunks: Iterable[bytes]) -> Self:
        """The same views of a session log that is no file: its bytes, in pieces of any size."""
        viewer = cls.__new__(cls)
        viewer._read(chunks)
        return viewer

    def _read(self, chunks: Iterable[bytes]) -> None:
        registry, builder = Registry(), IndexBuilder()
        raws: list[bytes] = []
        for lines in registry.fold(read_groups(chunks)):
            for data, raw, offset in lines:
                raws.append(raw)
                builder.take(tuple(events_of(data, raw)), offset)
        self._settle(builder.finish(registry, lambda at: data_of(raws[at])), registry)

    def _settle(self, index: Index, registry: Registry) -> None:
        self.index: Index = index
        wrong = (problem for problem in registry.report if problem.what not in INCOMPLETE)
        self.problems: list[LineProblem] = [
            LineProblem(line=one.line, problem=f"{one.what}: {one.detail}" if one.detail else one.what) for one in wrong
        ]
        """Lines that are wrong, as the session's own report has them, up to a thousand of each kind."""
        self.problem_count = sum(count for what, count in registry.counts.items() if what not in INCOMPLETE)
        """How many there are, told or not."""

    # The methods of the specification.

    def list_agents(self) -> dict[str, str]:
        """Every agent of the session: id to name, or to the id where it has none."""
        return agents.list_agents(self.index)

    def get_transcript(self, agent_id: str) -> list[LogLine]:
        """The transcript entries of an agent as they were logged, oldest first."""
        return self._lines(self.index.transcripts.get(self.find_agent(agent_id), []))

    def extract_dialog(self, agent_ids: Iterable[str]) -> list[DialogLine]:
        """What the agents said to each other and heard, each piece of content once, in its original wording."""
        return dialog.extract_dialog(self.index, self._agents(agent_ids))

    def extract_agent_perspective(self, agent_id: str | Iterable[str]) -> str:
        """What an agent heard, did, received and said, as text; several agents are interleaved."""
        return perspective.perspective_text(self.index, self._agents(agent_id))

    def build_causality_index(self) -> dict[str, ParentLink]:
        """Message to parent: what it repeats, what triggered it or the call it answers; a list stays a list."""
        return flow.causality(self.index)

    def trace_message_flow(self, message_id: str) -> list[LogLine]:
        """The events a message came from, oldest first, and the message itself."""
        return self._lines(flow.ancestry(self.index, self.find_message(message_id)))

    def trace_content_references(self, content_msg_id: str) -> list[LogLine]:
        """The transcript entries that name this message as their substance."""
        return self._lines(flow.references(self.index, self.find_message(content_msg_id)))

    # Beyond it.

    def line(self, message_id: str) -> LogLine:
        """The line of a message as it was logged; for other sources, as a session log would have it."""
        at = self.find_message(message_id)
        if at < 0:
            raise NotFound(
                f"message {message_id!r} is named in this session and stands in another",
                hint="open the session it stands in",
            )
        return self.index.line(at)

    def perspective(self, agent_ids: str | Iterable[str], *, system: bool = False) -> list[Impression]:
        """The same as `extract_agent_perspective`, as values."""
        return perspective.perspective(self.index, self._agents(agent_ids), system=system)

    def interventions(self) -> list[Intervention]:
        """Every delivery that was changed or blocked on its way."""
        return interventions.interventions(self.index)

    def who_heard(self, message_id: str) -> list[Heard]:
        """Everybody to whom the content of a message came: when, in which wording, over how many hops."""
        return hearing.all_deliveries(self.index, self._content(message_id))

    def knows(self, agent_id: str, what: str, *, at: datetime | str | float | None = None) -> Knowledge:
        """Whether a message (by id) or some words had reached an agent by then, and by which path.

        `at` is a time, or the id of the last message that counts. A time is a datetime (a naive one is UTC), RFC 3339
        text, or a number: seconds since 1970, from 10**11 on milliseconds, from 10**14 on microseconds. Words that are
        an id mean the message.
        """
        until = hearing.events_until(self.index, at)
        agent = self.find_agent(agent_id)
        position = self._found(what)
        if position is None:
            return hearing.knows_text(self.index, agent, what, until)
        return hearing.knows_message(self.index, agent, position, until)

    def said_vs_heard(self, message_id: str | None = None) -> list[Comparison]:
        """The deliveries of a message beside its original, by words; without one, all that were changed."""
        root = None if message_id is None else self._content(message_id)
        return interventions.said_vs_heard(self.index, root)

    def agent_tree(self) -> list[AgentRow]:
        """The agents, parents before children, each with its depth."""
        return agents.agent_tree(self.index)

    def timeline(self, agent_ids: str | Iterable[str] | None = None) -> list[Happening]:
        """Every event in order, or those of some agents."""
        return timeline.timeline(self.index, None if agent_ids is None else self._agents(agent_ids))

    def sequence(self, agent_ids: str | Iterable[str] | None = None) -> list[Arrow]:
        """Who said what to whom."""
        return timeline.sequence(self.index, None if agent_ids is None else self._agents(agent_ids))

    def flow(self, agent_ids: str | Iterable[str] | None = None) -> list[Flow]:
        """Every piece of content with what caused it, who heard it, and which results it went into."""
        return flow.flow(self.index, None if agent_ids is None else self._agents(agent_ids))

    def content_flow(self, message_id: str) -> Flow:
        """The way of the content of one message."""
        return flow.content_flow(self.index, self._content(message_id))

    def trace(self, message_id: str) -> list[TraceStep]:
        """The way of a message: all that led to it, itself, and one step on from it."""
        return traces.trace(self.index, self.find_message(message_id))

    # Names.

    def name(self, agent_id: str | None) -> str:
        """What to call an agent."""
        if not isinstance(agent_id, str | None):
            raise BadRequest(f"{agent_id!r:.99} names no agent", hint="give an agent's id, or None")
        return self.index.name(agent_id)

    def find_agent(self, text: str) -> str:
        """The id of the agent that an id or a unique name means."""
        return agents.find_agent(self.index, text)

    def find_message(self, message_id: str) -> int:
        """The position of a message, by its id or by a string that carries it; negative where it is only named."""
        if (found := self._found(message_id)) is None:
            raise NotFound(
                f"no message {message_id!r} in this session", hint="`harken view timeline SESSION` lists them all"
            )
        return found

    def _found(self, message: str) -> int | None:
        """The position of a message, by its id or by a string that carries it; None where there is none."""
        if not isinstance(message, str):
            raise BadRequest(f"{message!r:.99} is no message", hint="give a message's id, or the text that has it")
        return self.index.find(getattr(message, "message_id", None) or message)

    def _content(self, message_id: str) -> int:
        return self.index.content_root(self.find_message(message_id))

    def _agents(self, agent_ids: str | Iterable[str]) -> list[str]:
        if not isinstance(agent_ids, Iterable):
            raise BadRequest(f"{agent_ids!r:.99} names no agents", hint="give an agent's id or name, or a list of them")
        names: list[Any] = [agent_ids] if isinstance(agent_ids, str) else list(agent_ids)
        return list(dict.fromkeys(self.find_agent(one) for one in names))

    def _lines(self, positions: Iterable[int]) -> list[LogLine]:
        return [self.index.line(at) for at in positions]
