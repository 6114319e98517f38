"""One transcript file: its records, which of them the session has, and what is known of the sub-agent it is of."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from harken import ids
from harken.clock import monotonic
from harken.events import Output, Prompt, System, ToolCall
from harken.events.edits import SUMMARIES
from harken.formats.kit.jsonl import Record, parse
from harken.formats.session_log import events_of
from harken.formats.session_log.copies import RECORD
from harken.formats.session_log.lines import LogLine
from harken.formats.session_log.writing import ENTRIES

from .records import FileRecords, WrittenRecord, text
from .tail import TailedFile

HELD = 1.0
"""Seconds for which a prompt waits for what is attached to it and for the instructions, which are written behind it."""
_AGENT_FILE = re.compile(r"agent-(.+)\.jsonl")
_SETTLING = frozenset({"user", "assistant", "system"})
"""Records that say that what goes to the model together with a prompt is all there; any other may stand between."""
_SPOKEN = frozenset({"user", "assistant"})
_FOLDERS = 5
"""How deep folders of sub-agents' files are looked through."""


class ClaudeFile:
    """A file and how far the session has it."""

    def __init__(self, path: Path, agent: str = "") -> None:
        self.path = path
        self.agent = agent
        """The sub-agent's id; empty for a main file."""
        self.agent_id = ""
        """The agent of the session that it is; empty until that is known."""
        self.looks = 0
        """How often somebody looked whether it can be begun with."""
        self.calls: dict[str, str] = {}
        """By the id of each call: the message in which it stands."""
        self.instructions: set[str] = set()
        self.preserved: set[str] = set()
        """The messages that the compaction at hand keeps word for word."""
        self.names: dict[str, str] = {}
        """By the uuid of each record: its line in the log."""
        self._parents: dict[str, str] = {}
        self._last = ""
        """The record that was said last, in whichever order the file has them."""
        self.known: Counter[str] = Counter()
        self._records = FileRecords()
        self._tail = TailedFile(path)
        self._met: Counter[str] = Counter()
        self._beginnings = 0
        self._held: list[WrittenRecord] = []
        self.begun = False
        """Whether any record of it was read."""
        self._since = 0.0

    def new(self, *, last: bool = False, torn: bool = True) -> list[WrittenRecord]:
        """The records that were added; a file that was written anew gives all of them again. The last time also those
        that waited for others, and a line without an end (`torn`)."""
        found = list(self._read(self._tail.end(torn=torn) if last else self._tail.lines()))
        if found and not self._held:
            self._since = monotonic()
        self._held += found
        end = next((at for at in range(len(self._held), 0, -1) if _is_settled(self._held[at - 1])), 0)
        if last or (self._held and monotonic() - self._since >= HELD):
            end = len(self._held)
        found, self._held = self._held[:end], self._held[end:]
        answer = ""
        for record in reversed(found):
            record.answer = answer
            answer = record.uuid if text(record.record, "type") == "assistant" else answer
        if found and not self.begun:
            self.begun = True
            found.sort(key=lambda record: not is_snapshot(record))  # a model reads its instructions first
        return lifted(found)

    def _read(self, lines: Iterable[bytes]) -> Iterator[WrittenRecord]:
        for line in lines:
            if self._beginnings != self._tail.beginnings:
                self._beginnings = self._tail.beginnings
                self._met.clear()
            for record in self._records.of_line(line):
                if record.uuid:
                    self._parents[record.uuid] = text(record.record, "parentUuid")
                else:
                    record.digest = ids.artifact_id(record.raw)
                    self._met[record.digest] += 1
                    record.nth = self._met[record.digest]
                yield record

    def meet(self, record: WrittenRecord) -> list[str]:
        """A record comes, whether the session has it or not. For a prompt that does not follow what was said last, the
        records that it follows, the nearest first: somebody went back to there, unless the model was never asked."""
        last, kind = self._last, text(record.record, "type")
        if record.uuid and kind in _SPOKEN:
            self._last = record.uuid
        if not last or kind != "user" or not _is_prompt(record):
            return []
        found = self._above(record.uuid, last)
        if last in found or (record.answer and record.uuid not in self._above(record.answer, record.uuid)):
            return []
        return found

    def _above(self, uuid: str, last: str) -> list[str]:
        """The records that one follows, the nearest first, until the last that is looked for or there are no more."""
        found = dict.fromkeys([uuid])
        while uuid != last and (uuid := self._parents.get(uuid, "")) and uuid not in found:
            found[uuid] = None
        return list(found)[1:]

    def has(self, record: WrittenRecord) -> bool:
        """Whether the session has it, as far as its name in the log does not tell."""
        return bool(self.known[record.uuid]) if record.uuid else record.nth <= self.known[record.digest]

    def learn(self, lines: Iterable[LogLine]) -> None:
        """Take in what the session has of it from an earlier time."""
        for line in lines:
            rests = line.get(ENTRIES)
            said = [rest.get("metadata") for rest in rests if isinstance(rest, dict)] if isinstance(rests, list) else []
            names = [one.get(RECORD) for one in said if isinstance(one, dict)]
            name = next((name for name in names if isinstance(name, str)), "")
            for event in events_of(line):
                if isinstance(event, Output) and not event.index:
                    name = name or ids.artifact_id(event.raw)
                elif isinstance(event, ToolCall):
                    self.calls[event.id] = event.message_id
                elif isinstance(event, System) and event.subtype == "instructions":
                    self.instructions.add(event.message)
            self.known[name] += 1
            self.names[name] = str(line.get("message_id"))


def _is_settled(record: WrittenRecord) -> bool:
    """Whether what goes to the model together with the records before this one is all there: the model has answered, or
    a tool has."""
    kind = text(record.record, "type")
    return kind in _SETTLING and not (kind == "user" and _is_prompt(record))


def _is_prompt(record: WrittenRecord) -> bool:
    return all(isinstance(event, Prompt) and event.origin not in SUMMARIES for event in record.events)


def lifted(records: list[WrittenRecord]) -> list[WrittenRecord]:
    """The records with what was attached to a prompt before it, as the model reads them; it is written behind."""
    found: list[WrittenRecord] = []
    prompts: list[WrittenRecord] = []
    for record in records:
        kind = text(record.record, "type")
        if kind == "user" and _is_prompt(record):
            prompts.append(record)
            continue
        if kind in _SETTLING:
            found += prompts
            prompts = []
        found.append(record)
    return found + prompts


def is_snapshot(record: WrittenRecord) -> bool:
    """Whether a record says which instructions the model was given."""
    first = record.events[0]
    return isinstance(first, System) and first.subtype == "instructions"


def agent_files(folder: Path, depth: int = _FOLDERS) -> Iterator[tuple[str, Path]]:
    """The sub-agents whose files lie in a folder, each with its file."""
    try:
        with os.scandir(folder) as entries:
            found = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
    except OSError:
        return
    for name, is_folder in found:
        if is_folder and depth:
            yield from agent_files(folder / name, depth - 1)
        elif match := _AGENT_FILE.fullmatch(name):
            yield match[1], folder / name


def about_agent(path: Path) -> Record:
    """What Claude Code says of a sub-agent beside its file: its type, its depth, the call that started it."""
    try:
        return parse(path.with_suffix(".meta.json").read_bytes()) or {}
    except OSError:
        return {}
