"""`log`, `show` and `diff`: what was done, at any width, with and without colours."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from harken import clock
from harken.cli import ui
from harken.repo import Repo
from support.claude_lines import assistant, result, user

Run = Any
WIDTHS = (60, 80, 120)
FOLDER = "/work/team/api"


def call(name: str, tool: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": tool, "input": arguments}


def conversation(minutes: int) -> list[dict[str, Any]]:
    """Two turns, the last of them so many minutes ago."""
    then = clock.format_instant(clock.now() - minutes * 60_000_000)
    more = {"cwd": FOLDER, "sessionId": "s-aaaa", "timestamp": then}
    edit = call("c2", "Edit", file_path=f"{FOLDER}/src/a.py", old_string="x", new_string="y")
    records = [
        user("u1", None, "Fix the parser"),
        assistant("a1", "u1", [call("c1", "Bash", command="pytest -q", description="tests")], "m1"),
        result("r1", "a1", "c1"),
        assistant("a2", "r1", [edit], "m2"),
        result("r2", "a2", "c2", toolUseResult={}),
        user("u2", "r2", "And now?\nTell me all about it, please, in as many words as it takes to fill a window"),
        assistant("a3", "u2", "All is well:\n\n- the parser\n- \x1b[2Jthe tests", "m3"),
    ]
    return [record | more for record in records]


@pytest.fixture
def talked(repo: Repo, tmp_path: Path) -> Repo:
    path = tmp_path / "home" / "s-aaaa.jsonl"
    path.parent.mkdir()
    path.write_text("".join(json.dumps(record) + "\n" for record in conversation(90)))
    list(repo.import_sessions([path]))
    repo.fork("s-aaaa", "review")
    return repo


def without_names(out: str) -> str:
    """What was printed, without what differs from one run to the next: names and times of commits."""
    out = re.sub(r"ctx-[0-9a-f]{8,}", "ctx-NAME", out)
    return re.sub(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d", "YYYY-MM-DD hh:mm:ss", out)


LOG = {
    60: """\
ctx-NAME    1h  (review)  All is well: - the parser - \\…
ctx-NAME    1h  And now? Tell me all about it, please,…
ctx-NAME    1h  Edit: src/a.py
ctx-NAME    1h  Bash: pytest -q
ctx-NAME    1h  Fix the parser
""",
    80: """\
