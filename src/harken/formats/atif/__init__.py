"""`atif-v1`: a trajectory in the Agent Trajectory Interchange Format, one JSON document of `steps`.

Written as version 1.8, read in every version so far. A step is what a user, the system or an agent did: an agent's has
its reasoning, its words, its calls, what they gave and what it cost. Agents that it started are trajectories inside.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from harken.errors import BadRecord
from harken.events import Event
from harken.events.base import text_at
from harken.formats.base import Format, Written
from harken.formats.kit.claims import NO_CLAIM, Claim
from harken.formats.kit.jsonl import BOM, SPACE, Record, encode, parse_beginning

from .document import SUBAGENTS, is_version, items, load
from .reading import count_places, read, read_conversation


def _write(events: Sequence[Event]) -> Written:
    from .writing import write  # whoever reads needs none of it

    return write(events)


def _join(deltas: Iterable[bytes]) -> bytes:
    """One trajectory with the steps of all, numbered on; a single one is left as it is.

    What else is said is said by the first that says it, save for totals and continuations, which no longer hold."""
    given = list(deltas)
    parts = [part for part in given if part.strip(SPACE + BOM)]
    if len(parts) < 2:
        return parts[0] if parts else b"".join(given)
    body: Record = {}
    steps: list[Any] = []
    inside: list[Any] = []
    for document in map(_checked, parts):
        document = _renamed(document, {text_at(one, "trajectory_id") for one in inside if isinstance(one, dict)})
        steps += items(document, "steps")
        inside += items(document, SUBAGENTS)
        body = {key: value for key, value in document.items() if key not in _OF_ONE} | body
    numbered = [{**one, "step_id": at} if isinstance(one, dict) else one for at, one in enumerate(steps, 1)]
    return encode({**body, "steps": numbered} | ({SUBAGENTS: inside} if inside else {}))


_OF_ONE = ("steps", SUBAGENTS, "final_metrics", "continued_trajectory_ref")


def _checked(part: bytes) -> Record:
    document, why = load(part)
    if document is None:
        raise BadRecord(why)
    return document


def _renamed(document: Record, taken: set[str]) -> Record:
    """The document with other names for agents inside whose names another document's agents have."""
    names = {text_at(one, "trajectory_id") for one in items(document, SUBAGENTS) if isinstance(one, dict)}
    new: dict[str, str] = {}
    for name in sorted(names & taken):
        number = 2
        while f"{name}-{number}" in taken | names:
            number += 1
        new[name] = f"{name}-{number}"
    if not new:
        return document
    inside = [_with_name(one, new) for one in items(document, SUBAGENTS)]
    return {**document, "steps": [_with_refs(step, new) for step in items(document, "steps")], SUBAGENTS: inside}


def _with_name(value: Any, new: dict[str, str]) -> Any:
    name = text_at(value, "trajectory_id") if isinstance(value, dict) else ""
    return {**value, "trajectory_id": new[name]} if name in new else value


def _with_refs(step: Any, new: dict[str, str]) -> Any:
    seen = step.get("observation") if isinstance(step, dict) else None
    if not isinstance(seen, dict):
        return step
    results = [
        {**one, "subagent_trajectory_ref": [_with_name(ref, new) for ref in items(one, "subagent_trajectory_ref")]}
        if isinstance(one, dict) and items(one, "subagent_trajectory_ref")
        else one
        for one in items(seen, "results")
    ]
    return {**step, "observation": {**seen, "results": results}}


def claim(head: bytes, path: str = "") -> Claim:
    """How sure it is: by the version that a document names."""
    body = parse_beginning(head)
    if not isinstance(body, dict) or not is_version(body.get("schema_version")):
        return NO_CLAIM
    return Claim(score=95, reason="it names a version of the Agent Trajectory Interchange Format")


FORMAT = Format(
    name="atif-v1",
    media_type="application/json",
    description="A trajectory of the Agent Trajectory Interchange Format: `steps` of user, system and agent, as JSON.",
    join=_join,
    claim=claim,
    reader=read,
    conversation_reader=read_conversation,
    writer=_write,
    places=count_places,
    tells_agents=True,
    pairs_calls=True,
)
