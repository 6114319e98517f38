"""`harken.capture.claude_agent`: options of the Claude Agent SDK with which a run is captured.

Hooks are added behind the host's own, which stay as they are. Ours only note what they are told and wake the thread
that reads the files, so a run waits for them as long as a message to this process takes.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harken.capture.exchange import never_raising, warn_once
from harken.capture.mask import Mask, masking
from harken.errors import BadRequest, Conflict
from harken.log import Session

from .records import text
from .sources import ClaudeConversation, captured_before
from .telling import Telling
from .watch import INTERVAL, QUIET, STALLED, FileWatch, on_close, transport_above

if TYPE_CHECKING:
    from claude_agent_sdk import ClaudeAgentOptions

HOOKS = (
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "SubagentStart",
    "SubagentStop",
    "Stop",
    "SessionStart",
)
"""`SessionStart`, which the SDK's types leave out, comes with a compaction. `PreCompact` does as well, but Claude Code
tells its model that such a hook has run."""
BUSY = 5.0
"""Seconds that the end of a run waits for whoever holds the session."""


def claude_agent(
    options: ClaudeAgentOptions | None,
    session: Session,
    *,
    subagents: bool = True,
    depth: int | None = None,
    mask: Mask = None,
) -> Any:
    """Options like these, whose runs are captured in the session, sub-agents to any depth (or to the one given).

    As a context manager, or with `finish()`, they say when the last run is over; else it is over when the SDK has
    closed its connection. What an earlier capture in this session did not come to read, since its program was killed,
    is read now.
    """
    sdk = importlib.import_module("claude_agent_sdk")
    if options is None:
        options = sdk.ClaudeAgentOptions()
    if not isinstance(options, sdk.ClaudeAgentOptions):
        raise BadRequest(f"{type(options).__name__} is not what the Claude Agent SDK takes", hint="ClaudeAgentOptions")
    if depth is not None and (type(depth) is not int or depth < 0):
        raise BadRequest(f"{depth!r:.80} is no depth", hint="a number of levels, or None for every level")
    if session.readonly:
        raise BadRequest(f"{session.path} was opened for reading only", hint="open it without readonly=True")
    capture = ClaudeCapture(options, session, subagents=subagents, depth=depth, mask=mask)
    capture.catch_up()
    listener = HookListener(capture)
    hooks: dict[Any, list[Any]] = {event: list(matchers) for event, matchers in (options.hooks or {}).items()}
    for event in HOOKS:
        hooks.setdefault(event, []).append(sdk.HookMatcher(hooks=[listener]))
    given = {field.name: getattr(options, field.name) for field in fields(options) if field.init}
    return _captured_class(type(options))(**{**given, "hooks": hooks})


def _captured_class(base: type[Any]) -> type[Any]:
    """The options' class, with a way to say that the runs are over."""
    if issubclass(base, CaptureEnd):
        return base
    return type(base.__name__, (CaptureEnd, base), {"__module__": base.__module__, "__doc__": base.__doc__})


class CaptureEnd:
    """Options that know their captures; a copy made with `dataclasses.replace` knows them too, by its hooks."""

    hooks: Any

    def finish(self) -> None:
        """Read what is left of the files and stop watching them; harmless when done twice."""
        found = [hook for matchers in (self.hooks or {}).values() for matcher in matchers for hook in matcher.hooks]
        for capture in {id(hook): hook.capture for hook in found if isinstance(hook, HookListener)}.values():
            capture.finish()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *problem: object) -> None:
        self.finish()


