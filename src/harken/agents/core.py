"""What every turn needs of an agent: what it is, its transcript, and how it hears, speaks and logs.

The transcript is the state. Everything an agent hears, says or does is in the log before anything follows from it,
so an agent can be made again from the log at any moment, and goes on where it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

import orjson

from harken.errors import BadRequest
from harken.events import Image, System
from harken.log import AgentInfo, LoggedString, Session
from harken.log.base import BEGINS_WITH
from harken.log.registry import MODEL

from . import actions, pictures, turn
from .entries import Entry, as_entry, call_name, check_text, usable
from .hooks import Hook, HookAgent, distinct
from .limits import LIMITS, RunLimits
from .models import DEFAULT_MODEL, Message, Model
from .opening import messages, opening
from .options import OPTIONS, ModelOptions
from .pool import AgentPool, Subagents
from .tools import Given, Tool, Toolset, by_name
from .watching import Watcher

if TYPE_CHECKING:
    from .agent import Agent

OURS = {tool.name: tool for tool in actions.TOOLS}


class AgentCore:
    """An agent in a session; `language_model` is a name for `open_model`, or a model itself."""

    def __init__(
        self,
        session: Session,
        system_prompt: str | None = None,
        init_prompt: str | Sequence[Message] | None = None,
        *,
        name: str | None = None,
        language_model: str | Model | None = None,
        tools: Iterable[Given] | None = None,
        hooks: Iterable[Hook | HookAgent] = (),
        parent: Agent | str | None = None,
        role: str | None = None,
        agent_id: str | None = None,
        options: ModelOptions | None = None,
        limits: RunLimits | None = None,
    ) -> None:
        """`init_prompt` is what it begins with: a first message, or a transcript (another agent's will do).

        Without `tools` it has those of its parent. `agent_id` is for bringing an agent back: `init_prompt` is then its
        transcript so far.
        """
        self.session = session
        self.pool = AgentPool.of(session)
        self._name = name
        self.made_below = self.pool.above(parent)
        """The id of the agent that it was made below; what the log says comes before it."""
        self._role = role or ("child" if parent else "root")
        self.watchers: list[Watcher] = []
        self.speakers: list[str] | None = None
        self.listeners: list[str] | None = None
        self.seated = (0, 0)  # after how many messages, and by which call of the last, the two lists were given
        me = cast("Agent", self)
        self.turn = turn.Turn(me)
        self._unlogged = 0
        """How many entries at the head of the transcript are not in the log yet."""
        self._begins_with = 0
        self._followed = 0  # how many of the changes that the log knows are in the transcript
        self.agent_id: str = agent_id or session.allocate_agent_id()
        self.subagents = Subagents(self.pool, self.agent_id)
        self._transcript: list[Entry] | None
        if self.info is not None:
            self._followed = session.changes(self.agent_id)
            past = session.entries(self.agent_id) if init_prompt is None else messages(session, init_prompt)
            self._transcript = [as_entry(entry) for entry in past]
        else:
            if name is not None and role != "hook":
                self.pool.check_name(name, below=self.made_below)
            self._transcript = opening(session, system_prompt, messages(session, init_prompt))
            self._unlogged = len(self._transcript)
            if init_prompt is not None and not isinstance(init_prompt, str):
                self._begins_with = len(self._transcript)
            self.pool.made.add(self.agent_id)
        self.turns = sum(1 for entry in self._transcript if entry.get("role") == "assistant")
        """How many messages it has produced, compacted ones included."""
        self.pool.add(me)
        if language_model is not None:
            self.pool.chosen[self.agent_id] = self.pool.take_model(language_model)
        elif self.made_below in self.pool.chosen:
            self.pool.chosen[self.agent_id] = self.pool.chosen[self.made_below]
        if tools is not None:
            self.pool.give_tools(self.agent_id, by_name(tools))
        for setting, value in ((OPTIONS, options), (LIMITS, limits)):
            if value is not None:
                self.pool.settings.give(self.agent_id, setting, value)
        for hook in distinct(hooks):
            me.add_hook(hook)

    # -- what it is: as the log says, once it is in the log ---

    @property
    def info(self) -> AgentInfo | None:
        """What the log says of it; None before it is in the log."""
        return self.session.agents.get(self.agent_id)

    @property
    def name(self) -> str | None:
        """What it is called, if anything."""
        return self._name if self.info is None else usable(self.info.name)

    @property
    def parent_id(self) -> str | None:
        """The id of the agent above."""
        return self.made_below if self.info is None else self.info.parent

    @property
    def role(self) -> str:
        """`root`, `child` or `hook`."""
        if self.info is None:
            return self._role
        return self.info.role or ("root" if self.agent_id == self.session.root else "child")

    @property
    def is_terminated(self) -> bool:
        """Whether it has left the tree, or one above has; it can then be looked at, and neither hears nor speaks."""
        return self.session.has_left(self.agent_id if self.info is not None else self.made_below)

    @property
    def transcript(self) -> list[Entry]:
        """What it has before it, oldest first; read from the log where it was evicted from memory."""
        logged = self.session.changes(self.agent_id)
        moved = logged != self._followed and not self._unlogged  # somebody else has logged an entry or an edit
        if self._transcript is None or moved:
            self._followed = logged
            self._transcript, self.turns = self.pool.reviving.past(self.agent_id)
        return self._transcript

    @property
    def label(self) -> str:
        """What to call it: its name, `root`, or its id."""
        return self.name or ("root" if self.role == "root" else self.agent_id)

    @property
    def parent(self) -> Agent | None:
        """The agent above."""
        return self.pool.get(self.parent_id) if self.parent_id is not None else None

    @property
    def path(self) -> tuple[str, ...]:
        """Names from the root down to here."""
        names: list[str] = []
        at: AgentCore | None = self
        while at is not None:
            names.append(at.label)
            at = at.parent
        return tuple(reversed(names))

    @property
    def tools(self) -> dict[str, Tool]:
        """The tools it may use, by name: ours, and its own or its parent's; a hook has none."""
        if self.role == "hook":
            return {}
        given = self._given()
        plain = {name: tool for name, tool in given.items() if isinstance(tool, Tool)}
        servers = self.pool.servers
        return OURS | (plain if servers is None or len(plain) == len(given) else servers.tools(given))

    def _given(self) -> dict[str, Tool | Toolset]:
        """The tools it was given, or the next above that was given any."""
        above: AgentCore | None = self
        while above is not None:
            if (own := self.pool.tools_of(above.agent_id)) is not None:
                return own
            above = above.parent
        return {}

    async def prepare(self) -> None:
        """Have the servers started whose tools it has; it is about to take a turn."""
        if self.role != "hook" and self.pool.servers is not None:
            await self.pool.servers.prepare(cast("Agent", self), self._given())

    @property
    def model(self) -> Model:
        """The model that speaks for it, opened when it is first needed."""
        return self.pool.model(self.language_model)

    @property
    def language_model(self) -> str:
        """The name of its model. A change is logged, so that a load knows of it."""
        found = self.pool.chosen.get(self.agent_id)
        if found is None and (self.info is None or self.agent_id not in self.pool.made):
            found = self.pool.language_model
        if found is None and self.info is not None:
            found = self.info.language_model
        return found or (self.parent.language_model if self.parent is not None else DEFAULT_MODEL)

    @language_model.setter
    def language_model(self, model: str | Model) -> None:
        self.refuse_terminated()
        name = self.pool.take_model(model)
        self.log_model(name)
        self.pool.chosen[self.agent_id] = name

    def log_model(self, name: str) -> None:
        """Log which model speaks for it from here on, where the log says another."""
        if self.info is not None and self.info.language_model != name:
            self.session.append([System(agent_id=self.agent_id, subtype=MODEL, message=name)])

    # -- what it hears ---

    def harken(
        self,
        input: str,
        *,
        cause: str | list[str] | None = None,
        hook: str | None = None,
        origin: str | None = None,
        label: str | None = None,
    ) -> str:
        """Hear something: a user message, with a link to what it repeats if the text knows; gives back its id.

        `hook` is the id of a hook that said it or changed its wording; `origin` says what it is, where no person
        and no agent said it; `label` is what stands before the words and is no part of them.
        """
        check_text(input)
        substance = input.id_in(self.session.path) if isinstance(input, LoggedString) else None
        message: Message = {"role": "user", "content": str(input)}
        if substance is not None or cause is not None or origin is not None:
            message["source"] = "injected"
        extra = {"origin": origin, "hook": hook, "label": label}
        message |= {key: value for key, value in extra.items() if value is not None}
        return self.log(message, substance=substance, cause=cause if substance is None else None)

    async def response(self) -> LoggedString:
        """Take a turn: use tools as the model asks for them, and say something in the end."""
        return await self.turn.take()

    def refuse_terminated(self) -> None:
        """Whoever has left the tree hears and says nothing more."""
        if self.is_terminated:
            raise BadRequest(
                f"{self.label} was terminated, and neither hears nor speaks",
                hint="make another agent with spawn()" if self.parent_id else "its session is over: begin another",
            )

    def refuse_cut_off(self) -> None:
        """Whoever has only a part of what it was to begin with does not speak as if that were all."""
        info = self.info
        if info is not None and info.entries < info.begins_with and not self._unlogged:
            raise BadRequest(
                f"{self.label} was to begin with {info.begins_with} entries, and the log has {info.entries} of them: "
                "the process died while it wrote them",
                hint="terminate it and make another; what came from a store, `repo.session(path)` writes anew",
            )

    # -- the log ---

    def create(self, cause: str | None = None, attributes: dict[str, Any] | None = None) -> None:
        """Log that this agent came into being, unless the log knows it; then what it began with."""
        if self.info is None:
            self.refuse_terminated()
            if self._begins_with:
                attributes = (attributes or {}) | {BEGINS_WITH: self._begins_with}
            self.session.log_agent_created(
                self.agent_id, cause, self._name, self.language_model, role=self._role, attributes=attributes
            )
        while self._unlogged:
            place = len(self.transcript) - self._unlogged
            entry = self.transcript[place]
            message = {key: value for key, value in entry.items() if key != "substance"}
            message_id = self.session.log_transcript_entry(self.agent_id, message, entry.get("substance"))
            self.transcript[place] = {"message_id": message_id, **entry}
            self._followed += 1
            self._unlogged -= 1
            if not self._unlogged and not all(map(is_read_as_written, self.transcript)):
                self._transcript = None  # the log has what it is read as

    def log(self, message: Message, *, substance: str | None = None, cause: str | list[str] | None = None) -> str:
        """Add an entry to the transcript, once it is in the log; gives back its id."""
        self.refuse_terminated()
        self.refuse_cut_off()
        self.create()
        message_id = self.session.log_transcript_entry(self.agent_id, message, substance, cause=cause)
        self._append(message, message_id, substance=substance, cause=cause)
        return message_id

    def answer(
        self,
        call: Entry,
        content: str,
        *,
        substance: str | None = None,
        cause: str | list[str] | None = None,
        is_error: bool = False,
        images: Sequence[Image] = (),
    ) -> str:
        """Log the result of a tool call."""
        message: Message = {"role": "tool", "tool_call_id": call["id"], "name": call_name(call), "content": content}
        if is_error:
            message["is_error"] = True
        if images:
            message["images"] = [pictures.as_line(image) for image in images]
        return self.log(message, substance=substance, cause=cause)

    def last_message_id(self) -> str | None:
        """The last message in its transcript, or the one that made it; None where the log names neither."""
        self.create()
        for entry in reversed(self.transcript):
            if entry.get("message_id"):
                return str(entry["message_id"])
        return self.session.agents[self.agent_id].created or None

    def _append(self, message: Message, message_id: str, **links: Any) -> None:
        entry = {"message_id": message_id, **message}
        entry |= {key: value for key, value in links.items() if value is not None}
        if not is_read_as_written(entry):
            self._transcript = None  # read it again: what no provider takes would be asked with until the next load
        if self._transcript is not None:  # where it was evicted, the log has the entry already
            self._transcript.append(entry)
        self._followed += 1
        if message.get("role") == "assistant":
            self.turns += 1


def is_read_as_written(entry: Entry) -> bool:
    """Whether the log gives this entry back as it is; halves of surrogate pairs, as in the names of files that are no
    UTF-8, are kept there and read as U+FFFD."""
    try:
        orjson.dumps(entry)
    except TypeError:
        return False
    return True
