"""Documents that `opencode export` or `kilo export` printed. They lie wherever somebody put them, and are imported by
name; a session that is in the database too counts once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import msgspec

from harken.events.base import clean, named
from harken.formats.facts import FileFacts
from harken.formats.kit.claims import Claim
from harken.formats.opencode import export
from harken.formats.opencode.records import RowMessage, inside, shared_name, text
from harken.runtimes.base import Runtime, SessionReader, user_home
from harken.runtimes.scans import FINGERPRINT, TITLE, DocumentParts, document_scan

from .reading import UNTITLED, answered_turn, identify, origin_of, started

NAME = "opencode-export"


def take_apart(data: bytes) -> DocumentParts:
    """The messages of a document; those of the last turn that was answered stay with what stands around them."""
    found = export.document_of(data)
    begun = export.places(data, found) if found is not None else []
    if found is None or not begun:
        is_empty = not data.strip() or (found is not None and not found.messages)
        damage = "" if is_empty else "the document is no export of OpenCode's"
        return DocumentParts(closed=(), open=(), tail=data, damage=damage)
    told = export.messages_of(data)
    roles = [message.role if isinstance(message, RowMessage) else "" for message in told]
    cut = answered_turn(list(enumerate(roles)))
    slices = [data[start:end] for start, end in pairwise(begun[: cut + 1])]
    tail = data[: begun[0]] + data[begun[cut] :]
    info = export.session_info(data)
    return DocumentParts(
        closed=slices,
        open=[bytes(message) + b"," for message in found.messages[cut:]],
        tail=tail,
        session=text(info.get("id")),
        project=text(info.get("directory")),
    )


_scan = document_scan(NAME, export.read, take_apart)


def scan(data: bytes, state: bytes = b"") -> FileFacts:
    """What an import has to know of a document."""
    facts, info = _scan(data, state), export.session_info(data)
    messages: Sequence[RowMessage] = [each for each in export.messages_of(data) if isinstance(each, RowMessage)]
    title = " ".join(clean(text(info.get("title"))).split())
    calls, asks = started(messages)
    return msgspec.structs.replace(
        facts,
        title=facts.title if not title or UNTITLED.fullmatch(title) else title[:TITLE],
        parent=named(text(inside(info, "parentID"))),
        calls=calls,
        asks=asks,
        fingerprint=tuple(filter(None, map(shared_name, messages[:FINGERPRINT]))),
        origin=origin_of(info.get("metadata"), facts.session),
    )


def _claim(head: bytes, path: Path) -> Claim:
    return export.claim(head, str(path))


RUNTIME = Runtime(
    name=NAME,
    label="OpenCode export",
    format="opencode-v1",
    source="document",
    home=user_home,
    roots=lambda home: (),
    claim=_claim,
    keys=export.KEYS,
    read=SessionReader(scan=scan, identify=identify, suffixes=(".json",)),
)
