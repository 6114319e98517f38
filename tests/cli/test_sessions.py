"""`harken sessions`: one line each, at any width."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harken import clock
from harken.cli import ui
from harken.cli.commits import age, cents
from harken.cli.session_table import project_names
from harken.errors import HarkenError
from harken.index import IndexProgress, StoreIndex
from harken.repo import Repo
from harken.store import SessionRow
from support.claude_lines import MODEL, assistant, user

Run = Any
MINUTE = 60_000_000
DAY = 1440 * MINUTE
NAMES = ("3f2a91bc-0000-4000-8000-000000000001", "77aa0000-0000-4000-8000-000000000002")


def lay(home: Path, session: str, folder: str, text: str, minutes: int, model: str = MODEL) -> Path:
    """A Claude Code session that ended so many minutes ago."""
    then = clock.format_instant(clock.now() - minutes * MINUTE)
    more = {"cwd": folder, "sessionId": session, "timestamp": then}
    records = [
        user(f"u-{session}", None, text) | more,
        assistant(f"a-{session}", f"u-{session}", "done", f"m-{session}") | more,
    ]
    records[1]["message"] |= {"model": model, "usage": {"input_tokens": 100_000, "output_tokens": 10_000}}
    path = home / f"{session}.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.fixture
def two(repo: Repo, tmp_path: Path) -> Repo:
    """Two sessions in folders of the same name, one with a sub-agent, continued in Codex and never used there."""
    paths = [
        lay(tmp_path / "home", NAMES[0], "/work/team/api", "Fix the parser so that it keeps comments", 90),
        lay(tmp_path / "home", NAMES[1], "/work/mine/api", "漢字 in the title", 3 * 1440, "nobody's"),
    ]
    list(repo.import_sessions(paths))
    with repo.store.write() as writer:
        writer.save_session(msgspec.structs.replace(repo.sessions(NAMES[1])[0], cost_usd_micros=1_234_567))
        row = repo.sessions(NAMES[0])[0]
        below = SessionRow(session=f"{NAMES[0]}/helper", runtime="claude-code", parent=NAMES[0], agent="helper")
        writer.save_session(msgspec.structs.replace(below, tip=row.tip, title="look around"))
    return repo


GOLDEN = {
    60: """\
3f2a91bc 1h claude team/api Fix the parser so that…  2 $0.45
77aa0000 3d claude mine/api 漢字 in the title        2 $1.23
""",
    80: """\
3f2a91bc  1h  claude-code  team/api  Fix the parser so that it keeps…   2  $0.45
77aa0000  3d  claude-code  mine/api  漢字 in the title                  2  $1.23
""",
    120: """\
