"""Sessions with a secret in them, in a store of their own, and the commands in this process."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import harken
from harken.cli import main

SECRET = "sk-" + "ant-api03-" + "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY"  # nobody's
FIRST = "11111111-aaaa-bbbb-cccc-000000000001"
SECOND = "22222222-aaaa-bbbb-cccc-000000000002"


def write_session(path: Path, session: str, *more: str, secret: str = SECRET) -> Path:
    """A session of Claude Code that speaks of the secret: in a prompt, a reply and a tool's JSON."""
    said = [
        ("user", f"use the key {secret} please"),
        ("assistant", "I will"),
        ("user", "what was it?"),
        ("assistant", f"it was {json.dumps({'key': secret})}"),
        *(("user" if n % 2 == 0 else "assistant", text) for n, text in enumerate(more)),
    ]
    lines = []
    for n, (role, text) in enumerate(said):
        content = text if role == "user" else [{"type": "text", "text": text}]
        record = {
            "type": role,
            "uuid": f"00000000-0000-0000-0000-{n:012d}",
            "parentUuid": f"00000000-0000-0000-0000-{n - 1:012d}" if n else None,
            "sessionId": session,
            "timestamp": f"2026-01-01T00:{n // 60:02d}:{n % 60:02d}.000Z",
            "cwd": "/work",
            "version": "2.0.0",
            "message": {"role": role, "content": content, "id": f"m{n}", "model": "claude-x"},
        }
        lines.append(json.dumps(record))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def files(tmp_path):
    """Two sessions, of which the second began as a copy of the first."""
    folder = tmp_path / "runtime"
    folder.mkdir()
    return [
        write_session(folder / "a.jsonl", FIRST, "go on", "done"),
        write_session(folder / "b.jsonl", SECOND, "go on", "done", "again"),
    ]


@pytest.fixture
def location(tmp_path):
    """Where the store lies: alone in its folder."""
    (tmp_path / "kept").mkdir()
    return tmp_path / "kept" / "store.db"


@pytest.fixture
def repo(location, files):
    """The sessions, imported."""
    with harken.open(location) as repo:
        assert ["new", "new"] == [one.status for one in repo.import_sessions(files)]
        yield repo


@pytest.fixture
def run(location, monkeypatch):
    """A command, and what it printed."""

    def call(*args, stdin="", store=location, columns=""):
        monkeypatch.setenv("COLUMNS", columns)  # a list is cut to a window only where there is one
        out, err = io.TextIOWrapper(io.BytesIO()), io.StringIO()
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        with pytest.raises(SystemExit) as ended:
            main(["--store", str(store), *map(str, args)])
        out.flush()
        monkeypatch.undo()
        return SimpleNamespace(code=ended.value.code or 0, out=out.buffer.getvalue().decode(), err=err.getvalue())

    return call


def leaks(location: Path, secret: str = SECRET) -> list[str]:
    """The files of the store's folder, and the frames in it, that have sixteen bytes of the secret."""
    data = secret.encode()
    pieces = [data[at : at + 16] for at in range(len(data) - 15)]
    found = {p.name for p in location.parent.iterdir() if any(one in p.read_bytes() for one in pieces)}
    with harken.open(location) as repo:
        numbers = repo.store.db.all("SELECT n FROM frames UNION ALL SELECT -slot FROM loose")
        held = {f"frame {n}": repo.store.frame(n) for (n,) in numbers}
        held |= {row.session: row.state + row.title.encode() for row in repo.store.sessions()}
    return sorted(found | {name for name, content in held.items() if any(one in content for one in pieces)})
