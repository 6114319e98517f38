"""Lines of a session log: bytes in, one `Record` per object out, and nothing a file may hold stops the reading.

Limits and grammar are those of every line format (`kit.jsonl`), so memory is bounded, whatever the file: of a line that
is too long the head is kept and the rest passed over. What is different here: lines come from a stream, plain ones are
decoded together, and each oddity is named, since a log says what is odd about it. Well-formed lines take orjson's road;
what orjson refuses (a lone surrogate, a NaN, two objects on a line) gets a second, slower look, and only what survives
neither is given up as data. It is still there as bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any

import msgspec
import orjson

from harken.formats.kit.jsonl import HEAD, LARGE, MAX_LINE, SHORT, refusal

BLANK = "blank line"
TORN = "no newline at the end"
BROKEN = "not JSON"
OVERLONG = "line too long"
SEVERAL = "several objects on one line"
NOT_OBJECT = "not an object"
NOT_UTF8 = "not UTF-8"
SURROGATE = "lone surrogate"
NUMBER = "number beyond 64 bits"
NOT_FINITE = "NaN or infinity"
MARKED = "byte order mark"
ODD_AND_DEEP = "an oddity in a deep value"

# A run of twenty digits may be a number that orjson would round; a shorter one cannot. Looking at every fifth byte
# finds four digits in a row wherever there is such a run (and hardly ever otherwise), for a fraction of the time.
_LONG_NUMBER = b"0" * 20
_STRIDE = 5
_DIGITS = bytes(0x30 if 0x30 <= byte <= 0x39 else byte & 0x5F for byte in range(256))


LogLine = dict[str, Any]
"""A line of a session log, with the keys of v2."""


class SeveralMessages(LogLine):
    """An entry of several messages: results that were sent back together, and words beside them. It is the first."""

    more: tuple[LogLine, ...] = ()

    @classmethod
    def of(cls, first: LogLine, *more: LogLine) -> SeveralMessages:
        """An entry with these messages."""
        made = cls(first)
        made.more = more
        return made


def messages_of(entry: LogLine) -> tuple[LogLine, ...]:
    """The messages of an entry; itself is the first."""
    return (entry, *entry.more) if isinstance(entry, SeveralMessages) else (entry,)


class LogRecord(msgspec.Struct, frozen=True, gc=False):
    """One object of the log, or the bytes that should have been one."""

    line: int
    """Its line, counted from 1."""
    offset: int
    """Where it begins, in bytes from the start of the file."""
    length: int
    """How many bytes it has, without the newline."""
    data: dict[str, Any] | None
    """The object with the keys of v2, whatever the dialect; None where it could not be read."""
    problem: str | None
    """What is odd about it; an odd record may still have data."""
    raw: bytes
    """The bytes as they stand; of an overlong line only the head."""


LineReading = tuple[dict[str, Any] | None, str | None, int, int]
"""Data, problem, and the start and end of the object inside its line."""


def read_records(chunks: Iterable[bytes], *, offset: int = 0, line: int = 1) -> Iterator[LogRecord]:
    """The records in a stream of bytes that begins at `offset`, which is the start of line number `line`."""
    for group in read_groups(chunks, offset=offset, line=line):
        yield from group.records()


def data_of(raw: bytes) -> dict[str, Any]:
    """What a line that was read before says, with the keys of v2; `raw` is a record's."""
    try:
        data = orjson.loads(raw)
        if type(data) is dict and is_current(data):
            return data
    except orjson.JSONDecodeError:
        pass
    return next((record.data for record in read_records((raw, b"\n")) if record.data is not None), {})


