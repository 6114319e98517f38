"""What a runtime is: one value that says where its sessions lie, how they are read, resumed and started; and which
there are.

`Runtime` holds data and pure functions. Its parts are there or absent: a runtime whose sessions cannot be written has
no `resume`, one that cannot be started under observation has no `launch`, and `can` says so. Everything that is
particular to one runtime lies in its own folder; what imports, watches, resumes and runs asks this value and never
for a name.
"""

from __future__ import annotations

import importlib
import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from harken import ids
from harken.errors import BadRequest
from harken.events import Event, ToolCall
from harken.formats import Written
from harken.formats.facts import FileFacts, Origin
from harken.formats.kit.claims import Claim

if TYPE_CHECKING:
    from .plugins import Plugins

Environment = Mapping[str, str]
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def user_home(environ: Environment) -> Path:
    """The user's home folder, as the environment alone tells it."""
    return Path(environ.get("HOME") or environ.get("USERPROFILE") or "/")


# -- reading ---------------------------------------------------------------------------------------------------------


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Whose file it is."""

    session: str
    agent: str = ""
    parent: str = ""
    """The session that spawned it, for a sub-agent."""
    call_id: str = ""
    """The call that did so, where a side file tells."""
    title: str = ""
    """The name that somebody gave it, where a side file tells."""

    @property
    def name(self) -> str:
        """The session's name in the store: a sub-agent's begins with its parent's."""
        return f"{self.parent}/{self.agent}" if self.parent and self.agent else self.session


def path_name(path: Path) -> str:
    """What a session is called that no record names: after its file (given without the ending) and, since another
    folder may have a file of that name, after where it lies. A name with a UUID in it is like no other."""
    if UUID.search(path.name):
        return path.name
    return f"{path.name}-{ids.artifact_id(os.fsencode(path.absolute()))[:8]}"


def no_sessions(connection: sqlite3.Connection) -> Iterable[tuple[str, bytes]]:
    """Most runtimes keep no database."""
    return ()


def no_side_files(path: Path) -> Iterable[Path]:
    """Most runtimes keep no side files."""
    return ()


def no_side_chains(data: bytes) -> Mapping[str, bytes]:
    """Most files hold one agent."""
    return {}


def no_record_names(data: bytes) -> Iterable[str]:
    """Where records have no names, copies are not recognised by them."""
    return ()


class SessionReader(msgspec.Struct, frozen=True, kw_only=True):
    """How an importer reads the sessions of a runtime."""

    scan: Callable[[bytes, bytes], FileFacts]
    """Bytes from a closed cut on, and the state of that cut, to what there is to know. Of a document: all of it; the
    deltas then bring their own bytes (`Delta.content`), closed messages first, what stands around them as the tail."""
    identify: Callable[[Path, FileFacts], Identity]
    suffixes: tuple[str, ...] = (".jsonl", ".jsonl.zst")
    """How the names of its files end; a walk through a folder looks at no others."""
    made_from: str = ""
    """How the name of a file ends, beside a document, that the document is made from: of the two that one is imported
    with a folder, or everything in it would count twice."""
    sessions: Callable[[sqlite3.Connection], Iterable[tuple[str, bytes]]] = no_sessions
    """Of a database: the sessions in it, each with its rows as they stand, in a fixed order. `scan` then takes those
    bytes for a document; the connection is a snapshot that may only be read."""
    side_files: Callable[[Path], Iterable[Path]] = no_side_files
    """The files beside a session's own that belong to it and are no transcripts."""
    agent_files: Callable[[Path], Iterable[Path]] = no_side_files
    """The files beside a session's own that may be those of its sub-agents: what they say decides."""
    side_chains: Callable[[bytes], Mapping[str, bytes]] = no_side_chains
    """The agents inside the file: the lines of each, verbatim."""
    record_names: Callable[[bytes], Iterable[str]] = no_record_names
    """The names of the records in a delta, which a copy under another session id shares."""


# -- writing for resume ----------------------------------------------------------------------------------------------


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a new session goes, and how it is continued. Nothing in it is taken from a transcript."""

    session: str
    path: Path
    command: tuple[str, ...]
    """What continues the session."""
    cwd: Path
    """The folder the runtime is going to work in."""
    time: int
    """The instant the session is said to begin."""
    prepare: tuple[tuple[str, ...], ...] = ()
    """Commands that have to run first, where the runtime takes sessions in by itself."""
    provider: str = ""
    """Whose models the runtime is set to use there, where a session has to name them."""
    longest_result: int = 0
    """How many bytes of a tool's result the runtime keeps when it loads a session; 0 where it keeps all."""


def no_place_beside(place: Place, name: str) -> Path | None:
    """Side files are not restored."""
    return None


