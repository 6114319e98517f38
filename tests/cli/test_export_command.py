"""`harken export`: where it writes, what it refuses, what it says."""

from __future__ import annotations

import base64
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harken.cli import ui
from harken.events import Image, Prompt, Response
from harken.repo import Repo
from support.secret_session import write_session

Run = Callable[..., Any]
KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9" * 2
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 20).decode()


@pytest.fixture(autouse=True)
def session(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = Prompt(message_id="1", content=f"the token {KEY}", images=(Image(media_type="image/png", data=PIXEL),))
    repo.checkpoint([said, Response(message_id="2", content="seen")], session_id="talk", template="claude-code")


def test_it_goes_to_stdout_and_remarks_to_stderr(run: Run) -> None:
    done = run("export", "talk", "--to", "txt")

    assert 0 == done.code
    assert "the token [masked: github-token]" in done.out
    assert "masked: github-token ×2 (--reveal keeps them)\nnot shown: 1 picture\n" == done.err


def test_revealed_nothing_is_said_of_masks(run: Run) -> None:
    done = run("export", "talk", "--to", "txt", "--reveal", "-o", "-")

    assert KEY in done.out
    assert "masked" not in done.err


def test_pictures_of_markdown_lie_in_a_folder_beside_it(run: Run) -> None:
    assert 0 == run("export", "talk", "-o", "out.md").code

    assert b"\x89PNG" == Path("out-pictures/1.png").read_bytes()[:4]
    assert "(out-pictures/1.png)" in Path("out.md").read_text()


def test_in_a_folder_it_is_called_after_the_session(run: Run) -> None:
    Path("shared").mkdir()

    assert 0 == run("export", "talk", "--to", "html", "-o", "shared").code

    assert Path("shared/talk.html").read_text().startswith("<!doctype html>")


def test_a_file_that_is_there_stays_without_force(run: Run) -> None:
    Path("out.md").write_text("mine")

    assert 4 == run("export", "talk", "-o", "out.md").code
    assert "mine" == Path("out.md").read_text()
    assert not Path("out-pictures").exists()
    assert 0 == run("export", "talk", "-o", "out.md", "--force").code
    assert "seen" in Path("out.md").read_text()


def test_a_picture_that_is_there_stays_and_nothing_is_half_written(run: Run) -> None:
    Path("out-pictures").mkdir()
    Path("out-pictures/1.png").write_text("mine")

    assert 4 == run("export", "talk", "-o", "out.md").code

    assert "mine" == Path("out-pictures/1.png").read_text()
    assert not Path("out.md").exists()


def test_the_store_is_never_written_over(run: Run, where: Path) -> None:
    before = where.read_bytes()

    assert 2 == run("export", "talk", "--to", "md", "-o", str(where), "--force").code
    assert before == where.read_bytes()


@pytest.mark.parametrize("words", [("export", "talk"), ("export", "talk", "-o", "out.pdf")])
def test_what_to_write_has_to_be_said(run: Run, words: tuple[str, ...]) -> None:
    done = run(*words)

    assert 2 == done.code
    assert "--to html|md|txt|jsonl|trace" in done.err


def test_a_file_can_be_exported_without_a_store(run: Run, repo: Repo) -> None:
    Path("talk.jsonl").write_bytes(repo.materialize("talk", format="claude-code-v1").bytes)

    assert "seen" in run("export", "talk.jsonl", "--to", "md").out


def test_rules_of_the_configuration_mask_too(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config" / "harken").mkdir(parents=True)
    (tmp_path / "config" / "harken" / "config.toml").write_text('[secrets.word]\nprefix = "seen"\npattern = "seen"\n')

    done = run("export", "talk", "--to", "txt")

    assert "[masked: word]" in done.out
    assert "masked: word ×1" in done.err


def test_what_was_masked_is_part_of_the_report(run: Run) -> None:
    (line,) = run("export", "talk", "-o", "out.md", "--json").json

    assert [{"rule": "github-token", "count": 2}] == line["report"]["masked"]
    assert 1 == line["report"]["pictures"]
    assert len(Path("out.md").read_bytes()) == line["report"]["size"]


@pytest.mark.parametrize(("output", "code"), [("nowhere/out.md", 1), ("nowhere/", 3)])
def test_a_folder_that_is_not_there_is_not_made(run: Run, output: str, code: int) -> None:
    done = run("export", "talk", "--to", "md", "-o", output)

    assert code == done.code
    assert "hint: " in done.err
    assert not Path("nowhere").exists()


def test_a_sub_agent_that_cannot_be_read_is_said_and_is_no_success(run: Run, repo: Repo, tmp_path: Path) -> None:
    path = write_session(tmp_path)
    list(repo.import_sessions([path, path.with_suffix("")]))
    with repo.store.write() as writer:
        writer.evict(repo.commit("11111111/def").artifact)

    done = run("export", "11111111", "--to", "txt")

    assert 9 == done.code
    assert "lost: sub-agent def ×1: " in done.err
    assert "I looked: [masked" in done.out
    assert 0 == run("export", "11111111", "--to", "txt", "--no-agents").code


@pytest.mark.parametrize("output", ["out.md", "out.html", "out.trace"])
def test_stopped_in_the_middle_it_leaves_nothing(run: Run, monkeypatch: pytest.MonkeyPatch, output: str) -> None:
    def interrupted(*_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("harken.views.markdown.MarkdownWriter.end", interrupted)
    monkeypatch.setattr("harken.api.viewer_export.ViewerExport._answers", interrupted)
    monkeypatch.setattr("harken.views.chrome_trace.ChromeTrace.end", interrupted)
    before = sorted(Path.cwd().iterdir())

    assert 130 == run("export", "talk", "-o", output).code

    assert before == sorted(Path.cwd().iterdir())


def test_on_a_terminal_it_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setenv("TERM", "xterm")
    with ui.progress("exporting") as bar:
        bar.say("reading", 500, 0)
        bar.say("writing", 1500, 2000)

    assert "writing" in terminal.getvalue()
    assert "1,500/2,000" in terminal.getvalue()
