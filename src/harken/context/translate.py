"""From the format a conversation is kept in to the one somebody asked for, and what that costs.

The best tier that applies is taken and named:

    "1"   native       the bytes as they are kept, joined
    "2"   field        an older version of the same family, its fields mapped
    "2s"  structural   another format's native conversation, through events, with a list of losses
    "3"   rendering    a narrative
    "4"   raw          the bytes as they are kept, with a sentence about what they are

Which one it is follows from what the formats say they can do (`tier_between`); what is in the bytes decides only where
a format keeps older shapes of itself under its own name.

`materialize` and `resume` both come through `translate`. Where the target is a runtime's own format, what another
runtime told its model about itself stays behind: the folder and the system it ran on, its tools and skills, how it may
behave. The runtime that goes on says its own, and a model that is told of two sets of tools believes the wrong one.
What people and agents said, what tools answered, and what the project's own files say, goes along; of those files not
what the runtime that goes on reads by itself, or it would be said twice. So does the system
prompt of an agent that is Harken's own, as a prompt: it says who the agent is, and no other runtime would tell it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from harken.errors import BadRequest
from harken.events import Event, Image, Output, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.events.base import speaker_of
from harken.events.places import ATTACHED
from harken.formats import Format, Loss, Written, get, runtime_notices
from harken.formats.base import identity
from harken.formats.session_log import FORMAT as SESSION_LOG
from harken.store.base import Commit, Store

from .walk import COMPACTION, Piece, conversation

if TYPE_CHECKING:
    from .shortening import Shortening

EventWriter = Callable[[Sequence[Event]], Written]
TIERS = {"1": "native", "2": "field", "2s": "structural", "3": "rendering", "4": "raw"}


class Translation(msgspec.Struct, frozen=True, kw_only=True):
    """The bytes, what they are, and what it cost."""

    data: bytes
    format: str
    tier: str
    losses: tuple[Loss, ...] = ()
    description: str = ""
    events: tuple[Event, ...] | None = None
    """What was read on the way, where something was."""


def tier_between(sources: Iterable[Format | None], target: Format) -> str:
    """The best tier from these formats (None: one that nobody knows) to the target."""
    found = list(sources)
    names = {source.name if source is not None else "" for source in found}
    if names <= {target.name}:
        return "1"
    if names <= {target.name, *target.older}:
        return "2"
    if "write" not in target.can or any(source is None or "read" not in source.can for source in found):
        return "4"
    return "3" if target.is_rendering else "2s"


def translate(
    pieces: Sequence[Piece],
    target: Format,
    *,
    write: EventWriter | None = None,
    present: bool = False,
    shortening: Shortening | None = None,
) -> Translation:
    """The pieces as one conversation in the target's format, or raw where there is no way.

    A runtime that is going to continue it gives its own `write`, which knows the new session's id and folder; what is
    said and what is lost is the same with and without it. With `present`, what is kept in an older shape of the target
    is brought to its present one. With `shortening`, the older part of what is too long is summed up."""
    if any(piece.problem for piece in pieces):
        return raw(pieces)
    if shortening is not None and (made := _shortened(pieces, target, write or target.adopt, shortening)):
        return made
    tier = tier_between((piece.format for piece in pieces), target)
    if tier == "1":
        return _in_present_shape(_native(pieces, target), target) if present else _native(pieces, target)
    if tier == "2":
        return _field(pieces, target)
    if tier == "4":
        return raw(pieces, wanted=target.name)
    if len(pieces) == 1 and pieces[0].current and pieces[0].format and target.name in pieces[0].format.direct:
        return _direct(pieces[0], target)
    if target.runtime or write is not None:
        return _adopted(pieces, target, write or target.adopt)
    return _structural(pieces, target, tier)


def continued(
    store: Store, tip: Commit, *, format: str, write: EventWriter, shortening: Shortening | None = None
) -> Translation:
    """The conversation at `tip` for the runtime of that format, which writes it itself where it has to be translated.

    The answer says and lacks what `materialize` in that format does, unless it is shortened; tier 4 means that there is
    no way."""
    _, pieces, missing = conversation(store, tip, COMPACTION)
    made = translate(pieces, get(format), write=write, shortening=shortening)
    if made.tier != "4":
        _check_continued(tip, made)
    return msgspec.structs.replace(made, losses=(*made.losses, *missing))


def _check_continued(tip: Commit, made: Translation) -> None:
    known = get(made.format)
    if made.events is not None:
        check_said(tip, made.events)
    elif known.reader is not None:
        check_said(tip, known.reader(made.data), known.notices)


def _native(pieces: Sequence[Piece], target: Format) -> Translation:
    data = pieces[0].data if len(pieces) == 1 else target.join(piece.data for piece in pieces)
    return Translation(data=data, format=target.name, tier="1", description=target.description)


def _in_present_shape(made: Translation, target: Format) -> Translation:
    """The same conversation, where it is kept in an older shape of its own format."""
    bring = target.older.get(target.name)
    data = bring(made.data) if bring is not None else None
    return made if data is None else msgspec.structs.replace(made, data=data, tier="2")


def _field(pieces: Sequence[Piece], target: Format) -> Translation:
    """What older formats of the family kept, in the target's fields."""
    parts = [_brought(piece, target) for piece in pieces]
    return Translation(data=target.join(parts), format=target.name, tier="2", description=target.description)


