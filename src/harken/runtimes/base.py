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
from harken.formats import Loss, Written
from harken.formats.facts import FileFacts, Origin
from harken.formats.kit.claims import Claim

from .databases import SessionVersion, no_sessions, no_versions
from .values import LineOwner as LineOwner
from .values import Place as Place
from .values import Plan as Plan
from .values import ShownLine as ShownLine
from .values import Template as Template

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
    versions: Callable[[sqlite3.Connection], Iterable[SessionVersion]] = no_versions
    """The same sessions, where a database tells which have changed: the rows of the others are then not read."""
    pieces: Callable[[Path], Iterable[Path]] = no_side_files
    """Of a document: the other files that hold more of the session, where each of its messages is a file."""
    gather: Callable[[Path, bytes, Sequence[tuple[Path, bytes]]], bytes] | None = None
    """Makes of a document and its pieces the bytes that `scan` takes; None where it is a file of its own."""
    piece_folders: frozenset[str] = frozenset()
    """What folders are called in which pieces lie, or one of those above them."""
    holds_pieces: Callable[[Path], bool] = lambda folder: False
    """Whether what lies in such a folder are pieces of documents elsewhere, which a walk need not look at."""
    side_files: Callable[[Path], Iterable[Path]] = no_side_files
    """The files beside a session's own that belong to it and are no transcripts."""
    agent_files: Callable[[Path], Iterable[Path]] = no_side_files
    """The files beside a session's own that may be those of its sub-agents, or of what it goes on from: what they
    say decides."""
    side_chains: Callable[[bytes], Mapping[str, bytes]] = no_side_chains
    """The agents inside the file: the lines of each, verbatim."""
    record_names: Callable[[bytes], Iterable[str]] = no_record_names
    """The names of the records in a delta, which a copy under another session id shares."""


# -- writing for resume ----------------------------------------------------------------------------------------------


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
    drops: Callable[[bytes], tuple[Loss, ...]] = lambda data: ()
    """What the program by itself leaves out of its own records, given as `native` gets them, when it goes on."""
    sign: Callable[[bytes, Callable[[bytes], Origin]], bytes] | None = None
    """What was written, its origin in the first line, where the program passes over it; given the bytes behind it."""
    side_file: Callable[[Place, str], Path | None] = no_place_beside
    """Where a side file of the original goes, by the name it had; None where it is not wanted."""


# -- running ---------------------------------------------------------------------------------------------------------


class StreamReader(Protocol):
    """Turns a runtime's output lines into events."""

    def feed(self, line: bytes) -> Sequence[Event]:
        """The events on the next line."""
        ...


def prompt_then_stdin(prompt: str, piped: str) -> str:
    """A prompt given as an argument, and what was piped in behind it."""
    return f"{prompt}\n{piped}" if prompt and piped else prompt or piped


Answering = Callable[[str], Sequence[str]]
"""A session to go on with, or nothing, to the words with which a runtime answers what it reads from stdin."""


class Launcher(msgspec.Struct, frozen=True, kw_only=True):
    """How the runtime is started under observation. The functions get each line of its output as the JSON object on
    it, or as an empty one."""

    program: str
    """The name of its executable, looked up on PATH; empty where the user's first word is."""
    plan: Callable[[Sequence[str], str], Plan]
    """The user's words and the session to continue (or nothing), to a plan. `BadRequest` for what cannot be wrapped."""
    reader: Callable[[int], StreamReader]
    """A reader of its output; the present instant, for runtimes that number their lines anew in every run."""
    owner: Callable[[dict[str, Any]], LineOwner]
    shown: Callable[[bytes, dict[str, Any], str], ShownLine]
    """What the line means to the user, for the `show` of the plan."""
    template: Callable[[Template, Sequence[str]], list[str]]
    """The user's words with what a template says, where the runtime's own options go; the user's come later and win."""
    named_by_plan: bool = (
        False  # whether the session is `Plan.session` (or a new one): its output names it late or never
    )
    quiet: Mapping[str, str] = {}
    """Environment that is set unless the user has set it: no traffic but the conversation's own."""
    more: Mapping[str, str] = {}
    """Environment that makes it print more than it would, for the record; set unless the user has set it."""
    more_lines: Callable[[], Callable[[dict[str, Any]], bool]] = lambda: lambda line: False
    """For one run, a function that says of each line whether it is there only because of `more`, and not shown."""
    answers: Answering | None = None
    """How it speaks for somebody else's agent; None where it cannot."""
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
    """The files of a session below the runtime's folder, sub-agents' without a session of their own among them. They
    are imported when a run is over."""


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
    """Keys of JSON objects: of a file whose beginning has none of them it is not asked. Empty: it is always asked."""
    source: Literal["file", "document", "database"] = "file"
    """Whether a session is a file that grows, a document that is rewritten, or rows of a database."""
    older_files_of: str = ""
    """The runtime whose files these were before it changed their shape: their sessions are that one's, and one that is
    kept in both shapes is one session."""
    environment: Callable[[Path], Mapping[str, str]] = no_environment
    """What has to be set so that the program uses that folder as its own; nothing where no setting leads there."""
    resume: ResumeWriter | None = None
    launch: Launcher | None = None

    @property
    def keeper(self) -> str:
        """The runtime that its sessions are called after."""
        return self.older_files_of or self.name

    @property
    def can(self) -> frozenset[str]:
        """What it can do, as data: `import`, `resume`, `run`."""
        parts = (("import", self.read.suffixes), ("resume", self.resume), ("run", self.launch))
        return frozenset(name for name, part in parts if part)


# -- which there are: ours are loaded when asked for; a plug-in that cannot be used is told in `problems()`, and never
# keeps the others from being used

GROUP = "harken.runtimes"
OURS = {
    "claude-code": "claude_code", "codex": "codex", "gemini-cli": "gemini_cli", "gemini-cli-json": "gemini_cli.older",
    "opencode": "opencode", "opencode-storage": "opencode.storage", "kilo": "opencode.kilo",
    "opencode-export": "opencode.exports", "pi": "pi",
    "openclaw": "pi.openclaw", "qwen-code": "qwen_code",
    "qwen-code-json": "qwen_code.older", "copilot-cli": "copilot_cli", "harken": "harken",
    "std-001": "std.std_001", "std-008": "std.std_008", "otel": "otel", "atif": "atif", "generic": "generic",
}  # fmt: skip
"""Name to module, the most used first; a module's `RUNTIME` is the runtime."""


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
    """The runtimes of these names, with those of their older files; one by itself is one name, and none at all means
    every runtime that has sessions to import."""
    asked = [given] if isinstance(given, str) else list(given)
    if not asked:
        return [runtime for runtime in map(get, names()) if "import" in runtime.can]
    older = (get(name) for name in names() if name not in asked)
    return [*map(get, asked), *(one for one in older if one.older_files_of in asked)]


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
