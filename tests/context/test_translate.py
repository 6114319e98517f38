"""What follows a conversation into another runtime, what does not, and in which order it is told."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from harken import runtimes
from harken.context.translate import carry_over
from harken.errors import BadRequest
from harken.events import Event, Image, Metric, Output, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.formats import Loss, get, runtime_notices
from harken.repo import Repo
from harken.runtimes.resume import Destination, resume
from harken.store.memory import MemoryStore
from support.recordings import session_files


def carried(events: list[Event], target: str = "codex-v1") -> tuple[list[Event], tuple[Loss, ...]]:
    return carry_over(events, runtime_notices(), get(target))


def losses(events: list[Event]) -> dict[str, int]:
    return {loss.what: loss.count for loss in carried(events)[1]}


def test_what_people_agents_and_tools_said_follows() -> None:
    said: list[Event] = [
        Prompt(content="Run it."),
        Prompt(content="<task-notification>done</task-notification>", source="injected", origin="task_notification"),
        Prompt(content="Contents of CLAUDE.md", source="injected", origin="attachment:nested_memory"),
        Thinking(content="hm"),
        Response(content="I will."),
        ToolCall(id="t1", name="Bash"),
        ToolResult(id="t1", output="done"),
        Output(raw=b"?", why="nobody could read it"),
    ]
    assert carried(said) == (said, ())


@pytest.mark.parametrize("origin", sorted(runtime_notices()))
def test_what_a_runtime_says_of_itself_stays_behind(origin: str) -> None:
    for spelled in (origin, f"attachment:{origin}"):
        assert losses([Prompt(content="x", source="injected", origin=spelled)]) == {"notice of the runtime": 1}


@pytest.mark.parametrize(
    "kind",
    ["critical_system_reminder", "unknown_command_fallback", "silent_turn_reminder", "tool_search_usage_reminder"],
)
def test_claude_codes_words_about_its_own_tools_stay_behind(kind: str) -> None:
    record = {"type": "attachment", "uuid": "n1", "parentUuid": "u1", "timestamp": "2026-11-15T10:00:00Z"}
    record |= {"attachment": {"type": kind}, "rendered": [{"content": "Slash commands available: /compact"}]}
    data = line("u1", None, "user", "Hello") + json.dumps(record | {"sessionId": "S"}).encode() + b"\n"
    data += line("a1", "n1", "assistant", [{"type": "text", "text": "Hi"}], "m1")
    kept, lost = carried(get("claude-code-v1").read_conversation(data))
    assert [event.content for event in kept if isinstance(event, Prompt)] == ["Hello"]
    assert [(loss.what, loss.count) for loss in lost] == [("notice of the runtime", 1)]


def test_a_person_who_says_the_same_is_heard() -> None:
    person = Prompt(content="x", source="user", origin="environment")
    assert carried([person]) == ([person], ())


def test_what_never_went_to_the_model_is_no_loss() -> None:
    unheard: list[Event] = [
        Metric(input_tokens=1),
        System(subtype="turn_duration"),
        Output(raw=b"{}"),
        Response(content=" \n"),
    ]
    assert carried(unheard) == ([], ())


def test_what_is_lost_is_counted_with_the_reason() -> None:
    events: list[Event] = [
        System(subtype="instructions", message="You are Codex."),
        System(subtype="compact_summary"),
        ToolCall(id="w1", name="web_search", server_tool=True),
        ToolCall(id="w2", name="web_search", server_tool=True),
        ToolResult(id="w2", output="found"),
    ]
    kept, lost = carried(events, "claude-code-v1")
    assert kept == events[3:]
    assert [(loss.what, loss.count) for loss in lost] == [
        ("instructions of the runtime", 1),
        ("sealed summary", 1),
        ("provider's own tool call", 1),
    ]
    assert lost[0].why == "claude-code tells its model about its own rules"


PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.mark.parametrize(
    ("image", "sound"),
    [
        (Image(media_type="image/png", data=PNG), True),
        (Image(url="https://example.org/a.png"), True),
        (Image(media_type="image/png", data=PNG[:-4] + "…"), False),
        (Image(media_type="image/png", data=base64.b64encode(base64.b64decode(PNG)[:40]).decode()), False),
        (Image(media_type="image/png", data="REDACTED"), False),
        (Image(media_type="image/svg+xml", data=base64.b64encode(b"<svg/>").decode()), False),
        (Image(media_type="image/png"), False),
    ],
)
def test_a_picture_that_would_be_refused_stays_behind(image: Image, sound: bool) -> None:
    """A provider refuses the whole request for one picture that is not one."""
    kept, lost = carried([Prompt(content="see", images=(image,))], "claude-code-v1")
    assert [event.images for event in kept if isinstance(event, Prompt)] == [(image,) if sound else ()]
    assert [loss.what for loss in lost] == ([] if sound else ["damaged picture"])


# -- the order in which Claude Code's records are told ---------------------------------------------------------------


def line(uuid: str, parent: str | None, role: str, content: Any, message: str = "", **more: Any) -> bytes:
    body = {"role": role, "content": content} | ({"id": message} if message else {})
    record = {"type": role, "uuid": uuid, "parentUuid": parent, "timestamp": "2026-11-15T10:00:00Z", "message": body}
    return json.dumps(record | {"sessionId": "S"} | more).encode() + b"\n"


def call(name: str) -> list[dict[str, Any]]:
    return [{"type": "tool_use", "id": name, "name": "Bash", "input": {}}]


def back(name: str) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": name, "content": f"of {name}"}]


def told(data: bytes) -> list[str]:
    events = get("claude-code-v1").read_conversation(data)
    words = {"prompt": "content", "response": "content", "tool_call": "id", "tool_result": "output"}
    return [getattr(event, words[event.kind]) for event in events if event.kind in words]


def test_a_tool_that_answers_while_the_model_still_speaks_is_told_after_it() -> None:
    """The model reads all calls of a message before any result."""
    data = b"".join(
        (
            line("u1", None, "user", "Go."),
            line("a1", "u1", "assistant", call("t1"), "m1"),
            line("r1", "a1", "user", back("t1"), sourceToolAssistantUUID="a1"),
            line("a2", "a1", "assistant", call("t2"), "m1"),
            line("r2", "a2", "user", back("t2"), sourceToolAssistantUUID="a2"),
            line("a3", "r2", "assistant", [{"type": "text", "text": "Done."}], "m2"),
        )
    )
    assert told(data) == ["Go.", "t1", "t2", "of t1", "of t2", "Done."]


def test_records_that_stand_in_the_file_twice_are_told_once() -> None:
    data = b"".join(
        (
            line("u1", None, "user", "Go."),
            line("a1", "u1", "assistant", [{"type": "text", "text": "I will."}], "m1"),
            line("a2", "a1", "assistant", call("t1"), "m1"),
            line("b1", "a2", "assistant", [{"type": "text", "text": "I will."}], "m1"),
            line("b2", "b1", "assistant", call("t1"), "m1"),
            line("r1", "b2", "user", back("t1")),
        )
    )
    assert told(data) == ["Go.", "I will.", "t1", "of t1"]


def test_what_a_compaction_preserved_is_told_behind_its_summary() -> None:
    kept = {"compactMetadata": {"preservedMessages": {"anchorUuid": "s1", "uuids": ["a1"]}}}
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "b1", "parentUuid": None, "sessionId": "S"}
    boundary |= {"timestamp": "2026-11-15T10:00:00Z", "logicalParentUuid": "a1"} | kept
    data = b"".join(
        (
            line("u1", None, "user", "Go."),
            line("a1", "u1", "assistant", [{"type": "text", "text": "Preserved."}], "m1"),
            json.dumps(boundary).encode() + b"\n",
            line("s1", "b1", "user", "The summary.", isCompactSummary=True),
            line("u2", "s1", "user", "And now?"),
        )
    )
    assert told(data) == ["The summary.", "Preserved.", "And now?"]


# -- one translation, whoever asks for it ------------------------------------------------------------------------------

OTHER = {"claude-code-v1": "codex", "codex-v1": "claude-code"}


def conversation(data: bytes) -> list[Any]:
    """The records without the ids, folder and times that make a session the new one it is, and without the one that
    says where it came from."""
    records = [json.loads(line) for line in data.splitlines()]
    records = [record for record in records if record["type"] != "harken-origin"]
    if "payload" in records[0]:
        return [(record["type"], record["payload"]) for record in records[1:]]
    return [{key: value for key, value in record.items() if key not in ("sessionId", "cwd")} for record in records]


def assert_alike(repo: Repo, data: bytes, source: str, folder: Path) -> None:
    commit = repo.checkpoint(data, format=source)
    runtime = OTHER[source]

    made = repo.materialize(commit, format=f"{runtime}-v1")
    resumed = resume(
        repo.store, commit, Destination(runtime=runtimes.get(runtime), home=folder, cwd=folder, environ={})
    )

    assert conversation(made.bytes) == conversation(Path(resumed.path).read_bytes())
    # What Codex will cut when it loads the file is a loss of the resume alone: nobody else knows that it will.
    written = tuple(loss for loss in resumed.losses if loss.what != "middle of a long result")
    assert (made.tier, made.losses) == (resumed.tier, written)


def test_materialize_and_resume_say_and_lose_the_same(tmp_path: Path) -> None:
    notice = {"type": "attachment", "uuid": "n1", "parentUuid": "u1", "timestamp": "2026-11-15T10:00:00Z"}
    notice |= {"sessionId": "S", "attachment": {"type": "skill_listing", "content": "- a skill", "skillCount": 1}}
    data = line("u1", None, "user", "Go.") + json.dumps(notice).encode() + b"\n"
    data += line("a1", "n1", "assistant", [{"type": "thinking", "thinking": "hm", "signature": "s"}], "m1")
    data += line("a2", "a1", "assistant", call("t1"), "m1") + line("r1", "a2", "user", back("t1"))
    repo = Repo(MemoryStore())

    assert_alike(repo, data, "claude-code-v1", tmp_path)

    made = repo.materialize(repo.checkpoint(data, format="claude-code-v1"), format="codex-v1")
    assert {"notice of the runtime", "thinking"} == {loss.what for loss in made.losses}
    assert b"a skill" not in made.bytes


def test_materialize_and_resume_agree_on_every_real_session(tmp_path: Path) -> None:
    repo = Repo(MemoryStore())
    for runtime in ("claude-code", "codex"):
        source = f"{runtime}-v1"
        for path in session_files(runtime):
            events = get(source).read_conversation(get(source).context(path.read_bytes()))
            if any(isinstance(event, Response) for event in events):
                assert_alike(repo, path.read_bytes(), source, tmp_path)
            elif not any(isinstance(event, Prompt) for event in events):
                with pytest.raises(BadRequest):
                    assert_alike(repo, path.read_bytes(), source, tmp_path)


def test_the_output_of_a_local_command_is_told_as_the_prompt_the_model_reads() -> None:
    """Claude Code writes it as a notice, and sends it in the next request."""
    output = "<local-command-stdout>Context: 12 tokens</local-command-stdout>"
    notice = {"type": "system", "subtype": "local_command", "uuid": "n1", "parentUuid": "a1", "content": output}
    data = b"".join(
        [
            line("u1", None, "user", "Hello"),
            line("a1", "u1", "assistant", [{"type": "text", "text": "Hi"}], "m1"),
            json.dumps(notice | {"timestamp": "2026-11-15T10:00:00Z", "sessionId": "S"}).encode() + b"\n",
            line("u2", "n1", "user", "And now?"),
        ]
    )
    assert told(data) == ["Hello", "Hi", output, "And now?"]
    heard = carried(get("claude-code-v1").read_conversation(data))[0]
    assert ("injected", "local_command_output") in [(e.source, e.origin) for e in heard if isinstance(e, Prompt)]


def test_a_document_that_stays_behind_is_called_one() -> None:
    pdf = Image(media_type="application/pdf", data=base64.b64encode(b"%PDF-1.1").decode())
    assert losses([Prompt(content="see", images=(pdf,))]) == {"document": 1}


@pytest.mark.parametrize("kinds", [["agents_md.instructions", "environments.environment_context"], None])
def test_codex_surroundings_stay_behind_where_they_share_a_message_with_the_projects_rules(
    kinds: list[str] | None,
) -> None:
    rules = "# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nRULE\n</INSTRUCTIONS>"
    parts = [rules, "<environment_context>\n<cwd>/w</cwd>\n</environment_context>"]
    item: dict[str, Any] = {"type": "message", "role": "user"}
    item["content"] = [{"type": "input_text", "text": text} for text in parts]
    if kinds:
        item["internal_chat_message_metadata_passthrough"] = {"content_item_kinds": kinds}
    record = {"timestamp": "2026-11-15T10:00:00.000Z", "type": "response_item", "payload": item}
    events = get("codex-v1").read_conversation(json.dumps(record).encode() + b"\n")
    kept, lost = carried(events, "claude-code-v1")
    assert [event.content for event in kept if isinstance(event, Prompt)] == [rules]
    assert [(loss.what, loss.count) for loss in lost] == [("notice of the runtime", 1)]
