"""The parts of a document as far as they are what they should be: for whoever looks at one that may be damaged."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from typing import Any

from harken import clock

from .document import Json
from .json_text import compact
from .leading import says_it_leads
from .models import AGENT_TYPES, ReviewerOutput, output_model
from .spellings import known_duration, known_status

_UNCOUNTED = ("x_harken_owner", "x_harken_derived")
"""Marks of a call among the main ones that the main agent did not make."""


def objects(value: object) -> Iterator[tuple[int, Json]]:
    """The objects in a list, each with its place; nothing where it is no list."""
    if isinstance(value, list):
        for place, item in enumerate(value):
            if isinstance(item, dict):
                yield place, item


def values(value: object) -> list[Json]:
    """The objects in a list; none where it is no list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def inner(value: object, key: str) -> Json:
    """The object below a key; an empty one where there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def text(value: object, key: str) -> str:
    """The text below a key; empty where there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def words_in(value: object, depth: int = 3) -> str:
    """The words of what should be a text: a number as its digits, the lines or parts of a list, what an object has
    under a name for words. Empty where something in it has none."""
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 10**30:
        return str(value)
    if isinstance(value, dict):
        return next((said for key in _WORDS if isinstance(said := value.get(key), str) and said.strip()), "")
    if not isinstance(value, list) or not depth:
        return ""
    lines = [words_in(one, depth - 1) for one in value]
    return "\n".join(lines) if all(lines) else ""


_WORDS = ("text", "content", "prompt", "message", "original", "raw", "value", "description")


def number(value: object) -> float | None:
    """A number that is one: not a flag, and none that a calculation would trip over."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e15:
        return None
    return value


def instant(value: object, key: str) -> int | None:
    """The instant that the text below a key names; None where it names none."""
    found = value.get(key) if isinstance(value, dict) else None
    return clock.parse_instant(found)


def call_began(call: object) -> int | None:
    """When a call was made: as it says, or by when it ended and how long it took."""
    began, ended = instant(call, "started_at"), instant(call, "ended_at")
    return began if began is not None or ended is None else _apart(ended, -_took(call))


def call_ended(call: object) -> int | None:
    """When a call had its answer: as it says, or by when it was made and how long it took."""
    began, ended = instant(call, "started_at"), instant(call, "ended_at")
    return ended if ended is not None or began is None else _apart(began, _took(call))


def _apart(when: int, took: int) -> int | None:
    """The instant so long behind another, or before it; None where nobody knows how long, or no calendar has it."""
    return when + took if took and clock.in_calendar(when + took) else None


def _took(call: object) -> int:
    """How long a call took; 0 where it does not say, or says what cannot be."""
    told = call_duration(call) if isinstance(call, dict) else None
    return round(told * 1000) if told is not None and 0 < told < _LONGEST else 0


_LONGEST = 1e12
"""Milliseconds: more than thirty years are no call's."""


def call_duration(call: Json) -> float | None:
    """The milliseconds that a call says it took: as a number, or as a text like `1.2s`, which may stand elsewhere."""
    found = number(call.get("duration_ms"))
    texts = (known_duration(call.get(key)) for key in ("duration_ms", *DURATIONS))
    return found if found is not None else next((said for said in texts if said is not None), None)


DURATIONS = ("duration", "elapsed", "time_taken")
"""Other names of `duration_ms`, for texts: a number there has no unit."""
CALL_IDS = ("id", "tool_call_id", "tool_use_id")
TOOL_NAMES = ("tool", "name", "function")
"""Other names of `call_id` and `tool_name`; a `function` may be an object with a name and its arguments."""
CALL_STARTS = ("timestamp", "time", "start_time", "startTime", "start", "created_at")
CALL_ENDS = ("end_time", "endTime", "finished_at", "completed_at", "end")
"""Other names of a call's `started_at` and `ended_at`."""
ARGUMENTS = ("params", "arguments", "args", "parameters")
"""Names of what stands in `input.params`, in a call without `input`."""


CALL_LISTS = ("calls", "tools", "actions", "tool_uses", "tool_invocations")
"""Other names of `tool_calls`, where objects stand under them: tools may also be those that an agent has."""