class Group(msgspec.Struct, gc=False):
    """Lines that follow each other. Nearly all of them are plain, and those are decoded together."""

    line: int
    offset: int
    raws: list[bytes]
    plain: list[dict[str, Any]] | None
    """What they say, one object for each line, in v2; None where each needs to be looked at by itself."""
    longer: int
    wide: bool
    ended: bool
    starts: list[int] = []
    """Where each line begins, once somebody has asked."""

    def records(self) -> Iterator[LogRecord]:
        """The records on these lines."""
        offset = self.offset
        if self.plain is not None:
            for line, (raw, data) in enumerate(zip(self.raws, self.plain, strict=True), self.line):
                yield LogRecord(line, offset, len(raw), data, None, raw)
                offset += len(raw) + 1
            return
        for line, raw in enumerate(self.raws, self.line):
            for found, problem, start, end in self._look(raw):
                yield LogRecord(line, offset + start, end - start, found, problem, raw[start:end])
            offset += len(raw) + self.longer + 1

    def _look(self, raw: bytes) -> list[LineReading]:
        if not (self.longer or self.wide) and self.ended and not refusal(raw):
            try:
                data = orjson.loads(raw)
            except orjson.JSONDecodeError:
                data = None
            if type(data) is dict:
                return [(data if is_current(data) else normalise(data), None, 0, len(raw))]
        return _second_look(raw, self.longer, self.ended)

    def place(self, at: int) -> tuple[int, int]:
        """Line and offset of the line that is `at` lines into the group."""
        if not self.starts:
            self.starts = list(self.offsets())
        return self.line + at, self.starts[at]

    def offsets(self) -> Iterator[int]:
        """Where each line begins, and where the next group does."""
        return accumulate((len(raw) + 1 for raw in self.raws), initial=self.offset)


def read_groups(chunks: Iterable[bytes], *, offset: int = 0, line: int = 1) -> Iterator[Group]:
    """What `read_records` reads, for whoever is in a hurry."""
    for raws, longer, wide, ended in _split(chunks):
        plain = None if longer or wide or not ended else _decode_together(raws)
        yield Group(line, offset, raws, plain, longer, wide, ended)
        line += len(raws)
        offset += sum(map(len, raws)) + len(raws) + longer


def read_about(chunks: Iterable[bytes], names: Iterable[bytes]) -> Iterator[LogRecord]:
    """The records that may mention one of these names, without decoding the others; lines and offsets mean nothing."""
    wanted = tuple(names)
    for raws, longer, wide, ended in _split(chunks):
        # An escape may spell any letter of a name.
        kept = [raw for raw in raws if b"\\u" in raw or any(name in raw for name in wanted)]
        if kept:
            plain = None if longer or wide or not ended else _decode_together(kept)
            yield from Group(0, 0, kept, plain, longer, wide, ended).records()


def _decode_together(raws: list[bytes]) -> list[dict[str, Any]] | None:
    """The objects on these lines, where each line is exactly one, in v2 and within the limits; else None."""
    if any(len(raw) > SHORT and refusal(raw) for raw in raws):
        return None
    loads = orjson.loads
    try:
        found = [loads(raw) for raw in raws]
    except orjson.JSONDecodeError:
        return None
    if not {dict}.issuperset(map(type, found)) or not all(map(is_current, found)):
        return None
    return found


def _second_look(raw: bytes, longer: int, ended: bool) -> list[LineReading]:
    if longer:
        length = len(raw) + longer
        return [(None, f"{OVERLONG}: {length} bytes", 0, length)]
    from .odd_lines import look_closer  # few logs have such a line

    readings = look_closer(raw)
    if ended:
        return readings
    return [(data, f"{TORN}; {problem}" if problem else TORN, start, end) for data, problem, start, end in readings]


Lines = tuple[list[bytes], int, bool, bool]
"""Lines, how many bytes longer they are in the file, whether they hold a long number, whether a newline ends them."""


