"""What is written so that Qwen Code goes on with it, and what it prints while it runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harken import runtimes
from harken.errors import BadRequest
from harken.events import Error, Image, Metric, Prompt, Response, Thinking, ToolCall, ToolResult
from harken.formats import qwen_code
from harken.formats.facts import ORIGIN, Origin
from harken.formats.qwen_code.read import read_conversation
from harken.formats.qwen_code.stream import QwenStreamReader
from harken.runtimes.importer import Importer
from harken.runtimes.qwen_code import RUNTIME, slug
from harken.store import MemoryStore
from harken.testing.formats import said
from support.qwen_lines import PICTURE, SESSION, agent_session, busy_session
from support.recordings import corpus_files

NOON = 1_794_744_000_000_000
PLACE = RUNTIME.resume.place(Path("/home/ada/.qwen"), Path("/home/ada/a b"), NOON) if RUNTIME.resume else None


def rows(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


def test_it_lies_where_the_program_looks_for_it() -> None:
    assert PLACE is not None
    assert Path(f"/home/ada/.qwen/projects/-home-ada-a-b/chats/{PLACE.session}.jsonl") == PLACE.path
    assert ("qwen", "-r", PLACE.session) == PLACE.command


def test_its_own_records_go_on_as_its_own_fork_would_write_them() -> None:
    session = busy_session()

    moved = rows(qwen_code.rewrite(session.data, session_id="new", cwd="/w"))

    assert [None, *(record["uuid"] for record in moved[:-1])] == [record["parentUuid"] for record in moved]
    assert {("new", "/w")} == {(record["sessionId"], record["cwd"]) for record in moved}
    assert all(record["forkedFrom"] == {"sessionId": SESSION, "messageUuid": record["uuid"]} for record in moved)
    prompts = [
        record["systemPayload"]["uiEvent"]["prompt_id"] for record in moved if record.get("subtype") == "ui_telemetry"
    ]
    assert prompts
    assert all(name.startswith("new") for name in prompts)
    again = qwen_code.rewrite(session.data, session_id="new", cwd="/w")
    assert said(read_conversation(session.data)) == said(read_conversation(again))


def test_a_sub_agents_answers_become_one_record_each() -> None:
    moved = rows(qwen_code.rewrite(agent_session().data, session_id="new", cwd="/w"))

    assert ["user", "assistant", "tool_result", "tool_result", "assistant"] == [record["type"] for record in moved]
    assert 3 == len(moved[1]["message"]["parts"])
    assert not any("isSidechain" in record or "agentId" in record for record in moved)


def test_what_happened_elsewhere_is_written_and_what_cannot_be_is_told() -> None:
    written = qwen_code.write(
        [
            Prompt(content="Look.", images=(Image(media_type="image/png", data="aGk="),)),
            Thinking(content="hm"),
            Response(content="I do.", api_id="m1"),
            ToolCall(id="c1", name="Bash", input=b'{"command":"ls"}', api_id="fc1"),
            ToolCall(id="c2", name="Read", input=b"{}", api_id="fc2"),
            ToolResult(id="c1", output="no", is_error=True),
        ]
    )
    user, answer, failed, stand_in = rows(written.data)

    assert {"thinking": 1, "calls without a result": 1} == {loss.what: loss.count for loss in written.losses}
    assert [{"text": "Look."}, {"inlineData": {"mimeType": "image/png", "data": "aGk="}}] == user["message"]["parts"]
    assert ["c1", "c2"] == [part["functionCall"]["id"] for part in answer["message"]["parts"][1:]]
    assert {"error": "no"} == failed["message"]["parts"][0]["functionResponse"]["response"]
    shown = {"callId": "c2", "status": "error", "resultDisplay": "No result of this call was recorded."}
    assert shown == stand_in["toolCallResult"]


def test_a_picture_in_a_result_goes_along() -> None:
    image = Image(media_type="image/png", data=PICTURE["inlineData"]["data"])
    written = qwen_code.write(
        [ToolCall(id="c", name="x", input=b"{}"), ToolResult(id="c", output="seen", images=(image,))]
    )

    [result] = [event for event in qwen_code.FORMAT.read(written.data) if isinstance(event, ToolResult)]

    assert ("seen", (image,)) == (result.output, result.images)


def test_a_name_is_the_last_link_of_the_chain_and_the_origin_a_key_of_the_first() -> None:
    writer = RUNTIME.resume
    assert writer is not None
    assert writer.name is not None
    assert writer.sign is not None
    assert PLACE is not None
    data = writer.translated([Prompt(content="Hello?"), Response(content="Hello.")], PLACE).data
    told: list[bytes] = []

    def tell(rest: bytes) -> Origin:
        told.append(rest)
        return Origin(session=PLACE.session, commit="c" * 64, time="", size=len(rest), digest="", tier="2s")

    path, line = writer.name(PLACE, "A greeting")
    signed = writer.sign(data + line, tell)
    first, last, title = rows(signed)

    assert path == PLACE.path
    assert [signed.partition(b"\n")[2]] == told
    assert PLACE.session == first[ORIGIN]["session"]
    assert (last["uuid"], "A greeting") == (title["parentUuid"], title["systemPayload"]["customTitle"])
    assert [("prompt", "Hello?"), ("response", "Hello.")] == said(read_conversation(signed))
    facts = qwen_code.scan(signed)
    assert ("A greeting", True) == (facts.title, facts.named)


def test_a_session_without_a_name_is_signed_as_it_is() -> None:
    writer = RUNTIME.resume
    assert writer is not None
    assert writer.sign is not None
    one = qwen_code.write([Prompt(content="Hello?")]).data

    signed = writer.sign(one, lambda rest: Origin(commit="c" * 64, time="", size=len(rest), digest="", tier="1"))

    assert [("prompt", "Hello?")] == said(read_conversation(signed))


# -- its files ---------------------------------------------------------------------------------------------------------


def test_a_sub_agents_call_is_told_by_the_file_beside_it_or_by_its_prompt(tmp_path: Path) -> None:
    for number, beside in enumerate(({"toolUseId": "c3"}, None)):
        project = tmp_path / str(number) / "projects" / "-home-me-proj"
        main = project / "chats" / f"{SESSION}.jsonl"
        agent = project / "subagents" / SESSION / "agent-general-purpose-c3.jsonl"
        for path, data in ((main, busy_session().data), (agent, agent_session().data)):
            path.parent.mkdir(parents=True)
            path.write_bytes(data)
        if beside:
            agent.with_name("agent-general-purpose-c3.meta.json").write_text(json.dumps(beside))
        store = MemoryStore()

        done = list(Importer(store, [runtimes.get("qwen-code")]).run([main, agent]))

        [spawned] = [store.chain(one.tip)[-1].spawned_from for one in done if one.parent]
        assert spawned is not None
        assert (SESSION, "c3") == (spawned["session"], spawned["call_id"])
        assert [agent] == list(RUNTIME.read.agent_files(main))


def test_the_environment_says_where_it_lies() -> None:
    assert Path("/h/.qwen") == RUNTIME.home({"HOME": "/h"})
    assert Path("/q") == RUNTIME.home({"HOME": "/h", "QWEN_HOME": "/q"})
    assert Path("/r") == RUNTIME.home({"HOME": "/h", "QWEN_HOME": "/q", "QWEN_RUNTIME_DIR": "/r"})


def test_a_folder_has_the_name_that_the_program_gives_it() -> None:
    """Every sign of UTF-16 that is no letter or digit is a dash."""
    assert "-home-me-a-b" == slug(Path("/home/me/a.b"))
    assert "-caf-----x" == slug(Path("/café/😀/x"))
    for path in corpus_files("recorded_runtimes/qwen/projects/*/chats/*.jsonl"):
        assert path.parents[1].name == slug(Path(qwen_code.scan(path.read_bytes()).project))


# -- runs --------------------------------------------------------------------------------------------------------------


def test_the_stream_tells_the_usage_of_a_request_once_and_in_our_terms() -> None:
    def line(part: dict[str, Any], usage: dict[str, int], name: str) -> bytes:
        message = {"id": name, "type": "message", "role": "assistant", "model": "m", "content": [part], "usage": usage}
        return json.dumps({"type": "assistant", "uuid": name, "session_id": "s", "message": message}).encode()

    reader = QwenStreamReader()
    events = reader.feed(line({"type": "text", "text": "Hello."}, {"input_tokens": 0, "output_tokens": 0}, "a"))
    used = {"input_tokens": 100, "output_tokens": 7, "cache_read_input_tokens": 40}
    events += reader.feed(line({"type": "text", "text": "Bye."}, used, "b"))
    failed = {"type": "result", "subtype": "error_during_execution", "is_error": True, "error": {"message": "no key"}}
    events += reader.feed(json.dumps(failed | {"usage": {"input_tokens": 900}}).encode())

    counted, ended = [event for event in events if isinstance(event, Metric)]
    assert (60, 7, 40) == (counted.input_tokens, counted.output_tokens, counted.cache_read_tokens)
    assert (True, None) == (ended.ends_run, ended.input_tokens)
    assert ["no key"] == [event.message for event in events if isinstance(event, Error)]


@pytest.mark.parametrize("words", [[], ["-i", "hi"], ["-o", "xml", "hi"]])
def test_what_cannot_be_wrapped_is_refused(words: list[str]) -> None:
    assert RUNTIME.launch is not None
    with pytest.raises(BadRequest):
        RUNTIME.launch.plan(words, "")


def test_a_run_is_shown_as_its_user_asked() -> None:
    launch = RUNTIME.launch
    assert launch is not None
    plan = launch.plan(["-o", "json", "--resume", "s1", "say", "hello"], "")

    assert ("say hello", "array", "s1") == (plan.prompt, plan.show, plan.continues)
    assert ("--output-format", "stream-json", "--resume", "s1", "say", "hello") == plan.arguments
    assert "piped\n\nhello" == launch.full_prompt("hello", "piped")
    with pytest.raises(BadRequest):
        launch.plan(["-c", "hello"], "s2")


def test_a_result_has_what_the_program_shows_of_it_on_the_screen() -> None:
    call = ToolCall(id="a", name="Bash", input=b'{"command":"ls"}')
    written = qwen_code.FORMAT.write([Prompt(content="Run."), call, ToolResult(id="a", output="\x1b[31mred\x1b[0m")])

    [result] = [record["toolCallResult"] for record in rows(written.data) if record["type"] == "tool_result"]
    assert {"callId": "a", "status": "success", "resultDisplay": "red"} == result