class HookListener:
    """The hook that we add: it hears of every event and answers nothing."""

    def __init__(self, capture: ClaudeCapture) -> None:
        self.capture = capture

    async def __call__(self, said: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        self.capture.connected(transport_above(sys._getframe(1)), running_loop())
        self.capture.heard(said)
        return {}


class ClaudeCapture:
    """What runs with one object of options write, put into one session."""

    def __init__(self, options: Any, session: Session, *, subagents: bool, depth: int | None, mask: Mask) -> None:
        self.session = session
        self.warned = False
        self._lock = threading.RLock()
        self._transports: dict[int, tuple[Any, Any]] = {}
        """Those that were not closed yet, each with the event loop in which it lives."""
        self._conversations: dict[str, ClaudeConversation] = {}
        self._in_turn: set[str] = set()
        self._how: dict[str, Any] = {
            "subagents": subagents,
            "depth": depth,
            "mask": masking(mask),
            "instructions": instructions_of(getattr(options, "system_prompt", None)),
            "model": getattr(options, "model", None) or "",
            "told": Telling(session).record,
            "failed": self._failed,
        }
        self._watch = FileWatch(self.look, self._patience, self.finish)
        self._is_over = False
        """Whether the session was closed with everything in it that was known of."""

    def _failed(self, problem: BaseException) -> None:
        warn_once(self, problem)

    # What the hooks say

    @never_raising
    def connected(self, transport: Any, loop: Any) -> None:
        """A hook was called through this transport; when it is closed the run is over."""
        with self._lock:
            if transport is None or id(transport) in self._transports:
                return
            for name, (_, own) in list(self._transports.items()):
                if _is_closed(own):
                    del self._transports[name]
            if on_close(transport, lambda done: self._disconnected(transport, done)):
                self._transports[id(transport)] = transport, loop

    @never_raising
    def _disconnected(self, transport: Any, done: bool) -> None:
        """A transport was closed, or somebody broke that off, and Claude Code may still write."""
        with self._lock:
            if done:
                self._transports.pop(id(transport), None)
            is_last = set(self._transports) <= {id(transport)}
        if is_last and not self._is_over:
            self._finish()
        elif not is_last:
            self._watch.wake()

    @never_raising
    def heard(self, said: Any) -> None:
        """What a hook was told. No file is touched here: whoever called waits."""
        if not isinstance(said, Mapping):
            return
        about = dict(said)
        path, agent = text(about, "transcript_path"), text(about, "agent_id")
        if not path:
            return
        with self._lock:
            self._is_over = False
            if not self._conversations:
                self.session.before_close(self._end)
            conversation = self._conversation(path, text(about, "session_id"))
            match text(about, "hook_event_name"):
                case "SubagentStart" if agent:
                    conversation.running.add(agent)
                    conversation.add(agent)
                case "SubagentStop" if agent:
                    conversation.running.discard(agent)
                    own = text(about, "agent_transcript_path")
                    conversation.add(agent, Path(own) if own else None)
                case "Stop":
                    self._in_turn.discard(path)
                case _:
                    self._in_turn.add(path)
        self._watch.wake()

    def _conversation(self, path: str, session_id: str) -> ClaudeConversation:
        if path not in self._conversations:
            self._conversations[path] = ClaudeConversation(self.session, Path(path), session_id, **self._how)
        return self._conversations[path]

    def _patience(self) -> float:
        """How many seconds without news the files are watched. `Stop` may come before the last `SubagentStop`."""
        if self._is_abandoned():
            return 0.0
        running = any(one.running for one in list(self._conversations.values()))
        return STALLED if self._in_turn or running else QUIET

    def _is_abandoned(self) -> bool:
        """Whether the host has ended its event loop without closing any transport in it."""
        with self._lock:
            return bool(self._transports) and all(_is_closed(loop) for _, loop in self._transports.values())

    # The files

    def look(self) -> bool:
        """Log what was added to any of the files; whether there was anything. Whoever holds the session is not waited
        for: he may be waiting for this thread."""
        if not self.session.lock.acquire(timeout=INTERVAL):
            return False
        try:
            return bool(self._look(last=True, goes_on=True) if self._is_abandoned() else self._look())
        finally:
            self.session.lock.release()

    @never_raising
    def _look(self, **how: bool) -> bool:
        with self._lock:
            conversations = list(self._conversations.values())
        return any([one.look(**how) for one in conversations])  # noqa: C419 all of them

    def finish(self) -> None:
        """Read what is left of the files and stop watching them. While a transport is open there may come more: it is
        read when that is closed, or when somebody captures in this session again."""
        if self._transports:
            self._settle()
        self._finish()

    def _end(self) -> None:
        """The session is about to be closed, perhaps in the middle of a run; a transport that is closed later has
        nobody to tell."""
        if self._conversations:
            self._settle()
            self._finish(goes_on=bool(self._in_turn))
        self._is_over = True

    @never_raising
    def _settle(self) -> None:
        """The host broke out of its loop: what it heard last Claude Code writes a moment later."""
        self._watch.settle(self._sizes)

    def _sizes(self) -> list[int]:
        with self._lock:
            return [size for one in self._conversations.values() for size in one.sizes()]

    @never_raising
    def _finish(self, *, goes_on: bool = False) -> None:
        self._watch.stop()
        if not self.session.lock.acquire(timeout=BUSY):
            raise Conflict("the session is busy in another thread", hint="the rest is read at the next capture in it")
        try:
            with self._lock:
                goes_on = goes_on or bool(self._transports)
            self._look(last=True, goes_on=goes_on)
            with self._lock:
                self._in_turn.clear()
                if not goes_on:
                    self._conversations.clear()
                    self.session.no_longer_before_close(self._end)
        finally:
            self.session.lock.release()

    @never_raising
    def catch_up(self) -> None:
        """Read the rest of files whose capture was broken off."""
        for name, path in captured_before(self.session, unfinished=True).items():
            with self._lock:
                self._conversation(path, name)
        self._look(last=True)
        self._conversations.clear()


def running_loop() -> Any:
    """The event loop of asyncio in which this runs; None in any other."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _is_closed(loop: Any) -> bool:
    return loop is not None and bool(loop.is_closed())


def instructions_of(given: Any) -> str:
    """The instructions that options give, as far as they give all of them."""
    if isinstance(given, str):
        return given
    about = dict(given) if isinstance(given, Mapping) else {}
    match text(about, "type"):
        case "custom":
            return text(about, "prompt")
        case "file":
            try:
                return Path(text(about, "path")).read_text(encoding="utf-8", errors="replace")
            except (OSError, ValueError):
                return ""
    return ""


@dataclass(frozen=True)
class ClaudeAgentSDKClientConfig:
    """The specification's switches."""

    capture_transcript: bool = False
    capture_subagent_transcripts: bool = True


class ClaudeAgentSDKAdapter:
    """The specification's adapter: `options` gives those with which a run is captured where the switches say so."""

    def __init__(self, *, client_config: ClaudeAgentSDKClientConfig | None = None) -> None:
        self.client_config = client_config or ClaudeAgentSDKClientConfig()

    def options(self, options: ClaudeAgentOptions | None, session: Session, **how: Any) -> Any:
        """The options, captured or as they are."""
        config = self.client_config
        if not config.capture_transcript:
            return options
        return claude_agent(options, session, subagents=config.capture_subagent_transcripts, **how)
