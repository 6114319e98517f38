"""Whose words are told, where a conversation that is written has those of several agents in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import harken
from harken import formats
from harken.events import Error, Event, Prompt, Response, System, ToolCall, ToolResult
from harken.events.base import speaker_of
from harken.formats.narrative import OTHER_AGENTS, write_within
from support.std_documents import multi

HELPER = "helper-7"


def of_two() -> list[Event]:
    """What a helper did is told before the main agent's own words: the conversation's beginning was cut off."""
    return [
        Response(message_id="m0", agent_id=HELPER, content="I found it.\n# heading"),
        ToolCall(message_id="m1", agent_id=HELPER, id="c1", name="Read", input=b'{"path": "a.py"}'),
        ToolResult(message_id="m2", agent_id=HELPER, id="c1", output="pass", name="Read"),
        Error(message_id="m3", agent_id=HELPER, message="out of tokens"),
        Prompt(message_id="m4", content="Thank you."),
        Response(message_id="m5", content="Welcome."),
    ]


def narrative(events: list[Event]) -> str:
    return formats.get("narrative-v1").write(events).data.decode()


def sources(data: bytes) -> list[tuple[str, str]]:
    return [(entry["source"], entry["content"]) for entry in map(json.loads, data.splitlines())]


class TestTheMainAgent:
    def test_is_the_one_without_a_name_wherever_it_takes_part(self) -> None:
        assert "" == speaker_of(of_two())

    def test_is_else_the_first_that_is_heard(self) -> None:
        assert HELPER == speaker_of(of_two()[:4])
        assert "" == speaker_of([])


class TestANarrative:
    def test_tells_whose_is_what_others_said_and_did(self) -> None:
        told = narrative(of_two())

        assert OTHER_AGENTS in told
        assert "## Assistant (`helper-7`)\n\nI found it.\n\\# heading\n" in told
        assert "- Call (`helper-7`): `Read: a.py`" in told
        assert "- Result of `Read` (`helper-7`):" in told
        assert "- Error (`helper-7`): out of tokens" in told
        assert "## User\n\nThank you.\n\n## Assistant\n\nWelcome.\n" in told

    def test_of_one_agent_needs_no_names(self) -> None:
        for events in (of_two()[:4], of_two()[4:]):
            told = narrative(events)
            assert OTHER_AGENTS not in told
            assert HELPER not in told

    def test_tells_whose_instructions_those_of_a_silent_agent_are(self) -> None:
        mute = System(message_id="m6", agent_id="mute", subtype="instructions", message="Say nothing.")

        assert "## Instructions (`mute`)\n\nSay nothing.\n" in narrative([*of_two()[4:], mute])

    @pytest.mark.parametrize("name", ["a`b", "x\n## User", "y" * 500])
    def test_a_name_stays_on_its_line_and_between_its_marks(self, name: str) -> None:
        told = narrative([*of_two()[4:], Response(message_id="m7", agent_id=name, content="Hello.")])

        [line] = [line for line in told.splitlines() if line.startswith("## Assistant (")]
        assert 1 == told.count("\n## User")
        assert line.startswith("## Assistant (`") and line.endswith("`)")
        assert 2 == line.count("`")
        assert len(line) < 100

    def test_stays_within_its_budget(self) -> None:
        long = [*of_two(), *(Response(message_id=f"n{n}", agent_id="y" * 90, content="word " * 99) for n in range(30))]

        for budget in (200, 400, 1000):
            told = write_within(long, budget)
            assert len(told.data.decode()) <= budget * 4


def test_a_transcript_has_the_main_agent_as_its_primary_source_whoever_is_heard_first() -> None:
    events = [of_two()[0], *of_two()[4:]]

    assert [
        ("subagent:helper-7", "I found it.\n# heading"),
        ("primary", "Thank you."),
        ("primary", "Welcome."),
    ] == sources(formats.get("transcript-v1").write(events).data)


@pytest.mark.parametrize("stop", ["root", "compaction"])
def test_a_document_tells_what_its_agents_did_as_theirs(tmp_path: Path, stop: str) -> None:
    (path := tmp_path / "20260304_100000_two-hands-multi.json").write_text(json.dumps(multi()))
    with harken.open("memory:") as repo:
        list(repo.import_sessions([path]))
        [row] = [row for row in repo.sessions() if not row.parent]
        narrative, entries = (
            repo.materialize(row.session, format=name, stop=stop).bytes for name in ("narrative-v1", "transcript-v1")
        )

    whose = {line for line in narrative.decode().splitlines() if line.endswith((")", "):"))}
    heard = {source for source, _ in sources(entries)}
    if stop == "root":
        assert {"## Assistant (`builder`)", "## Assistant (`checker`)", "- Result of `Read` (`checker`):"} <= whose
        assert {"primary", "subagent:builder", "subagent:checker"} == heard
    else:  # the conversation as it stands is the main agent's
        assert not whose
        assert {"primary"} == heard
