"""What a format is: a name, and functions from bytes to events and back; and the table that finds them.

Everything here is a pure function of bytes. A format that cannot do a thing (a rendering cannot be read back) leaves
the function out, and `can` says so as data, so that tables and errors need no special cases.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec

from harken import __version__, ids
from harken.errors import BadRequest, NotFound
from harken.events import Error, Event, Metric, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.events.base import LARGEST_COUNT, figure
from harken.events.tally import Tally

from .kit.claims import Claim
from .kit.sparse import SparseBytes, join_sparse
from .values import Delta as Delta
from .values import Loss as Loss
from .values import Written as Written

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint  # loading it takes longer than most commands need


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """How much a stretch of conversation holds."""

    messages: int | None = None
    """None where nobody can tell, which is not zero."""
    tokens: int | None = None
    approximate: bool = False
    """Whether some of the tokens are estimated from characters."""
    last_counted: int | None = None
    """What the model last counted: everything it had before it, from whatever stretch, and its answer."""
    since: int = 0
    """Tokens behind that, estimated from characters."""

    @property
    def conversation(self) -> Counts:
        """The same for a stretch that is all the model has before it: what it counted itself stands."""
        if self.last_counted is None:
            return self
        tokens = sum_of_tokens(self.last_counted, self.since)
        return msgspec.structs.replace(self, tokens=tokens, approximate=self.since > 0)

    @classmethod
    def total(cls, parts: Sequence[Counts]) -> Counts:
        """All parts together. A message that nobody counted makes the number of messages unknown; tokens that nobody
        counted make the rest an estimate."""
        messages = [part.messages for part in parts if part.messages is not None]
        tokens = [part.tokens for part in parts if part.tokens is not None]
        last = next((at for at in range(len(parts), 0, -1) if parts[at - 1].last_counted is not None), 0)
        return cls(
            messages=sum(messages) if len(messages) == len(parts) else None,
            tokens=sum_of_tokens(*tokens) if tokens or not parts else None,
            approximate=any(part.approximate for part in parts) or len(tokens) < len(parts),
            last_counted=parts[last - 1].last_counted if last else None,
            since=parts[last - 1].since + sum(part.tokens or 0 for part in parts[last:]) if last else 0,
        )


def concatenate(deltas: Iterable[bytes]) -> bytes:
    """The join of line formats: bytes behind bytes."""
    if isinstance(deltas, list | tuple):
        if any(isinstance(delta, SparseBytes) for delta in deltas):
            return cast("bytes", join_sparse(deltas) if len(deltas) > 1 else deltas[0])
        return b"".join(deltas)
    held = BytesIO()  # what is read one after the other is let go of at once: there is one copy of it, not two
    held.writelines(deltas)
    return held.getvalue()


def whole(data: bytes) -> list[Delta]:
    """The split of a format that has no rule of its own: one delta."""
    return [Delta(start=0, end=len(data), closed=False)] if data else []


def identity(data: bytes) -> bytes:
    """The context of a linear format: all of it."""
    return data


_ABILITIES = "`harken doctor` says what each format can do"


class Format(msgspec.Struct, frozen=True, kw_only=True):
    """A name plus its functions."""

    name: str
    media_type: str = "application/octet-stream"
    description: str = ""
    """A sentence for whoever gets these bytes raw and has to make sense of them."""
    revision: str = ""
    """Say another one whenever it reads or writes otherwise: answers that were kept are then made again."""
    empty: bytes = b""  # the empty conversation in this format
    join: Callable[[Iterable[bytes]], bytes] = concatenate
    split: Callable[[bytes], Sequence[Delta]] = whole
    context: Callable[[bytes], bytes] = identity
    """The verbatim records, in source order, of the conversation as it stands."""
    claim: Callable[[bytes, str], Claim] | None = None
    """How sure it is that a file is of this format, from its first bytes (`claims.HEAD` of them) and its path."""
    reader: Callable[[bytes], Iterable[Event]] | None = None
    writer: Callable[[Sequence[Event]], Written] | None = None
    conversation_reader: Callable[[bytes], Iterable[Event]] | None = None
    """Reads a context (what `context` gave) in the order the model reads it. Needed only where that is not the order of
    the bytes: Claude Code keeps messages that a compaction preserved before the summary they follow. A translation
    into another format begins from this."""
    direct: Mapping[str, Callable[[bytes], Written]] = {}
    """By the name of a format: writes a context of this format straight into that one. Needed only where going through
    events would say less: what Claude Code sends to the API holds blocks and repairs that no event has a place for."""
    older: Mapping[str, Callable[[bytes], bytes | None]] = {}
    """By the name of an older format of the family (its own: older shapes kept under it): what is kept in it, brought
    to this one field by field; None where the bytes are in the present shape."""
    is_rendering: bool = False  # it tells a conversation for reading, and no program takes it back as one
    measurer: Callable[[bytes], Counts] | None = None
    """How much a delta holds, where that can be told without reading all of it."""
    delta_reader: Callable[[bytes], Iterable[Event]] | None = None
    """What a delta adds, where a delta alone is no file of this format: a message of a document, and the tail with what
    stands around the messages, which adds those that it holds. A whole file is a delta too."""
    brief_reader: Callable[[bytes], Sequence[Event] | None] | None = None
    """The prompts, answers and calls of a delta, all that a line about it needs, where that is quicker than reading it;
    None where the reader has to be asked."""
    places: Callable[[bytes], int] = len
    """How many places a delta takes up (bytes, unless it counts records): a record without a name is called `@` and its
    place, which counts on from delta to delta."""
    takes_sparse: bool = False
    """Whether what reads it also takes content in which overlong lines are left out (`kit/sparse.py`)."""
    names_stored: bool = False
    """Whether ids are read as they were stored, and so none of them is a place that the reader found."""
    tells_agents: bool = False
    """Whether its records name their agents and tell how each was made, as a session log does."""
    pairs_calls: bool = False
    """Whether a result must follow its call, so that what makes a call and what answers it are written together."""
    repeats_history: bool = False
    """Whether each request in it tells all that was said before, so that a conversation is written in one piece."""
    runtime: str = ""
    """The runtime that goes on from a file in this format; empty for a format that no program continues."""
    shared_by: tuple[str, ...] = ()
    """Other runtimes whose sessions are kept in this format too."""
    project_files: tuple[str, ...] = ()
    """How the prompts begin in which the runtime says what the project's own files say; it reads those by itself."""
    notices: frozenset[str] = frozenset()
    """Kinds of injected prompts by which it tells its model about itself: its tools, modes, surroundings."""
    adopter: Callable[[Sequence[Event]], Written] | None = None
    """Writes what happened in another runtime, where that takes more than `writer` does."""
    shared_names: Callable[[bytes], Callable[[str], str]] | None = None
    """From a record's name to what its copies in other sessions are called too; left out where names mean one alone."""
    named_reader: Callable[[bytes], tuple[list[Event], Callable[[str], str]]] | None = None
    """`reader` and `shared_names` in one, where to name records is to read them. Not together with `delta_reader`."""
    agent_of: Callable[[bytes], str] | None = None
    """From the first delta of a file to the sub-agent whose file it is, or nothing; left out where records name their
    agents by themselves."""
    dates_names: bool = False
    """Whether copies are known by when they were said: a record that comes back by way of another program, which keeps
    the time, has its old name again there."""
    names_as: str = ""
    """The format in which a program goes on with a file of this one, under the same names; empty where none does."""
    unnamed_names: Callable[[bytes], Callable[[str], str]] | None = None
    """From its name or place to what `shared_names` calls it unnamed; left out where no program names records later."""
    captured_names: Callable[[bytes], Callable[[str], str]] | None = None
    """From a record's name to that of the record of another program's session which was captured in it, as the index
    calls that one (its format, then its shared name); or nothing."""
    carried_names: Callable[[bytes], Callable[[str], str]] | None = None
    """From a record's name to the session that it was carried over from, where the file itself says so of single
    records; or nothing."""
    delta_names: Callable[[bytes], tuple[str, Callable[[str], str]]] | None = None
    """For a delta alone, where only what records say tells copies: what all descends from, and a record's content."""

    def shared_as(self, name: str) -> str:
        """A name that `shared_names` gave, as it is told from those of other formats; nothing for nothing."""
        return f"{self.names_as or self.name} {name}" if name else ""

    @property
    def can(self) -> frozenset[str]:
        """What it can do, as data: `read`, `write`."""
        return frozenset(name for name, there in (("read", self.reader), ("write", self.writer)) if there)

    def read(self, data: bytes) -> list[Event]:
        """The events in the bytes; what cannot be read is among them as `Output`, never missing."""
        if self.reader is None:
            raise BadRequest(f"{self.name} can be written but not read", hint=_ABILITIES)
        return list(self.reader(data))

    def read_delta(self, data: bytes) -> list[Event]:
        """What a commit with these bytes adds to its chain: read one by one, deltas say what they say joined."""
        return self.read(data) if self.delta_reader is None else list(self.delta_reader(data))

    def read_conversation(self, data: bytes) -> list[Event]:
        """The events of the conversation as it stands, in the order the model reads them."""
        return self.read(data) if self.conversation_reader is None else list(self.conversation_reader(data))

    def adopt(self, events: Sequence[Event]) -> Written:
        """The bytes for what happened in another runtime, so that this one goes on with it."""
        return self.write(events) if self.adopter is None else self.adopter(events)

    def write(self, events: Sequence[Event]) -> Written:
        """The bytes for the events, and what they could not say."""
        if self.writer is None:
            raise BadRequest(f"{self.name} can be read but not written", hint=_ABILITIES)
        return self.writer(events)

    def measure(self, data: bytes) -> Counts:
        """How much a delta holds, as far as anybody can tell."""
        if self.measurer is not None:
            return self.measurer(data)
        return count(self.read_delta(data)) if self.reader is not None else weigh(len(data))


