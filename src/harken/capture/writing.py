"""The document on the disk: its name, and when it is written: often enough to be looked at, seldom enough to cost next
to nothing."""

from __future__ import annotations

from pathlib import Path

from harken.clock import format_instant, monotonic
from harken.files import folder_named, names_in, write_whole
from harken.formats.std.document import Json, dumps
from harken.formats.std.naming import file_name, next_free

from . import given

AFTER_ACTS = 100
AFTER_SECONDS = 5.0
_SHARE = 20
"""Writing takes at most one part in so many of the time."""


class DocumentFile:
    """The file of a document, and when it was written last."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._acts = self._after = 0
        self._at, self._cost = monotonic(), 0.0

    def is_due(self) -> bool:
        """Whether one act more is a reason to write it: after so many acts, which grow with the document, since each
        time all of it is written; and after some seconds, unless that takes too much of the time. What is due is due
        once, even if it then fails."""
        self._acts += 1
        acts, seconds = self._acts - self._after, monotonic() - self._at
        is_due = acts >= max(AFTER_ACTS, self._after // 2) or seconds >= max(AFTER_SECONDS, _SHARE * self._cost)
        if is_due:
            self._after, self._at = self._acts, monotonic()
        return is_due

    def write(self, data: Json) -> None:
        """Put it on the disk, whole or not at all; an `OSError` leaves what was there."""
        begin = monotonic()
        write_whole(self.path, dumps(data), replace=True)
        self._after, self._at = self._acts, monotonic()
        self._cost = self._at - begin


def path_of(path: given.GivenPath, title: str, present: int) -> Path:
    """The path of the document; in a folder, the next free name there as the standard has it."""
    named = given.path(path)
    folder = folder_named(named)
    if folder is None:
        return Path(named)
    date = format_instant(present)[:10]
    number = next_free(names_in(folder), date)
    return folder / file_name(title, date=date, number=number, multi=True).text
