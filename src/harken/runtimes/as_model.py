"""A runtime that speaks for somebody else's agent: the real program is asked once, and what it prints is the answer.

Pure functions take a request apart and say with which words the program is started; `play` starts it under observation,
like `harken run`, so that its own session is kept and can be gone on from.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from harken import clock, ids
from harken.errors import BadRequest
from harken.store import Commit, Store

from .base import Answering, Environment, Runtime, Template, get, names
from .live import RunFacts
from .run import RunOutput, RunPlan, run

COMMANDS = ("/", "!", "#")
"""What a program would take for an order to itself at the beginning of what it is told."""
PATIENCE = 5.0
"""Seconds that a program has to end in when it is told to."""


class RuntimePrompt(msgspec.Struct, frozen=True, kw_only=True):
    """A request taken apart."""

    instructions: str
    past: list[dict[str, Any]]
    """Everything up to the agent's last message and the results of its calls."""
    heard: list[dict[str, Any]]
    """What it was told since."""
    prompt: str
    """The words of that, for the program to read."""


def take_apart(messages: Sequence[dict[str, Any]]) -> RuntimePrompt:
    """What a program is told, of messages as providers take them."""
    said = [message for message in messages if message.get("role") != "system"]
    end = max((place + 1 for place, one in enumerate(said) if one.get("role") in ("assistant", "tool")), default=0)
    prompt = "\n\n".join(_text(message) for message in said[end:]) or "Go on."
    return RuntimePrompt(
        instructions="\n\n".join(_text(message) for message in messages if message.get("role") == "system"),
        past=said[:end],
        heard=said[end:],
        prompt=f"You are told: {prompt}" if prompt.lstrip().startswith(COMMANDS) else prompt,
    )


def _text(message: dict[str, Any]) -> str:
    return str(message.get("content") or "")


def digest(messages: Sequence[dict[str, Any]]) -> str:
    """What messages are known by again."""
    return ids.short_digest(msgspec.json.encode(list(messages)))


class RuntimePart(msgspec.Struct, frozen=True, kw_only=True):
    """What a runtime is to say, and where."""

    runtime: Runtime
    told: RuntimePrompt
    environ: Environment
    cwd: Path
    socket_folder: Path
    arguments: tuple[str, ...] = ()
    """The program's own arguments besides."""
    session: str = ""
    """Its session to go on with; or else"""
    source: Commit | None = None
    """the commit to go on from in a new one; without both it is a fresh start."""
    thread_id: str = ""
    """Whom it speaks for; goes onto its commits."""
    machine: str = ""


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """What became of it."""

    text: str
    status: int
    session: str
    context_id: str
    trouble: str = ""
    """What it said went wrong."""
    is_cut_off: bool = False
    """Whether the program was ended behind its answer, so that nobody knows what its own session holds of it."""


GUARD = 'read -r _; kill -s TERM -- "-$1"; sleep "$2"; kill -s KILL -- "-$1"'
"""Ends a group of processes when whoever holds the other end of its stdin is gone, however that came about."""


class Stage:
    """Holds the program while it runs: somebody else can end it, and it does not outlive us."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child = 0
        self._is_over = False
        self._guard: subprocess.Popen[bytes] | None = None
        self._done = threading.Event()

    def started(self, child: int) -> None:
        """The program runs, in a group of its own."""
        with self._lock:
            self._child = child
            if self._is_over:
                _signal(child, signal.SIGKILL)
                return
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", GUARD, "sh", str(child), str(int(PATIENCE))],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def end(self) -> None:
        """End the program, with whatever it has started, and wait for it."""
        with self._lock:
            self._is_over = True
            _signal(self._child, signal.SIGTERM)
        if not self._done.wait(PATIENCE):
            _signal(self._child, signal.SIGKILL)
            self._done.wait(PATIENCE)

    def close(self) -> None:
        """The program has ended."""
        if (guard := self._guard) is not None and guard.stdin is not None:
            guard.kill()
            guard.wait()
            guard.stdin.close()
        self._done.set()


def _signal(child: int, number: int) -> None:
    try:
        if child:
            os.killpg(child, number)
    except (ProcessLookupError, PermissionError):
        pass


def check(runtime: Runtime) -> Answering:
    """With which words a runtime answers; refuses one that cannot speak for an agent."""
    if runtime.launch is not None and runtime.launch.answers is not None:
        return runtime.launch.answers
    launchers = {name: get(name).launch for name in names()}
    able = [name for name, launch in launchers.items() if launch is not None and launch.answers is not None]
    raise BadRequest(f"{runtime.name} cannot speak for an agent", hint="those that can: " + ", ".join(able))


def play(store: Store, part: RuntimePart, stage: Stage, *, now: clock.Clock = clock.now) -> Played:
    """Let the program answer; what it did on the way is in the store."""
    shown, trouble = bytearray(), list[str]()
    template = Template(
        name=part.runtime.name,
        runtime=part.runtime.name,
        append_system_prompt=part.told.instructions,
        arguments=part.arguments,
    )
    plan = RunPlan(
        runtime=part.runtime,
        words=tuple(check(part.runtime)(part.session)),
        environ=part.environ,
        cwd=part.cwd,
        socket_folder=part.socket_folder,
        facts=RunFacts(runtime=part.runtime.name, machine=part.machine, thread_id=part.thread_id),
        source=part.source,
        template=template,
    )
    try:
        # Files, not pipes: a prompt may be longer than a pipe holds, and nobody reads what goes wrong meanwhile.
        with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as wrong:
            asked.write(part.told.prompt.encode("utf-8", "replace"))
            asked.seek(0)
            output = RunOutput(
                show=shown.extend,
                note=trouble.append,
                warn=trouble.append,
                stdin=asked.fileno(),
                stderr=wrong.fileno(),
                started=stage.started,
            )
            ended = run(store, plan, output, now=now)
            wrong.seek(0, os.SEEK_END)
            wrong.seek(max(0, wrong.tell() - 2000))
            trouble.append(wrong.read().decode("utf-8", "replace").strip())
    finally:
        stage.close()
    return Played(
        text=shown.decode("utf-8", "replace").removesuffix("\n"),
        status=ended.status,
        session=ended.session,
        context_id=ended.context_id,
        trouble="\n".join(line for line in trouble if line),
    )
