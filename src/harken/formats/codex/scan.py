"""One pass over a rollout for the importer: cuts, counts, usage, links. No event is made, every line is parsed once."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from harken import ids
from harken.events import Tokens
from harken.events.base import folder, named
from harken.events.places import ATTACHED, TOOL_RESULT
from harken.events.tally import RequestUsage, Tally
from harken.formats.base import Delta
from harken.formats.facts import ORIGIN, FileFacts, read_origin
from harken.formats.kit.jsonl import Placed, Record
from harken.formats.kit.openai import SERVED, name_of, text_in, text_of
from harken.formats.kit.scanning import LineScanner, remembered

from .classify import speaks
from .cut import BOUNDARY, CALL, HEARD, OUTPUT, RULE, SAID, RolloutCutter, act_of
from .read import ERRORS, is_spawned, typed_text
from .records import EVENT, ITEM, SESSION_META, TURN_CONTEXT, USAGE, iter_lines, kind_of, why_unknown
from .threads import SPAWN, parent_of, told_by_event, told_by_output
from .usage import ZERO, Key, Meter, Totals, base_offset

RUNTIME = "codex"
NAMES = 16
"""How many record names are handed out for finding copies."""
_TITLE = 200
_REQUEST = "## My request for Codex:"
"""An editor puts what it knows before the user's words, and this line between."""


class RolloutCounts(msgspec.Struct):
    """What is known of a file up to a cut; the next scan goes on from it. JSON text through `msgspec.json`."""

    rule: str = RULE
    offset: int = 0
    session: str = ""
    parent: str = ""
    agent: str = ""
    forked_from: str = ""
    fork_base: int | None = None
    begun: str = ""
    """When the file says that it began."""
    spawned: bool = False
    title: str = ""
    named: bool = False
    """Whether somebody chose the title."""
    project: str = ""
    """The folder that was worked in, as the first record says that names one."""
    model: str = ""
    records: int = 0
    opaque: int = 0
    items: dict[str, int] = {}
    """Messages by role, as items; the screen's copies of them under `shown_user` and `shown_assistant`."""
    tally: Tally = msgspec.field(default_factory=Tally)
    doubtful: list[tuple[str, str]] = []
    """User messages that look injected: the name of their text and what they look like. One that was typed is not."""
    typed: list[str] = []
    """The names of texts that a person typed, as far as the screen's events tell."""
    names: list[str] = []
    total: Totals = ZERO
    restarts: int = 0
    threads: dict[str, str] = {}
    told: list[Totals] = []
    spawning: dict[str, bool] = {}
    """Calls that start a thread and have no output yet: a set that is written down in the same order every time."""

    @property
    def messages(self) -> int:
        """Prompts and responses (`Tally.messages`), whoever may have typed what looks injected. What the screen shows
        counts where there is nothing else."""
        shown = sum(self.items.get(f"shown_{role}", 0) for role in ("user", "assistant") if role not in self.items)
        return self.tally.messages + len(self.doubtful) + shown

    def copy(self) -> RolloutCounts:
        """The same counts, which may then go their own way."""
        return msgspec.structs.replace(
            self,
            items=dict(self.items),
            tally=self.tally.without_requests(),
            doubtful=list(self.doubtful),
            typed=list(self.typed),
            names=list(self.names),
            threads=dict(self.threads),
            told=list(self.told),
            spawning=dict(self.spawning),
        )


def scan(data: bytes, state: bytes = b"") -> FileFacts:
    """The facts of a file, or of what was added since `state`: `data` begins at that state's offset."""
    return _RolloutScanner(remembered(state, RolloutCounts)).run(data)


def split(data: bytes) -> list[Delta]:
    """Every delta of the file, the tail last; compactions stand behind the delta whose last line they repeat."""
    return list(scan(data).deltas)


