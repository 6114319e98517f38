"""The lines of a session of Copilot CLI: `{"type", "data", "id", "timestamp", "parentId", "agentId"?}`.

Every line is an event of the program. A few are conversation; the others are bookkeeping (hooks, permissions, usage) or
a side chain in which the program tells of its own requests (`model.…`). Sub-agents are in the same file: their lines
have an `agentId`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import NamedTuple

from harken.formats.kit.claims import NO_CLAIM, Claim
from harken.formats.kit.jsonl import Record, is_overlong, lines, parse, read_head
from harken.text import text_of as text_of  # for whoever takes values from here

START, PROMPT, ANSWER, RESULT, COMPACTED = (
    "session.start",
    "user.message",
    "assistant.message",
    "tool.execution_complete",
    "session.compaction_complete",
)
ASSET, USAGE, NOTIFICATION, INSTRUCTIONS = (
    "session.binary_asset",
    "session.usage_record",
    "system.notification",
    "system.message",
)
CLEARED, REWOUND = "session.context_cleared", "session.snapshot_rewind"
SHUTDOWN = "session.shutdown"
AGENT_STARTED = "subagent.started"
DELIVERED = frozenset({"skill.context_delivered", "session.mode_notice_delivered"})
"""Texts that the program puts before its model."""
ATTACHED, AT_PATH = "Attached image", "Image file at path "
"""What the program says before a picture that has no name, and before one that is a file."""
FAILURES = frozenset({"session.error", "model.call_failure", "subagent.failed"})

_FAMILIES = {
    "agent": "interrupted",
    "assistant": (
        "fusion_phase_activity fusion_phase_completed fusion_phase_failed fusion_phase_started idle intent message "
        "message_delta message_start reasoning reasoning_delta server_tool_progress streaming_delta tool_call_delta "
        "turn_end turn_retry turn_start usage"
    ),
    "auto_mode_switch": "completed requested",
    "capabilities": "changed",
    "command": "completed execute queued",
    "commands": "changed",
    "elicitation": "completed requested",
    "exit_plan_mode": "completed requested",
    "external_tool": "completed requested",
    "hook": "end progress start",
    "human_response": "recorded",
    "mcp": (
        "headers_refresh_completed headers_refresh_required oauth_completed oauth_recovery_completed oauth_required "
        "prompts.list_changed resources.list_changed tools.list_changed"
    ),
    "mcp_app": "tool_call_complete",
    "model": (
        "call_failure call_final_result call_finished call_start message messages_snapshot model_call_started "
        "model_call_success model_call_failure response turn_ended turn_started"
    ),
    "pending_messages": "modified",
    "permission": (
        "assentDetected carriedForward completed contextualAuthorization messageAuthorization "
        "messageAuthorizationDegraded messageAuthorizationRead requested"
    ),
    "sampling": "completed requested",
    "sandbox": "decision",
    "session": (
        "auto_mode_resolved auto_tier_recommendation auto_tier_switch_failed autopilot_objective_changed "
        "autopilot_stopped background_tasks_changed binary_asset canvas.closed canvas.opened canvas.recorded "
        "canvas.registry_changed canvas.removed canvas.unavailable compaction_complete compaction_start "
        "completion_receipt context_changed context_cleared custom_agents_updated custom_notification error "
        "extensions.attachments_pushed extensions_loaded fusion_change_checkpoint fusion_commit_started "
        "fusion_completed fusion_handoff fusion_resolved fusion_route_failed fusion_route_started handoff idle "
        "indexed_search info managed_plugin_progress managed_settings_enforced managed_settings_resolved "
        "mcp_server_needs_reconnect mcp_server_removed mcp_server_status_changed mcp_server_tools_loaded "
        "mcp_servers_loaded memory_changed mode_changed mode_notice_delivered model_change model_deselected "
        "permission_recovery permissions_changed plan_changed quota_observation remote_steerable_changed "
        "request_body_compression_disabled resume schedule_cancelled schedule_created schedule_rearmed "
        "session_limits_changed shutdown skills_loaded snapshot_rewind start task_complete title_changed "
        "todos_changed tools_updated truncation usage_checkpoint usage_info usage_record warning "
        "workspace_file_changed"
    ),
    "session_limits_exhausted": "completed requested",
    "skill": "context_delivered context_delivered_ref invoked invoked_ref",
    "subagent": "completed configured deselected failed selected started",
    "system": "message notification",
    "tool": (
        "execution_complete execution_partial_result execution_progress execution_start shell_output user_requested"
    ),
    "tool_search": "activated",
    "ui": "ephemeral_query",
    "user": "message",
    "user_input": "completed requested",
    "workflow": "run_settled run_started run_updated",
}
KNOWN = frozenset({"abort", "prompt_cache_break"}) | {
    f"{family}.{name}" for family, names in _FAMILIES.items() for name in names.split()
}
"""Every type of event that version 1.0.102 describes, and those of its side chain."""


class CopilotLine(NamedTuple):
    """One line of a file: `data[start:end]`, the newline included."""

    start: int
    end: int
    record: Record | None
    """None where it is not exactly one JSON object, or empty."""


def iter_lines(data: bytes) -> Iterator[CopilotLine]:
    """Every line; the last one may lack its newline."""
    for start, end in lines(data):
        yield CopilotLine(start, end, None if is_overlong(end - start) else parse(data[start:end]))


def kind_of(record: Record) -> str:
    """The type of event; empty where it names none."""
    kind = record.get("type")
    return kind if isinstance(kind, str) else ""


def content_of(record: Record) -> Record:
    """What the event says."""
    data = record.get("data")
    return data if isinstance(data, dict) else {}


def agent_of(record: Record) -> str:
    """The sub-agent whose line it is; empty for the session's own agent."""
    agent = record.get("agentId")
    return agent if isinstance(agent, str) else ""


def applied(data: Record) -> bool:
    """Whether a compaction took place: one that failed, or found nothing, changes nothing."""
    return data.get("success") is True and isinstance(data.get("summaryContent"), str)


def why_unknown(record: Record) -> str:
    """Why nobody knows what the record is; empty where it is known."""
    kind = kind_of(record)
    if not isinstance(record.get("data"), dict):
        return "an event without data"
    return "" if kind in KNOWN else f"unknown event {kind[:80]!r}"


CLAIMED_BY = ("parentId",)
"""A file that does not have this key near its beginning is none of this format."""


def claim(head: bytes, path: str = "") -> Claim:
    """How sure it is: a session begins with `session.start`; any event of the program counts for something."""
    best = NO_CLAIM
    for number, record in enumerate(read_head(head), 1):
        kind, data = kind_of(record), record.get("data")
        if kind not in KNOWN or not isinstance(data, dict) or not isinstance(record.get("id"), str):
            continue
        if "parentId" not in record or not isinstance(record.get("timestamp"), str):
            continue
        if kind == START and isinstance(data.get("sessionId"), str):
            return Claim(score=95, reason=f"record {number} is a `session.start` with an id")
        named = PurePath(path.replace("\\", "/")).name == "events.jsonl"
        best = Claim(score=80 if named else 60, reason=f"record {number} is an event `{kind}` of Copilot CLI")
    return best
