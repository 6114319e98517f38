"""What others said, as Gemini CLI takes it."""

from __future__ import annotations

import json
from typing import Any

from harken.events import Event, Prompt, Response, Thinking, ToolCall, ToolResult
from harken.formats import get
from harken.formats.gemini_cli import dropped, rewrite, write
from support.gemini_lines import GeminiSession

FORMAT = get("gemini-cli-v1")
SAID = (Prompt, Response)


def messages(*events: Event) -> list[dict[str, Any]]:
    return [json.loads(line) for line in FORMAT.write(events).data.splitlines()[1:]]


def test_calls_stand_with_their_results_and_no_second_time() -> None:
    said = messages(
        Prompt(content="Run both."),
        Response(content="Yes."),
        ToolCall(id="a", name="Bash", input=b'{"command":"ls"}', api_id="item-1"),
        ToolCall(id="b", name="Read", input=b"{}", api_id="item-2"),
        ToolResult(id="a", output="x"),
        ToolResult(id="b", output="no such file", is_error=True),
        Response(content="Done."),
    )

    assert [message["type"] for message in said] == ["user", "gemini", "gemini"]
    calls = said[1]["toolCalls"]
    assert [(call["id"], call["name"], call["status"]) for call in calls] == [
        ("a", "Bash", "success"),
        ("b", "Read", "error"),
    ]
    assert [call["result"][0]["functionResponse"]["response"] for call in calls] == [
        {"output": "x"},
        {"error": "no such file"},
    ]


def test_words_behind_a_call_keep_their_place() -> None:
    said = messages(
        Prompt(content="Run."),
        ToolCall(id="a", name="Bash", input=b"{}", api_id="msg"),
        Response(content="Running.", api_id="msg"),
        ToolResult(id="a", output="x"),
    )

    assert [next(iter(part)) for part in said[1]["content"]] == ["functionCall", "text"]
    again = [event for event in FORMAT.read(FORMAT.write([Prompt(content="Run.")]).data) if isinstance(event, Prompt)]
    assert again[0].content == "Run."


def test_a_call_that_nobody_answered_is_answered_and_thoughts_stay_behind() -> None:
    written = FORMAT.write([Prompt(content="Run."), Thinking(content="hm"), ToolCall(id="a", name="Bash", input=b"{}")])

    assert {loss.what: loss.count for loss in written.losses} == {"thinking": 1, "calls without a result": 1}
    assert (
        "error"
        in json.loads(written.data.splitlines()[-1])["toolCalls"][0]["result"][0]["functionResponse"]["response"]
    )


def test_words_that_the_program_would_pass_over_go_to_the_model_all_the_same() -> None:
    for text in ("/etc/hosts: what is it?", "? nobody knows", "<session_context>mine"):
        written = FORMAT.write([Prompt(content=text), Response(content="A file.")]).data
        first = json.loads(written.splitlines()[1])["content"]

        assert not "".join(part["text"] for part in first).strip().startswith(("/", "?", "<")), (
            "as the program looks at it"
        )
        assert [event.content for event in FORMAT.read(written) if isinstance(event, Prompt)] == [text]


def test_the_programs_own_lines_are_moved_as_they_are() -> None:
    session = GeminiSession().user("First.").tools("Looking.", "one").model("Done.").changed(summary="A name").resumed()

    moved = rewrite(session.data, session_id="new", project="p", time=1_794_738_000_000_000)

    header, *rest = moved.splitlines()
    assert (json.loads(header)["sessionId"], json.loads(header)["kind"]) == ("new", "main")
    kept = [
        line for line in session.lines if b'"messages"' in line or line.startswith((b'{"id"', b'{"$set":{"summary"'))
    ]
    assert rest[:-1] == kept
    assert json.loads(rest[-1]) == {"$set": {"lastUpdated": "2026-11-15T10:20:00.000Z"}}


def test_a_call_has_what_the_program_shows_of_it_on_the_screen() -> None:
    [_, said] = messages(
        Prompt(content="Run both."),
        ToolCall(id="a", name="Bash", input=b'{"command":"ls\\n-l","description":"look"}'),
        ToolCall(id="b", name="Read", input=b'{"path":"x"}'),
        ToolResult(id="a", output="\x1b[31mred\x1b[0m\x1b]0;title\x07 and\n\tmore\x07"),
        ToolResult(id="b", output="no such file", is_error=True),
    )

    shown = [(call["displayName"], call["description"], call["resultDisplay"]) for call in said["toolCalls"]]
    assert [("Bash", "ls -l", "red and\n\tmore"), ("Read", '{"path":"x"}', "no such file")] == shown


def test_a_document_of_before_lines_says_the_same_as_lines() -> None:
    document = {
        "sessionId": "s",
        "projectHash": "h",
        "messages": [
            {"id": "1", "type": "user", "content": "Hello?"},
            {"id": "1", "type": "gemini", "content": "Hello."},
            {"type": "user", "content": "And now?"},
            {"id": None, "type": "model", "parts": [{"text": "Copied by a tool."}]},
            {"id": "m000003", "type": "qwen", "content": "Of Qwen Code."},
        ],
    }
    data = json.dumps(document).encode()
    lines = FORMAT.older["gemini-json-v1"](data)

    said = [(event.kind, event.content) for event in get("gemini-json-v1").read(data) if isinstance(event, SAID)]
    assert 5 == len(said)
    assert said == [(event.kind, event.content) for event in FORMAT.read_conversation(lines) if isinstance(event, SAID)]


def test_prompts_that_the_program_leaves_out_of_its_own_file_are_told() -> None:
    file = GeminiSession()
    for text in ("/etc/hosts is what?", "?", "What is /etc/hosts?"):
        file.add(file.message("user", [{"text": text}], text)).add(file.message("gemini", "A file.", f"to {text}"))

    assert [("prompts", 2)] == [(loss.what, loss.count) for loss in dropped(file.data)]
    assert () == dropped(GeminiSession().data), "what the program says itself is no prompt"
    assert () == dropped(write([Prompt(content="/etc/hosts?")]).data), "what Harken wrote is read"
