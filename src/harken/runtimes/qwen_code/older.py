"""The sessions of Qwen Code before it wrote lines (0.1 and some later): documents as Gemini CLI wrote them, in
`~/.qwen/tmp/HASH/chats/session-*.json`, in which the model is called `qwen`. It noted no calls there.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from harken.formats.gemini_cli import document
from harken.formats.kit.claims import Claim
from harken.runtimes.base import Runtime, SessionReader
from harken.runtimes.chat_files import identify, scan_document

from . import RUNTIME as TODAY

NAME = "qwen-code-json"


def _claim(head: bytes, path: Path) -> Claim:
    return document.claim(head, str(path)) if document.is_of_qwen(head, str(path)) else Claim()


RUNTIME = Runtime(
    name=NAME,
    label="Qwen Code, as it wrote documents",
    format="gemini-json-v1",
    older_files_of=TODAY.name,
    source="document",
    home=TODAY.home,
    roots=lambda home: (home / "tmp",),
    claim=_claim,
    keys=document.KEYS,
    environment=TODAY.environment,
    read=SessionReader(scan=partial(scan_document, runtime=NAME), identify=identify, suffixes=(".json",)),
)
