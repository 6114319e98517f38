"""How the files of session documents are named: `{date}-{number}-{slug}[-multi].json`. The session's id is the name
without `.json`."""

from __future__ import annotations

import datetime
import re
import unicodedata
from collections.abc import Iterable

import msgspec

SUFFIX = ".json"
MULTI = "-multi"
RECORDED = ".log.jsonl"
"""How the log is called from which a recorder writes a document, in place of `.json`."""
LONGEST = 48
"""Characters of a slug."""
_NAME = re.compile(r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})-(?P<number>[0-9]{1,9})-(?P<slug>[^/\\]+)")


class FileName(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a document's name."""

    date: str
    number: int
    slug: str
    multi: bool = False

    @property
    def session_id(self) -> str:
        return f"{self.date}-{self.number:03}-{self.slug}{MULTI if self.multi else ''}"

    @property
    def text(self) -> str:
        return self.session_id + SUFFIX


def file_name(title: str, *, date: str, number: int, multi: bool) -> FileName:
    """The name of a document with that title."""
    return FileName(date=date, number=number, slug=slug(title), multi=multi)


def parse_name(name: str) -> FileName | None:
    """The parts of a file's name or of a session's id; None where it is not made of them."""
    found = _NAME.fullmatch(name.removesuffix(SUFFIX))
    if found is None or date_in(found["date"]) is None:
        return None
    words, multi = found["slug"].removesuffix(MULTI), found["slug"].endswith(MULTI)
    return FileName(date=found["date"], number=int(found["number"]), slug=words, multi=multi) if words else None


def is_multi_name(name: str) -> bool:
    """Whether a file is named as a multi-agent session, as the standard has it."""
    return name.endswith(MULTI + SUFFIX)


def slug(title: str) -> str:
    """The title in small ASCII letters, digits and dashes, cut after a word; `session` where nothing of it is left."""
    plain = unicodedata.normalize("NFKD", title[: 8 * LONGEST]).encode("ascii", "ignore").decode()
    words = re.sub(r"[^a-z0-9]+", "-", plain.replace("'", "").lower()).strip("-")
    if len(words) > LONGEST:
        words = words[: words.rfind("-", 1, LONGEST + 1)] if "-" in words[1 : LONGEST + 1] else words[:LONGEST]
    while words.endswith(MULTI):  # a title must not make a single session look like a multi-agent one
        words = words.removesuffix(MULTI)
    return words if words not in ("", MULTI[1:]) else "session"


def next_free(names: Iterable[str], date: str) -> int:
    """The number after the last one of that date, among the names in a folder, whatever they end in."""
    start = re.compile(rf"{re.escape(date)}-([0-9]{{1,9}})(?![0-9])")
    taken = (int(found[1]) for name in names if (found := start.match(name)))
    return max(taken, default=0) + 1


def date_in(time: object) -> str | None:
    """The date that an ISO-8601 time begins with; None where it is none."""
    text = time[:10] if isinstance(time, str) else ""
    try:
        return text if datetime.date.fromisoformat(text).isoformat() == text else None
    except ValueError:
        return None
