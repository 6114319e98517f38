"""Asking the hooks: who watches an agent, what each is asked, and what the log keeps of it.

A hook has an id and a transcript in the log like any agent: the question (its `cause` is the message in question),
then the verdict. An agent's verdict is its own reply. A function's is written down for it, where it intervened; at
`finished` always, so that after a crash it is known whether an utterance had been reviewed. What a hook says to the
agent it watches is a piece of text caused by the verdict, and heard with `substance` like everything else. What one
agent says to others goes through the hooks of the one who says it, and is heard with a link to what was said.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from harken.errors import BadRequest, ModelFailed, Poisoned, Waiting
from harken.events.verdicts import (
    GUARDED,
    Approve,
    Ask,
    Deny,
    Rewrite,
    Verdict,
    read_verdict,
    settle_verdict,
    write_verdict,
)
from harken.log import LoggedString, Session

from .deciding import Deciding, Ruling
from .entries import REMARK, Entry
from .hooks import HOW_TO_ANSWER, Hook, HookAgent, Moment, absent, answered, is_review, put, question, subagent_count
from .tools import LoopLock, describe

if TYPE_CHECKING:
    from .agent import Agent
    from .pool import AgentPool


class Watcher(Deciding):
    """A hook attached to an agent."""

    def __init__(
        self,
        hook: Hook | HookAgent,
        hook_id: str,
        pool: AgentPool,
        *,
        past: Iterable[Entry] = (),
    ) -> None:
        self.hook = hook
        self.hook_id = hook_id
        self.session = pool.session
        self._pool = pool
        self._past, self._open = answered(past)
        self._asking = LoopLock()

    @property
    def name(self) -> str:
        """The hook's name."""
        return self.hook.name

    @property
    def is_terminated(self) -> bool:
        """Whether the hook was ended: it then watches no more, as after a load."""
        return self.session.agents[self.hook_id].terminated

    @property
    def is_absent(self) -> bool:
        """Whether the hook is a function that is not there: what it has ruled stands, and it rules on nothing more."""
        return isinstance(self.hook, Hook) and self.hook.function is absent

    @property
    def agent(self) -> Agent | None:
        """The hook itself, where it is an agent."""
        return self._pool.get(self.hook_id) if isinstance(self.hook, HookAgent) else None

    def is_done_with(self, message_id: str, behind: Iterable[Entry]) -> bool:
        """Whether an utterance needs no more from this hook, given what the agent has heard behind it.

        A hook does not look back at what was said before it was attached.
        """
        if self._leaves_open(message_id):
            return False
        for (cause, _, asked), entry in self._past.items():
            verdict = self._read(entry) if cause == message_id else None
            if cause == message_id and verdict is None and is_review(asked):
                return True  # it failed or said nothing clear, which does not stand in the way
            if isinstance(verdict, Approve):
                return not verdict.say or any(heard.get("hook") == self.hook_id for heard in behind)
            if verdict is not None and self.is_absent and is_review(asked):
                return False
        if self.is_absent:
            return True
        attached = self.session.agents[self.hook_id].created
        return attached == next(
            (one for one in reversed(self.session.registry.messages) if one in (attached, message_id)), None
        )

    def _read(self, entry: Entry) -> Verdict | None:
        return read_verdict(str(entry.get("content") or ""), exact=isinstance(self.hook, Hook))

    async def ask(self, moment: Moment) -> Ruling:
        """The verdict; one that the log already holds, because the turn was interrupted behind it, is not asked for
        again."""
        asked = question(moment, subagent_count(moment.agent))
        known = self._known(moment, asked)
        if known is not None and isinstance(known.verdict, Ask):
            return self._let_decide(moment, asked, known.verdict)
        if known is not None:
            return known
        if (put_before := self._question_at(moment)) is not None:
            return self._decided(moment, asked, put_before)
        if self.is_absent:
            return Ruling(Approve(), self)
        if (agent := self.agent) is not None:
            return await self._ask_agent(agent, moment, asked)
        return await self._ask_function(moment, asked)

    def _known(self, moment: Moment, asked: str) -> Ruling | None:
        found = self._past.get((moment.message_id, moment.call_id, asked))
        if found is None:
            return None
        return Ruling(settle_verdict(self._read(found), moment.point), self, str(found["message_id"]), recovered=True)

    def ruled_on(self, message_id: str, call_id: str) -> Iterator[Ruling]:
        """What the log holds against a call, or for it."""
        for (cause, call, _), found in self._past.items():
            if (cause, call) == (message_id, call_id):
                verdict = settle_verdict(self._read(found), "tool")
                yield Ruling(verdict, self, str(found["message_id"]), recovered=True)

    def _remember(self, moment: Moment, asked: str, answer: str, message_id: str) -> None:
        self._past[moment.message_id, moment.call_id, asked] = {"content": answer, "message_id": message_id}
        self._open = None

    async def _ask_agent(self, agent: Agent, moment: Moment, asked: str) -> Ruling:
        async with self._asking:
            if self._open != (moment.message_id, moment.call_id, asked):
                agent.log(put(moment, asked), cause=moment.message_id)
            self._open = (moment.message_id, moment.call_id, asked)
            try:
                answer = await agent.response()
            except ModelFailed as problem:
                if moment.point in GUARDED:
                    raise  # nothing is done unwatched, and nothing refused for good: the turn can be resumed
                failed = f"The hook failed: {describe(problem)}"
                self._remember(moment, asked, failed, agent.log({"role": "assistant", "content": failed}))
                return Ruling(Approve(), self)
            self._remember(moment, asked, str(answer), answer.message_id or "")
        verdict = settle_verdict(read_verdict(answer), moment.point)
        if isinstance(verdict, Ask):
            return self._let_decide(moment, asked, verdict)
        return Ruling(verdict, self, answer.message_id or "")

    async def _ask_function(self, moment: Moment, asked: str) -> Ruling:
        assert isinstance(self.hook, Hook)
        try:
            found = self.hook.function(moment)
            verdict = await found if inspect.isawaitable(found) else found
        except (Poisoned, Waiting):
            raise
        except Exception as problem:  # noqa: BLE001  somebody else's code: it may fail in any way, and is a guard
            return self._failed(moment, asked, problem)
        if isinstance(verdict, Ask):
            return self._let_decide(moment, asked, verdict)
        return self._rule(moment, asked, Approve() if verdict is None else settle_verdict(verdict, moment.point))

    def _failed(self, moment: Moment, asked: str, problem: Exception) -> Ruling:
        """What the failure of a function comes to: a guard that fails refuses, any other does not stand in the way."""
        why = describe(problem)
        if moment.point in GUARDED and isinstance(problem, ModelFailed):
            raise problem  # as where the hook is an agent
        if moment.point in GUARDED:
            return self._rule(moment, asked, Deny(f"the hook failed: {why}"))
        self._record(moment, asked, f"The hook failed: {why}")
        return Ruling(Approve(), self)

    def ask_now(self, moment: Moment) -> Ruling:
        """The verdict of a function, for a caller that cannot wait."""
        if self.agent is not None or not isinstance(self.hook, Hook) or inspect.iscoroutinefunction(self.hook.function):
            raise BadRequest(
                f"hook {self.name!r} has to be waited for", hint="use `await agent.deliver(text, [other])` instead"
            )
        asked = question(moment, subagent_count(moment.agent))
        if (known := self._known(moment, asked)) is not None:
            return known
        try:
            verdict = self.hook.function(moment)
        except Poisoned:
            raise
        except Exception as problem:  # noqa: BLE001  as above
            return self._failed(moment, asked, problem)
        if inspect.isawaitable(verdict) or isinstance(verdict, Ask):
            raise BadRequest(f"hook {self.name!r} has to be waited for", hint="use `await agent.deliver(…)` instead")
        return self._rule(moment, asked, Approve() if verdict is None else settle_verdict(verdict, moment.point))

    def _rule(self, moment: Moment, asked: str, verdict: Verdict) -> Ruling:
        if verdict == Approve() and moment.point != "finished":
            return Ruling(verdict, self)
        return Ruling(verdict, self, self._record(moment, asked, write_verdict(verdict)))


