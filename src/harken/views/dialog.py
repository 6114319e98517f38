"""The dialog: what chosen agents said and heard, each piece of content once."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypedDict

from harken.events import Prompt
from harken.events.messages import is_asked

from .base import HEARD, SAID
from .index import Index


class DialogLine(TypedDict):
    """One piece of content, in the words of the one who said it."""

    message_id: str
    content: str
    agent_id: str | None
    """Who said it, or made it for others; None for somebody outside the session."""


def extract_dialog(index: Index, agent_ids: Collection[str]) -> list[DialogLine]:
    """Utterances and heard messages, by content, in the order in which the originals stand in the file.

    System prompts, calls and results are no part of it, so what an inner voice says through a result stays inside.
    Nor are notices that a runtime puts before its model: nobody said them.
    Where the original is not in the file, the first wording that was heard stands in for it, at its place.
    """
    heard: dict[int, int] = {}
    for agent_id in dict.fromkeys(agent_ids):
        for at in index.transcripts.get(agent_id, ()):
            if index.kinds[at] in (SAID, HEARD) and index.texts[at] and not _is_notice(index, at):
                root = index.root[at]
                heard[root] = min(at, heard.get(root, at))
    return [_line(index, root, first) for root, first in sorted(heard.items(), key=_place)]


def _is_notice(index: Index, at: int) -> bool:
    """Whether a prompt was put there by the runtime itself: it repeats nothing, and no agent gave it as a task."""
    first = index.records[at][0]
    return isinstance(first, Prompt) and not is_asked(first) and index.source[at] == at and index.authors[at] is None


def _place(item: tuple[int, int]) -> int:
    root, first = item
    return root if root >= 0 else first


def _line(index: Index, root: int, first: int) -> DialogLine:
    original = root >= 0 and bool(index.texts[root])
    return DialogLine(
        message_id=index.id_of(root),
        content=index.texts[root if original else first],
        agent_id=index.authors[root] if root >= 0 else None,
    )
