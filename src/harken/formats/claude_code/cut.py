"""Cut rule `cut-2`: where a Claude Code file falls into commits. Frozen: a better rule gets another name.

A decision looks at this line and at what the state remembers of earlier ones, never further; so a file that grows
keeps every cut it had. The rule, with its vectors, is in FORMAT.md; in short:

    before a line   a compaction's boundary; and, unless a tool call waits for its result, a prompt, the first record of
                    another assistant message, or any line when 256 KiB are behind us
    after a line    the summary of a compaction

So the turn before a compaction is a commit of its own, whose context is what the model had before it. A call that
waits at a boundary is given up: the program compacts instead of running it, and no result was ever seen to follow.

What is a *main-line* record depends on the file: side-chain records are left out of account as soon as one record
that is not on a side chain has come; until then they are the main line, as in a sub-agent's own file.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from harken.formats.base import Delta

from .records import CONVERSATION, ClaudeRecord

SOFT = 256 * 1024
"""A delta that is this long is cut at the next line where nothing forbids it."""
HARD = 16 * 1024 * 1024
"""A call that has waited this long is not waited for any more."""
NOTHING: Sequence[Delta] = ()
REFUSALS = 4
"""How many cuts an unanswered call may refuse before it is given up."""


class CutState(msgspec.Struct):
    """All that the rule carries across a cut; JSON text through `msgspec.json`."""

    offset: int = 0
    """Where the next line begins."""
    last_id: str | None = None
    """`message.id` of the last main-line assistant record."""
    main: bool = False
    """Whether a record that is not on a side chain has been seen."""


class Splitter:
    """Feeds lines through the rule and hands out deltas as they close.

    `state` is the rule's memory *at the last closed cut*: an importer stores it, and continues a grown file from
    `state.offset` with `Splitter(state)`, which gives the same deltas as a fresh run over the whole file.
    """

    def __init__(self, state: CutState | None = None) -> None:
        self._now = msgspec.structs.replace(state) if state else CutState()
        self.state = msgspec.structs.replace(self._now)
        self._begin()

    def _begin(self) -> None:
        """An empty delta is open."""
        self._start = self._now.offset
        self._waiting: set[str] = set()
        """The calls that have no result yet."""
        self._refused = 0
        """How many cuts they have refused."""
        self._boundary = -1
        """Where the compaction boundary in the open delta begins; -1 where there is none."""
        self._before_boundary = 0
        """How many records of the open delta stand before that boundary."""
        self._at_boundary = False
        """Whether the line before was that boundary."""
        self._time: int | None = None
        self._records = 0

    @property
    def offset(self) -> int:
        """How far it has read."""
        return self._now.offset

    @property
    def main(self) -> bool:
        """Whether a record that is not on a side chain has been seen."""
        return self._now.main

    def feed(
        self, line: ClaudeRecord | None, size: int, *, time: int | None = None, records: int = 1
    ) -> Sequence[Delta]:
        """Take in the next line, and hand out what closed because of it.

        `line` is its record, or None where the line is not exactly one JSON object or has no newline yet: such a
        line never cuts. `size` is its length with the newline, `time` the instant it names, `records` how many
        records are on it.
        """
        now, closed = self._now, NOTHING
        boundary = False
        if line is None:
            self._at_boundary = False
        else:
            boundary = line.type == "system" and line.subtype == "compact_boundary" and self._on_main_line(line)
            if now.offset > self._start and (boundary or self._cuts_before(line)):
                closed = [self._close("turn_boundary")]
        now.offset += size
        self._records += records
        if time is not None:
            self._time = time
        if line is None:
            return closed
        kind = line.type
        if kind == "assistant":
            self._remember_assistant(line)
        elif kind == "user":
            self._remember_user(line)
        if (line.isCompactSummary is True and self._on_main_line(line)) or (kind == "summary" and self._at_boundary):
            closed = [*closed, *self._compact(now.offset - size, records)]
        self._at_boundary = boundary
        if boundary:
            self._boundary = now.offset - size
            self._before_boundary = self._records - records
        return closed

    def tail(self) -> Delta | None:
        """What follows the last cut; the delta that a grown file would continue."""
        if self._now.offset == self._start:
            return None
        return self._delta("turn_boundary", closed=False)

    def _cuts_before(self, line: ClaudeRecord) -> bool:
        now = self._now
        length = now.offset - self._start
        opens = self._opens_a_turn(line)
        # A boundary and its summary stay together, and what the program writes between them too.
        if not opens and length < (SOFT if self._boundary < 0 else HARD):
            return False
        if not self._waiting or length >= HARD:
            return True
        self._refused += opens
        return self._refused > REFUSALS

    def _on_main_line(self, line: ClaudeRecord) -> bool:
        return line.isSidechain is not True or not self._now.main

    def _opens_a_turn(self, line: ClaudeRecord) -> bool:
        kind = line.type
        if kind not in CONVERSATION or not self._on_main_line(line):
            return False
        if kind == "assistant":
            return line.message is None or line.message.id != self._now.last_id
        if line.isMeta is True or line.isCompactSummary is True:
            return False
        return not any(block.type == "tool_result" for block in line.blocks())

    def _remember_assistant(self, line: ClaudeRecord) -> None:
        now = self._now
        side = line.isSidechain is True
        identity = line.message.id if line.message is not None else None
        if not side:
            now.main = True
        if not (side and now.main):
            now.last_id = identity
        content = line.message.content if line.message is not None else None
        for block in content if isinstance(content, list) else ():
            if block.type == "tool_use" and block.id:
                self._waiting.add(block.id)

    def _remember_user(self, line: ClaudeRecord) -> None:
        now = self._now
        if line.isSidechain is not True:
            now.main = True
        if self._waiting:
            self._waiting.difference_update(b.tool_use_id for b in line.blocks() if b.type == "tool_result")
            if not self._waiting:
                self._refused = 0

    def _compact(self, at: int, records: int) -> list[Delta]:
        """The delta ends behind the summary; the compaction repeats the lines from the boundary on."""
        start = self._boundary if self._boundary >= 0 else at
        said = self._records - self._before_boundary if self._boundary >= 0 else records
        delta = self._close("compaction")
        repeated = msgspec.structs.replace(delta, start=start, commit_type="compaction", records=said)
        return [delta, repeated]

    def _close(self, checkpoint: str) -> Delta:
        delta = self._delta(checkpoint, closed=True)
        self.state = msgspec.structs.replace(self._now)
        self._begin()
        return delta

    def _delta(self, checkpoint: str, *, closed: bool) -> Delta:
        return Delta(
            start=self._start,
            end=self._now.offset,
            checkpoint=checkpoint,
            time=self._time,
            closed=closed,
            records=self._records,
        )
