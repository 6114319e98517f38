"""`harken run`: what the user sees, what the runtime gets, and what is kept."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import pytest

import harken
from harken.events import Error, Event, Metric, Prompt, Response, System, ToolCall, ToolResult
from support.sessions import ClaudeSession
from support.stream_lines import SESSION, THREAD, answers, calls, init, item, result, says, step, thread, turn_completed

from .conftest import Bench

LIVE = f"live/{SESSION}"
TURN = [init(), says("Hello."), result("Hello.")]


def said(events: list[Event]) -> list[str]:
    """The conversation without metrics and notices."""
    spoken = [event for event in events if isinstance(event, (Prompt, Response, ToolCall, ToolResult))]
    return [
        getattr(event, "content", "") or getattr(event, "output", "") or getattr(event, "name", "") for event in spoken
    ]


def test_the_user_sees_the_final_text_and_the_conversation_is_kept(bench: Bench) -> None:
    done = bench.run(TURN, "claude-code", "--", "-p", "Say hello")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Hello.\n", "")
    assert said(bench.events(LIVE)) == ["Say hello", "Hello."]
    assert bench.notes["argv"] == ["--output-format", "stream-json", "--verbose", "-p", "Say hello"]


def test_the_end_is_kept_with_its_metrics_and_status(bench: Bench) -> None:
    bench.run(TURN, "claude-code", "--", "-p", "Say hello")
    events = bench.events(LIVE)
    [whole] = [event for event in events if isinstance(event, Metric) and event.status]
    assert (whole.status, whole.cost_usd) == ("success", 0.5)
    last = events[-1]
    assert isinstance(last, System)
    assert (last.subtype, json.loads(last.metadata)) == ("shutdown", {"exit_status": 0, "signal": None})


def test_what_was_asked_for_is_what_is_shown(bench: Bench) -> None:
    as_stream = bench.run(TURN, "claude-code", "--", "-p", "hi", "--output-format", "stream-json", "--verbose")
    assert [json.loads(line) for line in as_stream.stdout.splitlines()] == [step["line"] for step in TURN]
    as_json = bench.run(TURN, "claude-code", "--", "-p", "hi", "--output-format", "json")
    assert json.loads(as_json.stdout) == TURN[-1]["line"]
    as_array = bench.run(TURN, "claude-code", "--", "-p", "hi", "--output-format", "json", "--verbose")
    assert json.loads(as_array.stdout) == [step["line"] for step in TURN]


def test_results_of_several_turns_are_shown_one_after_the_other(bench: Bench) -> None:
    done = bench.run([*TURN, init(), result("And more.")], "claude-code", "--", "-p", "hi")
    assert done.stdout == "Hello.\n\nAnd more.\n"


def test_a_prompt_from_stdin_reaches_the_runtime_and_is_kept(bench: Bench) -> None:
    bench.run([{"stdin": True}, *TURN], "claude-code", "--", "-p", "Look at this:", stdin="piped text\n")
    assert bench.notes["stdin"] == "piped text\n"
    assert said(bench.events(LIVE)) == ["Look at this:\npiped text\n", "Hello."]


def test_prompts_typed_as_json_lines_are_kept_in_their_places(bench: Bench) -> None:
    typed = json.dumps({"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": "one"}]}})
    done = bench.run(
        [{"stdin": True}, *TURN], "claude-code", "--", "-p", "--input-format", "stream-json", stdin=typed + "\n"
    )
    assert done.returncode == 0
    assert said(bench.events(LIVE)) == ["one", "Hello."]


def test_codex_is_wrapped_too(bench: Bench) -> None:
    command = {"command": "/bin/bash -lc 'echo hi'", "aggregated_output": "", "status": "in_progress"}
    done = bench.run(
        [
            thread(),
            item("agent_message", 0, text="I will look."),
            item("command_execution", 1, state="started", **command),
            item("command_execution", 1, **command | {"aggregated_output": "hi\n", "exit_code": 0}),
            item("agent_message", 2, text="It says hi."),
            turn_completed(),
        ],
        *("codex", "--", "exec", "Run it"),
    )
    assert (done.returncode, done.stdout) == (0, "It says hi.\n")
    assert bench.notes["argv"] == ["exec", "--json", "Run it"]
    conversation = said(bench.events(f"live/{THREAD}"))
    assert (conversation[0], conversation[1], conversation[-1]) == ("Run it", "I will look.", "It says hi.")
    assert "hi\n" in conversation


def test_a_tool_that_asks_gets_the_commit_that_holds_its_own_call(bench: Bench) -> None:
    """The call had no text; the answer must be the understanding at that moment all the same."""
    ask = {"tool": ["harken", "current-context"]}
    bench.run(
        [init(), calls("Bash", "t1"), ask, answers("t1", "done"), says("Fine.", 2), result("Fine.")],
        *("claude-code", "--", "-p", "go"),
    )
    [[status, out, err]] = bench.notes["tools"]
    assert (status, err) == (0, "")
    assert said(bench.events(out.strip())) == ["go", "Bash"]


def test_two_tools_that_ask_at_different_times_get_different_commits(bench: Bench) -> None:
    ask = {"tool": ["harken", "current-context"]}
    steps = [init(), calls("Bash", "t1"), ask, answers("t1", "one"), calls("Bash", "t2", 2), ask, answers("t2", "two")]
    bench.run([*steps, result("x")], "claude-code", "--", "-p", "go")
    first, second = (out.strip() for _, out, _ in bench.notes["tools"])
    assert first != second
    assert said(bench.events(second)) == ["go", "Bash", "one", "Bash"]


def test_both_names_of_the_socket_are_set_and_the_runtime_is_told_to_be_quiet(bench: Bench) -> None:
    bench.run(TURN, "claude-code", "--", "-p", "hi")
    seen = bench.notes["env"]
    assert seen["HARKEN_CONTEXT_SOCKET"] == seen["BUREAU_AGENT_CONTEXT_SOCKET"]
    quiet = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING")
    assert [seen[name] for name in quiet] == ["1", "1", "1"]
    assert not Path(seen["HARKEN_CONTEXT_SOCKET"]).exists()


def test_the_exit_status_is_the_runtimes(bench: Bench) -> None:
    done = bench.run([*TURN, {"stderr": "it failed"}, {"exit": 7}], "claude-code", "--", "-p", "hi")
    assert (done.returncode, done.stdout, done.stderr) == (7, "Hello.\n", "it failed\n")
    [error] = [event for event in bench.events(LIVE) if isinstance(event, Error)]
    assert error.message == "claude-code ended with exit status 7"


def test_a_crash_in_the_middle_leaves_everything_up_to_it(bench: Bench) -> None:
    done = bench.run(
        [init(), says("Half a"), calls("Bash", "t1"), {"raw": '{"type":"assi'}, {"die": "SIGKILL"}],
        *("claude-code", "--", "-p", "go"),
    )
    assert done.returncode == 128 + signal.SIGKILL
    events = bench.events(LIVE)
    assert said(events) == ["go", "Half a", "Bash"]
    assert [event.message for event in events if isinstance(event, Error)] == [
        "claude-code ended with killed by SIGKILL"
    ]


def test_a_runtime_that_says_nothing_still_leaves_its_prompt(bench: Bench) -> None:
    done = bench.run([{"stderr": "no key"}, {"exit": 1}], "claude-code", "--", "-p", "hello?")
    assert done.returncode == 1
    with harken.open(bench.store) as repo:
        [row] = repo.sessions()
    assert said(bench.events(row.session)) == ["hello?"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP])
def test_signals_reach_the_runtime(bench: Bench, number: signal.Signals) -> None:
    steps = [*TURN[:2], {"touch": "ready"}, {"await": number.name}, TURN[2], {"exit": 3}]
    child = bench.start(steps, "claude-code", "--", "-p", "hi")
    bench.wait_for("ready")
    child.send_signal(number)
    out, _ = child.communicate(timeout=30)
    assert (child.returncode, out) == (3, "Hello.\n")
    assert bench.notes["signals"] == [number.name]


def test_a_reader_that_has_gone_does_not_stop_the_run(bench: Bench) -> None:
    steps = [init(), {"touch": "ready"}, {"wait": "gone"}, says("Hello."), result("Hello.")]
    child = bench.start(steps, "claude-code", "--", "-p", "hi", "--output-format", "stream-json", "--verbose")
    assert child.stdout is not None
    bench.wait_for("ready")
    child.stdout.close()
    (bench.folder / "gone").touch()
    assert child.wait(30) == 0
    assert said(bench.events(LIVE)) == ["hi", "Hello."]


def test_ticket_thread_principal_and_template_go_onto_the_commits(bench: Bench) -> None:
    templates = bench.folder / "config" / "harken" / "templates"
    templates.mkdir(parents=True)
    (templates / "reviewer.toml").write_text('runtime = "claude-code"\nmodel = "opus"\n')
    options = ("--ticket", "T-1", "--thread", "th", "--principal", "ada", "--template", "reviewer")
    bench.run(TURN, "claude-code", *options, "--", "-p", "hi")
    assert bench.notes["argv"][-4:] == ["--model", "opus", "-p", "hi"]
    with harken.open(bench.store) as repo:
        facts = {(c.ticket_id, c.thread_id, c.principal, c.template) for c in repo.history(LIVE)}
    assert facts == {("T-1", "th", "ada", "reviewer")}


@pytest.mark.parametrize(("every", "turns"), [("turn", 3), ("2", 2), ("end", 1)])
def test_how_often_commits_are_made_can_be_chosen(bench: Bench, every: str, turns: int) -> None:
    """Three turns; the commit of the end comes on top, and holds the rest."""
    spoken = [
        part for n in (1, 2, 3) for part in (says(f"Turn {n}.", n), calls("Bash", f"t{n}", n), answers(f"t{n}", "x"))
    ]
    bench.run([init(), *spoken], "claude-code", "--every", every, "--", "-p", "hi")
    with harken.open(bench.store) as repo:
        reasons = [commit.checkpoint for commit in repo.history(LIVE)]
    assert reasons.count("turn_boundary") + reasons.count("session_end") == (turns + 1 if every == "turn" else turns)
    assert said(bench.events(LIVE))[-2:] == ["Bash", "x"]


def test_a_wish_that_nobody_knows_is_refused_before_anything_starts(bench: Bench) -> None:
    done = bench.run(TURN, "claude-code", "--every", "fortnight", "--", "-p", "hi")
    assert done.returncode == 2
    assert not (bench.folder / "notes.json").exists()


def test_tools_find_the_store_that_the_run_writes_to(bench: Bench) -> None:
    bench.run(TURN, "claude-code", "--", "-p", "hi")
    assert bench.notes["env"]["HARKEN_STORE"] == str(bench.store)


def test_a_sub_agent_has_a_chain_of_its_own(bench: Bench) -> None:
    """It knows what it was told and what it did; the main agent knows the call and the report."""
    sub = {"parent_tool_use_id": "t1", "agent_id": "a77"}
    steps = [
        init(),
        calls("Agent", "t1", input={"prompt": "Look around.", "description": "look"}),
        calls("Bash", "t2", 2, **sub),
        answers("t2", "inside", **sub),
        says("A report.", 3, **sub),
        answers("t1", "A report."),
        says("All good.", 4),
        result("All good."),
    ]
    bench.run(steps, "claude-code", "--", "-p", "go")
    assert said(bench.events(LIVE)) == ["go", "Agent", "A report.", "All good."]
    assert said(bench.events(f"{LIVE}/a77")) == ["Look around.", "Bash", "inside", "A report."]
    with harken.open(bench.store) as repo:
        first = repo.history(f"{LIVE}/a77")[-1]
        assert first.spawned_from is not None
        place = first.spawned_from["commit"]
    assert said(bench.events(place)) == ["go", "Agent"]
    assert (first.spawned_from["session"], first.spawned_from["call_id"]) == (SESSION, "t1")


def test_a_crashed_run_that_is_gone_on_with_before_any_import_knows_what_the_program_knows(bench: Bench) -> None:
    """#27: the program reads its own file, which lacks the end of what the recording heard."""
    bench.run([init(), says("Half a"), {"die": "SIGKILL"}], "claude-code", "--", "-p", "one")
    file = ClaudeSession(SESSION)
    file.prompt("one")
    folder = bench.folder / ".claude" / "projects" / "x"
    folder.mkdir(parents=True)
    (folder / f"{SESSION}.jsonl").write_bytes(file.data)

    bench.run([init(), says("Two!", 2), result("Two!")], "claude-code", "--", "-p", "two", "--resume", SESSION)

    assert ["one", "two", "Two!"] == said(bench.events(SESSION))
    assert ["one", "Half a"] == said(bench.events(f"{SESSION}~1"))


