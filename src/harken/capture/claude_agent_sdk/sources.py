"""The conversation of a transcript file and those of its sub-agents, put into the session as their files grow.

Each file is one agent of the session: the first is `primary`, a further main file `conversation:<its session's id>`, a
sub-agent's `subagent:<its id>`. A record is logged once, known by its uuid, else by its bytes and how many like it
stand before it in the file: so a file that is written anew, a run that goes on with an earlier one, and a session that
is opened again after its program was killed all come to the same.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import orjson

from harken.capture.mask import masked
from harken.errors import NotFound
from harken.events import Event, Output, Prompt, System, ToolCall
from harken.events.edits import SUMMARIES
from harken.events.session import TranscriptEdit
from harken.formats.kit.jsonl import Record
from harken.formats.session_log.copies import RECORD
from harken.formats.transcript.entry import CONVERSATION, PRIMARY, SUBAGENT
from harken.formats.transcript.events import plain_json
from harken.log import Session
from harken.log.sources import agent_of

from .files import ClaudeFile, about_agent, agent_files, is_snapshot
from .records import WrittenRecord, text
from .telling import ADAPTER

NOTICE = "capture"
"""The subtype of the notices that a file is captured from here on, and that it was captured to its end."""
PATIENCE = 20
"""How often a sub-agent's file is looked at before it is taken without knowing which call started it."""
PIECE = 500
"""So many records go into one write."""


