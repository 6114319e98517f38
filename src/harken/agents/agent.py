"""An agent: a transcript, a model that continues it, tools, and agents below it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harken.errors import BadRequest
from harken.log import LoggedString

from . import actions, asking, compaction, questions, settling, watching
from .core import AgentCore
from .entries import INTERRUPTED, STOPPED, check_text, is_pending, open_calls
from .hooks import Hook, HookAgent
from .limits import LIMITS, RunLimits, check_depth, read_limits
from .models import Model
from .opening import made_by
from .options import OPTIONS, ModelOptions
from .tools import Given, current_call
from .watching import Watcher, attach

MAX_DEPTH = 12
"""How deep agents may make agents."""


class Agent(AgentCore):
    """An agent in a session; `language_model` is a name for `open_model`, or a model itself."""

    def evict(self) -> bool:
        """Let go of its transcript, which the log has; whether there was one to let go of."""
        held, self._transcript = self._transcript is not None, self._transcript if self._unlogged else None
        return held and self._transcript is None

    @property
    def missing_hooks(self) -> list[str]:
        """Function hooks that the log knows and the program has not passed again."""
        return self.pool.missing

    def inform(self, dst: Agent, txt: str) -> None:
        """Say something to another agent, through the hooks that need not be waited for."""
        dst.refuse_terminated()
        watching.inform(self, dst, self.write(txt))

    async def deliver(self, text: str, to: Iterable[Agent], *, prefix: str = "") -> None:
        """Say something to other agents, through all hooks."""
        hearers = list(to)
        for hearer in hearers:
            hearer.refuse_terminated()
        await watching.deliver(self, self.write(text), hearers, prefix=prefix)

    def write(self, text: str) -> LoggedString:
        """The text as it is in the log; new text is put there as a piece of text of this agent."""
        self.refuse_terminated()
        check_text(text)
        if isinstance(text, LoggedString) and text.id_in(self.session.path) is not None:
            return text
        call = current_call()
        if call is not None and call.agent is self:
            return call.write(str(text))
        piece = self.session.log_piece_of_text(self.agent_id, str(text), self.last_message_id())
        return LoggedString(text, piece, self.session.path)

    def _occasion(self) -> str | None:
        """What brings about something this agent does now: the call it is running, or else its last message."""
        call = current_call()
        return call.message_id if call is not None and call.agent is self else self.last_message_id()

    async def resume(self) -> LoggedString | None:
        """Finish a turn that was interrupted, or do nothing where none was."""
        return await self.turn.resume()

    async def ask(self, text: str, choices: Sequence[str] = (), *, key: str = "") -> str:
        """Ask a person. `Waiting` where nobody has answered yet: asked again at the same point of its transcript, by
        this program or the next, it gives the answer."""
        call = current_call()
        if call is not None and call.agent is self:
            return await call.ask(text, choices, key=key)
        self.refuse_terminated()
        return questions.ask(self, text, choices, about=self.last_message_id() or "", key=key)

    @property
    def is_pending(self) -> bool:
        """Whether a turn was begun and not ended."""
        return is_pending(self.transcript) or settling.is_under_review(self.turn)

    @property
    def partial(self) -> str:
        """What its model was saying when it broke off, where somebody was shown it; it is in no transcript."""
        return asking.partial(self.session, self.agent_id)

    @property
    def options(self) -> ModelOptions:
        """How its model is asked: as it was given, else as its parent's is, save for the form of the answer."""
        return self.pool.settings.options(self)

    @options.setter
    def options(self, options: ModelOptions) -> None:
        self.refuse_terminated()
        self.pool.settings.change(self, OPTIONS, options)

    @property
    def limits(self) -> RunLimits:
        """How much it and all below it may use, as it was given; those of the agents above hold as well."""
        return read_limits(self.pool.settings.of(self.agent_id, LIMITS)) or RunLimits()

    @limits.setter
    def limits(self, limits: RunLimits) -> None:
        self.refuse_terminated()
        self.pool.settings.change(self, LIMITS, limits)

    def interrupt(self, why: str = INTERRUPTED) -> int:
        """Answer every open call from here down as interrupted, so that something new can be said; gives how many."""
        count = sum(child.interrupt(why) for child in self.subagents.values())
        if (found := open_calls(self.transcript)) is not None:
            for call in found[1]:
                self.answer(call, why, is_error=True)
                count += 1
        return count

    def stop(self) -> None:
        """Give up the turn that was interrupted: its calls are answered so, and the agent hears that it was stopped."""
        if self.turn.run is not None:
            raise BadRequest(
                f"{self.label} is in the middle of a turn, which would go on and answer its calls once more",
                hint="cancel the task that waits for the turn, then stop()",
            )
        questions.withdraw(self)
        if is_pending(self.transcript):
            self.interrupt("Error: stopped by the user.")
            self.harken("[stopped by the user]", origin=STOPPED)

    async def compact(self, summary: str | None = None, *, keep: int = 1) -> bool:
        """Fold the oldest turns into a summary (asked of the model where none is given); False: nothing to fold."""
        return await compaction.compact(self, summary, keep=keep)

    def spawn(
        self,
        name: str,
        system_prompt: str | None = None,
        *,
        cause: str | None = None,
        language_model: str | Model | None = None,
        tools: Iterable[Given] | None = None,
        options: ModelOptions | None = None,
        limits: RunLimits | None = None,
    ) -> Agent:
        """Make an agent below this one; it has the same model, tools and options unless others are given.

        `limits` are its own and of all below it; those of the agents above hold for it too."""
        self.refuse_terminated()
        self.pool.check_name(name, below=self.agent_id)
        if len(self.path) >= MAX_DEPTH:
            raise BadRequest(
                f"agents may not be nested more than {MAX_DEPTH} deep", hint="let an agent further up do it"
            )
        if not self.pool.is_plain:
            check_depth(self)
        cause = cause or self._occasion()
        child = Agent(
            self.session,
            name=name,
            parent=self,
            language_model=language_model,
            tools=tools,
            options=options,
            limits=limits,
        )
        with self.session.batch():
            child.create(cause, made_by(current_call(), cause, system_prompt))
            if system_prompt is not None:
                child.instruct(system_prompt, cause=cause)
        return child

    def instruct(self, system_prompt: str, *, cause: str | None = None) -> None:
        """Give it a system prompt."""
        check_text(system_prompt)
        self.log({"role": "system", "content": system_prompt}, cause=cause)

    def terminate(self, *, cause: str | None = None) -> None:
        """Leave the tree, with everything below; the registry remembers. It is logged whole or not at all."""
        actions.leave(self, cause)

    def add_hook(self, hook: Hook | HookAgent) -> Watcher:
        """Have a hook watch this agent; it is logged, so that a load knows of it."""
        self.refuse_terminated()
        watcher = attach(self, hook)
        self.watchers.append(watcher)
        return watcher
