"""The map in the package's docstring is compared with the packages on disk and with what they import."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import harken

SOURCE = Path(harken.__file__).parent
ROW = re.compile(r"^    (\w+)(?: +<- ((?:\w+ )*\w+))? {2,}\S", re.M)
MAP = {package: set(arrow.split()) for package, arrow in ROW.findall(harken.__doc__ or "")}
ALIAS = re.compile(r"[A-Z]\w*[a-z]\w*")
FLOOR = {"errors", "ids", "clock", "files", "text"}


def files_of(package: str) -> list[Path]:
    folder = SOURCE / package
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [SOURCE / f"{package}.py"]


@cache
def read(path: Path) -> tuple[list[str], set[str]]:
    """The modules that a file imports, and the types that it names; several tests ask this of all files."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    modules: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level and path.parent == SOURCE:
            # The floor's own files say `from .ids import …`; in a package that is a file of the same package.
            modules += [f"harken.{node.module}"] if node.module else [f"harken.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            if node.module == "harken":
                modules += [f"harken.{alias.name}" for alias in node.names]
            else:
                modules.append(node.module)
        elif isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
    named = [node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    assigned = [node.targets[0] for node in tree.body if isinstance(node, ast.Assign)]
    assigned += [node.target for node in tree.body if isinstance(node, ast.AnnAssign)]
    aliases = [target.id for target in assigned if isinstance(target, ast.Name) and ALIAS.fullmatch(target.id)]
    return modules, {*named, *aliases}


def imports(package: str) -> Iterator[tuple[str, str]]:
    """(file, package it imports) for every absolute import of ours, type-checking ones included."""
    for path in files_of(package):
        for module in read(path)[0]:
            parts = module.split(".")
            if parts[0] == "harken" and len(parts) > 1:
                yield path.name, parts[1]


def packages_on_disk() -> set[str]:
    entries = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    return entries - FLOOR - {"__init__", "__main__"}


@pytest.mark.parametrize("package", MAP)
def test_a_package_imports_what_its_arrow_names_and_nothing_else(package: str) -> None:
    used: dict[str, list[str]] = {}
    for file, other in imports(package):
        used.setdefault(other, []).append(file)
    found = {other: files for other, files in used.items() if other not in FLOOR | {package, "__version__"}}

    assert MAP[package] == set(found), f"who imports what: {found}"


def test_every_package_is_on_the_map() -> None:
    assert packages_on_disk() == set(MAP)


def test_the_arrows_have_no_circle() -> None:
    remaining = dict(MAP)
    while remaining:
        free = {package for package, needs in remaining.items() if not needs & set(remaining)}
        assert free, f"a circle among {sorted(remaining)}"
        remaining = {package: needs for package, needs in remaining.items() if package not in free}


def test_the_floor_imports_no_package() -> None:
    imported = {name: {other for _, other in imports(name)} for name in FLOOR}

    assert any(imported.values()), "the floor's files import each other, and that is seen"
    assert {name: others & FLOOR for name, others in imported.items()} == imported


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


def test_no_module_keeps_a_coder_for_all_threads() -> None:
    """A tripwire: two threads that use one of zstd end in a segmentation fault; `store.blobs` has one for each."""
    made = re.compile(r"^\S.*Zstd(C|Dec)ompressor\(", re.M)
    offenders = [path.name for path in SOURCE.rglob("*.py") if made.search(path.read_text(encoding="utf-8"))]
    assert [] == offenders


def test_only_the_command_line_prints_and_reads_the_environment() -> None:
    pattern = re.compile(r"(?<![\w.])print\(|os\.environ|os\.getenv|Path\.home\(|expanduser\(")
    allowed = {"repo/location.py"}  # `harken.open()` without an argument asks `default_location()`
    offenders = [
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if path.relative_to(SOURCE).parts[0] != "cli"
        and str(path.relative_to(SOURCE)) not in allowed
        and pattern.search(path.read_text("utf-8"))
    ]

    assert [] == offenders


def test_the_name_of_a_type_stands_for_one_thing() -> None:
    """Classes, and other names for types (`Scan = Callable[…]`), which are written like classes."""
    types: dict[str, list[str]] = {}
    for path in SOURCE.rglob("*.py"):
        for name in read(path)[1]:
            types.setdefault(name, []).append(str(path.relative_to(SOURCE)))

    assert {} == {name: files for name, files in types.items() if len(files) > 1}


def test_a_command_calls_api_and_nothing_below_it() -> None:
    allowed = {"api", "repo", "service", "cli", "__version__", *FLOOR}
    terminal = {
        ("log.py", "views"),  # the drawing of a graph
        ("resume.py", "formats"),  # losses of a run and of an answer are told alike
    }
    strangers = {(file, other) for file, other in imports("cli") if other not in allowed}

    assert terminal == strangers
