"""Captured options of the Claude Agent SDK: the host's hooks stay, and ours delay, alter and fail nothing."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions, HookMatcher

import harken.capture
from harken import Session
from harken.capture import ClaudeAgentSDKAdapter, ClaudeAgentSDKClientConfig, TranscriptEntry
from harken.capture.claude_agent_sdk import options as module
from harken.capture.claude_agent_sdk.watch import FileWatch
from harken.errors import BadRequest

HI = b'{"type": "user", "content": "Hi.", "uuid": "u1"}\n{"type": "assistant", "content": "Hello.", "uuid": "u2"}\n'


class Transport:
    """What the SDK's own is for a capture: something that is closed."""

    def __init__(self) -> None:
        self.closed = 0

    async def close(self) -> None:
        self.closed += 1


class Query:
    """Calls hooks as the SDK does: the transport is known to whoever calls."""

    def __init__(self, options: Any, transport: Any = None) -> None:
        self.options, self.transport = options, transport or Transport()

    async def hook(self, event: str, path: Path | str = "", **more: Any) -> list[Any]:
        said = {"hook_event_name": event, "session_id": "0f0e", "transcript_path": str(path), **more}
        return [await hook(said, None, {"signal": None}) for one in self.options.hooks[event] for hook in one.hooks]


def said(session: Session) -> list[str]:
    return [entry.content for entry in session[TranscriptEntry].all()]


def threads() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == "harken-capture"]


def test_capture_does_not_import_the_sdk_until_it_is_asked_for() -> None:
    code = "import sys, harken, harken.capture as c; c.claude_agent; print('claude_agent_sdk' in sys.modules)"
    assert b"False\n" == subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout


def test_the_hosts_hooks_stay_first_and_everything_else_as_it_was() -> None:
    async def own(said: Any, tool_use_id: str | None, context: Any) -> Any:
        return {"decision": "block"}

    matcher = HookMatcher(matcher="Bash", hooks=[own], timeout=5)
    given = ClaudeAgentOptions(hooks={"PreToolUse": [matcher]}, model="m", max_turns=3)
    with Session() as session:
        captured = harken.capture.claude_agent(given, session)
        assert isinstance(captured, ClaudeAgentOptions)
        names = [field.name for field in fields(given) if field.name != "hooks"]
        assert [getattr(given, name) for name in names] == [getattr(captured, name) for name in names]
        assert matcher is (captured.hooks or {})["PreToolUse"][0]
        assert {"PreToolUse": [matcher]} == given.hooks
        assert [{"decision": "block"}, {}] == asyncio.run(Query(captured).hook("PreToolUse"))


def test_a_run_is_over_when_its_transport_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "0f0e.jsonl"

    async def run() -> None:
        query = Query(captured)
        await query.hook("UserPromptSubmit", path)
        path.write_bytes(HI)
        await query.hook("Stop", path)
        await query.transport.close()
        assert 1 == query.transport.closed

    with Session(tmp_path / "log.jsonl", ack="os") as session:
        captured = harken.capture.claude_agent(None, session)
        asyncio.run(run())
        assert ["Hi.", "Hello."] == said(session)
        assert ([], None) == (threads(), session.closers)  # a session of a thousand runs does not keep them


@pytest.mark.parametrize("end", ["context", "finish", "copy"])
def test_the_host_may_say_that_the_runs_are_over(tmp_path: Path, end: str) -> None:
    path = tmp_path / "0f0e.jsonl"
    path.write_bytes(HI[:-1])  # whoever wrote it came no further
    with Session() as session, harken.capture.claude_agent(None, session) as captured:
        asyncio.run(Query(captured, transport=object()).hook("UserPromptSubmit", path))
        if end == "finish":
            captured.finish()
        elif end == "copy":
            replace(captured, model="m").finish()
        else:
            captured.__exit__(None, None, None)
        assert ["Hi.", "Hello."] == said(session)
        assert [] == threads()


def test_one_of_two_runs_that_ends_leaves_the_other_captured(tmp_path: Path) -> None:
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"

    async def run() -> None:
        first, second = Query(captured), Query(captured)
        await first.hook("UserPromptSubmit", one)
        await second.hook("UserPromptSubmit", two, session_id="two")
        one.write_bytes(HI)
        await first.transport.close()
        two.write_bytes(HI)
        await second.transport.close()

    with Session() as session:
        captured = harken.capture.claude_agent(None, session)
        asyncio.run(run())
        assert {"primary": 2, "conversation:two": 2} == Counter(one.source for one in session[TranscriptEntry].all())


