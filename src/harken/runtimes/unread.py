"""Programs whose sessions are known and cannot be read yet: an import names them instead of passing them over.

Each is told by what its files begin with, and where that is thin by how they are called, too. Where a program keeps its
sessions in a place of its own, they are counted there by their names alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from harken.formats.kit.jsonl import Record, parse_beginning, read_head

from .base import Environment, user_home
from .memory import ImportResult, skipped

HINT = "its bytes stay where they are; `harken doctor` lists the runtimes whose sessions can be imported"
_SQLITE = b"SQLite format 3\0"


class FileStart(msgspec.Struct, frozen=True):
    """What a file begins with, and where it lies."""

    path: Path
    head: bytes
    lines: list[Record]
    """Its first objects, where it is lines."""
    document: Any
    """What it begins with, where it is one value."""

    @property
    def first(self) -> Record:
        """Its first object."""
        return self.lines[0] if self.lines else {}

    def has(self, *keys: str) -> bool:
        """Whether it begins with an object that has these keys."""
        return isinstance(self.document, dict) and self.document.keys() >= set(keys)


class UnreadProgram(msgspec.Struct, frozen=True, kw_only=True):
    """A program whose sessions cannot be read yet."""

    name: str
    label: str
    """As people call it."""
    claim: Callable[[FileStart], bool]
    places: tuple[str, ...] = ()
    """Below the user's home, patterns of one file for each session."""
    called: str = ""
    """How its files are called, where no session that can be read is called like that."""
    told: str = ""
    """What is said of such a file, where that is something else."""

    @property
    def why(self) -> str:
        """What is said of a file of its."""
        return self.told or f"{self.label} session, not read yet"


def recognise(head: bytes, path: Path) -> UnreadProgram | None:
    """Whose file it is, of those that nobody can read."""
    if not head:
        return None
    start = FileStart(path, head, list(read_head(head, most=3)), parse_beginning(head))
    return next((program for program in PROGRAMS if program.claim(start)), None)


def not_looked_at(source: str) -> ImportResult:
    """A file in a folder that was named, which is not called like a session that can be read; whose it is, its name may
    tell."""
    if (program := next((one for one in PROGRAMS if one.called and source.endswith(one.called)), None)) is not None:
        return skipped(source, program.why, program.name)
    return skipped(source, "not looked at, since no session is called like that; name the file to import it")


def count_at_home(environ: Environment) -> dict[str, int]:
    """How many sessions each of the programs has left where it keeps them, by its label; nothing is opened."""
    home = user_home(environ)
    found = {program.label: _count(home, program.places) for program in PROGRAMS}
    return {label: count for label, count in found.items() if count}


def _count(home: Path, patterns: Iterable[str]) -> int:
    try:
        return len({path for pattern in patterns for path in home.glob(pattern)})
    except OSError:
        return 0  # it cannot be looked at, and is none of ours


# -- how each is told --------------------------------------------------------------------------------------------------


def _kimi_code(start: FileStart) -> bool:
    return start.first.get("type") == "metadata" and {"protocol_version", "created_at"} <= start.first.keys()


def _kimi_cli(start: FileStart) -> bool:
    if start.first.get("type") == "metadata" and "protocol_version" in start.first:
        return "created_at" not in start.first
    if start.first.get("role") in ("_system_prompt", "_checkpoint", "_usage"):
        return True
    return start.path.name == "context.jsonl" and ".kimi" in start.path.parts and "role" in start.first


def _vibe(start: FileStart) -> bool:
    if start.has("session_id", "start_time", "git_commit", "environment"):
        return True
    return start.path.name == "messages.jsonl" and {"role", "message_id"} <= start.first.keys()


def _cline(start: FileStart) -> bool:
    if start.has("version", "updated_at", "agent", "messages"):
        return True
    return start.path.name == "api_conversation_history.json" and isinstance(start.document, list)


def _droid(start: FileStart) -> bool:
    return start.first.get("type") == "session_start" and {"id", "title", "cwd"} <= start.first.keys()


def _openhands(start: FileStart) -> bool:
    return start.path.name == "base_state.json" and start.has("id", "agent")


def _hermes(start: FileStart) -> bool:
    if start.head.startswith(_SQLITE):
        return start.path.name == "state.db" and (".hermes" in start.path.parts or b"session_model_usage" in start.head)
    return start.has("session_id", "model", "platform", "messages")


def _mini(start: FileStart) -> bool:
    if isinstance(start.document, list):
        return start.path.name.endswith(".traj.json") and "role" in start.first
    about = start.document.get("info") if isinstance(start.document, dict) else None
    return isinstance(about, dict) and "model_stats" in about and ("config" in about or "mini_version" in about)


def _cursor(start: FileStart) -> bool:
    return bool(start.lines) and start.first.keys() == {"role", "message"} and isinstance(start.first["message"], dict)


def _amp(start: FileStart) -> bool:
    return start.has("v", "id", "created", "messages") and str(start.document["id"]).startswith("T-")


def _copilot_vs_code(start: FileStart) -> bool:
    first = start.first.get("v") if start.first.get("kind") == 0 else start.first if start.has("version") else None
    return isinstance(first, dict) and {"sessionId", "requests"} <= first.keys()


def _windsurf(start: FileStart) -> bool:
    kind = start.first.get("type")
    return isinstance(kind, str) and {"status", "type"} <= start.first.keys() and kind in start.first


