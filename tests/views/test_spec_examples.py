"""The example logs of the specifications, both dialects: in our words always, in theirs where the texts are at hand."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harken.views import SessionViewer
from support.logs import GOLDEN
from support.recordings import CORPUS

SPECS = sorted((CORPUS.parent / "spec").glob("session-log*.md")) if CORPUS else []
SOURCES = [GOLDEN / "v2", GOLDEN / "v1", *SPECS]


def examples(source: Path) -> dict[str, str]:
    """The four of a folder, or of a specification."""
    if source.is_dir():
        return {path.stem: path.read_text(encoding="utf-8") for path in source.iterdir()}
    return dict(re.findall(r"### Example (\d).*?```jsonl\n(.*?)```", source.read_text(), re.DOTALL))


@pytest.fixture(params=SOURCES, ids=lambda path: path.stem)
def example(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[int], SessionViewer]:
    """Opens an example by its number."""
    found = examples(request.param)
    assert {"1", "2", "3", "4"} == set(found)

    def open_example(number: int) -> SessionViewer:
        path = tmp_path / f"{number}.jsonl"
        path.write_text(found[str(number)], encoding="utf-8")
        viewer = SessionViewer(path)
        assert [] == viewer.problems
        return viewer

    return open_example


@pytest.fixture
def contents(request: pytest.FixtureRequest, example: Any) -> dict[str, str]:
    """What the lines of an example say, by their ids."""
    blocks = examples(request.node.callspec.params["example"])
    lines = [json.loads(line) for block in blocks.values() for line in block.splitlines()]
    return {line["message_id"]: line.get("content", "") for line in lines}


def ids(events):
    return [event["message_id"] for event in events]


class TestJackAndJill:
    def test_the_dialog_has_each_content_once_in_order(self, example, contents):
        speakers = {"msg_012": "agent_root", "msg_015": "agent_jack", "msg_018": "agent_jill"}
        expected = [{"message_id": name, "content": contents[name], "agent_id": who} for name, who in speakers.items()]

        assert expected == example(1).extract_dialog(["agent_jack", "agent_jill"])

    def test_both_heard_the_prompt(self, example):
        assert ["agent_jack", "agent_jill"] == [heard["agent_id"] for heard in example(1).who_heard("msg_012")]

    def test_a_line_is_traced_to_where_it_was_said(self, example):
        assert ["msg_018", "msg_020"] == ids(example(1).trace_message_flow("msg_020"))

    def test_the_agents_and_their_tree(self, example):
        viewer = example(1)

        assert {"agent_root": "agent_root", "agent_jack": "Jack", "agent_jill": "Jill"} == viewer.list_agents()
        assert [("agent_root", 0), ("agent_jack", 1), ("agent_jill", 1)] == [
            (row["agent_id"], row["depth"]) for row in viewer.agent_tree()
        ]

    def test_the_causes(self, example):
        expected = {
            "msg_004": "msg_003",
            "msg_006": "msg_003",
            "msg_008": "msg_007",
            "msg_010": "msg_007",
            "msg_012": "msg_011",
            "msg_013": "msg_012",
            "msg_014": "msg_012",
            "msg_016": "msg_011",
            "msg_017": "msg_015",
            "msg_019": "msg_011",
            "msg_020": "msg_018",
        }

        assert expected == example(1).build_causality_index()

    def test_nobody_intervened(self, example):
        assert [] == example(1).interventions()


def test_jills_inner_voice_is_between_what_she_heard_and_said(example, contents):
    text = example(2).extract_agent_perspective(["agent_jill", "agent_jill_inner"])
    order = [
        f"[Heard]: {contents['msg_033']}",
        f"Inner [Said]: {contents['msg_037']}",
        f"[Received]: {contents['msg_038']}",
        f"[Said]: {contents['msg_039']}",
    ]
    places = [text.index(part) for part in order]

    assert sorted(places) == places


def test_a_message_outside_the_file_still_has_hearers(example):
    viewer = example(2)

    assert ["agent_jill"] == [heard["agent_id"] for heard in viewer.who_heard("msg_015")]
    assert "msg_015" == viewer.extract_dialog(["agent_jill"])[0]["message_id"]
    assert ["msg_033"] == ids(viewer.trace_message_flow("msg_033"))


def test_the_blocked_searcher_is_an_intervention(example, contents):
    (blocked,) = example(3).interventions()

    assert ("blocked", "ResourceMonitor", "agent_root", "msg_102") == (
        blocked["kind"],
        blocked["hook"],
        blocked["agent_id"],
        blocked["original"],
    )
    assert contents["msg_104"].removeprefix("DENY. ") == blocked["reason"]


def test_a_trigger_from_outside_was_heard(example):
    viewer = example(4)

    assert {"agent_watcher": "agent_watcher"} == viewer.list_agents()
    assert viewer.extract_agent_perspective("agent_watcher").startswith("[Heard]: File changed: data.json\n[Said]: ")