class ClaudeConversation:
    """A main file and the files of its sub-agents."""

    def __init__(
        self,
        session: Session,
        path: Path,
        session_id: str = "",
        *,
        subagents: bool = True,
        depth: int | None = None,
        mask: Callable[[str], str] | None = None,
        instructions: str = "",
        model: str = "",
        told: Callable[[WrittenRecord, list[Event]], None] = lambda record, events: None,
        failed: Callable[[Exception], None] = lambda problem: None,
    ) -> None:
        self.session = session
        self.session_id = session_id or path.stem
        self.main = ClaudeFile(path)
        self.subs: dict[str, ClaudeFile] = {}
        self.running: set[str] = set()
        """Sub-agents that were started and have not stopped."""
        self._subagents, self._depth = subagents, depth
        self._mask = mask
        self._instructions, self._model = instructions, model
        self._told, self._failed = told, failed
        self._depths: dict[str, int] = {}
        self._begun = self._goes_on = False

    # Files

    def add(self, agent: str, path: Path | None = None) -> None:
        """There is a sub-agent; its file may come later."""
        known = self.subs.get(agent)
        if known is None or (path is not None and known.path != path and not known.agent_id):
            folder = self.main.path.with_suffix("") / "subagents"
            self.subs[agent] = ClaudeFile(path or folder / f"agent-{agent}.jsonl", agent)

    def sizes(self) -> list[int]:
        """How many bytes each of the files has."""
        found = []
        for file in (self.main, *self.subs.values()):
            with suppress(OSError):
                found.append(file.path.stat().st_size)
        return found

    def look(self, *, last: bool = False, goes_on: bool = False) -> bool:
        """Log what was added to any of the files; whether there was anything.

        The last time nothing is waited for any more. If somebody may still write (`goes_on`), a line without an end is
        left, and whoever captures in this session next reads the rest."""
        self._goes_on = goes_on
        if not self.main.agent_id:
            self._begin()
        found = self._take([self.main, *(file for file in self.subs.values() if file.agent_id)], last=last)
        while begun := self._begun_with(last=last):  # those may have started others
            found |= self._take(begun, last=last)
        if last and self._begun and not goes_on:
            self._notice("ended")
            if not self.main.begun and not self.main.path.exists():
                self._failed(NotFound(f"Claude Code wrote no {self.main.path}", hint="let it keep its sessions"))
        return found

    def _begun_with(self, *, last: bool) -> list[ClaudeFile]:
        """The files of sub-agents that can be taken from now on."""
        if not self._subagents:
            return []
        for agent, path in agent_files(self.main.path.with_suffix("") / "subagents"):
            self.add(agent, path)
        waiting = [file for file in self.subs.values() if not file.agent_id]
        ready = [file for file in waiting if self._may_begin(file, last=False)]
        if last and not ready:  # nobody will say any more who started them
            ready = list(islice((file for file in waiting if self._may_begin(file, last=True)), 1))
        return ready

    def _take(self, files: list[ClaudeFile], *, last: bool) -> bool:
        """Log what was added to some of the files, in the order of its times."""
        found: list[tuple[int, ClaudeFile, WrittenRecord]] = []
        for file in files:
            records = file.new(last=last, torn=not self._goes_on)
            if records and file is self.main:
                self._give_instructions(records)
            latest = 0  # a file is in order, whatever its times say
            for record in records:
                latest = max(latest, record.events[0].time or 0)
                found.append((latest, file, record))
        found.sort(key=itemgetter(0))
        logged = 0
        for at in range(0, len(found), PIECE):
            with self.session.lock, self.session.batch():
                for _, file, record in found[at : at + PIECE]:
                    try:
                        logged += self._log(file, record)
                    except Exception as problem:  # noqa: BLE001 one bad record does not cost the others
                        self._failed(problem)
        return logged > 0

    # Agents

    def _begin(self) -> None:
        """Find the agent of the main file, or make it, and say that the file is captured, which may come later."""
        session = self.session
        with session.lock, session.batch():
            known = captured_before(session)
            agent_id = known.get(self.session_id)
            if agent_id is None:
                is_first = not known and not any(info.entries for info in session.agents.values())
                source = PRIMARY if is_first else CONVERSATION + self.session_id
                agent_id = agent_of(session, source, language_model=self._model or None)
            self.main.agent_id = agent_id
            self.main.learn(session.records_of([agent_id]))
            self._notice("began")

    def _give_instructions(self, records: list[WrittenRecord]) -> None:
        """Log the instructions of the options, unless the file tells which there were."""
        given, self._instructions = self._instructions, ""
        if given and not self.main.instructions and not any(map(is_snapshot, records)):
            words = self._mask(given) if self._mask is not None else given
            self.main.instructions.add(words)
            self.session.append([System(subtype="instructions", message=words, agent_id=self.main.agent_id)])

    def _notice(self, state: str) -> None:
        self._begun = state == "began"
        said = {"adapter": ADAPTER, "state": state, "claude_session_id": self.session_id, "file": str(self.main.path)}
        self.session.append([System(agent_id=self.main.agent_id, subtype=NOTICE, metadata=plain_json(said))])

    def _may_begin(self, file: ClaudeFile, *, last: bool) -> bool:
        """Whether it is known which call started a sub-agent, or will not become known; and whether it is wanted."""
        if not file.path.exists():
            return False
        file.looks += 1
        about = about_agent(file.path)
        call = self._call(text(about, "toolUseId"))
        if call is None and not last and file.looks < PATIENCE:
            return False
        above, cause = call or (self.main.agent_id, "")
        depth = about.get("spawnDepth")
        depth = depth if type(depth) is int else self._depths.get(above, 0) + 1
        if self._depth is not None and depth > self._depth:
            return False
        file.agent_id = self._sub_agent(file.agent, above, cause, about)
        self._depths[file.agent_id] = depth
        file.learn(self.session.records_of([file.agent_id]))
        return True

    def _call(self, call: str) -> tuple[str, str] | None:
        """Whose a call is, and in which message it stands."""
        for file in (self.main, *self.subs.values()):
            if call and call in file.calls:
                return file.agent_id, file.calls[call]
        return None

    def _sub_agent(self, agent: str, above: str, cause: str, about: Record) -> str:
        session, source = self.session, SUBAGENT + agent
        with session.lock:
            if agent in session.agents or cause not in session.registry.messages:
                return agent_of(session, source)
            kinds = {"agent_type": text(about, "agentType"), "description": text(about, "description")}
            attributes = {key: value for key, value in kinds.items() if value}
            try:
                session.log_agent_created(agent, cause, role="child", parent=above, attributes=attributes or None)
            except Exception as problem:  # noqa: BLE001 an id that cannot be an agent's
                self._failed(problem)
                return agent_of(session, source)
        return agent

    def _agent_id(self, file: ClaudeFile, agent: str) -> str:
        """Whose a record is; empty where it is not wanted. Early versions wrote sub-agents into the main file."""
        if not agent or agent == file.agent:
            return file.agent_id
        if not self._subagents or (self._depth is not None and self._depth < 1):
            return ""
        return agent_of(self.session, SUBAGENT + agent)

    # Records

    def _log(self, file: ClaudeFile, record: WrittenRecord) -> bool:
        """Log a record, unless the session has it or it is not wanted; whether it was logged."""
        messages = self.session.registry.messages
        agent_id = self._agent_id(file, record.agent)
        branch = file.meet(record) if agent_id == file.agent_id else []
        if not agent_id or messages.get(record.uuid) == agent_id or file.has(record):
            return False
        shared = not record.uuid or record.uuid in messages
        self._go_back(file, branch)
        events = self._events(file, record, agent_id, "" if shared else record.uuid)
        beside = [self._beside(record, event, shared) for event in events]
        names = self.session.append(events, beside=beside)
        file.names[record.uuid] = names[0]
        if shared:
            file.known[record.uuid or record.digest] += 1
        for event in events:
            if isinstance(event, ToolCall):
                file.calls[event.id] = names[0]
        self._told(record, events)
        return True

    def _events(self, file: ClaudeFile, record: WrittenRecord, agent_id: str, name: str) -> list[Event]:
        """The events of a record as they are logged."""
        found: list[Event] = []
        for event in masked(record.events, self._mask):
            if isinstance(event, System) and event.subtype == "instructions":
                if event.message in file.instructions:
                    continue
                file.instructions.add(event.message)
            elif isinstance(event, System) and event.subtype == "compact_boundary":
                file.preserved = _preserved(record.record)
                event = Output(raw=event.metadata, time=event.time)  # the edit that the summary is says it
            elif isinstance(event, Prompt) and event.origin in SUMMARIES:
                event = self._compaction(file, agent_id, event)
            known = isinstance(event.cause, str) and event.cause in self.session.registry.messages
            cause = event.cause if known else None
            found.append(event.replace(agent_id=agent_id, message_id=name, index=len(found), cause=cause))
        return found

    def _go_back(self, file: ClaudeFile, branch: list[str]) -> None:
        """Cut the transcript back to the nearest of these records that stands in it, unless only results are behind it,
        which several calls at once give in any order."""
        kept = {file.names.get(uuid, uuid) for uuid in branch}
        lines = self.session.entries(file.agent_id) if kept else []
        keep = next((at + 1 for at in range(len(lines) - 1, -1, -1) if lines[at].get("message_id") in kept), 0)
        if keep and any(line.get("role") in ("user", "assistant") for line in lines[keep:]):
            self.session.append([TranscriptEdit(agent_id=file.agent_id, action="truncate", n=keep)])

    def _compaction(self, file: ClaudeFile, agent_id: str, summary: Prompt) -> Event:
        """The edit that a summary is: it stands for everything before it but the instructions, and what was kept."""
        lines = self.session.entries(agent_id)
        start = next((at for at, line in enumerate(lines) if line.get("role") != "system"), len(lines))
        kept = (at for at, line in enumerate(lines) if at >= start and line.get("message_id") in file.preserved)
        n = next(kept, len(lines))
        return TranscriptEdit(time=summary.time, action="compact", start=start, n=n, content=summary.content)

    def _beside(self, record: WrittenRecord, event: Event, shared: bool) -> dict[str, Any]:
        """What the entry says beyond its event; and by what the record is known where the log's own id does not say."""
        said = record.about if not isinstance(event, Output) else {}
        masked_raw = isinstance(event, Output) and event.raw != record.raw
        if shared and not event.index and (masked_raw or not isinstance(event, Output)):
            said = {**said, RECORD: record.uuid or record.digest}
        return {"metadata": said} if said else {}


