"""The drawing in `errors.py` is compared with the classes."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import harken
from harken import errors
from harken.errors import HarkenError

ROW = re.compile(r"^( *)[*+] (\w+) +exit (\d+)  http (\d+)", re.M)


def drawn() -> list[tuple[str, str | None, int, int]]:
    rows, path = [], []
    for indent, name, code, status in ROW.findall(errors.__doc__ or ""):
        depth = len(indent) // 2
        path[depth:] = [name]
        rows.append((name, path[depth - 1] if depth else None, int(code), int(status)))
    return rows


def test_every_error_is_drawn_where_it_stands_with_its_numbers() -> None:
    classes = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, HarkenError)]

    expected = {
        (cls.__name__, None if cls is HarkenError else cls.__bases__[0].__name__, cls.exit_code, cls.http_status)
        for cls in classes
    }

    assert expected == set(drawn())


def test_an_error_carries_a_hint_for_the_reader() -> None:
    problem = errors.NotFound("no commit 'x'", hint="`harken log --all` lists every commit")

    assert ("no commit 'x'", "`harken log --all` lists every commit") == (str(problem), problem.hint)


def test_a_code_never_changes() -> None:
    """Programs rely on these; a new error adds a line."""
    codes = {
        value.__name__: value.code
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, HarkenError)
    }

    assert {
        "HarkenError": "harken_error",
        "BadRequest": "bad_request",
        "Ambiguous": "ambiguous",
        "NotFound": "not_found",
        "Evicted": "evicted",
        "Conflict": "conflict",
        "Locked": "locked",
        "BadRecord": "bad_record",
        "Poisoned": "poisoned",
        "ModelFailed": "model_failed",
        "Waiting": "waiting",
        "Corrupt": "corrupt",
    }.items() <= codes.items()


SOURCE = Path(harken.__file__).parent
PACKAGES = sorted(path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists() and path.name != "testing")
REASONS = {"events", "formats"}
"""Here a `BadRecord` is the reason that is kept beside the bytes of a record nobody could read."""


@pytest.mark.parametrize("package", PACKAGES)
def test_every_error_has_a_hint(package: str) -> None:
    names = {name for name, value in vars(errors).items() if isinstance(value, type)}
    if package in REASONS:
        names.remove("BadRecord")
    without = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path in (SOURCE / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names
        if not any(keyword.arg == "hint" for keyword in node.keywords)
    ]

    assert [] == without
