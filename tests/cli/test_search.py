"""`harken search`: hits that fit any window, and what is said where there are none."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import harken
from harken.cli import ui
from harken.events import Prompt, Response
from harken.repo import Repo
from support.claude_lines import assistant, dump, user
from support.contexts import Ticking, keep

Run = Any
SHOP = "11111111-aaaa-4aaa-8aaa-000000000001"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a session of Claude Code and a hostile one, and its index; each test gets a copy."""
    folder = tmp_path_factory.mktemp("made")
    words = "please look at find_session, since the walrus cannot be found by its name any more, not even once, " * 3
    said = (user("u1", None, words), assistant("a1", "u1", "the otter is 検索 by name", "m1", 5))
    (folder / "one.jsonl").write_bytes(dump(*(line | {"sessionId": SHOP, "cwd": "/home/me/my shop"} for line in said)))
    hostile = "\x1b]0;title\x07 the \x1b[31mlion\x1b[0m\u202e roars\r\nctx-00000000  fake line"
    roars = [Prompt(content="who roars?", message_id="p1"), Response(content=hostile, message_id="p2")]
    with harken.open(folder / "store.db", clock=Ticking()) as repo:
        list(repo.import_sessions([folder / "one.jsonl"]))
        keep(repo, roars, session_id="s")
        repo.index.catch_up()
    return folder


@pytest.fixture(autouse=True)
def sessions(made: Path, where: Path) -> None:
    where.parent.mkdir(mode=0o700)
    for path in made.glob("store.db*"):
        shutil.copy(path, where.with_name(path.name))


