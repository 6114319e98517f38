"""Real sessions with one field of one record changed, for every field of every kind of record that is recorded."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .recordings import CORPUS, FOLDER

ODD = {
    "a lone surrogate": r'"x\ud800y"',
    "a NUL": r'"a\u0000b"',
    "a newline": r'"a\nb\r\u001b[31m\u2028c"',
    "a way out": '"../../../../out"',
    "an empty text": '""',
    "a huge text": '"' + "x" * 70_000 + '"',
    "a huge number": "1" + "0" * 40,
    "a fraction below zero": "-1.5e300",
    "nothing": "null",
    "a truth": "true",
    "a list": r'[[], {}, "x\udfff", 1]',
    "an object": r'{"type": "\udc00", "\ud800": 1}',
    "depth": "[" * 900 + "]" * 900,
    "more depth than is read": '{"a":' * 3000 + "1" + "}" * 3000,
    "absence": "",
}
"""Names of what may stand in a field, as JSON; absence is no field at all."""
_MARK = "@the odd one@"
_UUID = re.compile(rb"[0-9a-f]{8}(?=-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})")
AROUND = 8
"""How many lines of a large file stand before and behind the changed one."""
LARGE = 100
"""How many lines a file may have to be taken as a whole."""
LONG = 50_000
"""A longer line is not changed: it would be written again and again."""
Place = tuple[str | int, ...]


class Field(NamedTuple):
    """A field of a line of a file."""

    path: Path
    line: int
    place: Place

    def __str__(self) -> str:
        return f"{self.path.name}:{self.line + 1} {'.'.join(map(str, self.place))}"


class Mutant(NamedTuple):
    """A session in which fields are changed, at most one of each record."""

    home: Path
    """The files below it belong together; a file by itself is its own home."""
    fields: list[Field]

    def __str__(self) -> str:
        return ", ".join(map(str, self.fields))

    def write(self, folder: Path, odd: str, number: int) -> None:
        """Write it with the odd value in every place. Each number has ids of its own, since copies would be linked."""
        for path in _files(self.home):
            lines = path.read_bytes().splitlines(keepends=True)
            for field in self.fields:
                if field.path == path:
                    lines[field.line] = _changed(lines[field.line], field.place, ODD[odd])
            target = folder / _renewed(str(path.relative_to(self.home.parent)).encode(), number).decode()
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(_renewed(b"".join(self._some(path, lines)), number))

    def _some(self, path: Path, lines: list[bytes]) -> list[bytes]:
        """Of a large file its first line, which says whose it is, and the lines around those that are changed."""
        if len(lines) <= LARGE:
            return lines
        wanted = {0} | {
            near
            for field in self.fields
            if field.path == path
            for near in range(field.line - AROUND, field.line + AROUND)
        }
        return [line for number, line in enumerate(lines) if number in wanted]


def mutants(runtime: str, *, corpus: bool = False) -> list[Mutant]:
    """Sessions in which every field of every kind of record is changed once, in as few as it takes."""
    found: list[Mutant] = []
    taken: dict[tuple[Path, int], int] = {}
    """How many fields of a record are changed already, each in another mutant of its home."""
    of: dict[Path, list[Mutant]] = {}
    for home, field in fields(runtime, corpus=corpus):
        number = taken[field[:2]] = taken.get(field[:2], -1) + 1
        mine = of.setdefault(home, [])
        if number == len(mine):
            mine.append(Mutant(home, []))
            found.append(mine[-1])
        mine[number].fields.append(field)
    return found


def fields(runtime: str, *, corpus: bool = False) -> Iterator[tuple[Path, Field]]:
    """Every field of every kind of record, once, with the home of its file, in a steady order."""
    seen: set[tuple[str, ...]] = set()
    for home in _corpus(runtime) if corpus else sorted(FOLDER.glob(f"{runtime}-*/*")):
        for path in _files(home):
            for number, line in enumerate(path.read_bytes().splitlines()):
                for shape, place in _fields(_record(line)):
                    if shape not in seen:
                        seen.add(shape)
                        yield home, Field(path, number, place)


def _files(home: Path) -> list[Path]:
    found = [home] if home.is_file() else sorted(home.rglob("*.json*"))
    return [path for path in found if path.name != "recording.json"]


def _corpus(runtime: str) -> Iterator[Path]:
    assert CORPUS is not None
    for folder in {"claude-code": ("claude_code", "claude_code_growth"), "codex": ("codex_rollout",)}[runtime]:
        yield from sorted((CORPUS / folder).rglob("*.jsonl"))


def _record(line: bytes) -> Any:
    try:
        return json.loads(line) if len(line) < LONG else None
    except ValueError:
        return None


def _fields(record: Any) -> Iterator[tuple[tuple[str, ...], Place]]:
    """Every field of a record: its shape, which begins with the kind of the record, and its place."""
    if isinstance(record, dict):
        inner = (record.get(key) for key in ("payload", "attachment", "data"))
        parts = [each for each in (record, *inner) if isinstance(each, dict)]
        kind = tuple(str(each.get(key)) for each in parts for key in ("type", "subtype"))
        yield from ((kind + shape, place) for shape, place in _inside(record))


def _inside(value: Any) -> Iterator[tuple[tuple[str, ...], Place]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (key,), (key,)
            yield from (((key, *shape), (key, *place)) for shape, place in _inside(inner))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            item = f"[{inner.get('type')}]" if isinstance(inner, dict) else "[]"
            yield (item,), (number,)
            yield from (((item, *shape), (number, *place)) for shape, place in _inside(inner))


def _changed(line: bytes, place: Place, odd: str) -> bytes:
    record = json.loads(line)
    holder = functools.reduce(lambda value, key: value[key], place[:-1], record)
    if odd:
        holder[place[-1]] = _MARK
    else:
        del holder[place[-1]]
    return json.dumps(record).replace(f'"{_MARK}"', odd).encode() + b"\n"


def _renewed(text: bytes, number: int) -> bytes:
    return _UUID.sub(b"%08x" % number, text)
