"""What a document says beside its calls and conversations: an import keeps it as one record, so that an export says it
again in the same words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from harken.events import Event, Output

from .categories import tool_category
from .document import Json
from .json_text import loads_kept
from .models import CATEGORIES
from .parts import inner, text, values

_KEY = "x_harken_document"
_START = b'{"type":"session_document","x_harken_document":'
"""How the record begins; nobody else's does."""
_KEPT = ("created_at", "completed_at", "status", "collaboration", "messages")
_TOLD = frozenset({"tool_calls", "x_harken_conversation"})
"""What the events of a sub-session tell."""


def skeleton_of(data: Json, calls: Mapping[str, object]) -> Json:
    """The record that is kept of a document; nothing of one that tells of one agent alone, whose events say next to
    all. `calls` are its calls, by the records that they are."""
    if is_of_one(data):
        return {}
    kept = {key: data[key] for key in _KEPT if key in data}
    subs = values(data.get("sub_sessions"))
    kept["sub_sessions"] = [{key: value for key, value in sub.items() if key not in _TOLD} for sub in subs]
    if categories := {name: said for name, call in calls.items() if (said := own_category(call))}:
        kept["tool_categories"] = categories
    return {"type": "session_document", _KEY: kept}


def is_of_one(data: Json) -> bool:
    """Whether a document tells of one agent alone."""
    return not any(map(data.get, ("collaboration", "sub_sessions", "messages")))


def own_category(call: object) -> str:
    """The category that a document gives a call, where that is another than the one by its tool; else empty."""
    said = text(call, "tool_category")
    told = tool_category(text(call, "tool_name"), inner(inner(call, "input"), "params"))
    return said if said in CATEGORIES and said != told else ""


def is_skeleton(event: Event) -> bool:
    """Whether an event is such a record."""
    return isinstance(event, Output) and not event.why and event.raw.startswith(_START)


def skeleton_among(events: Iterable[Event]) -> Json:
    """What the document of a session said beside its events; empty where the session is of none, or of several."""
    found = [event.raw for event in events if isinstance(event, Output) and is_skeleton(event)]
    return inner(loads_kept(found[0]), _KEY) if len(found) == 1 else {}


def subs_by_agent(skeleton: Json) -> dict[str, list[Json]]:
    """The sub-sessions of each agent, as the document has them."""
    found: dict[str, list[Json]] = {}
    for sub in values(skeleton.get("sub_sessions")):
        agent = sub.get("agent")
        if name := agent if isinstance(agent, str) else text(agent, "agent_id") or text(sub, "sub_session_id"):
            found.setdefault(name, []).append(sub)
    return found