# -- the table ---------------------------------------------------------------------------------------------------------

_OURS = {
    "events-v1": "events_v1", "session-log-v2": "session_log", "bureau-agent-v1": "bureau_agent",
    "claude-code-v1": "claude_code", "claude-stream-v1": "claude_stream", "codex-v1": "codex",
    "anthropic-messages-v1": "anthropic_messages", "openai-responses-v1": "openai_responses",
    "openai-chat-v1": "openai_chat", "transcript-v1": "transcript.format", "otel-genai-v1": "otel_genai",
    "std-001": "std.std_001", "std-008": "std.std_008", "narrative-v1": "narrative",
    "copilot-cli-v1": "copilot_cli", "pi-v1": "pi", "qwen-code-v1": "qwen_code", "gemini-cli-v1": "gemini_cli",
    "gemini-json-v1": "gemini_cli.document", "opencode-rows-v1": "opencode.rows", "opencode-v1": "opencode.export",
    "atif-v1": "atif",
}  # fmt: skip
"""Name to module; a module's `FORMAT` is the format."""


def names() -> list[str]:
    """Every format there is, ours first."""
    return [*_OURS, *(name for name in _installed() if name not in _OURS)]


@cache
def _installed() -> dict[str, EntryPoint]:
    """What others have installed; looking takes milliseconds, and a raw checkpoint asks each time."""
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group="harken.formats")}


