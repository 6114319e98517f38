"""Flow in ranges: the same that the views tell, and what an agent knew at a moment."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harken
from harken import Repo
from harken.api import operation, reference
from harken.errors import BadRequest, NotFound
from support.large_session import write_large_session
from support.recordings import FOLDER
from support.viewed import cafe, entry, long_session, write_log


def ask(repo: Repo, name: str, **fields: Any) -> Any:
    described = next(one for one in reference.operations() if one.name == name)
    answer = operation(name)(repo, described.request(**fields))
    return list(answer) if described.many else answer


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    with harken.open("memory:") as repo:
        list(repo.import_sessions([write_log(tmp_path / "cafe.jsonl", cafe())]))
        yield repo


def rows(repo: Repo, **fields: Any) -> Any:
    return ask(repo, "flow_page", session="cafe", **fields).rows


class TestThePage:
    def test_columns_are_the_agents_without_hooks_and_whoever_is_outside(self, repo: Repo) -> None:
        columns = ask(repo, "flow_page", session="cafe").columns

        assert ["You", "root", "Jack", "Jill", "Inner", "Bob"] == [column.name for column in columns]
        assert ["Y", "R", "Ja", "Ji", "I", "B"] == [column.letters for column in columns]
        assert [1, 5, 3, 5, 2, 2] == [column.knows for column in columns]

    def test_what_a_program_put_in_is_nobodys_word(self, tmp_path: Path) -> None:
        """#12: a session's setting and a notice are no words of whoever is outside."""
        notice = entry("m30", "root", "user", "The task has ended.", source="injected", origin="task_notification")
        with harken.open("memory:") as repo:
            list(repo.import_sessions([write_log(tmp_path / "cafe.jsonl", [*cafe(), notice])]))
            spoken, more = rows(repo), rows(repo, tools="some")
            columns = ask(repo, "flow_page", session="cafe").columns

        assert [] == [row.text for row in spoken if row.message_id == "m30"]
        assert [("injected", "", "injected")] == [
            (row.kind, row.speaker, row.source) for row in more if row.message_id == "m30"
        ]
        assert {"You": 1} == {column.name: column.knows for column in columns if not column.agent}

    def test_a_row_says_who_heard_it_and_how(self, repo: Repo) -> None:
        row = next(row for row in rows(repo) if row.message_id == "m14")

        heard = {one.agent: (one.how, one.message_id) for one in row.hearers}
        assert {"jill": ("changed", "m15"), "bob": ("named", "m16"), "root": ("result", "m26")} == heard

    def test_what_was_changed_is_told_word_by_word(self, repo: Repo) -> None:
        row = next(row for row in rows(repo) if row.message_id == "m14")
        (compared,) = ask(repo, "view_compare", session="cafe")

        (changed,) = (one for one in row.hearers if one.how == "changed")

        assert [(piece.op, piece.text) for piece in compared.diff] == changed.diff
        assert (1, "Guard", compared.heard) == (changed.words, changed.hook, changed.heard)

    def test_the_same_is_said_and_heard_as_in_the_sequence(self, repo: Repo) -> None:
        told = {one.message_id: one for one in ask(repo, "view_sequence", session="cafe")}

        for row in (row for row in rows(repo) if row.kind == "spoken"):
            arrow = told[row.message_id]
            assert (arrow.speaker or "") == row.speaker
            assert {*arrow.hearers, *arrow.returned} == {one.agent for one in row.hearers}

    def test_agents_that_were_made_together_are_one_row(self, repo: Repo) -> None:
        made = [(row.speaker, row.made) for row in rows(repo) if row.kind == "made"]

        assert [("root", ["jack", "jill", "bob"]), ("jill", ["inner"])] == made

    def test_calls_and_everything_else_on_request(self, repo: Repo) -> None:
        some, everything = rows(repo, tools="some"), rows(repo, tools="all")

        assert {"spoken", "made", "call"} == {row.kind for row in some}
        assert len(rows(repo)) < len(some) < len(everything)
        assert len(everything) == ask(repo, "flow_page", session="cafe").everything
        with pytest.raises(BadRequest):
            rows(repo, tools="few")

    def test_some_agents_alone(self, repo: Repo) -> None:
        found = rows(repo, agents=("Inner",))

        assert ["m19", "m21"] == [row.message_id for row in found if row.kind == "spoken"]
        with pytest.raises(NotFound):
            rows(repo, agents=("Nobody",))

    def test_ranges_are_parts_of_the_whole(self, repo: Repo) -> None:
        whole = rows(repo)

        assert whole == [row for at in range(0, len(whole), 4) for row in rows(repo, start=at, count=4)]
        with pytest.raises(BadRequest):
            rows(repo, count=201)

    def test_the_moments_of_the_slider_are_what_was_said(self, repo: Repo) -> None:
        found = ask(repo, "flow_page", session="cafe")

        assert [row.n for row in found.rows if row.kind == "spoken"] == [number for _, number, _, _ in found.moments]
        assert ["changed"] == [mark for *_, mark in found.moments if mark]

    def test_a_long_session_has_a_bounded_slider(self, tmp_path: Path) -> None:
        with harken.open("memory:") as repo:
            list(repo.import_sessions([write_log(tmp_path / "long.jsonl", long_session(30_000, agents=10))]))

            found = ask(repo, "flow_page", session="long", count=5)

        assert 1000 == len(found.moments)
        assert found.spoken > 1000
        assert found.moments == sorted(found.moments)

    @pytest.mark.parametrize("folder", ["claude-code-2.1.325/parallel-agents", "codex-0.166.0/parallel-agents"])
    def test_a_sub_agent_was_told_by_its_maker_and_answers_in_a_result(self, folder: str) -> None:
        with harken.open("memory:") as repo:
            list(repo.import_sessions([FOLDER / folder]))
            (top,) = (row.session for row in repo.sessions() if not row.parent)
            found = ask(repo, "flow_page", session=top, tools="some")

        main = next(column for column in found.columns if column.role == "root")
        agents = [column.agent for column in found.columns if column.parent == main.agent]
        assert agents
        told = {one.agent for row in found.rows if row.speaker == main.agent for one in row.hearers}
        heard = {
            row.speaker for row in found.rows for one in row.hearers if (one.agent, one.how) == (main.agent, "result")
        }
        assert set(agents) <= told
        assert set(agents) & heard


