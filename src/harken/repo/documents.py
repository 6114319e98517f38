"""Session documents: any session, in the words of STD-001 or STD-008, without secrets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from harken.errors import BadRequest
from harken.events import Event, Output, Prompt
from harken.store import Store

from .arguments import SessionOrFile

if TYPE_CHECKING:
    from harken.formats import Loss
    from harken.formats.std.document import Document, Kind
    from harken.secrets import Rule

    from .exporting import ExportSource
    from .masking import Masks

KINDS: tuple[Kind, ...] = ("std-001", "std-008")
EVERY = 500
"""After how many events somebody is told how far it is."""


class SessionDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A session as a document, and what there is to say about it."""

    document: Document
    derived: list[str]
    """The paths of values that the session does not tell."""
    losses: list[Loss]
    """What is in the session and not in the document, and what the store could not give."""
    masked: dict[str, int]
    """How many secrets were masked, by rule."""
    agents: int
    """How many sub-agents there are."""
    unread: int
    """How many more could not be read."""


class Documenting:
    """A store whose sessions can be written as session documents."""

    store: Store

    def document(
        self,
        ref: SessionOrFile,
        *,
        kind: str = "",
        reveal: bool = False,
        own_rules: Sequence[Rule] = (),
        name: str = "",
        taken: Sequence[str] = (),
        moved: Callable[[int], None] | None = None,
    ) -> SessionDocument:
        """A session of the store (a REF: as it stood there) or of a file (a path object) as a document of STD-001 or
        STD-008: by default whichever fits, else that of `kind`. It is called `name`, else by the rule of the standard,
        and new among the files `taken`. Secrets are masked unless they are to be revealed."""
        from harken.formats.std.exporting.from_events import SessionFacts, document_of

        from .exporting import export_source
        from .masking import MaskedTitle, Masks

        if kind and kind not in KINDS:
            raise BadRequest(f"{kind!r} is no kind of session document", hint=f"one of {', '.join(KINDS)}")
        source = export_source(self.store, ref)
        masks = Masks(own_rules, reveal=reveal, for_people=False)
        changed: list[tuple[Event, Event]] = []
        events = list(_masked(source, masks, moved, changed))
        row, title = source.row, MaskedTitle(source.title, masks)  # of a file they are known now
        for event, told in changed:
            title.see(event, told)
        facts = SessionFacts(
            session=masks.text(source.name),
            runtime=row.runtime if row else "",
            title=title.text,
            name=name,
            taken=tuple(taken),
            time=source.time,
        )
        made = document_of(events, facts, next((one for one in KINDS if one == kind), None))
        return SessionDocument(
            document=made.document,
            derived=made.derived,
            losses=[*source.losses, *made.losses],
            masked=dict(sorted(masks.counts.items())),
            agents=made.agents,
            unread=source.unread,
        )


def _masked(
    source: ExportSource, masks: Masks, moved: Callable[[int], None] | None, changed: list[tuple[Event, Event]]
) -> Iterator[Event]:
    """The events without secrets; prompts that had some are put into `changed`, as they were and as they are told."""
    from harken.formats.std.exporting.handed_in import may_be_handed_in

    for count, event in enumerate(source.events(agents=True)):
        if moved is not None and not count % EVERY:
            moved(count)
        # What is no conversation is in no document, and only counted, but for what agents of a document handed in.
        is_needed = not isinstance(event, Output) or may_be_handed_in(event)
        told = masks.event(event) if is_needed else event.replace(raw=b"")
        if told is not event and isinstance(event, Prompt):
            changed.append((event, told))
        yield told
