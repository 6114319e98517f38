"""A session as a document for others: what is in it, without secrets, in the form that was asked for.

However long the session, little of it is in memory: its events go through one by one, and wait on the disk until all
is known that stands before them in the document (its dates, the results of calls, the stories of sub-agents).
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harken import context
from harken.context.chains import project_of, recall_stamps
from harken.context.refs import CREATED
from harken.context.session_events import UnreadAgent
from harken.context.standing import standing
from harken.errors import BadRequest
from harken.events import AgentCreated, Event, Prompt
from harken.events.base import excerpt
from harken.store import Commit, SessionRow, Store
from harken.text import safe_json

from .arguments import SessionOrFile
from .held_events import HeldEvents
from .masking import MaskedTitle, Masks

if TYPE_CHECKING:
    from harken.formats import Loss
    from harken.secrets import Rule
    from harken.views.documents import DocumentFoot, DocumentHead, DocumentWriter, PictureFile

DOCUMENTS = ("md", "txt")
FORMS = (*DOCUMENTS, "jsonl", "trace")
"""What a session can be exported to here; the page in one file (`html`) is made of the answers of operations."""
LONGEST_TITLE = 200

ExportMoved = Callable[[str, int, int], None]
"""Is told what is being done, how many events it was done with, and of how many; 0 where nobody knows that yet."""


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
        """A session of the store (a REF: the session as it stood there) or of a file (a path object) as `md`, `txt`,
        `jsonl` or `trace`. Secrets are masked by the rules of `harken.secrets` and these, unless they are to be
        revealed; `agents` says whether sub-agents are told of, `pictures` in which folder Markdown finds pictures."""
        if to not in FORMS:
            raise BadRequest(f"{to!r} is nothing that a session can be exported to", hint=f"one of {', '.join(FORMS)}")
        source = export_source(self.store, ref)
        masks = Masks(own_rules, reveal=reveal, for_people=to in DOCUMENTS)
        return Export(source, to=to, agents=agents, masks=masks, pictures=pictures)


def export_source(store: Store, ref: SessionOrFile) -> ExportSource:
    """What a REF or a path object names."""
    return _InStore(store, ref) if isinstance(ref, str) else _InFile(Path(ref))


class ExportSource(ABC):
    """What is exported; all that is known of it is known when its events have been read."""

    name = ""
    """The session, or the file."""
    commit: Commit | None = None
    row: SessionRow | None = None
    time = 0
    """When it was kept or written, for what tells no time itself."""

    def __init__(self) -> None:
        self.losses: list[Loss] = []

    @property
    def title(self) -> str:
        """What the session is called; empty where nobody says."""
        return self.row.title if self.row else ""

    @property
    def unread(self) -> int:
        """How many sub-agents could not be read."""
        return sum(isinstance(loss, UnreadAgent) for loss in self.losses)

    @abstractmethod
    def events(self, *, agents: bool) -> Iterator[Event]:
        """The session in the order of time, with its sub-agents or without."""


class _InStore(ExportSource):
    """A session of the store, as it stands or stood at a commit."""

    def __init__(self, store: Store, ref: str) -> None:
        super().__init__()
        self._store = store
        self._found = standing(store, ref)
        self.row = self._found.row
        self.name = self.row.session
        self.commit = store.get_commit(self.row.stand)
        self.time = self.commit.time or _modified(self.row)

    def events(self, *, agents: bool) -> Iterator[Event]:
        found = self._found
        return context.iter_session(
            self._store, found.row, agents=agents, losses=self.losses, earlier=found.earlier, hold=HeldEvents
        )


def _modified(row: SessionRow) -> int:
    """When the source of a session was last written, as its import saw it; of a sub-agent inside a file, that one."""
    stamps = recall_stamps(row)
    found = stamps.get(row.source) or stamps.get(row.source.partition("#")[0])
    return max(0, found.stamp.modified // 1000) if found is not None else 0


class _InFile(ExportSource):
    """A session's file, as an import would have it."""

    def __init__(self, path: Path) -> None:
        from .looking import format_of

        super().__init__()
        self._path, self.name = path, path.name
        format_of(path)  # what nobody reads is refused at once
        self.time = path.stat().st_mtime_ns // 1000

    def events(self, *, agents: bool) -> Iterator[Event]:
        from .looking import in_store_of_its_own, open_file

        with in_store_of_its_own(self._path) as found:
            if found is not None:
                self.row = found[1]
                self.name = self.row.session
                yield from context.iter_session(*found, agents=agents, losses=self.losses, hold=HeldEvents)
                return
        data, format = open_file(self._path)
        yield from format.read(data)


class _FirstLook:
    """What has to be known of all events before the first is told."""

    def __init__(self) -> None:
        self.count = 0
        self.agents = 0
        self.began: int | None = None
        self.ended: int | None = None
        self.first: str | None = None
        """The agent of the session itself."""
        self.nested = True
        """Whether the stream was put together from the chains of agents, each of which has a place where it was asked
        for; a session log has names of its own for the making of its agents."""

    def look(self, event: Event, row: SessionRow | None) -> None:
        """The next event."""
        self.count += 1
        if event.time is not None:
            self.began = event.time if self.began is None else min(self.began, event.time)
            self.ended = event.time if self.ended is None else max(self.ended, event.time)
        if isinstance(event, AgentCreated):
            is_own = row is not None and event.message_id == row.session + CREATED
            self.first = event.agent_id if is_own or not self.agents else self.first
            self.agents += 1
            self.nested = self.nested and event.message_id.endswith(CREATED)
        self.first = event.agent_id if self.first is None else self.first


