"""Runtimes that speak for native agents: `runtime:claude-code` and `runtime:codex` as language models.

The log says which session of the runtime has spoken for an agent, and which commit holds what it knew then. A turn of
the runtime is logged when it begins, and when it is over before its answer goes anywhere. So after a crash a turn that
was over is not played again (where the log does not say so yet, the store does, or a spool), and one that was not is
begun anew from the commit before it, in a session of its own.
Whatever else the transcript holds that the runtime has not said or heard (another model spoke before, or the
oldest turns were folded) is written for it as a conversation to go on from.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import orjson

from harken import clock, runtimes
from harken.agents import AgentPool, ModelError, Reply, Request
from harken.agents.limits import RUNTIME_TURN
from harken.errors import BadRequest, HarkenError
from harken.events import System, Tokens
from harken.events.tally import MICROS
from harken.runtimes import Environment
from harken.runtimes.as_model import Played, RuntimePart, RuntimePrompt, Stage, check, digest, play, take_apart
from harken.runtimes.finished_turn import find_finished_turn

from .counting import SessionFigures
from .running import socket_folder

if TYPE_CHECKING:
    from .live import KeptSession
    from .repo import Repo

CHAT = "openai-chat-v1"


class RuntimeUse(msgspec.Struct, frozen=True, kw_only=True):
    """That runtimes may speak for agents of a session, and how they are started."""

    environ: Environment
    """What they are started with."""
    cwd: Path
    """The folder they work in."""
    arguments: Mapping[str, tuple[str, ...]] = {}
    """Arguments of their own, by runtime, such as which tools they may use."""


class RuntimeTurn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the log has of a turn of a runtime."""

    runtime: str
    asked: str
    """What the messages it was asked with are known by again."""
    session: str = ""
    """The runtime's own session; empty while the turn goes on."""
    commit: str = ""
    """The commit that holds what it knows now."""
    stands: str = ""
    """What the conversation with its answer is known by again."""
    text: str = ""
    """Its answer."""
    tokens: int = 0
    """What it used in this turn, with its sub-agents; its own session counts it, and limits of the agent do."""
    cost_usd: float = 0.0
    unpriced: int = 0
    """Requests whose price nobody knows."""
    cut_off: bool = False
    """Whether the program was ended behind its answer: its session may lack it, and is not gone on with."""


class TurnsKnown(msgspec.Struct, frozen=True):
    """How far a runtime has come with an agent."""

    over: RuntimeTurn | None
    """Its last turn that was over."""
    begun: RuntimeTurn | None
    """The turn, of any runtime, that was begun since and is not known to be over."""
    begun_at: int