class _RolloutScanner(LineScanner[RolloutCounts, RolloutCutter]):
    def __init__(self, counts: RolloutCounts) -> None:
        super().__init__(counts, RolloutCutter(counts.offset))
        self.meter = Meter(
            counts.total,
            counts.threads,
            counts.session,
            counts.fork_base,
            counts.restarts,
            counts.told,
            counts.begun,
        )

    def _line(self, line: bytes, record: Record, start: int, end: int) -> None:
        cutter = self.cutter
        kind, payload, act, unknown = _judge(record)
        whole = line[-1] == 10
        if whole and (delta := cutter.before(start, act)):
            self._close((delta,))
        cutter.add(start, end, act, record, payload)
        self._note(line, record, kind, payload, act, unknown)
        if act == BOUNDARY and whole:
            self._close(cutter.after(start, end))

    def _note(self, line: bytes, record: Record, kind: str, payload: Record, act: str, unknown: bool) -> None:
        now = self.now
        now.records += 1
        now.opaque += unknown
        self._note_time(record.get("timestamp", record.get("created_at")))
        if kind == ITEM:
            self._note_item(payload, act)
            if len(now.names) < NAMES and act in (SAID, CALL, OUTPUT):
                now.names.append(payload_name(line))
        elif kind == EVENT:
            self._note_event(payload)
        elif kind == SESSION_META:
            self._note_meta(payload, len(line))
        elif kind == TURN_CONTEXT:
            now.model = text_of(payload.get("model")) or now.model
            now.project = now.project or folder(payload)
        elif kind == USAGE:
            self._note_tokens(self.meter.record(payload))
        elif act == HEARD:
            now.tally.prompt("agent")
        elif act == BOUNDARY:
            now.tally.compactions += 1
            self._entitle_after(payload.get("replacement_history"))

    def _settle(self) -> None:
        """Bring the counts up to the present line."""
        self._settle_times()
        now, meter = self.now, self.meter
        now.total, now.threads, now.restarts, now.told = meter.last, meter.parents, meter.restarts, meter.told

    def _broken(self, start: int, end: int, line: bytes, objects: list[Placed], *, unread: bool) -> None:
        self.cutter.unread(end)
        for record, first, last in objects:
            self._note(line[first:last], record, *_judge(record))
        self.now.records += unread
        self.now.opaque += unread

    def _messages(self, counts: RolloutCounts) -> int:
        return counts.messages

    def _note_item(self, item: Record, act: str) -> None:
        now, tally = self.now, self.now.tally
        if item.get("type") == "message":
            role = text_of(item.get("role"))
            now.items[role] = now.items.get(role, 0) + 1
            if role == "assistant":
                tally.response(now.model)
            elif act == HEARD and role not in ("developer", "system"):
                source, origin = speaks(item)
                if not origin.startswith(ATTACHED):  # that came along with a prompt, and is none (`place_of`)
                    self._note_prompt(text_in(item.get("content")), source, origin)
        elif act == CALL or text_of(item.get("type")) in SERVED:
            tally.call(name := name_of(item))
            if name == SPAWN:
                now.spawning[text_of(item.get("call_id"))] = True
            if item.get("type") == "image_generation_call":
                tally.prompt(TOOL_RESULT)
        elif act == OUTPUT:
            tally.prompt(TOOL_RESULT)
            call = text_of(item.get("call_id"))
            if now.spawning.pop(call, False) and (thread := told_by_output(item)):
                self.calls.setdefault(thread, call)
        elif act == HEARD:
            tally.prompt("agent")

    def _note_prompt(self, text: str, source: str, origin: str) -> None:
        now = self.now
        if source == "injected":
            now.doubtful.append((_text_name(text), origin))
        else:
            now.tally.prompt("agent" if now.spawned else "")
            if not now.spawned:
                self._entitle(text)

    def _note_event(self, payload: Record) -> None:
        now, name = self.now, payload.get("type")
        if name == "token_count":
            self._note_tokens(self.meter.step(payload))
        elif name == "agent_message":
            now.items["shown_assistant"] = now.items.get("shown_assistant", 0) + 1
        elif name in ERRORS:
            now.tally.errors += 1
        elif (text := typed_text(payload)) is not None:
            if name == "user_message":
                now.items["shown_user"] = now.items.get("shown_user", 0) + 1
            now.typed.append(_text_name(text))
            if not now.spawned or not now.title:
                self._entitle(text)
        elif name == "thread_name_updated" and (title := text_of(payload.get("thread_name"))):
            now.title, now.named = title[:_TITLE], True
        else:
            self.calls |= told_by_event(payload)

    def _note_tokens(self, step: tuple[Key, Tokens] | None) -> None:
        if step is not None:
            (family, total), used = step
            usage = RequestUsage(used.input, used.output, used.cache_read, used.cache_write, self.now.model)
            self.now.tally.request(family, total, usage)

    def _entitle(self, text: str) -> None:
        if not self.now.title and not self.now.named:
            self.now.title = " ".join(text[:100_000].rpartition(_REQUEST)[2].split())[:_TITLE]

    def _entitle_after(self, replacement: object) -> None:
        """A session that begins with its compaction is called after the first request that outlived it."""
        if not self.now.title and not self.now.spawned and isinstance(replacement, list):
            asked = [item for item in replacement if isinstance(item, dict) and item.get("role") == "user"]
            for item in asked:
                if speaks(item)[0] != "injected":
                    self._entitle(text_in(item.get("content")))

    def _note_meta(self, meta: Record, size: int) -> None:
        self.meter.meet(meta)
        now = self.now
        now.project = now.project or folder(meta)
        if now.session:
            return
        if now.records == 1 and ORIGIN in meta:
            self.origin = read_origin(meta[ORIGIN], size)
        now.session = named(text_of(meta.get("id")))
        now.begun, now.spawned = text_of(meta.get("timestamp")), is_spawned(meta)
        now.parent = parent_of(meta)
        now.agent = text_of(meta.get("agent_path")) or text_of(meta.get("agent_nickname"))
        base = meta.get("history_base")
        if isinstance(base, dict):
            now.fork_base = base_offset(meta)
            now.forked_from = text_of(base.get("thread_id"))
        now.forked_from = text_of(meta.get("forked_from_id")) or now.forked_from

    def _whole_tally(self) -> Tally:
        """The tally with what only the whole file can tell: who typed what, and whether the screen's copy is all."""
        now, tally = self.now, self.now.tally
        counted = tally.without_requests()
        counted.requests = tally.requests
        own, typed = "agent" if now.spawned else "", set(now.typed)
        for name, origin in now.doubtful:
            counted.prompt(own if name in typed else origin)
        if "user" not in now.items:
            counted.prompt(own, now.items.get("shown_user", 0))
        if "assistant" not in now.items:
            counted.responses += now.items.get("shown_assistant", 0)
        return counted

    def _facts(self) -> FileFacts:
        self._settle()
        now = self.now
        return FileFacts(
            runtime=RUNTIME,
            session=now.session,
            agents=(now.agent,) if now.agent else (),
            parent=now.parent,
            forked_from=now.forked_from if now.forked_from != now.session else "",
            origin=self._signed(),
            fork_base=now.fork_base,
            title=now.title,
            named=now.named,
            project=now.project,
            records=now.records,
            opaque=now.opaque,
            messages=now.messages,
            tally=self._whole_tally(),
            calls=self.calls,
            sidechain=now.spawned,
            fingerprint=tuple(now.names),
            deltas=tuple(self.deltas),
            offset=self.closed.offset,
            state=msgspec.json.encode(self.closed),
        )


