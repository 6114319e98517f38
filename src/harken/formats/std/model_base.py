"""What the types of `models` are made of: the vocabularies of both standards, and what else a field's rule needs.

- `Literal[…]`: no other value is allowed.
- `Open(…)`: these values are known; another one is worth a note.
- `Extended(…)`: the values of the standard, and those that programs have added, which are worth a note; no other.
- `Advised`: required by the standard, but often missing; that is worth a warning.
- `Any`: several shapes are allowed, and `rules` looks at them itself.

A field without a default is required.
"""

from __future__ import annotations

from typing import Literal

import msgspec

TASK = "Task"
"""The tool that starts a sub-agent, as the standard calls it."""
STATUSES = ("success", "failed", "in_progress")
CATEGORIES = ("perception", "action", "interaction", "planning", "task_management")
MODES = ("multi_agent", "single")
PATTERNS = ("master_worker", "peer_to_peer", "pipeline")
AGENT_TYPES = ("architect", "developer", "reviewer", "challenger", "product_owner", "design_authority")
MESSAGE_TYPES = (
    "task_assignment", "task_progress", "task_completion", "review_request", "review_result", "feedback", "abort",
    "acknowledgment",
)  # fmt: skip
ADDED_MESSAGE_TYPES = ("status_query", "status_response", "status_update")
"""Types that programs have added to those of the standard."""
FINDING_CATEGORIES = ("bug", "security", "performance", "style", "logic")
LEVELS = ("high", "medium", "low")
"""Priorities, and how sure or how relevant something is."""
VERDICTS = ("approved", "changes_requested", "rejected")
PHASE_TYPES = ("understand", "explore", "plan", "execute", "verify", "mixed", "unclassified")
CONTRIBUTIONS = ("file_content", "search_result", "command_output", "knowledge")
CONTEXT_TYPES = (
    "claude_md", "rule", "standard", "skill", "spec", "file", "user_message", "tool_result", "capability",
)  # fmt: skip
DECISION_TYPES = ("tool_selection", "approach", "error_handling", "skip", "retry")

Status = Literal["success", "failed", "in_progress"]
Level = Literal["high", "medium", "low"]
RoleCategory = Literal["orchestrator", "worker", "validator", "specialist"]
ReviewVerdict = Literal["approved", "changes_requested", "rejected"]


def Open(*values: str) -> msgspec.Meta:
    """A vocabulary that may be added to."""
    return msgspec.Meta(extra={"open": values})


def Extended(values: tuple[str, ...], *added: str) -> msgspec.Meta:
    """A vocabulary of the standard, and what programs have added to it; nothing else is allowed."""
    return msgspec.Meta(extra={"known": values, "added": added})


Advised = msgspec.Meta(extra={"advised": True})
"""A field that the standard requires, and whose absence makes a document no less readable."""


class StdObject(msgspec.Struct, frozen=True, kw_only=True):
    """An object in a document."""
