"""A session of Harken's own agents: open one, say something to its root agent, hear the answer.

`chat` is the operation: it opens a log, says what is to be said and closes it again, so that nothing has to stay open
between two questions. A shell that talks with a person keeps an `OpenChat` instead.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self, TypeVar

import msgspec

from harken import ids
from harken.agents import Agent, AgentPool, MissingHook, ModelOptions, RunLimits, load_session, open_model
from harken.agents import Streamed as Streamed
from harken.agents.limits import SESSION_LIMITS, read_limits
from harken.errors import BadRequest, Locked, NotFound
from harken.log import Session
from harken.repo import Repo
from harken.repo.live import KeptSession

from .base import ApiAnswer, ApiRequest
from .crossing import crosses
from .writing import LossAnswer


class ChatRequest(ApiRequest, frozen=True, kw_only=True):
    """Which session, and what to say in it."""

    file: str
    """The session log: a new file, or with `resume` the one to go on with."""
    resume: bool = False
    """Whether the session is there already."""
    ref: str = ""
    """A commit of any runtime whose conversation a new session begins with; empty for none."""
    model: str | None = None
    """A model that LiteLLM knows, `scripted:FILE`, `replay:LOG` or `demo`; None: what the session had, or `demo`."""
    system_prompt: str | None = None
    """Who the root agent is, in a session that begins with nothing; None: what the session had."""
    limits: dict[str, int | float] = msgspec.field(default_factory=dict)
    """How much the session may use: the fields of `RunLimits` by name. What is not said stays as it was."""
    options: dict[str, Any] = msgspec.field(default_factory=dict)
    """How the root agent's model is asked: the fields of `ModelOptions` by name. What is not said stays as it was."""
    texts: tuple[str, ...] = ()
    """What is said to the root agent, one after the other. A turn that was not finished is finished first."""


class ChatStart(ApiAnswer, frozen=True, kw_only=True):
    """How a chat begins."""

    file: str
    """The session log."""
    agent: str
    """The id of its root agent."""
    language_model: str
    """The model that speaks."""
    messages: int
    """Messages that were carried over from the commit it begins with."""
    losses: list[LossAnswer]
    """What could not be carried over."""
    missing_hooks: list[str]
    """Functions that watched this session in the program that began it, and are not here."""
    is_pending: bool
    """Whether the last turn was not finished."""


class ChatReply(ApiAnswer, frozen=True, kw_only=True):
    """What the root agent answered."""

    text: str | None
    """What it was told; null for the end of a turn that was not finished before."""
    reply: str | None
    """Its answer; null where it had none."""


_INSTRUCTED = "this session has begun, and its root agent has been told who it is"
_INSTRUCT = "a system prompt is for a new session that begins with nothing"


