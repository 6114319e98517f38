"""The map in the package's docstring is compared with the rooms on disk and with what they import."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import harken

SOURCE = Path(harken.__file__).parent
ROW = re.compile(r"^    (\w+)(?: +<- ((?:\w+ )*\w+))? {2,}\S", re.M)
MAP = {room: set(arrow.split()) for room, arrow in ROW.findall(harken.__doc__ or "")}
FLOOR = {"errors", "ids", "clock"}


def files_of(room: str) -> list[Path]:
    folder = SOURCE / room
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [SOURCE / f"{room}.py"]


def imports(room: str) -> Iterator[tuple[str, str]]:
    """(file, room it imports) for every absolute import of ours, type-checking ones included."""
    for path in files_of(room):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules: list[str] = []
            if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                if node.module == "harken":
                    modules = [f"harken.{alias.name}" for alias in node.names]
                else:
                    modules = [node.module]
            elif isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            for module in modules:
                parts = module.split(".")
                if parts[0] == "harken" and len(parts) > 1:
                    yield path.name, parts[1]


def rooms_on_disk() -> set[str]:
    entries = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    return entries - FLOOR - {"__init__", "__main__"}


@pytest.mark.parametrize("room", MAP)
def test_a_room_imports_only_what_its_arrow_names(room: str) -> None:
    strangers = {(file, other) for file, other in imports(room) if other not in MAP[room] | FLOOR | {room}}

    assert set() == strangers - {(file, "__version__") for file, _ in strangers}


def test_every_room_is_on_the_map() -> None:
    assert rooms_on_disk() == set(MAP)


def test_the_arrows_have_no_circle() -> None:
    remaining = dict(MAP)
    while remaining:
        free = {room for room, needs in remaining.items() if not needs & set(remaining)}
        assert free, f"a circle among {sorted(remaining)}"
        remaining = {room: needs for room, needs in remaining.items() if room not in free}


def test_the_floor_imports_no_room() -> None:
    for name in FLOOR:
        assert {other for _, other in imports(name)} <= FLOOR


def test_only_the_clock_reads_the_clock_and_only_ids_hash() -> None:
    """A tripwire: time and hashing have one home each."""
    forbidden = {
        "clock.py": re.compile(r"\btime\.(time|time_ns|monotonic)\(|datetime\.now\(|datetime\.utcnow\("),
        "ids.py": re.compile(r"^\s*(import hashlib|from hashlib|from blake3|import blake3)", re.M),
    }
    for home, pattern in forbidden.items():
        offenders = [
            str(path.relative_to(SOURCE))
            for path in SOURCE.rglob("*.py")
            if path.name != home and pattern.search(path.read_text(encoding="utf-8"))
        ]
        assert [] == offenders, f"what belongs into {home} is in {offenders}"


def test_only_the_command_line_prints_and_reads_the_environment() -> None:
    pattern = re.compile(r"(?<![\w.])print\(|os\.environ|os\.getenv|Path\.home\(|expanduser\(")
    allowed = {"repo.py"}  # `harken.open()` without an argument asks `default_location()`
    offenders = [
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if path.relative_to(SOURCE).parts[0] not in {"cli", *allowed} and pattern.search(path.read_text("utf-8"))
    ]

    assert [] == offenders