def calls_elsewhere(part: Json) -> str:
    """The name under which a session or a sub-session without `tool_calls` has its calls; empty where it has none."""
    if part.get("tool_calls") is not None:
        return ""
    for key in CALL_LISTS:
        held = part.get(key)
        entries = list(held.values()) if isinstance(held, dict) else held
        if isinstance(entries, list) and entries and all(isinstance(one, dict) for one in entries):
            return key
    return ""


ATTEMPTS = ("attempts", "tries", "retries", "iterations", "rounds", "runs")
"""Names of a list of what an agent did one after the other, each with calls of its own."""


def attempts_with_calls(part: Json) -> str:
    """The name under which a session or a sub-session without calls has attempts that have them; empty where it has
    none."""
    if part.get("tool_calls") not in (None, [], {}):
        return ""
    for key in ATTEMPTS:
        tried = part.get(key)
        listed = tried if isinstance(tried, list) else []
        if all(isinstance(one, dict) for one in listed) and any(map(calls_of_attempt, listed)):
            return key
    return ""


def calls_of_attempt(attempt: Json) -> list[Json]:
    """The calls of an attempt, under whatever name."""
    held = attempt.get(calls_elsewhere(attempt) or "tool_calls")
    return values(list(held.values()) if isinstance(held, dict) else held)


SUB_NAMES = (
    "sub_agents",
    "subagents",
    "sub_agent_sessions",
    "subagent_sessions",
    "agent_sessions",
    "agents",
    "workers",
)
"""Other names of `sub_sessions`."""
MESSAGE_LISTS = ("agent_messages", "communications", "communication_log", "message_log")
"""Other names of `messages`."""
MESSAGE_FIELDS = frozenset({"from_agent", "to_agent", "from", "to", "message_type"})
"""What a message between agents has, one of them at least."""


def task_id_of(sub: Json) -> str:
    """The task of a sub-session, by itself or by its output; the output of a review names the task of another. Some
    say it beside the task."""
    output = inner(sub, "output")
    own = text(inner(sub, "task"), "task_id") or text(sub, "task_id")
    return own or ("" if "verdict" in output else text(output, "task_id"))


def tells_task(sub: Json) -> bool:
    """Whether a sub-session says itself what it was to do."""
    task = sub.get("task")
    return isinstance(task, str) or bool(text(task, "description"))


def asked_of(given: Json) -> Any:
    """What a call was asked, by its `input`: its params, with the command that stands beside them; where there are
    none, with what it says that it is for."""
    params = given.get("params")
    if not isinstance(params, dict | None):
        return params
    beside = {"command": text(given, "raw_command")}
    if not params:
        beside["description"] = text(given, "description")
    found = {key: said for key, said in beside.items() if said and key not in (params or {})}
    return {**(params or {}), **found} if found else params


def call_outcome(output: object) -> str:
    """How a call went by what its output says in whatever words: `success` or `failed`; empty where it does not say."""
    return _told_outcome(output) or _answered_outcome(output)


def _told_outcome(part: object) -> str:
    """How a call went by the fields that say so, of its output or of the call itself."""
    if not isinstance(part, dict):
        return ""
    said = part.get("status")
    if said == "success" or said == "failed":  # nearly every call, and asked of each
        return str(said)
    if (known := known_status(said)) is not None:
        return "failed" if known == "failed" else "success"
    for flag in (said, part.get("success")):
        if isinstance(flag, bool):
            return "success" if flag else "failed"
    if isinstance(flag := part.get("is_error"), bool):
        return "failed" if flag else "success"
    if isinstance(code := part.get("exit_code"), int) and not isinstance(code, bool):
        return "failed" if code else "success"
    return "failed" if part.get("error") else ""


def _answered_outcome(output: object) -> str:
    """How a call went by its answer alone: a result may have fields that say so, as an output has."""
    if not isinstance(output, dict):
        return _outcome_in(output)
    result = output.get("result")
    return _told_outcome(result) or _outcome_in(text(result, "display") or result)


def _outcome_in(words: object) -> str:
    """How a call went by its answer alone: one that is nothing but a word for that, or begins with a failure."""
    if not isinstance(words, str):
        return ""
    begins = _BEGINNING.match(words)
    if begins and known_status(begins[1]) == "failed":
        return "" if _NO_FAILURE.match(words) else "failed"
    known = known_status(words)
    return known if known in ("success", "failed") and not begins else ""