_VERDICTS: dict[tuple[object, object, object], tuple[str, bool]] = {}
"""What wrapped lines of a kind are, as found out once: the act and whether nobody knows it."""
_MANY, _LONG = 1000, 200
"""A hostile file may name as many kinds as it likes; it cannot make us remember them."""


def _judge(record: Record) -> tuple[str, Record, str, bool]:
    """The record's kind, payload and act, and whether nobody knows it."""
    kind, payload = kind_of(record)
    name, role = payload.get("type"), payload.get("role")
    key = (kind, name, role)
    if name == "item_completed" or not isinstance(name, str | None) or not isinstance(role, str | None):
        return kind, payload, act_of(kind, payload), bool(why_unknown(kind, payload))
    if (verdict := _VERDICTS.get(key)) is None:
        verdict = act_of(kind, payload), bool(why_unknown(kind, payload))
        if len(_VERDICTS) < _MANY and len(kind) + len(name or "") + len(role or "") < _LONG:
            _VERDICTS[key] = verdict
    return kind, payload, *verdict


def _text_name(text: str) -> str:
    """A short name by which a text is known again."""
    return ids.artifact_id(text.encode(errors="replace"))[:16]


def payload_name(line: bytes) -> str:
    """The name of a record: of what it says, not of when it was written down."""
    return ids.artifact_id(line[max(line.find(b'"payload"'), 0) :].rstrip())[:16]


def record_names(data: bytes) -> Iterator[str]:
    """The names of the model's records in some bytes, which a copy under another thread shares."""
    for line in iter_lines(data):
        if line.record is not None:
            kind, payload = kind_of(line.record)
            if kind == ITEM and act_of(kind, payload) in (SAID, CALL, OUTPUT):
                yield payload_name(data[line.start : line.end])
