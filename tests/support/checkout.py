"""A test run leaves the checkout as it found it: hooks of pytest that fail a run which made a file in it.

Caches of the tools are no part of the checkout. Whoever makes a file there by hand while the tests run is told, too.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

CACHES = frozenset(
    {".git", ".venv", ".tools", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"}
)
_before = pytest.StashKey[set[str]]()


def files(root: Path) -> set[str]:
    """Every file of a checkout, without the caches of the tools."""
    found = set()
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in CACHES]
        found |= {os.path.relpath(os.path.join(folder, name), root) for name in names}
    return {name for name in found if not name.startswith((".coverage", ".tools"))}


def pytest_sessionstart(session: pytest.Session) -> None:
    """Take note of what is there; one process does it for all that share the tests."""
    if not hasattr(session.config, "workerinput"):
        session.config.stash[_before] = files(session.config.rootpath)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run that has left something behind."""
    before = session.config.stash.get(_before, None)
    made = sorted(files(session.config.rootpath) - before) if before is not None else []
    if made:
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.write_line(f"ERROR: the tests made files in the checkout: {', '.join(made[:20])}", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
