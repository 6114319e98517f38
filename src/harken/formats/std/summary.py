"""The summary that a document should have, from its calls, its sub-sessions and its messages.

Whatever is not as it should be in the document is passed over here: saying so is the business of `rules`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .document import Json, kind_of
from .parts import (
    agents,
    assigned_task,
    begun,
    inner,
    instant,
    is_review,
    number,
    over,
    own_calls,
    own_outcome,
    requested_reviews,
    text,
    values,
)
from .verdicts import final_verdict
from .written_files import written_files

_MS = 1000
FromTo = tuple[int, int]
"""From when to when, as instants."""

_ENDED = {"success": "completed", "failed": "failed", "in_progress": "in_progress"}
"""The status of a session, as that of an agent."""


def computed_summary(data: Json) -> Json:
    """The summary of a document. An optional field is absent where nothing is known of it; a required duration that
    nobody knows is 0 (`unknown_durations` lists them)."""
    return _filled(known_summary(data))


def unknown_durations(data: Json) -> list[str]:
    """The paths of durations in the summary that nothing in the document tells."""
    known = known_summary(data)
    rows = known.get("agents", [])
    found = ["summary.total_duration_ms"] if known["total_duration_ms"] is None else []
    if isinstance(rows, list):
        return found + [f"summary.agents[{at}].duration_ms" for at, row in enumerate(rows) if _is_unknown(row)]
    if _is_unknown(rows["architect"]):
        found.append("summary.agents.architect.duration_ms")
    found += [
        f"summary.agents.developers[{at}].duration_ms" for at, row in enumerate(rows["developers"]) if _is_unknown(row)
    ]
    return found + (["summary.agents.reviewer.duration_ms"] if _is_unknown(rows.get("reviewer")) else [])


def known_summary(data: Json) -> Json:
    """The same, with None for a duration that nobody knows."""
    created, modified = written_files(data)
    found: Json = {
        "total_duration_ms": total_duration(data),
        "tool_calls_count": len(own_calls(data)),
        "files_created": created,
        "files_modified": modified,
    }
    if failed := failed_calls(data):
        found["errors_encountered"] = failed
    if kind_of(data) == "std-008":
        found["agents"] = _by_role(agent_rows(data))
        found["tasks"] = task_counts(data)
        found["review_iterations"] = review_iterations(data)
        if verdict := final_verdict(data):
            found["final_verdict"] = verdict
    return found


# -- durations ---------------------------------------------------------------------------------------------------------


def total_duration(data: Json) -> int | None:
    """Milliseconds from `created_at` to `completed_at`; where one is not known, from the first or to the last instant
    that is."""
    start, end = begun(data), over(data)
    if start is None or end is None:
        spans = [span for call in values(data.get("tool_calls")) if (span := call_span(call))]
        spans += [span for sub in values(data.get("sub_sessions")) if (span := sub_span(sub))]
        said = [at for one in values(data.get("messages")) if (at := instant(one, "timestamp")) is not None]
        start = min([*said, *(span[0] for span in spans)], default=None) if start is None else start
        end = max([*said, *(span[1] for span in spans)], default=None) if end is None else end
    return None if start is None or end is None or end < start else (end - start) // _MS


def call_span(call: Json) -> FromTo | None:
    """From when to when a call took: as its times say, else as its duration does."""
    start, end = instant(call, "started_at"), instant(call, "ended_at")
    took = number(call.get("duration_ms"))
    if start is None:
        return None
    if end is None and took is not None:
        end = start + int(took * _MS)
    return (start, end) if end is not None and end >= start else None


def sub_span(sub: Json) -> FromTo | None:
    """From when to when a sub-session took; one that did not end, to its last instant that is known."""
    start, end = instant(sub, "started_at"), over(sub)
    if start is None or end is None:
        spans = [span for call in values(sub.get("tool_calls")) if (span := call_span(call))]
        start = min((span[0] for span in spans), default=None) if start is None else start
        end = max((span[1] for span in spans), default=None) if end is None else end
    return (start, end) if start is not None and end is not None and end >= start else None


def milliseconds(spans: Iterable[FromTo]) -> int:
    """How long the spans are together; what several have in common counts once."""
    total, until = 0, None
    for start, end in sorted(spans):
        if until is None or start > until:
            total, until = total + end - start, end
        elif end > until:
            total, until = total + end - until, end
    return total // _MS


# -- agents ------------------------------------------------------------------------------------------------------------


def agent_rows(data: Json) -> list[Json]:
    """What each agent did, in numbers, the orchestrator first."""
    main = text(inner(inner(data, "collaboration"), "orchestrator"), "agent_id")
    subs: dict[str, list[Json]] = {}
    for sub in values(data.get("sub_sessions")):
        subs.setdefault(text(inner(sub, "agent"), "agent_id"), []).append(sub)
    calls = own_calls(data)
    status = _ENDED.get(text(data, "status"), "completed")
    return [
        _row(agent, subs.get(name, []), calls if name == main else [], "" if name != main else status, status)
        for name, agent in agents(data).items()
    ]


def _row(agent: Json, subs: list[Json], calls: list[Json], own_status: str, otherwise: str) -> Json:
    """An agent that made calls of the main list is as the session is; any other as its last sub-session is."""
    spans = [span for call in calls if (span := call_span(call))] + [span for sub in subs if (span := sub_span(sub))]
    is_idle = not calls and not subs
    row: Json = {"agent_id": agent["agent_id"], "agent_type": text(agent, "agent_type")}
    if role := text(agent, "role_category"):
        row["role_category"] = role
    return {
        **row,
        "tool_calls_count": len(calls) + sum(len(values(sub.get("tool_calls"))) for sub in subs),
        "duration_ms": milliseconds(spans) if spans or is_idle else None,
        "status": own_status or _status_of(subs) or otherwise,
    }


def _status_of(subs: list[Json]) -> str:
    """That of the last one: a task that failed may have been done at the second attempt."""
    found = [_ENDED[status] for sub in subs if (status := text(sub, "status")) in _ENDED]
    return "in_progress" if "in_progress" in found else found[-1] if found else ""


def _by_role(rows: list[Json]) -> Any:
    """The rows as the standard has them, where there is a place for each: one architect, developers, at most one
    reviewer; else a list."""
    types = [row["agent_type"] for row in rows]
    fits = types.count("architect") == 1 and types.count("reviewer") <= 1
    if not fits or set(types) - {"architect", "developer", "reviewer"}:
        return rows
    found: Json = {"architect": rows[types.index("architect")]}
    found["developers"] = [row for row in rows if row["agent_type"] == "developer"]
    if "reviewer" in types:
        found["reviewer"] = rows[types.index("reviewer")]
    return found


# -- tasks, reviews, errors --------------------------------------------------------------------------------------------


def task_counts(data: Json) -> Json:
    """How many tasks there were, and how they ended; reviews are none. A task is known by its id: a second attempt at
    it is not another one, and its last end counts."""
    requested, reviews = requested_reviews(data), set[str]()
    ends: dict[object, str] = {}
    for place, sub in enumerate(values(data.get("sub_sessions"))):
        name = text(inner(sub, "task"), "task_id")
        if is_review(sub, requested):
            reviews.add(name)
        else:
            ends[name or place] = _ENDED.get(text(sub, "status"), "")
    told: dict[object, str] = {}
    for message in values(data.get("messages")):
        payload = inner(message, "payload")
        if message.get("message_type") == "task_assignment":
            told.setdefault(assigned_task(message), "")
        elif message.get("message_type") == "task_completion" and (name := text(payload, "task_id")) in told:
            told[name] = text(payload, "status") or "completed"
    ends = {**{name: end for name, end in told.items() if name and name not in reviews}, **ends}
    found = list(ends.values())
    return {"total": len(found), "completed": found.count("completed"), "failed": found.count("failed")}


def review_iterations(data: Json) -> int:
    """How many reviews were asked for; in a document without messages, how many there were."""
    messages = values(data.get("messages"))
    if not messages:
        return sum(is_review(sub, set()) for sub in values(data.get("sub_sessions")))
    return sum(message.get("message_type") == "review_request" for message in messages)


def failed_calls(data: Json) -> int:
    """How many calls failed, of all agents."""
    calls = own_calls(data) + [
        call for sub in values(data.get("sub_sessions")) for call in values(sub.get("tool_calls"))
    ]
    return sum(map(has_failed, calls))


def has_failed(call: Json) -> bool:
    """Whether a call says that it failed, in whatever words."""
    return own_outcome(call) == "failed"


def _filled(known: Json) -> Json:
    """The summary with 0 for what is required and not known."""

    def fill(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: fill(inside) for key, inside in value.items()}
        if isinstance(value, list):
            return [fill(inside) for inside in value]
        return 0 if value is None else value

    return {key: fill(value) for key, value in known.items()}


def _is_unknown(row: Json | None) -> bool:
    return row is not None and row["duration_ms"] is None