class ResumeWriter(msgspec.Struct, frozen=True, kw_only=True):
    """How a conversation is written so that the runtime itself goes on with it."""

    place: Callable[[Path, Path, int], Place]
    """The runtime's folder, the working folder and the present instant, to a place for a new session."""
    native: Callable[[bytes, Place], bytes]
    """The runtime's own records under the new session's id, in the folder it is going to work in."""
    translated: Callable[[Sequence[Event], Place], Written]
    """What happened elsewhere, as records of this runtime, and what they could not say."""
    write: Callable[[Place, bytes], None] | None = None
    """Puts the bytes in their place, where that is more than writing the file `path`."""
    name: Callable[[Place, str], tuple[Path, bytes]] | None = None
    """A line that gives the session a name, and the file it is put at the end of; None where sessions have no names."""
    sign: Callable[[bytes, Callable[[bytes], Origin]], bytes] | None = None
    """What was written, its origin in the first line, where the program passes over it; given the bytes behind it."""
    side_file: Callable[[Place, str], Path | None] = no_place_beside
    """Where a side file of the original goes, by the name it had; None where it is not wanted."""


# -- running ---------------------------------------------------------------------------------------------------------


class Template(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What kind of agent to start; `templates.py` reads it from a file."""

    name: str
    runtime: str
    model: str = ""
    system_prompt: str = ""
    append_system_prompt: str = ""
    arguments: tuple[str, ...] = ()


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How to start the runtime, and what to make of its output."""

    arguments: tuple[str, ...]
    prompt: str = ""
    """The prompt given as an argument."""
    show: Literal["text", "json", "array", "stream"] = "text"
    """What the user is to see: the final `text`, its last result as `json`, all lines as an `array`, the `stream`."""
    typed_lines: bool = False
    """Whether stdin is a stream of JSON lines rather than text of the prompt."""
    echoes_prompts: bool = False
    """Whether the output repeats prompts that are typed into the running session."""
    continues: str = ""
    """The session that the user's words go on with, where they name one."""
    wants_more: bool = False
    """Whether the user asked for the lines that `Launcher.more` makes it print."""


class StreamReader(Protocol):
    """Turns a runtime's output lines into events."""

    def feed(self, line: bytes) -> Sequence[Event]:
        """The events on the next line."""
        ...


class LineOwner(msgspec.Struct, frozen=True, kw_only=True):
    """Whose line of output it is."""

    session: str = ""
    """The session that begins with this line, where one does."""
    agent: str = ""
    """The sub-agent that said it; empty for the main agent."""
    call: str = ""
    """The call that started that sub-agent."""


class ShownLine(msgspec.Struct, frozen=True, kw_only=True):
    """What a line of output means to the user who waits for the answer."""

    answer: bytes | None = None
    """Shown at the end."""
    replaces: bool = False
    """Whether it takes the place of the answer so far, rather than standing behind it."""
    note: str = ""
    """Said at once, beside the answer."""


def prompt_then_stdin(prompt: str, piped: str) -> str:
    """A prompt given as an argument, and what was piped in behind it."""
    return f"{prompt}\n{piped}" if prompt and piped else prompt or piped


class Launcher(msgspec.Struct, frozen=True, kw_only=True):
    """How the runtime is started under observation. Every line of its output is given to the functions as the JSON
    object on it, or as an empty one where there is none."""

    program: str
    """The name of its executable, looked up on PATH."""
    plan: Callable[[Sequence[str], str], Plan]
    """The user's words and the session to continue (or nothing), to a plan. `BadRequest` for what cannot be wrapped."""
    reader: Callable[[int], StreamReader]
    """A reader of its output; the present instant, for runtimes that number their lines anew in every run."""
    owner: Callable[[dict[str, Any]], LineOwner]
    shown: Callable[[bytes, dict[str, Any], str], ShownLine]
    """What the line means to the user, for the `show` of the plan."""
    template: Callable[[Template, Sequence[str]], list[str]]
    """The user's words with what a template says, where the runtime's own options go; the user's come later and win."""
    quiet: Mapping[str, str] = {}
    """Environment that is set unless the user has set it: no traffic but the conversation's own."""
    more: Mapping[str, str] = {}
    """Environment that makes it print more than it would by itself, for the record; set unless the user has set it."""
    more_lines: Callable[[], Callable[[dict[str, Any]], bool]] = lambda: lambda line: False
    """For one run, a function that takes every line of it and says whether it is there only because of `more`: the
    user is not shown it."""
    full_prompt: Callable[[str, str], str] = prompt_then_stdin
    """The prompt as the runtime puts it together from its argument and what was piped in."""
    typed: Callable[[dict[str, Any]], str] = lambda line: ""
    """The prompt on a line of stdin, where stdin is a stream of JSON lines."""
    told: Callable[[ToolCall], str] = lambda call: ""
    """What a call tells the sub-agent that it starts; empty where it starts none."""
    command: Callable[[ToolCall], str] = lambda call: ""
    """The command that a call runs in a shell; empty where it runs none."""
    asking_session: Callable[[Environment], str] = lambda environ: ""
    """The session of the agent that runs a tool, as the tool's environment tells; empty where it does not."""
    session_files: Callable[[Path, str], Iterable[Path]] = lambda home, session: ()
    """The files of a session below the runtime's folder, and of those of its sub-agents that have no session of their
    own. They are imported when a run is over."""


# -- the whole -------------------------------------------------------------------------------------------------------


def no_environment(home: Path) -> Mapping[str, str]:
    """A runtime whose folder cannot be moved."""
    return {}


class Runtime(msgspec.Struct, frozen=True, kw_only=True):
    """A program whose sessions Harken keeps."""

    name: str
    """As it is typed, and as it stands in commits: `claude-code`."""
    label: str
    """As people call it: Claude Code."""
    format: str
    """The format of its sessions."""
    home: Callable[[Environment], Path]
    """Its own folder, as a function of the environment alone."""
    roots: Callable[[Path], tuple[Path, ...]]
    """The folders in which sessions lie, that folder or some below it, whether they are there or not; none where its
    files lie anywhere, and are imported by name."""
    claim: Callable[[bytes, Path], Claim]
    """How sure it is that a file is one of its own, from its first 64 KiB and its path."""
    read: SessionReader
    keys: tuple[str, ...] = ()
    """Keys of JSON objects: a file whose beginning has none of them is certainly not its own, and it is not asked.
    Empty: it is asked about every file."""
    source: Literal["file", "document", "database"] = "file"
    """Whether a session is a file that grows, a document that is rewritten, or rows of a database."""
    environment: Callable[[Path], Mapping[str, str]] = no_environment
    """What has to be set so that the program uses that folder as its own; nothing where no setting leads there."""
    resume: ResumeWriter | None = None
    launch: Launcher | None = None

    @property
    def can(self) -> frozenset[str]:
        """What it can do, as data: `import`, `resume`, `run`."""
        parts = (("import", self.read), ("resume", self.resume), ("run", self.launch))
        return frozenset(name for name, part in parts if part is not None)


# -- which there are: ours are loaded when asked for; a plug-in that cannot be used is told in `problems()`, and never
# keeps the others from being used

GROUP = "harken.runtimes"
OURS = {"claude-code": "claude_code", "codex": "codex", "harken": "harken"}
OURS |= {"std-001": "std.std_001", "std-008": "std.std_008", "otel": "otel"}


class PluginProblem(msgspec.Struct, frozen=True, kw_only=True):
    """A plug-in that cannot be used, and why."""

    name: str
    package: str
    """The distribution it comes from."""
    reason: str

    def __str__(self) -> str:
        return f"the runtime {self.name!r} of the package {self.package} cannot be used: {self.reason}"


def names() -> list[str]:
    """Every runtime there is, ours first."""
    return [*OURS, *sorted(_plugins().runtimes)]


def get(name: str) -> Runtime:
    """The runtime of that name; `BadRequest` says what there is."""
    if module := OURS.get(name):
        found: Runtime = importlib.import_module(f".{module}", __package__).RUNTIME
        return found
    if plugin := _plugins().runtimes.get(name):
        return plugin
    for problem in problems():
        if problem.name == name:
            raise BadRequest(str(problem), hint="there are: " + ", ".join(names()))
    raise BadRequest(f"there is no runtime {name!r}", hint="there are: " + ", ".join(names()))


def chosen(given: Sequence[str]) -> list[Runtime]:
    """The runtimes of these names; one by itself is one name, and none at all means every runtime."""
    return [get(name) for name in ([given] if isinstance(given, str) else given) or names()]


def is_registered(runtime: Runtime) -> bool:
    """Whether other processes find this very runtime by its name."""
    return runtime.name in names() and get(runtime.name) is runtime


def problems() -> tuple[PluginProblem, ...]:
    """The plug-ins that cannot be used, and those that failed when they were."""
    return (*_plugins().problems, *failures())


def failures() -> tuple[PluginProblem, ...]:
    """The plug-ins that failed when they were used, here or in a process that read files for this one."""
    return tuple(_FAILED.values())


_FAILED: dict[str, PluginProblem] = {}
"""The first failure of each runtime in this process."""


def note_failure(runtime: Runtime, reason: str) -> PluginProblem:
    """A runtime did what none may: that is told once, by its name, and the others go on."""
    from .plugins import package_with  # few have one, and looking for them takes longer than most commands

    return note_problem(PluginProblem(name=runtime.name, package=package_with(runtime.name), reason=reason))


def note_problem(problem: PluginProblem) -> PluginProblem:
    """A plug-in failed, as somebody else found; of several failures of one the first is told."""
    return _FAILED.setdefault(problem.name, problem)


def claim_of(runtime: Runtime, head: bytes, path: Path) -> Claim:
    """What a runtime says of a file; one that fails claims nothing."""
    try:
        claim = runtime.claim(head, path)
        if isinstance(claim, Claim) and type(claim.score) is int:
            return claim
        reason = f"claim() gave {claim!r}, which is no Claim"
    except (Exception, SystemExit) as problem:  # noqa: BLE001 (a plug-in may fail in any way, and the others must not)
        reason = f"claim() failed: {type(problem).__name__}: {problem}"
    note_failure(runtime, reason)
    return Claim()


@cache
def _plugins() -> Plugins:
    """All plug-ins, loaded once: what cannot be loaded now cannot be loaded a moment later either."""
    from .plugins import installed, load_plugins

    return load_plugins(installed())
