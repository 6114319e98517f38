"""Conversations to measure with: generated ones of real prose and code, and lines of recorded sessions.

A generated turn is four messages of about 4 KB in all, taken from Python's own library; no stretch of text is used
twice, so that nothing compresses better than a real conversation would. A recorded turn is lines of Claude Code
sessions, about 5 KB of them: from the folder that `HARKEN_CORPUS` names, else from `tests/recorded`.
"""

from __future__ import annotations

import ast
import itertools
import json
import os
import re
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Turn = list[dict[str, Any]]


def sources() -> Iterator[tuple[str, str]]:
    """The library's modules, each once, in an order that does not change."""
    root = Path(sysconfig.get_paths()["stdlib"])
    for path in sorted(root.rglob("*.py")):
        if "site-packages" not in path.parts and path.stat().st_size < 300_000:
            try:
                yield str(path.relative_to(root)), path.read_text()
            except UnicodeDecodeError:
                continue


def prose() -> Iterator[str]:
    """Paragraphs of documentation strings."""
    for _, text in sources():
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                said = re.sub(r"\s*\n\s*", " ", ast.get_docstring(node) or "")
                yield from (said[at : at + 600] for at in range(0, len(said) - 80, 600))


def excerpts(size: int) -> Iterator[tuple[str, int, str]]:
    """Stretches of code: the file, the first line, the text."""
    for name, text in sources():
        lines = text.splitlines()
        at = 0
        while at < len(lines):
            end, length = at, 0
            while end < len(lines) and length < size:
                length += len(lines[end]) + 1
                end += 1
            if length > size // 2:
                yield name, at + 1, "\n".join(lines[at:end])
            at = end


def conversation(count: int) -> list[Turn]:
    """That many turns: a question, a call, what the tool showed, an answer."""
    said, shown = prose(), excerpts(1900)
    turns: list[Turn] = []
    for n in range(count):
        try:
            question, answer = next(said), next(said)
            name, line, code = next(shown)
        except StopIteration:
            raise SystemExit(f"the library holds only {len(turns)} turns of text") from None
        numbered = "\n".join(f"{line + i:6d}\t{text}" for i, text in enumerate(code.splitlines()))
        call = {
            "id": f"call_{n:05d}",
            "type": "function",
            "function": {"name": "Read", "arguments": json.dumps({"path": name, "offset": line})},
        }
        turns.append(
            [
                {"role": "user", "content": f"{question} What does {name} do about it?"},
                {"role": "assistant", "content": f"I will look at {name} from line {line}.", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": call["id"], "content": numbered},
                {"role": "assistant", "content": f"{answer}\n\n```python\n{code[:700]}\n```"},
            ]
        )
    return turns


def recorded(count: int, size: int = 4000) -> list[bytes]:
    """That many turns of real records; the lines are used again where there are too few."""
    lines = [line for path in sessions() for line in path.read_bytes().splitlines(keepends=True) if len(line) < 20_000]
    turns, held = [], b""
    for line in itertools.islice(itertools.cycle(lines), len(lines) * (1 + count)):
        held += line
        if len(held) >= size:
            turns.append(held)
            held = b""
        if len(turns) == count:
            break
    return turns


def sessions() -> list[Path]:
    """Recorded sessions of Claude Code."""
    corpus = os.environ.get("HARKEN_CORPUS", "")
    folder = Path(corpus) / "claude_code" if corpus else Path(__file__).parent.parent / "tests" / "recorded"
    return [path for path in sorted(folder.rglob("*.jsonl")) if b'"sessionId"' in path.read_bytes()[:65536]]


def encoded(turn: Turn) -> bytes:
    """The turn as JSON lines."""
    return b"".join(json.dumps(message, ensure_ascii=False).encode() + b"\n" for message in turn)


def said(n: int) -> bytes:
    """A small turn of Claude Code: a question and an answer."""
    question = {"role": "user", "content": f"question {n} about the store"}
    answer = {"role": "assistant", "content": [{"type": "text", "text": f"answer {n}, which is short"}]}
    records = ({"type": part["role"], "uuid": f"{n}-{part['role']}", "message": part} for part in (question, answer))
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)