_BEGINNING = re.compile(r"\W{0,5}(\w{1,30})\s?[:：]")
_NO_FAILURE = re.compile(
    r"""\W{0,5}(?:
        \w{1,30}\s?[:：]\s{0,9}(?:0\b|(?:none|no|null|nil|false|n/a|无|没有|\[\]|\{\})\s{0,9}(?:$|[\n,;|)，；。.]))
        |time\w{0,9}\s?[:：]\s{0,9}[0-9]
    )""",
    re.IGNORECASE | re.VERBOSE,
)
"""A report that nothing failed (`Failed: 0, Passed: 12`), or a limit (`timeout: 30`)."""


def own_outcome(call: Json) -> str:
    """How a call went: as its output says, else as the call says beside it, else by its answer."""
    output = call.get("output")
    told = _told_outcome(output) or _told_outcome(flat_output(call))
    return told or _answered_outcome(flat_output(call) if output is None else output)


def flat_output(call: Json) -> Json:
    """What a call says itself, and not in an output, of what came of it."""
    found = {key: call[key] for key in _FLAT if call.get(key) is not None}
    return found if "result" in found or call.get("response") is None else found | {"result": call["response"]}


_FLAT = ("status", "success", "is_error", "exit_code", "result", "error")


def begun(data: Json) -> int | None:
    """When a session began; many say so in `started_at`."""
    created = instant(data, "created_at")
    return instant(data, "started_at") if created is None else created


def over(part: Json) -> int | None:
    """When a session or a sub-session ended; some say so under other names."""
    said = (instant(part, key) for key in ("completed_at", "ended_at", "end_time", "finished_at"))
    return next((when for when in said if when is not None), None)


STARTS = ("start", "from", "first", "begin", "start_id", "startCallId", "start_tool_call_id")
ENDS = ("end", "to", "last", "end_id", "endCallId", "end_tool_call_id")
"""Other names of `start_call_id` and `end_call_id`."""


def range_ends(value: object) -> tuple[str, str]:
    """The first and the last call of a range, in whatever shape it has; empty where it names none."""
    if isinstance(value, list):
        named = [one if isinstance(one, str) else text(one, "call_id") for one in value[:1] + value[-1:]]
        return (named[0], named[-1]) if named else ("", "")
    if isinstance(value, str):
        return value, value
    first = next(filter(None, (text(value, key) for key in ("start_call_id", *STARTS))), "")
    last = next(filter(None, (text(value, key) for key in ("end_call_id", *ENDS))), "")
    return first or last, last or first


def own_calls(data: Json) -> list[Json]:
    """The main agent's calls, without those that are listed only so that links find them."""
    return [call for call in values(data.get("tool_calls")) if not is_uncounted(call)]


def is_uncounted(call: Json) -> bool:
    """Whether a call among the main ones is told elsewhere or was made by nobody: it is listed for readers of the
    standard, who look for it there."""
    return any(map(call.get, _UNCOUNTED))


def tells_agent(call: Json) -> bool:
    """Whether a call says something of an agent that it started: programs write the field of every call."""
    info = call.get("subagent_info")
    return any(info.values()) if isinstance(info, dict) else bool(info)


def agents(data: Json) -> dict[str, Json]:
    """Every agent by its id: the orchestrator, the participants, and whoever else has a sub-session, in this order."""
    collaboration = inner(data, "collaboration")
    named: list[Any] = [inner(collaboration, "orchestrator"), *values(collaboration.get("participants"))]
    named += [inner(sub, "agent") for sub in values(data.get("sub_sessions"))]
    found: dict[str, Json] = {}
    for agent in named:
        if name := text(agent, "agent_id"):
            found.setdefault(name, agent)
    return found


def agent_at(holder: object, key: str) -> Json:
    """The agent that an object names under a key; a text there is its id. An empty object where there is none."""
    found = holder.get(key) if isinstance(holder, dict) else None
    return (_identified(found, found) if isinstance(found, str) else inner(holder, key)) or {}


def agent_kind(agent: object) -> str:
    """The type of an agent, under whatever name; empty where it has none."""
    return next(filter(None, (text(agent, key) for key in ("agent_type", "type", "role", "agent_role", "name"))), "")


