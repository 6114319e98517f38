"""Mending calls: their names, times, inputs and outputs, and what they added to the context."""

from __future__ import annotations

import json
from typing import Any

from harken import clock
from harken.formats.std.categories import tool_category
from harken.formats.std.checking.schema import shown
from harken.formats.std.document import Json
from harken.formats.std.meant_statuses import calls_with_homes, meant_outcome
from harken.formats.std.models import CATEGORIES
from harken.formats.std.parts import (
    ARGUMENTS,
    CALL_ENDS,
    CALL_IDS,
    CALL_STARTS,
    DURATIONS,
    TOOL_NAMES,
    asked_of,
    call_duration,
    flat_output,
    inner,
    instant,
    number,
    tells_agent,
    text,
    values,
)
from harken.formats.std.spellings import is_stopped, known_duration, known_status, known_word

from .mending import Mender, Spot, path_steps

_OUTCOMES = ("success", "failed")
_INFO, _LINK = "subagent_info", "sub_session_id"
_SHORT = 200
"""Characters of a summary that is made from a longer text."""


def call_id(spot: Spot) -> bool:
    if spot.value is not None:
        return False
    if spot.take(CALL_IDS, str):
        return True
    subs = spot.doc.once("triggers", lambda: _triggers(spot.doc.data))
    name = subs.get(text(inner(spot.holder, "subagent_info"), "sub_session_id"), "")
    if name and spot.doc.claim_id("call", name, lambda: call_ids(spot.doc.data)):
        return spot.put(name, "so the sub-session names the call that started it", derived=True)
    name = spot.doc.free_id("call", "tool-{:03}".format, lambda: call_ids(spot.doc.data))
    return spot.put(name, "made from its place among the calls", derived=True)


def call_ids(data: Json) -> list[str]:
    """The ids of all calls; empty where one has none."""
    lists = [data.get("tool_calls"), *(sub.get("tool_calls") for sub in values(data.get("sub_sessions")))]
    return [text(call, "call_id") for calls in lists for call in values(calls)]


def _triggers(data: Json) -> dict[str, str]:
    """A sub-session to the call that it names as its start."""
    subs = values(data.get("sub_sessions"))
    return {text(sub, "sub_session_id"): text(sub, "triggered_by_call_id") for sub in subs}


def tool_name(spot: Spot) -> bool:
    if spot.take(TOOL_NAMES, str):
        return True
    name = text(spot.holder.get("function"), "name")  # as the interface of a model has it
    return spot.value is None and bool(name) and spot.put(name, "as `function` says")


def category(spot: Spot) -> bool:
    if word := known_word(spot.value, CATEGORIES):
        return spot.put(word, "the word that the standard has for it")
    if not (name := text(spot.holder, "tool_name")):
        return False
    asked = asked_of(inner(spot.holder, "input"))
    word = tool_category(name, asked if isinstance(asked, dict) else {})
    return spot.put(word, f"by the tool {shown(name)}", derived=True)


# -- times -------------------------------------------------------------------------------------------------------------


def started_at(spot: Spot) -> bool:
    if spot.take_time(CALL_STARTS):
        return True
    end, took = instant(spot.holder, "ended_at"), call_duration(spot.holder)
    if end is not None and took is not None and took >= 0 and (said := _written_time(end - int(took * 1000))):
        return spot.put(said, "`ended_at` and `duration_ms` together", derived=True)
    sub = _started_sub(spot)
    began = instant(sub, "started_at")
    if began is not None and (end is None or began <= end):
        return spot.put(sub["started_at"], "when its sub-session began", derived=True)
    before, above = _before(spot)
    for holder, key, what in (
        (before, "ended_at", "the end of the call before"),
        (before, "started_at", "the call before"),
        (above, "started_at", "`started_at`"),
        (above, "created_at", "`created_at`"),
    ):
        start = instant(holder, key)
        if start is not None and (end is None or start <= end):
            return spot.put(holder[key], f"nobody knows; not earlier than {what}", derived=True)
    return end is not None and spot.put(spot.holder["ended_at"], "nobody knows; not later than it ended", derived=True)