def _brought(piece: Piece, target: Format) -> bytes:
    bring = target.older.get(piece.name)
    data = bring(piece.data) if bring is not None else None
    return piece.data if data is None else data


def _direct(piece: Piece, target: Format) -> Translation:
    """What a runtime makes of its own records, in that runtime's words; no other way says as much."""
    written = piece.format.direct[target.name](piece.data) if piece.format else Written(data=b"")
    return _made(target, written, piece.events())


def _made(
    target: Format, written: Written, events: Iterable[Event], lost: Iterable[Loss] = (), *, tier: str = "2s"
) -> Translation:
    """What was written in the target's format from events; `lost` is what was left out before."""
    return Translation(
        data=written.data,
        format=target.name,
        tier=tier,
        losses=(*lost, *written.losses),
        description=target.description,
        events=tuple(events),
    )


def _adopted(pieces: Sequence[Piece], target: Format, write: EventWriter) -> Translation:
    """Another runtime's conversation, as the target's runtime can go on with it."""
    kept, lost = _carried_over(pieces, target)
    return _written_by(target, write, kept, lost)


def _carried_over(pieces: Sequence[Piece], target: Format) -> tuple[list[Event], list[Loss]]:
    """What of the pieces goes along, and what stays behind."""
    kept: list[Event] = []
    lost: list[Loss] = []
    for piece, said in zip(pieces, _of_one_agent(pieces), strict=True):
        # A format that is no runtime's own may hold what any of them said.
        notices = piece.format.notices if piece.format and piece.format.runtime else runtime_notices()
        heard, left = carry_over(said, notices, target, own_instructions=piece.name == SESSION_LOG.name)
        kept += heard
        lost += left
    return kept, lost


def _written_by(
    target: Format, write: EventWriter, kept: Sequence[Event], lost: Iterable[Loss], tier: str = "2s"
) -> Translation:
    written = write([_as_prompt(event) if isinstance(event, System) else event for event in kept])
    return _made(target, written, kept, merge(lost), tier=tier)


def _shortened(
    pieces: Sequence[Piece], target: Format, write: EventWriter, shortening: Shortening
) -> Translation | None:
    """The conversation with its older part summed up; None where it is short enough as it is, or cannot be read."""
    from .shortening import narrate, shorten  # most conversations go along whole

    formats = [piece.format for piece in pieces]
    if "write" not in target.can or any(each is None or "read" not in each.can for each in formats):
        return None
    kept, lost = _carried_over(pieces, target)
    if shortening.narrative:
        told, left = narrate(kept, shortening)
        return _written_by(target, write, told, [*lost, *left], "3")
    shorter, left = shorten(kept, shortening)
    return _written_by(target, write, shorter, [*lost, *left]) if left else None


def _of_one_agent(pieces: Sequence[Piece]) -> list[list[Event]]:
    """What each piece says. What was handed down to an agent is its own, whoever said it first."""
    read = [piece.events() for piece in pieces]
    if len(pieces) == 1 or not all(piece.current for piece in pieces):
        return read
    own = speaker_of(read[-1])
    return [[event if event.agent_id == own else event.replace(agent_id=own) for event in part] for part in read]


def _structural(pieces: Sequence[Piece], target: Format, tier: str) -> Translation:
    read = [piece.events() for piece in pieces] if target.is_rendering else _of_one_agent(pieces)
    events = [event for part in read for event in part]
    whole = target.is_rendering or target.repeats_history or (target.pairs_calls and _is_answered_later(read))
    if target.context is identity and not whole:
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
    return _made(target, written, events, tier=tier)


def _is_answered_later(parts: Sequence[Sequence[Event]]) -> bool:
    """Whether a call of one piece has its result in a later one: neither can be written by itself then."""
    waiting: set[str] = set()
    for part in parts:
        calls = {event.id for event in part if isinstance(event, ToolCall)}
        results = {event.id for event in part if isinstance(event, ToolResult)}
        if waiting & (results - calls):
            return True
        waiting = (waiting | calls) - results
    return False


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


