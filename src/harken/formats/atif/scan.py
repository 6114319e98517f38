"""What an import has to know of a trajectory, and the agents inside it.

A trajectory is kept as one commit: programs write it as a whole, again and again. Each agent inside but the first has a
chain of its own, which is its trajectory without those of the agents that it started."""

from __future__ import annotations

from harken.events import Output
from harken.events.base import excerpt, named, text_at
from harken.events.messages import asked_first
from harken.events.records import by_record
from harken.events.tally import Tally
from harken.formats.base import Delta
from harken.formats.facts import FileFacts
from harken.formats.kit.jsonl import Record, encode

from .document import SUBAGENTS, inner
from .reading import TrajectoryReader

RUNTIME = "atif"


def scan(data: bytes, state: bytes = b"") -> FileFacts:
    """The facts of a trajectory."""
    told = TrajectoryReader(data)
    tally, records = Tally.of(told.events), list(by_record(told.events))
    own = Tally.of(event for event in told.events if not told.agents or event.agent_id in ("", told.agents[0].agent_id))
    delta = Delta(start=0, end=len(data), closed=False, time=tally.ended, messages=tally.messages, records=len(records))
    inside = told.agents[1:]
    main = told.agents[0].document if told.agents else {}
    number = _number(main)
    return FileFacts(
        runtime=RUNTIME,
        session=_session(main, number),
        forked_from=_session(main, number - 1) if number else "",
        records=len(records),
        opaque=sum(any(isinstance(event, Output) and bool(event.why) for event in record) for record in records),
        messages=tally.messages,
        inside=tally.messages - own.messages,
        tally=tally,
        title=excerpt(asked_first(told.events)),
        deltas=(delta,) if data else (),
        agents=tuple(one.agent_id for one in inside),
        calls={one.agent_id: one.call_id for one in inside if one.call_id},
        makers={one.agent_id: one.parent for one in inside if one.parent != told.agents[0].agent_id},
        side_chains=bool(inside),
    )


def _number(main: Record) -> int:
    """Which part of a run that was continued it is, as it says itself; 0 for the first."""
    number = inner(inner(main, "agent"), "extra").get("continuation_index")
    return number if type(number) is int and 0 < number < 1 << 20 and not text_at(main, "trajectory_id") else 0


def _session(main: Record, number: int) -> str:
    """The document's own name. A run has one for all its documents; those behind the first say which they are."""
    name = named(text_at(main, "trajectory_id")) or named(text_at(main, "session_id"))
    return f"{name}-cont-{number}" if name and number else name


def side_chains(data: bytes) -> dict[str, bytes]:
    """The agents inside a trajectory, but the first: of each its own."""
    return {
        one.agent_id: encode({key: value for key, value in one.document.items() if key != SUBAGENTS})
        for one in TrajectoryReader(data).agents[1:]
    }