def _before(spot: Spot) -> tuple[Json, Json]:
    """The call before this one in its list, and the session or sub-session that has the list."""
    steps = path_steps(spot.path)
    above = spot.doc.data["sub_sessions"][steps[1]] if steps[0] == "sub_sessions" else spot.doc.data
    place = int(steps[-2])
    before = above["tool_calls"][place - 1] if place else {}
    return before if isinstance(before, dict) else {}, above


def _started_sub(spot: Spot) -> Json:
    """The sub-session that a call started. One that ends behind its call is for a reader one that was only launched."""
    return spot.doc.once("subs by call", lambda: subs_by_call(spot.doc.data)).get(text(spot.holder, "call_id"), {})


def ended_at(spot: Spot) -> bool:
    if spot.take_time(CALL_ENDS):
        return True
    start, took = instant(spot.holder, "started_at"), call_duration(spot.holder)
    if start is None:
        return False
    if took is None or took < 0:
        sub = _started_sub(spot)
        if (ended := instant(sub, "completed_at")) is not None and start <= ended:
            return spot.put(sub["completed_at"], "when its sub-session ended", derived=True)
        return spot.put(spot.holder["started_at"], "nobody knows; not earlier than it started", derived=True)
    said = _written_time(start + int(took * 1000))
    return bool(said) and spot.put(said, "`started_at` and `duration_ms` together", derived=True)


def _written_time(when: int) -> str:
    """An instant as the standard writes it; empty for one that no calendar has."""
    if not clock.in_calendar(when):
        return ""
    return clock.format_seconds(when) if when % clock.SECOND == 0 else clock.format_instant(when)


