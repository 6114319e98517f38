"""The conversation as it stands, and what the real Gemini CLI sent when it went on with such files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from harken.events import Event, Metric, Prompt, Response, Thinking, ToolCall, ToolResult
from harken.events.base import split_parts
from harken.formats import get
from support.gemini_lines import GeminiSession
from support.recordings import CORPUS

FORMAT = get("gemini-cli-v1")
RECORDED = CORPUS / "recorded_runtimes" / "gemini" if CORPUS else None
Said = tuple[str, ...]


def spoken(session: GeminiSession) -> list[str]:
    context = FORMAT.context(session.data)
    assert FORMAT.context(context) == context
    events = FORMAT.read_conversation(context)
    return [e.content for e in events if isinstance(e, Prompt | Response) and getattr(e, "origin", "") == ""]


def test_a_file_that_nothing_was_taken_from_is_its_own_context() -> None:
    data = GeminiSession().user("First.").tools("Looking.", "one").model("Done.").data

    assert FORMAT.context(data) == data


def test_what_was_taken_back_is_left_out_with_what_took_it_back() -> None:
    session = GeminiSession(started=False).user("One.", "u1").model("1").user("Two.", "u2").model("2")
    session.rewound("u2").user("Other.").model("3")

    assert spoken(session) == ["One.", "1", "Other.", "3"]
    assert b"$rewindTo" not in FORMAT.context(session.data)


def test_going_back_to_a_message_that_is_not_there_leaves_nothing() -> None:
    session = GeminiSession().user("One.").model("1").rewound("nobody").user("Other.").model("3")

    assert spoken(session) == ["Other.", "3"]


def test_part_of_a_list_that_was_taken_back_stays_taken_back() -> None:
    session = GeminiSession().user("One.", "u1").model("1").user("Two.", "u2").model("2").resumed()
    session.rewound("u2").user("Other.").model("3")

    assert spoken(session) == ["One.", "1", "Other.", "3"]


def test_what_a_list_repeats_keeps_what_its_first_line_said() -> None:
    session = GeminiSession().user("One.", "u1").model("1", "g1", thoughts=("hm",)).resumed()
    first = next(json.loads(line) for line in session.lines if b'"g1"' in line)
    events = FORMAT.read_conversation(FORMAT.context(session.data))

    [metric] = [event for event in events if isinstance(event, Metric)]
    [response] = [event for event in events if isinstance(event, Response)]
    assert (metric.api_id, response.model) == ("g1", "gemini-2.5-flash")
    assert response.time is not None
    assert first["timestamp"].startswith("2026-01-02T00:00")
    assert len([event for event in events if isinstance(event, Thinking)]) == 1


def test_after_a_compaction_the_summary_stands_for_what_was_said() -> None:
    session = GeminiSession().user("First.").model("Done.").user("Second.").model("Fine.")
    session.compacted("they talked", "Second.", "Fine.").user("Third.").model("Yes.")

    assert spoken(session) == ["Got it. Thanks for the additional context!", "Second.", "Fine.", "Third.", "Yes."]
    assert b"First." not in FORMAT.context(session.data)


def test_a_result_that_is_there_three_times_is_one() -> None:
    session = GeminiSession().user("Run.").tools("Yes.", "done").model("Done.").resumed().resumed(later=True)

    events = FORMAT.read_conversation(FORMAT.context(session.data))

    assert [event.output for event in events if isinstance(event, ToolResult)] == ["done"]
    assert [event.id for event in events if isinstance(event, ToolCall)] == ["run_1"]


# -- against what went over the wire -----------------------------------------------------------------------------------


def digest(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:12]


def signed(events: list[Event]) -> list[Said]:
    """What a conversation says, in the words of the recorded signatures; the program sends no thoughts."""
    found: list[Said] = []
    for event in events:
        match event:
            case Prompt(origin="session_context"):
                continue
            case Prompt() | ToolResult():
                if isinstance(event, ToolResult):
                    found.append(("result", event.id, digest(event.output)))
                for part in split_parts("" if isinstance(event, ToolResult) else event.content, event.images):
                    found.append(("user", digest(part)) if isinstance(part, str) else ("image", digest(part.data)))
            case Response():
                found.append(("model", digest(event.content)))
            case ToolCall():
                found.append(("call", event.id, event.name))
    return found


def requested(request: dict[str, Any]) -> list[Said]:
    """The same of a request, each result once, without the program's own beginning and the new prompt."""
    found: list[Said] = []
    for content in request["contents"]:
        for part in content["parts"]:
            if call := part.get("functionCall"):
                found.append(("call", call["id"], call["name"]))
            elif answer := part.get("functionResponse"):
                said = ("result", answer["id"], answer["response"]["output"]["sha"])
                found += [said] if said not in found else []
            elif media := part.get("inlineData"):
                found.append(("image", media["data"]["sha"]))
            else:
                found.append((content["role"], part["text"]["sha"]))
    return found[1:-1]


def requests(name: str) -> list[dict[str, Any]]:
    assert RECORDED is not None
    made = [json.loads(line) for line in (RECORDED / name).read_text().splitlines()]
    return [request for request in made if "streamGenerateContent" in request["path"]]


CASES = [
    ("foreign/a.jsonl", "resume-golden/requests-session-file.signatures.jsonl", 0),
    ("foreign/b.jsonl", "resume-golden/requests-session-file.signatures.jsonl", 1),
    ("foreign/c.jsonl", "resume-golden/requests-session-file.signatures.jsonl", 2),
    ("foreign/d.jsonl", "resume-golden/requests-session-file.signatures.jsonl", 3),
    ("foreign/e.json", "resume-golden/requests-session-file.signatures.jsonl", 4),
    ("foreign/a.jsonl", "resume-golden/requests-placed.signatures.jsonl", 0),
    ("foreign/rewind.jsonl", "resume-golden/requests-rewind.signatures.jsonl", 0),
]


def test_the_context_is_what_the_program_sent() -> None:
    for file, golden, number in CASES if RECORDED else ():
        data = (RECORDED / file).read_bytes()
        known = get("gemini-json-v1" if file.endswith(".json") else "gemini-cli-v1")

        assert signed(known.read_conversation(known.context(data))) == requested(requests(golden)[number]), file


SESSION = "tmp-proj/chats/session-2026-11-15T13-20-afc18a3c.jsonl"


def steps() -> list[tuple[str, dict[str, Any]]]:
    """Every prompt that was typed in the recorded session, and the request that went out with it."""
    if RECORDED is None:
        return []
    made = requests("requests-turn1.signatures.jsonl") + requests("requests-resume-own.signatures.jsonl")
    made += requests("requests-image-compress.signatures.jsonl")
    found = []
    for line in (RECORDED / SESSION).read_text().splitlines():
        record = json.loads(line)
        if record.get("type") != "user" or "functionResponse" in record["content"][0]:
            continue
        typed = digest(record["content"][0]["text"])
        for request in made:
            last = request["contents"][-1]["parts"]
            if len(request["contents"]) > 1 and any(part.get("text", {}).get("sha") == typed for part in last):
                found.append((record["id"], request))
    return found


def test_at_every_prompt_the_context_is_what_the_program_sent_with_it() -> None:
    for prompt, request in steps():
        assert RECORDED is not None
        data = Path(RECORDED / SESSION).read_bytes()
        before = data[: data.index(b'\n{"id":"' + prompt.encode()) + 1]
        last = len(request["contents"][-1]["parts"])

        said = signed(FORMAT.read_conversation(FORMAT.context(before)))

        assert said == requested(request)[: len(requested(request)) - last + 1], prompt
