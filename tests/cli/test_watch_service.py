"""`harken watch --install` shows what it writes, writes it, and takes it away again."""

from __future__ import annotations

import os
import plistlib
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harken.cli.watch_service import service_file
from harken.errors import BadRequest

Run = Any
COMMAND = ["/usr/bin/python3", "-m", "harken", "--store", "/my store/50%/$x.db", "watch"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Linux whose `systemctl` writes down what it is asked."""
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME", "HARKEN_STORE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    program = tmp_path / "bin" / "systemctl"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" >> {shlex.quote(str(tmp_path / "asked"))}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    return tmp_path


def unit(folder: Path) -> Path:
    return folder / "systemd" / "user" / "harken-watch.service"


def asked(folder: Path) -> list[str]:
    return (folder / "asked").read_text().splitlines() if (folder / "asked").exists() else []


class TestInstalling:
    def test_shows_what_it_writes_and_has_it_started(
        self, run: Run, folder: Path, where: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("CODEX_HOME", "/codex")

        done = run("--store", str(where), "watch", "--install", "--yes", "--runtime", "codex")

        text = unit(folder).read_text()
        assert (0, text) == (done.code, done.out)
        assert f'ExecStart="{sys.executable}" "-m" "harken" "--store" "{where}" "watch"' in text
        assert '"--runtime" "codex"' in text
        assert f'Environment="XDG_CONFIG_HOME={folder}"\nEnvironment="CODEX_HOME=/codex"\n' in text
        assert [f"--user {what}" for what in ("daemon-reload", f"enable {unit(folder).name}")] == asked(folder)[:2]
        assert f"--user restart {unit(folder).name}" == asked(folder)[2]
        assert not where.exists(), "nothing is watched by the command itself"

    def test_without_a_yes_nothing_is_done(self, run: Run, folder: Path) -> None:
        done = run("watch", "--install")

        assert (2, False, []) == (done.code, unit(folder).exists(), asked(folder))
        assert "--yes does it without asking" in done.err
        assert "ExecStart=" in done.out

    @pytest.mark.parametrize(("answer", "code"), [("n", 1), ("y", 0)])
    def test_a_person_is_asked(self, folder: Path, where: Path, answer: str, code: int) -> None:
        person, terminal = os.openpty()
        os.write(person, f"{answer}\n".encode())

        done = subprocess.run(
            [sys.executable, "-m", "harken", "watch", "--install"], stdin=terminal, capture_output=True, text=True
        )

        os.close(person)
        os.close(terminal)
        assert (code, answer == "y") == (done.returncode, unit(folder).exists()), done.stderr
        assert "Write this, and have the system watch? [y/N]:" in done.stderr
        assert ("nothing was done" in done.stderr) == (answer == "n")

    def test_twice_is_once(self, run: Run, folder: Path) -> None:
        run("watch", "--install", "--yes")
        before = unit(folder).read_text()

        assert 0 == run("watch", "--install", "--yes").code
        assert before == unit(folder).read_text()

    def test_that_cannot_be_started_says_so(self, run: Run, folder: Path) -> None:
        (folder / "bin" / "systemctl").write_text("#!/bin/sh\necho 'no bus' >&2\nexit 1\n")

        done = run("watch", "--install", "--yes")

        assert (1, True) == (done.code, unit(folder).exists())
        assert "was written, but `systemctl --user daemon-reload` failed: no bus" in done.err

    def test_where_there_is_no_systemd_says_so(self, run: Run, folder: Path) -> None:
        (folder / "bin" / "systemctl").unlink()

        done = run("watch", "--install", "--yes")

        assert (1, True) == (done.code, "`systemctl --user daemon-reload` failed" in done.err)

    def test_tells_programs_in_json(self, run: Run, folder: Path) -> None:
        (row,) = run("watch", "--install", "--yes", "--json").json

        assert {"status": "installed", "path": str(unit(folder)), "text": unit(folder).read_text()} == row


class TestShowing:
    def test_writes_nothing(self, run: Run, folder: Path) -> None:
        done = run("watch", "--print")

        assert (0, False, []) == (done.code, unit(folder).exists(), asked(folder))
        assert done.out.startswith("[Unit]\n")
        assert str(unit(folder)) in done.err

    def test_paths_are_those_that_were_meant_here(
        self, run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(folder)

        assert f'"--" "{folder / "mine"}"' in run("watch", "mine", "--print").out

    @pytest.mark.parametrize("store", ["mine.db", "odd/my:store.db", "sqlite:mine.db"])
    def test_so_is_the_store(self, run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, store: str) -> None:
        monkeypatch.chdir(folder)

        shown = run("--store", store, "watch", "--print").out

        assert f'"--store" "{folder / store.removeprefix("sqlite:")}"' in shown

    def test_a_yes_alone_is_refused(self, run: Run) -> None:
        assert (2, True) == ((done := run("watch", "--yes")).code, "--install" in done.err)


class TestTakingAway:
    def test_stops_it_and_removes_the_file(self, run: Run, folder: Path) -> None:
        run("watch", "--install", "--yes")
        (folder / "asked").unlink()

        done = run("watch", "--uninstall", "--yes")

        assert (0, False) == (done.code, unit(folder).exists())
        assert ["--user disable --now harken-watch.service", "--user daemon-reload"] == asked(folder)

    def test_without_a_yes_nothing_is_done(self, run: Run, folder: Path) -> None:
        run("watch", "--install", "--yes")

        assert (2, True) == (run("watch", "--uninstall").code, unit(folder).exists())

    def test_of_what_is_not_there_is_said(self, run: Run, folder: Path) -> None:
        done = run("watch", "--uninstall", "--yes")

        assert (0, []) == (done.code, asked(folder))
        assert "there is nothing at" in done.err


class TestTheFile:
    def test_of_systemd_means_every_word_to_the_letter(self) -> None:
        made = service_file("linux", COMMAND, {"HOME": "/home/a", "CODEX_HOME": '/a "b"\\%c'}, ["CODEX_HOME"], 1000)

        assert "/home/a/.config/systemd/user/harken-watch.service" == made.path
        assert '"--store" "/my store/50%%/$$x.db" "watch"\n' in made.text
        assert 'Environment="CODEX_HOME=/a \\"b\\"\\\\%%c"\n' in made.text

    def test_of_launchd_means_every_word_to_the_letter(self) -> None:
        made = service_file("darwin", COMMAND, {"HOME": "/Users/a", "CODEX_HOME": "/<&>"}, ["CODEX_HOME"], 501)

        read = plistlib.loads(made.text.encode())
        assert "/Users/a/Library/LaunchAgents/dev.harken.watch.plist" == made.path
        assert (COMMAND, {"CODEX_HOME": "/<&>"}) == (read["ProgramArguments"], read["EnvironmentVariables"])
        assert (("launchctl", "bootstrap", "gui/501", made.path),) == made.start
        assert (("launchctl", "bootout", "gui/501/dev.harken.watch"),) == made.end

    def test_holds_no_line_that_was_not_meant(self) -> None:
        with pytest.raises(BadRequest, match="cannot stand in a service"):
            service_file("linux", ["harken", "x\nExecStartPre=evil"], {"HOME": "/"}, [], 0)

    def test_is_refused_where_nobody_knows_how(self) -> None:
        with pytest.raises(BadRequest, match="win32"):
            service_file("win32", COMMAND, {}, [], 0)
