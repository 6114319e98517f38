"""Documents changed at random: a value here, a byte there."""

from __future__ import annotations

import copy
import random
from typing import Any

from .std_documents import multi, single

ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 10**40, -0.5, 1e300, 2**63, "", " ", "x", "completed", "error", "in-progress", "Task",
    "tool-001", "sub-001", "task-001", "2026-03-04T10:00:00Z", "2026/3/4 10:00", "9999-12-31T23:59:59Z",
    "1769400000000", 1769400000, "12s", "\ud800", "\x1b[2J", "\u202e", "a" * 5000, "{}", "{0}", "%s", "../etc/passwd",
    "你好", [], {}, [None], [[]], [{}], [1, "tool-001"], ["tool-001"], ["tool-001", "tool-002", "tool-003"], {"": None},
    {"a.b": 1, "c[0]": 2, "\"": 3}, {"start": "tool-001", "end": "tool-002"}, {"agent_type": "developer"},
    {"agent_id": "lead"}, {"status": "done"}, {"display": 1}, {"params": []}, {"path": "a.py"},
)  # fmt: skip
"""What may stand where it has no place."""


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every place in a value: the object or list, and the key."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        holder = waiting.pop()
        for key in list(holder) if isinstance(holder, dict) else range(len(holder)):
            found.append((holder, key))
            if isinstance(holder[key], (dict, list)):
                waiting.append(holder[key])
    return found


def mutated_value(chance: random.Random) -> dict[str, Any]:
    """A document with one to four things changed."""
    document = chance.choice((single, multi))()
    for _ in range(chance.randint(1, 4)):
        found = places(document)
        if not found:
            break
        holder, key = chance.choice(found)
        _change(chance, holder, key, found)
    return document


def _change(chance: random.Random, holder: Any, key: Any, found: list[tuple[Any, Any]]) -> None:
    kind = chance.randrange(6)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, dict):
        holder[f"{key}_old"] = holder.pop(key)
    elif kind == 2 and isinstance(holder, list):
        holder.insert(chance.randrange(len(holder) + 1), copy.deepcopy(holder[key]))
    elif kind == 3:
        other, other_key = chance.choice(found)
        holder[key] = copy.deepcopy(other[other_key]) if len(str(other)) < 20_000 else None
    else:
        holder[key] = copy.deepcopy(chance.choice(ODD))


PIECES = (
    b'"',
    b"\\",
    b",",
    b":",
    b"{",
    b"}",
    b"[",
    b"]",
    b"\n",
    b"\x00",
    b"\xff",
    b"//",
    b"/*",
    b"NaN",
    b"1e999",
    b"'",
    b'\\"',
)


def mutated_bytes(chance: random.Random, data: bytes) -> bytes:
    """The bytes with one to four pieces put in, taken out or cut off."""
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data) + 1)
        kind = chance.randrange(4)
        if kind == 0:
            data = data[:at] + chance.choice(PIECES) + data[at:]
        elif kind == 1:
            data = data[:at] + data[at + chance.randint(1, 20) :]
        elif kind == 2:
            data = data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]
        elif chance.random() < 0.2:
            data = data[:at]
    return data