class OpenChat:
    """A session that is open. Without a store it is a log alone; with one, what each agent knows is kept there too."""

    def __init__(
        self,
        repo: Repo | None,
        request: ChatRequest,
        *,
        warn: Callable[[str], None] | None = None,
        stream: Callable[[Agent, Streamed], object] | None = None,
    ) -> None:
        """`stream` is told what models say while they say it."""
        if not ids.is_path(request.file):
            raise BadRequest(f"{request.file!r:.99} is no path of a file", hint="name the file of a session log")
        path = _existing(Path(request.file)) if request.resume else _new(Path(request.file))
        if request.resume and request.ref:
            raise BadRequest("a session that is there has its beginning", hint="leave `ref` out, or name a new file")
        if request.model is not None:
            open_model(request.model, near=path.parent)  # a model that cannot be had is told before a file is made
        _with(ModelOptions(), request.options)
        _with(RunLimits(), request.limits)  # told before a file is made, too
        for fallback in request.options.get("fallbacks", ()):
            open_model(fallback, near=path.parent)
        if request.ref and request.system_prompt is not None:
            raise BadRequest(_INSTRUCTED, hint=_INSTRUCT)
        self.session = _session(repo, path, request, warn)
        try:
            self.root = self._load(request, stream)
        except BaseException:
            self.session.close()
            raise

    def _load(self, request: ChatRequest, stream: Callable[[Agent, Streamed], object] | None) -> Agent:
        known = self.session.agents.get(self.session.root or "")
        if request.system_prompt is not None and known is not None and known.entries:
            raise BadRequest(_INSTRUCTED, hint=_INSTRUCT)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MissingHook)  # told by `start`
            root, _ = load_session(
                self.session, language_model=request.model, system_prompt=request.system_prompt, stream=stream
            )
        if request.options:
            root.options = _with(root.options, request.options)
        if request.limits:
            settings = AgentPool.of(self.session).settings
            limits = read_limits(settings.of(root.agent_id, SESSION_LIMITS)) or RunLimits()
            settings.change(root, SESSION_LIMITS, _with(limits, request.limits))
        return root

    def start(self) -> ChatStart:
        """How it begins."""
        begun = self.session.begun if isinstance(self.session, KeptSession) else None
        return ChatStart(
            file=str(self.session.path),
            agent=self.root.agent_id,
            language_model=str(self.root.language_model),
            messages=begun.messages if begun else 0,
            losses=[LossAnswer(what=one.what, count=one.count, why=one.why) for one in (begun.losses if begun else ())],
            missing_hooks=list(self.root.missing_hooks),
            is_pending=self.root.is_pending,
        )

    async def say(self, text: str | None) -> ChatReply:
        """Say something, or go on with what was begun, until the root agent has answered."""
        if text is not None:
            self.root.harken(text)
        reply = await self.root.resume()
        return ChatReply(text=text, reply=None if reply is None else str(reply))

    def close(self) -> None:
        """Close the log; what was said is kept."""
        self.session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@crosses
def chat(
    repo: Repo | None, request: ChatRequest, *, warn: Callable[[str], None] | None = None
) -> Iterator[ChatStart | ChatReply]:
    """Begin or resume a session of agents, say something, and hear the answers. Without a store (`repo` is None) the
    log alone is kept. From `asyncio`, call it in a thread."""
    with OpenChat(repo, request, warn=warn) as opened:
        start = opened.start()
        yield start
        unfinished = (None,) if start.is_pending else ()
        for text in (*unfinished, *request.texts):
            yield asyncio.run(opened.say(text))


Setting = TypeVar("Setting", ModelOptions, RunLimits)


def _with(known: Setting, given: dict[str, Any]) -> Setting:
    """A setting with what is given in place of what it had."""
    if unknown := sorted(given.keys() - set(known.__struct_fields__)):
        names = ", ".join(known.__struct_fields__)
        raise BadRequest(f"{type(known).__name__} has no {unknown[0]!r:.80}", hint=f"its fields: {names}")
    return type(known)(**{name: given.get(name, getattr(known, name)) for name in known.__struct_fields__})


def _session(repo: Repo | None, path: Path, asked: ChatRequest, warn: Callable[[str], None] | None) -> Session:
    """The log, and with a store the chains of its agents beside it."""
    if repo is None and asked.ref:
        raise BadRequest("a conversation to begin with is in a store", hint="open the store that has it")
    try:
        if repo is None:
            return Session(path)
        return repo.session(path, start=asked.ref or None, language_model=asked.model, on_warning=warn)
    except Locked as problem:
        text = f"'{path}'" if " " in str(path) else path
        hint = f"leave the other one first; `harken view dialog {text}` shows what is said there"
        raise Locked(str(problem), hint=hint) from problem


def _existing(path: Path) -> Path:
    if not path.exists():
        raise NotFound(f"there is no session {str(path)!r}", hint="`harken chat` without --resume begins a new one")
    return _no_folder(path)


def _new(path: Path) -> Path:
    if _no_folder(path).exists():
        raise BadRequest(f"{str(path)!r} exists already", hint=f"`harken chat --resume {path}` goes on with it")
    return path


def _no_folder(path: Path) -> Path:
    if path.is_dir():
        raise BadRequest(f"{path} is a folder", hint="name the session's log file in it")
    return path
