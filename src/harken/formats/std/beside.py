"""The fields of a document that no event tells: descriptions, annotations, what a result says beside its words, fields
that nobody knows. An import keeps them as one record, so that an export has them again in their places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping

from harken.events import Event, Output
from harken.events.base import clean, excerpt

from .copies import CONVERSATION
from .document import Json
from .findings import OLD
from .json_text import loads_kept
from .models import CATEGORIES, MultiAgentSessionSummary
from .parts import (
    asked_of,
    call_duration,
    call_outcome,
    error_words,
    inner,
    instant,
    number,
    text,
    values,
    with_error,
    words_in,
)
from .skeleton import is_of_one, own_category
from .summary import computed_summary

_KEY = "x_harken_fields"
_START = b'{"type":"session_document","x_harken_fields":'
"""How the record begins; nobody else's does."""
_TOLD = frozenset(
    [
        "session_id",
        "task_title",
        "user_prompt",
        "created_at",
        "completed_at",
        "status",
        "tool_calls",
        "sub_sessions",
        "messages",
        "collaboration",
        "summary",
        "agent",
        "x_harken",
        "x_harken_conversation",
    ]
)
"""What the events of a document tell, and the record of what it says of tasks and messages."""
_OLDER = ("title", "steps", "phases")
"""What the fields of the newest generation tell of an older document: a reader must not take it for one again."""
_COUNTED = frozenset(MultiAgentSessionSummary.__struct_fields__)
_OF_CALL = frozenset(
    [
        "call_id",
        "tool_name",
        "tool_category",
        "started_at",
        "ended_at",
        "duration_ms",
        "input",
        "output",
        "subagent_info",
        "x_harken_name",
        "x_harken_id",
        "x_harken_input",
        "x_harken_owner",
        "x_harken_derived",
    ]
)
_OF_OUTPUT = frozenset({"status", "result", "error"})
_SECOND = 1000
"""In milliseconds."""
_COUNTED_CALLS = frozenset({"tool_uses", "tools_breakdown"})
_ASKED_OF_AGENT = frozenset({"subagent_type", "tool_uses"})
_OF_AGENT = frozenset({"subagent_type", "sub_session_id"})
"""What is told of an agent whose calls are recorded."""
_SET_ASIDE = OLD + "call"


def beside_of(data: Json, calls: Mapping[str, object], annotations: list[str]) -> Json:
    """The record that is kept of a document; empty where its events tell everything. `calls` are its calls, by the
    records that they are; `annotations` are the records of its annotations."""
    fields = {key: value for key, value in data.items() if key not in _TOLD and value not in (None, [], {})}
    fields = {OLD + key if key in _OLDER else key: value for key, value in fields.items()}
    if not isinstance(summary := data.get("summary"), dict) and words_in(summary).strip():
        fields[OLD + "summary"] = summary
    title = text(data, "task_title")
    recorded = _recorded(data)
    results = _told_results(data)
    kept_calls = {name: _call(call, recorded, results) for name, call in calls.items() if isinstance(call, dict)}
    for name, kept_of_call in kept_calls.items() if is_of_one(data) else ():
        if category := own_category(calls[name]):
            kept_of_call["tool_category"] = category
    found = {
        "fields": fields,
        "summary": _said_otherwise(inner(data, "summary"), computed_summary(data)),
        "agent": _agent(inner(data, "agent")),
        "title": title if excerpt(clean(title)) != title else "",
        "annotations": annotations,
        "derived": inner(data, "x_harken").get("derived"),
        "calls": {name: kept for name, kept in kept_calls.items() if kept},
    }
    kept = {key: value for key, value in found.items() if value}
    return {"type": "session_document", _KEY: kept} if kept else {}


def _agent(agent: Json) -> Json:
    """What is said of the agent beside its model."""
    kept = {key: value for key, value in agent.items() if key != "model_id"}
    if not isinstance(model := agent.get("model_id"), str | None):
        kept[OLD + "model_id"] = model
    return kept


def _recorded(data: Json) -> dict[str, int]:
    """How many calls are recorded in each sub-session that has any, by its id and by that of the call that began it."""
    counts = [(sub, len(values(sub.get("tool_calls")))) for sub in values(data.get("sub_sessions"))]
    named = {text(sub, key): count for sub, count in counts for key in ("sub_session_id", "triggered_by_call_id")}
    return {name: count for name, count in named.items() if name and count}


