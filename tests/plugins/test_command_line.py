"""Runtimes that Harken knows nothing of go through every command: they are found by their entry points alone."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harken.runtimes.base import OURS, get
from support.desk import Desk
from support.installing import install

NAMES = ["notebook", "scribe", "ledger"]


@pytest.mark.parametrize("name", NAMES)
class TestAPluginRuntime:
    def test_its_sessions_are_imported_and_grow(self, desk: Desk, name: str) -> None:
        desk.call(name, "ask", "one")
        [new] = desk.sessions(name)
        desk.call(name, "ask", "--continue", new["session"], "two")
        [grown] = desk.sessions(name)
        [still] = desk.sessions(name)

        assert ("new", "") == (new["status"], desk.errors)
        assert {"input": 100, "output": 7, "cache_read": 0, "cache_write": 0} == new["usage"]
        assert ("grown", new["session"]) == (grown["status"], grown["session"])
        assert ("unchanged", grown["tip"]) == (still["status"], still["tip"])
        answers = ["I have heard 1 prompts, the first was 'one'.", "I have heard 2 prompts, the first was 'one'."]
        assert ["one", answers[0], "two", answers[1]] == desk.conversation(new["session"])

    def test_an_import_of_it_alone_looks_at_nothing_else(self, desk: Desk, name: str) -> None:
        desk.call(name, "ask", "one")
        lines = desk.lines("import", "--runtime", name)
        assert [name] == [line["runtime"] for line in lines if "session" in line]

    def test_it_is_watched(self, desk: Desk, name: str) -> None:
        desk.call(name, "ask", "one")
        watching = subprocess.Popen(
            [sys.executable, "-m", "harken", "watch", "--json", "--interval", "0.1"],
            env=desk.environment,
            cwd=desk.folder,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert watching.stdout is not None
            first = json.loads(watching.stdout.readline())
            desk.call(name, "ask", "--continue", first["session"], "two")
            second = json.loads(watching.stdout.readline())
        finally:
            watching.send_signal(signal.SIGINT)
            watching.communicate(timeout=60)
        assert (name, first["session"]) == (second["runtime"], second["session"])
        assert "grown" == second["status"]

    def test_its_program_goes_on_with_what_resume_wrote(self, desk: Desk, name: str, session: str) -> None:
        [done] = desk.lines("resume", session, "--in", name)
        said = desk.call(*done["command"], "two")

        assert "I have heard 2 prompts, the first was 'one'.\n" == said
        assert (name, "1", []) == (done["runtime"], done["tier"], done["losses"])
        [line] = [line for line in desk.sessions(name) if line["session"] == done["session"]]
        assert line["forked_from"], "its chain says where it came from"

    def test_resume_writes_where_it_is_told(self, desk: Desk, name: str, session: str) -> None:
        command = desk.harken("resume", session, "--in", name, "--home", str(desk.folder / "elsewhere")).strip()

        assert "elsewhere" in command
        said = desk.call("/bin/sh", "-c", f"{command} {shlex.quote('and now?')}")
        assert "I have heard 2 prompts, the first was 'one'.\n" == said

    @pytest.mark.parametrize("other", ["claude-code", "codex"])
    def test_its_sessions_go_on_in_our_runtimes_and_theirs_in_it(
        self, desk: Desk, name: str, session: str, other: str
    ) -> None:
        [there] = desk.lines("resume", session, "--in", other)
        desk.lines("import")
        [back] = desk.lines("resume", there["session"], "--in", name)

        assert ("2s", "2s") == (there["tier"], back["tier"])
        assert "I have heard 2 prompts, the first was 'one'.\n" == desk.call(*back["command"], "two")

    def test_it_is_run_under_observation(self, desk: Desk, name: str) -> None:
        templates = desk.folder / "config" / "harken" / "templates"
        templates.mkdir(parents=True)
        (templates / "parrot.toml").write_text(f'runtime = "{name}"\nmodel = "parrot-2"\n')
        shown = desk.harken("run", name, "--ticket", "T-1", "--template", "parrot", "--", "ask", "one")
        [row] = desk.lines("sessions")
        [commit, *_] = desk.lines("log", f"live/{row['session']}")

        assert "I have heard 1 prompts, the first was 'one'.\n" == shown
        assert ["one", "I have heard 1 prompts, the first was 'one'."] == desk.conversation(f"live/{row['session']}")
        assert ("T-1", "parrot") == (commit["ticket_id"], commit["template"])

    def test_a_run_goes_on_from_a_commit(self, desk: Desk, name: str, session: str) -> None:
        shown = desk.harken("run", name, "--from", session, "--", "ask", "two")
        assert "I have heard 2 prompts, the first was 'one'.\n" == shown

    def test_it_is_counted_and_looked_at(self, desk: Desk, name: str, session: str) -> None:
        [figures] = desk.lines("stats", session)
        [listed] = desk.lines("sessions")
        dialog = desk.harken("view", "dialog", session)
        timeline = desk.harken("view", "timeline", session)

        assert {"input": 100, "output": 7, "cache_read": 0, "cache_write": 0} == figures["usage"]
        assert {"human": 1, "injected": 0, "tool_result": 0} == figures["prompts"]
        assert (name, "one") == (listed["runtime"], listed["title"])
        for view in (dialog, timeline):
            assert "I have heard 1 prompts" in view

    def test_it_is_completed_in_the_shell(self, desk: Desk, name: str) -> None:
        said = desk.harken(_HARKEN_COMPLETE="bash_complete", COMP_WORDS="harken run ", COMP_CWORD="2")
        assert {"plain,claude-code", "plain,codex", f"plain,{name}"} <= set(said.split())


BROKEN = """
[project]
name = "broken-runtimes"
version = "1.0"

