"""What home tells of hooks: all of a session is read only where a hook may have done something, and never by many."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import harken
from harken import clock
from harken.api import home_hooks
from harken.api.home import HomeAnswer, HomeRequest, home
from harken.api.remembering import remembered
from harken.api.session_page import SessionPageRequest, session_page
from harken.events import Prompt
from harken.events.verdicts import tells_of_hooks
from harken.index import StoreIndex
from harken.repo import Repo
from harken.views import SessionViewer
from support.contexts import keep, turn
from support.page_sessions import DAY
from support.viewed import cafe, write_log

NOW = clock.parse_instant(f"{DAY}T12:00:00Z") or 0
SAID = Prompt(content="Two teas.", message_id="said", agent_id="jack", time=NOW)
HEARD = Prompt(content="One tea.", message_id="heard", agent_id="jill", substance="said", time=NOW + 1)


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    with harken.open(tmp_path / "store.db", clock=lambda: NOW) as repo:
        yield repo


def ask(repo: Repo) -> HomeAnswer:
    return home(repo, HomeRequest(day=DAY))


def changed(repo: Repo) -> int:
    return ask(repo).facts.changed


def nobody_reads(meanwhile: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> SessionViewer:
        raise AssertionError("all of a session is read")

    meanwhile.setattr(Repo, "view", refuse)
    meanwhile.setattr(SessionViewer, "of", refuse)


class TestWhichAreRead:
    def test_a_session_in_which_no_hook_can_have_done_anything_is_not(
        self, repo: Repo, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        nobody_reads(monkeypatch)
        for number in range(1, 4):
            keep(repo, turn(number, time=NOW), parent="s" if number > 1 else None, session_id="s")

            assert (number, 0) == (ask(repo).facts.prompts, changed(repo))
            found = session_page(repo, SessionPageRequest(session="s"))
            assert (0, 0) == (found.changed, found.blocked)

    def test_one_that_repeats_words_is_read_once_for_where_it_stands(
        self, repo: Repo, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        keep(repo, [SAID, HEARD], session_id="s")
        assert 1 == changed(repo)

        nobody_reads(monkeypatch)
        assert 1 == changed(repo)

    def test_one_that_has_grown_is_read_again(self, repo: Repo) -> None:
        keep(repo, [SAID], session_id="s")
        before = changed(repo)
        keep(repo, [HEARD], parent="s", session_id="s")

        assert (0, 1) == (before, changed(repo))

    def test_so_is_one_that_goes_on_from_another(self, repo: Repo) -> None:
        first = keep(repo, [SAID, HEARD], session_id="s")
        keep(repo, turn(1, time=NOW), parent=first, session_id="t")

        assert len(repo.view("s").interventions()) + len(repo.view("t").interventions()) == changed(repo)

    def test_one_whose_index_was_built_anew(self, repo: Repo) -> None:
        keep(repo, [SAID, HEARD], session_id="s")
        repo.index.rebuild()

        assert 1 == changed(repo)

    def test_whatever_part_of_a_log_is_there(self, tmp_path: Path) -> None:
        lines = cafe()
        found = 0
        for size in range(1, len(lines) + 1):
            path = write_log(tmp_path / f"{size}.jsonl", lines[:size])
            told = SessionViewer(path).interventions()
            found += bool(told)

            assert not told or tells_of_hooks(event for one in SessionViewer(path).index.records for event in one)
        assert found


class TestManyWhoAsk:
    def test_while_another_reads_it_is_told_as_it_was(self, repo: Repo) -> None:
        keep(repo, [SAID, HEARD], session_id="s")
        changed(repo)
        keep(repo, [HEARD.replace(message_id="again")], parent="s", session_id="s")
        sessions = remembered(repo, "hooked sessions", "", home_hooks.HookedSessions)

        with sessions.turn:
            late = ask(repo)
        now = ask(repo)

        assert (1, 1) == (late.facts.changed, late.stale)
        assert (2, 0) == (now.facts.changed, now.stale)

    def test_who_has_read_for_long_lets_others_do_something(self, repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
        keep(repo, [SAID, HEARD], session_id="s")
        changed(repo)
        monkeypatch.setattr(home_hooks, "LONG", 0)
        monkeypatch.setattr(home_hooks, "PAUSE", 1e9)
        found = []
        for number in range(2):
            keep(repo, [HEARD.replace(message_id=f"again {number}")], parent="s", session_id="s")
            found.append(ask(repo))

        assert [(2, 0), (2, 1)] == [(one.facts.changed, one.stale) for one in found]

    def test_one_that_cannot_be_read_lets_the_next_one_read(self, repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
        keep(repo, [SAID, HEARD], session_id="s")
        changed(repo)
        keep(repo, [HEARD.replace(message_id="again")], parent="s", session_id="s")
        with monkeypatch.context() as meanwhile:
            nobody_reads(meanwhile)
            with pytest.raises(AssertionError):
                ask(repo)

        assert 2 == changed(repo)


def test_numbers_that_were_not_made_yet_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a log tells of its compactions comes with its numbers, which may be late."""
    cut = {"message_id": "m30", "event_type": "transcript_edit", "action": "compact", "agent_id": "root", "n": 2}
    lines = [*cafe(), {**cut, "start": 0, "content": "They met.", "timestamp": f"{DAY}T00:30:00Z"}]
    with harken.open(tmp_path / "store.db", clock=lambda: NOW) as repo:
        list(repo.import_sessions([write_log(tmp_path / "log.jsonl", lines)]))
        real = StoreIndex.catch_up
        with monkeypatch.context() as meanwhile:
            meanwhile.setattr(StoreIndex, "catch_up", lambda self, **how: real(self, **how | {"numbers": False}))
            late = ask(repo)
        now = ask(repo)

    assert late.stale
    assert (1, 0) == (now.facts.compactions, now.stale)