class TestTheWordsOfASubAgent:
    """#29: Claude Code is made to print them for the record."""

    SUB: ClassVar = {"parent_tool_use_id": "t1", "agent_id": "a77"}
    LATE: ClassVar = {"parent_tool_use_id": "t2", "agent_id": "a78"}
    STARTED: ClassVar = step(
        {"type": "system", "subtype": "task_started", "tool_use_id": "t2", "is_backgrounded": True}
    )
    STEPS: ClassVar = [
        init(),
        calls("Agent", "t1"),
        calls("Agent", "t2"),
        STARTED,
        says("Looking.", 2, **SUB),
        calls("Bash", "t3", 2, **SUB),
        says("In the background.", 3, **LATE),
        result("Done."),
    ]
    STREAM: ClassVar = ("claude-code", "--", "-p", "hi", "--output-format", "stream-json", "--verbose")

    def test_are_recorded_and_not_shown(self, bench: Bench) -> None:
        done = bench.run(self.STEPS, *self.STREAM)

        assert "1" == bench.notes["env"]["CLAUDE_CODE_FORWARD_SUBAGENT_TEXT"]
        assert ["Looking.", "Bash"] == said(bench.events(f"{LIVE}/a77"))
        shown = [json.loads(line) for line in done.stdout.splitlines()]
        assert [s["line"] for s in self.STEPS[:4] + self.STEPS[5:]] == shown, "an agent in the background is shown"

    def test_are_shown_to_whoever_asks_for_them(self, bench: Bench) -> None:
        done = bench.run(self.STEPS, *self.STREAM, "--forward-subagent-text")

        assert [s["line"] for s in self.STEPS] == [json.loads(line) for line in done.stdout.splitlines()]


