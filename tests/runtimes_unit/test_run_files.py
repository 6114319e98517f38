"""When a run is over, the files that the program wrote are in the store, too."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import clock, runtimes
from harken.errors import Locked
from harken.events import Prompt, Response
from harken.runtimes import recording
from harken.runtimes.live import RunFacts
from harken.runtimes.run import Ended, RunOutput
from harken.runtimes.run_files import RunFiles
from support.recordings import FOLDER
from support.rollouts import Rollout
from support.sessions import ClaudeSession
from support.stream_lines import SESSION, THREAD, init, item, result, says, thread

from .conftest import Bench

SUB, EARLIER = "01a1deb4-e000-7cc3-bb2a-e6fd2a2a0c2c", "01a1deb4-0000-7cc3-bb2a-e6fd2a2a0c2c"
PRINTED = [thread(), item("agent_message", 0, text="answer to Delegate.")]


def rollout(bench: Bench, name: str) -> Path:
    return bench.folder / ".codex" / "sessions" / "2026" / "11" / "15" / f"rollout-2026-11-15T09-00-00-{name}.jsonl"


def written(bench: Bench, name: str, lines: Rollout) -> dict[str, Any]:
    return {"write": [str(rollout(bench, name)), lines.data.decode()]}


def starts(name: str, call: str) -> tuple[str, dict[str, Any]]:
    return "event_msg", {"type": "collab_agent_spawn_end", "new_thread_id": name, "call_id": call}


def main_thread(*agents: str) -> Rollout:
    return Rollout(id=THREAD).turn("Delegate.", *(starts(agent, f"c{n}") for n, agent in enumerate(agents)))


def agent_thread(name: str) -> Rollout:
    source = {"subagent": {"thread_spawn": {"parent_thread_id": THREAD, "depth": 1}}}
    return Rollout(id=name, source=source).turn(f"{name}: look")


def responses(bench: Bench, ref: str) -> list[str]:
    return [event.content for event in bench.events(ref) if isinstance(event, Response)]


class TestARunOfCodex:
    def test_leaves_the_title_and_all_of_a_sub_agent_with_what_the_run_said_of_itself(self, bench: Bench) -> None:
        steps = [*PRINTED, written(bench, THREAD, main_thread(SUB)), written(bench, SUB, agent_thread(SUB))]

        done = bench.run(steps, "codex", "--ticket", "17", "--principal", "jill", "--", "exec", "Delegate.")

        assert (0, "") == (done.returncode, done.stderr)
        with harken.open(bench.store) as repo:
            main, sub = repo.store.find_session(THREAD), repo.store.find_session(SUB)
            assert main is not None and sub is not None
            assert ("Delegate.", "", THREAD) == (main.title, main.live, sub.parent)
            assert ("17", f"jill/{SUB}", main.machine) == (sub.ticket_id, sub.principal, sub.machine)
            seen = repo.resolve(f"jill/{SUB}", clock.now())
            assert seen is not None and sub.tip == seen.id
        assert [f"answer to {SUB}: look"] == responses(bench, SUB)

    def test_leaves_a_sub_agent_that_only_the_output_of_its_call_names(self, bench: Bench) -> None:
        """#35: so it is in a file without `history_mode`; the agent was in no list and in no number."""
        main = Rollout(id=THREAD).turn("Delegate.").call("c0", "spawn_agent")
        main.output("c0", json.dumps({"agent_id": SUB, "nickname": "Ada"}))

        bench.run([*PRINTED, written(bench, THREAD, main), written(bench, SUB, agent_thread(SUB))], "codex", "exec")

        assert [f"answer to {SUB}: look"] == responses(bench, SUB)

    def test_says_nothing_of_itself_of_a_sub_agent_that_did_nothing_in_it(self, bench: Bench) -> None:
        rollout(bench, EARLIER).parent.mkdir(parents=True)
        rollout(bench, EARLIER).write_bytes(agent_thread(EARLIER).data)

        bench.run(
            [*PRINTED, written(bench, THREAD, main_thread(EARLIER))], "codex", "--ticket", "17", "--", "exec", "x"
        )

        with harken.open(bench.store) as repo:
            sub = repo.store.find_session(EARLIER)
            assert sub is not None
            assert (THREAD, "", "") == (sub.parent, sub.ticket_id, sub.principal)

    def test_says_nothing_of_itself_of_the_thread_that_its_session_goes_on_from(self, tmp_path: Path) -> None:
        """Somebody may be writing to that meanwhile: it is no part of the run."""
        home = tmp_path / "codex"
        [forked] = FOLDER.glob("codex-*/forked")
        shutil.copytree(forked, home)
        facts = RunFacts(runtime="codex", principal="alice", ticket_id="T-1", machine="box")
        with harken.open(tmp_path / "store.db") as repo:
            environ = {"CODEX_HOME": str(home), "HOME": str(tmp_path)}
            files = RunFiles(repo.store, runtimes.get("codex"), environ, facts, 0, clock.now)
            names = {path.stem[-36:] for path in home.glob("sessions/**/*.jsonl")}

            results = [result for name in names for result in files.read([name])]

            assert names <= {result.session for result in results}
            assert {""} == {row.principal + row.ticket_id for row in repo.store.sessions() if not row.parent}

    def test_that_writes_no_file_is_there_as_it_was_printed(self, bench: Bench) -> None:
        done = bench.run(PRINTED, "codex", "--", "exec", "Delegate.")

        assert (0, "") == (done.returncode, done.stderr)
        assert ["answer to Delegate."] == responses(bench, THREAD)

    def test_with_a_file_that_cannot_be_read_says_so_and_is_there_as_it_was_printed(self, bench: Bench) -> None:
        rollout(bench, THREAD).mkdir(parents=True)

        done = bench.run(PRINTED, "codex", "--", "exec", "Delegate.")

        assert (0, True) == (done.returncode, "could not be read to their end" in done.stderr)
        assert "not a regular file" in done.stderr
        assert ["answer to Delegate."] == responses(bench, THREAD)


