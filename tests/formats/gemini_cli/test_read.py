"""A session of Gemini CLI as events: everything once, whatever the program writes again."""

from __future__ import annotations

import json

from harken.events import Metric, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.events.tally import Tally
from harken.formats import get
from harken.formats.gemini_cli import scan
from support.gemini_lines import CONTEXT, TOKENS, GeminiSession

FORMAT = get("gemini-cli-v1")


def told(session: GeminiSession) -> list[tuple[str, str]]:
    """Kinds and texts, without the program's own."""
    found = []
    for event in FORMAT.read(session.data):
        match event:
            case Prompt(origin="session_context") | Metric() | System(subtype="init" | "history"):
                continue
            case Prompt(content=text) | Response(content=text) | Thinking(content=text):
                found.append((event.kind, text))
            case ToolCall():
                found.append((event.kind, event.id))
            case ToolResult():
                found.append((event.kind, event.output))
            case System():
                found.append((event.kind, event.subtype))
    return found


def test_a_message_that_is_written_twice_is_told_once_and_so_are_its_results() -> None:
    session = GeminiSession().user("Run it.").tools("Looking.", "one", "two").model("Done.")

    assert told(session) == [
        ("prompt", "Run it."),
        ("response", "Looking."),
        ("tool_call", "run_1"),
        ("tool_call", "run_2"),
        ("tool_result", "one"),
        ("tool_result", "two"),
        ("response", "Done."),
    ]


def test_what_a_resume_repeats_is_not_told_again_and_counts_nothing() -> None:
    session = GeminiSession().user("Run it.").tools("Looking.", "one").model("Done.", thoughts=("hm",))
    before, figures = told(session), Tally.of(FORMAT.read(session.data)).figures()

    again = session.resumed().resumed(later=True)

    assert told(again) == before
    counted = Tally.of(FORMAT.read(again.data)).figures()
    assert (counted.usage, counted.tools, counted.responses, counted.prompts.human, counted.requests) == (
        figures.usage,
        figures.tools,
        figures.responses,
        figures.prompts.human,
        figures.requests,
    )


def test_input_is_without_the_cache_and_output_with_what_was_thought() -> None:
    [metric] = [e for e in FORMAT.read(GeminiSession().user("Hi.").model("Hello.").data) if isinstance(e, Metric)]

    assert (metric.input_tokens, metric.cache_read_tokens, metric.output_tokens, metric.reasoning_tokens) == (
        TOKENS["input"] - TOKENS["cached"],
        TOKENS["cached"],
        TOKENS["output"] + TOKENS["thoughts"],
        TOKENS["thoughts"],
    )


def test_a_compaction_is_a_boundary_and_what_stands_in_its_place() -> None:
    session = GeminiSession().user("First.").model("Done.").compacted("they talked", "First.", "Done.").user("Next.")
    events = FORMAT.read(session.data)
    at = next(at for at, e in enumerate(events) if isinstance(e, System) and e.subtype == "compact_boundary")

    prompts = [event for event in events[at:] if isinstance(event, Prompt)]

    assert [prompt.origin for prompt in prompts] == ["session_context", "compact_summary", "", ""]
    assert prompts[2].substance == events[2].message_id, "what was said before says where"
    assert Tally.of(events).compactions == 1
    assert Tally.of(session.resumed(later=True).data and FORMAT.read(session.data)).compactions == 1


def test_a_compaction_right_behind_a_resume_in_the_same_minute_is_one() -> None:
    session = GeminiSession().user("First.").model("Done.").resumed().compacted("they talked", "First.", "Done.")

    assert scan(session.data).tally.compactions == 1


def test_what_was_typed_stands_apart_from_what_came_along() -> None:
    typed, rest = {"text": "Look at @a.png"}, {"text": "\n--- Content ---"}
    picture = {"inlineData": {"mimeType": "image/png", "data": "QQ=="}}
    message = GeminiSession().message("user", [typed, rest, picture], displayContent=[typed])
    session = GeminiSession().put(message)

    first, second = [e for e in FORMAT.read(session.data) if isinstance(e, Prompt) and e.origin != "session_context"]

    assert (first.content, first.source, first.images) == ("Look at @a.png", "user", ())
    assert (second.origin, len(second.images)) == ("attachment:referenced_files", 1)
    assert scan(session.data).title == "Look at @a.png"


def test_a_picture_that_a_tool_answered_is_no_prompt() -> None:
    session = GeminiSession().user("Look.").tools("Yes.", "Binary content")
    call = json.loads(session.lines[-3])
    picture = {"inlineData": {"mimeType": "image/png", "data": "QQ=="}}
    answer = json.loads(session.lines[-2])
    call["toolCalls"][0]["result"].append(picture)
    answer["content"].append(picture)
    session.lines[-3:-1] = [json.dumps(call).encode(), json.dumps(answer).encode()]

    events = FORMAT.read(session.data)

    [result] = [event for event in events if isinstance(event, ToolResult)]
    assert len(result.images) == 1
    assert [e.content for e in events if isinstance(e, Prompt) and e.content != CONTEXT] == ["Look."]


def test_calls_have_the_ids_that_the_provider_gave() -> None:
    session = GeminiSession().user("Run.").tools("Yes.", "done")
    data = session.data.replace(b'"run_1"', b'"run__run_1"')

    assert [(e.id) for e in FORMAT.read(data) if isinstance(e, ToolCall | ToolResult)] == ["run_1", "run_1"]


def test_a_file_of_a_resume_that_has_nothing_in_it_has_no_time() -> None:
    """So it never passes for the newest file of its session."""
    assert scan(GeminiSession().data).ended is None


def test_what_the_file_says_besides() -> None:
    session = GeminiSession().user("Run it.").model("Done.").changed(summary="Running things")
    facts = scan(session.data)

    assert (facts.session, facts.title, facts.project) == (session.session, "Running things", "/work/orchard")
