"""The log beside a document: an ordinary session log, in which agents come, call, answer and hear each other, and whose
lines also carry the acts that the document is made from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from harken.errors import BadRequest, Locked
from harken.events import AgentCreated, System
from harken.events.base import is_name
from harken.formats.session_log import MAX_LINE
from harken.formats.std.document import Json
from harken.formats.std.naming import RECORDED, SUFFIX
from harken.ids import is_safe_name
from harken.log import Session

from .acts import (
    KEY,
    Act,
    CallBegun,
    CallEnded,
    MessageSent,
    RecordingBegun,
    RecordingEnded,
    SubBegun,
    SubEnded,
    as_json,
    to_line,
)
from .recording import RecordedSession
from .wording import answer_text, is_told, message_text, summary_of

CLOSED = "recording_closed"
"""The subtype of the notice that the recorder was closed."""
REPEATED = "recorded_message"
"""The subtype of the notice of a message that says what the log has said already."""
_ROOM = 4 * 1024 * 1024
"""What is left for the words of an act on its line, beside the acts themselves."""


def log_path(document: Path) -> Path:
    """Where the log of a document lies."""
    return document.parent / (session_id_of(document) + RECORDED)


class Journal:
    """The log of one recording, open for writing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._time = 0
        try:
            self._session = Session(path, clock=lambda: self._time)
        except Locked as problem:  # its hint is for those who can do with reading
            raise Locked(str(problem), hint="wait until that recorder is closed, or record at another path") from None
        self._ids = {
            str(info.attributes["agent_id"]): info.agent_id
            for info in self._session.agents.values()
            if "agent_id" in info.attributes
        }
        self._calls: dict[str, str] = {}
        """Call to its message; those of an earlier process are not looked for."""

    def lines(self) -> Iterable[Json]:
        """What stands in the log."""
        return self._session.records()

    def lost(self) -> list[str]:
        """The lines that cannot be read, a sentence each. A torn line that was closed when the log was opened again is
        none of them: nobody was told that it had been written."""
        found: dict[int, str] = {}
        for record in self._session.scan() if self._session.report else ():
            if record.data is None:
                found[record.offset] = f"line {record.line} of the log cannot be read: {record.problem}"
            elif record.data.get("event_type") == "recovery" and isinstance(record.data.get("offset"), int):
                found.pop(record.data["offset"], None)
        return list(found.values())

    @property
    def is_used(self) -> bool:
        """Whether anybody said or heard anything in it; a recorder that died while it began leaves less."""
        return any(info.entries for info in self._session.agents.values())

    def close(self) -> None:
        """Let others write."""
        self._session.close()

    def write(self, acts: Sequence[Act], carried: list[Json] | str, recording: RecordedSession) -> None:
        """Put one act of the program on the disk: in one write, and whole or not at all, since the last line carries
        what it was. `recording` knows of it already."""
        said = ""
        with self._session.batch():
            for act in acts:
                self._time = act.time
                own = {KEY: carried} if act is acts[-1] else {}
                said = self._tell(act, own, recording, said)

    def _tell(self, act: Act, own: Json, recording: RecordedSession, said: str) -> str:
        """The lines of one act; the message by which a sub-agent handed in its work, for the result that repeats it."""
        match act:
            case RecordingBegun():
                root = self._agent(act.orchestrator, model=act.model)
                self._entry(root, {"role": "user", "content": act.user_prompt, "source": "initial", **own})
            case CallBegun():
                self._call(act, own, recording)
            case CallEnded():
                who = self._maker(recording.owner[act.call_id], recording)
                entry = {"role": "tool", "tool_call_id": act.call_id, "content": answer_text(act.output), **own}
                if act.output.get("status") == "failed":
                    entry["is_error"] = True
                self._entry(who, entry, substance=said or None)
            case SubBegun():
                self._sub(act, own, recording)
            case SubEnded():
                words = summary_of(act.output)
                if words or own:
                    who = self._maker(act.sub_session_id, recording)
                    return self._entry(who, {"role": "assistant", "content": words, **own})
            case MessageSent():
                self._message(act, own, recording)
            case RecordingEnded():
                metadata = as_json(own)
                root = self._maker(None, recording)
                self._session.append([System(agent_id=root, subtype=CLOSED, message=act.status, metadata=metadata)])
        return ""

    def _call(self, act: CallBegun, own: Json, recording: RecordedSession) -> None:
        function = {"name": act.tool_name, "arguments": as_json(act.input.get("params", {})).decode()}
        calls = [{"id": act.call_id, "type": "function", "function": function}]
        who = self._maker(act.sub, recording)
        self._calls[act.call_id] = self._entry(who, {"role": "assistant", "tool_calls": calls, **own})

    def _sub(self, act: SubBegun, own: Json, recording: RecordedSession) -> None:
        call = self._calls.get(act.call_id)
        who = self._agent(act.agent, cause=call, parent=self._maker(act.parent, recording))
        words = str(act.task.get("description", ""))
        self._entry(who, {"role": "user", "content": words, "source": "injected", **own}, substance=call)

    def _message(self, act: MessageSent, own: Json, recording: RecordedSession) -> None:
        root = self._maker(None, recording)
        sender, hearer = (self._agent(recording.agents[name], parent=root) for name in (act.from_agent, act.to_agent))
        if is_told(act, recording.sub_of(act)):
            metadata = as_json(own)
            self._session.append([System(agent_id=sender, subtype=REPEATED, metadata=metadata)])
            return
        words = message_text(act.message_type, act.payload)
        said = self._entry(sender, {"role": "assistant", "content": words})
        self._entry(hearer, {"role": "user", "content": words, "source": "injected", **own}, substance=said)

    def _entry(self, agent_id: str, message: Json, substance: str | None = None) -> str:
        return self._session.log_transcript_entry(agent_id, message, substance)

    def _maker(self, sub: str | None, recording: RecordedSession) -> str:
        """The agent of a sub-session, or the orchestrator."""
        who = next(iter(recording.agents.values())) if sub is None else recording.subs[sub]["agent"]
        return self._agent(who)

    def _agent(self, agent: Json, *, cause: str | None = None, parent: str = "", model: str = "") -> str:
        """The id of an agent in the log; one that has none yet is created."""
        name = str(agent["agent_id"])
        if name not in self._ids:
            self._ids[name] = self._free_id(name)
            created = AgentCreated(
                agent_id=self._ids[name],
                name="" if self._ids[name] == name or not _is_plain(name) else name,
                language_model=model,
                role="child" if parent else "root",
                parent="" if cause else parent,
                cause=cause,
                attributes=as_json(agent),
            )
            self._session.append([created])
        return self._ids[name]

    def _free_id(self, name: str) -> str:
        """The id that an agent has in the document; another one where a log would take that for something else."""
        fits = _is_plain(name) and is_safe_name(name) and name not in self._session.agents
        return name if fits else self._session.allocate_agent_id()


def _is_plain(name: str) -> bool:
    return is_name(name) and name == name.strip()


def carry(acts: Sequence[Act]) -> list[Json] | str:
    """The acts as a line carries them; `BadRequest` where no line of a log is long enough for that."""
    found = to_line(acts)
    size = len(as_json(found))
    if 2 * size + _ROOM > MAX_LINE:
        raise BadRequest(
            f"{size} characters are too much for one act",
            hint="keep large content in a file, and record where it is",
        )
    return found


def session_id_of(path: Path) -> str:
    """The session that a document is of: its file's name, without `.json`."""
    return path.name.removesuffix(SUFFIX)