def find(name: str) -> Format | None:
    """The format of that name, or None."""
    if module := _OURS.get(name):
        found: Format = importlib.import_module(f"harken.formats.{module}").FORMAT
        return found
    loaded = _loaded(point) if (point := _installed().get(name)) else None
    return loaded if isinstance(loaded, Format) else None


def problem(name: str) -> str:
    """Why a format that somebody installed cannot be used; empty where it can, or is not there."""
    loaded = _loaded(point) if name not in _OURS and (point := _installed().get(name)) else None
    return loaded if isinstance(loaded, str) else ""


def get(name: str) -> Format:
    """The format of that name; `NotFound` lists what there is."""
    if (found := find(name)) is None:
        if why := problem(name):
            raise NotFound(f"the format {name!r} cannot be used: {why}", hint="install it again, or remove it")
        raise NotFound(f"there is no format {name!r}", hint="there are: " + ", ".join(names()))
    return found


# -- formats of others: whatever they do, it costs only what they were asked for --------------------------------------


@cache
def _loaded(point: EntryPoint) -> Format | str:
    """The format behind an entry point, or why there is none; that is told once."""
    from .guarding import load_format  # only where somebody has installed a format

    return load_format(point)


# -- which code made an answer -----------------------------------------------------------------------------------------


def revision(name: str) -> str:
    """What changes with the code of a format, so that an answer which older code made is not taken for today's."""
    if name in _OURS:
        return _own_code()
    point = _installed().get(name)
    return _plugin_code(point) if point is not None else ""


