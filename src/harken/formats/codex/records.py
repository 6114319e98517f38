"""The lines of a rollout, read leniently: wrapped, bare (before 0.32), drifted or broken.

A line is a record only when it is exactly one JSON object, as `kit/jsonl.py` says. Of two objects on one line both are
read as events, but Codex itself passes over such a line: it neither cuts nor belongs to the conversation as it stands.
Whether a file is a rollout is told by the envelope of every line, or by the first line of the first versions.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import NamedTuple

from harken.formats.kit.claims import NO_CLAIM, Claim
from harken.formats.kit.jsonl import Record, is_blank, is_overlong, lines, parse, read_head
from harken.formats.kit.openai import CALLS, ITEMS, OUTPUTS, parts_of, text_of

SESSION_META = "session_meta"
ITEM = "response_item"
EVENT = "event_msg"
TURN_CONTEXT = "turn_context"
COMPACTED = "compacted"
BETWEEN_AGENTS = "inter_agent_communication"
USAGE = "token_usage_record"
STATE = "state"
"""A bare `{"record_type": "state"}` line of the first versions."""

WRAPPED = frozenset(
    {
        SESSION_META,
        ITEM,
        EVENT,
        TURN_CONTEXT,
        COMPACTED,
        "world_state",
        BETWEEN_AGENTS,
        "inter_agent_communication_metadata",
        "security_risk_score",
        USAGE,
    }
)


class RolloutLine(NamedTuple):
    """One line of a file: `data[start:end]`, the newline included."""

    start: int
    end: int
    record: Record | None
    """None where it is not exactly one JSON object, or empty."""
    blank: bool = False


def iter_lines(data: bytes, start: int = 0) -> Iterator[RolloutLine]:
    """Every line from `start` on; the last one may lack its newline."""
    for begin, end in lines(data, start):
        if is_overlong(end - begin):
            yield RolloutLine(begin, end, None)
            continue
        line = data[begin:end]
        record = parse(line)
        yield RolloutLine(begin, end, record, record is None and is_blank(line))


def kind_of(record: Record) -> tuple[str, Record]:
    """What a record is and what it says: its type and payload, the bare shapes of old files brought to today's."""
    name, payload = record.get("type"), record.get("payload")
    if isinstance(name, str) and isinstance(payload, dict):
        return name, payload
    return _bare(record)


def _bare(record: Record) -> tuple[str, Record]:
    if record.get("record_type") == STATE:
        return STATE, record
    name = record.get("type")
    if isinstance(name, str):
        return (ITEM, record) if name in ITEMS else (name, record)
    if isinstance(role := record.get("role"), str):
        words = record.get("content", record.get("message"))
        kind = "output_text" if role == "assistant" else "input_text"
        return ITEM, {"type": "message", "role": role, "content": parts_of(words, kind)}
    if isinstance(record.get("id"), str) and "timestamp" in record:
        return SESSION_META, record
    return "", record


_PAIRED = ("mcp_tool_call", "web_search", "exec_command", "patch_apply", "image_generation", "view_image_tool_call")
_COLLAB = ("collab_agent_spawn", "collab_agent_interaction", "collab_waiting", "collab_close", "collab_resume")

EVENTS = frozenset(
    """
    agent_message agent_message_content_delta agent_message_delta agent_reasoning agent_reasoning_delta
    agent_reasoning_raw_content agent_reasoning_raw_content_delta agent_reasoning_section_break
    apply_patch_approval_request background_event context_compacted conversation_path deprecation_notice
    dynamic_tool_call_request dynamic_tool_call_response elicitation_request entered_review_mode error
    exec_approval_request exec_command_output_delta exited_review_mode get_history_entry_response guardian_assessment
    hook_completed hook_started item_completed item_started list_custom_prompts_response list_skills_response
    mcp_list_tools_response mcp_startup_complete mcp_startup_update model_reroute model_verification
    patch_apply_updated plan_delta plan_update raw_response_item realtime_conversation_closed
    realtime_conversation_list_voices_response realtime_conversation_realtime realtime_conversation_sdp
    realtime_conversation_started reasoning_content_delta reasoning_raw_content_delta request_permissions
    request_user_input session_configured shutdown_complete skills_update_available stream_error sub_agent_activity
    task_complete task_started terminal_interaction thread_goal_updated thread_name_updated thread_rolled_back
    thread_settings_applied token_count turn_aborted turn_complete turn_diff turn_started undo_completed undo_started
    user_message view_image_tool_call warning
    """.split()  # noqa: SIM905  sixty quoted names would say less
) | {f"{name}_{end}" for name in _PAIRED + _COLLAB for end in ("begin", "end")}


def why_unknown(kind: str, payload: Record) -> str:
    """Why nobody knows what the record is; empty where it is known."""
    if kind == ITEM:
        name = text_of(payload.get("type"))
        return "" if name in ITEMS else f"unknown item {name[:80]!r}"
    if kind == EVENT:
        name = text_of(payload.get("type"))
        return "" if name in EVENTS else f"unknown event {name[:80]!r}"
    if kind in WRAPPED or kind == STATE:
        return ""
    return f"unknown record {kind[:80]!r}"


SURE = 95
_OTHERS = ("uuid", "sessionId", "session_id", "message_id", "event_type", "parentId", "projectHash")
"""Fields of other runtimes' records that no line of Codex has."""


CLAIMED_BY = ("payload", "record_type", "instructions", "git", "call_id")
"""A record without any of these keys is no reason to claim a file."""


def claim(head: bytes, path: str = "") -> Claim:
    """How sure it is, and by which record."""
    named = PurePath(path.replace("\\", "/")).name.startswith("rollout-")
    found = NO_CLAIM
    for number, record in enumerate(read_head(head), 1):
        if any(name in record for name in _OTHERS):
            return NO_CLAIM
        is_wrapped = isinstance(record.get("payload"), dict)
        score, reason = _claim_wrapped(record) if is_wrapped else _claim_bare(record, named)
        if score > found.score:
            found = Claim(score=score, reason=f"record {number} {reason}")
        if score >= SURE:
            break
    return found


def _claim_wrapped(record: Record) -> tuple[int, str]:
    kind, payload = text_of(record.get("type")), record["payload"]
    if kind not in WRAPPED or not isinstance(record.get("timestamp"), str):
        return 0, ""
    if kind == SESSION_META:
        return (SURE, "is a `session_meta` with an id") if isinstance(payload.get("id"), str) else (0, "")
    inner = text_of(payload.get("type"))
    if (kind == ITEM and inner in ITEMS) or (kind == EVENT and inner in EVENTS):
        return 90, f"is a `{kind}` of type `{inner}`"
    fields = {TURN_CONTEXT: "cwd", COMPACTED: "message"}
    if kind in fields:
        return (90, f"is a `{kind}`") if fields[kind] in payload or "replacement_history" in payload else (0, "")
    return 60, f"is a `{kind}`"


def _claim_bare(record: Record, named: bool) -> tuple[int, str]:
    """The first versions: a line about the session, then items without an envelope."""
    kind = record.get("type")
    if record.get("record_type") == STATE and len(record) == 1:
        return 80, "marks a state, as the first versions of Codex did"
    if kind is None and isinstance(record.get("id"), str) and isinstance(record.get("timestamp"), str):
        about = "instructions" in record or "git" in record
        return (85, "begins a session of the first versions of Codex") if about else (0, "")
    if named and text_of(kind) in CALLS | OUTPUTS and isinstance(record.get("call_id"), str):
        # Items alone may be anybody's.
        return 55, f"is a bare `{kind}`, and the file is named like a rollout"
    return 0, ""
