"""How much agents may use: money, tokens, messages, time, and how deep they may make agents.

A limit of an agent is of all below it as well, hooks included; one of the session is of everybody. What was used is a
fold over the log, so it counts on after a crash. It is looked at before each request, so a run stops within one request
of its limit; those that are under way side by side come to their end. A higher limit and `resume()` go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec
import orjson

from harken.errors import BadRequest, LimitReached
from harken.events import System
from harken.events.tally import SYNTHETIC
from harken.log import Session
from harken.log.base import BEGINS_WITH

from .actions import TOOLS
from .typed import hold, whole

if TYPE_CHECKING:
    from .agent import Agent
    from .core import AgentCore
    from .tools import Tool

LIMITS, SESSION_LIMITS = "limits", "session_limits"
"""The names of the settings: of an agent with all below it, and of the session (logged with the root)."""
LIMIT = "limit"
"""The subtype of the notice that a limit was reached."""
RUNTIME_TURN = "runtime_turn"
"""The subtype of the notice that a runtime spoke for an agent. What it used counts in its own session, and only towards
limits here."""
WORKED = "worked"
"""The subtype of the notice that says how long a model or a tool worked; only where time is limited."""
_TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


class RunLimits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How much may be used; None: as much as it takes."""

    cost_usd: float | None = None
    tokens: int | None = None
    """All that the provider counts, from and into its cache too."""
    steps: int | None = None
    """Messages of models."""
    depth: int | None = None
    """How many agents deep below; 0: no agents below."""
    seconds: float | None = None
    """How long models and tools may work in all; calls side by side each count."""

    def __post_init__(self) -> None:
        hold(self)
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value is not None and value < 0:
                raise BadRequest(f"{name} of RunLimits cannot be {value!r:.80}", hint="such as steps=100")


class Used(msgspec.Struct, frozen=True, kw_only=True):
    """What was used."""

    cost_usd: float = 0.0
    tokens: int = 0
    steps: int = 0
    seconds: float = 0.0
    unpriced: int = 0
    """Replies whose cost nobody knows."""

    def __add__(self, other: Used) -> Used:
        return Used(**{name: getattr(self, name) + getattr(other, name) for name in self.__struct_fields__})


def read_limits(value: object) -> RunLimits | None:
    """Limits from a log, which anybody may have written; None where they are none."""
    try:
        found = {name: whole(one) for name, one in value.items()} if isinstance(value, dict) else None
        return msgspec.convert(found, RunLimits) if found is not None else None
    except (msgspec.ValidationError, BadRequest):
        return None


class Ledger:
    """What each agent has used, one line of the log after the other. What an agent or a log begins with was used
    before, by whoever said it."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._used: dict[str, Used] = {}
        self._beginnings: dict[str, int] = {}
        """How many entries are still to come of what an agent begins with."""
        self.take(session.own_records())
        session.line_observers.append(self.take)

    def take(self, lines: Iterable[dict[str, Any]]) -> None:
        """Take in lines of the log."""
        for line in lines:
            agent_id = str(line.get("agent_id") or "")
            if not self._is_beginning(agent_id, line) and (found := _used(line)) is not None:
                self._used[agent_id] = self._used.get(agent_id, Used()) + found

    def _is_beginning(self, agent_id: str, line: dict[str, Any]) -> bool:
        kind, attributes = line.get("event_type"), line.get("attributes")
        if kind == "agent_created" and isinstance(attributes, dict):
            count = attributes.get(BEGINS_WITH)
            self._beginnings.setdefault(agent_id, count if type(count) is int else 0)
        if kind != "transcript_entry" or line.get("index"):
            return False
        left = self._beginnings.get(agent_id, 0)
        self._beginnings[agent_id] = max(left - 1, 0)
        return left > 0

    def of(self, agent_id: str | None) -> Used:
        """What an agent and all below it have used; None: everybody."""
        found = Used()
        for one, used in self._used.items():
            if agent_id is None or agent_id in _upwards(self.session, one):
                found += used
        return found


def _used(line: dict[str, Any]) -> Used | None:
    """What one line of a log says was used."""
    kind = line.get("event_type")
    if kind == "metric" and not line.get("scope") and not line.get("status"):
        cost = _number(line.get("cost_usd"))
        tokens = int(sum(_number(line.get(key)) or 0 for key in _TOKENS))
        return Used(cost_usd=cost or 0.0, tokens=tokens, unpriced=int(cost is None and tokens > 0))
    if kind == "system":
        return _noted(line.get("subtype"), line.get("metadata"))
    if kind != "transcript_entry" or line.get("role") != "assistant":
        return None
    return Used(steps=int(not line.get("index") and line.get("model") != SYNTHETIC))


def _noted(subtype: object, about: object) -> Used | None:
    """What a notice says was used that no other line tells of."""
    if not isinstance(about, dict):
        return None
    if subtype in (LIMIT, WORKED):
        return Used(seconds=_number(about.get("seconds")) or 0.0)
    if subtype != RUNTIME_TURN:
        return None
    figures = {key: _number(about.get(key)) or 0 for key in ("cost_usd", "tokens", "unpriced")}
    return Used(cost_usd=figures["cost_usd"], tokens=int(figures["tokens"]), unpriced=int(figures["unpriced"]))


def _number(value: object) -> float | None:
    """A figure of a log; nothing that is used is less than nothing."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 else None


