"""Mending who took part: the collaboration, sub-sessions and messages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from harken.formats.std import parts
from harken.formats.std.checking.schema import shown
from harken.formats.std.document import Json
from harken.formats.std.findings import OLD
from harken.formats.std.hearers import EVERYBODY
from harken.formats.std.meant_agents import names_as_ids, with_names_as_ids
from harken.formats.std.models import AGENT_TYPES, MODES, PATTERNS, TASK
from harken.formats.std.parts import agent_ids, agent_kind, agents, inner, text, type_in, values
from harken.formats.std.spellings import known_word
from harken.formats.std.team_fields import misplaced_team

from .mending import Mender, Mending, Spot, path_steps


def played_by_one(doc: Mending) -> None:
    """A multi-agent document without Task calls and sub-sessions was played by one agent, whatever roles it took."""
    data, collaboration = doc.data, doc.data.get("collaboration")
    if not isinstance(collaboration, dict) or collaboration.get("mode") != "multi_agent":
        return
    has_tasks = any(call.get("tool_name") == TASK for call in values(data.get("tool_calls")))
    if has_tasks or data.get("sub_sessions") or data.get("status") == "in_progress":
        return
    collaboration["mode"] = "single"
    collaboration[OLD + "mode"] = "multi_agent"
    said = (
        '`mode` was "multi_agent", is "single": there is no Task call and no sub-session, so one agent played all roles'
    )
    doc.tell(
        "no-sub-session",
        "collaboration.mode",
        f"{said}; they stay listed, and the old mode is kept beside",
        derived=True,
    )
    for name in ("sub_sessions", "messages"):
        if data.get(name) is None:
            data[name] = []
            doc.tell("missing-field", name, f"`{name}` was missing, is []: there were none", derived=True)


def gather_team(doc: Mending) -> bool:
    """Fields of the collaboration that stand at the top of the document, or under another name, come to their place in
    it; whether there were any."""
    found = misplaced_team(doc.data)
    for one in found:
        if not isinstance(team := doc.data.get("collaboration"), dict):
            team = doc.data["collaboration"] = {}
        team[one.name] = one.holder.pop(one.key)
        stood = f"under `{one.key}`" if one.is_inside else f"at the top of the document, as `{one.key}`"
        doc.tell("missing-field", f"collaboration.{one.name}", f"it stood {stood}: the place that the standard has")
    return bool(found)


# -- the collaboration -------------------------------------------------------------------------------------------------


def collaboration(spot: Spot) -> bool:
    """A text, or missing in a document whose name or sub-sessions say that there were several agents."""
    if word := known_word(spot.value, MODES):
        return spot.put({"mode": word}, "the text is its `mode`")
    return spot.value is None and spot.put({}, "what the rest of the document says of it", derived=True)


def mode(spot: Spot) -> bool:
    if word := known_word(spot.value, MODES):
        return spot.put(word, "the word that the standard has for it")
    word = "multi_agent" if spot.doc.data.get("sub_sessions") else "single"
    return spot.put(word, "by whether there are sub-sessions", derived=True)


def pattern(spot: Spot) -> bool:
    if word := known_word(spot.value, PATTERNS):
        return spot.put(word, "the word that the standard has for it")
    for name in ("mode", OLD + "mode", "type", "topology", "style", "workflow"):
        if spot.value is None and (word := known_word(spot.holder.get(name), PATTERNS)):
            return spot.put(word, f"as `{name}` says")
    return spot.put("master_worker", "what the standard takes for granted", derived=True)


def orchestrator(spot: Spot) -> bool:
    listed = spot.holder.get("participants")
    participants, said = values(listed), spot.value
    if isinstance(said, str) and said:
        if isinstance(listed, list) and any(isinstance(one, str) and one for one in listed):
            return False  # theirs come first: it may be one of them
        same = [one for one in participants if said in (one.get("agent_id"), one.get("agent_type"))]
        return _put_named(spot, same[0] if len(same) == 1 else _named_elsewhere(spot.doc, said) or said)
    if said not in (None, "") and not isinstance(said, dict):
        return False
    return _may_lead(listed) and spot.put(*_leading(spot.doc), derived=True)


def _may_lead(listed: Any) -> bool:
    """Whether it can be said who leads; a participant that lacks something is mended first."""
    first = listed[0] if isinstance(listed, list) and listed else None
    return not listed or (isinstance(first, dict) and identifier(first).keys() >= _NAMED)


def _leading(doc: Mending) -> tuple[Json, str]:
    """Who leads where nobody is named, and why it is taken for that."""
    told, why = parts.told_leader(doc.data)
    if identifier(told).keys() >= _NAMED:
        return identifier(told), f"{shown(told['agent_id'])}: {why}"
    made = identifier(parts.leader(doc.data))
    if not made.keys() >= _NAMED:
        return {"agent_id": "main", "agent_type": "architect"}, "what the standard takes for granted"
    is_first = made["agent_id"] in [text(one, "agent_id") for one in parts.participants(doc.data)[:1]]
    is_giver = made["agent_id"] in [text(one, "agent_id") for one in parts.task_givers(doc.data)]
    other = "whoever gives the first task" if is_giver else "the only architect, who has no sub-session"
    return made, "the first participant" if is_first else other


def is_told(leader: Any) -> bool:
    """Whether something is said of who leads; else that is found out from tasks and messages."""
    return bool(leader) and (not isinstance(leader, dict) or bool(text(leader, "agent_id") or agent_kind(leader)))


_NAMED = frozenset({"agent_id", "agent_type"})


def identifier(agent: Any) -> Json:
    if isinstance(agent, dict):
        known = ("agent_id", "agent_type", "instance_id", "role_category")
        return {key: agent[key] for key in known if isinstance(agent.get(key), str)}
    return {"agent_id": agent, "agent_type": type_in(agent) or agent}


def _put_named(spot: Spot, known: Any) -> bool:
    """The agent that a text names: one that is known, or one of which nothing more is said."""
    made = identifier(known)
    is_type = spot.value != made.get("agent_id") and spot.value == made.get("agent_type")
    why = f"the text is its {'type' if is_type else 'id'}" + (
        "; its type is as that says" if isinstance(known, str) else ""
    )
    return spot.put(made, why)


def participants(spot: Spot) -> bool:
    said = spot.value
    if said is None:
        agents = [inner(sub, "agent") for sub in values(spot.doc.data.get("sub_sessions"))]
        working = {text(agent, "agent_id"): agent for agent in agents}
        made = [identifier(agent) for name, agent in working.items() if name]
        return spot.put(made, "whoever has a sub-session" if made else "nobody is named", derived=True)
    if isinstance(said, dict) and not said.keys() & _NAMED:
        known = {name: kind for kind, names in parts.agents_elsewhere(spot.doc.data).items() for name in names}
        listed = _entries_of(said, known)
        return bool(listed) and spot.put(listed, "its entries, each with the name under which it stood", keep=True)
    if not isinstance(said, str) or not (names := [name for one in _BETWEEN.split(said) if (name := one.strip())]):
        return False
    return spot.put(names, "the only entry" if len(names) == 1 else "the names in it")


def _entries_of(said: Json, known: Mapping[str, str]) -> list[Any]:
    """The agents in an object by names; none where something in it is no agent."""
    held = {key: one for key, one in said.items() if not (key in _COUNTS and parts.number(one) is not None)}
    if not all(isinstance(one, dict | str | list | None) for one in held.values()):
        return []
    return [one for key, agents_there in held.items() for one in _entries(key, agents_there, known)]


_COUNTS = frozenset({"count", "total", "size", "number"})
_LISTS = frozenset({"agents", "participants", "members", "list", "items"})
"""Names in such an object of how many agents there are, and of the list of them: neither is one of an agent."""


def _entries(key: str, held: Json | str | list[Any] | None, known: Mapping[str, str]) -> list[Any]:
    """The agents under a name: the one that is called so, or those of that type. `known` are the agents that others
    name, with their types: the text under a type may be the id of one, that under an id its type."""
    if key in _LISTS and isinstance(held, dict | list):
        return held if isinstance(held, list) else _entries_of(held, known)
    if held is None:
        return [{"agent_id": key, "agent_type": known[key]} if key in known else key]
    if isinstance(held, str) and held in known:
        return [{"agent_id": held, "agent_type": _type_under(key, known)}]
    if isinstance(held, str) and key in known and known[key] == held:
        return [{"agent_id": key, "agent_type": held}]
    if isinstance(held, list):
        kind = key.removesuffix("s")
        return [{"agent_type": kind, **(one if isinstance(one, dict) else {"agent_id": one})} for one in held]
    entry = held if isinstance(held, dict) else {"description": held}
    if any(text(entry, name) for name in ("agent_id", "id", "agent")):
        return [{"agent_type": _type_under(key, known), **entry}]
    role = agent_kind(entry)
    kind = known.get(key) or (role if role in {*AGENT_TYPES, *known.values()} else key)
    return [{"agent_id": key, "agent_type": kind, **entry}]


def _type_under(key: str, known: Mapping[str, str]) -> str:
    """The type that a name is, which may be that of several."""
    one = key.removesuffix("s")
    return one if one in {*AGENT_TYPES, *known.values()} else key


_BETWEEN = re.compile("[,;、，；\n]")
"""What stands between the names in a text."""


def spread_types(doc: Mending) -> bool:
    """A participant that is a type alone becomes every agent of that type that sub-sessions and messages name; whether
    there was any."""
    team = inner(doc.data, "collaboration")
    listed = team.get("participants")
    if not isinstance(listed, list) or all(text(one, "agent_id") for one in listed):
        return False
    elsewhere = parts.agents_elsewhere(doc.data)
    spread = parts.types_spread(listed, elsewhere)
    made = [one for each in spread for one in each]
    if len(made) == len(listed):
        return False
    first, moved = 0, dict[int, int]()
    for place, each in enumerate(spread):
        moved[place] = first
        first += len(each)
    doc.move("collaboration.participants", moved)
    team["participants"] = made
    for place, each in enumerate(spread):
        if len(each) > 1:
            kind = each[0] if isinstance(each[0], str) else agent_kind(each[0])
            said = f"{shown(kind)} is the type of {len(each)} agents that are named elsewhere: each is listed"
            doc.tell("missing-field", f"collaboration.participants[{moved[place]}]", said, derived=True)
    return True


def agent(spot: Spot) -> bool:
    """An agent that is named by a text alone, or not at all."""
    said = spot.value
    if isinstance(said, str) and said:
        if spot.path.startswith("collaboration.participants") and (name := _listed_id(spot)) != said:
            made = {"agent_id": name, "agent_type": said}
            return spot.put(made, "the text is its type, and an agent of that type is named elsewhere")
        same = of_type(spot.doc, said)
        only = same[0] if len(same) == 1 else _named_elsewhere(spot.doc, said)
        known = _agents(spot.doc).get(said) or _called(spot.doc, said) or only or said
        return known not in EVERYBODY and _put_named(spot, known)
    if said is None and isinstance(spot.holder, dict):
        for name in {"from_agent": ("from", "sender"), "to_agent": ("to", "receiver", "recipient")}.get(spot.key, ()):
            if isinstance(found := spot.holder.get(name), (str, dict, list)) and found:
                return spot.put(found, f"as `{name}` says")
    return False


def _is_everybody(spot: Spot) -> bool:
    """Whether the hearer of a message is a word for everybody: that is no agent, unless one is called so."""
    name = text(spot.holder, "agent_id")
    return ".to_agent" in spot.path and name in EVERYBODY and name not in _agents(spot.doc)


def agent_type(spot: Spot) -> bool:
    if _is_everybody(spot):
        return False
    if spot.take(("type", "role", "agent_role", "name"), str):
        return True
    name = text(spot.holder, "agent_id")
    known = text(_agents(spot.doc).get(name, {}), "agent_type")
    if not known and spot.path.startswith("collaboration.orchestrator"):
        made, _ = _leading(spot.doc)
        known = made["agent_type"] if made["agent_id"] == name else ""
    return bool(known or name) and spot.put(known or type_in(name) or name, "as its id says", derived=True)


def agent_id(spot: Spot) -> bool:
    """The agent's type, numbered where several have it."""
    if spot.value is not None:
        return False
    if spot.take(("id", "agent"), str):
        return True
    names = spot.doc.once("names as ids", lambda: names_as_ids(spot.doc.data))
    if (name := names.get(text(spot.holder, "name"), "")) and agent_kind(spot.holder) != text(spot.holder, "name"):
        return spot.put(name, "as `name` says", derived=True)
    listed = inner(spot.doc.data, "collaboration").get("participants")
    listed = listed if isinstance(listed, list) else []
    if spot.path.startswith("collaboration.participants"):
        name, kind = _listed_id(spot), agent_kind(spot.holder)
        why = "its type" if name == kind else "its type, numbered since several have it"
        if name in spot.doc.once("elsewhere", lambda: parts.agents_elsewhere(spot.doc.data)).get(kind, []):
            why = "the agent of its type that is named elsewhere"
        return bool(name) and spot.put(name, why, derived=True)
    kind, is_leader = agent_kind(spot.holder), spot.path.startswith("collaboration.orchestrator")
    same = of_type(spot.doc, kind)
    if len(same) == 1:
        return spot.put(same[0]["agent_id"], f"the only {shown(kind)} that takes part", derived=True)
    return is_leader and _leader_id(spot, kind, values(listed))