def test_a_store_that_cannot_be_written_does_not_stop_the_run(bench: Bench) -> None:
    steps = [init(), {"touch": "ready"}, {"wait": "gone"}, says("Hello."), result("Hello.")]
    child = bench.start(steps, "claude-code", "--", "-p", "hi")
    bench.wait_for("ready")
    for path in bench.folder.glob("store.db*"):
        path.unlink()
    (bench.folder / "gone").touch()
    out, _ = child.communicate(timeout=30)
    assert (child.returncode, out) == (0, "Hello.\n")


def test_a_wrapper_that_is_killed_leaves_what_it_had_committed(bench: Bench) -> None:
    tools = [{"tool": ["harken", "current-context"]}, {"tool": ["sh", "-c", "echo $HARKEN_CONTEXT_SOCKET > socket"]}]
    steps = [init(), says("Before."), calls("Bash", "t1"), *tools, {"touch": "ready"}]
    child = bench.start([*steps, {"wait": "end"}], "claude-code", "--", "-p", "hi")
    bench.wait_for("ready")
    child.kill()
    child.wait(30)
    (bench.folder / "end").touch()
    assert said(bench.events(LIVE)) == ["hi", "Before.", "Bash"]
    left = Path((bench.folder / "socket").read_text().strip())
    assert left.exists(), "nobody could take it away"
    bench.run(TURN, "claude-code", "--", "-p", "again")
    assert not left.parent.exists(), "#39"
    assert said(bench.events(LIVE)) == ["hi", "Before.", "Bash", "again", "Hello."]