def type_in(agent_id: str) -> str:
    """The type that an id begins with: `developer` of `developer-01`; empty where there is none."""
    return next((kind for kind in AGENT_TYPES if agent_id == kind or agent_id.startswith((kind + "-", kind + "_"))), "")


def agents_elsewhere(data: Json) -> dict[str, list[str]]:
    """The ids of the agents that sub-sessions and messages name, by their types: lists of agents often have types
    alone. Those that are listed by their ids are left out, and so are types that are somebody's id; who leads is the
    one of its type where no other is."""
    team = inner(data, "collaboration")
    listed, leads = team.get("participants"), inner(team, "orchestrator")
    own = {_own_id(one) for one in (leads, *(listed if isinstance(listed, list) else ()))}
    places = [(sub, "agent" if agent_at(sub, "agent") else "agent_id") for sub in values(data.get("sub_sessions"))]
    places += [(one, key) for one in values(data.get("messages")) for key in ("from_agent", "to_agent")]
    named = [agent_at(*place) for place in places]
    # A text that is the type of an agent which is called otherwise is no id.
    kinds = {kind for one in named if (kind := text(one, "agent_type")) != text(one, "agent_id")} - {""}
    named = [one for one, place in zip(named, places, strict=True) if text(*place) not in kinds]
    found: dict[str, dict[str, None]] = {}
    ids = {_own_id(leads)}
    for agent in named:
        name = text(agent, "agent_id")
        kind = text(agent, "agent_type") or type_in(name)
        ids.add(name)
        if name and kind and name not in own:
            found.setdefault(kind, {})[name] = None
    if leading := _own_id(leads):
        found.setdefault(agent_kind(leads), {leading: None})
    return {kind: list(names) for kind, names in found.items() if kind and kind not in ids}


def types_spread(listed: list[Any], elsewhere: Mapping[str, list[str]]) -> list[list[Any]]:
    """What each entry of a list of agents stands for: a type that is listed once is every agent of it that is named
    elsewhere; any other is itself. What more such an entry says is the first one's."""
    kinds = [_type_alone(one, elsewhere) for one in listed]
    count = Counter(kinds)
    return [
        [one, *({"agent_type": kind} for _ in elsewhere[kind][1:])] if kind and count[kind] == 1 else [one]
        for one, kind in zip(listed, kinds, strict=True)
    ]


def _type_alone(agent: Any, elsewhere: Mapping[str, list[str]]) -> str:
    """The type of agents named elsewhere that is all that an entry says of who it is; empty where it says more."""
    kind = agent if isinstance(agent, str) else "" if _own_id(agent) else agent_kind(agent)
    return kind if kind in elsewhere else ""


def agent_ids(listed: list[Any], elsewhere: Mapping[str, list[str]]) -> list[str]:
    """An id for each entry of a list of agents: its own, else that of an agent of its type, where as many are named
    elsewhere as are listed, else its type, numbered where several have it. A text is an id itself, unless it is such a
    type; empty where nothing tells."""
    own = [
        "" if isinstance(one, str) and one in elsewhere else one if isinstance(one, str) else _own_id(one)
        for one in listed
    ]
    kinds = [one if isinstance(one, str) else agent_kind(one) for one in listed]
    alike, taken, numbers, seen = Counter(kinds), set(own), Counter[str](), Counter[str]()
    nameless = Counter(kind for kind, name in zip(kinds, own, strict=True) if not name)
    for place, (kind, name) in enumerate(zip(kinds, own, strict=True)):
        if name or not kind:
            continue
        seen[kind] += 1
        named = elsewhere.get(kind, [])
        if nameless[kind] == len(named):
            name = named[seen[kind] - 1]
        else:
            name = kind if alike[kind] == 1 else ""
        while not name or name in taken:
            numbers[kind] += 1
            name = f"{kind}-{numbers[kind]}"
        taken.add(name)
        own[place] = name
    return own


def _own_id(agent: object) -> str:
    return next(filter(None, (text(agent, key) for key in ("agent_id", "id", "agent"))), "")


def participants(data: Json) -> list[Json]:
    """The participants, those without an id with the one that a repair gives them."""
    listed = inner(data, "collaboration").get("participants")
    listed = listed if isinstance(listed, list) else []
    names = list(map(_own_id, listed))
    if not all(names):
        elsewhere = agents_elsewhere(data)
        listed = [one for each in types_spread(listed, elsewhere) for one in each]
        names = agent_ids(listed, elsewhere)
    found = [_identified(one, name) for one, name in zip(listed, names, strict=True)]
    return [one for one in found if one is not None]


