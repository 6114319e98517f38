"""A session as plain text of 80 columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harken.events import Image
from harken.text import one_line, safe, wrap

from .documents import (
    COMPACTION,
    DocumentFoot,
    DocumentHead,
    DocumentWriter,
    PictureFile,
    listed,
    moment,
)
from .passages import AgentBegins, AgentEnds, Aside, Remark, Speech, Step, SummedUp

COLUMNS = 80
_LEAST = 20
"""However deep agents are nested, lines have as many columns as this."""
TAB = 4


class PlainWriter(DocumentWriter):
    """Writes plain text. A sub-agent's story is indented; a line of the transcript never stands at the left edge of a
    story, where only ours begin."""

    def begin(self, head: DocumentHead) -> str:
        facts = "".join(self._block(one_line(f"{name}: {value}"), 0) for name, value in head.facts)
        return f"{self._block(one_line(head.title), 0)}{'=' * COLUMNS}\n{facts}\n"

    def end(self, foot: DocumentFoot) -> str:
        lines = "".join(self._block(one_line(line), 0) for line in foot.lines())
        return f"{'=' * COLUMNS}\n{lines}Exported by Harken.\n"

    def speaker(self, who: str, time: str, *, is_user: bool) -> str:
        name = f"{who} ({time})" if time else who
        return "\n" + self._block(name, 0) + self._block("-" * min(len(name), 40), 0)

    def speech(self, said: Speech) -> Iterator[str | PictureFile]:
        yield from self._parts(said.parts, 2)

    def aside(self, aside: Aside) -> Iterator[str | PictureFile]:
        yield self._block(one_line(f"[{aside.title}]"), 2)
        yield from self._parts(aside.parts, 4)

    def step(self, step: Step) -> Iterator[str | PictureFile]:
        outcome = f" ({step.outcome})" if step.outcome else ""
        yield self._block(one_line(f"[{step.tool}]{outcome}"), 2)
        short, long = listed(step.arguments)
        for line in short:
            yield self._block(line, 4)
        for name, value in long:
            yield self._block(f"{name}:", 4) if name else ""
            yield self._block(value, 6)
        if step.answered:
            yield self._block("->", 2)
            yield from self._parts(step.parts, 4)

    def remark(self, remark: Remark) -> str:
        time = moment(remark.time)
        return self._block(
            f"* {'! ' if remark.alert else ''}{one_line(remark.text.strip())}{f' ({time})' if time else ''}", 2
        )

    def summed_up(self, summary: SummedUp) -> str:
        line = self._block(f"=== {COMPACTION}", 0)
        return f"\n{line}{self._block(summary.text, 4) if summary.text.strip() else ''}"

    def agent_begins(self, agent: AgentBegins) -> str:
        return "\n" + self._block(one_line(f">>> sub-agent {agent.name}"), 0)

    def agent_ends(self, agent: AgentEnds) -> str:
        return self._block(one_line(f"<<< sub-agent {agent.name}"), 0) + "\n"

    def _parts(self, parts: Iterable[str | Image], indent: int) -> Iterator[str]:
        for part in parts:
            yield self._block(self.absent_picture(part) if isinstance(part, Image) else part.strip("\n"), indent)

    def _block(self, text: str, indent: int) -> str:
        """Lines that begin in the same column and end before the last."""
        before = " " * min(indent + 4 * self.depth, COLUMNS - _LEAST)
        lines = (line for part in safe(text).split("\n") for line in wrapped(part, COLUMNS - len(before)))
        return "".join(f"{before}{line}".rstrip() + "\n" for line in lines)


def wrapped(line: str, columns: int) -> Iterator[str]:
    """The line in pieces of so many columns, cut between words where there are any."""
    line = line.expandtabs(TAB).replace("\u2028", " ").replace("\u2029", " ")
    return (line[start:end] for start, end in wrap(line, columns))