def test_a_turn_is_committed_before_its_tools_have_run_even_if_nobody_asks(bench: Bench) -> None:
    steps = [init(), says("Before."), calls("Bash", "t1"), {"touch": "ready"}, {"wait": "end"}]
    child = bench.start(steps, "claude-code", "--", "-p", "hi")
    bench.wait_for("ready")
    with harken.open(bench.store, create=False) as repo:
        bench.wait_until(lambda: repo.find_name(LIVE))
    child.kill()
    child.wait(30)
    (bench.folder / "end").touch()
    assert said(bench.events(LIVE)) == ["hi", "Before.", "Bash"]
    with harken.open(bench.store) as repo:
        assert [commit.checkpoint for commit in repo.history(LIVE)] == ["turn_boundary"]


def test_output_without_end_before_a_session_is_known_takes_little_memory(bench: Bench) -> None:
    """#51: it is kept under a name of its own as it comes; it does not wait for the session."""
    (bench.folder / "steps.json").write_text(json.dumps([{"lines": [300, 1_000_000]}, *TURN]))
    program = [sys.executable, "-c", MEASURED, "run", "claude-code", "--", "-p", "hi"]
    done = subprocess.run(program, env=bench.environment, cwd=bench.folder, capture_output=True, text=True, timeout=120)

    assert (0, "Hello.\n") == (done.returncode, done.stdout)
    assert int(done.stderr) < 400, "megabytes"
    with harken.open(bench.store) as repo:
        assert 2 == len(repo.sessions())
    assert ["hi", "Hello."] == said(bench.events(LIVE))