def _identified(agent: Any, name: str) -> Json | None:
    if isinstance(agent, str):
        kind = type_in(agent) or agent if name == agent else agent
        return {"agent_id": name, "agent_type": kind} if agent else None
    if not isinstance(agent, dict) or not name or agent.get("agent_id") not in (None, ""):
        return agent if isinstance(agent, dict) else None
    kind = agent_kind(agent)
    return {**agent, "agent_id": name, **({"agent_type": kind} if kind else {})}


def orchestrator(data: Json) -> Json:
    """The orchestrator, in the same way; an empty object where nobody can be told to be it."""
    said = inner(data, "collaboration").get("orchestrator")
    if isinstance(said, dict) and said.get("agent_id") not in (None, ""):
        return said
    if said in (None, "") or (isinstance(said, dict) and not agent_kind(said)):
        made = leader(data)
        return {**(said or {}), **made} if "agent_id" in made else said or {}
    if not isinstance(said, (str, dict)) or not said:
        return {}
    kind = said if isinstance(said, str) else agent_kind(said)
    same = [one for one in participants(data) if kind in (one.get("agent_id"), one.get("agent_type"))]
    named = agents_elsewhere(data).get(kind, [])
    name = named[0] if len(named) == 1 else kind
    if len(same) == 1 and "agent_id" in same[0]:
        name = str(same[0]["agent_id"])
    if isinstance(said, str):
        kind = str(same[0].get("agent_type", kind)) if len(same) == 1 else kind if named else type_in(kind) or kind
    return {**(said if isinstance(said, dict) else {}), "agent_type": kind, "agent_id": name}


def told_leader(data: Json) -> tuple[Json, str]:
    """The agent that the document calls the one that leads, without naming an orchestrator, and in which words: one of
    the participants, or one that sub-sessions and messages name; else the agent that the document says it is of. An
    empty object where there is none, or more than one."""
    subs, messages = values(data.get("sub_sessions")), values(data.get("messages"))
    named = [*participants(data), *(agent_at(sub, "agent") for sub in subs)]
    named += [agent_at(one, key) for one in messages for key in ("from_agent", "to_agent")]
    told = {text(one, "agent_id"): (one, said) for one in named if (said := says_it_leads(one))}
    told.pop("", None)
    working = _working(data)
    free = {name: one for name, one in told.items() if name not in working}
    if len(chosen := free or told) == 1:
        return next(iter(chosen.values()))
    own = inner(data, "agent")
    if told or not (name := text(own, "agent_id")):
        return {}, ""
    known = next((one for one in named if text(one, "agent_id") == name), {})
    kind = text(known, "agent_type") or text(own, "agent_type") or type_in(name) or name
    return {"agent_id": name, "agent_type": kind}, "the document is its work, as `agent` says"


def _working(data: Json) -> set[str]:
    """The ids of the agents that have a sub-session."""
    subs = values(data.get("sub_sessions"))
    return {text(agent_at(sub, "agent"), "agent_id") or text(sub, "agent_id") for sub in subs}


def leader(data: Json) -> Json:
    """Who leads where nobody is named: whom the document says to, else the first participant, or whoever gives the
    first task, where nobody takes part or the first participant was given work itself. Of those who give tasks it is
    the first who was given none: a worker may have workers of its own. Where no message tells, it is the only architect
    who was given no work. An empty object where nobody does."""
    told, _ = told_leader(data)
    if told:
        return told
    first, working = next(iter(participants(data)), Json()), _working(data)
    if first and text(first, "agent_id") not in working:
        return first
    named = (one for one in task_givers(data) if text(one, "agent_id") and text(one, "agent_type"))
    giver = next((one for one in named if one["agent_id"] not in working), None)
    return giver or _free_architect(data, working) or first


_LEADS = "architect"
"""The type that leads by the standard, and what its summary calls whoever does."""