ctx-NAME    1h  (review)  All is well: - the parser - \\x1b[2Jthe tests
ctx-NAME    1h  And now? Tell me all about it, please, in as many…
ctx-NAME    1h  Edit: src/a.py
ctx-NAME    1h  Bash: pytest -q
ctx-NAME    1h  Fix the parser
""",
    120: """\
ctx-NAME  YYYY-MM-DD hh:mm:ss UTC  (review)  All is well: - the parser - \\x1b[2Jthe tests
ctx-NAME  YYYY-MM-DD hh:mm:ss UTC  And now? Tell me all about it, please, in as many…
ctx-NAME  YYYY-MM-DD hh:mm:ss UTC  Edit: src/a.py
ctx-NAME  YYYY-MM-DD hh:mm:ss UTC  Bash: pytest -q
ctx-NAME  YYYY-MM-DD hh:mm:ss UTC  Fix the parser
""",
}
LOG[0] = LOG[120]


@pytest.mark.parametrize("width", LOG)
def test_a_commit_is_a_line_that_says_what_was_done(
    talked: Repo, run: Run, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    if width:
        monkeypatch.setenv("COLUMNS", str(width))

    assert LOG[width] == without_names(run("log", "s-aaaa").out)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "words", [["log", "review"], ["show", "review"], ["show", "review~1"], ["diff", "review", "first"]], ids=" ".join
)
def test_no_line_is_wider_than_the_window_and_colours_change_no_word(
    talked: Repo, run: Run, monkeypatch: pytest.MonkeyPatch, words: list[str], width: int
) -> None:
    first = talked.history("review")[-1]
    talked.fork(first, "first")
    words = [first.short if word == "review~1" else word for word in words]
    monkeypatch.setenv("COLUMNS", str(width))
    plain = run(*words).out

    monkeypatch.setenv("FORCE_COLOR", "1")
    painted = run(*words).out

    assert plain and [] == [line for line in plain.splitlines() if ui.columns(line) > width]
    assert "\x1b[" not in plain
    assert "\x1b[" in painted
    assert plain == re.sub("\x1b\\[[0-9]+m", "", painted)


def test_no_color_stands_above_all(talked: Repo, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")

    assert "\x1b" not in run("log", "review").out + run("show", "review").out + run("sessions").out


def test_the_configuration_decides_where_the_environment_does_not(
    talked: Repo, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    told = {}
    for color in ("always", "never"):
        folder = tmp_path / color / "harken"
        folder.mkdir(parents=True)
        (folder / "config.toml").write_text(f'color = "{color}"\n')
        monkeypatch.setenv("XDG_CONFIG_HOME", str(folder.parent))
        told[color] = "\x1b[" in run("log", "review").out, "\x1b[" in run("view", "dialog", "review").out

    assert {"always": (True, True), "never": (False, False)} == told


class TestShow:
    def test_calls_say_what_was_done(self, talked: Repo, run: Run) -> None:
        lines = run("show", talked.history("review")[2].short).lines

        assert "     call  Edit: src/a.py" in lines

    def test_a_fact_goes_on_below_itself(self, talked: Repo, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "60")
        talked.annotate("review", "word " * 60)

        lines = run("show", "--no-content", "review").lines

        begin = next(at for at, line in enumerate(lines) if line.startswith("summary"))
        told = [lines[begin][12:], *(line[12:] for line in lines[begin + 1 :] if line.startswith(" " * 12))]
        assert ["word"] * 60 == " ".join(told[: len(told)]).split()[:60]
        assert talked.commit("review").id in "".join(line[12:].replace(" ", "") for line in lines)

    def test_full_shows_every_line_of_a_text_below_who_said_it(self, talked: Repo, run: Run) -> None:
        out = run("show", "--full", "review").out

        assert "\nassistant\n           All is well:\n           \n           - the parser\n" in out
        assert "\\x1b[2Jthe tests" in out

    def test_full_shows_arguments_whole(self, talked: Repo, run: Run) -> None:
        out = run("show", "--full", talked.history("review")[2].short).out

        assert '     call  Edit: src/a.py\n           {\n             "file_path": "/work/team/api/src/a.py",\n' in out

    def test_no_text_can_look_like_a_line_of_ours(self, talked: Repo, run: Run) -> None:
        lines = run("show", "--full", "review").lines

        begin = lines.index("")
        heads = [line[:9].strip() for line in lines[begin + 1 :] if not line.startswith(" " * 11)]
        assert ["assistant", "usage"] == heads


@pytest.mark.parametrize(
    "words", [["log", "s-aaaa"], ["log", "--graph", "s-aaaa"], ["show", "s-aaaa"], ["view", "timeline", "s-aaaa"]]
)
def test_times_are_those_of_the_local_zone_which_is_named(talked: Repo, run: Run, zone: Any, words: list[str]) -> None:
    instant = datetime.fromisoformat(run("log", "s-aaaa", "-n", "1", "--json").json[0]["time"])

    zone("NPT-5:45")

    assert f"{instant + timedelta(hours=5, minutes=45):%Y-%m-%d %H:%M:%S} NPT" in run(*words).out


class TestTimeline:
    def test_a_call_is_told_in_a_few_words(self, talked: Repo, run: Run) -> None:
        assert {"    Bash: pytest -q", f"    Edit: {FOLDER}/src/a.py"} <= set(run("view", "timeline", "s-aaaa").lines)

    def test_all_of_it_where_that_is_asked_for(self, talked: Repo, run: Run) -> None:
        whole = 'Bash {"command":"pytest -q","description":"tests"}'
        (action,) = [one for one in run("view", "timeline", "s-aaaa", "--json").json if one["doing"].startswith("Bash")]

        assert ("Bash: pytest -q", whole) == (action["doing"], action["content"])
        assert f"    {whole}" in run("view", "timeline", "s-aaaa", "--full").lines