def _listed_id(spot: Spot) -> str:
    """The id of an entry of the participants."""
    listed = inner(spot.doc.data, "collaboration").get("participants")

    def ids() -> list[str]:
        return agent_ids(list(listed) if isinstance(listed, list) else [], parts.agents_elsewhere(spot.doc.data))

    return spot.doc.once("agent ids", ids)[int(path_steps(spot.path)[2])]


def _leader_id(spot: Spot, kind: str, listed: list[Json]) -> bool:
    """The id of an orchestrator that is none of the participants by its type."""
    if not kind:
        made, why = _leading(spot.doc)
        return _may_lead(listed) and spot.put(made["agent_id"], why, derived=True)
    if any(agent_kind(one) == kind and not text(one, "agent_id") for one in listed):
        return False  # theirs come first: it may be one of them
    named = text(_named_elsewhere(spot.doc, kind), "agent_id")
    return spot.put(
        named or kind, f"the only {shown(kind)} that is named elsewhere" if named else "its type", derived=True
    )


def _named_elsewhere(doc: Mending, kind: str) -> Json:
    """The only agent of a type that sub-sessions and messages name and nobody lists by its id; empty where there is not
    one."""
    named = doc.once("elsewhere", lambda: parts.agents_elsewhere(doc.data)).get(kind, []) if kind else []
    return {"agent_id": named[0], "agent_type": kind} if len(named) == 1 else {}