def watchers_of(agent: Agent, point: str) -> Iterator[Watcher]:
    """The hooks that watch an agent at a point: its own, then those from above that watch the whole tree."""
    if agent.role == "hook":
        return
    above: Agent | None = agent
    while above is not None:
        for watcher in above.watchers:
            if point in watcher.hook.points and (above is agent or watcher.hook.tree) and not watcher.is_terminated:
                yield watcher
        above = above.parent


def is_guarded(agent: Agent) -> bool:
    """Whether a hook is asked before the agent's calls begin."""
    return next(watchers_of(agent, "tool"), None) is not None


async def consult(agent: Agent, moment: Moment) -> Ruling | None:
    """Ask everybody who watches; the first refusal or change, or None where all approve.

    What a hook wants to say is said as soon as it has ruled.
    """
    for watcher in list(watchers_of(agent, moment.point)):
        ruling = await watcher.ask(moment)
        if not isinstance(ruling.verdict, Approve):
            return ruling
        remark(agent, ruling)
    return None


def remark(agent: Agent, ruling: Ruling) -> None:
    """Let the agent hear what a hook that approves has to say, if anything."""
    if isinstance(ruling.verdict, Approve) and ruling.verdict.say:
        speak(agent, ruling, ruling.verdict.say)


def speak(agent: Agent, ruling: Ruling, text: str, origin: str = REMARK) -> None:
    """Let the watched agent hear something from a hook, unless it heard it before a crash or was terminated."""
    if agent.is_terminated:
        return
    watcher, session = ruling.watcher, ruling.watcher.session
    piece = _spoken(session, watcher.hook_id, ruling.message_id) if ruling.recovered else None
    if piece is not None and any(entry.get("substance") == piece for entry in agent.transcript):
        return
    if piece is None:
        piece = session.log_piece_of_text(watcher.hook_id, text, ruling.message_id or agent.last_message_id())
    said = LoggedString(f"[{watcher.name}]: {text}", piece, session.path)
    agent.harken(said, hook=watcher.hook_id, origin=origin)