[project.entry-points."harken.runtimes"]
torn = "no_such_module:RUNTIME"
codex = "demo_runtimes.notebook:RUNTIME"
"""


def ours(ability: str) -> str:
    """The runtimes that come with Harken and can do this."""
    return ", ".join(name for name in OURS if ability in get(name).can)


class TestAPluginThatCannotBeUsed:
    @pytest.fixture(autouse=True)
    def broken(self, desk: Desk, tmp_path: Path) -> None:
        (tmp_path / "broken").mkdir()
        (tmp_path / "broken" / "pyproject.toml").write_text(BROKEN)
        install(tmp_path / "broken", tmp_path / "installed")

    def test_it_is_named_once_and_the_rest_goes_on(self, desk: Desk) -> None:
        desk.call("notebook", "ask", "one")
        [line] = desk.sessions("notebook")
        warnings = desk.errors.splitlines()

        assert "new" == line["status"]
        assert 2 == len(warnings)
        assert "warning: the runtime 'torn' of the package broken-runtimes cannot be used: ModuleNotFoundError" in (
            desk.errors
        )
        assert "'codex' of the package broken-runtimes cannot be used: Harken has a runtime of that name itself" in (
            desk.errors
        )

    def test_doctor_says_which_it_is(self, desk: Desk) -> None:
        found = {line["check"]: line for line in desk.lines("doctor", check=1)}
        assert ("ok", "import, resume, run") == (
            found["runtime notebook"]["status"],
            found["runtime notebook"]["detail"],
        )
        assert "failure" == found["runtime torn"]["status"]

    def test_asking_for_it_says_why(self, desk: Desk) -> None:
        desk.harken("run", "torn", "--", "ask", check=2)
        assert "error: the runtime 'torn' of the package broken-runtimes cannot be used" in desk.errors
        assert f"hint: those that can run: {ours('run')}, ledger, notebook, scribe" in desk.errors

    def test_another_name_is_refused_with_what_there_is(self, desk: Desk) -> None:
        desk.harken("import", "--runtime", "vim", check=2)
        assert "error: there is no runtime 'vim'" in desk.errors
        assert f"hint: those that can import: {ours('import')}, ledger, notebook, scribe" in desk.errors
