"""Who is speaking in the user's place: the table of texts that Codex or its helpers put there, not a person.

`event_msg.user_message` says outright what was typed. Where a file has none, a user message is judged by how its
parts begin and end. A row is also what the program itself goes by, when `native`: such a message begins no turn, so a
rollback does not count it and a summary does not quote it. Found by asking Codex 0.166.0, row by row.

A conversation that began in Claude Code carries over what that program put in the user's place: such texts are judged
by its own table.
"""

from __future__ import annotations

from typing import NamedTuple

from harken.formats.claude_code.records import by_text
from harken.formats.kit.jsonl import Record
from harken.formats.kit.openai import parts_of, text_of

SUMMARY_OPENING = "Another language model started to solve this problem and produced a summary of its thinking process."
"""How Codex introduces the summary it wrote of its own conversation."""


class Marker(NamedTuple):
    """A text is of this origin when it begins and ends so, whatever the case, white space around it aside."""

    origin: str
    opening: str
    closing: str = ""
    native: bool = True


MARKERS = (
    Marker("environment", "<environment_context>", "</environment_context>"),
    Marker("instructions", "# AGENTS.md instructions", "</INSTRUCTIONS>"),
    Marker("instructions", "<user_instructions>", "</user_instructions>", native=False),
    Marker("turn_aborted", "<turn_aborted>", "</turn_aborted>"),
    Marker("shell_command", "<user_shell_command>", "</user_shell_command>"),
    Marker("skill", "<skill>", "</skill>"),
    Marker("subagent_notification", "<subagent_notification>", "</subagent_notification>"),
    Marker("board_notification", "<agent_message_board_notification>", "</agent_message_board_notification>"),
    Marker("hook", "<hook_prompt", "</hook_prompt>"),
    Marker("plugins", "<recommended_plugins>", "</recommended_plugins>"),
    Marker("goal", "<goal_context>", "</goal_context>"),
    Marker("internal_context", "<codex_internal_context", "</codex_internal_context>"),
    Marker("external_context", "<external_", ">"),
    Marker("warning", "Warning: The maximum number of unified exec processes"),
    Marker("warning", "Warning: apply_patch was requested via exec_command."),
    Marker("warning", "Warning: Your account was flagged for potentially high-risk cyber activity"),
    Marker("review", "<user_action>", "</user_action>", native=False),
    Marker("compact_summary", SUMMARY_OPENING, native=False),
)

NOTICES = frozenset({"environment", "environment_context", "plugins", "recommended_plugins", "internal_context"})
"""Origins of messages in which Codex tells its model about itself."""

_PASSED = "internal_chat_message_metadata_passthrough"
_DEVELOPER = (
    "<permissions instructions>",
    "<model_switch>",
    "<collaboration_mode>",
    "<multi_agent_mode>",
    "<realtime_conversation>",
    "<skills_instructions>",
    "<personality_spec>",
    "<token_budget>",
    "<context_window",
    "<rollout_budget>",
)
"""How the developer messages begin that Codex writes before a turn and takes back with it."""


def marker_of(text: str) -> Marker | None:
    """The row the text is of, if any."""
    stripped = text.strip()
    head = stripped[:120].lower()
    for marker in MARKERS:
        opening, closing = marker.opening.lower(), marker.closing.lower()
        if head.startswith(opening) and stripped[-len(closing) :].lower().endswith(closing):
            return marker
    return None


def provenance_of(item: Record) -> tuple[str, str] | None:
    """`source` and `origin` of a message whose parts say themselves where they come from, as since 0.160."""
    said = item.get(_PASSED)
    kinds = said.get("content_item_kinds") if isinstance(said, dict) else None
    names = [kind for kind in kinds if isinstance(kind, str)] if isinstance(kinds, list) else []
    if any(name.startswith("user.") for name in names):
        return "user", ""
    if not names or "unknown" in names:
        return None
    return "injected", names[0].rpartition(".")[2]


def as_injected(item: Record, origin: str) -> Record:
    """A message that says of its parts that a program put them there, as `provenance_of` reads it. Codex keeps that to
    itself, and its model is sent the parts alone."""
    return {**item, _PASSED: {"content_item_kinds": [f"harken.{origin}"] * len(parts_of(item.get("content")))}}


def origin_of(content: object) -> str:
    """What kind of injected text a user message is; empty for one that a person may have written.

    Every part has to be an injected one: a person's words next to some are a person's message.
    """
    origin = ""
    for part in parts_of(content):
        text = part.get("text")
        if not isinstance(text, str) or not (kind := _kind_of(text)):
            return ""
        origin = origin or kind
    return origin


def _kind_of(text: str) -> str:
    """What kind of injected text it is, Codex's own or Claude Code's; empty for any other."""
    marker = marker_of(text)
    return by_text(text) if marker is None else marker.origin


def speaks(item: Record) -> tuple[str, str]:
    """`source` and `origin` of a user message, as far as the message itself tells."""
    if (said := provenance_of(item)) is not None:
        return said
    origin = origin_of(item.get("content"))
    return ("injected", origin) if origin else ("user", "")


def split_injected(item: Record) -> list[Record]:
    """A message in which Codex says things of several kinds, as one message for each part; any other as it is."""
    content = item.get("content")
    if item.get("role") != "user" or not isinstance(content, list) or len(content) < 2 or speaks(item)[0] != "injected":
        return [item]
    said = item.get(_PASSED)
    kinds = said.get("content_item_kinds") if isinstance(said, dict) else None
    rest = {key: value for key, value in item.items() if key != _PASSED}
    parts = [{**rest, "content": [part]} for part in content]
    if isinstance(kinds, list) and len(kinds) == len(content):
        parts = [{**part, _PASSED: {"content_item_kinds": [kind]}} for part, kind in zip(parts, kinds, strict=True)]
    return parts if len({speaks(part) for part in parts}) > 1 else [item]


def is_contextual(content: object) -> bool:
    """Whether Codex itself takes a user message for context, not for a turn: any part of it is enough."""
    return any(
        (marker := marker_of(text_of(part.get("text")))) is not None and marker.native for part in parts_of(content)
    )


def is_contextual_developer(content: object) -> bool:
    """Whether a developer message is one that Codex writes before a turn and takes back with it."""
    return any(text_of(part.get("text")).lstrip().lower().startswith(_DEVELOPER) for part in parts_of(content))


def begins_turn(item: Record) -> bool:
    """Whether Codex counts the item as the beginning of a turn."""
    name = item.get("type")
    if name == "agent_message":
        return True
    if name != "message" or item.get("role") != "user":
        return False
    return not is_contextual(item.get("content"))