def _agents(doc: Mending) -> dict[str, Json]:
    return doc.once("agents", lambda: agents(doc.data))


def _called(doc: Mending, name: str) -> Json:
    """The agent that is told by a name, and has no id yet; empty where there is none."""
    return doc.once("agents by name", lambda: agents(with_names_as_ids(doc.data))).get(name, {})


def _leader(doc: Mending) -> object:
    """The id of the orchestrator, who may be named by a text that is not mended yet."""
    return doc.once("leader", lambda: parts.orchestrator(doc.data).get("agent_id"))


def of_type(doc: Mending, kind: str) -> list[Json]:
    """The agents of a type that have an id."""

    def by_type() -> dict[str, list[Json]]:
        found: dict[str, list[Json]] = {}
        for one in agents(doc.data).values():
            found.setdefault(text(one, "agent_type"), []).append(one)
        return found

    return doc.once("agents by type", by_type).get(kind, []) if kind else []


def listed_agent(spot: Spot) -> bool:
    """An agent that speaks or works and is not listed: it took part."""
    found = inner(spot.doc.data, "collaboration").get("participants")
    made = identifier(spot.holder)
    if not isinstance(found, list) or "agent_type" not in made or _is_everybody(spot):
        return False
    listed = spot.doc.once("listed", lambda: {text(one, "agent_id") for one in values(found)})
    if made["agent_id"] in listed or made["agent_id"] == _leader(spot.doc):
        return False
    listed.add(made["agent_id"])
    found.append(made)
    said = f"{shown(made['agent_id'])} was added to the participants: {spot.path.partition('[')[0]} names it"
    spot.doc.tell(spot.rule, f"collaboration.participants[{len(found) - 1}]", said)
    return True


COLLABORATION: dict[str, Mender] = {
    "mode": mode,
    "pattern": pattern,
    "orchestrator": orchestrator,
    "participants": participants,
    "participants[]": agent,
}
AGENT: dict[str, Mender] = {"agent_id": agent_id, "agent_type": agent_type}
