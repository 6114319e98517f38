"""Every session at hand, whichever program wrote it: the recorded ones, the demonstrations, and those of the corpus."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from harken import formats, runtimes
from harken.events import Event
from harken.formats.kit.claims import HEAD, best

from .recordings import CORPUS, FOLDER

LARGEST = 4 << 20
"""A longer file holds nothing that shorter ones do not."""


@cache
def session_sources() -> list[tuple[str, str]]:
    """Each file that some runtime claims, with the name of its format."""
    known = [runtime for runtime in map(runtimes.get, runtimes.names()) if runtime.source != "database"]
    suffixes = {end for runtime in known for end in runtime.read.suffixes if not end.endswith(".zst")}
    found: list[tuple[str, str]] = []
    for path in _files():
        if path.name.endswith(tuple(suffixes)) and path.stat().st_size <= LARGEST:
            head = path.read_bytes()[:HEAD]
            claimed = best((runtime, runtime.claim(head, path)) for runtime in known)
            found += [(str(path), claimed[0].format)] if claimed else []
    return found


def _files() -> Iterator[Path]:
    yield from sorted(path for path in FOLDER.rglob("*.jsonl") if path.is_file())
    yield from sorted(path for path in CORPUS.rglob("*.json*") if path.is_file()) if CORPUS else ()


def told(path: str, name: str) -> Iterator[tuple[str, list[Event]]]:
    """All that a file tells, and what its model had before it at the end."""
    format, data = formats.get(name), Path(path).read_bytes()
    yield "everything", format.read(data)
    yield "the conversation", format.read_conversation(format.context(data))
