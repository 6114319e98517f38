"""A log in the keys of v2, where lines of it are written in an older dialect."""

from __future__ import annotations

import orjson

from harken.errors import BadRequest

from .lines import LogRecord, dialect, read_records
from .writing import encode


def in_present_shape(data: bytes) -> bytes | None:
    """The log with every line in v2, what cannot be read as it stands; None where no line is of an older dialect."""
    out: list[bytes] = []
    changed = False
    for record in read_records((data,)):
        line = _in_v2(record)
        changed = changed or line is not None
        out.append(data[record.offset : record.offset + record.length] + b"\n" if line is None else line)
    return b"".join(out) if changed else None


def _in_v2(record: LogRecord) -> bytes | None:
    """The line of an older dialect in the keys of v2; None for any other, which stays as it is."""
    if record.data is None:
        return None
    try:
        return encode(record.data) if dialect(orjson.loads(record.raw)) != "v2" else None
    except (orjson.JSONDecodeError, BadRequest):
        return None