def check_said(tip: Commit, events: Iterable[Event], notices: Container[str] = ()) -> None:
    """Refuse to go on from a conversation in which nobody has said anything: a program that is given an empty session,
    or one with nothing but its own notices, does not take it."""
    for event in events:
        if isinstance(event, Response) and event.content.strip():
            return
        # A result alone, without the prompt behind its call, is no conversation either.
        if isinstance(event, Prompt) and (event.content.strip() or event.images) and not _is_notice(event, notices):
            return
    raise BadRequest(
        f"{tip.short} holds no conversation to go on from",
        hint="nobody has said anything up to there; `harken log` shows what came later",
    )


# -- what goes along into another runtime ------------------------------------------------------------------------------

WHY = {
    "instructions of the runtime": "{} tells its model about its own rules",
    "notice of the runtime": "{} tells its model about its own tools and surroundings",
    "instructions of the project": "{} reads the project's own files by itself",
    "provider's own tool call": "what it found is not in the conversation",
    "damaged picture": "it is not a picture that a provider accepts, and would be refused with everything else",
    "document": "only pictures go along with a prompt",
    "sealed summary": "only the provider that wrote it can open it",
}
"""What stays behind, and why; the name is that of the runtime that goes on."""
SEALED_SUMMARY = "compact_summary"


def carry_over(
    events: Sequence[Event], notices: Container[str], target: Format, *, own_instructions: bool = False
) -> tuple[list[Event], tuple[Loss, ...]]:
    """What the model heard and said, as far as it can go on in the target's runtime, and what stays behind.

    `notices` are the kinds of prompts by which the events' own runtime told its model about itself. With
    `own_instructions` the instructions are the agent's, not its runtime's, and stay."""
    answered = {event.id for event in events if isinstance(event, ToolResult)}
    kept: list[Event] = []
    lost: Counter[str] = Counter()
    for event in events:
        if not _is_heard(event):
            continue
        is_own = own_instructions and isinstance(event, System) and event.subtype == "instructions"
        if not is_own and (what := _why_left(event, notices, answered, target.project_files)):
            lost[what] += 1
            continue
        if isinstance(event, (Prompt, ToolResult)) and event.images:
            sound = tuple(filter(_is_sound, event.images))
            if len(sound) < len(event.images):
                lost.update(_name_of(image) for image in event.images if not _is_sound(image))
                event = event.replace(images=sound)
        kept.append(event)
    losses = (Loss(what=what, count=count, why=WHY[what].format(target.runtime)) for what, count in lost.items())
    return kept, tuple(losses)


def _as_prompt(event: System) -> Prompt:
    """An agent's own instructions as every runtime can take them: their sessions have no place for a system prompt."""
    return Prompt(
        message_id=event.message_id,
        agent_id=event.agent_id,
        time=event.time,
        content=event.message,
        source="injected",
        origin="instructions",
    )


def _is_heard(event: Event) -> bool:
    """Whether an event is something the model was told or said, or something nobody could read.

    Figures, notices and records of bookkeeping never went to the model, so leaving them out loses nothing."""
    if isinstance(event, System):
        return event.subtype == SEALED_SUMMARY or (event.subtype == "instructions" and bool(event.message))
    if isinstance(event, Output):
        return bool(event.why)
    if isinstance(event, Response):
        return bool(event.content.strip())
    return isinstance(event, (Prompt, Thinking, ToolCall, ToolResult))


def _why_left(event: Event, notices: Container[str], answered: Container[str], project_files: tuple[str, ...]) -> str:
    """Why an event that was heard cannot go along, as a key of `WHY`; empty where it can."""
    match event:
        case System(subtype="compact_summary"):
            return "sealed summary"
        case System():
            return "instructions of the runtime"
        case Prompt() if _is_notice(event, notices):
            return "notice of the runtime"
        case Prompt() if event.content.startswith(project_files):
            return "instructions of the project"
        case ToolCall() if event.server_tool and event.id not in answered:
            return "provider's own tool call"
    return ""


def _is_notice(prompt: Prompt, notices: Container[str]) -> bool:
    """Whether a runtime told its model about itself."""
    return prompt.source == "injected" and prompt.origin.removeprefix(ATTACHED) in notices


def _name_of(image: Image) -> str:
    """What a picture that cannot go along is, as a key of `WHY`: a document is kept as one, but is none."""
    return "document" if image.media_type.startswith(("application/", "text/")) else "damaged picture"


def _is_sound(image: Image) -> bool:
    """Whether a provider would take the picture; one that it refuses would make it refuse the whole conversation."""
    if not image.data:
        return image.is_public
    from harken.formats.kit.pictures import is_picture  # most conversations have none

    return is_picture(image.data)
