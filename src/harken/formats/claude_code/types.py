"""The record and block types that are known, so that what is new is noticed, kept and counted."""

from __future__ import annotations

from .records import Line

CONVERSATION = frozenset({"user", "assistant"})
SIDE = frozenset(
    {
        "summary", "custom-title", "ai-title", "tag", "agent-name", "agent-color", "agent-setting", "mode",
        "permission-mode", "repl-mode", "last-prompt", "file-history-snapshot", "queue-operation", "pr-link",
        "frame-link", "worktree-state", "bridge-session", "relocated", "attribution-snapshot", "speculation-accept",
        "content-replacement", "continued-in", "derived-from", "tools-used", "atis-latch", "isolation-latch",
        "ended-by-model", "history-suppression", "dev-mods", "session-owner", "cost-state", "api-request",
        "api-request-shape", "api-request-blob", "result", "started",
    }
)  # fmt: skip
"""Records beside the tree: titles, modes, pointers, bookkeeping. Kept, not conversation."""
FAMILIES = ("marble-origami-", "data-flow-", "artifact-")
"""Groups of side records that newer builds keep adding to."""
BLOCKS = frozenset(
    {
        "text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image", "document", "server_tool_use",
        "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result", "mcp_tool_use",
        "mcp_tool_result", "tool_reference", "search_result", "container_upload", "fallback",
    }
)  # fmt: skip
"""The content blocks a message may hold."""

RESPONSE, THINKING, CALL, RESULT = "response", "thinking", "call", "result"
_SAYS = {
    "text": RESPONSE,
    "thinking": THINKING,
    "redacted_thinking": THINKING,
    "tool_use": CALL,
    "server_tool_use": CALL,
    "mcp_tool_use": CALL,
}

_KNOWN = SIDE | CONVERSATION | {"system", "attachment", "progress"}


def says(block: object) -> str:
    """What a block of this type is when the model writes it; empty for one that is none of the four."""
    if not isinstance(block, str):
        return ""
    return _SAYS.get(block) or (RESULT if block.endswith("_tool_result") else "")


def known_type(name: object) -> bool:
    """Whether records of this type have been seen before."""
    return isinstance(name, str) and (name in _KNOWN or name.startswith(FAMILIES))


def is_known(line: Line) -> bool:
    """Whether the reader makes sense of the whole record; the same answer that `read` gives, without reading."""
    if line.type not in CONVERSATION:
        return known_type(line.type)
    content = line.message.content if line.message is not None else None
    if content is None:
        return False
    return isinstance(content, str) or all(block.type in BLOCKS for block in content)