@pytest.mark.parametrize("loop", ["ended", "running"])
def test_a_host_that_breaks_out_of_its_loop_has_what_it_heard_when_the_session_is_closed(
    tmp_path: Path, loop: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The SDK closes no transport then, or only later, and Claude Code writes what it said after it was heard."""
    path, log = tmp_path / "0f0e.jsonl", tmp_path / "log.jsonl"
    writer = threading.Timer(0.3, path.write_bytes, [HI])

    async def run(session: Session) -> Any:
        query = Query(harken.capture.claude_agent(None, session))
        await query.hook("UserPromptSubmit", path)
        writer.start()
        if loop == "running":
            session.close()
            await query.transport.close()

    with caplog.at_level(logging.WARNING, "harken.capture"), Session(log, ack="os") as session:
        asyncio.run(run(session))
    writer.join()
    path.write_bytes(HI + b'{"type": "user", "content": "More.", "uuid": "u3"}\n')
    with Session(log, readonly=True) as session:
        assert ["Hi.", "Hello."] == said(session)
    with Session(log, ack="os") as session:
        harken.capture.claude_agent(None, session)
        assert ["Hi.", "Hello.", "More."] == said(session)  # what came behind it was not lost
    assert ([], []) == (caplog.records, threads())


def test_what_a_killed_program_did_not_come_to_read_is_read_when_the_session_is_captured_again(tmp_path: Path) -> None:
    path, log = tmp_path / "0f0e.jsonl", tmp_path / "log.jsonl"
    lines = HI.splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1])
    with Session(log, ack="os") as session:
        capture = module.ClaudeCapture(ClaudeAgentOptions(), session, subagents=True, depth=None, mask=None)
        capture._conversation(str(path), "0f0e").look()  # and then it was killed
    path.write_bytes(HI + b'{"type": "user", "content": "More.", "uuid": "u3"}\n')
    with Session(log, ack="os") as session:
        harken.capture.claude_agent(None, session)
        assert ["Hi.", "Hello.", "More."] == said(session)
    path.write_bytes(path.read_bytes() + b'{"type": "user", "content": "Not of a captured run.", "uuid": "u4"}\n')
    with Session(log, ack="os") as session:
        harken.capture.claude_agent(None, session)
        assert ["Hi.", "Hello.", "More."] == said(session)


@pytest.mark.parametrize("what", [None, [], {}, {"transcript_path": 7}, {"transcript_path": "\0"}, {"agent_id": {}}])
def test_a_hook_answers_nothing_whatever_it_is_told(what: Any) -> None:
    with Session() as session:
        captured = harken.capture.claude_agent(None, session)
        [hook] = captured.hooks["Stop"][0].hooks
        assert {} == asyncio.run(hook(what, None, None))
        captured.finish()


def test_a_session_that_was_closed_too_early_fails_no_run_and_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "0f0e.jsonl"
    path.write_bytes(HI)
    session = Session(tmp_path / "log.jsonl", ack="os")
    captured = harken.capture.claude_agent(None, session)
    session.close()
    with caplog.at_level(logging.WARNING, "harken.capture"):
        query = Query(captured)
        assert [{}] == asyncio.run(query.hook("UserPromptSubmit", path))
        asyncio.run(query.transport.close())
    assert 1 == len(caplog.records)


def test_a_run_of_which_no_file_is_written_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Session(tmp_path / "log.jsonl", ack="os") as session:
        captured = harken.capture.claude_agent(None, session)
        with caplog.at_level(logging.WARNING, "harken.capture"):
            for name in ("0f0e", "0f0f"):
                query = Query(captured)
                asyncio.run(query.hook("UserPromptSubmit", tmp_path / f"{name}.jsonl"))
                asyncio.run(query.transport.close())
    assert [f"Claude Code wrote no {tmp_path / '0f0e.jsonl'}"] == [str(one.args[1]) for one in caplog.records]


def test_a_transport_that_fails_to_close_fails_as_before(tmp_path: Path) -> None:
    path = tmp_path / "0f0e.jsonl"
    path.write_bytes(HI)

    class Failing(Transport):
        async def close(self) -> None:
            raise RuntimeError("as before")

    async def run() -> None:
        query = Query(captured, Failing())
        await query.hook("Stop", path)
        await query.transport.close()

    with Session() as session:
        captured = harken.capture.claude_agent(None, session)
        with pytest.raises(RuntimeError, match="as before"):
            asyncio.run(run())
        assert ["Hi.", "Hello."] == said(session)


def test_what_is_written_after_the_host_said_it_is_over_is_read_when_the_transport_is_closed(tmp_path: Path) -> None:
    path, log = tmp_path / "0f0e.jsonl", tmp_path / "log.jsonl"
    first, second = HI.splitlines(keepends=True)

    async def run(close: bool) -> None:
        path.write_bytes(first + second[:9])
        query = Query(captured)
        await query.hook("UserPromptSubmit", path)
        captured.finish()
        assert ["Hi."] == said(session)
        path.write_bytes(HI)
        if close:
            await query.transport.close()
            assert ["Hi.", "Hello."] == said(session)

    with Session() as session:
        captured = harken.capture.claude_agent(None, session)
        asyncio.run(run(close=True))
    with Session(log, ack="os") as session:
        captured = harken.capture.claude_agent(None, session)
        asyncio.run(run(close=False))
    with Session(log, ack="os") as session:
        harken.capture.claude_agent(None, session)
        assert ["Hi.", "Hello."] == said(session)


def test_a_host_that_ends_its_loop_without_closing_anything_leaves_no_thread_behind(tmp_path: Path) -> None:
    path, log = tmp_path / "0f0e.jsonl", tmp_path / "log.jsonl"
    path.write_bytes(HI[:70])
    with Session(log, ack="os") as session:
        query = Query(harken.capture.claude_agent(None, session))
        asyncio.run(query.hook("UserPromptSubmit", path))
        for thread in threads():
            thread.join(10)
        assert ([], ["Hi."]) == (threads(), said(session))
    path.write_bytes(HI)
    with Session(log, ack="os") as session:
        harken.capture.claude_agent(None, session)
        assert ["Hi.", "Hello."] == said(session)


def test_a_run_inside_a_batch_of_the_host_ends(tmp_path: Path) -> None:
    path = tmp_path / "0f0e.jsonl"
    path.write_bytes(HI)

    async def run() -> None:
        query = Query(captured)
        await query.hook("UserPromptSubmit", path)
        await query.transport.close()

    with Session(tmp_path / "log.jsonl", ack="os") as session:
        captured = harken.capture.claude_agent(None, session)
        with session.batch():
            asyncio.run(run())
        assert ["Hi.", "Hello."] == said(session)


def test_a_thread_that_nobody_stops_ends_when_nothing_comes_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter(range(0, 10_000, 30))
    monkeypatch.setattr("harken.capture.claude_agent_sdk.watch.monotonic", lambda: next(times))
    looked: list[int] = []

    def look() -> bool:
        looked.append(1)
        return False

    watch = FileWatch(look, lambda: 2.0, lambda: None)
    watch.wake()
    for thread in threads():
        thread.join(10)
    assert ([], True) == (threads(), bool(looked))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, ""),
        ("Be brief.", "Be brief."),
        ({"type": "custom", "prompt": "Be brief."}, "Be brief."),
        ({"type": "preset", "preset": "claude_code", "append": "Be brief."}, ""),
        ({"type": "file", "path": "/does/not/exist"}, ""),
    ],
)
def test_instructions_are_taken_from_options_that_give_all_of_them(given: Any, expected: str) -> None:
    assert expected == module.instructions_of(given)


NO_OPTIONS: Any = {"model": "m"}


@pytest.mark.parametrize(
    "wrong",
    [
        lambda session: harken.capture.claude_agent(NO_OPTIONS, session),
        lambda session: harken.capture.claude_agent(None, session, depth=-1),
        lambda session: harken.capture.claude_agent(None, session, depth=True),
        lambda session: harken.capture.claude_agent(None, session, mask=NO_OPTIONS),
    ],
)
def test_what_cannot_be_meant_is_refused_when_capture_is_switched_on(wrong: Callable[[Session], Any]) -> None:
    with Session() as session, pytest.raises(BadRequest):
        wrong(session)


def test_a_session_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    Session(tmp_path / "log.jsonl").close()
    with Session(tmp_path / "log.jsonl", readonly=True) as session, pytest.raises(BadRequest):
        harken.capture.claude_agent(None, session)


def test_the_switches_of_the_specification_are_a_shell_around_the_same(tmp_path: Path) -> None:
    below = tmp_path / "0f0e" / "subagents"
    below.mkdir(parents=True)
    (tmp_path / "0f0e.jsonl").write_bytes(HI)
    (below / "agent-a1.jsonl").write_bytes(b'{"type": "user", "content": "Dig.", "uuid": "u9"}\n')
    for subagents, heard in ((True, {"primary", "subagent:a1"}), (False, {"primary"})):
        config = ClaudeAgentSDKClientConfig(capture_transcript=True, capture_subagent_transcripts=subagents)
        adapter = ClaudeAgentSDKAdapter(client_config=config)
        with Session() as session, adapter.options(None, session) as captured:
            asyncio.run(Query(captured).hook("Stop", tmp_path / "0f0e.jsonl"))
            captured.finish()
            assert heard == {entry.source for entry in session[TranscriptEntry].all()}
    given = ClaudeAgentOptions()
    with Session() as session:
        assert given is ClaudeAgentSDKAdapter(client_config=ClaudeAgentSDKClientConfig()).options(given, session)