def _upwards(session: Session, agent_id: str) -> Iterator[str]:
    """An agent and those above it; a hook is below the agent it watches."""
    seen: set[str] = set()
    at: str | None = agent_id
    while at is not None and at not in seen:
        seen.add(at)
        yield at
        info = session.agents.get(at)
        watched = info.attributes.get("watches") if info is not None and info.role == "hook" else None
        at = watched if isinstance(watched, str) else info.parent if info is not None else None


def holders(agent: AgentCore) -> list[tuple[str | None, RunLimits]]:
    """Every limit that an agent is under, with whose it is; None: the session's."""
    settings, session = agent.pool.settings, agent.session
    above = agent.agent_id if agent.info is not None else agent.made_below
    line = [agent.agent_id, *(_upwards(session, above) if above else ())]
    found: list[tuple[str | None, RunLimits]] = []
    if session.root is not None and (limits := read_limits(settings.of(session.root, SESSION_LIMITS))) is not None:
        found.append((None, limits))
    own = ((one, read_limits(settings.of(one, LIMITS))) for one in dict.fromkeys(line))
    return found + [(one, limits) for one, limits in own if limits is not None]


def check(agent: Agent) -> None:
    """Stop where a limit is reached that the agent is under, and log it."""
    for whose, limits in holders(agent):
        used = agent.pool.used(whose)
        for name in ("cost_usd", "tokens", "steps", "seconds"):
            most = getattr(limits, name)
            if most is not None and round(getattr(used, name), 12) >= most:  # 8 times 0.1 is a little less than 0.8
                reached(agent, name, whose, most, getattr(used, name))
        if limits.cost_usd is not None and used.unpriced:
            what = f"the cost of {used.unpriced} replies is not known, so a limit on cost cannot be kept"
            message = f"{agent.label} was stopped: {what}"
            log_reached(agent, message, "cost_usd", whose, limits.cost_usd, used.cost_usd)
            raise LimitReached(message, hint="set a limit on tokens in its place: RunLimits(tokens=…)")


def reached(agent: Agent, name: str, whose: str | None, most: float, used: float, seconds: float = 0.0) -> None:
    """Log that a limit was reached, and stop. `seconds` is time that no other line tells of."""
    message = f"{agent.label} was stopped: {_words(agent, name, whose)} is {most:g}, and {round(used, 6):g} is used"
    log_reached(agent, message, name, whose, most, used, seconds)
    raise LimitReached(
        message, hint="set a higher one (load_session(limits=…), agent.limits = …, `harken chat --limit-…`) and resume"
    )


def _words(agent: AgentCore, name: str, whose: str | None) -> str:
    of = "the session" if whose is None else agent.pool.get(whose).label
    return f"the limit of {of} on {name}"


def log_reached(
    agent: AgentCore, message: str, name: str, whose: str | None, most: float, used: float, seconds: float = 0.0
) -> None:
    """Log that a limit was reached; an empty `of` is the session's."""
    about: dict[str, Any] = {"limit": name, "of": whose or "", "most": most, "used": round(used, 6)}
    if seconds:
        about["seconds"] = round(seconds, 3)
    notice = System(agent_id=agent.agent_id, subtype=LIMIT, message=message, metadata=orjson.dumps(about))
    agent.session.append([notice])


def time_left(agent: AgentCore) -> tuple[float, str | None, float] | None:
    """How many seconds an agent may still work, whose limit that is, and how much it is; None: as long as it takes."""
    left = [
        (max(limits.seconds - agent.pool.used(whose).seconds, 0.0), whose, limits.seconds)
        for whose, limits in holders(agent)
        if limits.seconds is not None
    ]
    return min(left, key=lambda one: one[0], default=None)


def log_time(agent: AgentCore, seconds: float, message_id: str) -> None:
    """Log how long it took until a message or a result was there."""
    about = orjson.dumps({"seconds": round(seconds, 3)})
    agent.session.append([System(agent_id=agent.agent_id, subtype=WORKED, metadata=about, cause=message_id)])


def is_timed(agent: AgentCore, tool: Tool) -> bool:
    """Whether it is noted how long a tool works; ours let agents work, whose time is noted."""
    return tool not in TOOLS and time_left(agent) is not None


def check_depth(agent: Agent) -> None:
    """Refuse an agent below this one where that would be too deep; it is a refusal, not the end of a turn."""
    path = list(_upwards(agent.session, agent.agent_id)) if agent.info is not None else [agent.agent_id]
    for whose, limits in holders(agent):
        if limits.depth is None:
            continue
        deep = len(path) if whose is None else path.index(whose) + 1
        if deep > limits.depth:
            message = f"{_words(agent, 'depth', whose)} is {limits.depth}, so {agent.label} makes no agents"
            log_reached(agent, message, "depth", whose, limits.depth, deep)
            raise BadRequest(message, hint="let an agent further up do it")
