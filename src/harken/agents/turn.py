"""A turn of an agent: from what it was told, through the tools it uses, to what it says.

What can stop a turn: a kill, a model that fails (`ModelFailed`), a log that cannot be written, somebody who cancels.
None of these is an answer, so the call that was running stays open in the log, and the next turn takes it up again.
Everything else that goes wrong in a tool is told to the model as an error result.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from harken import clock
from harken.errors import BadRequest, Locked, ModelFailed, Poisoned, Waiting
from harken.events.verdicts import Deny
from harken.log import LoggedString

from . import questions, settling, side_by_side
from .actions import as_answer, bounded, heard_by, speaker_of
from .asking import told_whole
from .compaction import make_more_room, make_room
from .deciding import blocked
from .entries import (
    REMARK,
    SENT_BACK,
    Asker,
    Entry,
    Window,
    answer_to,
    asked_for,
    asker,
    call_arguments,
    call_name,
    calls_of,
    for_model,
    is_pending,
    open_calls,
    times_sent_back,
    told_apart,
    unheeded,
)
from .hooks import Moment
from .limits import is_timed, log_time
from .models import Gauge, Message, ModelError, Reply, Request
from .side_by_side import ALONE, Slot
from .tools import Answer, Call, LoopLock, Tool, calling, describe
from .watching import consult, is_guarded, speak

if TYPE_CHECKING:
    from .agent import Agent

MAX_STEPS = 200
"""How many messages a model may produce in one turn before it has to say something."""
MAX_REVIEWS = 3
"""How often an utterance may be sent back in one turn; the next one stands."""

_TOO_LONG = "what is left cannot be folded; give it a model with a larger window, then resume"
FATAL = (ModelFailed, Poisoned, Locked, Waiting)
"""What stops a turn; anything else that goes wrong in a tool is its result."""
_speaking: ContextVar[tuple[Run, ...]] = ContextVar("harken_speaking", default=())
"""The turns in the middle of which we are, outermost first; of those that are over, a task may have stayed behind."""


class Admitted(NamedTuple):
    """A call that may run."""

    tool: Tool
    arguments: dict[str, Any]
    call: Call


class Run:
    """A turn under way, and whose turns it waits for."""

    def __init__(self, turn: Turn, asked_by: Asker | None) -> None:
        self.turn = turn
        self.asked_by = asked_by
        """The call that asked for it; None where no call of another agent did."""
        self.waits: list[Turn] = []
        self.over = False


class Turn:
    """An agent's way of taking turns: one at a time."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.run: Run | None = None
        """The turn that is under way, if one is."""
        self._lock = LoopLock()
        self.accepted = ""
        """The last utterance that was accepted."""
        self._gauge = Gauge()

    async def take(self, *, about: str | None = None, asked_by: Asker | None = None) -> LoggedString:
        """Finish what is open, then go on until the agent has said something.

        `about` is a message that may have been answered while we waited for our turn; then that answer is it.
        `asked_by` is the call that asks for the turn: its message is the `cause` of all that the agent says in it.
        """
        async with self._alone(asked_by):
            self.agent.refuse_terminated()
            self.agent.refuse_cut_off()
            self.agent.create()
            if about is not None and (found := answer_to(self.agent.transcript, about)) is not None:
                return LoggedString(str(found.get("content") or ""), str(found["message_id"]), self.agent.session.path)
            await self.agent.prepare()
            if (left := open_calls(self.agent.transcript)) is not None:
                await settling.settle(self, *left)
            if not self.agent.pool.is_plain:
                settling.refuse_form(self)
            if not any(entry.get("role") in ("user", "assistant") for entry in self.agent.transcript):
                raise BadRequest(f"{self.agent.label} has heard nothing yet", hint="tell it something with harken()")
            return await self._go_on()

    async def resume(self) -> LoggedString | None:
        """Finish an interrupted turn, if there is one."""
        if self.agent.is_terminated:
            return None
        self.agent.create()
        if is_pending(self.agent.transcript):
            return await self.take(asked_by=asker(self.agent.transcript))
        return await self.conclude() if settling.is_under_review(self) else None

    async def conclude(self, message_id: str | None = None) -> LoggedString | None:
        """Have the last utterance reviewed if that is still to be done; the utterance that stands in the end.

        None where the last thing in the transcript is no utterance, or not the one that is meant.
        """
        spoken = settling.to_review(self)
        if spoken is None or (message_id is not None and spoken["message_id"] != message_id):
            return None
        said = LoggedString(str(spoken.get("content") or ""), str(spoken["message_id"]), self.agent.session.path)
        async with self._alone(asked_for(spoken)):
            if await self._stands(said):
                settling.let_stand(self, spoken)
                return said
            await self.agent.prepare()
            return await self._go_on()

    @contextlib.asynccontextmanager
    async def _alone(self, asked_by: Asker | None = None) -> AsyncIterator[None]:
        asking = [run for run in _speaking.get() if not run.over]
        if asking:
            asking[-1].waits.append(self)  # before we look, so that of two threads that ask each other one is refused
        try:
            self._refuse_cycle(asking)
            async with self._lock:
                self.run = Run(self, asked_by)
                token = _speaking.set((*asking, self.run))
                try:
                    yield
                finally:
                    _speaking.reset(token)
                    self.run.over = True
                    self.run = None
        finally:
            if asking:
                asking[-1].waits.remove(self)

    def _refuse_cycle(self, asking: list[Run]) -> None:
        """An agent that waits, over any number of others, for whoever asks it now would wait for ever."""
        own = {run.turn for run in asking}
        if self in own:
            raise BadRequest(
                f"{self.agent.label} is in the middle of a turn and cannot be asked to speak",
                hint="wait until the turn is over",
            )
        waiting, seen = [self], {self}
        for turn in waiting:
            for other in turn.run.waits if turn.run is not None else ():
                if other in own:
                    raise BadRequest(
                        f"{self.agent.label} waits for {other.agent.label} in turn, so neither could go on",
                        hint="let one of the two finish first",
                    )
                if other not in seen:
                    seen.add(other)
                    waiting.append(other)

    async def _go_on(self) -> LoggedString:
        agent = self.agent
        if (refused := await self._prompted()) is not None:
            return refused
        for _ in range(MAX_STEPS):
            await self._make_room()
            message, message_id = self._keep(await self._complete())
            if calls := calls_of(message):
                await self.run_calls(calls, message_id)
                continue
            said = LoggedString(message["content"], message_id, agent.session.path)
            if await self._stands(said):
                return said
        raise ModelFailed(
            f"{agent.label} went on for {MAX_STEPS} messages without saying anything",
            hint="ask for less at once, or ask another model",
        )

    # -- the model ---

    async def _complete(self) -> Reply:
        """The model's next message. Where it is shown too much, what is finished is folded and it is asked again."""
        agent = self.agent
        while True:
            request = Request(
                messages=for_model(agent.transcript),
                tools=[tool.schema() for tool in agent.tools.values()],
                agent_id=agent.agent_id,
                path=agent.path,
                before=agent.session.registry.before(agent.agent_id),
                turn=agent.turns,
            )
            try:
                reply = await agent.pool.ask(agent, request)
            except ModelError as problem:
                if problem.too_long and await make_more_room(agent):
                    continue
                raise ModelFailed(
                    f"{agent.language_model} did not answer for {agent.label}: {problem}",
                    hint=_TOO_LONG
                    if problem.too_long
                    else problem.hint or "the session is kept; resume it when the model answers again",
                ) from problem
            if reply.usage is not None:
                self._gauge.learn(request.messages, reply.usage.tokens.prompt)
            return reply

    async def _make_room(self) -> None:
        """Fold where the model's window is nearly full; within this turn only where it would not fit at all."""
        agent = self.agent
        window = agent.pool.window or getattr(agent.model, "window", None)
        if self._gauge.is_full(for_model(agent.transcript), window):
            await make_room(agent)
            while self._gauge.is_over(for_model(agent.transcript), window) and await make_more_room(agent):
                pass

    def _keep(self, reply: Reply) -> tuple[Message, str]:
        """Log the model's message, and in the same write what it cost and which of its calls have to wait."""
        agent, message = self.agent, _message(reply) | self.agent.pool.beside.pop(self.agent.agent_id, {})
        seconds = message.pop("seconds", None)
        if agent.is_terminated:  # meanwhile: nobody hears what it says, but it was paid for
            agent.pool.meter(agent, reply, agent.last_message_id())
            agent.refuse_terminated()
        with agent.session.batch():
            agent.log_model(agent.language_model)
            message_id = self._log(message)
            agent.pool.meter(agent, reply, message_id)
            if seconds is not None:
                log_time(agent, seconds, message_id)
            if len(calls := calls_of(message)) > 1 or (calls and is_guarded(agent)):
                side_by_side.hold_late(self, calls, message_id)
        if agent.pool.stream is not None:
            told_whole(agent, message.get("content") or "")
        return message, message_id

    def _log(self, message: Message, *, cause: str | None = None) -> str:
        """Log what the agent says or does, and whose call asked for it: a resumed call takes no other as its answer."""
        asked_by = self.run.asked_by if self.run is not None else None
        causes = [one for one in (cause, asked_by.message_id if asked_by is not None else None) if one]
        if asked_by is not None and asked_by.call_id:
            message["call_id"] = asked_by.call_id
        return self.agent.log(message, cause=causes[0] if len(causes) == 1 else causes or None)

    # -- hooks ---

    async def _prompted(self) -> LoggedString | None:
        """Show new prompts to the hooks; a refused one is answered without the model."""
        agent = self.agent
        for entry in unheeded(agent.transcript):
            if entry.get("origin") in (REMARK, SENT_BACK):
                continue
            moment = Moment(
                point="prompt",
                agent=agent,
                message_id=str(entry["message_id"]),
                text=str(entry.get("content") or ""),
            )
            ruling = await consult(agent, moment)
            if ruling is not None and isinstance(ruling.verdict, Deny):
                text = f"Error: Prompt blocked by hook '{ruling.watcher.name}': {ruling.verdict.reason}"
                message_id = self._log({"role": "assistant", "content": text}, cause=ruling.message_id)
                return LoggedString(text, message_id, agent.session.path)
        return None

    async def _stands(self, said: LoggedString) -> bool:
        """Whether the utterance is accepted; if not, the agent has heard why."""
        agent = self.agent
        if not agent.pool.is_plain and settling.sent_back_for_its_form(agent, said):
            return False
        if (reviews := times_sent_back(agent.transcript)) < MAX_REVIEWS:
            moment = Moment(
                point="finished", agent=agent, message_id=said.message_id or "", text=str(said), attempt=reviews
            )
            ruling = await consult(agent, moment)
            if ruling is not None and isinstance(ruling.verdict, Deny):
                speak(agent, ruling, ruling.verdict.reason, SENT_BACK)
                return False
        self.accepted = said.message_id or ""
        return True

    # -- tools ---

    async def run_calls(self, calls: Sequence[Entry], message_id: str, *, resumed: bool = False) -> None:
        """Run calls of a message and log their results; several run side by side."""
        if len(calls) == 1 and not resumed and not is_guarded(self.agent):
            await self.run_call(calls[0], message_id, resumed=False)
        elif calls:
            await side_by_side.run(self, calls, message_id, resumed=resumed)

    async def run_call(self, call: Entry, message_id: str, *, resumed: bool, slot: Slot = ALONE) -> None:
        """Run one call and log its result. `slot` says when it may be asked for and when it may work."""
        started = None
        try:
            async with slot.asked:
                answer = await self._admit(call, message_id, resumed)
            if isinstance(answer, Admitted):
                async with slot.works:
                    if not self.agent.pool.is_plain and is_timed(self.agent, answer.tool):
                        started = clock.monotonic()
                    answer = await self._perform(answer)
        except FATAL:
            raise
        except Exception as problem:  # noqa: BLE001  a tool is somebody else's code; its failure is the model's news
            answer = Answer(content=f"Error: {describe(problem)}", is_error=True)
        with self.agent.session.batch():
            message_id = self.answer(call, answer)
            if started is not None:
                log_time(self.agent, clock.monotonic() - started, message_id)

    def answer(self, call: Entry, answer: Answer) -> str:
        """Log the result of a call; gives back its id."""
        return self.agent.answer(
            call,
            bounded(answer.content),
            substance=answer.substance,
            cause=list(answer.cause) if answer.cause else None,
            is_error=answer.is_error,
            images=answer.images,
        )

    async def _admit(self, call: Entry, message_id: str, resumed: bool) -> Admitted | Answer:
        """Check a call and show it to the hooks: what is to be run, or the refusal."""
        agent, name = self.agent, call_name(call)
        if resumed:
            questions.refuse_waiting(agent, message_id, call["id"], name)
        tool = questions.tool_of(agent, message_id, call["id"], name) if resumed else agent.tools.get(name)
        if tool is None:
            raise BadRequest(f"there is no tool {name!r}", hint="call one of the tools that were offered")
        arguments = tool.bind(call_arguments(call))
        ids = self._calls_of(message_id)
        running = Call(
            agent, message_id, call["id"], name, place=ids.index(call["id"]) if call["id"] in ids else 0, among=len(ids)
        )
        if resumed:
            running.window = Window.since(agent.session.records(), agent.agent_id, running.asker)
        refusal = None
        if not running.window.began(message_id):
            refusal = await self._refusal(call, tool, arguments, message_id)
        return refusal or Admitted(tool, arguments, running)

    async def _perform(self, admitted: Admitted) -> Answer:
        tool, arguments, running = admitted
        agent = self.agent
        with calling(running):
            value = await tool.run(arguments, running)
            if (speaker := speaker_of(agent, value)) is not None:
                return await heard_by(agent, speaker, value)
            return as_answer(value, agent.session.path)

    def _calls_of(self, message_id: str) -> list[str]:
        """The ids of the calls that a message of the agent has."""
        entries = reversed(self.agent.transcript)
        found = next((calls_of(entry) for entry in entries if entry.get("message_id") == message_id), [])
        return [call["id"] for call in found]

    async def _refusal(self, call: Entry, tool: Tool, arguments: dict[str, Any], message_id: str) -> Answer | None:
        moment = Moment(
            point="tool",
            agent=self.agent,
            message_id=message_id,
            text=call_arguments(call),
            tool=tool.name,
            call_id=call["id"],
            arguments=arguments,
        )
        ruling = await consult(self.agent, moment)
        return blocked(ruling) if ruling is not None and isinstance(ruling.verdict, Deny) else None


def _message(reply: Reply) -> Message:
    message: Message = {"role": "assistant"}
    if reply.thinking:
        message["thinking"] = reply.thinking
    if reply.content is not None or not reply.tool_calls:
        message["content"] = reply.content or ""
    if reply.tool_calls:
        message["tool_calls"] = told_apart(reply.tool_calls)
    return message