def _spoken(session: Session, hook_id: str, verdict_id: str) -> str | None:
    """The text a hook made out of a verdict, if it had come to that."""
    for data in session.records_of([hook_id]):
        if data.get("event_type") == "piece_of_text" and data.get("cause") == verdict_id:
            return str(data["message_id"])
    return None


def attach(agent: Agent, hook: Hook | HookAgent) -> Watcher:
    """Give a hook an id and a place in the log, and have it watch an agent."""
    from .agent import Agent

    _refuse_double(agent, hook)
    session, cause = agent.session, agent.last_message_id()
    attributes: dict[str, Any] = {"watches": agent.agent_id, "points": list(hook.points), "tree": hook.tree}
    if isinstance(hook, Hook):
        hook_id = session.allocate_agent_id()
        attributes["kind"] = "function"
        session.log_agent_created(hook_id, cause, hook.name, role="hook", attributes=attributes)
        agent.pool.hooks[hook.name] = hook
        return Watcher(hook, hook_id, agent.pool)
    attributes |= {"kind": "agent", "instructions": hook.instructions}
    watching = Agent(
        session, name=hook.name, language_model=hook.language_model, parent=agent, role="hook", options=hook.options
    )
    with session.batch():
        watching.create(cause, attributes)
        instruct(watching, hook.instructions, cause)
    return Watcher(hook, watching.agent_id, agent.pool)


def _refuse_double(agent: Agent, hook: Hook | HookAgent) -> None:
    """A hook is known by its name: a second of that name would be lost at the next load, and guard nothing."""
    known = agent.pool.hooks.get(hook.name)
    another = known is not None and isinstance(hook, Hook) and known != hook
    if another or any(
        info.role == "hook"
        and not info.terminated
        and info.name == hook.name
        and info.attributes.get("watches", info.parent) == agent.agent_id
        for info in agent.session.agents.values()
    ):
        raise BadRequest(
            f"there is a hook {hook.name!r} already",
            hint="give this one another name; one that the log knows is passed to load_session(hooks=[…])",
        )


