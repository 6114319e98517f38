"""Mending what stands at the top of a document: its name, its times, its status, its summary."""

from __future__ import annotations

import copy
import re
from collections import Counter
from typing import Any

from harken import clock
from harken.formats.std.checking.schema import shown
from harken.formats.std.document import Json
from harken.formats.std.findings import OLD
from harken.formats.std.meant_statuses import OTHER_NAMES
from harken.formats.std.models import STATUSES
from harken.formats.std.naming import date_in
from harken.formats.std.parts import (
    agents,
    calls_elsewhere,
    inner,
    instant,
    number,
    objects,
    over,
    own_calls,
    own_outcome,
    text,
    values,
)
from harken.formats.std.spellings import fell_short, known_duration, known_time, known_word

from .mend_shapes import by_type
from .mending import Mender, Mending, Spot, spot_at


def session_id(spot: Spot) -> bool:
    name = spot.doc.name
    return spot.value is None and bool(name) and spot.put(name, "the name of the file", derived=True)


def task_title(spot: Spot) -> bool:
    if spot.value is not None:
        return False
    if spot.take(("title", "task", "name"), str):
        return True
    for name in ("user_prompt", "task_description"):
        if words := text(spot.holder, name).strip().partition("\n")[0][:80].strip():
            return spot.put(words, f"the beginning of `{name}`", derived=True)
    return False


def created_at(spot: Spot) -> bool:
    if spot.value is not None:
        return False
    if spot.take_time(("started_at", "start_time", "timestamp", "date")):
        return True
    if earliest := _earliest(spot.doc.data):
        return spot.put(earliest, "the earliest time in the document", derived=True)
    for name in (text(spot.holder, "session_id"), spot.doc.name):
        if date := date_in(name):
            return spot.put(date, "the date in its name", derived=True)
    return False


def _earliest(data: Json) -> str:
    calls, subs = values(data.get("tool_calls")), values(data.get("sub_sessions"))
    said = [(call, key) for call in calls for key in ("started_at", "ended_at")]
    said += [(sub, key) for sub in subs for key in ("started_at", "completed_at")]
    said += [(message, "timestamp") for message in values(data.get("messages"))]
    said += [(data, "updated_at"), (data, "completed_at")]
    known = [(when, holder[key]) for holder, key in said if (when := instant(holder, key)) is not None]
    return str(min(known)[1]) if known else ""


def status(spot: Spot) -> bool:
    """The status of a session or a sub-session."""
    if isinstance(spot.value, bool):
        return spot.put(STATUSES[not spot.value], "the word that the standard has for it")
    if word := known_word(spot.value, STATUSES):
        return spot.put(word, "the word that the standard has for it")
    if fell_short(spot.value):
        return spot.put("failed", "the nearest word that the standard has", derived=True)
    if spot.value is not None:
        return False
    for name in OTHER_NAMES:
        if word := known_word(spot.holder.get(name), STATUSES):
            return spot.put(word, f"as `{name}` says")
    return False


def own_status(spot: Spot) -> bool:
    """That of the session. One that says when it ended, and not how, has failed where its last call did."""
    if status(spot) or spot.value is not None or over(spot.holder) is None:
        return spot.value in STATUSES
    calls = own_calls(spot.holder)
    has_failed = bool(calls) and own_outcome(calls[-1]) == "failed"
    why = "it ended, and its last call " + ("failed" if has_failed else "did not fail")
    return spot.put("failed" if has_failed else "success", why, derived=True)


def agent(spot: Spot) -> bool:
    if isinstance(spot.value, str) and spot.value:
        return spot.put({"model_id": spot.value}, "the text is its `model_id`")
    return False


def model_id(spot: Spot) -> bool:
    if spot.take(("model", "model_name", "id", "name"), str):
        return True
    whole = Spot(doc=spot.doc, rule=spot.rule, path="agent", holder=spot.doc.data, key="agent")
    return spot.value is None and whole.set_aside("which names no model")


_IDS = {
    "tool_calls": "call_id",
    "sub_sessions": "sub_session_id",
    "messages": "message_id",
    "phase_annotations": "annotation_id",
    "phases": "phase_id",
}


