"""What a record of a rollout is called in every copy of the file: a fork repeats the records of the thread it leaves.

Records have no names of their own. A copy has the same payload under another time, in the same order; so the name is
made of the thread that everything in the file descends from, the payload, and which of the equal ones it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from .records import SESSION_META, iter_lines, kind_of
from .scan import payload_name
from .usage import Meter

META = SESSION_META.encode()


def shared_names(data: bytes) -> Callable[[str], str]:
    """From a record's name (its place in the file) to what its copies are called too."""
    meter, found, seen = Meter(), dict[str, str](), Counter[str]()
    for line in iter_lines(data):
        if line.record is None:
            continue
        kind, payload = kind_of(line.record)
        if kind == SESSION_META:
            meter.meet(payload)
            continue
        name = payload_name(data[line.start : line.end])
        found[f"@{line.start}"] = f"{name} {seen[name]}"
        seen[name] += 1
    family = meter.family
    return lambda name: f"{family} {found[name]}" if name in found else ""


def delta_names(data: bytes) -> tuple[str, Callable[[str], str]]:
    """The thread that everything descends from, where this part of a file says so, and from a record's name (its place
    in the part) to that of what it says. Which of the equal ones it is only the whole file tells."""
    meter = Meter()
    for line in iter_lines(data) if META in data else ():
        if line.record is not None:
            kind, payload = kind_of(line.record)
            if kind == SESSION_META:
                meter.meet(payload)

    def name(place: str) -> str:
        start = int(place[1:])
        return payload_name(data[start : data.find(b"\n", start) + 1 or len(data)])

    return meter.family if meter.thread else "", name