class TestWhatAnAgentKnew:
    def knew(self, repo: Repo, agent: str, at: str = "") -> dict[str, str]:
        return {row.message_id: row.knew for row in ask(repo, "flow_knows", session="cafe", agent=agent, at=at).rows}

    @pytest.mark.parametrize("agent", ["root", "Jack", "Jill", "Bob", "Inner"])
    @pytest.mark.parametrize("at", ["", "m14", "m20", "2026-01-01T00:00:15Z"])
    def test_it_is_what_the_views_say_it_knew(self, repo: Repo, agent: str, at: str) -> None:
        found = self.knew(repo, agent, at)

        for row in (row for row in rows(repo) if row.kind == "spoken"):
            told = ask(repo, "view_knows", session="cafe", agent=agent, what=row.message_id, at=at or None)
            known = found[row.message_id] in ("said", "heard", "read")
            assert bool(told.knows) == known, row

    def test_what_comes_later_and_what_never_came(self, repo: Repo) -> None:
        found = self.knew(repo, "Jill", "m14")

        assert {"m2": "never", "m11": "heard", "m14": "later", "m21": "after"}.items() <= found.items()

    def test_how_much_it_knew_and_of_whom(self, repo: Repo) -> None:
        found = ask(repo, "flow_knows", session="cafe", agent="Jill")

        assert (5, 2, 3, 1, 2) == (found.knew, found.said, found.heard, found.changed, found.missed)
        assert {"jill": 2, "root": 1, "jack": 1, "inner": 1} == found.by
        assert (
            next(column.knows for column in ask(repo, "flow_page", session="cafe").columns if column.name == "Jill")
            == 5
        )

    def test_the_newest_it_knew_are_the_words_it_heard(self, repo: Repo) -> None:
        found = ask(repo, "flow_knows", session="cafe", agent="Jill")

        assert "Hello, my password: [REDACTED] is easy" in [one.text for one in found.newest]
        assert ["They met.", "Let them meet"] == [one.text for one in found.unknown]

    @pytest.mark.parametrize("name", ["Jack", "Bob", "Inner"])
    def test_what_is_forked_from_is_what_it_knew_and_no_other_agent(self, repo: Repo, name: str) -> None:
        found = ask(repo, "flow_knows", session="cafe", agent=name)
        context = repo.materialize(found.ref, format="openai-chat-v1").bytes.decode()

        assert found.newest
        assert all(one.text in context for one in found.newest)
        assert not [one.text for one in found.unknown if one.text in context]

    @pytest.mark.parametrize("folder", ["claude-code-2.1.325/parallel-agents", "codex-0.166.0/parallel-agents"])
    def test_whoever_told_a_sub_agent_what_to_do_knows_it(self, folder: str) -> None:
        with harken.open("memory:") as repo:
            list(repo.import_sessions([FOLDER / folder]))
            (top,) = (row.session for row in repo.sessions() if not row.parent)
            flow = ask(repo, "flow_page", session=top)
            main = next(column for column in flow.columns if column.role == "root")
            found = ask(repo, "flow_knows", session=top, agent=main.agent)
            spoken = {row.n for row in flow.rows if row.kind == "spoken"}
            knew = [row.knew for row in found.rows if row.n in spoken]

            assert repo.commit(found.ref)
        assert main.agent not in {one.speaker for one in found.unknown}
        assert knew.count("said") == found.said
        assert knew.count("never") == found.missed
        assert main.knows == found.knew == found.by[main.agent] + found.heard

    def test_a_moment_that_is_none_is_refused(self, repo: Repo) -> None:
        with pytest.raises(BadRequest):
            self.knew(repo, "Jill", "some day")
        with pytest.raises(NotFound):
            self.knew(repo, "Nobody")


def test_the_agents_of_a_session_are_read_once_until_it_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session, path, _ = write_large_session(tmp_path, 40)
    with harken.open("memory:") as repo:
        list(repo.import_sessions([tmp_path]))
        (before,) = ask(repo, "agents", session=session)
        with monkeypatch.context() as patched:
            patched.setattr(Repo, "agents", lambda *_: pytest.fail("read again"))
            assert [before] == ask(repo, "agents", session=session[:8])
        last = json.loads(path.read_text().splitlines()[-1])
        more = {**last, "uuid": "00000000-0000-4000-8000-000000000001", "parentUuid": last["uuid"], "type": "user"}
        more["message"] = {"role": "user", "content": "Go on."}
        path.write_text(path.read_text() + json.dumps(more) + "\n")
        list(repo.import_sessions([tmp_path]))

        assert [before.messages + 1] == [one.messages for one in ask(repo, "agents", session=session)]