def _free_architect(data: Json, working: set[str]) -> Json:
    """The only architect among the participants, and those that the summary counts, who has no sub-session."""
    counted = inner(data, "summary").get("agents")
    rows = values(counted) if isinstance(counted, list) else [{"agent_type": _LEADS, **inner(counted, _LEADS)}]
    listed = [*participants(data), *rows] if working else []
    free = {text(one, "agent_id") for one in listed if text(one, "agent_type") == _LEADS} - {"", *working}
    return {"agent_id": free.pop(), "agent_type": _LEADS} if len(free) == 1 else {}


def task_givers(data: Json) -> list[Json]:
    """Whoever gives a task that a message tells of, in the order of the messages."""
    asking = ("task_assignment", "review_request")
    return [agent_at(one, "from_agent") for one in values(data.get("messages")) if one.get("message_type") in asking]


def task_workers(data: Json) -> dict[str, Json]:
    """A task, or a review, to the agent that messages give it to; without those that are given to several."""
    found: dict[str, dict[str, Json]] = {}
    for message in values(data.get("messages")):
        payload, agent = inner(message, "payload"), agent_at(message, "to_agent")
        match message.get("message_type"):
            case "task_assignment":
                names = {text(inner(payload, "task"), "task_id"), text(payload, "task_id")}
            case "review_request":
                names = {text(payload, "review_id")}
            case _:
                continue
        for name in names - {""} if text(agent, "agent_id") else ():
            found.setdefault(name, {})[text(agent, "agent_id")] = agent
    return {name: next(iter(given.values())) for name, given in found.items() if len(given) == 1}


def call_kind(call: object) -> str:
    """The type of the agent that a call started, as the call has it; empty where it does not say."""
    said = text(inner(call, "subagent_info"), "subagent_type")
    return said or text(inner(inner(call, "input"), "params"), "subagent_type")


def call_owners(data: Json, asked: Container[str] | None = None) -> dict[str, list[str]]:
    """The id of a call to the session and the sub-sessions that have one with it, the session first: each agent may
    count its own calls. Of those `asked` for alone, where any are."""
    found: dict[str, list[str]] = {}
    lists = [(text(data, "session_id"), own_calls(data))]
    lists += [(text(sub, "sub_session_id"), values(sub.get("tool_calls"))) for sub in values(data.get("sub_sessions"))]
    for owner, calls in lists:
        for call in calls if owner else ():
            if (name := text(call, "call_id")) and (asked is None or name in asked):
                found.setdefault(name, []).append(owner)
    return found


def assigned_task(message: Json) -> str:
    """The task that an assignment gives: the standard has its id in an object, and a program may leave that out."""
    payload = inner(message, "payload")
    return text(inner(payload, "task"), "task_id") or text(payload, "task_id")


def requested_reviews(data: Json) -> set[str]:
    """The ids of reviews that a message asks for; none that is a task of another agent, which the review is called
    after."""
    asked, assigned = set[tuple[str, str]](), set[tuple[str, str]]()
    for message in values(data.get("messages")):
        hearer = text(inner(message, "to_agent"), "agent_id")
        if message.get("message_type") == "review_request":
            asked.add((text(inner(message, "payload"), "review_id"), hearer))
        elif message.get("message_type") == "task_assignment":
            assigned.add((assigned_task(message), hearer))
    return {name for name, _ in asked if name} - {name for name, _ in assigned - asked}


def is_review(sub: Json, requested: set[str]) -> bool:
    """Whether a sub-session is a review: by what it hands in, by its task, or by what its agent is called."""
    agent, output = inner(sub, "agent"), inner(sub, "output")
    if output and output_model(output, text(agent, "agent_type")) is ReviewerOutput:
        return True
    if text(inner(sub, "task"), "task_id") in requested:
        return True
    names = (text(agent, "agent_type"), text(agent, "agent_id"), text(sub, "x_harken_name"))
    return any("review" in name.lower() for name in names)


def error_words(output: object) -> str:
    """The error of an output as text: an object is told as the JSON that it is, and `false` is none."""
    error = output.get("error") if isinstance(output, dict) else None
    return error if isinstance(error, str) else compact(error).decode() if error else ""


def with_error(said: str, error: str) -> str:
    """What a tool answered, behind the error that it ended with, unless the answer has that in it; an export writes the
    beginning of the answer there."""
    begun = " ".join(error.removesuffix("…").split())
    if not begun or begun in (told := " ".join(said.split())):
        return said
    return f"{error}\n{said}" if told else error