def _call(call: Json, recorded: Mapping[str, int], results: Container[str] | None) -> Json:
    """What a call says beside its arguments and the words of its result."""
    kept: Json = {key: value for key, value in call.items() if key not in _OF_CALL} | _unread(call)
    kept |= _lasted(call, results)
    given, output, info = inner(call, "input"), inner(call, "output"), inner(call, "subagent_info")
    if "params" in given:
        told = inner(given, "params").get("description")
        kept["input"] = {
            key: value for key, value in given.items() if key != "params" and (key, value) != ("description", told)
        }
        if asked_of(given) != given["params"] and isinstance(given["params"], dict):
            kept["input"]["params"] = given["params"]
    kept["output"] = {key: value for key, value in output.items() if key not in _OF_OUTPUT}
    kept["output"] |= _words_of(output)
    if output.get("status") not in (None, "") and not call_outcome({"status": output["status"]}):
        kept["output"][OLD + "status"] = output["status"]
    count = recorded.get(text(info, "sub_session_id")) or recorded.get(text(call, "call_id"))
    of_agent = _OF_AGENT if count else {"sub_session_id"}
    kept["subagent_info"] = {
        key: value for key, value in info.items() if key not in of_agent and (key, value) != ("tool_uses", count)
    }
    return {key: value for key, value in kept.items() if value not in (None, {})}


def _lasted(call: Json, results: Container[str] | None) -> Json:
    """How long a call says it took, where that is not from its beginning to its end; and its end, where no result has
    that time. `results` are the calls of which a conversation has one."""
    began, ended, took = instant(call, "started_at"), instant(call, "ended_at"), call_duration(call)
    is_answered = call.get("output") is not None if results is None else text(call, "call_id") in results
    kept: Json = {}
    if ended is not None and ended != began and not is_answered:
        kept["ended_at"] = call["ended_at"]
    if took is not None and took >= 0 and (began is None or ended is None or ended - began != round(took * 1000)):
        kept["duration_ms"] = round(took)
    return kept


def _told_results(data: Json) -> set[str] | None:
    """The ids of calls of which the conversations of a document have a result; None where it has no conversation."""
    parts = [part for part in (data, *values(data.get("sub_sessions"))) if CONVERSATION in part]
    found = {text(entry, "result") for part in parts for entry in values(part[CONVERSATION])}
    return found if parts else None


def _unread(call: Json) -> Json:
    """What a call says in its fields that cannot be read there, so that no event tells it."""
    is_read = {
        "call_id": isinstance(call.get("call_id"), str | int),
        "tool_name": isinstance(call.get("tool_name"), str),
        "tool_category": call.get("tool_category") in CATEGORIES,
        "started_at": instant(call, "started_at") is not None,
        "ended_at": instant(call, "ended_at") is not None,
        "duration_ms": call_duration(call) is not None,
        "subagent_info": isinstance(call.get("subagent_info"), dict),
    }
    return {OLD + key: call[key] for key, known in is_read.items() if not known and call.get(key) not in (None, "")}


def _words_of(output: Json) -> Json:
    """The result and the error of a call that are more than the words of both."""
    result, error = inner(output, "result"), error_words(output)
    is_two = bool(result and error) and with_error(text(result, "display"), error) != text(result, "display")
    kept = {"result": result} if is_two or result.keys() - {"display"} else {}
    if output.get("error") is not None and not isinstance(output["error"], str):
        kept[OLD + "error"] = output["error"]  # the standard has a text there
    return {**kept, "error": error} if is_two else kept


def is_beside(event: Event) -> bool:
    """Whether an event is such a record."""
    return isinstance(event, Output) and not event.why and event.raw.startswith(_START)


def beside_among(events: Iterable[Event]) -> Json:
    """What is kept of the document of a session; empty where the session is of none, or of several."""
    found = [event.raw for event in events if isinstance(event, Output) and is_beside(event)]
    return inner(loads_kept(found[0]), _KEY) if len(found) == 1 else {}


def annotations_in(beside: Json) -> frozenset[str]:
    """The records of annotations, which the document has in a field."""
    found = beside.get("annotations")
    return frozenset(name for name in found if isinstance(name, str)) if isinstance(found, list) else frozenset()


def call_beside(beside: Json, record: str) -> Json:
    """What the document says of the call of this record, and no event."""
    return inner(inner(beside, "calls"), record)


def agent_beside(beside: Json, record: str) -> Json:
    """What the document says of the agent that the call of this record made."""
    return inner(call_beside(beside, record), "subagent_info")


