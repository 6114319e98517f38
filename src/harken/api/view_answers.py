"""What the views of a session tell, value by value. Agents and messages are named by their ids."""

from __future__ import annotations

from .base import ApiAnswer


class DialogAnswer(ApiAnswer, frozen=True, kw_only=True):
    """One piece of content, in the words of the one who said it."""

    message_id: str
    """The message."""
    content: str
    """What was said."""
    agent_id: str | None
    """Who said it, or made it for others; null for somebody outside the session."""


class PerspectiveAnswer(ApiAnswer, frozen=True, kw_only=True):
    """One thing as one agent lived it."""

    message_id: str
    """The message."""
    agent_id: str
    """The agent."""
    kind: str
    """`heard`, `said`, `action`, `received`, `thought` or `system`."""
    content: str
    """What it was."""
    speaker: str | None
    """Who first said what was heard; null where that is not an agent of the session."""
    time: str | None
    """When."""


class HeardAnswer(ApiAnswer, frozen=True, kw_only=True):
    """One delivery of a content to one agent."""

    agent_id: str
    """Who heard it."""
    message_id: str
    """The entry in the hearer's transcript."""
    time: str | None
    """When."""
    content: str
    """The wording that was heard."""
    hops: int
    """Deliveries between the original and this one; 0 where the original itself was put before the agent."""
    changed: bool
    """Whether the wording differs from the original, the `[Name]: ` before it apart."""


class CompiledAnswer(ApiAnswer, frozen=True, kw_only=True):
    """A tool result that was put together from a content, perhaps among others."""

    agent_id: str
    """Who got the result."""
    message_id: str
    """The result."""
    time: str | None
    """When."""


class FlowAnswer(ApiAnswer, frozen=True, kw_only=True):
    """One piece of content on its way."""

    message_id: str
    """The message it was first said in."""
    content: str
    """What was said."""
    agent_id: str | None
    """Who said it; null for somebody outside the session."""
    source: str | None
    """Where it came from if no agent said it: `user` or `initial` (a person), `injected` (a notice of the runtime, the
    question to a hook), empty where nobody knows; null where an agent said it."""
    time: str | None
    """When."""
    causes: list[str]
    """The messages that triggered it."""
    heard: list[HeardAnswer]
    """Everybody it came to."""
    results: list[CompiledAnswer]
    """Tool results that name it among their causes."""


class TreeAnswer(ApiAnswer, frozen=True, kw_only=True):
    """One agent in the tree, parents before their children."""

    agent_id: str
    """Its id."""
    name: str
    """What it is called; its id where it has no name."""
    role: str
    """`root`, `child` or `hook`, as far as the session says."""
    parent: str | None
    """The agent that made it."""
    depth: int
    """How far below the root it stands."""
    language_model: str
    """The model it speaks with, as far as the session says."""
    created: str | None
    """The message that created it, where there is one."""
    terminated: str | None
    """The message that ended it, where there is one."""
    messages: int
    """Prompts and responses of its transcript."""


class TimelineAnswer(ApiAnswer, frozen=True, kw_only=True):
    """One event in one line."""

    message_id: str
    """The message."""
    time: str | None
    """When."""
    agent_id: str | None
    """Whose it is."""
    kind: str
    """`said`, `heard`, `action`, `received`, `system`, `thought`, `text`, `created`, `terminated`, `edited`, or the
    event's own type."""
    content: str
    """What it says; of an action all that the tool was called with."""
    doing: str
    """Of an action: the same in a few words, as `Bash: pytest -q`; empty for others."""
    links: list[str]
    """The messages it repeats, was triggered by or answers."""


class TraceAnswer(TimelineAnswer, frozen=True, kw_only=True):
    """One event on the way of a message."""

    step: str
    """`before` (it came from this), `this`, or `after` (the same content again, or caused by it)."""


class SequenceAnswer(ApiAnswer, frozen=True, kw_only=True):
    """Somebody said something to somebody."""

    message_id: str
    """The message."""
    time: str | None
    """When."""
    speaker: str | None
    """Who said it; null for somebody outside the session."""
    source: str | None
    """Where it came from if no agent said it, as in the flow; null where one did."""
    hearers: list[str]
    """Who heard it."""
    returned: list[str]
    """Agents that got it in a tool result."""
    content: str
    """What was said."""
    changed: list[str]
    """Those among the hearers who heard it in another wording."""


class InterventionAnswer(ApiAnswer, frozen=True, kw_only=True):
    """One time that something did not arrive as it was meant."""

    kind: str
    """`changed`; `blocked` (a call or a prompt); `withheld` (a text not let through); `sent back` (to be said anew)."""
    hook: str | None
    """The hook's name, as the log gives it or lets one see it."""
    agent_id: str
    """Who heard the changed wording, or whose call or text was refused."""
    message_id: str
    """The delivery, or where the refusal stands."""
    original: str
    """The message that was meant."""
    speaker: str | None
    """Who said it."""
    said: str
    """What was said."""
    heard: str
    """What was heard instead."""
    kept_from: list[str] | None
    """Whom a withheld text did not reach, by agent id; null where the log does not say; empty for the other kinds."""
    reason: str | None
    """Why, where the hook said so."""
    time: str | None
    """When."""


class DiffPieceAnswer(ApiAnswer, frozen=True, kw_only=True):
    """A run of text that stayed, went or came."""

    op: str
    """`same`, `removed` or `added`."""
    text: str
    """The text."""


class ComparisonAnswer(ApiAnswer, frozen=True, kw_only=True):
    """One delivery beside its original."""

    message_id: str
    """The delivery."""
    original: str
    """The message that was meant."""
    speaker: str | None
    """Who said it."""
    agent_id: str
    """Who heard it."""
    label: str
    """What delivery put before the words; not a change."""
    said: str
    """What was said."""
    heard: str
    """What was heard."""
    changed: bool
    """Whether the two differ."""
    diff: list[DiffPieceAnswer]
    """The words that stayed, went and came, in reading order."""


class PathStepAnswer(ApiAnswer, frozen=True, kw_only=True):
    """A station on the way to an agent."""

    message_id: str
    """The message."""
    agent_id: str | None
    """Whose it is."""
    kind: str
    """What it was to that agent, as in the timeline."""
    content: str
    """What it says."""


class KnowsAnswer(ApiAnswer, frozen=True, kw_only=True):
    """Whether something reached an agent, and how."""

    agent_id: str
    """The agent."""
    knows: bool | None
    """Whether it did; null where nothing that can be read brought it, and records that nobody can read might have."""
    how: str | None
    """`said`, `made`, `heard`, `received`, `did`, `told` (its instructions), `reminded` (a summary of its own past)."""
    message_id: str | None
    """The agent's own entry that brought it."""
    time: str | None
    """When."""
    changed: bool
    """Whether it came in another wording."""
    forgotten: bool
    """Whether all that brought it has since been cut from the agent's transcript, or folded into a summary."""
    path: list[PathStepAnswer]
    """From the original to the agent's own entry."""


class ProblemAnswer(ApiAnswer, frozen=True, kw_only=True):
    """A line of a session log that is wrong, or could not be read at all."""

    line: int
    """Its number."""
    problem: str
    """What is wrong with it."""


class ProblemCounts(ApiAnswer, frozen=True, kw_only=True):
    """What was found in a session."""

    problems: int
    """Lines that are wrong, told or not: of each kind a thousand are told."""
    records: int
    """Records that are there."""
    agents: int
    """Agents that are named."""


class ProblemsReport(ApiAnswer, frozen=True, kw_only=True):
    """The last line about the problems of a session."""

    report: ProblemCounts
    """Everything together."""
