"""Harken's command line, called in this process."""

from __future__ import annotations

import contextlib
import io
import json
from typing import Any

from harken.cli import main


def command(*words: str) -> list[dict[str, Any]]:
    """Run a command that must end well, and read its JSON lines."""
    return [json.loads(line) for line in printed(*words).splitlines() if line.startswith(b"{")]


def printed(*words: str) -> bytes:
    """Run a command that must end well; what it prints."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(list(words))
        except SystemExit as end:
            code = end.code
    out.flush()
    assert not code, f"harken {' '.join(words)} ended with {code}: {err.getvalue()}"
    return out.buffer.getvalue()  # type: ignore[attr-defined]
