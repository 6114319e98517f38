"""`copilot-cli-v1`: what a session says, where it is cut, what of it stands, and what is written."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest

from harken import runtimes
from harken.analytics.usage import usage_rows
from harken.events import Event, Metric, Output, Prompt, Response, Thinking, Tokens, ToolCall, ToolResult
from harken.events.records import SessionRecord, by_record
from harken.events.tally import Tally
from harken.formats import get
from harken.formats.copilot_cli import rewrite, scan, side_chains
from harken.repo import Repo
from harken.runtimes.importer import Importer
from harken.store.memory import MemoryStore
from harken.testing.formats import FormatContract
from harken.testing.runtimes import RuntimeContract
from support.copilot_lines import SESSION, CopilotSession, everything

COPILOT = get("copilot-cli-v1")


class TestFormat(FormatContract):
    format = COPILOT
    samples = (everything().data, CopilotSession().data)


class TestRuntime(RuntimeContract):
    runtime = runtimes.get("copilot-cli")
    samples = ((f"session-state/{SESSION}/events.jsonl", everything().data),)
    words = (
        ("-p", "hi"),
        ("--allow-tool", "write", "--model", "x", "-p", "hi"),
        ("--output-format", "json", "-p", "hi"),
    )
    lines = (*everything().lines[1:6], b'{"type": "result", "sessionId": "0b9c1f2e"}')


def words(events: list[Event]) -> list[tuple[str, str]]:
    """Who said what, calls and results among it."""
    shown = {Prompt: "content", Response: "content", Thinking: "content", ToolCall: "id", ToolResult: "output"}
    return [(event.kind, getattr(event, shown[type(event)])) for event in events if type(event) in shown]


def test_a_session_says_what_was_said() -> None:
    events = COPILOT.read(everything().data)

    assert [
        ("prompt", "What is in it?"),
        ("thinking", "hm"),
        ("response", "I will look."),
        ("tool_call", "c1"),
        ("tool_call", "c2"),
        ("tool_result", "second"),
        ("tool_result", "first"),
        ("response", "A dot."),
    ] == words(events)[:8]
    assert [] == [event for event in events if isinstance(event, Output) and event.why]
    [image] = next(event.images for event in events if isinstance(event, Prompt))
    assert ("image/png", "iVBO") == (image.media_type, image.data)
    assert [True] == [event.is_error for event in events if isinstance(event, ToolResult) and event.output == "first"]
    assert {"", "agent-1"} == {event.agent_id for event in events}


def test_the_model_is_given_results_in_the_order_of_the_calls() -> None:
    data = COPILOT.context(everything().data)

    results = [event.output for event in COPILOT.read_conversation(data) if isinstance(event, ToolResult)]
    assert ["first", "second", "It is right."] == results


def test_what_a_request_used_is_told_behind_the_results_that_it_was_given() -> None:
    session = CopilotSession()
    session.prompt("Look.")
    for call in ("c1", "c2"):
        session.answer("Looking.", call)
        session.result(call)
    session.answer("A dot.")
    events = list(COPILOT.read_conversation(COPILOT.context(session.data)))
    trace = get("otel-genai-v1")

    kinds = [event.kind for event in events if isinstance(event, Metric | ToolCall | ToolResult | Response)]
    back = list(trace.read(trace.write(events).data))

    assert kinds.index("tool_result") < [at for at, kind in enumerate(kinds) if kind == "metric"][1]
    for kind, count in ((Metric, 3), (ToolCall, 2), (ToolResult, 2), (Response, 3)):
        assert count == sum(isinstance(event, kind) for event in events) == sum(isinstance(one, kind) for one in back)


def test_input_is_counted_without_what_was_cached_and_once() -> None:
    session = everything()
    session.compaction("They looked.")
    figures = Tally.of(COPILOT.read(session.data)).figures()

    # Six requests of the agents and one for the summary.
    assert (6 * 100 + 100, 6 * 7 + 11) == (figures.usage.input, figures.usage.output)
    assert (6 * 40, 6 * 20) == (figures.usage.cache_read, figures.usage.cache_write)
    assert (7, 1) == (figures.requests, figures.compactions)


def test_old_versions_tell_the_output_alone() -> None:
    session = CopilotSession()
    session.prompt("Hello?")
    session.add("assistant.message", {"messageId": "m", "content": "Hello.", "outputTokens": 12, "apiCallId": "resp_1"})
    [metric] = [event for event in COPILOT.read(session.data) if isinstance(event, Metric)]

    assert (None, 12, "resp_1") == (metric.input_tokens, metric.output_tokens, metric.api_id)


def _run(session: CopilotSession, output: int, sums: dict[str, Any], **more: Any) -> None:
    """A run of an old version: what is said tells the output, and the end what went in."""
    session.prompt("Hello?")
    session.add("assistant.message", {"messageId": "m", "content": "Hello.", "model": "x", "outputTokens": output})
    session.add("session.shutdown", {"modelMetrics": sums, **more})


def _sums(whole: int, output: int, read: int, write: int) -> dict[str, Any]:
    used = {"inputTokens": whole, "outputTokens": output, "cacheReadTokens": read, "cacheWriteTokens": write}
    return {"requests": {"count": 2, "cost": 1}, "usage": used}


def test_what_went_into_the_requests_of_old_versions_is_told_at_the_end_of_each_run() -> None:
    session = CopilotSession()
    _run(session, 12, {"x": _sums(1000, 12, 300, 50), "y": _sums(10, 3, 0, 0)})
    _run(session, 5, {"x": _sums(400, 5, 100, 0), "damaged": 7, "empty": {"usage": None}})
    figures = Tally.of(COPILOT.read(session.data)).figures()

    assert Tokens(input=650 + 10 + 300, output=17, cache_read=400, cache_write=50) == figures.usage
    assert {"x": (950, 400), "y": (10, 0)} == {
        model: (used.input, used.cache_read) for model, used in figures.models.items() if model
    }
    assert 2 == figures.requests  # one for each message that tells its output; the sums are of no one request
    assert figures == scan(session.data).tally.figures()


@pytest.mark.parametrize("mark", ["accountingSnapshot", "usageAccountingWatermarks"])
def test_sums_at_the_end_of_a_run_say_nothing_new_where_requests_tell_what_they_used(mark: str) -> None:
    session = everything()
    before = Tally.of(COPILOT.read(session.data)).figures().usage
    session.add("session.shutdown", {"modelMetrics": {"x": _sums(1000, 12, 300, 50)}, mark: {}})

    assert before == Tally.of(COPILOT.read(session.data)).figures().usage


def test_sums_of_a_run_are_counted_for_their_model_and_are_no_request() -> None:
    session = CopilotSession()
    _run(session, 12, {"x": _sums(1000, 12, 300, 0), "y": _sums(10, 3, 0, 0)})
    rows = usage_rows([SessionRecord(events=[*record]) for record in by_record(COPILOT.read(session.data))])

    assert [("x", 700, None, True), ("y", 10, None, True), ("x", None, 12, False)] == [
        (row.model, row.input, row.output, row.several) for row in rows
    ]


def test_a_compaction_leaves_what_people_said_and_the_summary() -> None:
    session = everything()
    session.compaction("They looked.")
    session.prompt("And now?")
    session.answer("Now this.")
    stands = COPILOT.context(session.data)

    assert COPILOT.context(stands) == stands
    assert [
        ("prompt", FOLDED),
        ("prompt", "And now?"),
        ("response", "Now this."),
    ] == words(COPILOT.read_conversation(stands))


FOLDED = """\
Some of the conversation history has been summarized to free up context.

