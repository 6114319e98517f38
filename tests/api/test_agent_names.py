"""A sub-agent without a name is called the same wherever it is shown: as the call that made it says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import harken
from harken.api.lanes import LanesRequest, lanes
from harken.api.session_page import SessionPageRequest, session_page
from harken.api.sessions import AgentsRequest, agents
from harken.api.transcript import TranscriptRequest, transcript
from harken.repo import Repo
from support.errands import FILE, NAMES, SESSION, SPEED, write_errands


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    write_errands(tmp_path / "home")
    with harken.open(tmp_path / "store.db") as opened:
        assert isinstance(opened, Repo)
        list(opened.import_sessions([tmp_path / "home"]))
        opened.index.catch_up()
        yield opened


def test_lanes_flow_and_lists_call_a_sub_agent_as_the_call_that_made_it_does(repo: Repo, tmp_path: Path) -> None:
    page = session_page(repo, SessionPageRequest(session=SESSION))
    drawn = lanes(repo, LanesRequest(session=SESSION))
    listed = list(agents(repo, AgentsRequest(session=SESSION)))
    of_file = list(agents(repo, AgentsRequest(file=str(tmp_path / "home" / FILE))))

    assert {SPEED, NAMES} == {one.name for one in page.agents[1:]}
    assert {SPEED, NAMES} == {one.title for one in drawn.lanes[1:]}
    assert {SPEED, NAMES} == {one.title for one in listed[1:]}
    assert {SPEED, NAMES} == {one.title for one in of_file[1:]}


def test_an_agent_that_only_begins_as_its_call_does_is_called_by_all_of_its_first_words(repo: Repo) -> None:
    from harken.context import errand_title

    assert "look for slow code" == errand_title("look for slow code", "look for…")
    assert "look for slow code" == errand_title("look for slow code", "")
    assert SPEED == errand_title("look for slow code", SPEED)


def test_a_call_that_names_one_sub_agent_leads_to_it_as_the_call_that_made_it_does(tmp_path: Path) -> None:
    main = write_errands(tmp_path / "home")
    last = json.loads(main.read_text().splitlines()[-1])
    given = {"to": "a0000002", "message": "And the other names?"}
    for name, tool in (("again", "SendMessage"), ("other", "Bash")):
        call = {"type": "tool_use", "id": name, "name": tool, "input": given}
        message = {"id": f"msg_{name}", "role": "assistant", "model": "m", "content": [call]}
        with main.open("a") as file:
            file.write(json.dumps(last | {"uuid": name, "parentUuid": last["uuid"], "message": message}) + "\n")
    with harken.open(tmp_path / "store.db") as repo:
        assert isinstance(repo, Repo)
        list(repo.import_sessions([tmp_path / "home"]))
        rows = transcript(repo, TranscriptRequest(session=SESSION)).rows

    led = {row.call.id: row.call.session for row in rows if row.call is not None}
    assert {"t1": "a0000001", "t2": "a0000002", "again": "a0000002"} == {
        call: session.rpartition("/")[2] for call, session in led.items() if session
    }