def duration(spot: Spot) -> bool:
    if (said := known_duration(spot.value)) is not None:
        return spot.put(said, "so many milliseconds")
    for name in DURATIONS:
        if isinstance(found := spot.holder.get(name), str) and (said := known_duration(found)) is not None:
            return spot.put(said, f"as `{name}` says, in milliseconds")
    start, end = instant(spot.holder, "started_at"), instant(spot.holder, "ended_at")
    if start is None or end is None or end < start:
        return False
    return spot.put((end - start) // 1000, "from `started_at` to `ended_at`", derived=True)


# -- input -------------------------------------------------------------------------------------------------------------


def call_input(spot: Spot) -> bool:
    said = spot.value
    if isinstance(said, str):
        field = "raw_command" if text(spot.holder, "tool_name").lower() in ("bash", "shell") else "description"
        return spot.put({"params": {}, field: said}, f"the text is its `{field}`")
    if said is not None:
        return spot.put({"params": {"value": said}}, "the value is one of its `params`")
    for name in ARGUMENTS:
        if isinstance(found := spot.holder.get(name), dict):
            return spot.put({"params": found}, f"as `{name}` says")
    if isinstance(found := _json_object(text(spot.holder.get("function"), "arguments")), dict):
        return spot.put({"params": found}, "as `function` says")
    named = {key: spot.holder[key] for key in ("target", "action", "details") if key in spot.holder}
    return spot.put({"params": named}, "what the call itself says" if named else "nothing is known of it", derived=True)


def params(spot: Spot) -> bool:
    said = spot.value
    if isinstance(said, str) and isinstance(read := _json_object(said), dict):
        return spot.put(read, "the object that the text is")
    if said is not None:
        return spot.put({"value": said}, "the value is one of them")
    kept = {key: spot.holder.pop(key) for key in list(spot.holder) if not _is_of_input(key, spot.holder[key])}
    return spot.put(kept, "what stood in `input` itself" if kept else "nothing is known of them", derived=not kept)


def _is_of_input(key: str, value: object) -> bool:
    return (
        key == "params"
        or key.startswith("x_harken")
        or (key in ("description", "raw_command") and isinstance(value, str))
    )


def _json_object(said: str) -> object:
    try:
        return json.loads(said, parse_constant=lambda name: None)
    except (ValueError, RecursionError):
        return None


# -- output ------------------------------------------------------------------------------------------------------------


def call_output(spot: Spot) -> bool:
    said = spot.value
    if said is not None:
        return spot.put({"result": _as_result(said)}, "the value is its `result`")
    made = flat_output(spot.holder)
    if made or _outcome(spot, spot.holder):
        return spot.put(made, "what the call itself says", derived=True)
    return False


def output_status(spot: Spot) -> bool:
    if word := known_word(spot.value, _OUTCOMES):
        return spot.put(word, "the word that the standard has for it")
    if is_stopped(spot.value):
        return spot.put("failed", "the nearest word that the standard has", derived=True)
    if _is_open(spot):
        path, _, _ = spot.path.rpartition(".")
        output = Spot(doc=spot.doc, rule=spot.rule, path=path, holder=_call_above(spot), key="output")
        return output.set_aside("and the call is not over")
    if spot.value is not None and not isinstance(spot.value, bool):
        return False
    if isinstance(spot.value, bool):
        return spot.put(_OUTCOMES[not spot.value], "the word that the standard has for it")
    word = _outcome(spot, _call_above(spot))
    return bool(word) and spot.put(word, "as far as the rest of the document tells", derived=True)


def _is_open(spot: Spot) -> bool:
    """Whether an output says no more than that there is none yet, in a session or a sub-session that goes on."""
    steps, data = path_steps(spot.path), spot.doc.data
    part = data["sub_sessions"][steps[1]] if steps[0] == "sub_sessions" else data
    is_silent = all(value in (None, "", [], {}) for key, value in spot.holder.items() if key != "status")
    is_waiting = known_status(spot.value) == "in_progress" or (
        spot.value in (None, "") and not _outcome(spot, _call_above(spot))
    )
    goes_on = "in_progress" in (data.get("status"), part.get("status"))
    return goes_on and is_silent and is_waiting


def _outcome(spot: Spot, call: Json) -> str:
    """How a call went that does not say so: by its error, by its exit code, else by what it started or is part of."""
    subs = spot.doc.once("subs by call", lambda: subs_by_call(spot.doc.data))
    steps, data = path_steps(spot.path), spot.doc.data
    part = data["sub_sessions"][steps[1]] if steps[0] == "sub_sessions" else data
    if call.get("x_harken_owner"):  # it is a sub-agent's, and among the main calls as well
        homes = spot.doc.once("homes of calls", lambda: calls_with_homes(data))
        _, part = homes.get(text(call, "call_id"), (call, part))
    return meant_outcome(call, subs.get(text(call, "call_id"), {}), part)


def output_result(spot: Spot) -> bool:
    field = "display" if isinstance(spot.value, str) else "value"
    return spot.put(_as_result(spot.value), f"the {'text' if field == 'display' else 'value'} is its `{field}`")


def _as_result(said: object) -> Json:
    if isinstance(said, dict):
        return said
    return {"display": said} if isinstance(said, str) else {"value": said}


def output_error(spot: Spot) -> bool:
    said = spot.value
    if isinstance(said, dict) and isinstance(message := said.get("message"), str):
        return spot.put(message, "its message", keep=True)
    return False


# -- what a call added to the context ----------------------------------------------------------------------------------


def contribution(spot: Spot) -> bool:
    if not isinstance(spot.value, str):
        return False
    made = {"type": _contribution_type(spot.holder), "summary": spot.value}
    return spot.put(made, "the text is its `summary`; its `type` is by the tool", derived=True)


def contribution_type(spot: Spot) -> bool:
    call = _call_above(spot)
    return spot.value is None and spot.put(_contribution_type(call), "by the tool", derived=True)


def contribution_summary(spot: Spot) -> bool:
    if spot.value is not None:
        return False
    if spot.take(("description", "content", "text"), str):
        return True
    call = _call_above(spot)
    full = text(spot.holder, "full_content") or text(inner(inner(call, "output"), "result"), "display")
    if full.strip():
        return spot.put(full.strip()[:_SHORT], "the beginning of what the call gave", derived=True)
    made = text(inner(call, "input"), "description") or text(call, "tool_name")
    return bool(made) and spot.put(made, "what was called; nothing else is known", derived=True)


def _call_above(spot: Spot) -> Json:
    found: Any = spot.doc.data
    for step in path_steps(spot.path)[:-2]:
        found = found[step]
    return found if isinstance(found, dict) else {}


def _contribution_type(call: Json) -> str:
    name = text(call, "tool_name").lower()
    for part, kind in (("read", "file_content"), ("grep", "search_result"), ("glob", "search_result")):
        if part in name:
            return kind
    if "search" in name:
        return "search_result"
    return "command_output" if name in ("bash", "shell") else "knowledge"


def subagent_type(spot: Spot) -> bool:
    call = _call_above(spot)
    subs = spot.doc.once("subs by call", lambda: subs_by_call(spot.doc.data))
    said = text(inner(inner(call, "input"), "params"), "subagent_type")
    said = said or text(inner(subs.get(text(call, "call_id")), "agent"), "agent_type")
    path = spot.path.rpartition(".")[0]
    if not tells_agent(call):
        if not (sub := subs.get(text(call, "call_id"))):
            info = Spot(doc=spot.doc, rule=spot.rule, path=path, holder=call, key=_INFO)
            return info.set_aside("which says of no agent")
        if name := text(sub, "sub_session_id"):
            link = Spot(doc=spot.doc, rule=spot.rule, path=f"{path}.{_LINK}", holder=spot.holder, key=_LINK)
            link.put(name, "the sub-session that names this call", derived=True)
    return bool(said) and spot.put(said, "as the rest of the document says", keep=True)


def tool_uses(spot: Spot) -> bool:
    """As many as its sub-session has calls, or its breakdown counts; a number that nobody knows stays missing."""
    if spot.value is not None:
        return False
    subs = spot.doc.once("subs by call", lambda: subs_by_call(spot.doc.data))
    if sub := subs.get(text(_call_above(spot), "call_id")):
        return spot.put(len(values(sub.get("tool_calls"))), "the calls of its sub-session", derived=True)
    counts = [number(one.get("count")) for one in values(spot.holder.get("tools_breakdown"))]
    known = [int(count) for count in counts if count is not None]
    return bool(known) and spot.put(sum(known), "as `tools_breakdown` counts", derived=True)


def tools_breakdown(spot: Spot) -> bool:
    """How often each tool was used, by the names of the tools."""
    said = spot.value
    if not isinstance(said, dict) or not said or not all(type(count) is int for count in said.values()):
        return False
    made = [{"tool_name": name, "count": count} for name, count in said.items()]
    return "count" not in said and spot.put(made, "its entries, each with the name under which it stood")


def tool_of_breakdown(spot: Spot) -> bool:
    return spot.value is None and spot.take(("name", "tool"), str)


def count_of_breakdown(spot: Spot) -> bool:
    return spot.value is None and spot.take(("uses", "calls", "times"), int)


def subs_by_call(data: Json) -> dict[str, Json]:
    """The id of a call to the sub-session that names it as its start."""
    return {text(sub, "triggered_by_call_id"): sub for sub in values(data.get("sub_sessions"))}


MENDERS: dict[str, Mender] = {
    "call_id": call_id,
    "tool_name": tool_name,
    "tool_category": category,
    "started_at": started_at,
    "ended_at": ended_at,
    "duration_ms": duration,
    "input": call_input,
    "input.params": params,
    "output": call_output,
    "output.status": output_status,
    "output.result": output_result,
    "output.error": output_error,
    "context_contribution": contribution,
    "context_contribution.type": contribution_type,
    "context_contribution.summary": contribution_summary,
    "subagent_info.subagent_type": subagent_type,
    "subagent_info.tool_uses": tool_uses,
    "subagent_info.tools_breakdown": tools_breakdown,
    "subagent_info.tools_breakdown[].tool_name": tool_of_breakdown,
    "subagent_info.tools_breakdown[].count": count_of_breakdown,
}
"""Field of a call to what mends it."""
