"""Mending annotations: above all the calls that each is about."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from harken.formats.std.checking.schema import shown
from harken.formats.std.document import Json
from harken.formats.std.findings import OLD
from harken.formats.std.models import LEVELS, PHASE_TYPES
from harken.formats.std.parts import ENDS, STARTS, inner, instant, objects, text, values
from harken.formats.std.spellings import known_word

from .mending import Mender, Mending, Spot

_BETWEEN = re.compile(r"\s*(?:\.{2,3}|…|–|—|~|至|到|→|->|,|\s-\s|\sto\s)\s*")


def call_range(spot: Spot) -> bool:
    """A range in one of the shapes that it has in real documents."""
    said = spot.value
    if said is None:
        return _range_beside(spot)
    if isinstance(said, str):
        return _put_ids(spot, _ids_in_text(said, _places(spot)))
    if isinstance(said, list):
        ids = [text(one, "call_id") if isinstance(one, dict) else one for one in said]
        return _put_ids(spot, ids, keep=any(isinstance(one, dict) and len(one) > 1 for one in said))
    return False


def range_end(spot: Spot) -> bool:
    """`start_call_id` or `end_call_id` under another name. The other name goes, since it says the same."""
    for name in STARTS if spot.key == "start_call_id" else ENDS:
        if isinstance(found := spot.holder.get(name), str) and spot.value is None:
            renamed = {spot.key if key == name else key: value for key, value in spot.holder.items()}
            spot.holder.clear()
            spot.holder.update(renamed)
            said = f"`{name}` is called `{spot.key}`: the name that the standard has for it"
            spot.doc.tell(spot.rule, spot.path, said)
            return bool(found)
    other = "end_call_id" if spot.key == "start_call_id" else "start_call_id"
    if spot.value is None and len(spot.holder) == 1 and (found := text(spot.holder, other)):
        return spot.put(found, f"the range has one call: as `{other}` says", derived=True)
    return False


def _range_beside(spot: Spot) -> bool:
    for name in ("tool_call_ids", "call_ids", "tool_calls", "range"):
        if isinstance(found := spot.holder.get(name), list) and _put_ids(spot, list(found)):
            return True
    ends = text(spot.holder, "start_call_id"), text(spot.holder, "end_call_id")
    return all(ends) and _put_ids(spot, list(ends))


def _places(spot: Spot) -> dict[str, int]:
    """The calls by their ids, each with its place."""
    calls = spot.doc.data.get("tool_calls")
    return spot.doc.once("places", lambda: {text(call, "call_id"): place for place, call in objects(calls)})


def _ids_in_text(said: str, places: dict[str, int]) -> list[Any]:
    if said in places:
        return [said]
    ends = _BETWEEN.split(said.strip(), 2)
    return ends if len(ends) == 2 else []


def _put_ids(spot: Spot, ids: list[Any], *, keep: bool = False) -> bool:
    """One or two ids are start and end; a longer list becomes one annotation for each unbroken run of calls. What says
    more than ids is kept."""
    places = _places(spot)
    if not ids or not all(isinstance(name, str) and name in places for name in ids):
        return False
    if len(ids) <= 2:
        ends = sorted((ids[0], ids[-1]), key=lambda name: places[name])
        return spot.put(_span(ends), f"{_from_to(ends)}, as the standard writes it", keep=keep)
    runs = _runs(sorted(set(ids), key=lambda name: places[name]), places)
    which = "the first run of calls in the list" if len(runs) > 1 else "as the standard writes it"
    spot.put(_span(runs[0]), f"{_from_to(runs[0])}, {which}", keep=keep)
    if len(runs) > 1:
        spot.doc.runs[id(spot.holder)] = runs[1:]
    return True


def _span(ids: list[str]) -> Json:
    return {"start_call_id": ids[0], "end_call_id": ids[-1]}


def _from_to(ids: list[str]) -> str:
    return f"{shown(ids[0])} to {shown(ids[-1])}"


def _runs(ids: list[str], places: dict[str, int]) -> list[list[str]]:
    runs = [[ids[0]]]
    for before, name in pairwise(ids):
        if places[name] == places[before] + 1:
            runs[-1].append(name)
        else:
            runs.append([name])
    return runs


def split_annotations(doc: Mending) -> None:
    """Add the annotations for further runs of calls behind the one whose list had holes. They say what it says, but for
    decisions, which have ids. This comes last, since it moves those behind."""
    annotations, moved = list[Any](), dict[int, int]()
    taken = {text(one, "annotation_id") for one in values(doc.data.get("phase_annotations"))}
    added = list[tuple[int, str]]()
    for place, one in enumerate(doc.data["phase_annotations"] if doc.runs else ()):
        moved[place] = len(annotations)
        annotations.append(one)
        for number, run in enumerate(doc.runs.get(id(one), ()), 2):
            name = f"{one.get('annotation_id')}-{number}"
            while name in taken:
                name += "-2"
            taken.add(name)
            said = {key: value for key, value in one.items() if key != "decisions" and not key.startswith(OLD)}
            added.append((len(annotations), f"{_from_to(run)}, of which {shown(one.get('annotation_id'))} spoke too"))
            annotations.append({**said, "annotation_id": name, "tool_call_range": _span(run)})
    if added:
        doc.data["phase_annotations"] = annotations
        doc.move("phase_annotations", moved)
    for place, which in added:
        why = f"an annotation was added for {which}: its list of calls had a hole"
        doc.tell("wrong-type", f"phase_annotations[{place}]", why, derived=True)
    doc.runs.clear()


def range_order(spot: Spot) -> bool:
    """A range that names its last call first: the calls are the same."""
    span = spot.value
    turned = {**span, "start_call_id": span["end_call_id"], "end_call_id": span["start_call_id"]}
    return spot.put(turned, "the first call stands first")


def annotation_id(spot: Spot) -> bool:
    if spot.value is not None:
        return False
    if spot.take(("id", "phase_id"), str):
        return True
    name = spot.doc.free_id("annotation", "annotation-{:03}".format, lambda: _annotation_ids(spot.doc.data))
    return spot.put(name, "made from its place among the annotations", derived=True)


def _annotation_ids(data: Json) -> list[Any]:
    return [one.get("annotation_id") for one in values(data.get("phase_annotations"))]


def phase_type(spot: Spot) -> bool:
    if word := known_word(spot.value, PHASE_TYPES):
        return spot.put(word, "the word that the standard has for it")
    if spot.value is None:
        for name in ("phase", "type"):
            if word := known_word(spot.holder.get(name), PHASE_TYPES):
                return spot.put(word, f"as `{name}` says")
    return spot.put("unclassified", "no phase of the standard is meant by it", derived=True)


def annotated_at(spot: Spot) -> bool:
    if spot.take_time(("timestamp", "created_at")):
        return True
    data = spot.doc.data
    for key in ("completed_at", "updated_at"):
        if instant(data, key) is not None:
            return spot.put(data[key], f"as `{key}` of the session says", derived=True)
    last = text(inner(spot.holder, "tool_call_range"), "end_call_id")
    if last in _places(spot):
        call = data["tool_calls"][_places(spot)[last]]
        if instant(call, "ended_at") is not None:
            return spot.put(call["ended_at"], "nobody knows; not earlier than its last call", derived=True)
    return instant(data, "created_at") is not None and spot.put(
        data["created_at"], "nobody knows; not earlier than the session", derived=True
    )


def annotated_by(spot: Spot) -> bool:
    if word := known_word(spot.value, ("agent", "human", "auto")):
        return spot.put(word, "the word that the standard has for it")
    return spot.put("auto", "nobody said who", derived=True)


def confidence(spot: Spot) -> bool:
    if word := known_word(spot.value, LEVELS):
        return spot.put(word, "the word that the standard has for it")
    said = spot.value
    if isinstance(said, (int, float)) and not isinstance(said, bool) and 0 <= said <= 1:
        word = "high" if said >= 0.8 else "medium" if said >= 0.5 else "low"
        return spot.put(word, "the word for that number", derived=True)
    return spot.put("medium", "nobody said how sure it is", derived=True)


# -- what an annotation refers to --------------------------------------------------------------------------------------


def decision(spot: Spot) -> bool:
    return isinstance(spot.value, str) and spot.put({"description": spot.value}, "the text is its `description`")


def decision_id(spot: Spot) -> bool:
    if spot.value is not None:
        return False
    if spot.take(("id",), str):
        return True
    name = spot.doc.free_id("decision", "decision-{:03}".format, lambda: _decision_ids(spot.doc.data))
    return spot.put(name, "made from its place among the decisions", derived=True)


def _decision_ids(data: Json) -> list[Any]:
    lists = (one.get("decisions") for one in values(data.get("phase_annotations")))
    return [one.get("decision_id") for decisions in lists for one in values(decisions)]


def decision_type(spot: Spot) -> bool:
    if spot.value is not None:
        return False
    return spot.take(("decision_type", "kind"), str) or spot.put("approach", "nobody said", derived=True)


def decision_description(spot: Spot) -> bool:
    return spot.value is None and spot.take(("decision", "title", "summary", "reasoning", "content"), str)


def reference(spot: Spot) -> bool:
    return isinstance(spot.value, str) and spot.put({"source": spot.value}, "the text is its `source`")


_SOURCES = ("path", "file", "name", "url", "id", "summary", "description")
"""Other names of `source`."""


def reference_source(spot: Spot) -> bool:
    return spot.value is None and spot.take(_SOURCES, str)


_TYPES = (("claude.md", "claude_md"), ("/rules/", "rule"), ("/standards/", "standard"), ("/skills/", "skill"),
          ("/specs/", "spec"), ("capability", "capability"))  # fmt: skip
"""What a path contains to the type of what is there."""


def reference_type(spot: Spot) -> bool:
    if spot.value is not None:
        return False
    named = next((found for key in ("source", *_SOURCES) if (found := text(spot.holder, key))), "")
    source = f"/{named}".lower()
    kind = next((kind for part, kind in _TYPES if part in source), "file")
    return spot.put(kind, "by what its source is called", derived=True)


def relevance(spot: Spot) -> bool:
    if word := known_word(spot.value, LEVELS):
        return spot.put(word, "the word that the standard has for it")
    return spot.put("medium", "nobody said", derived=True)


MENDERS: dict[str, Mender] = {
    "tool_call_range": call_range,
    "tool_call_range.start_call_id": range_end,
    "tool_call_range.end_call_id": range_end,
    "annotation_id": annotation_id,
    "phase_type": phase_type,
    "annotated_at": annotated_at,
    "annotated_by": annotated_by,
    "confidence": confidence,
    "decisions[]": decision,
    "decisions[].decision_id": decision_id,
    "decisions[].type": decision_type,
    "decisions[].description": decision_description,
    "context_used[]": reference,
    "context_used[].type": reference_type,
    "context_used[].source": reference_source,
    "context_used[].relevance": relevance,
}
"""Field of an annotation to what mends it."""
