"""`harken run`: start a runtime, listen to it, and keep what it knows while it works.

One loop does everything but the recording: it reads the runtime's output, shows the user what the runtime would have
shown, and answers the context socket. Because the same loop reads and answers, a question about the present context
first takes in whatever the runtime has already written.

Recording never gets in the way of the run: it has a thread of its own, and what cannot be stored stays in a spool.
"""

from __future__ import annotations

import os
import selectors
import shutil
import subprocess
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from harken import clock
from harken.context import Tracker, turns
from harken.context.names import LIVE_BRANCH
from harken.errors import BadRequest, HarkenError, NotFound
from harken.ids import is_safe_name
from harken.store import Commit, Store

from .base import Environment, Launcher, Plan, Runtime, Template
from .callers import Caller, find_caller
from .display import Display, WriteBytes, parse
from .lines import LineSplitter
from .live import RunFacts, track
from .process import CHUNK, PipedInput, SignalForwarder, end_of
from .recorder import MAIN, Opening, Recorder
from .recording import Recording
from .resume import Destination, Resumed, resume
from .socket import ContextAnswer, ContextSocket
from .spool import SpoolFile, SpoolNote, new_header, spools

if TYPE_CHECKING:
    from .memory import ImportResult

LOOK = 0.5
"""Seconds after which the loop looks round even if nothing happened."""
GRACE = 0.4
"""Seconds a question may wait for the line of the call that asks it, which the runtime may not have written yet."""
SOCKETS = ("HARKEN_CONTEXT_SOCKET", "BUREAU_AGENT_CONTEXT_SOCKET")


class RunPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be run, and where."""

    runtime: Runtime
    words: tuple[str, ...]
    """The runtime's own arguments, as the user would type them."""
    environ: Environment
    """What the runtime is started with."""
    cwd: Path
    socket_folder: Path
    """A folder of the user's own for the context socket."""
    facts: RunFacts
    source: Commit | None = None
    """The commit to continue from; without one it is a fresh start."""
    template: Template | None = None


