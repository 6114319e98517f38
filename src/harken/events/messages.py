"""What was said: prompts, responses, thinking, and what the system put in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from .base import Event, Image

SHOWN = frozenset(
    {
        "agent", "command", "local_command_output", "bash_input", "bash_output", "interruption", "task_notification",
        "teammate", "plan", "ide",
    }
)  # fmt: skip
"""Kinds of injected prompts that programs show to their user; the others are for the model alone."""


class Prompt(Event, frozen=True, kw_only=True, gc=False):
    """Something was put before the model in the user's place: by a person, another agent, or the harness."""

    kind: ClassVar[str] = "prompt"

    content: str = ""
    source: str = "user"
    """`initial`, `user` (a person), `injected` (another agent or the harness)."""
    origin: str = ""
    """What kind of injected text it is, where a classifier could tell (`task_notification`, `command`, …)."""
    hook: str = ""
    """The hook agent that said it, or changed its wording on the way."""
    label: str = ""
    """What delivery put before the words, where it is not `[Name]: ` with the speaker's name."""
    point: str = ""
    """Where a hook is asked: `prompt`, `tool`, `delivery`, `finished`."""
    call_id: str = ""
    """The call that a hook is asked about."""
    recipients: tuple[str, ...] = ()
    """Who would hear the text that a hook is asked about, by agent id."""
    images: tuple[Image, ...] = ()


class Response(Event, frozen=True, kw_only=True, gc=False):
    """The model said something in words."""

    kind: ClassVar[str] = "response"

    content: str = ""
    model: str = ""
    call_id: str = ""
    """Which of several calls of the message in `cause` asked for it."""


class Thinking(Event, frozen=True, kw_only=True, gc=False):
    """The model's reasoning, or the sealed form of it."""

    kind: ClassVar[str] = "thinking"

    content: str = ""
    signature: str = ""
    """The provider's signature; with empty content the reasoning itself is encrypted."""
    redacted: bool | None = None
    """Whether the provider hid the reasoning (Anthropic's `redacted_thinking`, whose data is the signature here), or
    only gave no words of it (False). None where the words tell, or nobody does."""
    call_id: str = ""
    """Which of several calls of the message in `cause` asked for it."""


def is_asked(event: Prompt) -> bool:
    """Whether whoever is the user said it: a person, or for a sub-agent the agent that started it. What a program put
    there was asked by nobody."""
    return event.source != "injected" or event.origin == "agent"


def asked_first(events: Iterable[Event]) -> str:
    """What was asked first. A session to which nobody gave a name is called after it."""
    said = (event.content for event in events if isinstance(event, Prompt) and is_asked(event))
    return next((words for words in said if words.strip()), "")


def signed_thought(content: str, signature: str, *, redacted: bool) -> Thinking:
    """A thought of a provider that has two kinds without words, which it takes back only as what they were."""
    says_kind = redacted or (signature and not content)
    return Thinking(content=content, signature=signature, redacted=redacted if says_kind else None)


def is_redacted(thought: Thinking) -> bool:
    """Whether a thought goes back as one that was hidden; so does a sealed one without words of which nobody knows."""
    if thought.redacted is not None:
        return thought.redacted
    return bool(thought.signature and not thought.content)


class System(Event, frozen=True, kw_only=True, gc=False):
    """Instructions to the model, or a notice of the runtime (`subtype` says which)."""

    kind: ClassVar[str] = "system"

    subtype: str = ""
    """`instructions`, `init`, `shutdown`, `compact_boundary`, `microcompact_boundary`, `context_truncated`, …"""
    message: str = ""
    metadata: bytes = b""
    """JSON text, verbatim."""