def _letta(start: FileStart) -> bool:
    if start.head[:200].lstrip().startswith(b'"{') and b'\\"memory_blocks\\"' in start.head:
        return True  # some are kept as a text in a text
    agents = start.document.get("agents") if isinstance(start.document, dict) else None
    return isinstance(agents, list) and bool(agents) and isinstance(agents[0], dict) and "memory_blocks" in agents[0]


def _opencode_piece(start: FileStart) -> bool:
    """`message/SESSION/MESSAGE.json` and `part/MESSAGE/PART.json`; older ones lack a folder, or have one more."""
    folders = {folder.name for folder in start.path.parents[:3]}
    keys = {"message": "role", "part": "type"}
    return start.path.suffix == ".json" and any(name in folders and start.has(keys[name]) for name in keys)


def _saved_chat(start: FileStart) -> bool:
    """`checkpoint-TAG.json` of Gemini CLI and Qwen Code: what the model is given, without ids and times."""
    found = start.document.get("history") if isinstance(start.document, dict) else start.document
    contents = found if isinstance(found, list) and start.path.name.startswith("checkpoint-") else []
    return any(isinstance(one, dict) and {"role", "parts"} <= one.keys() for one in contents[:1])


PROGRAMS = (
    UnreadProgram(
        name="opencode-storage",
        label="OpenCode before 1.2",
        claim=_opencode_piece,
        told="a piece of a session of OpenCode before 1.2, whose own file was not found or is another "
        "(session/PROJECT/SESSION.json)",
    ),
    UnreadProgram(
        name="gemini-checkpoint",
        label="saved chats of Gemini CLI",
        claim=_saved_chat,
        told="a chat that was saved by hand in Gemini CLI or Qwen Code (/chat save), not read yet",
    ),
    UnreadProgram(
        name="codex-json",
        label="the first Codex",
        claim=lambda start: start.has("session", "items") and start.path.name.startswith("rollout-"),
        told="a session of the first Codex, which kept one JSON document each, not read yet",
    ),
    UnreadProgram(
        name="copilot-cli-json",
        label="the first Copilot CLI",
        claim=lambda start: start.has("sessionId") and (start.has("chatMessages") or start.has("timeline")),
        places=(".copilot/history-session-state/*.json",),
        told="a session of the first Copilot CLI, which kept one JSON document each, not read yet",
    ),
    UnreadProgram(
        name="kimi-code",
        label="Kimi Code",
        claim=_kimi_code,
        places=(".kimi-code/sessions/*/*/agents/main/wire.jsonl",),
    ),
    UnreadProgram(name="kimi-cli", label="kimi-cli", claim=_kimi_cli, places=(".kimi/sessions/*/*/context.jsonl",)),
    UnreadProgram(
        name="vibe",
        label="Mistral Vibe",
        claim=_vibe,
        places=(".vibe/logs/session/unified/*/meta.json", ".vibe/logs/session/session_*/meta.json"),
    ),
    UnreadProgram(name="cline", label="Cline", claim=_cline, places=(".cline/data/sessions/*/[0-9]*.messages.json",)),
    UnreadProgram(
        name="continue",
        label="Continue",
        claim=lambda start: start.has("sessionId", "workspaceDirectory", "history"),
        places=(".continue/sessions/*-*-*-*-*.json",),
    ),
    UnreadProgram(
        name="droid",
        label="Factory Droid",
        claim=_droid,
        places=(".factory/sessions/*.jsonl", ".factory/sessions/*/*.jsonl"),
    ),
    UnreadProgram(
        name="openhands",
        label="OpenHands",
        claim=_openhands,
        places=(".openhands/conversations/*/base_state.json",),
    ),
    UnreadProgram(name="hermes", label="Hermes", claim=_hermes, places=(".hermes/state.db",)),
    UnreadProgram(
        name="mini-swe-agent",
        label="mini-swe-agent",
        claim=_mini,
        places=(".config/mini-swe-agent/*.traj.json",),
    ),
    UnreadProgram(
        name="aider",
        label="aider",
        claim=lambda start: start.head[:64].lstrip().startswith(b"# aider chat started at"),
        called=".aider.chat.history.md",
    ),
    UnreadProgram(
        name="cursor", label="Cursor", claim=_cursor, places=(".cursor/projects/*/agent-transcripts/**/*.jsonl",)
    ),
    UnreadProgram(name="amp", label="Amp", claim=_amp, places=(".local/share/amp/threads/T-*.json",)),
    UnreadProgram(
        name="goose",
        label="Goose",
        claim=lambda start: {"working_dir", "description", "message_count"} <= start.first.keys(),
        places=(".local/share/goose/sessions/*.jsonl",),
    ),
    UnreadProgram(
        name="copilot-vs-code",
        label="Copilot in VS Code",
        claim=_copilot_vs_code,
        places=(".config/Code/User/workspaceStorage/*/chatSessions/*.json*",),
    ),
    UnreadProgram(name="windsurf", label="Windsurf", claim=_windsurf),
    UnreadProgram(name="letta", label="Letta", claim=_letta, called=".af"),
    UnreadProgram(
        name="adk",
        label="Google ADK",
        claim=lambda start: start.has("id", "events") and (start.has("app_name") or start.has("context")),
    ),
    UnreadProgram(
        name="swe-agent", label="SWE-agent", claim=lambda start: start.has("trajectory", "history"), called=".traj"
    ),
    UnreadProgram(
        name="inspect", label="Inspect AI", claim=lambda start: start.has("version", "status", "eval"), called=".eval"
    ),
)
"""In the order in which they are asked."""