def _request(event: Event) -> str:
    """What somebody asks for."""
    if not isinstance(event, Prompt) or event.source == "injected":
        return ""
    return excerpt(event.content, LONGEST_TITLE)


class Export:
    """A document, to be taken piece by piece; when the last has been taken, what it does not say is known."""

    def __init__(self, source: ExportSource, *, to: str, masks: Masks, agents: bool = True, pictures: str = "") -> None:
        self._source, self._to, self._masks, self._pictures = source, to, masks, pictures
        self._with_agents = agents
        self.every = 500
        """After how many events somebody is told how far it is."""
        self._seen = _FirstLook()
        self._first = ""
        """The agent of the session itself, as masked events call it."""
        self._title: MaskedTitle | None = None
        self.left_out: Counter[str] = Counter()
        """What is in the session and in no document, by what it is."""

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What the store could not give."""
        return tuple(self._source.losses)

    @property
    def unread(self) -> int:
        """How many sub-agents could not be read."""
        return self._source.unread

    @property
    def agents(self) -> int:
        """How many sub-agents are told of."""
        return max(0, self._seen.agents - 1)

    @property
    def masked(self) -> dict[str, int]:
        """How many secrets were masked, by rule."""
        return dict(sorted(self._masks.counts.items()))

    def pieces(self, moved: ExportMoved | None = None) -> Iterator[bytes | PictureFile]:
        """The document in pieces, and between them the pictures that lie beside it; `moved` is told how far it is."""
        if self._to == "trace":
            return self._trace(moved)
        return self._lines(moved) if self._to == "jsonl" else self._document(moved)

    def _events(self, moved: ExportMoved | None, doing: str) -> Iterator[Event]:
        for event in self._source.events(agents=self._with_agents):
            self._seen.look(event, self._source.row)
            if moved is not None and not self._seen.count % self.every:
                moved(doing, self._seen.count, 0)
            if self._with_agents or event.agent_id == self._seen.first:
                masked = self._masks.event(event)
                self._entitle(event, masked)
                self._first = masked.agent_id if event.agent_id == self._seen.first else self._first
                yield masked

    def _entitle(self, event: Event, masked: Event) -> None:
        """The title of the session, else the first thing that was asked for, as far as this event tells it."""
        if self._to not in DOCUMENTS:
            return
        if self._title is None and (title := self._source.title or _request(event)):
            self._title = MaskedTitle(title, self._masks)
        if self._title is not None:
            self._title.see(event, masked)

    def _lines(self, moved: ExportMoved | None) -> Iterator[bytes]:
        from harken.events.wire import to_readable

        for event in self._events(moved, "writing"):
            line = json.dumps(to_readable(event), ensure_ascii=False)
            # JSON may hold a lone DEL or C1 control, which a terminal would obey.
            yield safe_json(line).encode() + b"\n"

    def _trace(self, moved: ExportMoved | None) -> Iterator[bytes]:
        from harken.views.chrome_trace import ChromeTrace

        trace = ChromeTrace(lambda: self._masks.text(self._source.name))
        between = b"["
        for event in self._events(moved, "writing"):
            for one in trace.add(event):
                yield between + safe_json(json.dumps(one, ensure_ascii=False)).encode("utf-8", "replace")
                between = b",\n"
        for one in trace.end():
            yield between + safe_json(json.dumps(one, ensure_ascii=False)).encode("utf-8", "replace")
            between = b",\n"
        yield b"]\n" if between != b"[" else b"[]\n"

    def _document(self, moved: ExportMoved | None) -> Iterator[bytes | PictureFile]:
        from harken.views.documents import DocumentFoot
        from harken.views.story import SessionStory

        story = SessionStory(self._events(moved, "reading"), HeldEvents)
        self.left_out = story.left_out
        writer = self._writer()

        def foot() -> DocumentFoot:
            self.left_out.update({"pictures": writer.absent} if writer.absent else {})
            losses = tuple(f"{loss.what} ×{loss.count}: {loss.why}" for loss in self.losses)
            return DocumentFoot(masked=self.masked, left_out=self.left_out, losses=losses)

        passages = story.passages(self._first if self._seen.nested else None)
        for done, piece in enumerate(writer.pieces(self._head(), passages, foot)):
            if moved is not None and not done % self.every:
                moved("writing", story.told, self._seen.count)
            yield piece.encode("utf-8", "replace") if isinstance(piece, str) else piece

    def _head(self) -> DocumentHead:
        from harken.views.documents import DocumentHead, moment

        source, seen, masks = self._source, self._seen, self._masks
        row, commit = source.row, source.commit
        facts = {
            "Session": source.name if commit is None or source.name != commit.short else "",  # it is of no session
            "Runtime": row.runtime if row else "",
            "Project": project_of(row) if row else "",
            "Commit": commit.short if commit else "",
            "Began": moment(seen.began),
            "Ended": moment(seen.ended),
        }
        told = {name: masks.text(value) for name, value in facts.items() if value}
        title = (self._title or MaskedTitle(source.title, masks)).text or told.get("Session") or told.get("Commit", "")
        return DocumentHead(title=excerpt(title, LONGEST_TITLE), facts=tuple(told.items()))

    def _writer(self) -> DocumentWriter:
        from harken.views import markdown, plain

        return markdown.MarkdownWriter(self._pictures) if self._to == "md" else plain.PlainWriter()