def listed(spot: Spot) -> bool:
    """A list that is an object with the entries by their ids."""
    said, name = spot.value, _IDS[spot.key]
    if not isinstance(said, dict) or not all(isinstance(one, dict) for one in said.values()):
        return False
    keep = any(one.get(name, key) != key for key, one in said.items())
    made = [one if name in one else {name: key, **one} for key, one in said.items()]
    return spot.put(made, f"its entries, each with the name under which it stood as its `{name}`", keep=keep)


def list_or_none(spot: Spot) -> bool:
    if spot.value is not None:
        return listed(spot)
    return spot.put([], "nothing is known of any", derived=True)


def sub_calls(spot: Spot) -> bool:
    """The calls of a sub-session, which may stand elsewhere."""
    if name := calls_elsewhere(spot.holder):
        return spot.take((name,), (list, dict))
    return list_or_none(spot)


def calls(spot: Spot) -> bool:
    """Calls that stand elsewhere; none where the document says nothing of any."""
    if spot.value is not None:
        return listed(spot) or _calls_by_agent(spot)
    if name := calls_elsewhere(spot.holder):
        return spot.take((name,), (list, dict))
    if text(spot.holder, "task_title") and not number(inner(spot.holder, "summary").get("tool_calls_count")):
        return spot.put([], "nothing is known of any", derived=True)
    return False


def _calls_by_agent(spot: Spot) -> bool:
    """An object with the calls of each agent under its id."""
    said, known = spot.value, agents(spot.doc.data)
    if not isinstance(said, dict) or not said or not said.keys() <= known.keys():
        return False
    if not all(isinstance(held, list) and len(values(held)) == len(held) for held in said.values()):
        return False
    made = [{"agent_id": name, **one} for name, held in said.items() for one in held]
    return spot.put(made, "its entries, each with the name under which it stood as its `agent_id`")


def updated_at(doc: Mending) -> None:
    """Filled in a document that is written anew anyway, as its readers do."""
    data = doc.data
    source = next((key for key in ("completed_at", "created_at") if instant(data, key) is not None), None)
    if source == "completed_at" and _is_before(data, "completed_at", "created_at"):
        return  # one of them is wrong, and nobody knows which
    if source is not None and data.get("updated_at") is None:
        data["updated_at"] = data[source]
        said = f"`updated_at` was missing, is {shown(data[source])}: as `{source}` says"
        doc.tell("missing-field", "updated_at", said, derived=True)


def _is_before(data: Json, key: str, other: str) -> bool:
    one, two = instant(data, key), instant(data, other)
    return one is not None and two is not None and one < two


# -- times in other spellings ------------------------------------------------------------------------------------------

TIMES = ("created_at", "completed_at", "updated_at", "started_at", "ended_at", "annotated_at", "timestamp")


def time(spot: Spot) -> bool:
    """A time that is spelled in another way than the standard does, and can be read in one way only. One without a date
    is of the day on which the session began, where that lies before it."""
    found = known_time(spot.value)
    if found is not None:
        return spot.put(found, "the spelling that the standard has")
    begun = text(spot.doc.data, "created_at")
    if not isinstance(spot.value, str) or len(begun) < _TO_MINUTE or instant(spot.doc.data, "created_at") is None:
        return False
    zone = _ZONE.search(begun)
    said = known_time(f"{begun[:10]} {spot.value.strip()}{zone[0] if zone else ''}")
    is_later = said is not None and (clock.parse_instant(said) or 0) >= (instant(spot.doc.data, "created_at") or 0)
    return said is not None and is_later and spot.put(said, "on the day on which the session began", derived=True)


_TO_MINUTE = len("2026-01-02T03:04")
_ZONE = re.compile(r"(?:Z|[+-][0-9]{2}:?[0-9]{2})$", re.I)


# -- the summary -------------------------------------------------------------------------------------------------------


def summary(spot: Spot) -> bool:
    made = copy.deepcopy(spot.doc.summary())
    if spot.value is None:
        return spot.put(made, "counted from the document", derived=True)
    why = "counted from the document; what it said is kept beside it"
    return spot.put(made, why, derived=True)