class TestHits:
    def test_a_hit_has_its_commit_snippet_and_the_command_that_goes_on(self, run: Run) -> None:
        done = run("search", "otter")

        first, second, third = done.lines
        commit = run("show", f"{SHOP}@a1", "--json").json[0]["short"]
        assert 0 == done.code
        assert first.startswith(commit)
        assert "assistant  my shop  11111111" in first
        assert "  the otter is 検索 by name" == second
        assert f"  harken resume {commit} --in claude-code" == third

    def test_what_no_program_continues_is_shown(self, run: Run) -> None:
        assert run("search", "who").lines[-1].startswith("  harken show ctx-")

    @pytest.mark.parametrize("columns", [60, 80, 120])
    def test_every_line_fits_the_window(self, run: Run, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
        monkeypatch.setenv("COLUMNS", str(columns))

        lines = run("search", "walrus").lines

        assert all(len(line) <= columns for line in lines)
        assert 2 == sum("walrus" in line or "name" in line for line in lines[1:3])

    def test_a_title_leads_to_the_newest_commit_of_its_session(self, run: Run) -> None:
        (hit,) = [row for row in run("search", "role:title", "--json").json if row["session"] == SHOP]

        tip = run("show", SHOP, "--json").json[0]["short"]
        assert (tip, SHOP, ["harken", "resume", tip, "--in", "claude-code"]) == (
            hit["commit"],
            hit["ref"],
            hit["command"],
        )

    def test_terminal_sequences_are_made_harmless(self, run: Run) -> None:
        done = run("search", "lion")

        assert not any(sign in done.out for sign in ("\x1b", "\x07", "\u202e", "\r"))
        assert "\\x1b]0;title\\x07 the lion\\x202e roars" in done.out
        assert 3 == len(done.lines)

    def test_what_was_found_is_marked_where_there_are_colours(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.delenv("NO_COLOR", raising=False)

        assert "\x1b[1motter\x1b[0m" in run("search", "otter").out

    def test_json_has_a_line_for_each_hit(self, run: Run) -> None:
        (hit,) = run("search", "otter", "--json").json

        assert hit.items() >= {"session": SHOP, "message_id": "a1", "agent": None, "role": "assistant"}.items()
        assert f"{SHOP}@a1" == hit["ref"]
        (start, end) = hit["highlights"][0]
        assert "otter" == hit["snippet"][start:end]
        assert {} == {key: hit[key] for key in ("snippet", "score") if not hit[key]}

    def test_the_ref_names_the_commit(self, run: Run) -> None:
        (hit,) = run("search", "otter", "--json").json

        assert hit["commit"] == run("show", hit["ref"], "--json").json[0]["short"]

    def test_it_says_that_there_are_more(self, run: Run) -> None:
        done = run("search", "-n", "1", "role:human")

        assert "there are more; `-n 2` shows them" in done.err


@pytest.mark.parametrize("width", ["60", "80", "120"])
def test_what_was_found_is_shown_however_narrow_the_window_is(
    run: Run, repo: Repo, monkeypatch: pytest.MonkeyPatch, width: str
) -> None:
    """A long word breaks the first line early, and the second is full of it."""
    keep(repo, [Prompt(content=f"漢字 {'k' * 150} and the badger is there", message_id="b")], session_id="long")
    monkeypatch.setenv("COLUMNS", width)

    shown = run("search", "badger", "role:human").lines[1:-1]

    assert any("badger" in line for line in shown)
    assert int(width) >= max(map(ui.columns, shown))


class TestWords:
    """What the shell hands over is the query that was typed."""

    @pytest.mark.parametrize(
        ("words", "found"),
        [
            (["otter"], ["a1"]),
            (["name", "-walrus"], ["a1"]),
            (["-walrus", "name"], ["a1"]),
            (["name", "-n", "1", "-walrus"], ["a1"]),
            (["name -walrus"], ["a1"]),
            (["name", "-name"], []),
            (["project:my shop", "otter"], ["a1"]),
            (["-project:my shop", "roars"], ["p1", "p2"]),
            (["project:my shop"], ["a1", "u1"]),
            (["project:/home/me otter"], ["a1"]),
            (["project:/home/me role:assistant name"], ["a1"]),
            (['project:"my shop" otter'], ["a1"]),
            (["PROJECT:my shop", "otter"], ["a1"]),
            (["role:assistant otter"], ["a1"]),
            (["role:human since:2020-01-01 walrus"], ["u1"]),
            (["-role:human otter name"], ["a1"]),
            (["session:11111111 otter"], ["a1"]),
            (['"otter is"'], ["a1"]),
            (["--", "name", "-walrus"], ["a1"]),
        ],
    )
    def test_words_may_begin_with_a_minus_and_hold_spaces(self, run: Run, words: list[str], found: list[str]) -> None:
        rows = run("search", "--json", *words).json

        assert found == sorted(row["message_id"] for row in rows if row.get("message_id"))


class TestNothing:
    @pytest.mark.parametrize(
        ("query", "said"),
        [
            ("zebra", "`harken search 'zebra*'` finds"),
            ("zebra giraffe", "any of them: zebra OR giraffe"),
            ('"zebra giraffe"', "without quotation marks"),
            ("zebra role:human", "leave out a filter"),
            ("std::zebra", "finds what begins so"),
        ],
    )
    def test_no_hits_come_with_a_suggestion(self, run: Run, query: str, said: str) -> None:
        done = run("search", query)

        assert (0, "") == (done.code, done.out)
        assert said in done.err

    def test_a_wrong_filter_is_an_error(self, run: Run) -> None:
        done = run("search", "agnet:x")

        assert 2 == done.code
        assert "did you mean agent:x?" in done.err

    def test_a_value_that_nothing_has_is_not_found(self, run: Run) -> None:
        done = run("search", "x", "runtime:claude-cod", "--json")

        assert 3 == done.code
        assert "runtime:claude-code" in json.loads(done.err)["error"]["hint"]

    def test_no_query_is_a_usage_error(self, run: Run) -> None:
        assert 2 == run("search").code


def test_an_index_that_is_behind_says_so(run: Run, repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here because another process is writing to it."""
    monkeypatch.setattr("harken.repo.finding.SEARCH_SECONDS", 0.05)
    assert 0 == run("search", "otter").code
    keep(repo, [Prompt(content="a late otter", message_id="late")], session_id="late")
    writing = sqlite3.connect(str(repo.index.path), isolation_level=None)
    writing.execute("BEGIN IMMEDIATE")

    done = run("search", "late")
    writing.close()

    assert "behind the store by 3 changes; `harken index` brings it up to date" in done.err
    assert [] == done.lines
    assert "late" == run("search", "late", "--json").json[0]["message_id"]
