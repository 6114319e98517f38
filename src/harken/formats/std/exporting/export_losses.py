"""What is in a session and in no document of it."""

from __future__ import annotations

from collections import Counter
from itertools import takewhile

from harken.events import (
    AgentTerminated,
    Error,
    Event,
    Metric,
    Output,
    PieceOfText,
    Prompt,
    Recovery,
    Response,
    System,
    Thinking,
    ToolCall,
    ToolResult,
    TranscriptEdit,
)
from harken.formats.base import Loss
from harken.formats.std.beside import annotations_in, is_beside
from harken.formats.std.document import Json
from harken.formats.std.findings import OLD
from harken.formats.std.parts import inner
from harken.formats.std.skeleton import is_skeleton

from .as_said import Unsaid
from .endings import CLOSING
from .spawning import SessionTree

_WHY = "STD-001 has no place for it"
_PLACE = "the place of what was asked"
_REASONS = {
    _PLACE: "a document of STD-001 has it before all calls",
    "records that are no conversation": "a document tells of what was said, heard and done",
    "records that could not be read": "nobody knows what they say",
    "bytes that are no text": "JSON holds text alone; they are written as U+FFFD",
    "what a recorder was told": "the document beside the log has its tasks, outputs and verdicts as they were told",
}
_RECORDED = frozenset({"recording_closed", "recorded_message"})
"""Notices by which a log is that of a recording: what they carry is for the recorder's own document."""
_KINDS: tuple[tuple[type[Event] | tuple[type[Event], ...], str], ...] = (
    ((Response, PieceOfText), "what agents said"),
    (Prompt, "what agents heard"),
    (Thinking, "thoughts"),
    (System, "instructions and notices"),
    (Metric, "counts of tokens"),
    (Error, "errors of the runtime"),
    (TranscriptEdit, "changes to a transcript"),
    (AgentTerminated, "ends of agents"),
    ((Output, Recovery), "records that are no conversation"),
)


def losses_of(tree: SessionTree, lost: Counter[str], asked: Prompt | None, *, with_agents: bool) -> list[Loss]:
    """The losses; `lost` counts what a document with agents leaves out, and `asked` is what became `user_prompt`."""
    found = lost if with_agents else _without_agents(tree, asked)
    if not tree.said:
        told = (event for event in tree.events if isinstance(event, System) and event.subtype in _RECORDED)
        found["what a recorder was told"] = sum(1 for _ in told)
    if not with_agents:
        found["what a document calls its agents"] += bool(inner(tree.said, "collaboration"))
    return [Loss(what=what, count=count, why=_REASONS.get(what, _WHY)) for what, count in found.items() if count]


def losses_of_words(said: Json, unsaid: Unsaid) -> list[Loss]:
    """What is written otherwise than the document has it, since it breaks the standard."""
    listed = said.get("messages")
    count = len(unsaid.messages)
    if unsaid.is_without_messages:
        count = len(listed) if isinstance(listed, list) else 0
    told = "the events tell them" if unsaid.is_without_messages else "they are told as feedback, with what they were"
    why = "they break the standard: {}; a repair of the document tells where"
    found = [
        Loss(what="messages in the words of the document", count=count, why=why.format(told)),
        Loss(
            what="outputs as the document has them",
            count=len(unsaid.outputs),
            why=why.format("they are the data of generic ones"),
        ),
    ]
    return [loss for loss in found if loss.count]


def _is_field(event: Event, tree: SessionTree) -> bool:
    """Whether a field of the document says it: how the session ended, its title or description where nobody asked for
    anything, and a summary in words that a document had."""
    match event:
        case System():
            return event.subtype in CLOSING
        case Prompt():
            return event.origin in ("task_title", "task_description")
        case Response():
            return bool(event.content) and event.content == inner(tree.beside, "fields").get(OLD + "summary")
    return False


def _without_agents(tree: SessionTree, asked: Prompt | None) -> Counter[str]:
    """What a document of one agent leaves out: everything but that agent's calls and what it was asked first."""
    found: Counter[str] = Counter()
    calls = {event.id for event in tree.main_events if isinstance(event, ToolCall)}
    annotations = annotations_in(tree.beside)
    for event in tree.events:
        is_own = event.agent_id in (tree.main, "")
        if isinstance(event, ToolCall):
            found["calls of sub-agents"] += not is_own
        elif isinstance(event, ToolResult):
            found["results of sub-agents"] += not is_own
            found["results without a call"] += is_own and event.id not in calls
        elif isinstance(event, Output) and event.why:
            found["records that could not be read"] += 1
        elif not (is_skeleton(event) or is_beside(event) or event.message_id in annotations or _is_field(event, tree)):
            what = next((name for kinds, name in _KINDS if isinstance(event, kinds)), "")
            found[what] += bool(what)
        if isinstance(event, Prompt | ToolResult) and is_own:
            found["pictures"] += len(event.images)
    if asked is not None:
        found["what agents heard"] -= 1  # it is one of these
        before = takewhile(lambda event: event is not asked, tree.main_events)
        found[_PLACE] += any(isinstance(event, ToolCall) for event in before)
    found["sub-agents that no call of the main agent made"] = sum(
        agent.call is None or agent.call.agent_id not in (tree.main, "") for agent in tree.agents.values()
    )
    return found
