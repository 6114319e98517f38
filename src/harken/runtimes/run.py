"""`harken run`: start a runtime, listen to it, and keep what it knows while it works.

One loop in one thread does everything: it reads the runtime's output, feeds the events to the checkpoint tracker,
shows the user what the runtime would have shown, and answers the context socket. Because the same loop reads and
answers, a question about the present context first takes in whatever the runtime has already written.

Recording never gets in the way of the run: if it fails, the user is told once and the runtime goes on.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import msgspec

from harken import clock
from harken.errors import HarkenError
from harken.events import Error, Event, Prompt, System

from .arguments import Plan
from .display import Display, Show, parse
from .recorder import MAIN, Recorder
from .socket import ContextSocket

CHUNK = 64 * 1024
MAX_LINE = 64 * 1024 * 1024
"""An output line longer than this is recorded in pieces, so that memory has a bound."""
MAX_PIPED = 32 * 1024 * 1024
LOOK = 0.5
"""Seconds after which the loop looks round even if nothing happened."""
GRACE = 0.1
"""Seconds a question may wait for the line of the call that asks it, which the runtime may not have written yet."""
QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
}
"""Set unless the user has set them: no traffic but the conversation's own."""
SOCKETS = ("HARKEN_CONTEXT_SOCKET", "BUREAU_AGENT_CONTEXT_SOCKET")
_TO_GROUP = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
_TO_CHILD = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended."""

    status: int
    """The runtime's exit status, or 128 and the signal's number, as a shell says it."""
    session: str
    context_id: str


class _Piped:
    """Carries our stdin to the runtime in a thread of its own, and remembers what went through."""

    def __init__(self, source: int, sink: int) -> None:
        self._source = source
        self._sink = sink
        self._lock = threading.Lock()
        self._seen = bytearray()
        self._taken = 0
        threading.Thread(target=self._carry, daemon=True).start()

    def _carry(self) -> None:
        with contextlib.suppress(OSError):
            while part := os.read(self._source, CHUNK):
                with self._lock:
                    self._seen += part[: max(0, MAX_PIPED - len(self._seen))]
                while part:
                    part = part[os.write(self._sink, part) :]
        os.close(self._sink)

    def text(self) -> str:
        """Everything that went through so far."""
        with self._lock:
            return self._seen.decode("utf-8", "replace")

    def new_lines(self) -> list[bytes]:
        """Whole lines that went through since the last time."""
        with self._lock:
            end = self._seen.rfind(b"\n") + 1
            lines = bytes(self._seen[self._taken : end]).splitlines() if end > self._taken else []
            self._taken = max(end, self._taken)
            return lines


class Run:
    """One run of a runtime."""

    def __init__(
        self,
        plan: Plan,
        recorder: Recorder,
        *,
        out: Show,
        note: Callable[[str], None],
        stdin: int | None = None,
        now: clock.Clock = clock.now,
    ) -> None:
        self._plan = plan
        self._recorder = recorder
        self._display = Display(plan.runtime, plan.show, out=out, note=note)
        self._stdin = stdin
        self._now = now
        self._buffer = bytearray()
        self._piped: _Piped | None = None
        self._prompted = False
        self._child: subprocess.Popen[bytes] | None = None
        self._open = True

    def go(
        self, program: str, *, environment: Mapping[str, str], socket_folder: Path, cwd: Path | None = None
    ) -> Ended:
        """Start the runtime, stay with it to its end, and say how it ended."""
        door = ContextSocket(socket_folder, self._answer)
        try:
            env = QUIET | dict(environment) | dict.fromkeys(SOCKETS, str(door.path))
            with _Signals() as signals, self._start(program, env, cwd) as child:
                self._child = child
                signals.meant_for(child.pid)
                self._attend(child, door)
                status = child.wait()
        finally:
            door.close()
        self._finish(status)
        code = status if status >= 0 else 128 - status
        return Ended(status=code, session=self._recorder.session, context_id=self._recorder.checkpoint("session_end"))

    def _start(self, program: str, env: dict[str, str], cwd: Path | None) -> subprocess.Popen[bytes]:
        try:
            # A group of its own: a Ctrl-C meant for both reaches it once, through us.
            return subprocess.Popen(
                [program, *self._plan.arguments],
                stdin=subprocess.DEVNULL if self._stdin is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=env,
                cwd=cwd,
                process_group=0,
            )
        except OSError as problem:
            raise HarkenError(f"{program} could not be started: {problem.strerror}") from problem

    def _attend(self, child: subprocess.Popen[bytes], door: ContextSocket) -> None:
        assert child.stdout is not None
        os.set_blocking(child.stdout.fileno(), False)
        if self._stdin is not None and child.stdin is not None:
            self._piped = _Piped(self._stdin, os.dup(child.stdin.fileno()))
            child.stdin.close()
        with _ending(child.pid) as ending, selectors.DefaultSelector() as selector:
            selector.register(child.stdout, selectors.EVENT_READ, "output")
            selector.register(door.listener, selectors.EVENT_READ, "caller")
            if ending is not None:
                selector.register(ending, selectors.EVENT_READ, "end")
            while self._turn(selector, door) and child.poll() is None:
                pass
        # What a tool left running may hold the pipe open for ever; what is in it now is all we wait for.
        self._drain()

    def _turn(self, selector: selectors.BaseSelector, door: ContextSocket) -> bool:
        going = True
        patience = self._recorder.patience()
        ready = selector.select(LOOK if patience is None else patience)
        if not ready and patience is not None:
            self._recorder.rest()
        for key, _ in ready:
            if key.data == "output":
                self._drain(limit=64)
                if not self._open:
                    selector.unregister(key.fileobj)
            elif key.data == "caller":
                door.accept(selector)
            elif key.data == "end":
                going = False
            else:
                key.data(key.fileobj, selector)
        door.dismiss_slow(selector)
        self._typed()
        return going

    def _drain(self, limit: int = 1 << 30) -> None:
        """Take in what the runtime has written, without waiting for more."""
        child = self._child
        if child is None or child.stdout is None:
            return
        while self._open and limit:
            limit -= 1
            try:
                part = os.read(child.stdout.fileno(), CHUNK)
            except BlockingIOError:
                return
            self._open = bool(part)
            self._take(part)

    def _take(self, part: bytes) -> None:
        self._buffer += part
        if b"\n" not in part and len(self._buffer) < MAX_LINE:
            return
        *lines, rest = self._buffer.split(b"\n")
        if len(rest) >= MAX_LINE:
            lines.append(rest)
            rest = bytearray()
        self._buffer = bytearray(rest)
        for line in lines:
            self._line(bytes(line))

    def _line(self, line: bytes) -> None:
        found = parse(line)
        self._prompt()
        self._typed()
        if line.strip():
            self._recorder.line(line, found)
        self._display.line(line, found)

    def _prompt(self) -> None:
        """Record the prompt, which the stream does not repeat, before the first thing the runtime says."""
        if self._prompted:
            return
        self._prompted = True
        piped = "" if self._piped is None else self._piped.text()
        if text := self._plan.full_prompt(piped):
            self._recorder.add([Prompt(content=text, source="user", time=self._now())])

    def _typed(self) -> None:
        """Record prompts that are typed into a running session as JSON lines, unless the runtime repeats them."""
        if self._piped is None or not self._plan.typed_lines or "--replay-user-messages" in self._plan.arguments:
            return
        for line in self._piped.new_lines():
            if text := _typed_prompt(parse(line)):
                self._recorder.add([Prompt(content=text, source="user", time=self._now())])

    def _answer(self, what: str) -> str:
        """The commit that holds what the runtime has written up to now."""
        self._drain()
        child = self._child
        if self._recorder.asking() is None and self._open and child is not None and child.stdout is not None:
            with selectors.DefaultSelector() as patience:
                patience.register(child.stdout, selectors.EVENT_READ)
                if patience.select(GRACE):
                    self._drain()
        reason = "explicit" if what == "checkpoint" else "tool_call"
        return self._recorder.checkpoint(reason, self._recorder.asking() or MAIN)

    def _finish(self, status: int) -> None:
        if self._buffer:
            self._line(bytes(self._buffer))
            self._buffer.clear()
        self._prompt()
        self._typed()
        self._display.end()
        name = "" if status >= 0 else signal.Signals(-status).name
        said = f"exit status {status}" if status >= 0 else f"killed by {name}"
        facts = {"exit_status": status if status >= 0 else None, "signal": name or None}
        events: list[Event] = []
        if status:
            events.append(Error(message=f"{self._plan.runtime} ended with {said}", time=self._now()))
        end = System(subtype="shutdown", message=said, metadata=msgspec.json.encode(facts), time=self._now())
        self._recorder.add([*events, end])
        self._recorder.end()


@contextlib.contextmanager
def _ending(child: int) -> Iterator[int | None]:
    """Something to select on that tells the end of a process, where the system has it; elsewhere the loop looks."""
    if not hasattr(os, "pidfd_open"):
        yield None
        return
    handle = os.pidfd_open(child)
    try:
        yield handle
    finally:
        os.close(handle)


def _typed_prompt(found: dict[str, Any]) -> str:
    """The text of a user message on a line of `--input-format stream-json`."""
    message = found.get("message")
    if found.get("type") != "user" or not isinstance(message, dict):
        return ""
    content = message.get("content")
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    texts = [block.get("text") for block in blocks if isinstance(block, dict) and block.get("type") == "text"]
    return "\n".join(text for text in texts if isinstance(text, str))


class _Signals:
    """Passes signals on to the runtime for as long as it lives; a stop stops both, and both go on together."""

    def __init__(self) -> None:
        self._child = 0
        self._early: list[int] = []

    def meant_for(self, child: int) -> None:
        """The runtime has been started; what came before that reaches it now."""
        self._child = child
        for number in self._early:
            self._pass_on(number, None)

    def __enter__(self) -> Self:
        self._before: dict[int, Any] = {}
        if threading.current_thread() is threading.main_thread():
            for number in (*_TO_GROUP, *_TO_CHILD):
                self._before[number] = signal.signal(number, self._pass_on)
            self._before[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, self._pause)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _pass_on(self, number: int, _frame: object) -> None:
        if not self._child:
            self._early.append(number)
            return
        with contextlib.suppress(ProcessLookupError):
            if number in _TO_CHILD:
                os.kill(self._child, number)
            else:
                os.killpg(self._child, number)

    def _pause(self, _number: int, frame: object) -> None:
        self._pass_on(signal.SIGSTOP, frame)
        os.kill(os.getpid(), signal.SIGSTOP)
        self._pass_on(signal.SIGCONT, frame)