def summary_field(spot: Spot) -> bool:
    """A field of the summary that is missing or no such thing: what the document comes to."""
    if (took := known_duration(spot.value)) is not None and spot.key == "total_duration_ms":
        return spot.put(took, "so many milliseconds")
    if isinstance(spot.value, str) and by_type(spot):
        return True
    made = copy.deepcopy(spot.doc.summary().get(spot.key))
    return made is not None and spot.put(made, "counted from the document", derived=True)


def task_count(spot: Spot) -> bool:
    made = inner(spot.doc.summary(), "tasks").get(spot.key)
    return by_type(spot) or (made is not None and spot.put(made, "counted from the document", derived=True))


def file_list(spot: Spot) -> bool:
    if isinstance(spot.value, str):
        return spot.put([spot.value] if spot.value else [], "the only entry")
    return summary_field(spot)


def file_item(spot: Spot) -> bool:
    """A file in the summary that is an object: its path."""
    said = spot.value
    found = next((path for key in ("path", "file", "name") if (path := text(said, key))), "")
    if not found:
        return False
    summary_of = spot.doc.data["summary"]
    name = "files_created" if spot.holder is summary_of.get("files_created") else "files_modified"
    summary_of.setdefault(OLD + name, list(spot.holder))
    return spot.put(found, f"its path; the list as it was is kept as `{OLD}{name}`")


def errors_encountered(spot: Spot) -> bool:
    if isinstance(spot.value, list):
        return spot.put(len(spot.value), "how many there are in the list", keep=True)
    return False


def agent_rows(spot: Spot) -> bool:
    """`summary.agents`: where it is no list and has not the agents of the standard, its entries as a list."""
    said = spot.value
    if isinstance(said, dict) and said and all(isinstance(row, dict | list) for row in said.values()):
        known = spot.doc.once("rows", lambda: _rows(spot.doc.summary()))
        rows = [row for key, held in said.items() for row in _entries(key, held, known)]
        return spot.put(rows, "its entries, since these are not the agents that the standard's object has", keep=True)
    return summary_field(spot)


def _entries(key: str, held: Any, known: dict[tuple[str, str], Json]) -> list[Any]:
    """The rows under a key, which is the id of an agent, or its type where only one has that."""
    if isinstance(held, list):
        return held
    name = known.get(("agent_id", key)) or known.get(("agent_type", key)) or {"agent_id": key}
    return [{"agent_id": name["agent_id"], **held}]


def standard_rows(spot: Spot) -> bool:
    """An agent that the standard's object has and `summary.agents` has not: counted from the document, unless there are
    entries of another kind."""
    if spot.value is not None:
        return False
    made = inner(spot.doc.summary(), "agents").get(spot.key)
    if made is not None and spot.holder.keys() <= _STANDARD_ROWS:
        return spot.put(copy.deepcopy(made), "counted from the document", derived=True)
    whole = spot_at(spot.doc, spot.rule, "summary.agents")
    return whole is not None and isinstance(whole.value, dict) and agent_rows(whole)


_STANDARD_ROWS = frozenset({"architect", "developers", "reviewer"})


def agent_row(spot: Spot) -> bool:
    """A row of `summary.agents` that is a text: the id of the agent, or its type where only one has it."""
    if not isinstance(said := spot.value, str):
        return False
    rows = spot.doc.once("rows", lambda: _rows(spot.doc.summary()))
    row = rows.get(("agent_id", said)) or rows.get(("agent_type", said))
    return row is not None and spot.put(dict(row), "the agent of that name, counted from the document", derived=True)


def agent_field(spot: Spot) -> bool:
    """A field of a row of `summary.agents`: from the row that the document comes to."""
    if spot.key == "agent_id" and spot.value is None and spot.take(("agent", "id"), str):
        return True
    if spot.key == "status":
        if word := known_word(spot.value, ("completed", "failed", "in_progress")):
            return spot.put(word, "the word that the standard has for it")
        if fell_short(spot.value):
            return spot.put("failed", "the nearest word that the standard has", derived=True)
    if spot.key == "duration_ms" and (took := known_duration(spot.value)) is not None:
        return spot.put(took, "so many milliseconds")
    name, kind = text(spot.holder, "agent_id"), text(spot.holder, "agent_type") or text(spot.holder, "role")
    rows = spot.doc.once("rows", lambda: _rows(spot.doc.summary()))
    row = rows.get(("agent_id", name)) or (rows.get(("agent_type", kind)) if not name else None)
    made = row.get(spot.key) if row else None
    return made is not None and spot.put(made, "counted from the document", derived=True)


