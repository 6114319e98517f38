"""What the chat files of Gemini CLI and of programs that began as a copy of it share: whose a file is, and what an old
document says to an import.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from harken.formats.facts import FileFacts
from harken.formats.gemini_cli import document

from .base import UUID, Identity, path_name
from .scans import DocumentParts, document_scan


def identify(path: Path, facts: FileFacts) -> Identity:
    """Whose file it is. A sub-agent's lies in a folder that is called after the session it belongs to."""
    stem = path.name.removesuffix(".zst").removesuffix(".jsonl").removesuffix(".json")
    session = facts.session or path_name(path.with_name(stem))
    parent = path.parent.name
    if facts.sidechain and parent != session and UUID.fullmatch(parent):
        return Identity(session=session, agent=session, parent=parent)
    return Identity(session=session)


def _take_apart(data: bytes) -> DocumentParts:
    if document.whole(data) is None:
        damage = "not a session of Gemini CLI" if data.strip() else ""
        return DocumentParts(closed=(), open=(), tail=data, damage=damage)
    found = document.places(data)
    slices = [data[start:end] for start, end in found]
    return DocumentParts(
        closed=slices[:-1], open=slices[-1:], tail=document.tail_of(data, found), session=document.about(data)[0]
    )


def scan_document(data: bytes, state: bytes = b"", *, runtime: str) -> FileFacts:
    """What an import has to know of a document."""
    _, title, agent = document.about(data)
    facts = document_scan(runtime, lambda message: document.message_of(message, agent), _take_apart)(data, state)
    return msgspec.structs.replace(facts, title=title or facts.title, sidechain=agent)