# `ru_maxrss` of a program begins with that of the process that started it; `VmHWM` is its own.
MEASURED = r"""
import re, sys
from harken.cli import main
from harken.runtimes import recording
recording.GIVE_UP_AFTER = 60  # a busy machine is no store that cannot be written
try:
    main()
finally:
    print(int(re.search(r"VmHWM:\s*(\d+) kB", open("/proc/self/status").read())[1]) // 1024, file=sys.stderr)
"""


HOSTILE = [
    "[" * 100_000,
    '{"type":"assistant","message":{"content":' + "[" * 50_000 + "]" * 50_000 + "}}",
    '{"type":"assistant","message":{"id":7,"content":[{"type":"text","text":null},{"type":"tool_use","id":{}}]}}',
    '{"type":"result","result":{},"usage":[],"modelUsage":{"m":{"inputTokens":-1}},"total_cost_usd":"much"}',
    '{"type":"system","subtype":"init","session_id":["S"]}',
    '{"type":"user","parent_tool_use_id":"../../x","agent_id":"/etc","message":{"content":"hi"}}',
    "\x00\x1b]0;title\x07",
]


def test_lines_that_make_no_sense_are_kept_and_stop_nothing(bench: Bench) -> None:
    lines = [{"raw": line + "\n"} for line in HOSTILE]
    done = bench.run([init(), *lines, says("Still here."), result("Still here.")], "claude-code", "--", "-p", "hi")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("Still here.\n")
    assert said(bench.events(LIVE))[-1] == "Still here."


def test_a_session_that_calls_itself_a_path_is_given_another_name(bench: Bench) -> None:
    done = bench.run([init("../../evil"), says("Hello.")], "claude-code", "--", "-p", "hi")
    assert done.returncode == 0
    with harken.open(bench.store) as repo:
        [row] = repo.sessions()
        names = [name.name for name in repo.store.names()]
    assert names == [f"live/{row.session}"]
    assert "evil" not in row.session
    assert said(bench.events(row.session)) == ["hi", "Hello."]


def test_what_cannot_be_wrapped_is_said_before_anything_starts(bench: Bench) -> None:
    done = bench.run(TURN, "claude-code", "--", "no print flag")
    assert done.returncode == 2
    assert "harken watch" in done.stderr
    assert not (bench.folder / "notes.json").exists()


def test_outside_a_run_current_context_is_silent_and_quick(bench: Bench) -> None:
    ask = ["harken", "current-context"]
    plain = subprocess.run(ask, env=bench.environment, capture_output=True, text=True, timeout=20)
    assert (plain.returncode, plain.stdout, plain.stderr) == (0, "", "")
    stale = bench.environment | {"HARKEN_CONTEXT_SOCKET": str(bench.folder / "gone.sock")}
    gone = subprocess.run(ask, env=stale, capture_output=True, text=True, timeout=20)
    assert (gone.returncode, gone.stdout, gone.stderr) == (0, "", "")