class RunOutput(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run shows itself, and what it reads."""

    show: WriteBytes = lambda data: None
    """Takes the bytes that the runtime would have printed."""
    note: Callable[[str], None] = lambda text: None
    """Takes what the runtime would have said beside its answer."""
    warn: Callable[[str], None] = lambda text: None
    """Takes what went wrong with recording."""
    resumed: Callable[[Resumed], None] = lambda done: None
    """Is told what was written for the runtime to continue, before it starts."""
    stdin: int | None = None
    """A descriptor whose bytes go to the runtime; without one its stdin is empty."""
    stderr: int | None = None
    """A descriptor that takes its stderr; without one it is ours."""
    started: Callable[[int], None] = lambda child: None
    """Is told the process of the runtime, which leads a group of its own."""


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended."""

    status: int
    """The runtime's exit status, or 128 and the signal's number, as a shell says it."""
    session: str
    context_id: str
    is_stored: bool = True
    """Whether everything that was heard of the run is in the store."""
    is_over: bool = True
    """Whether nothing is being done any longer: a thread may still wait for the store, or read the run's files."""
    spool: str = ""
    """The file that holds what could not be stored yet; the next command that writes stores it."""


def run(store: Store, request: RunPlan, output: RunOutput, *, now: clock.Clock = clock.now) -> Ended:
    """Run a runtime to its end and keep what it knew on the way; the runtime's own failure is part of the answer."""
    launch = _launcher(request.runtime)
    facts = request.facts
    words: tuple[str, ...] = request.words
    if (template := request.template) is not None:
        if template.runtime != request.runtime.name:
            raise BadRequest(
                f"template {template.name!r} is for {template.runtime}, not for {request.runtime.name}",
                hint=f"run it with {template.runtime}, or choose another template",
            )
        words = tuple(launch.template(template, words))
        facts = msgspec.structs.replace(facts, template=template.name)
    turns.frequency(facts.frequency)
    # The words are looked at before anything is written for a resume.
    plan = launch.plan(words, "x" if request.source else "")
    program = _find_program(request, words)
    if request.source is not None:
        to = Destination(runtime=request.runtime, cwd=request.cwd, environ=request.environ)
        resumed = resume(store, request.source, to, now=now)
        output.resumed(resumed)
        plan = launch.plan(words, resumed.session)
        facts = msgspec.structs.replace(facts, source=resumed.source)

    def open_tracker(opening: Opening) -> Tracker:
        if not opening.agent and spool.path is not None and spool.whole and spools(store) != [spool.path]:
            from .spooled import wait_for_earlier  # seldom is there one

            wait_for_earlier(store, opening.session, spool.path)
        return track(store, opening, facts, warn=output.warn, now=now)

    started, unnamed = now(), plan.session or str(uuid.uuid4())
    recorder = Recorder(launch, open_tracker, output.warn, now=lambda: started, unnamed=unnamed)
    spool = SpoolFile(store, new_header(request.runtime.name, facts, started=started, session=unnamed))
    request = msgspec.structs.replace(request, facts=facts)
    recording = Recording(recorder, spool, lambda moved: _store_earlier(store, request.runtime, output.warn, moved))
    return _Run(store, request, plan, recording, output, now).go(program)


def _store_earlier(store: Store, runtime: Runtime, warn: Callable[[str], None], moved: Callable[[], None]) -> None:
    """Store what earlier runs of the runtime have left in spools, since this run may go on with their sessions."""
    if not spools(store):
        return
    from .spooled import store_spools  # seldom is there one

    for one in store_spools(store, runtime=runtime.name, moved=moved):
        if one.problem:
            warn(f"{one.problem}; {one.hint}" if one.hint else one.problem)


def _launcher(runtime: Runtime) -> Launcher:
    if runtime.launch is None:
        from . import get, names

        able = [name for name in names() if "run" in get(name).can]
        raise BadRequest(f"{runtime.name} cannot be run under Harken", hint="those that can: " + ", ".join(able))
    return runtime.launch


def _find_program(request: RunPlan, words: Sequence[str]) -> str:
    name = _launcher(request.runtime).program or words[0]
    if (found := shutil.which(name, path=request.environ.get("PATH"))) is None:
        raise NotFound(f"{name!r} is not on PATH", hint=f"install {request.runtime.label} first, or put it on PATH")
    return found


class _Run:
    """One run of a runtime."""

    def __init__(
        self, store: Store, request: RunPlan, plan: Plan, recording: Recording, output: RunOutput, now: clock.Clock
    ) -> None:
        self._store = store
        self._request = request
        self._launch = _launcher(request.runtime)
        self._plan, self._recording = plan, recording
        self._warn = output.warn
        self._display = Display(self._launch.shown, plan.show, out=output.show, note=output.note)
        self._is_more = self._launch.more_lines()
        self._hides_more = not plan.wants_more and not self._launch.more.keys() & request.environ.keys()
        self._stdin, self._stderr, self._started_as = output.stdin, output.stderr, output.started
        self._now = now
        self._lines = LineSplitter()
        self._piped: PipedInput | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._prompted, self._open = False, True
        self._started = now()
        self._unread: list[str] = []
        """Why files of the run could not be read when it was over."""

    def go(self, program: str) -> Ended:
        """Start the runtime, stay with it to its end, and say how it ended."""
        server = ContextSocket(self._request.socket_folder, self._answer)
        try:
            sockets = dict.fromkeys(SOCKETS, str(server.path))
            env = {**self._launch.quiet, **self._launch.more, **self._request.environ, **sockets}
            self._read_before(self._plan.continues)
            with SignalForwarder() as signals, self._start(program, env) as child:
                self._child = child
                signals.forward_to(child.pid)
                self._started_as(child.pid)
                self._attend(child, server)
                status = child.wait()
        except BaseException:
            self._recording.end()
            raise
        finally:
            server.close()
        is_stored = self._finish(status)
        return Ended(
            status=status if status >= 0 else 128 - status,
            session=self._recording.session,
            context_id=self._recording.context_id,
            is_stored=is_stored,
            is_over=self._recording.is_over,
            spool="" if is_stored else self._recording.spool,
        )

    def _start(self, program: str, env: dict[str, str]) -> subprocess.Popen[bytes]:
        try:
            # A group of its own: a Ctrl-C meant for both reaches it once, through us.
            return subprocess.Popen(
                [program, *self._plan.arguments],
                stdin=subprocess.DEVNULL if self._stdin is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                env=env,
                cwd=self._request.cwd,
                process_group=0,
            )
        except OSError as problem:
            raise HarkenError(
                f"{program} could not be started: {problem.strerror}", hint="look at the program and its permissions"
            ) from problem

    def _attend(self, child: subprocess.Popen[bytes], server: ContextSocket) -> None:
        """Read and answer until the runtime has ended."""
        assert child.stdout is not None
        os.set_blocking(child.stdout.fileno(), False)
        if self._stdin is not None and child.stdin is not None:
            self._piped = PipedInput(self._stdin, os.dup(child.stdin.fileno()))
            child.stdin.close()
        with end_of(child.pid) as ending, selectors.DefaultSelector() as selector:
            selector.register(child.stdout, selectors.EVENT_READ, "output")
            selector.register(server.listener, selectors.EVENT_READ, "caller")
            if ending is not None:
                selector.register(ending, selectors.EVENT_READ, "end")
            while self._turn(selector, server) and child.poll() is None:
                pass
        # What a tool left running may hold the pipe open for ever; what is in it now is all we wait for.
        self._drain()

    def _turn(self, selector: selectors.BaseSelector, server: ContextSocket) -> bool:
        """Do what is ready; the answer is whether the runtime goes on."""
        going = True
        for key, _ in selector.select(LOOK):
            if key.data == "output":
                # Not all at once: a runtime that writes without a pause must not keep a caller waiting.
                self._drain(limit=64)
                if not self._open:
                    selector.unregister(key.fileobj)
            elif key.data == "caller":
                server.accept(selector)
            elif key.data == "end":
                going = False
            else:
                key.data(key.fileobj, selector)
        server.drop_slow(selector)
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
            for line in self._lines.feed(part):
                self._line(line)

    def _line(self, line: bytes) -> None:
        found = parse(line)
        self._prompt()
        self._typed()
        if line.strip():
            self._recording.line(line, found)
        if not (self._is_more(found) and self._hides_more):
            self._display.line(line, found)

    def _prompt(self) -> None:
        """Record the prompt, which the stream does not repeat, before the first thing the runtime says."""
        if self._prompted:
            return
        self._prompted = True
        piped = "" if self._piped is None or self._plan.typed_lines else self._piped.text()
        self._record_prompt(self._launch.full_prompt(self._plan.prompt, piped))

    def _typed(self) -> None:
        """Record prompts that are typed into a running session as JSON lines, unless the runtime repeats them."""
        if self._piped is None or not self._plan.typed_lines or self._plan.echoes_prompts:
            return
        for line in self._piped.new_lines():
            self._record_prompt(self._launch.typed(parse(line)))

    def _record_prompt(self, text: str) -> None:
        if text:
            self._recording.note(SpoolNote(prompt=text, time=self._now()))

    def _answer(self, what: str, process: int) -> ContextAnswer:
        """The commit that holds what the asking agent has said and heard up to now."""
        self._drain()
        child = self._child
        caller = find_caller(process, child.pid) if child is not None and process else Caller()
        reason = "explicit" if what == "checkpoint" else "tool_call"
        latest = clock.monotonic() + GRACE
        # The tool that asks may be quicker than the line that says it was called.
        while not self._recording.ask(lambda recorder: recorder.has_call_of(caller)) and self._waits(latest):
            self._drain()
        found = self._recording.ask(lambda recorder: self._name_commit(recorder, caller, reason))
        return found or ContextAnswer(context_id="", reason=self._recording.silence)

    def _waits(self, latest: float) -> bool:
        """Wait until the runtime has written more; the answer is whether it has, in time."""
        child, left = self._child, latest - clock.monotonic()
        if left <= 0 or not self._open or child is None or child.stdout is None:
            return False
        with selectors.DefaultSelector() as output:
            output.register(child.stdout, selectors.EVENT_READ)
            return bool(output.select(left))

    def _name_commit(self, recorder: Recorder, caller: Caller, reason: str) -> ContextAnswer:
        """The commit of the agent whose tool asks; the main agent's where none is known to run one."""
        session = self._launch.asking_session(caller.environ)
        try:
            if not recorder.is_from_stream(session):
                return ContextAnswer(context_id=self._read_session(session))
            return self._commit(recorder, reason, MAIN if session else recorder.asking(caller))
        except HarkenError as problem:
            return ContextAnswer(context_id="", reason=str(problem))

    def _commit(self, recorder: Recorder, reason: str, agent: str) -> ContextAnswer:
        at = recorder.checkpoint(reason, agent)
        return ContextAnswer(context_id=at, reason="" if at else self._recording.problem)

    def _read_session(self, session: str) -> str:
        """The tip of a sub-agent that has a session of its own, which its file tells and the stream does not."""
        self._read_files([session])
        if (row := self._store.find_session(session)) is None or not row.tip:
            raise NotFound(f"the agent that asks is {session!r}, of which nothing is kept yet", hint="ask again later")
        return self._store.get_commit(row.stand).short

    def _read_files(self, sessions: Sequence[str], moved: Callable[[], None] = lambda: None) -> list[ImportResult]:
        """Import the files of sessions, as they are now; `moved` is called with every part that is read."""
        from .run_files import RunFiles  # a run that fails at once does not need it

        asked = self._request
        files = RunFiles(self._store, asked.runtime, asked.environ, asked.facts, self._started, self._now)
        with self._recording.busy_with("the session's file is being read"):
            return files.read(sessions, moved)

    def _read_before(self, session: str) -> None:
        """Read what the session's file holds before the runtime goes on from it: a recording that nobody compared with
        the file may know what the runtime does not."""
        if not is_safe_name(session) or self._store.find_name(LIVE_BRANCH + session) is None:
            return
        if not self._recording.before(lambda moved: self._read_files([session], moved)):
            self._warn(f"the file of session {session!r} could not be read before the run; import it afterwards")

    def _read_after(self, moved: Callable[[], None]) -> None:
        """Read what the files of the run's sessions hold: more than was printed."""
        try:
            results = self._read_files(self._recording.sessions, moved)
        except Exception as problem:  # noqa: BLE001 (a run is worth more than its record)
            self._unread = [str(problem)]
        else:
            self._unread = [result.error for result in results if result.status == "failed"]

    def _tell_unread(self) -> None:
        """Say which files could not be read."""
        if not self._recording.is_over:
            self._unread = ["it took too long"]
        for why in self._unread[:1]:
            what = f"the run is stored as it was printed; its files could not be read to their end: {why}"
            self._warn(f"{what}; `harken import` takes in what is missing")

    def _finish(self, status: int) -> bool:
        """Record the end; the answer is whether everything is in the store."""
        for line in self._lines.end():
            self._line(line)
        self._prompt()
        self._typed()
        self._display.end()
        self._recording.note(SpoolNote(status=status, time=self._now()))
        if is_stored := self._recording.end(self._read_after):
            self._tell_unread()
        else:
            self._warn(self._recording.trouble)
        return is_stored