def _rows(made: Json) -> dict[tuple[str, str], Json]:
    """The rows of a summary by the id of the agent, and by its type where only one has it."""
    said: Any = made.get("agents", [])
    rows = values(said)
    if isinstance(said, dict):
        rows = [said["architect"], *said["developers"], *filter(None, [said.get("reviewer")])]
    types = Counter(row["agent_type"] for row in rows)
    found = {("agent_type", row["agent_type"]): row for row in rows if types[row["agent_type"]] == 1}
    return {**found, **{("agent_id", row["agent_id"]): row for row in rows}}


def agent_count(spot: Spot) -> bool:
    """A number of `summary.agent_counts`: counted where each agent says its role, else what is left of the total."""
    known = agents(spot.doc.data)
    said = {key: number(spot.holder.get(key)) for key in _ROLES}
    missing = [key for key, count in said.items() if count is None]
    if spot.key == "total":
        return spot.put(len(known), "counted from the document", derived=True)
    roles = [text(agent, "role_category") for agent in known.values()]
    if all(f"{role}s" in _ROLES for role in roles):
        return spot.put(roles.count(spot.key.removesuffix("s")), "counted from the document", derived=True)
    left = (number(spot.holder.get("total")) or 0) - sum(count or 0 for count in said.values())
    is_left = missing == [spot.key] and left >= 0 and left == int(left)
    return is_left and spot.put(int(left), "what is left of `total`", derived=True)


_ROLES = ("orchestrators", "workers", "validators", "specialists")

SESSION: dict[str, Mender] = {
    "session_id": session_id,
    "task_title": task_title,
    "created_at": created_at,
    "status": own_status,
    "agent": agent,
    "agent.model_id": model_id,
    "tool_calls": calls,
    "phase_annotations": listed,
    "phases": listed,
    "sub_sessions": list_or_none,
    "messages": list_or_none,
    "summary": summary,
    "summary.total_duration_ms": summary_field,
    "summary.tool_calls_count": summary_field,
    "summary.files_created": file_list,
    "summary.files_modified": file_list,
    "summary.files_created[]": file_item,
    "summary.files_modified[]": file_item,
    "summary.errors_encountered": errors_encountered,
    "summary.agents": agent_rows,
    "summary.agents[]": agent_row,
    "summary.agents.architect": standard_rows,
    "summary.agents.developers": standard_rows,
    "summary.tasks": summary_field,
    "summary.tasks.total": task_count,
    "summary.tasks.completed": task_count,
    "summary.tasks.failed": task_count,
    "summary.review_iterations": summary_field,
    **{f"summary.agent_counts.{key}": agent_count for key in (*_ROLES, "total")},
}
"""Field of a session to what mends it."""


def rename(doc: Mending, new: str) -> None:
    """Give the document another id: whoever names it in here follows; others may know the old one, which is kept."""
    old = doc.data.get("session_id")
    if old == new:
        return
    is_made_up = any(change.path == "session_id" and change.derived for change in doc.changes)
    if old is not None and not is_made_up:
        doc.data.setdefault(OLD + "session_id", old)
    doc.data["session_id"] = new
    was = "missing" if old is None else shown(old)
    doc.tell("file-name", "session_id", f"`session_id` was {was}, is {shown(new)}: the name of the file")
    for place, sub in objects(doc.data.get("sub_sessions")):
        if old is not None and sub.get("parent_session_id") == old:
            sub["parent_session_id"] = new
            said = f"`parent_session_id` was {was}, is {shown(new)}: as `session_id` is now"
            doc.tell("file-name", f"sub_sessions[{place}].parent_session_id", said)
