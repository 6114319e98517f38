"""Where a session that Harken writes has to lie for its runtime to find it, and the command that goes on from there.

Nothing here is built from what a transcript says: the id is new, and the folder's name is made from the folder the
runtime is going to work in.

Claude Code: `<config>/projects/<slug of the working folder>/<session>.jsonl`; continued by `claude --resume ID`.
Codex: `<home>/sessions/YYYY/MM/DD/rollout-<time>-<session>.jsonl`, the id a version-7 UUID; `codex resume ID`.
"""

from __future__ import annotations

import contextlib
import os
import re
import unicodedata
import uuid
from pathlib import Path

import msgspec

from harken import clock
from harken.errors import BadRequest, HarkenError

RUNTIMES = {"claude-code": "claude-code-v1", "codex": "codex-v1"}
"""The runtimes a conversation can be continued in, and the format each reads."""

SLUG_LIMIT = 200
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9]")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a new session goes, and how it is continued."""

    runtime: str
    session: str
    path: Path
    command: tuple[str, ...]
    environment: dict[str, str]
    """What has to be set for the runtime to look there, where that is not its usual home."""
    cwd: Path
    time: int
    """The instant the session is said to begin."""


def slug(folder: Path) -> str:
    """Claude Code's name for a working folder: everything but letters and digits becomes a dash."""
    text = unicodedata.normalize("NFC", str(folder))
    plain = _NOT_PLAIN.sub("-", text)
    return plain if len(plain) <= SLUG_LIMIT else f"{plain[:SLUG_LIMIT]}-{_base36(_hash(text))}"


def _hash(text: str) -> int:
    """The 32-bit string hash that tells long names apart, over UTF-16 code units."""
    units = text.encode("utf-16-le", "surrogatepass")
    value = 0
    for at in range(0, len(units), 2):
        value = (value * 31 + int.from_bytes(units[at : at + 2], "little")) & 0xFFFFFFFF
    return abs(value - (1 << 32) if value >= 1 << 31 else value)


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"


def time_ordered_uuid(instant: int) -> str:
    """A version-7 UUID: the instant in milliseconds, then chance."""
    number = (instant // 1000 & (1 << 48) - 1) << 80 | int.from_bytes(os.urandom(10), "big")
    number = number & ~(0xF << 76) | 7 << 76
    return str(uuid.UUID(int=number & ~(3 << 62) | 2 << 62))


def claude_config(home: Path) -> Path:
    """Claude Code's folder for a `--home`: either the user's home, or the folder itself."""
    if home.name == ".claude" or ((home / "projects").is_dir() and not (home / ".claude").is_dir()):
        return home
    return home / ".claude"


def codex_home(home: Path) -> Path:
    """Codex's folder for a `--home`: the folder itself, unless it is a home that has a `.codex` in it."""
    return home / ".codex" if (home / ".codex").is_dir() else home


def place(runtime: str, *, home: Path, cwd: Path, now: clock.Clock = clock.now, usual: bool = False) -> Place:
    """A place for a new session. `home` is the runtime's own folder; `usual` says that it looks there anyway."""
    if runtime not in RUNTIMES:
        raise BadRequest(f"a conversation cannot be continued in {runtime!r}", hint="in: " + ", ".join(RUNTIMES))
    instant = now()
    cwd = Path(os.path.realpath(cwd))
    if runtime == "claude-code":
        session = str(uuid.uuid4())
        path = home / "projects" / slug(cwd) / f"{session}.jsonl"
        command: tuple[str, ...] = ("claude", "--resume", session)
        variable = "CLAUDE_CONFIG_DIR"
    else:
        session = time_ordered_uuid(instant)
        day = clock.to_datetime(instant)
        path = (
            home
            / "sessions"
            / f"{day:%Y}"
            / f"{day:%m}"
            / f"{day:%d}"
            / f"rollout-{day:%Y-%m-%dT%H-%M-%S}-{session}.jsonl"
        )
        command = ("codex", "resume", session)
        variable = "CODEX_HOME"
    return Place(
        runtime=runtime,
        session=session,
        path=path,
        command=command,
        environment={} if usual else {variable: str(home)},
        cwd=cwd,
        time=instant,
    )


def write_new(path: Path, data: bytes) -> None:
    """Write a file that is there whole or not at all, for its owner's eyes alone."""
    scratch = path.with_name(f".harken-{uuid.uuid4().hex}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            scratch.rename(path)
        except BaseException:
            with contextlib.suppress(OSError):
                scratch.unlink()
            raise
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as problem:
        raise HarkenError(
            f"the session could not be written to {path}: {problem.strerror}", hint="--home DIR names another place"
        ) from problem
