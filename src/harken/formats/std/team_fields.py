"""Fields of the collaboration that stand beside it, at the top of the document, or in it under another name."""

from __future__ import annotations

from typing import Any

import msgspec

from .document import Json
from .leading import LEADER_NAMES
from .models import MODES, PATTERNS
from .parts import agent_kind, text
from .spellings import known_word, plain_key

_LISTS = ("participants", "agents", "members", "team_members", "team", "workers", "participant_agents", "agent_list")
_NAMES = {
    "mode": ("mode", "collaboration_mode"),
    "pattern": ("pattern", "collaboration_pattern"),
    "orchestrator": LEADER_NAMES,
    "participants": _LISTS,
}
"""A field of the collaboration to the names under which it may stand, the standard's first."""
_OF_PEOPLE = frozenset({"manager", "manager_id", "supervisor", "supervisor_id", "team"})
"""Names that stand for people at the top of a document."""


class TeamField(msgspec.Struct, frozen=True, kw_only=True):
    """A field of the collaboration, and where it stands."""

    name: str
    """What the standard calls it."""
    key: str
    holder: Json
    is_inside: bool
    """Whether it stands in the collaboration."""


def misplaced_team(data: Json) -> list[TeamField]:
    """The fields that the collaboration lacks and that stand elsewhere, in a document of several agents: in any other a
    `mode` or a `pattern` may be about something else."""
    team = data.get("collaboration")
    if team is not None and not isinstance(team, dict):
        return []
    inside: Json = team or {}
    top: Json = data if team is not None or data.get("sub_sessions") or _is_of_several(data) else {}
    found = []
    for name in _NAMES:
        if inside.get(name) not in (None, "", [], {}):
            continue
        for holder, is_inside in ((inside, True), (top, False)):
            if key := _key_of(name, holder, is_inside=is_inside):
                found.append(TeamField(name=name, key=key, holder=holder, is_inside=is_inside))
                break
    return found


def _is_of_several(data: Json) -> bool:
    """Whether a document that has no collaboration says at its top that it is of several agents."""
    return any(known_word(data.get(key), MODES) == "multi_agent" for key in data if plain_key(key) in _NAMES["mode"])


def _key_of(name: str, holder: Json, *, is_inside: bool) -> str:
    names = _NAMES[name][1:] if is_inside else [one for one in _NAMES[name] if one not in _OF_PEOPLE]
    keys = {plain_key(key): key for key in reversed(holder)}
    return next((keys[one] for one in names if one in keys and _fits(name, holder[keys[one]])), "")


def _fits(name: str, value: Any) -> bool:
    match name:
        case "mode":
            return known_word(value, MODES) is not None
        case "pattern":
            return known_word(value, PATTERNS) is not None
        case "orchestrator":
            return _is_agent(value)
    if isinstance(value, dict):
        is_each = all(
            isinstance(one, dict) or (isinstance(one, list) and all(map(_is_agent, one))) for one in value.values()
        )
        return bool(value) and is_each and not any(map(is_sub_session, value.values()))
    return isinstance(value, list) and bool(value) and all(map(_is_agent, value))


def _is_agent(value: Any) -> bool:
    """Whether something names an agent: by a word, or as an object that is no sub-session."""
    if isinstance(value, dict):
        return bool(text(value, "agent_id") or text(value, "id") or agent_kind(value)) and not is_sub_session(value)
    return isinstance(value, str) and bool(value) and not any(map(str.isspace, value))


def is_sub_session(value: object) -> bool:
    """Whether an object is the work of an agent, and does not only name it: numbers of calls are no calls."""
    kept = {plain_key(key): one for key, one in value.items()} if isinstance(value, dict) else {}
    return "sub_session_id" in kept or isinstance(kept.get("tool_calls"), list | dict)
