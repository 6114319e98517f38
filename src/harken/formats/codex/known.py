"""Which records are known not to be conversation, so that only what is new or damaged counts as opaque."""

from __future__ import annotations

from harken.formats.kit.openai import ITEMS, Record, text_of

from .records import EVENT, ITEM, STATE, WRAPPED

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