def instruct(watching: Agent, instructions: str, cause: str | None = None) -> None:
    """Tell a hook agent what it is there for and how to answer, unless it knows."""
    if not watching.transcript:
        watching.instruct(instructions + HOW_TO_ANSWER, cause=cause)


class Wording:
    """What one recipient gets: the words, and the hook that changed them, if one did. No words: withheld."""

    def __init__(self, text: str) -> None:
        self.text: str | None = text
        self.hook: str | None = None

    def apply(self, ruling: Ruling) -> None:
        """Let a verdict have its effect."""
        match ruling.verdict:
            case Deny():
                self.text = None
            case Rewrite(text=text):
                self.text = text
            case Approve() | Ask():
                return
        self.hook = ruling.watcher.hook_id


async def wordings(speaker: Agent, text: LoggedString, recipients: list[Agent]) -> dict[str, Wording]:
    """How each recipient is to hear a text, by agent id.

    A hook that is an agent is asked once, about all of them; a function is asked for each.
    """
    heard = {recipient.agent_id: Wording(str(text)) for recipient in recipients}
    for watcher in list(watchers_of(speaker, "delivery")):
        for wording, group in _groups(heard, recipients, whole=watcher.agent is not None):
            ruling = await watcher.ask(_moment(speaker, text, wording, group))
            for recipient in group:
                heard[recipient.agent_id].apply(ruling)
            remark(speaker, ruling)
    return heard


def _groups(heard: dict[str, Wording], recipients: list[Agent], *, whole: bool) -> list[tuple[str, list[Agent]]]:
    """Those who still would hear something: all with the same wording together, or each alone."""
    if not whole:
        alone = ((heard[one.agent_id].text, [one]) for one in recipients)
        return [(wording, group) for wording, group in alone if wording is not None]
    groups: dict[str, list[Agent]] = {}
    for one in recipients:
        if (wording := heard[one.agent_id].text) is not None:
            groups.setdefault(wording, []).append(one)
    return list(groups.items())


async def deliver(
    speaker: Agent,
    text: LoggedString,
    to: Iterable[Agent],
    *,
    prefix: str = "",
    unless: Callable[[Agent], bool] = lambda _: False,
) -> dict[str, Wording]:
    """Let others hear a text that is in the log, but not those terminated meanwhile, nor `unless` who already have."""
    recipients = list(to)
    label = None if prefix in ("", f"[{speaker.label}]: ") else prefix  # the usual one is known without being told
    heard = await wordings(speaker, text, recipients)
    for recipient in recipients:
        one = heard[recipient.agent_id]
        if one.text is not None and not recipient.is_terminated and not unless(recipient):
            said = LoggedString(prefix + one.text, text.message_id, speaker.session.path)
            recipient.harken(said, hook=_known(one.hook, speaker, recipient), label=label)
    return heard


def inform(speaker: Agent, recipient: Agent, text: LoggedString) -> None:
    """Deliver to one agent without waiting; only hooks that need not be waited for can be asked."""
    heard = Wording(str(text))
    for watcher in list(watchers_of(speaker, "delivery")):
        if heard.text is not None:
            ruling = watcher.ask_now(_moment(speaker, text, heard.text, [recipient]))
            heard.apply(ruling)
            remark(speaker, ruling)
    if heard.text is not None:
        said = LoggedString(heard.text, text.message_id, speaker.session.path)
        recipient.harken(said, hook=_known(heard.hook, speaker, recipient))


def _known(hook: str | None, speaker: Agent, recipient: Agent) -> str | None:
    """The hook that changed the words, where the recipient's log knows it."""
    return hook if speaker.session is recipient.session else None


def _moment(speaker: Agent, text: LoggedString, wording: str, recipients: list[Agent]) -> Moment:
    return Moment(
        point="delivery",
        agent=speaker,
        message_id=text.message_id or "",
        text=wording,
        recipients=tuple(recipient.label for recipient in recipients),
        recipient_ids=tuple(recipient.agent_id for recipient in recipients),
    )
