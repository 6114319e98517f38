"""A model that answers as a log recorded it: the same words and the same calls, to whoever is asked the same.

Agents are told apart by their path of names from the root, and by which of that name they are. What an agent is asked
is what it was told since its last message (instructions, words and results), and the recorded answer to just that is
the reply: in the same place where that was recorded, else as often as it was asked before. So discussions may run side
by side, a replay may be interrupted and resumed, and where it departs from the recording it says so instead of giving
an answer to something else. Nothing is kept here between calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path

import msgspec

from harken.agents.entries import Entry, for_model
from harken.errors import BadRequest, NotFound
from harken.log import Session
from harken.text import text_of

from .base import SUMMARY, Message, ModelError, Reply, Request

Path_ = tuple[tuple[str, int], ...]
"""Names from the root down, each with the number of agents that had that name before in the same place: a second agent
of a name is another, and agent ids differ from log to log."""
Asked = tuple[tuple[str, str], ...]
"""Role and words of each message since the agent's last one; results first, as a model is shown them."""

AGENT_ID = re.compile(r"\bagent_[0-9]+\b")
_SHOWN = 80
_DEPARTED = "a recording answers what it was asked, with the same tools and hooks; go on with another model"


class Recorded(msgspec.Struct, frozen=True):
    """One recorded answer."""

    turn: int
    """How many messages the agent had produced before."""
    asked: Asked
    message: Message


class ReplayPart(msgspec.Struct):
    """What one agent answered, in the order of the log."""

    answers: list[Recorded] = []
    summaries: dict[str, list[int]] = {}
    """What stood in the place of what was folded, and after how many messages: no part of what was asked."""


class ReplayModel:
    """Answers from recorded messages."""

    def __init__(self, parts: dict[Path_, ReplayPart], *, name: str = "replay:") -> None:
        self.parts = parts
        self._name = name

    @property
    def name(self) -> str:
        """The name that opens this recording again."""
        return self._name

    async def complete(self, request: Request) -> Reply:
        """The recorded answer to what is asked."""
        part = self.parts.get(agent_path(request.path, request.before), ReplayPart())
        if request.purpose == SUMMARY:
            summary = next((text for text, turns in part.summaries.items() if request.turn in turns), None)
            return Reply(content=summary)
        stretches = list(_stretches(request.messages, part.summaries))
        asked = stretches[-1]
        found = _answer(part.answers, request, asked, stretches.count(asked) - 1)
        if found is None:
            raise ModelError(_departure(part.answers, request, asked), hint=_DEPARTED)
        content, calls, thinking = (found.message.get(key) for key in ("content", "tool_calls", "thinking"))
        return Reply(
            content=content if isinstance(content, str) else None,
            tool_calls=tuple(call for call in calls if isinstance(call, dict)) if isinstance(calls, list) else (),
            thinking=thinking if isinstance(thinking, str) else "",
        )


def _answer(answers: list[Recorded], request: Request, asked: Asked, before: int) -> Recorded | None:
    own = [one for one in answers if one.asked == asked]
    here = next((one for one in own if one.turn == request.turn), None)
    return here or (own[before] if before < len(own) else None)


def _departure(answers: list[Recorded], request: Request, asked: Asked) -> str:
    """Where a replay leaves the recording, in words."""
    here = f"message {request.turn + 1} of {'/'.join(request.path)!r}"
    then = next((one for one in answers if one.turn == request.turn), None)
    if then is None:
        return f"the recording has no {here}, which answers {_shown(asked[-1][1] if asked else '')}"
    pairs = zip_longest(asked, then.asked)
    now, was = next((pair for pair in pairs if pair[0] != pair[1]), (None, None))
    role = now is not None and was is not None and now[1] == was[1]  # whose words they are is all that differs
    first, other = (": ".join(one[0 if role else 1 :]) if one is not None else "" for one in (now, was))
    is_asked, was_asked = (repr(text) if text else "nothing more" for text in parted(first, other, _SHOWN))
    return f"the replay departs from the recording at {here}: it is asked {is_asked}, and was {was_asked}"


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def parted(one: str, other: str, most: int) -> tuple[str, str]:
    """Two texts that differ, cut to some characters of each that show where they do."""
    same = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    start = 0 if same < most // 2 else same - most // 4

    def cut(text: str) -> str:
        part = text[start : start + most]
        return "…" * (start > 0) + part + "…" * (start + most < len(text)) if text else ""

    return cut(one), cut(other)


def _stretches(messages: Iterable[Message], summaries: Iterable[str]) -> Iterator[Asked]:
    """What was asked before each message of the assistant, and last what is asked now."""
    left_out = set(summaries)
    told: list[tuple[str, str]] = []
    for message in messages:
        role, content = str(message.get("role")), str(message.get("content") or "")
        if role == "assistant":
            yield tuple(told)
            told = []
        elif not (role == "user" and content in left_out):
            # Ids are given in the order of creation, which side by side is not always the same.
            told.append((role, AGENT_ID.sub("agent", content)))
    yield tuple(told)


def load_recording(path: Path, *, name: str) -> ReplayModel:
    """The recording in a session log."""
    if not path.exists():
        raise NotFound(f"there is no recording {str(path)!r}", hint="replay: takes a session log, and says it again")
    with Session.load(path, readonly=True) as session:
        if not session.agents and path.stat().st_size:
            raise BadRequest(f"{path} is not a session log", hint="replay: takes a session log, and says it again")
        paths = {
            agent_id: agent_path(names_of(session, agent_id), session.registry.before(agent_id))
            for agent_id in session.agents
        }
        parts: dict[Path_, ReplayPart] = {}
        open_: dict[str, list[Entry]] = {}
        turns: dict[str, int] = {}
        for data in session.records():
            agent_id = text_of(data.get("agent_id"))
            part = parts.setdefault(paths.get(agent_id, ()), ReplayPart(answers=[], summaries={}))
            since = open_.setdefault(agent_id, [])
            if data.get("event_type") == "transcript_edit" and isinstance(data.get("content"), str):
                part.summaries.setdefault(data["content"], []).append(turns.get(agent_id, 0))
            if data.get("event_type") != "transcript_entry":
                continue
            if data.get("role") == "assistant" and not data.get("index"):
                *_, asked = _stretches(for_model(since), ())
                turn = turns.get(agent_id, 0)
                part.answers.append(Recorded(turn=turn, asked=asked, message=data))
                turns[agent_id] = turn + 1
                since.clear()
            since.append(data)
    return ReplayModel(parts, name=name)


def agent_path(names: tuple[str, ...], before: tuple[int, ...]) -> Path_:
    """By what an agent is known in any log."""
    return tuple(zip(names, before or (0,) * len(names), strict=False))


def names_of(session: Session, agent_id: str) -> tuple[str, ...]:
    """The names from the root down to an agent."""
    names: list[str] = []
    at: str | None = agent_id
    while at is not None and len(names) < 100:
        info = session.agents[at]
        names.append(info.name or ("root" if info.parent is None and info.role != "hook" else at))
        at = info.parent
    return tuple(reversed(names))