class RuntimeModel:
    """A runtime as a language model, for the agents of one session."""

    def __init__(self, repo: Repo, session: KeptSession, runtime: str, use: RuntimeUse | None) -> None:
        self._runtime = runtimes.get(runtime)
        check(self._runtime)
        if use is None:
            raise BadRequest(
                f"nobody has said that {self._runtime.label} may be started for this session",
                hint="open it with repo.session(path, runtimes=RuntimeUse(environ=…, cwd=…))",
            )
        self._repo, self._session, self._use = repo, session, use

    @property
    def name(self) -> str:
        """The name that opens it again."""
        return f"runtime:{self._runtime.name}"

    async def complete(self, request: Request) -> Reply:
        """What the runtime answers to what the agent was told since its last message."""
        if request.purpose:
            raise ModelError(f"{self._runtime.label} is not asked for summaries of others", hint="give the summary")
        asked, told = digest(request.messages), take_apart(request.messages)
        known = self._known(request.agent_id)
        if known.over is not None and known.over.asked == asked:
            return Reply(content=known.over.text)
        try:
            part = self._part(request, told, known)
            played = await self._finished(part, asked, known)
            if played is None:
                self._note(request.agent_id, RuntimeTurn(runtime=self._runtime.name, asked=asked))
                played = await self._played(part)
        except HarkenError as problem:
            raise ModelError(str(problem), hint=problem.hint or "") from problem
        if played.status or not played.session:
            if played.session:  # what failed was paid for, too
                turn = RuntimeTurn(runtime=self._runtime.name, asked=asked)
                self._note(request.agent_id, self._priced(turn, request.agent_id, played.session))
            raise ModelError(
                f"{self._runtime.label} ended with {played.status}: {played.trouble or played.text}"[:2000]
            )
        over = self._over(asked, told, played)
        self._note(request.agent_id, self._priced(over, request.agent_id, played.session))
        return Reply(content=played.text)

    def _turns(self, agent_id: str) -> Iterator[tuple[RuntimeTurn, int]]:
        """What the log has of turns of runtimes for an agent, each with its time."""
        for data in self._session.records_of([agent_id]):
            if data.get("event_type") == "system" and data.get("subtype") == RUNTIME_TURN:
                with contextlib.suppress(msgspec.ValidationError):  # no line of ours
                    turn = msgspec.convert(data.get("metadata"), RuntimeTurn)
                    yield turn, clock.parse_instant(data.get("timestamp")) or 0

    def _known(self, agent_id: str) -> TurnsKnown:
        """The last turn of this runtime for an agent that was over, and the one that was begun since."""
        over, begun, begun_at = None, None, 0
        for turn, time in self._turns(agent_id):
            if not turn.session:
                # What a turn that failed had used is noted behind its beginning.
                begun, begun_at = turn, begun_at if begun is not None and turn.tokens + turn.unpriced else time
                continue
            begun = None
            over = turn if turn.runtime == self._runtime.name else over
        return TurnsKnown(over, begun, begun_at)

    async def _finished(self, part: RuntimePart, asked: str, known: TurnsKnown) -> Played | None:
        """The turn that was begun with the same words, where it was over when the process died."""
        begun = known.begun
        if begun is None or (begun.runtime, begun.asked) != (self._runtime.name, asked):
            return None
        return await asyncio.to_thread(find_finished_turn, self._repo.store, part, known.begun_at)

    def _part(self, request: Request, told: RuntimePrompt, known: TurnsKnown) -> RuntimePart:
        """What the runtime is to do: go on with its session, from a commit, or begin."""
        session, source, last = "", None, known.over
        is_its_own = last is not None and last.stands == digest(told.past)
        if last is not None and is_its_own and known.begun is None and not last.cut_off:
            session = last.session
        elif last is not None and is_its_own and last.commit:
            source = self._repo.commit(last.commit)  # a turn that was cut off is none of what it knows
        elif told.past:
            source = self._repo.checkpoint(orjson.dumps(told.past), format=CHAT)
        return RuntimePart(
            runtime=self._runtime,
            told=told,
            environ=self._use.environ,
            cwd=Path(self._use.cwd),
            socket_folder=socket_folder(self._use.environ),
            arguments=tuple(self._use.arguments.get(self._runtime.name, ())),
            session=session,
            source=source,
            thread_id=f"{self._session.session_id}/{request.agent_id}",
            machine=self._repo.machine,
        )

    async def _played(self, part: RuntimePart) -> Played:
        """The runtime's turn, in a thread; whoever gives it up ends the program."""
        stage = Stage()
        playing = asyncio.ensure_future(asyncio.to_thread(play, self._repo.store, part, stage, now=self._repo.clock))
        try:
            return await asyncio.shield(playing)
        except asyncio.CancelledError:
            await asyncio.to_thread(stage.end)
            await asyncio.gather(playing, return_exceptions=True)
            raise

    def _over(self, asked: str, told: RuntimePrompt, played: Played) -> RuntimeTurn:
        now = [*told.past, *told.heard, {"role": "assistant", "content": played.text}]
        row = None if played.is_cut_off else self._repo.store.find_session(played.session)
        stand = row.stand if row is not None else ""
        return RuntimeTurn(
            runtime=self._runtime.name,
            asked=asked,
            session=played.session,
            commit=stand or (self._repo.commit(played.context_id).id if played.context_id else ""),
            stands=digest(now),
            text=played.text,
            cut_off=played.is_cut_off,
        )

    def _priced(self, turn: RuntimeTurn, agent_id: str, session: str) -> RuntimeTurn:
        """The turn, with what its session has used beyond the turns before it in the same session."""
        tokens, cost, unpriced = spent_by(self._repo, session)
        before = [one for one, _ in self._turns(agent_id) if one.session == session]
        return msgspec.structs.replace(
            turn,
            tokens=max(0, tokens - sum(one.tokens for one in before)),
            cost_usd=max(0.0, round(cost - sum(one.cost_usd for one in before), 6)),
            unpriced=max(0, unpriced - sum(one.unpriced for one in before)),
        )

    def _note(self, agent_id: str, turn: RuntimeTurn) -> None:
        agent = AgentPool.of(self._session).get(agent_id)
        data = msgspec.json.encode(turn)
        self._session.append(
            [System(agent_id=agent_id, subtype=RUNTIME_TURN, metadata=data, cause=agent.last_message_id())]
        )


def spent_by(repo: Repo, session: str) -> tuple[int, float, int]:
    """What a session and its sub-agents have used, without what it carried over: tokens, dollars at list price, and
    requests without a price."""
    line = next((one for one in repo.stats([session]) if isinstance(one, SessionFigures)), None)
    if line is None:
        return 0, 0.0, 0
    price, carried = line.price_with_agents or line.price, line.price_carried
    tokens = _all((line.with_agents or line.figures).usage) - (_all(line.carried.usage) if line.carried else 0)
    micros = (price.usd_micros or 0) - ((carried.usd_micros or 0) if carried else 0)
    unpriced = sum(price.unpriced.values()) - (sum(carried.unpriced.values()) if carried else 0)
    return max(0, tokens), max(0, micros) / MICROS, max(0, unpriced)


def _all(used: Tokens) -> int:
    return used.prompt + (used.output or 0)
