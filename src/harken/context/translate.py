"""From the format a conversation is kept in to the one somebody asked for, and what that costs.

The best tier that applies is taken and named:

    "1"   native       the bytes as they are kept, joined
    "2"   field        an older version of the same family, its fields mapped
    "2s"  structural   another format's native conversation, through events, with a list of losses
    "3"   rendering    a narrative
    "4"   raw          the bytes as they are kept, with a sentence about what they are

Nothing here makes tier 2 or 3 yet; their names are part of the table because answers are kept and compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from harken.events import Event
from harken.formats import Format, Loss, Written
from harken.formats.base import identity

TIERS = {"1": "native", "2": "field", "2s": "structural", "3": "rendering", "4": "raw"}


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of a chain in one format, joined."""

    name: str
    format: Format | None
    """None where nobody knows the format."""
    data: bytes
    standing: bool = False
    """Whether this is the conversation as it stands, not every record there is."""
    problem: str = ""
    """Why it is not joined but only put together, where that is so."""

    def events(self) -> list[Event]:
        """What the piece says: in the order the model reads it, where it is a conversation that stands."""
        if self.format is None:
            return []
        return self.format.tell(self.data) if self.standing else self.format.read(self.data)


class Translation(msgspec.Struct, frozen=True, kw_only=True):
    """The bytes, what they are, and what it cost."""

    data: bytes
    format: str
    tier: str
    losses: tuple[Loss, ...] = ()
    description: str = ""
    events: tuple[Event, ...] | None = None
    """What was read on the way, where something was."""


def translate(pieces: Sequence[Piece], target: Format) -> Translation:
    """The pieces as one conversation in the target's format, or raw where there is no way."""
    if any(piece.problem for piece in pieces):
        return raw(pieces)
    if all(piece.name == target.name for piece in pieces):
        return _native(pieces, target)
    if len(pieces) == 1 and pieces[0].standing and pieces[0].format and target.name in pieces[0].format.direct:
        return _direct(pieces[0], target)
    readable = all(piece.format is not None and "read" in piece.format.can for piece in pieces)
    if not readable or "write" not in target.can:
        return raw(pieces, wanted=target.name)
    return _structural(pieces, target)


def _native(pieces: Sequence[Piece], target: Format) -> Translation:
    data = pieces[0].data if len(pieces) == 1 else target.join(piece.data for piece in pieces)
    return Translation(data=data, format=target.name, tier="1", description=target.description)


def _direct(piece: Piece, target: Format) -> Translation:
    """What a runtime makes of its own records, in that runtime's words; no other way says as much."""
    written = piece.format.direct[target.name](piece.data) if piece.format else Written(data=b"")
    return Translation(
        data=written.data,
        format=target.name,
        tier="2s",
        losses=written.losses,
        description=target.description,
        events=tuple(piece.events()),
    )


def _structural(pieces: Sequence[Piece], target: Format) -> Translation:
    read = [piece.events() for piece in pieces]
    events = [event for part in read for event in part]
    if target.context is identity:
        # Piece by piece, so that what is in the target's format already stays as it is, byte for byte.
        parts = [
            Written(data=piece.data) if piece.name == target.name else target.write(part)
            for piece, part in zip(pieces, read, strict=True)
        ]
        written = Written(
            data=target.join(part.data for part in parts),
            losses=merge(loss for part in parts for loss in part.losses),
        )
    else:
        written = target.write(events)
    return Translation(
        data=written.data,
        format=target.name,
        tier="2s",
        losses=written.losses,
        description=target.description,
        events=tuple(events),
    )


def raw(pieces: Sequence[Piece], *, wanted: str = "") -> Translation:
    """The kept bytes one behind the other, and a sentence that lets a reader make sense of them."""
    names = list(dict.fromkeys(piece.name for piece in pieces))
    sentences = [f"The bytes of the chain as they are kept, oldest first, in {' and '.join(names)}."]
    for piece in pieces:
        about = piece.problem or (piece.format.description if piece.format else "")
        about = about or "No reader for this format is installed."
        sentence = f"{piece.name}, {len(piece.data)} bytes: {about}"
        if sentence not in sentences:
            sentences.append(sentence)
    problem = next((piece.problem for piece in pieces if piece.problem), "")
    why = (
        f"there is no way from {' and '.join(names)} to {wanted}"
        if wanted
        else problem or "nobody here knows this format"
    )
    return Translation(
        data=b"".join(piece.data for piece in pieces),
        format=names[0] if len(names) == 1 else "raw",
        tier="4",
        losses=(Loss(what="translation", count=len(pieces), why=why),),
        description=" ".join(sentences),
    )


def merge(losses: Iterable[Loss]) -> tuple[Loss, ...]:
    """Losses of the same kind added up."""
    totals: dict[tuple[str, str], int] = {}
    for loss in losses:
        totals[loss.what, loss.why] = totals.get((loss.what, loss.why), 0) + loss.count
    return tuple(Loss(what=what, count=count, why=why) for (what, why), count in sorted(totals.items()))
