"""Events as a file that Claude Code resumes.

Found by trying: a record needs `type`, `uuid`, `parentUuid`, `timestamp` and `message`; without a timestamp there is
"no conversation", without uuids only the last record counts. Ids are made from what is said, so that the same events
give the same file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from harken.clock import format_millis
from harken.events import Event, Response
from harken.events.messages import SHOWN
from harken.formats.base import Written
from harken.formats.kit.anthropic_writing import Said, arrange
from harken.formats.kit.jsonl import Record, encode, lines, parse
from harken.ids import artifact_id

from .records import take

VERSION = "2.1.325"
"""The version whose shape is written."""
HERE = "/"
NOTICES = frozenset(
    {
        # where it runs, with which model and rules
        "environment", "model", "session_context", "date", "date_change", "remote_session_change",
        "prompt_snapshot", "prefix_delta", "sandbox_instructions", "output_style",
        "output_style_instructions", "command_permissions", "plan_mode", "plan_mode_exit", "plan_mode_reentry",
        "auto_mode", "auto_mode_exit", "ultra_effort_enter", "ultra_effort_exit", "ultrathink_effort",
        "workflow_keyword_request", "workflow_size_guideline_change",
        # its tools, skills and agents
        "deferred_tools_delta", "mcp_dropped_tools_delta", "mcp_instructions_delta", "agent_listing_delta",
        "skill_listing", "dynamic_skill", "skill_mention", "unknown_command_fallback", "tool_search_usage_reminder",
        "tool_hosts_notice", "tool_hosts_correction", "linked_plugin_tools_note", "advisor_tool", "hook_plugin_listing",
        "bash_output_audience_note", "claude_app_notice", "dir_sync_notice", "widget_context_hint",
        # how far it has come, and how to go on
        "critical_system_reminder", "task_reminder", "todo_reminder", "silent_turn_reminder", "elapsed_time_reminder",
        "batching_reminder", "secondary_reminder", "total_tokens_reminder", "token_usage", "output_token_usage",
        "output_limit_note", "budget_usd", "thread_state",
    }
)  # fmt: skip
"""Kinds of attachments in which Claude Code tells its model about itself."""
_NO_USAGE = {
    "input_tokens": 0,
    "output_tokens": 0,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
}


def write(events: Sequence[Event]) -> Written:
    """The conversation as a session of its own; `rewrite` gives it the id and the folder it is to have."""
    turns = arrange(events)
    writer = _Writer(turns.messages)
    for said in turns.messages:
        writer.say(said)
    return Written(data=b"".join(writer.lines), losses=turns.losses)


def adopt(events: Sequence[Event]) -> Written:
    """What happened in another runtime as a session of Claude Code's."""
    # Another provider's ids do not say which parts make up a message here; what tools answered since does. Nor would
    # Claude Code find its model: it goes on with the one that the last answer names, and complains of one it lacks.
    return write([_adopted(event) for event in events])


def _adopted(event: Event) -> Event:
    adopted: Event = event.replace(api_id="", **({"model": ""} if isinstance(event, Response) else {}))
    return adopted


