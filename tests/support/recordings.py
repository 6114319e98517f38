"""The recorded sessions in `tests/recorded/`, and signatures of what went to a model.

A signature has the shape of a request in plain sight (roles, kinds of blocks, ids, lengths) and a digest of every
text; two are equal when the requests are. `scripts/record` makes the recordings.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "recorded"
CORPUS = Path(os.environ["HARKEN_CORPUS"]) if os.environ.get("HARKEN_CORPUS") else None
"""A folder with more of the same: sessions that other people held. Without it there are fewer cases, and no skip."""
Signature = list[dict[str, Any]]
_HEAD = re.compile(r"<[a-z_-]+>")


@dataclass(frozen=True)
class RecordedSession:
    """A session that a program wrote, and what a program sent after resuming it."""

    runtime: str
    version: str
    scenario: str
    session: str
    path: Path
    home: Path
    """The runtime's own folder, as far as it was recorded."""
    model: str
    steps: tuple[int, ...]
    """The number of lines the file had after each turn."""
    sent: Signature
    agent: bool = False
    """Whether it is a sub-agent's; then `sent` is the last request it made itself."""

    def growing(self) -> list[bytes]:
        """The file as it was after each turn."""
        lines = self.path.read_bytes().splitlines(keepends=True)
        return [b"".join(lines[:count]) for count in self.steps]

    @property
    def name(self) -> str:
        """For the reader of a test report."""
        return f"{self.runtime}-{self.version}-{self.scenario}" + (f"-{self.path.stem[-6:]}" if self.agent else "")


def recorded(runtime: str = "", *, agents: bool = False) -> list[RecordedSession]:
    """The recordings of one runtime, or of both; sub-agents only where asked for."""
    found: list[RecordedSession] = []
    for manifest in sorted(FOLDER.glob("*/*/recording.json")):
        told = json.loads(manifest.read_text())
        if runtime in ("", told["runtime"]):
            found += [_session(manifest.parent, told, each) for each in told["sessions"]]
            if agents:
                found += [_session(manifest.parent, told, each, agent=True) for each in told["agents"]]
    return found


def _session(folder: Path, told: dict[str, Any], each: dict[str, Any], *, agent: bool = False) -> RecordedSession:
    return RecordedSession(
        runtime=told["runtime"],
        version=told["version"],
        scenario=told["scenario"],
        session=each["session"],
        path=folder / each["path"],
        home=folder,
        model=each.get("model", ""),
        steps=tuple(each.get("steps", ())),
        sent=each["sent"],
        agent=agent,
    )


def session_files(runtime: str) -> list[Path]:
    """Every session file of a runtime that is at hand, sub-agents' too."""
    return [path for folder in session_folders(runtime) for path in sorted(folder.rglob("*.jsonl"))]


def streams(runtime: str) -> list[Path]:
    """What a runtime printed while it ran, as JSON lines."""
    found = sorted(FOLDER.glob(f"streams/{runtime}-*.jsonl"))
    return found + (corpus_files("claude_stream_json/**/*.json*") if runtime == "claude-code" else [])


def session_folders(runtime: str) -> list[Path]:
    """Where they lie."""
    found = sorted(FOLDER.glob(f"{runtime}-*"))
    return [*found, CORPUS / _IN_CORPUS[runtime]] if CORPUS else found


_IN_CORPUS = {"claude-code": "claude_code", "codex": "codex_rollout"}


def corpus_files(pattern: str) -> list[Path]:
    """Files of the corpus, none where there is no corpus."""
    return sorted(CORPUS.glob(pattern)) if CORPUS else []


def named(path: Path) -> str:
    """A file's name in a test report."""
    return "/".join(path.relative_to(FOLDER).parts[:2]) + path.stem[-6:] if FOLDER in path.parents else path.name[-40:]


def digest(value: Any) -> str:
    """Twelve digits that stand for a text, or for any JSON value."""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def sign_messages(messages: list[dict[str, Any]]) -> Signature:
    """The messages of an Anthropic request."""
    return [
        {"role": each["role"], "blocks": [_block(block) for block in _blocks(each["content"])]} for each in messages
    ]


def _blocks(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _block(block: dict[str, Any]) -> dict[str, Any]:
    match block["type"]:
        case "text":
            return {"type": "text", **_text(block["text"])}
        case "thinking":
            return {"type": "thinking", **_text(block["thinking"])}
        case "tool_use":
            return {"type": "tool_use", "id": block["id"], "name": block["name"], "input": digest(block["input"])}
        case "tool_result":
            content = block.get("content", "")
            said = content if isinstance(content, str) else [_block(part) for part in content]
            told = _text(said) if isinstance(said, str) else {"content": said}
            return {"type": "tool_result", "id": block["tool_use_id"], "error": block.get("is_error") is True, **told}
        case "image":
            return {"type": "image", "sha": digest(block["source"].get("data", ""))}
    return {"type": block["type"], "sha": digest({k: v for k, v in block.items() if k != "cache_control"})}


def _text(text: str) -> dict[str, Any]:
    head = _HEAD.match(text)
    return {"len": len(text), "sha": digest(text)} | ({"head": head[0]} if head else {})


def sign_items(items: list[dict[str, Any]]) -> Signature:
    """The input items of an OpenAI Responses request."""
    return [_item(item) for item in items]


def _item(item: dict[str, Any]) -> dict[str, Any]:
    known = {key: item[key] for key in ("type", "role", "name", "namespace", "call_id") if item.get(key) is not None}
    match item["type"]:
        case "message":
            return known | {"content": [_part(part) for part in item["content"]]}
        case "reasoning":
            return known | {"sha": digest([item.get("summary"), item.get("encrypted_content")])}
        case "function_call":
            return known | _text(item["arguments"])
        case "custom_tool_call":
            return known | _text(item["input"])
        case "function_call_output" | "custom_tool_call_output":
            output = item["output"]
            return known | (_text(output) if isinstance(output, str) else {"content": [_part(part) for part in output]})
    return known | {"sha": digest({key: value for key, value in item.items() if key != "id"})}


def _part(part: dict[str, Any]) -> dict[str, Any]:
    if part["type"] == "input_image":
        return {"type": "input_image", "sha": digest(part["image_url"])}
    return {"type": part["type"], **_text(part.get("text") or "")}