@cache
def _own_code() -> str:
    home = Path(__file__).parents[1]
    return _stamps([home / "events", home / "formats", home / "context"], __version__)


@cache
def _plugin_code(point: EntryPoint) -> str:
    """The distribution's version, what the format says of itself, and its files."""
    found = _loaded(point)
    if not isinstance(found, Format):
        return ""
    dist = f"{point.dist.name} {point.dist.version}" if point.dist else ""
    package = importlib.import_module(point.module.partition(".")[0])
    places = getattr(package, "__path__", None) or [getattr(package, "__file__", None)]
    return _stamps([Path(place) for place in places if place], f"{dist} {found.revision}")


def _stamps(places: Iterable[Path], said: str) -> str:
    """A digest of what is said and of the sizes and times of code files, cheaper than reading them."""
    seen = [said]
    for place in places:
        # Every reader of an index waits for this, and path objects take three times as long.
        found = [f"{at}/{name}" for at, _, names in os.walk(place) for name in names if name.endswith(".py")]
        for file in sorted(found) or filter(os.path.exists, [place]):
            facts = os.stat(file)  # noqa: PTH116
            seen.append(f"{os.path.basename(file)} {facts.st_size} {facts.st_mtime_ns}")  # noqa: PTH119
    return ids.artifact_id("\n".join(seen).encode())[:16]


# -- how much a stretch of conversation holds --------------------------------------------------------------------------

CHARACTERS_PER_TOKEN = 4
SAID_BY_THE_MODEL = (Response, Thinking, ToolCall)
CONVERSATION = (Prompt, Response, Thinking, ToolCall, ToolResult, System)


def weigh(size: int) -> Counts:
    """What bytes that nobody can read amount to."""
    return Counts(tokens=size // CHARACTERS_PER_TOKEN, approximate=True)


def count(events: Iterable[Event]) -> Counts:
    """What the events amount to.

    Messages are prompts and responses (`Tally.messages`). Tokens are what the provider counted for what the model
    wrote, and a quarter of the characters for everything else."""
    events = list(events)
    written = heard = since = 0
    last_counted: int | None = None
    usage: dict[tuple[str, str], int] = {}
    for event in events:
        if isinstance(event, Metric):
            # One message may be reported several times while it grows; the largest report is the last.
            key = (event.api_id, event.request_id) if event.api_id or event.request_id else (str(len(usage)), "@")
            usage[key] = max(usage.get(key, 0), figure(event.output_tokens) or 0)
            tokens = event.tokens.possible
            if tokens.prompt and not event.ends_run and not event.scope:
                last_counted, since = tokens.prompt + (tokens.output or 0), 0
        if not isinstance(event, CONVERSATION):
            continue
        size = characters(event)
        since += size
        if isinstance(event, SAID_BY_THE_MODEL):
            written += size
        else:
            heard += size
    counted = sum(usage.values())
    guessed = heard if counted else heard + written
    return Counts(
        messages=Tally.of(events).messages,
        tokens=sum_of_tokens(counted, guessed // CHARACTERS_PER_TOKEN),
        approximate=guessed > 0,
        last_counted=last_counted,
        since=since // CHARACTERS_PER_TOKEN if last_counted is not None else 0,
    )


def sum_of_tokens(*parts: int) -> int | None:
    """Counts of tokens together; None for a sum that no count can be."""
    total = sum(parts)
    return total if 0 <= total < LARGEST_COUNT else None


def message_key(event: Event) -> str:
    """What the events of one message have in common; empty where the source has no ids."""
    return event.api_id or event.message_id


def characters(event: Event) -> int:
    """How much text the event puts before the model."""
    match event:
        case Prompt(content=text) | Response(content=text) | Thinking(content=text):
            return len(text)
        case ToolCall():
            return len(event.name) + len(event.input)
        case ToolResult():
            return len(event.output)
        case System() | Error():
            return len(event.message)
    return 0