class _Writer:
    def __init__(self, messages: list[Said]) -> None:
        self.lines: list[bytes] = []
        self._parent: str | None = None
        self._time = next((e.time for said in messages for e in said.events if e.time is not None), 0)
        first = encode([said.blocks for said in messages[:1]])
        self._session = _uuid(b"session", first)

    def say(self, said: Said) -> None:
        """A record per block for the assistant, one for the user, one for each result."""
        self._pass(said.events[:1])
        if said.role == "user":
            self._user(said)
            return
        name = "msg_" + artifact_id(encode([self._parent, said.blocks]))[:24]
        model = next((e.model for e in said.events if isinstance(e, Response) and e.model), "")
        said_by: Record = {"model": model} if model else {}
        stop = "tool_use" if said.results else "end_turn"
        places: dict[str, str] = {}
        for block in said.blocks:
            message: Record = {"id": name, "type": "message", "role": "assistant", **said_by, "content": [block]}
            message |= {"stop_reason": stop, "stop_sequence": None, "usage": _NO_USAGE}
            # Parts of the program fail where `usage` is missing. Zeros are a figure; the mark says that nobody counted.
            uuid = self._line("assistant", message, {"isUnmetered": True})
            places[block.get("id", "")] = uuid
        for call, block, event in said.results:
            self._pass([event] if event is not None else [])
            marks = {"sourceToolAssistantUUID": places.get(call)}
            self._line("user", {"role": "user", "content": [block]}, marks)

    def _user(self, said: Said) -> None:
        plain = said.blocks[0]["text"] if len(said.blocks) == 1 and said.blocks[0]["type"] == "text" else None
        marks: Record = {}
        if said.injected == "compact_summary":
            marks = {"isCompactSummary": True, "isVisibleInTranscriptOnly": True}
        elif said.injected and said.injected not in SHOWN:
            marks = {"isMeta": True}
        self._line("user", {"role": "user", "content": plain if plain is not None else said.blocks}, marks)

    def _pass(self, events: Sequence[Event]) -> None:
        """Time never runs backwards here, though it does in the files."""
        for event in events:
            if event.time is not None and event.time > self._time:
                self._time = event.time

    def _line(self, kind: str, message: Record, marks: Record) -> str:
        uuid = _uuid((self._parent or "").encode(), str(len(self.lines)).encode(), encode(message))
        record: Record = {"parentUuid": self._parent, "isSidechain": False, "userType": "external", "cwd": HERE}
        record |= {"sessionId": self._session, "version": VERSION, "gitBranch": "", "type": kind, "message": message}
        record |= {"uuid": uuid, "timestamp": format_millis(self._time), **marks}
        self.lines.append(encode(record) + b"\n")
        self._parent = uuid
        return uuid


def _uuid(*parts: bytes) -> str:
    """A uuid made from content, in the form of a name-based one."""
    text = artifact_id(b"\0".join(parts))
    return f"{text[:8]}-{text[8:12]}-5{text[13:16]}-8{text[17:20]}-{text[20:32]}"


def rewrite(data: bytes, *, session_id: str, cwd: str, folder: str = "") -> bytes:
    """The same records under another session id, in another folder, for a person at a terminal: Claude Code lists no
    session that a program held (`entrypoint`). Nothing else in them changes.

    Long outputs of tools lie in files beside the session, and results name those; with `folder`, the one they lie in
    now, they do so again. A sub-agent's records become a conversation of their own: Claude Code resumes no side chain.
    """
    found = [(data[start:end], take(data[start:end])) for start, end in lines(data)]
    talks = [line for _, line in found if line is not None and line.type in ("user", "assistant")]
    lift = bool(talks) and all(line.isSidechain is True for line in talks)
    moved = b"".join(_moved(text, session_id, cwd, lift=lift) for text, _ in found if text.strip())
    old = next((line.sessionId for _, line in found if line is not None and isinstance(line.sessionId, str)), "")
    if not folder or not old or old.encode() not in moved:
        return moved
    beside = re.compile(_BESIDE % re.escape(encode(old)[1:-1]))
    return beside.sub(lambda _: encode(folder)[1:-1], moved)


_BESIDE = rb"""(?:(?<![^\s"'`(<])|(?<=\\n))/[^\s"\\]*/projects/[^\s"/\\]+/%s(?=/tool-results/)"""
"""The folder of a session, as texts name it."""


def _moved(text: bytes, session_id: str, cwd: str, *, lift: bool) -> bytes:
    record = parse(text)
    if record is None:
        return text if text.endswith(b"\n") else text + b"\n"
    if "sessionId" in record:
        record["sessionId"] = session_id
    if "cwd" in record:
        record["cwd"] = cwd
    if "entrypoint" in record:
        record["entrypoint"] = "cli"
    if lift and "isSidechain" in record:
        record["isSidechain"] = False
        record.pop("agentId", None)
    return encode(record) + b"\n"