def laid(data: Json, beside: Json, records: Mapping[str, str]) -> Json:
    """A document with these fields in their places. `records` are the records of its calls, by their ids."""
    calls = inner(beside, "calls")

    def with_theirs(given: list[Json]) -> list[Json]:
        return [_with(call, inner(calls, records.get(text(call, "call_id"), ""))) for call in given]

    made = {key: value for key, value in inner(beside, "fields").items() if key not in _TOLD}
    made = {**made, **data, "tool_calls": with_theirs(data["tool_calls"])}
    made["summary"] = _with_summary(data["summary"], inner(beside, "summary"))
    if "sub_sessions" in data:
        made["sub_sessions"] = [{**sub, "tool_calls": with_theirs(sub["tool_calls"])} for sub in data["sub_sessions"]]
    if data.get("task_title") == excerpt(clean(title := text(beside, "title"))) != "":
        made["task_title"] = title  # a session is called by the beginning of it
    if agent := inner(beside, "agent"):
        made["agent"] = {**agent, **inner(data, "agent")}
    return {**{key: made[key] for key in data}, **made}


def _with_summary(counted: Json, said: Json) -> Json:
    """The summary as it is counted, and beside it what the document said otherwise: a file that no call wrote, an error
    that no call was."""
    made = {**{key: value for key, value in said.items() if key not in _COUNTED}, **counted}
    for key, value in _said_otherwise(said, counted).items():
        if key in _COUNTED:
            made.setdefault(OLD + key, value)
    return made


def _said_otherwise(said: Json, counted: Json) -> Json:
    """What a summary says that is not counted, or counted otherwise."""
    return {
        key: value
        for key, value in said.items()
        if key not in _COUNTED
        or not (value in (None, [], {}) or value == counted.get(key) or _is_near(value, counted.get(key)))
    }


def _is_near(said: object, counted: object) -> bool:
    """Whether two numbers are the same but for a rounded second; of none, 0 is as much as nothing said."""
    first, second = number(said), number(counted or 0)
    if first is None or second is None:
        return False
    return first == second or (abs(first - second) < _SECOND and min(first, second) >= _SECOND)


def _with(call: Json, kept: Json) -> Json:
    made = {**kept, **call}
    if (category := kept.get("tool_category")) in CATEGORIES:
        made["tool_category"] = category
    for key in ("input", "output"):
        if key in call and (more := inner(kept, key)):
            made[key] = {**more, **call[key], **more}  # what is kept is what the event has otherwise
        elif key not in call:
            made.pop(key, None)
    if info := inner(kept, "subagent_info"):
        made.pop("subagent_info")
        info = _with_agent(inner(call, "subagent_info"), info)
        made["subagent_info" if info.keys() >= _ASKED_OF_AGENT else OLD + "subagent_info"] = info
    return {**{key: made[key] for key in call}, **made}


def _with_agent(info: Json, kept: Json) -> Json:
    """What a call says of its agent. Where no call of the agent is recorded, the document alone knows how many it made;
    else they are counted, and a document that counts otherwise is kept beside that."""
    if not info.get("tool_uses"):
        known = info.keys() - _COUNTED_CALLS
        return {**info, **{key: value for key, value in kept.items() if key not in known}}
    made = {**info, **{key: value for key, value in kept.items() if key not in info.keys() | _COUNTED_CALLS}}
    for key in sorted(_COUNTED_CALLS & kept.keys()):
        if key not in info and _counts(kept[key]).total() == info["tool_uses"]:
            made[key] = kept[key]
        elif kept[key] != info.get(key) and (key not in info or _counts(kept[key]) != _counts(info[key])):
            made[OLD + key] = kept[key]
    return made


def _counts(breakdown: object) -> Counter[str]:
    """How many calls of each tool there were; a number is of all of them."""
    if not isinstance(breakdown, list):
        return Counter({"": breakdown} if isinstance(breakdown, int) else {})
    found = Counter[str]()
    for one in values(breakdown):
        found[text(one, "tool_name")] += int(number(one.get("count")) or 0)
    return found


def aside(beside: Json, wrong: set[str], wrong_calls: set[str]) -> Json:
    """The same with what is at these paths, and in the calls of these records, under names that the standard does not
    have."""
    tops = {path.partition(".")[0].partition("[")[0] for path in wrong}
    fields = {OLD + key if key in tops else key: value for key, value in inner(beside, "fields").items()}
    made = {**beside, "fields": fields}
    if "agent" in tops:
        made["fields"][OLD + "agent"] = made.pop("agent", None)
    if calls := inner(beside, "calls"):
        made["calls"] = {
            name: {_SET_ASIDE: kept} if name in wrong_calls and _SET_ASIDE not in kept else kept
            for name, kept in calls.items()
        }
    return made