def _split(chunks: Iterable[bytes]) -> Iterator[Lines]:
    begun: list[bytes] = []  # the parts of a line that has not ended; of an overlong one only the head
    size = 0  # how long that line is so far
    for chunk in _small(chunks):
        lines = chunk.split(b"\n")
        last = lines.pop()
        if lines:
            if begun:
                first = lines.pop(0)
                yield _first([*begun, first], size + len(first))
                begun, size = [], 0
            if _may_hold_long_number(chunk):
                for line in lines:
                    yield [line], 0, _holds_long_number(line), True
            else:
                yield lines, 0, False, True
        if last:
            size += len(last)
            if size > MAX_LINE:
                begun = [_head(begun, last)]
            else:
                begun.append(last)
    if begun:
        line = b"".join(begun)
        yield [line], size - len(line), True, False


def _small(chunks: Iterable[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        if len(chunk) <= LARGE:
            yield chunk
        else:
            yield from (chunk[at : at + LARGE] for at in range(0, len(chunk), LARGE))


def _first(parts: list[bytes], size: int) -> Lines:
    """The line that began in an earlier chunk."""
    if size > MAX_LINE:
        head = _head(parts[:-1], parts[-1])
        return [head], size - len(head), False, True
    line = b"".join(parts)
    return [line], 0, _holds_long_number(line), True


def _head(parts: list[bytes], last: bytes) -> bytes:
    head = b""
    for part in (*parts, last):
        head += part[: HEAD - len(head)]
        if len(head) == HEAD:
            break
    return head


def _may_hold_long_number(chunk: bytes) -> bool:
    return b"0000" in chunk[::_STRIDE].translate(_DIGITS)


def _holds_long_number(raw: bytes) -> bool:
    return _LONG_NUMBER in raw.translate(_DIGITS)


# -- dialects: what older writers called the keys of v2 ----------------------------------------------------------------

USER = "user"
"""What smallchat writes where an agent or a message is expected and a person is meant."""
_SMALLCHAT_ROLES = {"primary": "root"}


def is_current(data: dict[str, Any]) -> bool:
    """Whether the line needs no translation."""
    return "agent_id" in data and "content_id" not in data and "caused_by" not in data


def dialect(data: dict[str, Any]) -> str:
    """`v2`, `v1` or `smallchat`: which one this line is written in, as far as it shows."""
    if "agent" in data and "agent_id" not in data:
        return "smallchat"
    if "content_id" in data or "caused_by" in data:
        return "v1"
    return "v2"


def normalise(data: dict[str, Any]) -> dict[str, Any]:
    """The line with the keys of v2; a new dict, in the old order."""
    if dialect(data) == "smallchat":
        return _from_smallchat(data)
    renamed: dict[str, Any] = {}
    for key, value in data.items():
        new = _V1.get(key, key)
        # An old key gives way where the line has the new one too, and v1 lets a message stand for itself.
        if new == key or not (
            new in data or value is None or (key == "content_id" and value == data.get("message_id"))
        ):
            renamed[new] = value
    return renamed


_V1 = {"content_id": "substance", "caused_by": "cause"}


def _from_smallchat(data: dict[str, Any]) -> dict[str, Any]:
    renamed: dict[str, Any] = {}
    for key, value in data.items():
        if value is None:
            continue
        if key == "agent":
            renamed["agent_id"] = value
        elif key == "event_type" and value == "fragment":
            renamed[key] = "piece_of_text"
        elif key == "cause":
            if (cause := _cause(value)) is not None:
                renamed[key] = cause
        elif key == "role" and data.get("event_type") == "agent_created":
            renamed[key] = _SMALLCHAT_ROLES.get(value, value) if isinstance(value, str) else value
        elif key != "parent" or value != USER:
            renamed[key] = value
    return renamed


def _cause(value: Any) -> Any:
    """The message that is the cause; which of its calls is left to the tool results to say."""
    if isinstance(value, list):
        causes = [_cause(item) for item in value]
        return [cause for cause in causes if cause is not None] or None
    if not isinstance(value, str):
        return value
    if value == USER:
        return None
    message, dot, _ = value.partition(".")
    return message if dot and message.isdecimal() else value
