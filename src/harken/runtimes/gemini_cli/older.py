"""The sessions of Gemini CLI before version 0.40: `session-<time>-<8 digits>.json`, one document each, beside today's.

When the program goes on with one it begins a file with an `l` more in its name, which holds all of it; the two are one
session. The program that runs and resumes is today's.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from harken.formats.gemini_cli import document
from harken.formats.kit.claims import Claim
from harken.runtimes.base import Runtime, SessionReader
from harken.runtimes.chat_files import identify, scan_document

from . import RUNTIME as TODAY

NAME = "gemini-cli-json"


def _claim(head: bytes, path: Path) -> Claim:
    return Claim() if document.is_of_qwen(head, str(path)) else document.claim(head, str(path))


RUNTIME = Runtime(
    name=NAME,
    label="Gemini CLI before 0.40",
    format="gemini-json-v1",
    older_files_of=TODAY.name,
    source="document",
    home=TODAY.home,
    roots=TODAY.roots,
    claim=_claim,
    keys=document.KEYS,
    environment=TODAY.environment,
    read=SessionReader(scan=partial(scan_document, runtime=NAME), identify=identify, suffixes=(".json",)),
)