You were originally given instructions from a user over one or more turns. Here were the user messages:
<user_message>
What is in it?
</user_message>
<user_message>
Have it checked.
</user_message>

Here is a summary of the prior context:
<summary>
They looked.
</summary>"""


def test_a_summary_from_another_program_is_a_prompt_behind_all_that_stands_before_it() -> None:
    said: list[Event] = [
        Prompt(content="What is in it?"),
        ToolCall(id="c1", name="bash", input=b"{}"),
        ToolResult(id="c1", name="bash", output="a.txt"),
        Prompt(content="They looked.", source="injected", origin="compact_summary"),
        Prompt(content="And now?"),
    ]
    written = COPILOT.write(said).data

    assert [
        ("prompt", "What is in it?"),
        ("tool_call", "c1"),
        ("tool_result", "a.txt"),
        ("prompt", "They looked."),
        ("prompt", "And now?"),
    ] == words(COPILOT.read_conversation(COPILOT.context(written)))


def test_a_compaction_that_failed_changes_nothing() -> None:
    session = everything()
    before = words(COPILOT.read_conversation(COPILOT.context(session.data)))
    session.compaction("", success=False)

    assert before == words(COPILOT.read_conversation(COPILOT.context(session.data)))


def test_what_was_rewound_or_cleared_does_not_stand() -> None:
    session = CopilotSession()
    session.prompt("One.")
    session.answer("First.")
    gone = session.prompt("Two.")
    session.answer("Second.")
    session.add("session.snapshot_rewind", {"upToEventId": gone, "eventsRemoved": 3})
    session.prompt("Three.")
    said = words(COPILOT.read_conversation(COPILOT.context(session.data)))
    assert ["One.", "First.", "Three."] == [text for _, text in said]

    session.add("session.context_cleared", {"messagesCleared": 3})
    session.prompt("Four.")
    assert [("prompt", "Four.")] == words(COPILOT.read_conversation(COPILOT.context(session.data)))


def test_sub_agents_have_their_own_lines() -> None:
    data = everything().data
    [(agent, own)] = side_chains(data).items()
    facts = scan(data)

    assert "agent-1" == agent
    assert [("prompt", "Check it."), ("response", "Checking."), ("tool_call", "c3")] == words(COPILOT.read(own))[:3]
    assert {"agent-1": "t1"} == facts.calls
    assert COPILOT.context(own) == own
    assert b"agent-1" not in COPILOT.context(data)


def test_the_lines_of_a_sub_agent_alone_are_its_own_messages() -> None:
    data = everything().data
    [own] = side_chains(data).values()

    assert (scan(data).inside, 0) == (scan(own).messages, scan(own).inside)
    assert "" != scan(own).title != scan(data).title


def test_no_cut_parts_a_call_from_its_result_and_one_falls_before_every_prompt() -> None:
    session = everything()
    session.compaction("They looked.")
    session.prompt("And now?")
    data = session.data
    deltas = [delta for delta in scan(data).deltas if delta.commit_type == "delta"]

    assert data == b"".join(data[delta.start : delta.end] for delta in deltas)
    for delta in deltas:
        events = COPILOT.read(data[delta.start : delta.end])
        calls = {event.id for event in events if isinstance(event, ToolCall)}
        assert calls == {event.id for event in events if isinstance(event, ToolResult)}
    [compaction] = [delta for delta in scan(data).deltas if delta.commit_type == "compaction"]
    assert b"They looked." in data[compaction.start : compaction.end]
    starts = {delta.start for delta in deltas}
    assert data.index(b'{"type": "session.compaction_complete"') in starts


def test_the_names_of_its_commits_are_frozen(tmp_path: Path) -> None:
    """Whoever imported last year gets the same names next year; a change here is a change of format."""
    path = tmp_path / SESSION / "events.jsonl"
    path.parent.mkdir()
    session = everything()
    session.compaction("They looked.")
    session.prompt("And now?")
    path.write_bytes(session.data)
    store = MemoryStore()
    outcomes = list(Importer(store, [runtimes.get("copilot-cli")]).run([path]))

    [main] = [outcome for outcome in outcomes if not outcome.parent]
    assert FROZEN == [commit.short for commit in Repo(store).history(main.tip)]


FROZEN = ["ctx-3f08ac03", "ctx-6989913d", "ctx-342ee03f", "ctx-83466c31", "ctx-1dc1973f"]


def test_a_written_session_names_every_picture_before_it_shows_it() -> None:
    written = COPILOT.write(COPILOT.read(everything().data))
    lines = [json.loads(line) for line in written.data.splitlines()]

    assert "session.start" == lines[0]["type"]
    assert [None, *(line["id"] for line in lines[:-1])] == [line["parentId"] for line in lines]
    [asset] = [line["data"]["assetId"] for line in lines if line["type"] == "session.binary_asset"]
    [shown] = [line["data"]["attachments"] for line in lines if "attachments" in line["data"]]
    assert [asset] == [one["assetId"] for one in shown]


@pytest.mark.parametrize("file", [{}, {"type": "file", "path": "/tmp/dot.png"}])
def test_what_the_program_says_before_a_picture_is_said_once_however_often_it_is_carried(file: dict[str, Any]) -> None:
    session, picture = CopilotSession(), base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
    shown = {"type": "blob", "assetId": "a", "mimeType": "image/png"} | file
    session.add("session.binary_asset", {"assetId": "a", "mimeType": "image/png", "data": picture})
    session.add("user.message", {"content": "Look.", "attachments": [shown]})
    first = COPILOT.read_conversation(session.data)

    again = COPILOT.read_conversation(COPILOT.write(first).data)

    assert [f"Look.\n{'Image file at path /tmp/dot.png' if file else 'Attached image'}"] == said_by_people(first)
    assert said_by_people(first) == said_by_people(again)


def said_by_people(events: list[Event]) -> list[str]:
    return [event.content for event in events if isinstance(event, Prompt)]


def test_a_damaged_or_unknown_line_is_kept_with_the_reason() -> None:
    session = CopilotSession()
    session.add("session.of_the_future", {"x": 1})
    session.lines += [b'{"type": "user.message", "data": 7, "id": "x"}\n', b"not json\n"]
    opaque = [event.why for event in COPILOT.read(session.data) if isinstance(event, Output) and event.why]

    assert 3 == len(opaque) == scan(session.data).opaque
    assert "session.of_the_future" in opaque[0]


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("user.message", {"content": {"text": "Hello?"}}),
        ("assistant.message", {"content": ["Hello."]}),
        ("assistant.message", {"content": "", "reasoningText": ["Well."]}),
        ("assistant.message", {"content": "", "toolRequests": {"toolCallId": "c1"}}),
        ("system.notification", {"content": 7}),
    ],
)
def test_words_that_are_no_text_are_a_record_that_cannot_be_read(kind: str, data: dict[str, Any]) -> None:
    session = CopilotSession()
    session.add(kind, data)
    opaque = [event for event in COPILOT.read(session.data) if isinstance(event, Output) and event.why]

    assert [f"damaged {kind}: TypeError"] == [event.why for event in opaque]
    assert 1 == scan(session.data).opaque


def test_a_result_that_is_no_text_is_told_as_json() -> None:
    session = CopilotSession()
    session.add("tool.execution_complete", {"toolCallId": "c", "success": True, "result": {"content": [{"n": 1}]}})

    assert ['[{"n":1}]'] == [event.output for event in COPILOT.read(session.data) if isinstance(event, ToolResult)]


@pytest.mark.parametrize("name", [["sha256:1"], {"sha256": 1}, 7, None])
def test_a_picture_without_a_name_is_named_by_nobody(name: object) -> None:
    session = CopilotSession()
    session.add("session.binary_asset", {"assetId": name, "mimeType": "image/png", "data": "AAAA"})
    session.add("user.message", {"content": "Look."})

    assert b"binary_asset" not in COPILOT.context(session.data)


CORPUS = os.environ.get("HARKEN_CORPUS", "")
PLACES = ("copilot_cli/**/*.jsonl", "recorded_runtimes/copilot/**/events.jsonl")
FILES = [path for place in PLACES for path in sorted(Path(CORPUS).glob(place))] if CORPUS else []


@pytest.mark.parametrize("path", [None, *FILES], ids=lambda path: "/".join(path.parts[-2:]) if path else "composed")
def test_whole_sessions_go_in_and_come_back(path: Path | None, tmp_path: Path) -> None:
    """A composed one, and where a folder of real ones is named, those."""
    if path is None:
        path = tmp_path / "events.jsonl"
        path.write_bytes(everything().data)
    data = path.read_bytes()
    one, two = Repo(MemoryStore()), Repo(MemoryStore())
    runtime = runtimes.get("copilot-cli")
    first = list(Importer(one.store, [runtime]).run([path]))
    second = list(Importer(two.store, [runtime]).run([path]))
    again = list(Importer(one.store, [runtime]).run([path]))

    main = next(outcome for outcome in first if not outcome.parent)
    assert data == one.materialize(main.tip, stop="root").bytes
    assert [outcome.tip for outcome in first] == [outcome.tip for outcome in second]
    assert {("unchanged", 0)} == {(outcome.status, outcome.commits) for outcome in again}
    assert 0 == main.opaque
    stands = COPILOT.context(data)
    assert COPILOT.context(stands) == stands


@pytest.mark.parametrize("odd", [{}, [], {"a": 1}, 5, None])
def test_a_line_that_hangs_from_nothing_is_hung_from_the_one_before_it(odd: Any) -> None:
    session = CopilotSession()
    before = session.prompt("Go on.")
    session.prompt("And now?")
    session.lines[-1] = json.dumps({**json.loads(session.lines[-1]), "parentId": odd}).encode() + b"\n"

    written = rewrite(session.data, session_id="other", cwd="/x", time=0)

    assert before == json.loads(written.splitlines()[-1])["parentId"]