def _preserved(record: Record) -> set[str]:
    """The messages that a compaction kept word for word."""
    about = record.get("compactMetadata")
    about = about if isinstance(about, dict) else {}
    listed, segment = about.get("preservedMessages"), about.get("preservedSegment")
    names = listed.get("uuids") if isinstance(listed, dict) else None
    first = segment.get("headUuid") if isinstance(segment, dict) else None
    return {name for name in [*(names if isinstance(names, list) else ()), first] if isinstance(name, str)}


def captured_before(session: Session, *, unfinished: bool = False) -> dict[str, str]:
    """The agents whose main files were captured, by the id of Claude Code's session; or the files of those whose
    capture did not come to its end."""
    found: dict[str, str] = {}
    for line in session.records() if session.registry.records else ():
        if line.get("event_type") != "system" or line.get("subtype") != NOTICE:
            continue
        said = line.get("metadata")
        try:
            about = orjson.loads(said) if isinstance(said, str) else said
        except orjson.JSONDecodeError:
            continue
        if not isinstance(about, dict) or about.get("adapter") != ADAPTER:
            continue
        name = text(about, "claude_session_id")
        if not unfinished:
            found[name] = str(line.get("agent_id"))
        elif about.get("state") == "began":
            found[name] = text(about, "file")
        else:
            found.pop(name, None)
    return found