def test_a_run_of_claude_code_leaves_its_title_and_the_file_of_a_sub_agent(bench: Bench) -> None:
    main, sub = ClaudeSession(SESSION), ClaudeSession(SESSION)
    main.prompt("Look around.")
    main.answer("Hello.")
    sub.prompt("SUB: look", isSidechain=True, agentId="a1")
    sub.answer("Seen.", isSidechain=True, agentId="a1")
    folder = bench.folder / ".claude" / "projects" / "x"
    files = {folder / f"{SESSION}.jsonl": main, folder / SESSION / "subagents" / "agent-a1.jsonl": sub}
    steps = [{"write": [str(path), lines.data.decode()]} for path, lines in files.items()]

    done = bench.run([init(), says("Hello."), *steps, result("Hello.")], "claude-code", "--", "-p", "Look around.")

    assert (0, "") == (done.returncode, done.stderr)
    with harken.open(bench.store) as repo:
        [row] = [row for row in repo.sessions() if not row.parent]
        assert ("Look around.", str(folder / f"{SESSION}.jsonl")) == (row.title, row.source)
    assert ["Seen."] == responses(bench, f"{SESSION}/a1")


class TestFilesThatTakeTooLong:
    @pytest.fixture
    def heard(self) -> list[str]:
        return []

    @pytest.fixture
    def go(self, bench: Bench, heard: list[str]) -> Callable[[], Ended]:
        def made() -> Ended:
            (bench.folder / "steps.json").write_text(json.dumps(PRINTED))
            with harken.open(bench.store) as repo:
                output, folder = RunOutput(warn=heard.append), str(bench.folder)
                return repo.run("codex", ["exec", "x"], cwd=folder, environ=bench.environment, output=output)

        return made

    def test_are_given_up_and_told(self, go: Any, heard: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
        go_on = threading.Event()
        monkeypatch.setattr(recording, "AFTER_STILL", 0.5)
        monkeypatch.setattr(RunFiles, "read", lambda self, sessions, moved: go_on.wait(30) and [])

        ended = go()
        go_on.set()

        assert (0, True, False, "") == (ended.status, ended.is_stored, ended.is_over, ended.spool)
        assert ended.context_id
        assert ["it took too long"] == [text.split(": ")[1].split(";")[0] for text in heard]

    def test_are_stopped_although_they_get_on(self, go: Any, heard: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
        pause, stopped = threading.Event(), threading.Event()

        def endless(self: RunFiles, sessions: list[str], moved: Callable[[], None]) -> list[Any]:
            try:
                while True:
                    pause.wait(0.01)
                    moved()
            finally:
                stopped.set()

        monkeypatch.setattr(recording, "AFTER_TIME", 0.2)
        monkeypatch.setattr(RunFiles, "read", endless)

        assert 0 == go().status
        assert stopped.wait(30)
        assert 1 == len(heard)

    def test_lose_nothing_that_was_printed_where_the_store_is_locked(
        self, go: Any, bench: Bench, heard: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def locked(self: RunFiles, sessions: list[str], moved: Callable[[], None]) -> list[Any]:
            raise Locked("somebody else writes", hint="try again")

        monkeypatch.setattr(RunFiles, "read", locked)

        ended = go()

        assert (0, True, True, "") == (ended.status, ended.is_stored, ended.is_over, ended.spool)
        assert "somebody else writes" in heard[0]
        assert ["x", "answer to Delegate."] == [
            event.content for event in bench.events(THREAD) if isinstance(event, Prompt | Response)
        ]
