"""An agent goes by one id, whichever way one asks."""

from __future__ import annotations

from pathlib import Path

import pytest

import harken
from harken import NotFound, Repo
from support.contexts import keep, memory_repo, turn

RECORDED = Path(__file__).parents[1] / "recorded"


class TestOneNameThroughEveryDoor:
    """An agent goes by one id in the list of agents, in the events and in every view."""

    def doors(self, repo: Repo, session: str) -> set[tuple[str, ...]]:
        listed = tuple(sorted(agent.agent for agent in repo.agents(session)))
        viewed = tuple(sorted(repo.view(session).list_agents()))
        told = tuple(sorted({event.agent_id for event in repo.events(session)}))
        return {listed, viewed, told}

    def test_for_every_recorded_session(self, tmp_path: Path) -> None:
        with harken.open("memory:") as repo:
            list(repo.import_sessions([RECORDED]))
            tops = [row.session for row in repo.sessions() if not row.parent]
            wrong = {session: doors for session in tops if len(doors := self.doors(repo, session)) > 1}

        assert tops
        assert {} == wrong

    def test_the_main_agent_of_another_runtime_is_called_after_it(self) -> None:
        repo = memory_repo()
        keep(repo, turn(1), session_id="s", template="codex")

        assert {("codex",)} == self.doors(repo, "s")

    def test_a_file_that_is_no_log_has_no_agents_to_list(self, tmp_path: Path) -> None:
        (tmp_path / "other").write_bytes(b"SQLite format 3\0" * 9)

        for ask in (memory_repo().agents, memory_repo().view):
            with pytest.raises(NotFound, match="no event of a session log"):
                ask(tmp_path / "other")

    def test_where_no_runtime_is_known_it_is_called_after_the_session(self) -> None:
        repo = memory_repo()
        keep(repo, turn(1), session_id="s")

        assert {("s",)} == self.doors(repo, "s")

    def test_agents_that_events_name_themselves_keep_their_names(self) -> None:
        repo = memory_repo()
        keep(repo, [event.replace(agent_id="jack") for event in turn(1)], session_id="s", template="codex")
        said = [event.replace(agent_id="jill") for event in turn(2)]
        keep(repo, said, parent="s", session_id="s", template="codex")

        assert {("jack", "jill")} == self.doors(repo, "s")
