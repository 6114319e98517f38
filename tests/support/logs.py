"""The four example logs that the session log was designed around, in every dialect it has been written in.

They lie in `tests/golden/session-log/`: the ids and the links are those of the specification, the words are ours.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

Line = dict[str, Any]
GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "session-log"


def example(number: int, dialect: str = "v2") -> list[Line]:
    """An example log, from its file."""
    path = GOLDEN / dialect / f"{number}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


CAFE, INNER_VOICE, RESOURCES, WATCHER = (example(number) for number in (1, 2, 3, 4))
TALKS = {"cafe": CAFE, "inner voice": INNER_VOICE, "resources": RESOURCES, "watcher": WATCHER}


def as_v1(lines: list[Line]) -> list[Line]:
    """The same talk as v1 wrote it: other names for the links, no cause of an agent, no maker of a text."""
    names = {"substance": "content_id", "cause": "caused_by"}
    dropped = {"agent_created": "cause", "piece_of_text": "agent_id"}
    return [
        {names.get(key, key): value for key, value in line.items() if dropped.get(line["event_type"]) != key}
        for line in lines
    ]


def as_smallchat(lines: list[Line]) -> list[Line]:
    """The same talk as smallchat wrote it, with its decimal ids."""
    numbers = {line["message_id"]: str(at) for at, line in enumerate(lines)}
    makers = {line["message_id"]: line["agent_id"] for line in lines}
    calls = {line["message_id"]: made[0]["id"] for line in lines if (made := line.get("tool_calls"))}
    return [_as_smallchat(line, numbers, makers, calls) for line in lines]


def _as_smallchat(line: Line, numbers: dict[str, str], makers: dict[str, str], calls: dict[str, str]) -> Line:
    shipped = {("agent" if key == "agent_id" else key): value for key, value in line.items()}
    shipped["message_id"] = numbers[line["message_id"]]
    if line["event_type"] == "piece_of_text":
        shipped["event_type"] = "fragment"
    if substance := line.get("substance"):
        shipped["substance"] = numbers.get(substance, "999")
    cause = line.get("cause")
    if cause:
        shipped["cause"] = f"{numbers[cause]}.{calls[cause]}"
    if line["event_type"] == "agent_created":
        shipped["parent"] = makers[cause] if cause else "user"
        shipped["role"] = "child" if cause else "primary"
    return shipped


def as_bytes(lines: list[Line], *, between: str = "\n") -> bytes:
    return "".join(json.dumps(line, ensure_ascii=False) + between for line in lines).encode()


def spec_examples() -> list[tuple[str, str]]:
    """The example logs of the specifications themselves, where these lie beside the corpus."""
    corpus = os.environ.get("HARKEN_CORPUS")
    if not corpus:
        return []
    found = []
    for path in sorted((Path(corpus).parent / "spec").glob("session-log*.md")):
        blocks = re.findall(r"```jsonl\n(.*?)```", path.read_text(), re.S)
        found += [(f"{path.stem}-{at}", block) for at, block in enumerate(blocks)]
    return found
