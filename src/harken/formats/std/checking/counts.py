"""Rules about numbers: those of the summary, and of calls that started a sub-agent, against what is recorded."""

from __future__ import annotations

from collections.abc import Iterator

from harken.formats.std.document import Document, Json
from harken.formats.std.findings import DocumentFinding
from harken.formats.std.parts import inner, instant, number, objects, own_calls, text, values
from harken.formats.std.summary import (
    agent_rows,
    call_span,
    failed_calls,
    review_iterations,
    sub_span,
    task_counts,
    total_duration,
)
from harken.formats.std.verdicts import final_verdict
from harken.formats.std.written_files import handed_in_files

from .links import listed_types, other_type
from .rule_table import found
from .schema import shown

_NEAR = 1000
"""Milliseconds by which a duration may be off."""


def count_findings(document: Document) -> Iterator[DocumentFinding]:
    """What is wrong with the numbers of a document."""
    data, summary = document.data, inner(document.data, "summary")
    yield from _task_calls(data)
    if not summary:
        return
    yield from _count(summary, "tool_calls_count", len(own_calls(data)), "summary")
    yield from _errors(data, summary)
    if instant(data, "completed_at") is not None:  # until then it grows
        yield from _duration(summary, "total_duration_ms", [total_duration(data)], "summary")
    if document.kind == "std-008":
        yield from _tasks(data, summary)
        yield from _agents(data, summary)
        yield from _files(data, summary)


def _count(value: Json, key: str, recorded: int, path: str) -> Iterator[DocumentFinding]:
    said = number(value.get(key))
    if said is not None and said != recorded:
        yield found("count", f"{path}.{key}", f"`{key}` is {shown(said)}, but {recorded} can be counted")


def _duration(value: Json, key: str, readings: list[int | None], path: str) -> Iterator[DocumentFinding]:
    """The standard does not say how long an agent was at work: any of the readings will do. One that nobody knows is
    held against nothing."""
    said, known = number(value.get(key)), [one for one in readings if one is not None]
    if said is not None and known and not any(abs(said - one) <= _NEAR for one in known):
        yield found("summary-duration", f"{path}.{key}", f"`{key}` is {shown(said)}, but by the times it is {known[0]}")


def _task_calls(data: Json) -> Iterator[DocumentFinding]:
    """What a call says of the sub-agent that it started, against that one's sub-session."""
    recorded = {
        text(sub, "sub_session_id"): len(sub["tool_calls"])
        for sub in values(data.get("sub_sessions"))
        if isinstance(sub.get("tool_calls"), list)
    }
    for place, call in objects(data.get("tool_calls")):
        if not (info := inner(call, "subagent_info")):
            continue
        path = f"tool_calls[{place}].subagent_info"
        if (name := text(info, "sub_session_id")) in recorded:
            yield from _count(info, "tool_uses", recorded[name], path)
        counts = [number(one.get("count")) for one in values(info.get("tools_breakdown"))]
        uses, total = number(info.get("tool_uses")), sum(one for one in counts if one is not None)
        if counts and uses is not None and uses != total and None not in counts:
            message = f"the counts of `tools_breakdown` are {shown(total)} together, but `tool_uses` is {shown(uses)}"
            yield found("count", f"{path}.tools_breakdown", message)


def _errors(data: Json, summary: Json) -> Iterator[DocumentFinding]:
    """Of the main agent alone, or of all of them: the standard does not say."""
    said, every = number(summary.get("errors_encountered")), failed_calls(data)
    main = failed_calls({"tool_calls": own_calls(data)})
    if said is not None and said not in (main, every):
        message = f"`errors_encountered` is {shown(said)}, but {every} call{'' if every == 1 else 's'} failed"
        yield found("count", "summary.errors_encountered", message)


def _tasks(data: Json, summary: Json) -> Iterator[DocumentFinding]:
    for key, recorded in task_counts(data).items():
        yield from _count(inner(summary, "tasks"), key, recorded, "summary.tasks")
    yield from _count(summary, "review_iterations", review_iterations(data), "summary")
    said, last = text(summary, "final_verdict"), final_verdict(data)
    if said and said != last:
        message = f"the last review says {shown(last)}" if last else "no review has one"
        yield found("summary-verdict", "summary.final_verdict", f"`final_verdict` is {shown(said)}, but {message}")


# -- agents ------------------------------------------------------------------------------------------------------------


def _agents(data: Json, summary: Json) -> Iterator[DocumentFinding]:
    rows = list(_rows(summary.get("agents")))
    if not rows and not isinstance(summary.get("agents"), (list, dict)):
        return
    expected = {row["agent_id"]: row for row in agent_rows(data)}
    readings = _readings(data)
    types = listed_types(data)
    for path, row in rows:
        if not (name := text(row, "agent_id")):
            continue
        yield from other_type(row, types, path)
        if name not in expected:
            yield found("summary-agents", f"{path}.agent_id", f"{shown(name)} did not take part")
            continue
        yield from _count(row, "tool_calls_count", expected[name]["tool_calls_count"], path)
        if expected[name]["status"] != "in_progress":
            yield from _duration(row, "duration_ms", [expected[name]["duration_ms"], *readings.get(name, [])], path)
    listed = {text(row, "agent_id") for _, row in rows}
    missing = [name for name in expected if name not in listed]  # in the order of the document, every time
    for name in missing if all(text(row, "agent_id") for _, row in rows) else ():
        yield found("summary-agents", "summary.agents", f"there is no row for {shown(name)}")
    yield from _agent_counts(inner(summary, "agent_counts"), len(expected))


def _rows(agents: object) -> Iterator[tuple[str, Json]]:
    """The rows, in either shape."""
    if isinstance(agents, list):
        yield from ((f"summary.agents[{place}]", row) for place, row in objects(agents))
    elif isinstance(agents, dict):
        for key, value in agents.items():
            if isinstance(value, list):
                yield from ((f"summary.agents.{key}[{place}]", row) for place, row in objects(value))
            elif isinstance(value, dict):
                yield f"summary.agents.{key}", value


def _readings(data: Json) -> dict[str, list[int | None]]:
    """Other ways to say how long an agent was at work: all its calls or sub-sessions one after the other; for the
    orchestrator also the whole session."""
    found: dict[str, list[int | None]] = {}
    totals: dict[str, int] = {}
    for sub in values(data.get("sub_sessions")):
        name, span = text(inner(sub, "agent"), "agent_id"), sub_span(sub)
        totals[name] = totals.get(name, 0) + ((span[1] - span[0]) // 1000 if span else 0)
    for name, total in totals.items():
        found.setdefault(name, []).append(total)
    main = text(inner(inner(data, "collaboration"), "orchestrator"), "agent_id")
    spans = [span for call in own_calls(data) if (span := call_span(call))]
    found.setdefault(main, []).append(sum(end - start for start, end in spans) // 1000)
    found[main].append(total_duration(data))
    return found


def _agent_counts(counts: Json, agents: int) -> Iterator[DocumentFinding]:
    if not counts:
        return
    yield from _count(counts, "total", agents, "summary.agent_counts")


def _files(data: Json, summary: Json) -> Iterator[DocumentFinding]:
    """What developers hand in stands in the summary, as created or as modified."""
    lists = [summary.get(key) for key in ("files_created", "files_modified")]
    if not all(isinstance(one, list) for one in lists):
        return
    listed = {path for one in lists if isinstance(one, list) for path in one if isinstance(path, str)}
    for path in handed_in_files(data):
        if path not in listed:
            yield found("summary-files", "summary", f"{shown(path)} was changed by a sub-agent, but is not listed")
