"""Nothing outside a runtime's own folder (and its format's) asks for a runtime by name.

A runtime that comes through the entry point then works everywhere ours do."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import harken
from harken import runtimes

ROOT = Path(harken.__file__).parent
REGISTRY = {"runtimes/base.py", "formats/base.py"}
"""The two lists of what is ours."""


def own(name: str) -> tuple[str, ...]:
    """The places where a runtime may speak of itself."""
    folder = name.replace("-", "_")
    return (f"runtimes/{folder}/", f"formats/{folder}", f"formats/{folder.split('_')[0]}_stream.py")


@cache
def parsed(path: Path) -> ast.Module:
    """What stands in a file of the code; it is read once for all these tests."""
    return ast.parse(path.read_text())


@cache
def texts(path: Path) -> list[tuple[int, str]]:
    """Every string in the code, but for docstrings and help."""
    return list(_texts(parsed(path)))


def _texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    spoken = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in spoken:
            yield node.lineno, node.value


def test_no_code_asks_for_a_runtime_by_name() -> None:
    found = []
    for name in ("claude-code", "codex"):
        runtime = runtimes.get(name)
        assert runtime.launch is not None
        names = {name, runtime.launch.program, runtime.home({"HOME": "/"}).name, *runtime.environment(Path("/"))}
        for path in sorted(ROOT.rglob("*.py")):
            where = path.relative_to(ROOT).as_posix()
            if where in REGISTRY or where.startswith((*own(name), "testing/")):
                continue
            found += [f"{where}:{line}: {text}" for line, text in texts(path) if text in names]
    assert [] == found


def test_a_runtimes_folder_is_imported_by_nobody() -> None:
    folders = {
        f"harken.runtimes.{path.name}" for path in (ROOT / "runtimes").iterdir() if (path / "__init__.py").exists()
    }
    assert {"harken.runtimes.claude_code", "harken.runtimes.codex"} <= folders
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ImportFrom) and node.module:
                assert not any(node.module.startswith(folder) for folder in folders), f"{path}:{node.lineno}"
