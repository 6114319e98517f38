"""`harken stats` over a window of time: one screen, or a table by one thing."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harken import clock
from harken.cli import ui
from harken.cli.stats_window import money, short, sparkline
from harken.events import Metric
from harken.index import IndexProgress
from harken.repo import Repo
from support.contexts import keep, turn
from support.double_counting import Used, answered, claude, codex, name, said
from support.rollouts import Rollout

from .conftest import Run

OPUS, SONNET = "claude-opus-4-6", "claude-sonnet-4-5-20250929"
ALWAYS = ("--since", "2020-01-01")


@pytest.fixture
def kept(repo: Repo, tmp_path: Path, zone: Any) -> None:
    """Two sessions on two days, in two folders, with a sub-agent and a model that has no price."""
    first, agent = Used(OPUS, 100, 10), Used(SONNET, 1000, 100)
    day = {"timestamp": "2026-03-01T23:30:00.000Z", "cwd": "/work/one"}
    side = {**day, "isSidechain": True, "agentId": "a1"}
    call = answered(name(1), 3, first, "msg_1", **day)
    call["message"]["content"] = [{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}]
    claude(tmp_path, name(1), said(name(1), 1, **day), answered(name(1), 2, first, "msg_1", **day), call)
    below = f"{name(1)}/subagents/agent-a1.jsonl"
    claude(tmp_path, name(1), said(name(1), 11, **side), answered(name(1), 12, agent, "msg_2", **side), below=below)
    day = {"timestamp": "2026-03-03T10:00:00.000Z", "cwd": "/work/two"}
    odd = answered(name(2), 4, first, "msg_4", **day)
    odd["message"]["model"] = "nobody-knows"
    claude(tmp_path, name(2), said(name(2), 1, **day), answered(name(2), 2, first, "msg_3", costUSD=0.001, **day), odd)
    list(repo.import_sessions([tmp_path / "claude"]))


def groups(run: Run, by: str, *more: str) -> dict[str, int | None]:
    *lines, _ = run("stats", "--by", by, *(more or ALWAYS), "--json").json
    return {line["key"]: line["price_usd_micros"] for line in lines}


OWN, DELEGATED = 100 * 5 + 10 * 25, 1000 * 3 + 100 * 15


class TestByOneThing:
    @pytest.mark.usefixtures("kept")
    def test_costs_stand_where_they_were_made(self, run: Run) -> None:
        assert {"2026-03-01": OWN + DELEGATED, "2026-03-03": OWN} == groups(run, "day")
        assert {"2026-W09": OWN + DELEGATED, "2026-W10": OWN} == groups(run, "week")
        assert {"2026-03": 2 * OWN + DELEGATED} == groups(run, "month")
        assert {"/work/one": OWN + DELEGATED, "/work/two": OWN} == groups(run, "project")
        assert {OPUS: 2 * OWN, SONNET: DELEGATED, "nobody-knows": None} == groups(run, "model")
        assert {"claude-code": 2 * OWN + DELEGATED} == groups(run, "runtime")
        assert {"claude-code": 2 * OWN, "a1": DELEGATED} == groups(run, "agent")
        assert {name(1): OWN + DELEGATED, name(2): OWN} == groups(run, "session")

    @pytest.mark.usefixtures("kept")
    def test_sessions_that_were_not_counted_are_no_changes(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Repo, "_follow", lambda *_: IndexProgress(at=9, last=9, stale=3))

        *_, total = run("stats", "--by", "tool", *ALWAYS, "--json").json
        told = run("stats", "--by", "tool", *ALWAYS).err

        assert (0, 3) == (total["behind"], total["stale"])
        assert "the index is behind the store by the numbers of 3 sessions" in told

    @pytest.mark.usefixtures("kept")
    def test_tools_have_calls(self, run: Run) -> None:
        tool, total = run("stats", "--by", "tool", *ALWAYS, "--json").json

        assert ("Bash", 1, 1) == (tool["key"], tool["calls"], total["calls"])

    @pytest.mark.usefixtures("kept")
    def test_the_total_names_what_has_no_price_and_what_runtimes_said(self, run: Run) -> None:
        *_, total = run("stats", "--by", "model", *ALWAYS, "--json").json

        assert {"nobody-knows": 1} == total["unpriced"]
        assert (2 * OWN + DELEGATED, 1000) == (total["price_usd_micros"], total["cost_usd_micros"])
        assert (2, 4, 0) == (total["sessions"], total["requests"], total["behind"])

    @pytest.mark.usefixtures("kept")
    def test_a_day_is_one_of_the_local_time_zone(self, run: Run, zone: Any) -> None:
        zone("Asia/Tokyo")

        *lines, total = run("stats", "--by", "day", *ALWAYS, "--json").json

        assert ["2026-03-02", "2026-03-03"] == [line["key"] for line in lines]
        assert "JST" == total["zone"]
        assert "JST" in run("stats", *ALWAYS).lines[0]

    @pytest.mark.usefixtures("kept")
    def test_a_window_and_a_project_leave_out_the_rest(self, run: Run) -> None:
        assert {"2026-03-03": OWN} == groups(run, "day", "--since", "2026-03-02")
        assert {"2026-03-01": OWN + DELEGATED} == groups(run, "day", "--until", "2026-03-01")
        assert {"2026-03-01": OWN + DELEGATED} == groups(run, "day", *ALWAYS, "--project", "one")
        assert {"2026-03-03": OWN} == groups(run, "day", *ALWAYS, "--project", "/work/two")
        assert 2 == len(groups(run, "day", *ALWAYS, "--project", "/work"))
        assert {} == groups(run, "day", *ALWAYS, "--project", "/wor")

    @pytest.mark.usefixtures("kept")
    def test_a_file_of_prices_stands_over_those_that_come_along(
        self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        mine = tmp_path / "prices.toml"
        mine.write_text('[[model]]\nname = "nobody-knows"\ninput = 1\noutput = 1\n')
        monkeypatch.setenv("HARKEN_PRICES", str(mine))

        assert {OPUS: 2 * OWN, SONNET: DELEGATED, "nobody-knows": 110} == groups(run, "model")
        (line,) = run("stats", name(2), "--json").json
        assert (OWN + 110, {}) == (line["price"]["usd_micros"], line["price"]["unpriced"])

        asked = "SELECT sum(cost), sum(unpriced) FROM daily WHERE model = 'nobody-knows'"
        (row,) = run("sql", asked, "--json").json
        assert {"sum(cost)": pytest.approx(110e-6), "sum(unpriced)": 0} == row
        both = "SELECT round((SELECT sum(cost) FROM usage WHERE counted) - (SELECT sum(cost) FROM sessions), 9) AS rest"
        assert [{"rest": 0.0}] == run("sql", both, "--json").json

        mine.write_text('[[model]]\nname = "nobody-knows"\nverified = false\ninput = 1\noutput = 1\n')
        *_, total = run("stats", "--by", "model", *ALWAYS, "--json").json
        (line,) = run("stats", name(2), "--json").json
        assert {"nobody-knows": 1} == total["unverified"] == line["price"]["unverified"]
        for words in (ALWAYS, (name(2),)):
            assert "the price was not checked of nobody-knows" in run("stats", *words).out

        mine.write_text("not toml")
        assert 2 == run("stats", *ALWAYS).code
        mine.unlink()
        assert 3 == run("stats", *ALWAYS).code


class TestTheScreen:
    @pytest.mark.usefixtures("kept")
    @pytest.mark.parametrize("columns", ["60", "80", "120"])
    def test_it_fits(self, run: Run, monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
        monkeypatch.setenv("COLUMNS", columns)

        done = run("stats", *ALWAYS)

        assert 0 == done.code
        assert max(map(len, done.lines)) <= int(columns)
        assert len(done.lines) <= 36
        for words in (
            "2026-03-03",
            "/work/one",
            OPUS[:12],
            "question 1",
            "Bash",
            "no list price is known for the requests to nobody-knows",
        ):
            assert words in done.out
        assert "▁" in done.out or "█" in done.out

    @pytest.mark.usefixtures("kept")
    @pytest.mark.parametrize(
        ("since", "bars"), [("2026-03-01", "█ ▂"), ("2026-02-28", " █ ▂"), ("2026-01-01", f"{' ' * 29}█▂")]
    )
    def test_every_day_is_in_a_bar(self, run: Run, since: str, bars: str) -> None:
        lines = run("stats", "--since", since, "--until", "2026-03-03").lines

        assert f"  {bars}" in lines

    @pytest.mark.usefixtures("kept")
    def test_where_a_price_is_missing_it_is_the_least_that_it_costs(self, run: Run) -> None:
        one, two, total = run("stats", *ALWAYS, "--by", "project").lines[1:4]

        assert (["/work/one", "$0.0053"], ["/work/two", ">="]) == (one.split()[:2], two.split()[:2])
        assert total.startswith("total  >= $0.0060 at list price")
        assert ">= $0.0060 at list price" in run("stats", *ALWAYS).lines[1]

    @pytest.mark.usefixtures("kept")
    def test_when_work_happens(self, run: Run, zone: Any) -> None:
        zone("Asia/Tokyo")

        *_, total = run("stats", *ALWAYS, "--by", "day", "--json").json

        assert (2, 2) == (total["hours"][0][8], total["hours"][1][19])  # Monday morning, Tuesday evening
        assert 4 == sum(map(sum, total["hours"]))
        assert (1, "2026-03-01T23:30:00.000000Z") == (total["peak_sessions"], total["peak_at"])
        assert "busiest Mondays 08:00 to 09:00; at most 1 session" in run("stats", *ALWAYS).out

    @pytest.mark.usefixtures("kept")
    @pytest.mark.parametrize("columns", ["60", "80", "120"])
    def test_the_details_of_a_session_fit(self, run: Run, monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
        monkeypatch.setenv("COLUMNS", columns)

        done = run("stats", name(1), "--details")

        assert 0 == done.code
        assert max(map(len, done.lines)) <= int(columns)
        for words in ("outcome   unknown", "itself    1 request", "others    1 request", "tool      Bash 1"):
            assert words in done.out
        assert 2 == run("stats", "--details").code

    @pytest.mark.parametrize("columns", ["60", "80", "120"])
    def test_a_session_is_told_in_windows(
        self, run: Run, tmp_path: Path, zone: Any, monkeypatch: pytest.MonkeyPatch, columns: str
    ) -> None:
        monkeypatch.setenv("COLUMNS", columns)
        zone("Asia/Tokyo")
        lines = [
            said(name(1), 1, timestamp="2026-03-01T10:00:00.000Z"),
            answered(name(1), 2, Used(OPUS, 1, 1), "m", timestamp="2026-03-01T10:15:00.000Z"),
            said(name(1), 3, timestamp="2026-03-01T12:05:00.000Z"),
        ]
        claude(tmp_path, name(1), *lines)
        path = tmp_path / f"claude/projects/-work-demo/{name(1)}.jsonl"

        done = run("stats", str(path), "--details", "--window", "10m")
        (told,) = run("stats", str(path), "--details", "--window", "10m", "--json").json

        cells = min(40, int(columns) - 34)
        assert max(map(len, done.lines)) <= int(columns)
        assert f"    2026-03-01 19:00  {'r' * cells}  1" in done.lines  # what it is a response to, and ten minutes
        assert f"    2026-03-01 19:10  {'r' * (cells // 2) + '.' * (cells - cells // 2)}  1" in done.lines
        assert "    2026-03-01 19:20  idle for 1.7h" in done.lines  # an hour and 40 minutes: ten windows
        assert "in JST" in done.out
        windows = told["profile"]["windows"]
        assert (13, 15 * 60, 110 * 60) == (
            len(windows),
            sum(one["spent"]["response"] for one in windows) / 1e6,
            sum(one["spent"]["idle"] for one in windows) / 1e6,
        )

    @pytest.mark.usefixtures("kept")
    def test_lengths_that_are_none_are_refused(self, run: Run) -> None:
        for wrong in ("10", "10x", "0m", "-1m", "m", "", "٣m", "9" * 20 + "d"):
            assert 2 == run("stats", "s", "--details", "--window", wrong).code
        assert 2 == run("stats", "--window", "10m").code

    @pytest.mark.usefixtures("kept")
    @pytest.mark.parametrize("columns", ["60", "80", "120"])
    def test_tools_are_told_apart_by_runtime_and_template(
        self, run: Run, repo: Repo, monkeypatch: pytest.MonkeyPatch, columns: str
    ) -> None:
        monkeypatch.setenv("COLUMNS", columns)
        row = repo.store.find_session(name(1))
        assert row is not None
        with repo.store.write() as writer:
            writer.save_session(msgspec.structs.replace(row, template="reviewer"))

        apart = {
            per: run("stats", "--by", "tool", "--per", per, *ALWAYS, "--json").json for per in ("runtime", "template")
        }

        assert [("Bash", "claude-code", 1)] == [(one["key"], one["per"], one["calls"]) for one in apart["runtime"][:-1]]
        assert [("Bash", "reviewer", 1)] == [(one["key"], one["per"], one["calls"]) for one in apart["template"][:-1]]
        drawn = run("stats", "--by", "tool", "--per", "template", *ALWAYS)
        assert "  reviewer: Bash" in drawn.out and max(map(len, drawn.lines)) <= int(columns)
        assert 2 == run("stats", "--by", "day", "--per", "runtime").code

    @pytest.mark.usefixtures("kept")
    def test_the_index_keeps_what_the_folds_say_of_each_session(self, repo: Repo) -> None:
        repo.index.catch_up()

        found = repo.index.query(
            "SELECT report ->> '$.tools.Bash.calls' FROM figures JOIN sessions ON n = figures.session"
            " WHERE sessions.session = ?",
            (name(1),),
        )

        assert [(1,)] == found

    @pytest.mark.usefixtures("kept")
    def test_without_a_window_it_is_the_last_30_days(self, run: Run) -> None:
        done = run("stats")

        assert 0 == done.code
        first = clock.local_period(clock.now() - 29 * 86_400 * clock.SECOND)
        assert done.lines[0].startswith(first)
        assert "nothing was used in that time;" in done.err

    @pytest.mark.usefixtures("kept")
    def test_where_a_folder_used_nothing_it_is_named(self, run: Run) -> None:
        assert (
            "nothing was used in that time in tow (`harken stats --by project` " in run("stats", "--project", "tow").err
        )

    @pytest.mark.usefixtures("kept")
    def test_a_session_has_its_price_beside_what_the_runtime_said(self, run: Run) -> None:
        page = run("stats", name(2)).out
        family = run("stats", name(1)).out

        assert "nobody knows what 1 request of nobody-knows cost" in page
        assert ">= $0.0008" in page  # the other half has no price
        assert ["$0.0008", "$0.0045", "$0.0053"] == [
            line.split()[1] for line in family.splitlines() if line.split()[0] == "price"
        ]

    def test_a_difference_is_shown(self, run: Run, repo: Repo, tmp_path: Path) -> None:
        used = Used(OPUS, 100, 10)
        claude(tmp_path, name(3), said(name(3), 1), answered(name(3), 2, used, "msg_9", costUSD=0.001))
        list(repo.import_sessions([tmp_path / "claude"]))

        assert "$0.0008 (-0.0003 to what the runtime said)" in run("stats", name(3)).out

    def test_what_nobody_counted_is_unknown_and_not_zero(self, run: Run, repo: Repo) -> None:
        keep(repo, [*turn(0), Metric(cost_usd=7.95, status="success")], session_id="one", template="harken")
        keep(repo, turn(1), session_id="two", template="harken")

        *_, total = run("stats", "--by", "model", "--json", *ALWAYS).json

        assert (None, 7_950_000, 2) == (total["price_usd_micros"], total["cost_usd_micros"], total["uncounted"])
        assert "? at list price" in run("stats", *ALWAYS).out

    def test_what_was_carried_into_another_program_used_nothing_there(
        self, run: Run, repo: Repo, tmp_path: Path
    ) -> None:
        claude(tmp_path, name(3), said(name(3), 1), answered(name(3), 2, Used(OPUS, 100, 10), "msg_9"))
        list(repo.import_sessions([tmp_path / "claude"]))
        written = repo.resume(name(3), "codex", home=tmp_path / "codex", cwd=tmp_path)
        list(repo.import_sessions([written.path]))

        *_, total = run("stats", "--by", "model", "--json").json

        assert (2, 0) == (len(repo.store.sessions()), total["uncounted"])

    def test_an_empty_store_is_no_failure(self, run: Run, repo: Repo) -> None:
        done = run("stats")

        assert 0 == done.code
        assert "harken import" in done.err

    @pytest.mark.parametrize("words", [("--since", "soon"), ("--until", "2026-02-30"), ("--by", "colour")])
    def test_what_is_no_time_is_refused(self, run: Run, repo: Repo, words: tuple[str, ...]) -> None:
        assert 2 == run("stats", *words).code

    def test_a_window_that_ends_before_it_begins_is_refused(self, run: Run, repo: Repo) -> None:
        assert 2 == run("stats", "--since", "today", "--until", "yesterday").code
        assert 0 == run("stats", "--since", "today", "--until", "today").code

    @pytest.mark.usefixtures("kept")
    def test_a_session_is_counted_as_a_whole(self, run: Run) -> None:
        assert 2 == run("stats", name(1), "--since", "7d").code

    def test_titles_and_folders_are_not_trusted(self, run: Run, repo: Repo, tmp_path: Path) -> None:
        hostile = {"cwd": "/work/\x1b[31mred\n", "message": {"role": "user", "content": "\x1b]0;owned\x07"}}
        claude(tmp_path, name(4), said(name(4), 1, **hostile), answered(name(4), 2, Used(OPUS, 1, 1), "m", cwd="/x"))
        list(repo.import_sessions([tmp_path / "claude"]))

        assert "\x1b" not in run("stats", *ALWAYS).out


def test_threads_of_codex_are_counted_too(run: Run, repo: Repo, tmp_path: Path, zone: Any) -> None:
    usage = {"input_tokens": 100, "cached_input_tokens": 40, "output_tokens": 20}
    rollout = Rollout(id=name(5), cwd="/work/c").add("turn_context", model="gpt-5.5", cwd="/work/c").user("hi")
    rollout.model("hello").event("token_count", info={"total_token_usage": usage, "last_token_usage": usage})
    codex(tmp_path, name(5), rollout)
    list(repo.import_sessions([tmp_path / "codex"]))

    assert {"codex": 60 * 5 + 20 + 20 * 30} == groups(run, "runtime")


def test_bars_say_which_days_cost_most() -> None:
    assert " ▁▄█" == sparkline([0, 1, 50, 100])
    assert "" == sparkline([])


def test_figures_are_short_and_unknown_is_not_zero() -> None:
    assert ["?", "0", "999", "1.0k", "2.5M"] == [*map(short, (None, 0, 999, 1000, 2_500_000))]
    assert ["?", "$0.00", "$0.0001", "$1,234.50"] == [*map(money, (None, 0, 100, 1_234_500_000))]


def test_what_brings_the_index_up_to_date_is_not_loaded_where_it_is(repo: Repo, kept: None) -> None:
    repo.index.catch_up()
    script = (
        "import sys, harken.cli\n"
        "sys.exit = lambda code: print(code, *sys.modules, file=sys.stderr)\n"
        "harken.cli.main(sys.argv[1:])"
    )

    words = ["--store", repo.store.location, "stats", *ALWAYS]
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, timeout=60)

    code, *loaded = done.stderr.split()
    assert "0" == code
    assert set() == {"harken.index.follow", "harken.index.figures", "importlib.metadata", "logging"} & set(loaded)


@pytest.mark.parametrize(
    ("path", "shown"),
    [("/a/bc", "/a/bc"), ("/home/me/shop", "…me/shop"), ("/home/漢字漢字漢字", "…字漢字"), ("", "")],
)
def test_of_a_path_that_is_too_wide_its_end_is_shown(path: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ui, "speaks_unicode", lambda: True)

    assert shown == ui.fit_path(path, 8)


def test_a_path_of_many_columns_is_cut_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ui, "speaks_unicode", lambda: True)
    before = time.process_time()

    assert "…/a.py" == ui.fit_path("/" + "ü" * 20_000 + "/a.py", 6)
    assert time.process_time() - before < 1
