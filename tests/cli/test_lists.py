"""Lists at any width: one line per row, nothing forged by what a transcript says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from harken import clock
from harken.events import Prompt, Response, ToolCall
from harken.repo import Repo
from harken.store import SessionRow
from harken.text import width_of
from support.contexts import keep, turn

Run = Any
WIDTHS = (60, 80, 120)
UUIDS = ("3f2a91bc-0000-4000-8000-000000000001", "3f2a91bc-7777-4000-8000-000000000002")


def cells(text: str) -> int:
    return sum(map(width_of, text))


@pytest.fixture
def full(repo: Repo) -> Repo:
    """Sessions with long ids, long texts, wide characters, sub-agents, names and moves."""
    for number, session in enumerate(UUIDS):
        tip = keep(repo, turn(number), session_id=session, template="claude-code", principal="somebody " * 9)
        said = [Prompt(content="漢字 and more words than any window holds " * 9), Response(content="é" * 300)]
        keep(repo, said, tip, session_id=session, template="claude-code")
    agent = keep(repo, turn(7), template="claude-code")
    row = SessionRow(session=UUIDS[0] + "/agent-1", runtime="claude-code", parent=UUIDS[0], agent="agent-1")
    with repo.store.write() as writer:
        writer.save_session(msgspec.structs.replace(row, tip=agent.id))
    repo.fork(tip, "a-branch-with-a-rather-long-name/" + "x" * 40, why="because " * 20)
    return repo


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("args", [["sessions"], ["log"], ["log", "--graph"], ["moves"], ["branch"]], ids=" ".join)
def test_a_row_never_wraps(full: Repo, run: Run, monkeypatch: pytest.MonkeyPatch, args: list[str], width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))

    lines = run(*args).lines

    assert lines
    assert [] == [line for line in lines if cells(line) > width]


@pytest.mark.parametrize("width", WIDTHS)
def test_a_narrow_list_still_tells_sessions_apart(
    full: Repo, run: Run, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))

    words = {word for line in run("sessions").lines for word in line.split() if word.startswith("3f2a91bc")}

    tops = {word for word in words if "/" not in word}
    assert 2 == len(tops)
    assert all(0 == run("log", word).code for word in tops), "what is shown can be typed"


def test_into_a_pipe_a_row_goes_whole(full: Repo, run: Run) -> None:
    assert {*UUIDS, UUIDS[0] + "/agent-1"} <= {word for line in run("sessions", "--all").lines for word in line.split()}


FORGED = "quiet\nctx-00000000  forged\rerror: forged\u2028forged\x1b[2K"


class TestForging:
    """#48: newlines from transcripts forged lines of output."""

    @pytest.mark.parametrize(
        "args",
        [["sessions"], ["log"], ["log", "--graph"], ["show", "--no-content", "b"], ["agents", "s"], ["moves"]],
        ids=" ".join,
    )
    def test_a_newline_in_a_transcript_begins_no_line(self, repo: Repo, run: Run, args: list[str]) -> None:
        plain = keep(repo, turn(1), session_id="s", template="t", principal="p")
        repo.fork(plain, "b", why="why")
        expected = len(run(*args).lines)

        with repo.store.write() as writer:
            (row,) = repo.sessions("s")
            writer.save_session(msgspec.structs.replace(row, title=FORGED, runtime=FORGED, agent=FORGED))
        repo.annotate(plain, FORGED)
        extra = 1 if args[0] == "show" else 0  # the remark itself is a line of `show`

        lines = run(*args).lines
        assert expected + extra == len(lines)
        assert [] == [line for line in lines if line.startswith(("forged", "error:", "ctx-00000000"))]

    def test_content_and_errors_stay_on_their_lines(self, repo: Repo, run: Run) -> None:
        tip = keep(repo, [Prompt(content=FORGED), ToolCall(id="c", name=FORGED, input=b"{}")], session_id="s")

        shown, missing = run("show", tip.short), run("log", FORGED)

        assert 2 == len([line for line in shown.lines if "forged" in line and not line.startswith("summary")])
        assert not [line for line in missing.err.splitlines() if line.startswith(("forged", "ctx-00000000"))]


class TestTheOrderOfSessions:
    """The last active first, each sub-agent below the one that made it."""

    DAY = 86_400_000_000

    def lay(self, repo: Repo, *, now: int | None = None, **sessions: tuple[str, int]) -> None:
        now = now or clock.now()
        with repo.store.write() as writer:
            for name, (parent, days) in sessions.items():
                row = SessionRow(session=name, runtime="harken", parent=parent, title=f"about {name}")
                times = {"started": now - 900 * self.DAY, "ended": now - days * self.DAY}
                writer.save_session(msgspec.structs.replace(row, **times))

    def test_an_agent_made_by_an_agent_stands_below_it(self, repo: Repo, run: Run) -> None:
        self.lay(repo, root=("", 3), other=("", 5), child=("root", 2), grandchild=("child", 0), orphan=("gone", 9))

        listed = [one["session"] for one in run("sessions", "--json").json]

        assert ["root", "child", "grandchild", "other", "orphan"] == listed

    def test_one_that_is_its_own_ancestor_is_listed_all_the_same(self, repo: Repo, run: Run) -> None:
        self.lay(repo, one=("two", 1), two=("one", 2), me=("me", 3))

        assert {"one", "two", "me"} == {one["session"] for one in run("sessions", "--json").json}

    @pytest.mark.parametrize("since", ["36h", "2d", "yesterday"])
    def test_since_leaves_out_what_was_over_before(self, repo: Repo, run: Run, since: str) -> None:
        self.lay(repo, fresh=("", 0), stale=("", 30))

        assert ["fresh"] == [one["session"] for one in run("sessions", "--json", "--since", since).json]

    def test_a_time_that_is_none_is_a_usage_error(self, repo: Repo, run: Run) -> None:
        assert 2 == run("sessions", "--since", "lately").code

    def test_match_looks_at_titles_in_any_case(self, repo: Repo, run: Run) -> None:
        self.lay(repo, fresh=("", 0), stale=("", 30))

        assert ["stale"] == [one["session"] for one in run("sessions", "--json", "--match", "ABOUT ST").json]

    def test_what_a_resume_wrote_today_stands_at_today(self, repo: Repo, run: Run, tmp_path: Path) -> None:
        today = repo.clock()  # not the machine's: what a resume writes has the times of the repo's clock
        tip = keep(repo, turn(0, time=today - 9 * self.DAY), session_id="origin", template="claude-code")
        self.lay(repo, now=today, between=("", 3))
        done = repo.resume(tip, "claude-code", cwd=tmp_path, home=tmp_path / ".claude", environ={})
        list(repo.import_sessions([done.path]))

        first = run("sessions", "--json").json[0]

        assert done.session == first["session"]


class TestACommitForItsSession:
    """The first column of `harken sessions` can be used where a session is wanted."""

    @pytest.fixture
    def kept(self, repo: Repo) -> list[str]:
        first = keep(repo, turn(0), session_id="aaa", template="claude-code")
        tip = keep(repo, turn(1), first, session_id="aaa", template="claude-code")
        keep(repo, turn(2), session_id="bbb", template="claude-code")
        repo.fork(tip, "review")
        return [tip.short, first.short, tip.id, "review"]

    @pytest.mark.parametrize("which", range(4))
    def test_it_stands_for_the_session_in_stats_and_agents(self, kept: list[str], run: Run, which: int) -> None:
        assert "aaa" == run("stats", kept[which], "--json").json[0]["session"]
        expected = run("agents", "aaa", "--json").json
        assert expected and expected == run("agents", kept[which], "--json").json
