"""How the views look on a terminal: Rich text for any width, readable without colour.

Every word of a session passes through `ui.text`, so that no escape sequence, no reordering and no markup of a
transcript reaches the terminal. Rows are drawn in batches, so that a long session begins to show at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from . import ui
from .commits import when

if TYPE_CHECKING:
    from rich.text import Text

    from harken.api.view_answers import (
        ComparisonAnswer,
        DialogAnswer,
        FlowAnswer,
        HeardAnswer,
        InterventionAnswer,
        KnowsAnswer,
        PerspectiveAnswer,
        SequenceAnswer,
        TimelineAnswer,
        TraceAnswer,
        TreeAnswer,
    )

COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "red")
OUTSIDE = "(outside)"
NOTICE = "(notice)"
"""What the runtime itself put before an agent."""
UNHEARD = "no record says that anybody heard it"
"""Not that nobody did: few runtimes write down where a text went."""
_REACHED = {"told": "was told it", "reminded": "was reminded of it"}
_BATCH = 200
_DEEPEST = 12
"""Beyond this depth the tree is set in no further: a window has an edge."""


def draw(rows: Iterable[Text]) -> None:
    """Draw the rows as they come; they are wrapped already."""
    from rich.text import Text

    if ui.console().color_system is None:  # nothing to paint, and a pipe wants a long session quickly
        for row in rows:
            ui.line(row.plain)
        return
    pending = iter(rows)
    while batch := list(islice(pending, _BATCH)):
        ui.draw(Text("\n", no_wrap=True, overflow="ignore").join(batch))


class Painter:
    """Turns the values of the views into rows of text for one window."""

    def __init__(self, names: Mapping[str, str], *, full: bool = False) -> None:
        self.names = names
        self.full = full
        self.console = ui.console()
        self.width = max(20, self.console.width)
        rich = self.console.encoding.startswith("utf")  # else a terminal that shows ASCII and no more
        self.branch, self.more = ("└", "…") if rich else ("`-", "...")
        self._colours = {agent: COLOURS[n % len(COLOURS)] for n, agent in enumerate(names)}

    def who(self, agent_id: str | None) -> Text:
        """An agent's name in its colour."""
        name = " ".join(self.names.get(agent_id or "", agent_id or "").split())[:60] or OUTSIDE
        text: Text = ui.text(name, f"bold {self._colours.get(agent_id or '', '')}".strip())
        return text

    def speaker(self, agent_id: str | None, source: str | None) -> Text:
        """Who said something: an agent, the runtime, or somebody outside."""
        return self.who(agent_id) if agent_id or source != "injected" else ui.text(NOTICE, "bold")

    def faint(self, words: str) -> Text:
        """A remark beside the data."""
        text: Text = ui.text(" ".join(words.split()), "dim")
        return text

    def when(self, time: str | None) -> Text:
        """A time to the second."""
        return self.faint(when(time))

    def row(self, *parts: Any, indent: int = 0) -> Iterator[Text]:
        """Parts on one line; where the window ends it goes on further in."""
        from rich.text import Text

        whole = Text(" ").join([part if isinstance(part, Text) else Text(part) for part in parts if part])
        yield from self.wrap(whole, indent, hang=2)

    def wrap(self, text: Text, indent: int = 2, *, hang: int = 0) -> Iterator[Text]:
        """The text in lines, each set in, those after the first by `hang` more."""
        from rich.text import Text

        indent = min(indent, self.width // 2)
        if len(text) <= self.width - indent and text.plain.isascii() and "\n" not in text.plain:
            yield Text(" " * indent).append_text(text)  # nothing to wrap: the way of almost every row
            return
        for number, line in enumerate(text.wrap(self.console, self.width - indent - hang, overflow="fold")):
            line.rstrip()
            yield Text(" " * (indent + (hang if number else 0))).append_text(line)

    def words(self, content: str, indent: int = 2) -> Iterator[Text]:
        """What somebody said, whole or in one line."""
        if self.full:
            yield from self.wrap(ui.text(content), indent)
            return
        indent = min(indent, self.width // 2)
        short = ui.text(" " * indent + self.one_line(content))
        if short.cell_len > self.width:
            short.truncate(self.width - len(self.more), overflow="crop")
            short.append(self.more)
        yield short

    def one_line(self, content: str) -> str:
        """The beginning of a text without its line breaks."""
        return " ".join(content[: 8 * self.width].split())[: 2 * self.width]

    def dialog(self, lines: Iterable[DialogAnswer]) -> Iterator[Text]:
        for line in lines:
            yield from self.row(self.who(line.agent_id), self.faint(line.message_id))
            yield from self.wrap(ui.text(line.content))

    def perspective(self, moments: Iterable[PerspectiveAnswer], *, several: bool) -> Iterator[Text]:
        styles = {"heard": "bold", "said": "bold green", "action": "bold yellow", "received": "bold blue"}
        for moment in moments:
            label = ui.text(f"[{moment.kind.capitalize()}]:", styles.get(moment.kind, "bold"))
            who = self.who(moment.agent_id) if several else None
            content = ui.text(moment.content if self.full else self.one_line(moment.content))
            yield from self.row(self.faint(moment.message_id), who, label, content)

    def flow(self, flows: Iterable[FlowAnswer]) -> Iterator[Text]:
        for one in flows:
            yield from self.row(self.speaker(one.agent_id, one.source), self.faint(one.message_id))
            yield from self.words(one.content)
            if one.causes:
                yield from self.row("<-", self.faint("because of " + ", ".join(one.causes[:20])), indent=4)
            for heard in one.heard:
                yield from self.row("->", *self._heard(heard), indent=4)
            for result in one.results:
                remark = self.faint(f"{result.message_id} in a tool result")
                yield from self.row("=>", self.who(result.agent_id), remark, indent=4)

    def _heard(self, heard: HeardAnswer) -> Iterator[Any]:
        yield self.who(heard.agent_id)
        yield self.faint(heard.message_id)
        yield self.when(heard.time)
        yield self.faint(f"over {heard.hops} hops" if heard.hops > 1 else "")
        yield ui.text("in other words", "bold red") if heard.changed else None

    def tree(self, agents: Iterable[TreeAnswer]) -> Iterator[Text]:
        for agent in agents:
            indent = 2 * min(agent.depth, _DEEPEST)
            facts = [agent.agent_id, agent.role, f"{agent.messages:,} messages", agent.language_model]
            if agent.terminated:
                facts.append("terminated")
            remark = self.faint(", ".join(fact for fact in facts if fact))
            yield from self.row(self.branch if agent.depth else "", self.who(agent.agent_id), remark, indent=indent)

    def timeline(self, happenings: Iterable[TimelineAnswer]) -> Iterator[Text]:
        for one in happenings:
            yield from self._happening(one)

    def _happening(self, one: TimelineAnswer, mark: str = "") -> Iterator[Text]:
        head = [self.when(one.time), self.faint(one.message_id), self.who(one.agent_id)]
        is_other = one.kind == "output"  # no conversation: its type, on the same line, is all there is to say
        yield from self.row(
            mark, *head, self.faint(f"{one.kind} {self.one_line(one.content)}" if is_other else one.kind)
        )
        if one.content and one.kind != "created" and not is_other:
            yield from self.words(one.content if self.full else one.doing or one.content, 4)

    def trace(self, steps: Iterable[TraceAnswer]) -> Iterator[Text]:
        marks = {"before": "<-", "this": "**", "after": "->"}
        for step in steps:
            yield from self._happening(step, marks[step.step])

    def sequence(self, arrows: Iterable[SequenceAnswer]) -> Iterator[Text]:
        from rich.text import Text

        for arrow in arrows:
            reached = list(
                dict.fromkeys((*arrow.hearers, *arrow.returned))
            )  # some both heard it and got it in a result
            hearers = [self.who(agent) for agent in reached[:20]]
            to = Text(", ").join(hearers) if hearers else self.faint("nobody on record")
            more = len(reached) - len(hearers)
            remark = self.faint(f"and {more:,} more") if more else None
            changed = ui.text("in other words", "bold red") if arrow.changed else None
            speaker = self.speaker(arrow.speaker, arrow.source)
            yield from self.row(speaker, "->", to, remark, changed, self.faint(arrow.message_id))
            yield from self.words(arrow.content)

    def heard(self, flow: FlowAnswer, comparisons: Iterable[ComparisonAnswer]) -> Iterator[Text]:
        yield from self.row(self.speaker(flow.agent_id, flow.source), self.faint(flow.message_id))
        yield from self.words(flow.content)
        if not flow.heard and not flow.results:
            yield from self.row(self.faint(UNHEARD), indent=4)
        by_id = {one.message_id: one for one in comparisons}
        for heard in flow.heard:
            yield from self.row("->", *self._heard(heard), indent=4)
            if heard.changed and heard.message_id in by_id:
                yield from self.wrap(self.difference(by_id[heard.message_id]), 7)
        for result in flow.results:
            remark = self.faint(f"{result.message_id} in a tool result")
            yield from self.row("=>", self.who(result.agent_id), remark, indent=4)

    def difference(self, comparison: ComparisonAnswer) -> Text:
        """What stayed, `[-what went-]` and `{+what came+}`."""
        from rich.text import Text

        whole = Text()
        for piece in comparison.diff:
            if piece.op == "same":
                whole.append_text(ui.text(piece.text))
            elif piece.op == "removed":
                whole.append_text(ui.text(f"[-{piece.text}-]", "red"))
            else:
                whole.append_text(ui.text(f"{{+{piece.text}+}}", "green"))
        return whole

    def interventions(
        self, found: Iterable[InterventionAnswer], comparisons: Iterable[ComparisonAnswer]
    ) -> Iterator[Text]:
        by_id = {one.message_id: one for one in comparisons}
        for one in found:
            hook = ui.text(f"by {one.hook}" if one.hook else "on the way")
            facts = [
                ui.text(one.kind, "bold red"),
                hook,
                self.faint(one.message_id),
                self.when(one.time),
            ]
            yield from self.row(*facts)
            yield from self._intervention(one, by_id.get(one.message_id))

    def _intervention(self, one: InterventionAnswer, comparison: ComparisonAnswer | None) -> Iterator[Text]:
        if one.kind == "changed":
            yield from self.row(self.who(one.speaker), "->", self.who(one.agent_id), indent=2)
            if comparison is not None:
                yield from self.wrap(self.difference(comparison), 4)
                return
            yield from self.words(one.said, 4)
            yield from self.row("arrived in a tool result as", indent=2)
            yield from self.words(one.heard, 4)
            return
        verbs = {"blocked": "wanted", "withheld": "said", "sent back": "had said"}
        heard = one.kind == "blocked" and one.speaker != one.agent_id
        yield from self.row(self.who(one.agent_id), "was asked" if heard else verbs[one.kind], indent=2)
        yield from self.words(one.said, 4)
        yield from self.row(*self._refusal(one), indent=2)
        yield from self.wrap(ui.text(one.reason or one.heard), 4)

    def _refusal(self, one: InterventionAnswer) -> Iterator[Any]:
        from rich.text import Text

        if one.kind != "withheld" or not one.kept_from:
            yield "and was refused:" if one.kind != "withheld" else "and it was withheld:"
            return
        yield "and it was kept from"
        yield Text(", ").join(self.who(agent) for agent in one.kept_from[:20]).append(":")
        if len(one.kept_from) > 20:
            yield self.faint(f"(and {len(one.kept_from) - 20:,} more)")

    def knowledge(self, found: KnowsAnswer) -> Iterator[Text]:
        answer = "knows it:" if found.knows else "does not know it" if found.knows is False else "may know it:"
        remark = "as far as the session tells"
        if found.knows is None:
            remark = "some records cannot be read, and nothing else says so"
        if found.knows:
            reached = _REACHED.get(found.how or "", f"{found.how} it")
            remark = f"{reached} in {found.message_id} {when(found.time)}"
        changed = ui.text("in other words", "bold red") if found.changed else None
        since = ui.text("and has forgotten it since", "bold red") if found.forgotten else None
        yield from self.row(self.who(found.agent_id), ui.text(answer, "bold"), self.faint(remark), changed, since)
        for step in found.path:
            yield from self.row(self.who(step.agent_id), self.faint(f"{step.message_id} {step.kind}"), indent=2)
            yield from self.words(step.content, 4)
