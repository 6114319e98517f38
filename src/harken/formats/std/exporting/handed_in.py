"""What an agent of a session document handed in, word for word: an import keeps it beside the conversation."""

from __future__ import annotations

from collections.abc import Iterator

from harken.events import Event, Output
from harken.formats.std.beside import is_beside
from harken.formats.std.checking.outputs import output_errors
from harken.formats.std.document import Json
from harken.formats.std.json_text import loads_kept
from harken.formats.std.skeleton import is_skeleton


def may_be_handed_in(event: Output) -> bool:
    """Whether it is worth a closer look."""
    is_kept = is_skeleton(event) or is_beside(event)
    return not event.why and event.raw.startswith(b"{") and (b'"task_id"' in event.raw or is_kept)


def handed_in(events: list[Event]) -> Json:
    """The last output of a sub-session among an agent's events, if it is as the standard has it; else nothing."""
    return next(all_handed_in(events), {})


def all_handed_in(events: list[Event]) -> Iterator[Json]:
    """All such outputs, the last one first: an agent that was called again hands in again."""
    for event in reversed(events):
        if isinstance(event, Output) and may_be_handed_in(event) and not (is_skeleton(event) or is_beside(event)):
            told = loads_kept(event.raw)
            if "task_id" in told and not any(output_errors(told)):
                yield told
