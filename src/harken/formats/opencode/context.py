"""Which messages the program would send: what a revert left, and what stands since the last summary."""

from __future__ import annotations

from collections.abc import Sequence

from harken.formats.kit.jsonl import Record

from .records import RowMessage, inside, text


def standing(messages: Sequence[RowMessage], revert: Record | None) -> list[RowMessage]:
    """The messages of the conversation as it stands, in the order of their rows; one that a revert cut into has only
    the parts before the cut. The next prompt makes the program remove the rest."""
    return _since_summary(_unreverted(messages, revert))


def as_read(messages: Sequence[RowMessage]) -> list[RowMessage]:
    """Those of a conversation that stands in the order the model reads them: where a summary left the last turns
    before it as they were, it comes first and they follow."""
    told = [(place, tail) for place, message in enumerate(messages) if (tail := _tail(message)) is not None]
    if not told:
        return list(messages)
    asked, tail = told[-1]
    first = next((place for place, message in enumerate(messages) if message.id == tail), -1)
    behind = (
        place
        for place, message in enumerate(messages)
        if place > asked and message.info.get("summary") and message.info.get("parentID") == messages[asked].id
    )
    summed = next(behind, -1)
    if not 0 <= first < asked < summed:
        return list(messages)
    return [*messages[asked : summed + 1], *messages[first:asked], *messages[summed + 1 :]]


def _tail(message: RowMessage) -> str | None:
    """The first message that a summary left as it was, where the part that asked for it says so."""
    found = inside(message.compaction, "tail_start_id") if message.role == "user" else None
    return found if isinstance(found, str) else None


def _unreverted(messages: Sequence[RowMessage], revert: Record | None) -> list[RowMessage]:
    name, part = text(inside(revert, "messageID")), text(inside(revert, "partID"))
    place = next((place for place, message in enumerate(messages) if name and message.id == name), -1)
    if place < 0:
        return list(messages)
    kept = list(messages[: place + bool(part)])
    if part:
        cut = next((at for at, each in enumerate(kept[-1].parts) if each.id == part), len(kept[-1].parts))
        kept[-1].parts = kept[-1].parts[:cut]
    return kept


def _since_summary(messages: Sequence[RowMessage]) -> list[RowMessage]:
    """From the newest backwards to the message that asked for a summary which was given, or to where that one says that
    the turns begin which it left as they were."""
    kept: list[RowMessage] = []
    summed: set[str] = set()
    tail = ""
    for message in reversed(messages):
        kept.append(message)
        if tail:
            if message.id == tail:
                break
        elif message.role == "user" and message.id in summed:
            if (asked := message.compaction) is None:
                continue
            tail = text(asked.get("tail_start_id"))
            if not tail or tail == message.id:
                break
        elif message.role == "assistant" and _is_summary(message.info):
            summed.add(text(message.info.get("parentID")))
    return kept[::-1]


def _is_summary(info: Record) -> bool:
    """Whether an answer is a summary that was given to its end."""
    return bool(info.get("summary") and info.get("finish") and not info.get("error"))
