"""What is forgotten, as values and rules: spans of an artifact that are blanked, and words that are not let in again.

A blanked byte is an asterisk: it may stand anywhere in a string of JSON, so a line stays a line and a record a record.
Of a forgotten secret a store keeps its length, its first bytes (a quarter of them, four at most) and a salted hash:
enough to know it again where somebody stores it again, and nothing that could be read back.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

import msgspec

from harken import clock, ids
from harken.errors import BadRequest

from .values import SessionRow

ByteSpan = tuple[int, int]
"""Where it begins, and where it ends."""
BLANK = b"*"
SHORTEST = 8
"""A shorter text stands in too many places to be anybody's secret."""
_FIRST, _PART = 4, 4
_CUT = 12  # bytes of a secret that are looked for where a text was cut off
_ELLIPSES = ("…", "...")
_TITLES = (80, 200)  # characters after which titles are cut off
_SALT = 16
_LEVELS = 3  # JSON in JSON in JSON: a tool's argument that holds a line of a transcript
BEGUN, DONE, LIFTED = 0, 1, 2
"""What may have become of an erasure. One that is lifted lets in again what it forgot, where somebody has it."""


class Tombstone(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of an artifact of which something was forgotten."""

    spans: tuple[ByteSpan, ...]
    """The bytes that are blanked; none where all of it is gone."""
    hash: str
    """The name that the bytes have now, blanked; empty where all of it is gone."""
    who: str
    why: str
    time: int

    @property
    def said(self) -> str:
        """When, by whom and why, as a sentence goes on with it."""
        by, why = f" by {self.who}" if self.who else "", f": {self.why}" if self.why else ""
        return f" on {clock.format_instant(self.time)[:10]}{by}{why}"

    @property
    def count(self) -> int:
        """How many bytes are blanked."""
        return sum(end - start for start, end in self.spans)


class Erasure(msgspec.Struct, frozen=True, kw_only=True):
    """Something was forgotten on purpose."""

    number: int
    time: int
    who: str
    why: str
    what: str
    """What the caller wrote down of it; never the secret."""
    state: int
    """`BEGUN`, `DONE` or `LIFTED`."""


class ErasureOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be forgotten."""

    time: int
    who: str = ""
    why: str = ""
    what: str = "{}"
    """What to write down of it; never the secret."""
    artifacts: dict[str, tuple[ByteSpan, ...]] = {}
    """By the full name of an artifact the spans to blank; none for all of it."""
    words: tuple[bytes, ...] = ()
    """The secrets, in every form: they are blanked in names and remarks too, and are not let in again."""
    notes: tuple[tuple[str, str], ...] = ()
    """Commit and key of the remarks that go."""
    sessions: tuple[SessionRow, ...] = ()
    """Sessions as their rows are from now on."""
    at: int
    """The number of the store's last change when all this was found out: `Conflict` if there was another since."""


class Watchword(msgspec.Struct, frozen=True, array_like=True):
    """A secret that is not let in again."""

    erasure: int
    size: int
    begin: bytes
    salt: bytes
    hash: bytes

    @classmethod
    def of(cls, erasure: int, word: bytes) -> Watchword:
        """What is kept of a secret."""
        salt = os.urandom(_SALT)
        return cls(erasure, len(word), word[: min(_FIRST, len(word) // _PART)], salt, ids.secret_hash(salt, word))


# -- finding and blanking ---------------------------------------------------------------------------------------------


def forms(secret: str) -> tuple[bytes, ...]:
    """The bytes in which a secret may stand: as it is, in one line as titles have it, and as JSON escapes both, within
    JSON too."""
    if len(secret.encode("utf-8", "surrogatepass")) < SHORTEST:
        raise BadRequest(
            f"a secret has at least {SHORTEST} bytes",
            hint="a shorter one would be found in what has nothing to do with it",
        )
    found = dict.fromkeys((secret, _in_one_line(secret)))
    for _ in range(_LEVELS):
        for text in list(found):
            for ascii in (True, False):
                escaped = json.dumps(text, ensure_ascii=ascii)[1:-1]
                upper = re.sub(r"(?<=\\u)[0-9a-f]{4}", lambda digits: digits[0].upper(), escaped)
                found |= dict.fromkeys((escaped, upper, escaped.replace("/", r"\/")))
    return tuple(sorted({text.encode("utf-8", "surrogatepass") for text in found}, key=len, reverse=True))


class EscapedForms:
    r"""A secret in which any letter may be escaped, needlessly too (`\u0061`; `\u0026` as Go writes `&`), and JSON may
    stand in JSON."""

    _SHORT: ClassVar[dict[str, bytes]] = {
        '"': b'"',
        "\\": b"\\\\",
        "/": b"/",
        "\n": b"n",
        "\r": b"r",
        "\t": b"t",
        "\b": b"b",
        "\f": b"f",
    }

    def __init__(self, secret: str) -> None:
        units = {unit for letter in secret for unit in self._units(letter)}
        # `forms` knows a few levels of JSON in JSON; deeper ones are told by their many backslashes.
        short = b"".join(sorted({re.escape(self._SHORT[letter][-1:]) for letter in secret if letter in self._SHORT}))
        deep = [rb"\\{5,}[" + short + b"]"] if short else []
        self._hint = re.compile(b"|".join([rb"\\u(?i:" + b"|".join(sorted(units)) + rb")", *deep]))
        self._whole = re.compile(b"".join(map(self._pattern, secret)))
        self.longest = 24 * len(secret.encode("utf-16-be", "surrogatepass")) // 2
        """In how many bytes it may stand."""

    @staticmethod
    def _units(letter: str) -> list[bytes]:
        """The hex digits that an escape has; two for what is beyond 16 bits."""
        digits = letter.encode("utf-16-be", "surrogatepass").hex()
        return [digits[at : at + 4].encode() for at in range(0, len(digits), 4)]

    def _pattern(self, letter: str) -> bytes:
        """All of the backslashes before a letter: half of an escape would be left otherwise."""
        ways = [re.escape(letter.encode("utf-8", "surrogatepass"))]
        ways.append(b"".join(rb"\\+u(?i:" + unit + b")" for unit in self._units(letter)))
        ways += [rb"\\+" + self._SHORT[letter]] if letter in self._SHORT else []
        return b"(?:" + b"|".join(ways) + b")"

    def find(self, data: bytes) -> Iterator[ByteSpan]:
        """Where it stands with an escape in it: only around one of its letters' escapes is it looked for."""
        around = ((hint.start() - self.longest, hint.end() + self.longest) for hint in self._hint.finditer(data))
        for start, end in merged(around):
            yield from (found.span() for found in self._whole.finditer(data, max(start, 0), min(end, len(data))))


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


def in_titles(found: bytes) -> Iterator[bytes]:
    """What a title says for a secret that was found in a line of JSON, where escapes stand for what is in it."""
    said = found.decode("utf-8", "surrogatepass")
    for _ in range(_LEVELS + 1):
        if len(line := _in_one_line(said).encode("utf-8", "surrogatepass")) >= SHORTEST:
            yield line
        try:
            said = json.loads(f'"{said}"', strict=False)
        except ValueError:
            return


def windows(parts: Iterable[bytes], overlap: int) -> Iterator[tuple[int, bytes]]:
    """The parts of a whole, each behind so many bytes of what comes before it, and where that begins: what is no longer
    than those is in one of them, wherever the parts are cut."""
    begin, tail = 0, b""
    for part in parts:
        window = tail + part
        yield begin - len(tail), window
        begin, tail = begin + len(part), window[-overlap:]


def find_words(data: bytes, words: Iterable[bytes]) -> Iterator[ByteSpan]:
    """Where these bytes hold one of the words; at their ends, also the part of one that was cut off there."""
    for word in words:
        at = data.find(word)
        while at >= 0:
            yield at, at + len(word)
            at = data.find(word, at + 1)
        # Of a shorter part than this nobody can tell whose it is.
        for size in range(min(len(word) - 1, len(data)), _CUT - 1, -1):
            if data.endswith(word[:size]):
                yield len(data) - size, len(data)
                break
        for size in range(min(len(word) - 1, len(data)), _CUT - 1, -1):
            if data.startswith(word[-size:]):
                yield 0, size
                break


def find_watched(data: bytes, words: Iterable[Watchword]) -> Iterator[tuple[ByteSpan, int]]:
    """Where these bytes hold a secret that was forgotten, and by which erasure."""
    for word in words:
        at = data.find(word.begin)
        while at >= 0:
            found = data[at : at + word.size]
            if len(found) == word.size and ids.secret_hash(word.salt, found) == word.hash:
                yield (at, at + word.size), word.erasure
            at = data.find(word.begin, at + 1)


def keep_out_of_text(value: str, words: Sequence[Watchword]) -> str:
    """A text without the secrets that were forgotten. At the end of a title that was cut off, what begins like one goes
    too: there is not enough of it to be known by its hash."""
    data = value.encode("utf-8", "surrogatepass")
    spans = [span for span, _ in find_watched(data, words)]
    if len(value) in _TITLES and not value.endswith("}"):  # what a scanner remembers is JSON, and whole
        for word in words:
            at = data.find(word.begin, max(0, len(data) - word.size + 1))
            spans += [(at, len(data))] if 0 <= at <= len(data) - _CUT else []
    return blanked(data, merged(spans)).decode("utf-8", "surrogatepass") if spans else value


def merged(spans: Iterable[ByteSpan]) -> tuple[ByteSpan, ...]:
    """The spans in order, those that touch as one."""
    found: list[ByteSpan] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return tuple(found)


def blanked(data: bytes, spans: Sequence[ByteSpan], offset: int = 0) -> bytes:
    """The bytes, which begin at that place of the whole, with these spans of the whole blanked."""
    made = bytearray(data)
    for start, end in spans:
        start, end = max(start - offset, 0), min(end - offset, len(data))
        if start < end:
            made[start:end] = BLANK * (end - start)
    return bytes(made)


def without(value: str, words: Iterable[bytes]) -> str:
    """The text with these words blanked; an excerpt may end in the middle of one."""
    end = next((mark for mark in _ELLIPSES if value.endswith(mark)), "")
    data = value.removesuffix(end).encode("utf-8", "surrogatepass")
    spans = merged(find_words(data, words))
    return blanked(data, spans).decode("utf-8", "surrogatepass") + end if spans else value


def spans_text(spans: Sequence[ByteSpan]) -> str:
    """Spans as a row holds them."""
    return " ".join(f"{start} {end}" for start, end in spans)


def spans_of(text: str) -> tuple[ByteSpan, ...]:
    """The spans that a row holds."""
    numbers = list(map(int, text.split()))
    return tuple(zip(numbers[::2], numbers[1::2], strict=True))
