"""The specification's four talks, in three dialects: they load, whole, incomplete or mixed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harken.log import Session
from support.logs import (
    CAFE,
    GOLDEN,
    INNER_VOICE,
    RESOURCES,
    TALKS,
    as_bytes,
    as_smallchat,
    as_v1,
    example,
    spec_examples,
)  # fmt: skip

DIALECTS = {"v2": lambda lines: lines, "v1": as_v1, "smallchat": as_smallchat}


@pytest.fixture(params=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> Any:
    return DIALECTS[request.param]


def load(path: Path, lines: list[dict[str, Any]], **options: Any) -> Session:
    path.write_bytes(as_bytes(lines))
    return Session.load(path, **options)


def tree(session: Session) -> dict[str, tuple[str | None, str, int]]:
    return {info.agent_id: (info.parent, info.name, info.entries) for info in session.agents.values()}


def whats(session: Session) -> set[str]:
    return {problem.what for problem in session.report}


def test_the_cafe_has_the_same_tree_in_every_dialect(tmp_path: Path, dialect: Any) -> None:
    session = load(tmp_path / "log", dialect(CAFE), readonly=True)

    assert "agent_root" == session.root
    assert {
        "agent_root": (None, "", 8),
        "agent_jack": ("agent_root", "Jack", 4),
        "agent_jill": ("agent_root", "Jill", 4),
    } == tree(session)


def test_the_inner_voice_is_below_jill_in_every_dialect(tmp_path: Path, dialect: Any) -> None:
    session = load(tmp_path / "log", dialect(INNER_VOICE), readonly=True)

    assert "agent_jill" == session.root
    assert {"agent_jill": (None, "", 5), "agent_jill_inner": ("agent_jill", "Inner", 3)} == tree(session)
    assert {"agent used but never created", "a link outside the file"} <= whats(session)


def test_the_hook_is_below_the_root_in_every_dialect(tmp_path: Path, dialect: Any) -> None:
    session = load(tmp_path / "log", dialect(RESOURCES), readonly=True)

    assert {"agent_root": (None, "", 3), "agent_resource_hook": ("agent_root", "ResourceMonitor", 2)} == tree(session)


@pytest.mark.parametrize("talk", TALKS)
def test_transcripts_are_the_same_in_every_dialect(tmp_path: Path, talk: str) -> None:
    messages = []
    for name, translate in DIALECTS.items():
        session = load(tmp_path / name, translate(TALKS[talk]), readonly=True)
        messages.append({agent_id: session.transcript(agent_id) for agent_id in session.agents})

    assert messages[0] == messages[1] == messages[2]


def test_a_parent_that_only_order_and_name_can_tell_is_reported(tmp_path: Path) -> None:
    session = load(tmp_path / "log", as_v1(CAFE), readonly=True)

    jack = session.agents["agent_jack"]
    assert ("agent_root", "msg_003", True) == (jack.parent, jack.cause, jack.inferred)
    assert "parent inferred" in whats(session)


def test_two_results_for_one_call_are_kept_and_merged_for_a_model(tmp_path: Path) -> None:
    session = load(tmp_path / "log", CAFE, readonly=True)

    results = [message for message in session.transcript("agent_root") if message.get("tool_call_id") == "c3"]
    kept = [line for line in session.entries("agent_root") if line.get("tool_call_id") == "c3"]
    assert ["I am Jack.\n\nAnd I am Jill."] == [message["content"] for message in results]
    assert ["I am Jack.", "And I am Jill."] == [line["content"] for line in kept]
    assert "several results for one call" in whats(session)


def test_blank_lines_after_every_event_are_one_problem(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(as_bytes(as_smallchat(CAFE), between="\n\n"))

    session = Session.load(path, readonly=True)

    assert 3 == len(session.agents)
    assert ["20 in all, the first one here"] == [
        problem.detail for problem in session.report if problem.what == "blank line"
    ]


@pytest.mark.parametrize("talk", TALKS)
def test_writing_goes_on_in_v2_whatever_the_file_began_with(tmp_path: Path, dialect: Any, talk: str) -> None:
    path = tmp_path / "log"
    with load(path, dialect(TALKS[talk])) as session:
        before = dict(session.registry.messages)
        root = session.root
        assert root is not None
        agent_id = session.allocate_agent_id()
        ids = [
            session.log_agent_created(agent_id, cause=next(iter(before)), name="Late"),
            session.log_transcript_entry(agent_id, {"role": "user", "content": "late"}),
        ]

    again = Session.load(path, readonly=True)
    assert not set(ids) & set(before)
    assert [{"role": "user", "content": "late"}] == again.transcript(agent_id)
    assert session.agents == again.agents


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_the_example_in_v1_is_the_one_in_v2_in_other_words(number: int) -> None:
    assert as_v1(example(number)) == example(number, "v1")


def test_the_example_logs_load_and_go_on(tmp_path: Path) -> None:
    ours = [
        (f"{dialect}-{path.stem}", path.read_text())
        for dialect in ("v1", "v2")
        for path in (GOLDEN / dialect).iterdir()
    ]
    assert 8 == len(ours)
    for name, block in [*ours, *spec_examples()]:
        path = tmp_path / f"{name}.jsonl"
        path.write_text(block)

        with Session.load(path) as session:
            lines = [line for line in block.splitlines() if line]
            assert len(lines) == len(list(session.scan())), name
            assert session.root is not None, name
            assert {"not JSON"} >= {what for what in whats(session) if "JSON" in what}, name
            session.log_transcript_entry(session.root, {"role": "user", "content": "more"})
        assert len(lines) + 1 == len(list(Session.load(path, readonly=True).scan())), name
