"""What a runtime is to an importer: where its sessions lie, what its files mean, and what lies beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec

from harken.formats.facts import FileFacts


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Whose file it is."""

    session: str
    agent: str = ""
    parent: str = ""
    """The session that spawned it, for a sub-agent."""
    call_id: str = ""
    """The call that did so, where a side file tells."""

    @property
    def name(self) -> str:
        """The session's name in the store: a sub-agent's begins with its parent's."""
        return f"{self.parent}/{self.agent}" if self.parent and self.agent else self.session


def nothing_beside(path: Path) -> Iterable[Path]:
    """Most runtimes keep no side files."""
    return ()


def no_side_chains(data: bytes) -> Mapping[str, bytes]:
    """Most files hold one agent."""
    return {}


class Runtime(msgspec.Struct, frozen=True, kw_only=True):
    """A runtime whose files can be imported."""

    name: str
    format: str
    home: Callable[[Path, Mapping[str, str]], Path]
    """Where its sessions lie, for a user's home folder and environment."""
    scan: Callable[[bytes, bytes], FileFacts]
    """Bytes from a closed cut on, and the state of that cut, to what there is to know."""
    identify: Callable[[Path, FileFacts], Identity]
    beside: Callable[[Path], Iterable[Path]] = nothing_beside
    """The side files of a session's file."""
    side_chains: Callable[[bytes], Mapping[str, bytes]] = no_side_chains
    """The agents inside the file: the lines of each, verbatim."""
    record_names: Callable[[bytes], Iterable[str]] = lambda data: ()
    """The names of the records in some bytes, which a copy under another session id shares."""