3f2a91bc  1h  claude-code  team/api  Fix the parser so that it keeps comments                                   2  $0.45
77aa0000  3d  claude-code  mine/api  漢字 in the title                                                          2  $1.23
""",
    0: f"""\
{NAMES[0]}  1h  claude-code  team/api  Fix the parser so that it keeps comments  2  $0.45
{NAMES[1]}  3d  claude-code  mine/api  漢字 in the title                         2  $1.23
""",
}


@pytest.mark.parametrize("width", GOLDEN)
def test_a_session_is_a_line_at_any_width(two: Repo, run: Run, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    if width:
        monkeypatch.setenv("COLUMNS", str(width))

    assert GOLDEN[width] == run("sessions").out


@pytest.mark.parametrize("width", [60, 80, 120])
def test_in_colours_the_words_are_the_same(two: Repo, run: Run, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("FORCE_COLOR", "1")
    painted = run("sessions").out

    monkeypatch.setenv("NO_COLOR", "1")
    plain = run("sessions").out

    assert GOLDEN[width] == plain
    assert "\x1b[33m3f2a91bc\x1b[0m" in painted
    codes = [f"\x1b[{code}m" for code in ("0", *ui.STYLES.values())]
    for code in codes:
        painted = painted.replace(code, "")
    assert plain == painted


def test_a_cost_is_that_at_list_price_else_what_the_runtime_said(two: Repo, run: Run) -> None:
    told = {one["session"]: one for one in run("sessions", "--json", "--top").json}

    assert [(450_000, None, []), (None, 1_234_567, ["nobody's"])] == [
        (told[name]["price_usd_micros"], told[name]["cost_usd_micros"], told[name]["unpriced"]) for name in NAMES
    ]


def test_an_index_that_fails_costs_the_costs_alone(two: Repo, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise HarkenError("no space left on device")

    monkeypatch.setattr(StoreIndex, "catch_up", fail)

    done = run("sessions")

    assert (0, 2) == (done.code, len(done.lines))
    assert "warning: what sessions cost is not known, the index fails: no space left" in done.err


def test_costs_that_the_index_does_not_know_yet_are_not_passed_over(
    two: Repo, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "" == run("sessions").err

    monkeypatch.setattr(StoreIndex, "catch_up", lambda *_, **__: IndexProgress(at=1, last=1, stale=1))

    assert "warning: the index is not up to date, so what sessions cost is not all known" in run("sessions").err


@pytest.mark.parametrize("words", [[], ["--json"]], ids=" ".join)
def test_costs_that_damage_hides_are_an_error_behind_the_list(
    two: Repo, run: Run, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    progress = IndexProgress(at=1, last=1, missing=1, damaged=1)
    monkeypatch.setattr(StoreIndex, "catch_up", lambda *_, **__: progress)

    done = run("sessions", "--top", *words)

    assert (9, 2) == (done.code, len(done.lines))
    assert "what sessions cost is not all known: 1 part of the store cannot be read" in done.err


@pytest.mark.parametrize("words", [[], ["-n", "1"], ["--match", "about one"]], ids=" ".join)
def test_what_is_shown_of_an_id_names_no_other_session(
    repo: Repo, run: Run, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    now = clock.now()
    with repo.store.write() as writer:
        for place, name in enumerate(("abcdefghij-one", "abcdefghik-two", "abcdefgh")):
            title = f"about {name[11:]}"
            writer.save_session(SessionRow(session=name, runtime="harken", ended=now - place, title=title))
    monkeypatch.setenv("COLUMNS", "80")

    assert "abcdefghij " == run("sessions", *words).lines[0][:11]


@pytest.mark.parametrize("width", ["60", "80", "120"])
def test_the_columns_stand_below_each_other_where_ids_are_of_several_lengths(
    repo: Repo, run: Run, monkeypatch: pytest.MonkeyPatch, width: str
) -> None:
    """Ids of Codex begin with the time: sessions of one hour differ late."""
    now = clock.now()
    with repo.store.write() as writer:
        for place, name in enumerate(("019b8d62-7a80-7730-8b70", "019b8d62-7a80-77e7-8aac", "s", "3f2a91bc-0000")):
            writer.save_session(SessionRow(session=name, runtime="codex", ended=now - place, title="about it"))
    monkeypatch.setenv("COLUMNS", width)

    lines = run("sessions").lines

    assert 4 == len(lines)
    assert 1 == len({line.index("codex") for line in lines})
    assert {int(width)} == {ui.columns(line) for line in lines}


@pytest.mark.parametrize("width", ["60", "80", "120"])
def test_numbers_stay_where_long_ids_folders_and_continuations_meet(
    two: Repo, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: str
) -> None:
    for name in ("2026-01-05-002-delegate-it-multi", "2026-01-05-002-delegate-it-three"):
        list(two.import_sessions([lay(tmp_path / "more", name, "/work/a-long-folder", "about it", 90)]))
    two.resume(NAMES[0], "codex", cwd=tmp_path, home=tmp_path / ".codex", environ={})
    monkeypatch.setenv("COLUMNS", width)

    lines = run("sessions").lines

    assert {int(width)} == {ui.columns(line) for line in lines}
    assert not [line for line in lines if line.endswith("…")]


def test_in_a_pipe_a_long_name_is_whole_and_sets_no_other_apart(repo: Repo, run: Run, tmp_path: Path) -> None:
    long = "a-folder-with-a-very-long-name-indeed"
    list(repo.import_sessions([lay(tmp_path / "home", NAMES[0], f"/work/{long}", "One", 90)]))
    list(repo.import_sessions([lay(tmp_path / "home", NAMES[1], "/work/b", "Two", 100)]))

    first, second = run("sessions").lines

    assert f"  {long}  One  " in first
    assert f"  b{' ' * 19}  Two  " in second


def test_whoever_watches_is_told_what_the_columns_are(two: Repo, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ui, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")

    head, *lines = run("sessions").lines

    assert ["session", "age", "runtime", "project", "title", "msgs", "cost"] == head.split()
    assert {80} == {ui.columns(line) for line in (head, *lines)}


class TestWhichAreListed:
    def names(self, run: Run, *words: str) -> list[str]:
        return [line.split()[0] for line in run("sessions", *words).lines]

    def test_sub_agents_only_with_all(self, two: Repo, run: Run) -> None:
        helper = f"{NAMES[0]}/helper"

        assert [NAMES[0], NAMES[1]] == self.names(run)
        assert [NAMES[0], helper, NAMES[1]] == self.names(run, "--all")
        assert [NAMES[0], helper, NAMES[1]] == [one["session"] for one in run("sessions", "--json").json]

    def test_so_many_with_what_is_below_them(self, two: Repo, run: Run) -> None:
        assert [NAMES[0]] == self.names(run, "-n", "1")
        assert [NAMES[0], f"{NAMES[0]}/helper"] == self.names(run, "-n", "1", "--all")
        assert [] == self.names(run, "-n", "0")
        assert "harken import" not in run("sessions", "-n", "0").err

    @pytest.mark.parametrize(
        ("wanted", "found"),
        [
            ("api", [0, 1]),
            ("API", [0, 1]),
            ("/work/mine/api", [1]),
            ("/work/mine/", [1]),
            ("/work", [0, 1]),
            ("/work/min", []),
            ("work", []),
        ],
    )
    def test_a_project_is_a_name_or_a_folder_with_all_below(
        self, two: Repo, run: Run, wanted: str, found: list[int]
    ) -> None:
        assert [NAMES[each] for each in found] == self.names(run, "--project", wanted)

    def test_a_project_may_be_the_folder_one_is_in(
        self, repo: Repo, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = tmp_path / "here"
        folder.mkdir()
        list(repo.import_sessions([lay(tmp_path / "home", "s1", str(folder), "hello", 1)]))
        monkeypatch.chdir(folder)

        assert ["s1"] == self.names(run, "--project", ".")

    def test_a_copy_that_nobody_used_is_left_out_until_somebody_does(self, two: Repo, run: Run, tmp_path: Path) -> None:
        done = two.resume(NAMES[1], "claude-code", cwd=tmp_path, home=tmp_path / ".claude", environ={})
        list(two.import_sessions([done.path]))

        assert done.session not in self.names(run)
        assert done.session in self.names(run, "--all")
        told = {one["session"]: one for one in run("sessions", "--json").json}
        assert (True, [done.session]) == (told[done.session]["unused"], told[NAMES[1]]["continued_by"])
        assert f"(continued in {done.session[:8]})" in run("sessions").out

        with Path(done.path).open("a") as file:
            file.write(json.dumps(user("new", None, "go on") | {"sessionId": done.session}) + "\n")
        list(two.import_sessions([done.path]))

        assert done.session in self.names(run)
        assert f"(continues {NAMES[1][:8]})" in run("sessions").out

    @pytest.mark.parametrize("width", ["60", "80"])
    def test_where_it_was_continued_is_never_cut_off(
        self, two: Repo, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: str
    ) -> None:
        done = two.resume(NAMES[0], "codex", cwd=tmp_path, home=tmp_path / ".codex", environ={})
        monkeypatch.setenv("COLUMNS", width)

        assert f"(→ {done.session[:8]})" in run("sessions").out

    def test_sessions_of_an_earlier_harken_get_their_project_by_looking_again(
        self, two: Repo, run: Run, tmp_path: Path
    ) -> None:
        assert "--verify" not in run("sessions").err + run("sessions", "--project", "nowhere").err
        with two.store.write() as writer:
            for row in two.sessions():
                writer.save_session(msgspec.structs.replace(row, state=b""))

        assert "`harken import --verify`" in run("sessions").err
        assert "`harken import --verify`" in run("sessions", "--project", "api").err
        assert 0 == run("import", "--verify", str(tmp_path / "home")).code
        assert 2 == len(run("sessions", "--project", "api").lines)

    def test_nothing_found_is_said(self, two: Repo, run: Run) -> None:
        assert "no such sessions" in run("sessions", "--project", "elsewhere").err


def test_an_age_is_one_word() -> None:
    def ago(micros: int) -> str:
        return age(clock.format_instant(clock.now() - micros))

    assert ["0s", "5m", "3h", "23h", "1d", "59d", "2mo", "23mo", "2y"] == [
        ago(micros)
        for micros in (
            *(0, 5 * MINUTE, 185 * MINUTE, DAY - MINUTE, DAY, 59 * DAY, 60 * DAY + MINUTE),
            *(700 * DAY, 731 * DAY),
        )
    ]
    assert ("0s", "?") == (ago(-DAY), age(None))


def test_money_is_told_to_the_cent_and_unknown_is_not_nothing() -> None:
    told = [cents(micros) for micros in (None, 0, 1, 4_999, 5_000, 15_000, 1_234_567_890_123)]

    assert ["-", "$0.00", "<$0.01", "<$0.01", "$0.01", "$0.02", "$1,234,567.89"] == told


def test_a_project_is_called_by_as_much_as_tells_it_from_others() -> None:
    names = project_names(["/a/b/x", "/c/b/x", "/d/y", "/", "", "x", "/a/b/x"])

    assert {"/a/b/x": "a/b/x", "/c/b/x": "c/b/x", "/d/y": "y", "/": "/", "": "", "x": "x"} == names


def test_the_line_of_a_hostile_session_is_one(repo: Repo, run: Run, tmp_path: Path) -> None:
    path = lay(tmp_path / "home", "s1", "/tmp/\x1b]0;x\x07\nforged", "a\x1b[2Jb\nc", 1)
    list(repo.import_sessions([path]))

    (line,) = run("sessions").lines

    assert "\x1b" not in line
