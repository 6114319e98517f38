"""The four talks that the session log was designed around, in every dialect it has been written in.

The ids and the links are those of the specification, the words are ours.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

Line = dict[str, Any]
MODEL = "example/model-1"


def created(message_id: str, agent_id: str, cause: str | None = None, name: str | None = None) -> Line:
    line = {"message_id": message_id, "event_type": "agent_created", "agent_id": agent_id}
    line |= {key: value for key, value in (("cause", cause), ("name", name)) if value}
    return line | {"language_model": MODEL}


def entry(message_id: str, agent_id: str, role: str, content: str, substance: str | None = None) -> Line:
    line = {"message_id": message_id, "event_type": "transcript_entry", "agent_id": agent_id, "role": role}
    return line | {"content": content} | ({"substance": substance} if substance else {})


def call(message_id: str, agent_id: str, call_id: str, tool: str, **arguments: Any) -> Line:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    line = {"message_id": message_id, "event_type": "transcript_entry", "agent_id": agent_id, "role": "assistant"}
    return line | {"tool_calls": [{"id": call_id, "function": function}]}


def result(message_id: str, agent_id: str, call_id: str, content: str) -> Line:
    return entry(message_id, agent_id, "tool", content) | {"tool_call_id": call_id}


def text(message_id: str, agent_id: str, content: str, cause: str) -> Line:
    line = {"message_id": message_id, "event_type": "piece_of_text", "agent_id": agent_id, "content": content}
    return line | {"cause": cause}


CAFE = [
    created("msg_001", "agent_root"),
    entry("msg_002", "agent_root", "user", "Let Jack and Jill meet"),
    call("msg_003", "agent_root", "c1", "task", name="Jack", system_prompt="You are Jack."),
    created("msg_004", "agent_jack", "msg_003", "Jack"),
    entry("msg_005", "agent_jack", "system", "You are Jack."),
    result("msg_006", "agent_root", "c1", "Jack is here"),
    call("msg_007", "agent_root", "c2", "task", name="Jill", system_prompt="You are Jill."),
    created("msg_008", "agent_jill", "msg_007", "Jill"),
    entry("msg_009", "agent_jill", "system", "You are Jill."),
    result("msg_010", "agent_root", "c2", "Jill is here"),
    call("msg_011", "agent_root", "c3", "discuss", prompt="A café. Say hello.", speakers=["Jack", "Jill"]),
    text("msg_012", "agent_root", "A café. Say hello.", "msg_011"),
    entry("msg_013", "agent_jack", "user", "A café. Say hello.", "msg_012"),
    entry("msg_014", "agent_jill", "user", "A café. Say hello.", "msg_012"),
    entry("msg_015", "agent_jack", "assistant", "I am Jack."),
    result("msg_016", "agent_root", "c3", "I am Jack."),
    entry("msg_017", "agent_jill", "user", "[Jack]: I am Jack.", "msg_015"),
    entry("msg_018", "agent_jill", "assistant", "And I am Jill."),
    result("msg_019", "agent_root", "c3", "And I am Jill."),
    entry("msg_020", "agent_jack", "user", "[Jill]: And I am Jill.", "msg_018"),
]
INNER_VOICE = [
    call("msg_030", "agent_jill", "c4", "task", name="Inner", system_prompt="You are Jill's inner voice."),
    created("msg_031", "agent_jill_inner", "msg_030", "Inner"),
    entry("msg_032", "agent_jill_inner", "system", "You are Jill's inner voice."),
    entry("msg_033", "agent_jill", "user", "[Jack]: I am Jack.", "msg_015"),
    call("msg_034", "agent_jill", "c5", "discuss", speakers=["Inner"], prompt="What do I say?"),
    text("msg_035", "agent_jill", "What do I say?", "msg_034"),
    entry("msg_036", "agent_jill_inner", "user", "What do I say?", "msg_035"),
    entry("msg_037", "agent_jill_inner", "assistant", "Smile."),
    result("msg_038", "agent_jill", "c5", "Smile."),
    entry("msg_039", "agent_jill", "assistant", "And I am Jill."),
]
RESOURCES = [
    call("msg_100", "agent_root", "c9", "task", name="ResourceMonitor", system_prompt="Watch."),
    created("msg_101", "agent_resource_hook", "msg_100", "ResourceMonitor"),
    call("msg_102", "agent_root", "c10", "task", name="Searcher4"),
    entry("msg_103", "agent_resource_hook", "user", "A fourth searcher?"),
    entry("msg_104", "agent_resource_hook", "assistant", "DENY. Three are enough."),
    result("msg_105", "agent_root", "c10", "Error: Action blocked by hook 'ResourceMonitor': Three are enough."),
]
WATCHER = [
    entry("msg_200", "agent_watcher", "user", "File changed: data.json"),
    entry("msg_201", "agent_watcher", "assistant", "I read it again."),
]
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
