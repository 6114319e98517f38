"""A session as Markdown for an issue tracker: what was said stands open, calls and asides are folded."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from harken import ids
from harken.events import Image
from harken.events.base import excerpt
from harken.text import one_line

from .documents import (
    COMPACTION,
    DocumentFoot,
    DocumentHead,
    DocumentWriter,
    PictureFile,
    listed,
    picture_bytes,
)
from .markdown_text import code_span, fenced, literal, prose, unmentioned
from .passages import AgentBegins, AgentEnds, Aside, Remark, Speech, Step, SummedUp


class MarkdownWriter(DocumentWriter):
    """Writes Markdown; pictures go into files of their own."""

    def __init__(self, folder: str = "") -> None:
        """`folder` is where pictures lie, as a link names it; without one they are not shown."""
        super().__init__()
        self._folder = folder
        self._pictures: dict[str, str] = {}

    def begin(self, head: DocumentHead) -> str:
        facts = "".join(f"- {literal(name)}: {code_span(value)}\n" for name, value in head.facts)
        return f"# {literal(excerpt(head.title, 200))}\n\n{facts}\n"

    def end(self, foot: DocumentFoot) -> str:
        lines = "".join(f"- {literal(line)}\n" for line in foot.lines())
        return f"---\n\n{lines}- Exported by Harken.\n"

    def speaker(self, who: str, time: str, *, is_user: bool) -> str:
        level = "#" * min(3 + self.depth, 6)
        return f"{level} {literal(who)}{f' <sub>{time}</sub>' if time else ''}\n\n"

    def speech(self, said: Speech) -> Iterator[str | PictureFile]:
        for part in said.parts:
            if isinstance(part, Image):
                yield from self._picture(part)
            else:
                yield f"{prose(part).strip(chr(10))}\n\n"

    def aside(self, aside: Aside) -> Iterator[str | PictureFile]:
        yield f"<details><summary>{_html(aside.title)}</summary>\n\n"
        yield from self._code_and_pictures(aside.parts)
        yield "</details>\n\n"

    def step(self, step: Step) -> Iterator[str | PictureFile]:
        outcome = f" ({step.outcome})" if step.outcome else ""
        what = f" <code>{_html(step.what)}</code>" if step.what else ""
        yield f"<details><summary><b>{_html(step.tool)}</b>{what}{outcome}</summary>\n\n"
        short, long = listed(step.arguments)
        if short:
            yield fenced("\n".join(short)) + "\n\n"
        for name, value in long:
            yield (f"**{literal(name)}**\n\n" if name else "") + fenced(value) + "\n\n"
        if step.answered:
            yield "Failed:\n\n" if step.failed else "Result:\n\n"
            yield from self._code_and_pictures(step.parts)
        yield "</details>\n\n"

    def remark(self, remark: Remark) -> str:
        return f"*{'⚠ ' if remark.alert else ''}{literal(remark.text.strip())}*\n\n"

    def summed_up(self, summary: SummedUp) -> str:
        line = f"---\n\n*{COMPACTION}*\n\n"
        if not summary.text.strip():
            return line
        return f"{line}<details><summary>The summary</summary>\n\n{fenced(summary.text)}\n\n</details>\n\n"

    def agent_begins(self, agent: AgentBegins) -> str:
        return f"<details><summary>Sub-agent <b>{_html(agent.name)}</b></summary>\n\n"

    def agent_ends(self, agent: AgentEnds) -> str:
        return "</details>\n\n"

    def _code_and_pictures(self, parts: Iterable[str | Image]) -> Iterator[str | PictureFile]:
        for part in parts:
            if isinstance(part, Image):
                yield from self._picture(part)
            elif part.strip():
                yield f"{fenced(part)}\n\n"

    def _picture(self, image: Image) -> Iterator[str | PictureFile]:
        """The link to a picture, and the first time the picture itself. Nothing of its name is from the transcript."""
        found = picture_bytes(image) if self._folder else None
        if found is None:
            yield f"{literal(self.absent_picture(image))}\n\n"
            return
        kind, data = found
        known = ids.artifact_id(data)
        if known not in self._pictures:
            self._pictures[known] = f"{len(self._pictures) + 1}.{kind}"
            yield PictureFile(name=self._pictures[known], data=data)
        name = self._pictures[known]
        yield f"![picture {name}]({quote(self._folder)}/{name})\n\n"


def _html(text: str) -> str:
    """Text inside an HTML element; an empty line would end the element."""
    return html.escape(unmentioned(one_line(text).replace("\t", " ")))
