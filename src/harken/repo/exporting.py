"""A session as a document for others: what is in it, without secrets, in the form that was asked for."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from harken import context
from harken.context.chains import project_of
from harken.context.refs import CREATED
from harken.context.session_events import UnreadAgent
from harken.context.standing import standing
from harken.errors import BadRequest
from harken.events import AgentCreated, Event, Prompt
from harken.events.base import excerpt
from harken.store import Commit, SessionRow, Store
from harken.text import CONTROL

from .arguments import SessionOrFile
from .masking import Masks

if TYPE_CHECKING:
    from harken.formats import Loss
    from harken.secrets import Rule
    from harken.views.documents import DocumentFoot, DocumentWriter, PictureFile

DOCUMENTS = ("md", "html", "txt")
FORMS = (*DOCUMENTS, "jsonl")
"""What a session can be exported to."""


class Exporting:
    """A store whose sessions are shown to others."""

    store: Store

    def export(
        self,
        ref: SessionOrFile,
        *,
        to: str,
        agents: bool = True,
        reveal: bool = False,
        pictures: str = "",
        own_rules: Sequence[Rule] = (),
    ) -> Export:
        """A session of the store (a REF: the session as it stood there) or of a file (a path object) as `md`, `html`,
        `txt` or `jsonl`. Secrets are masked by the rules of `harken.secrets` and these, unless they are to be revealed;
        `agents` says whether sub-agents are told of, `pictures` in which folder Markdown finds pictures."""
        if to not in FORMS:
            raise BadRequest(f"{to!r} is nothing that a session can be exported to", hint=f"one of {', '.join(FORMS)}")
        if isinstance(ref, str):
            told = _of_ref(self.store, ref, agents=agents)
        else:
            told = _of_file(Path(ref), agents=agents)
        return Export(told, to=to, masks=Masks(own_rules, reveal=reveal, for_people=to in DOCUMENTS), pictures=pictures)


class ExportSource(msgspec.Struct, frozen=True, kw_only=True):
    """What is exported."""

    events: list[Event]
    first: str | None
    """The agent of the session itself, where sub-agents' stories stand where they were asked for; None where agents
    speak with each other, as in a session log, and all stand in the order of time."""
    title: str
    facts: tuple[tuple[str, str], ...]
    losses: tuple[Loss, ...] = ()


class Export:
    """A document, to be taken piece by piece; when the last has been taken, what it does not say is known."""

    def __init__(self, told: ExportSource, *, to: str, masks: Masks, pictures: str) -> None:
        self._told, self._to, self._masks, self._pictures = told, to, masks, pictures
        self.left_out: Counter[str] = Counter()
        """What is in the session and in no document, by what it is."""
        self.losses = told.losses
        self.unread = sum(isinstance(loss, UnreadAgent) for loss in told.losses)
        """How many sub-agents could not be read."""
        self.agents = max(0, sum(isinstance(event, AgentCreated) for event in told.events) - 1)

    @property
    def masked(self) -> dict[str, int]:
        """How many secrets were masked, by rule."""
        return dict(sorted(self._masks.counts.items()))

    def pieces(self) -> Iterator[bytes | PictureFile]:
        """The document in pieces, and between them the pictures that lie beside it."""
        if self._to == "jsonl":
            return self._lines()
        return self._document()

    def _lines(self) -> Iterator[bytes]:
        from harken.events.wire import to_readable

        for event in self._told.events:
            line = json.dumps(to_readable(self._masks.event(event)), ensure_ascii=False)
            # JSON may hold a lone DEL or C1 control, which a terminal would obey.
            yield CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", line).encode() + b"\n"

    def _document(self) -> Iterator[bytes | PictureFile]:
        from harken.views.documents import DocumentFoot, DocumentHead
        from harken.views.transcript import Transcript

        told, masks = self._told, self._masks
        transcript = Transcript([masks.event(event) for event in told.events], first=told.first)
        self.left_out = transcript.left_out
        facts = tuple((name, masks.text(value)) for name, value in told.facts)
        head = DocumentHead(title=masks.text(told.title), facts=facts)

        writer = self._writer()

        def foot() -> DocumentFoot:
            self.left_out.update({"pictures": writer.absent} if writer.absent else {})
            losses = tuple(f"{loss.what} ×{loss.count}: {loss.why}" for loss in self.losses)
            return DocumentFoot(masked=self.masked, left_out=self.left_out, losses=losses)

        for piece in writer.pieces(head, transcript.passages(), foot):
            yield piece.encode("utf-8", "replace") if isinstance(piece, str) else piece

    def _writer(self) -> DocumentWriter:
        from harken.views import markdown, page, plain

        match self._to:
            case "md":
                return markdown.MarkdownWriter(self._pictures)
            case "html":
                return page.PageWriter()
            case _:
                return plain.PlainWriter()


# -- what is exported --------------------------------------------------------------------------------------------------


def _of_ref(store: Store, ref: str, *, agents: bool) -> ExportSource:
    found = standing(store, ref)
    losses: list[Loss] = []
    events = context.session_events(store, found.row, agents=agents, losses=losses, earlier=found.earlier)
    return _source(events, found.row, losses, commit=store.get_commit(found.row.stand), agents=agents)


def _of_file(path: Path, *, agents: bool) -> ExportSource:
    from .looking import in_store_of_its_own, open_file

    data, format = open_file(path)
    losses: list[Loss] = []
    with in_store_of_its_own(path) as found:
        if found is not None:
            events = context.session_events(*found, agents=agents, losses=losses)
            return _source(events, found[1], losses, agents=agents)
    return _source(format.read(data), None, losses, name=path.name, agents=agents)


def _source(
    events: list[Event],
    row: SessionRow | None,
    losses: Sequence[Loss],
    *,
    agents: bool,
    commit: Commit | None = None,
    name: str = "",
) -> ExportSource:
    from harken.views.documents import moment

    times = [event.time for event in events if event.time is not None]
    called = row.session if row else name
    facts = {
        "Session": called if commit is None or called != commit.short else "",  # the commit is of no session
        "Runtime": row.runtime if row else "",
        "Project": project_of(row) if row else "",
        "Commit": commit.short if commit else "",
        "Began": moment(min(times, default=None)),
        "Ended": moment(max(times, default=None)),
    }
    title = (row.title if row else "") or _first_request(events) or facts["Session"] or facts["Commit"]
    first = _first_agent(events, row)
    return ExportSource(
        events=events if agents else [event for event in events if event.agent_id == first],
        first=first if _is_nested(events) else None,
        title=excerpt(title, 200),
        facts=tuple((name, value) for name, value in facts.items() if value),
        losses=tuple(losses),
    )


def _first_request(events: Sequence[Event]) -> str:
    asked = (event.content for event in events if isinstance(event, Prompt) and event.source != "injected")
    return next((text for text in asked if text.strip()), "")


def _is_nested(events: Sequence[Event]) -> bool:
    """Whether the stream was put together from the chains of agents, each of which has a place where it was asked for;
    a session log has names of its own for the making of its agents."""
    return all(event.message_id.endswith(CREATED) for event in events if isinstance(event, AgentCreated))


def _first_agent(events: Sequence[Event], row: SessionRow | None) -> str:
    """The agent of the session itself."""
    created = [event for event in events if isinstance(event, AgentCreated)]
    own = [event for event in created if row is not None and event.message_id == row.session + CREATED]
    return next((event.agent_id for event in (*own, *created, *events)), "")
