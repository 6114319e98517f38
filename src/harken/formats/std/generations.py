"""Older documents, read in the fields of the newest generation.

    v1          `steps`, each with a name, an input and an output
    early-v2    `phases` with the calls inside them; no ids, no times
    v2          `tool_calls`, and `phases` that name their calls by `tool_call_ids`
    v3          `tool_calls`, and `phase_annotations` over stretches of them

What is read so is added: the old fields stay where they stand, and so does everything that nobody knows. What an older
document does not say (a time, whether a call went well) is absent, too.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from .categories import ToolCategory, tool_category
from .json_text import Json
from .models import DocumentCall

Generation = Literal["v1", "early-v2", "v2", "v3"]

_STEPS: dict[str, tuple[ToolCategory, str]] = {
    "requirement_input": ("interaction", "understand"),
    "task_decomposition": ("planning", "plan"),
    "code_generation": ("action", "execute"),
    "environment_execution": ("action", "execute"),
    "debug_fix": ("action", "execute"),
    "result_verification": ("perception", "verify"),
    "memory_consolidation": ("action", "unclassified"),
}
"""The steps of v1: what kind of call each is, and what phase."""
_CALL_FIELDS = frozenset(field.name for field in msgspec.structs.fields(DocumentCall))


def generation_of(data: Json) -> Generation:
    """What a document was written as. One of the first two generations is that also when it has been read and written
    again, since nothing was added that it did not say; v2 has become v3 then."""
    phases = _objects(data.get("phases"))
    steps = data.get("steps")
    if isinstance(steps, list) and not phases and _is_older(data, [_step_name(step) for step in _objects(steps)]):
        return "v1"
    if any(isinstance(phase.get("tool_calls"), list) or "phase" in phase for phase in phases):
        inside = [entry for phase in phases for entry in _objects(phase.get("tool_calls"))]
        if _is_older(data, [_entry_name(entry) for entry in inside]):
            return "early-v2"
    annotations = data.get("phase_annotations")
    if annotations is None:
        return "v2" if phases else "v3"
    return "v2" if isinstance(annotations, list) and next(_unannotated(data), None) else "v3"


def as_v3(data: Json) -> Json:
    """The document with what the newest generation has fields for; itself where there is nothing to add. Reading the
    result once more changes nothing."""
    match generation_of(data):
        case "v1" if not _is_read(data):
            added = _from_steps(data)
        case "early-v2" if not _is_read(data):
            added = _from_early_phases(data)
        case "v2":
            added = _from_phases(data)
        case _:
            return data
    return {**data, **added}


def _is_read(data: Json) -> bool:
    """Whether there are calls and annotations already, or something else in their place."""
    return data.get("phase_annotations") is not None or data.get("tool_calls") not in (None, [])


def _is_older(data: Json, names: list[str]) -> bool:
    """Whether a document has no calls but those of its steps or phases: none yet, or the same that were read."""
    calls = data.get("tool_calls")
    return not _is_read(data) or (
        isinstance(calls, list)
        and isinstance(data.get("phase_annotations"), list)
        and names == [call.get("tool_name") if isinstance(call, dict) else None for call in calls]
    )


# -- v1 ----------------------------------------------------------------------------------------------------------------


def _from_steps(data: Json) -> Json:
    ids = _Ids(step.get("step_id") for step in _objects(data["steps"]))
    calls: list[Json] = []
    annotations: list[Json] = []
    for number, step in enumerate(_objects(data["steps"]), start=1):
        call = _call_of_step(step, ids.of(step.get("step_id"), f"tool-{number:03}"))
        phase = _STEPS.get(call["tool_name"], ("", "unclassified"))[1]
        calls.append(call)
        annotations.append(_annotation(f"phase-{number:03}", phase, [call["call_id"]], _time_of(data, step)))
    return {"tool_calls": calls, "phase_annotations": annotations}


def _call_of_step(step: Json, call_id: str) -> Json:
    name = _step_name(step)
    category = _STEPS[name][0] if name in _STEPS else tool_category(name)
    call: Json = {"call_id": call_id, "tool_name": name, "tool_category": category}
    if _text(step.get("timestamp")):
        call["started_at"] = step["timestamp"]
    call |= {key: step[key] for key in step if key in _CALL_FIELDS and key not in ("input", "output", *call)}
    call["input"] = _params(step["input"]) if "input" in step else {"params": {}}
    if output := _output_of_step(step):
        call["output"] = output
    return call


def _step_name(step: Json) -> str:
    return _text(step.get("step_name")) or _text(step.get("name")) or "step"


def _output_of_step(step: Json) -> Json:
    """What came of a step. One that is pending, running or skipped has no status among those of a call."""
    output: Json = {"status": step["status"]} if step.get("status") in ("success", "failed") else {}
    if step.get("output") is not None:
        output["result"] = _result(step["output"])
    if _text(step.get("error_message")):
        output["error"] = step["error_message"]
    return output


def _params(value: Any) -> Json:
    return {"params": value if isinstance(value, dict) else {} if value is None else {"input": value}}


def _result(value: Any) -> Json:
    if isinstance(value, dict):
        return value
    return {"display": value} if isinstance(value, str) else {"value": value}


# -- early v2 ----------------------------------------------------------------------------------------------------------


def _from_early_phases(data: Json) -> Json:
    phases = _objects(data["phases"])
    ids = _Ids(entry.get("call_id") for phase in phases for entry in _objects(phase.get("tool_calls")))
    calls: list[Json] = []
    annotations: list[Json] = []
    for number, phase in enumerate(phases, start=1):
        own: list[str] = []
        for entry in _objects(phase.get("tool_calls")):
            own.append(ids.of(entry.get("call_id"), f"tool-{len(calls) + 1:03}"))
            calls.append(_call_of_entry(entry, own[-1]))
        if own:
            annotations.append(_annotation_of_phase(data, phase, number, own))
    added: Json = {"tool_calls": calls, "phase_annotations": annotations}
    if "task_title" not in data and _text(data.get("title")):
        added["task_title"] = data["title"]
    return added


def _call_of_entry(entry: Json, call_id: str) -> Json:
    """A call that stood in a phase: `tool`, what it was used on (`target`), what for (`action`), and `details`."""
    name = _entry_name(entry)
    params: Json = {key: entry[key] for key in ("target", "details") if key in entry}
    category = tool_category(name, {"command": entry.get("target")})
    call: Json = {"call_id": call_id, "tool_name": name, "tool_category": category}
    call |= {key: value for key, value in entry.items() if key in _CALL_FIELDS and key not in ("call_id", "tool_name")}
    if "input" not in entry:
        call["input"] = {"params": params} | ({"description": entry["action"]} if _text(entry.get("action")) else {})
    return call


def _entry_name(entry: Json) -> str:
    return _text(entry.get("tool_name")) or _text(entry.get("tool")) or "tool"


# -- v2 ----------------------------------------------------------------------------------------------------------------


def _from_phases(data: Json) -> Json:
    known = data.get("phase_annotations")
    made = [_annotation_of_phase(data, phase, number, own) for number, phase, own in _unannotated(data)]
    return {"phase_annotations": [*(known or []), *made]}


def _unannotated(data: Json) -> Iterator[tuple[int, Json, list[str]]]:
    """The phases of which no call is annotated yet, with their number and their calls."""
    phases = _objects(data.get("phases"))
    if not phases:
        return
    calls = _objects(data.get("tool_calls"))
    order = [call.get("call_id") for call in calls]
    places = {name: place for place, name in enumerate(order) if isinstance(name, str)}
    annotated = _annotated(data, order, places)
    by_phase: dict[str, list[str]] = {}
    for call in calls:
        if _text(call.get("call_id")) and _text(call.get("phase_id")):
            by_phase.setdefault(call["phase_id"], []).append(call["call_id"])
    for number, phase in enumerate(phases, start=1):
        named = phase.get("tool_call_ids")
        own = [name for name in named if _text(name)] if isinstance(named, list) else []
        own = own or by_phase.get(_text(phase.get("phase_id")), [])
        if own and annotated.isdisjoint(own):
            # A range goes from the first call to the last, however they are listed, and names calls that are there.
            yield number, phase, sorted((name for name in own if name in places), key=places.__getitem__) or own


def _annotated(data: Json, order: list[Any], places: dict[str, int]) -> set[str]:
    """The calls that lie in the range of an annotation, its ends among them even where no call has that id."""
    found: set[str] = set()
    steps = [0] * (len(order) + 1)  # +1 where a range begins, -1 behind its end
    for annotation in _objects(data.get("phase_annotations")):
        named = _named(annotation.get("tool_call_range"))
        found.update(named)
        if len(named) == 2 and named[0] in places and named[1] in places:
            first, last = sorted((places[named[0]], places[named[1]]))
            steps[first] += 1
            steps[last + 1] -= 1
    depth = itertools.accumulate(steps)
    return found.union(name for name, inside in zip(order, depth, strict=False) if inside and isinstance(name, str))


def _named(value: Any) -> list[str]:
    """The ids that a range names, in whatever shape it has; two are its ends."""
    named = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [name for name in named if isinstance(name, str)]


# -- what all of them make ---------------------------------------------------------------------------------------------


def _annotation_of_phase(data: Json, phase: Json, number: int, own: list[str]) -> Json:
    name = _text(phase.get("phase_id")) or f"phase-{number:03}"
    kind = _text(phase.get("phase_type")) or _text(phase.get("phase")) or "unclassified"
    made = _annotation(name, kind, own, _time_of(data, phase))
    if _text(phase.get("description")):
        made["description"] = phase["description"]
    for key, old, said in _SAID_OF_PHASES:
        if isinstance(phase.get(old), list) and key not in made:
            made[key] = [{said: entry} if isinstance(entry, str) else entry for entry in phase[old]]
    return made


_SAID_OF_PHASES = (
    ("decisions", "decisions", "description"),
    ("context_used", "context_used", "source"),
    ("context_used", "context_references", "source"),
)
"""Field of an annotation, field of a phase, and what an entry says that is a mere text."""


def _annotation(name: str, phase_type: str, own: list[str], time: str) -> Json:
    return {
        "annotation_id": name,
        "phase_type": phase_type,
        "tool_call_range": {"start_call_id": own[0], "end_call_id": own[-1]},
        "annotated_by": "auto",
        **({"annotated_at": time} if time else {}),
        "confidence": "medium",
    }


def _time_of(data: Json, part: Json) -> str:
    """When a part of the session was told of: at the end of the session, else at its own; empty where nobody knows."""
    return _text(data.get("completed_at")) or _text(part.get("ended_at"))


class _Ids:
    """Ids that are used once: those that are there, and made ones beside them."""

    def __init__(self, given: Iterator[Any]) -> None:
        self._given = {name for name in given if _text(name)}
        self._used: set[str] = set()

    def of(self, given: Any, made: str) -> str:
        """The id that a thing has, unless another has it already; else a made one that nothing has."""
        name = given if _text(given) and given not in self._used else made
        number = 2
        while name in self._used or (name != given and name in self._given):
            name = f"{made}-{number}"
            number += 1
        self._used.add(name)
        return name


def _objects(value: Any) -> list[Json]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) and value.strip() else ""
