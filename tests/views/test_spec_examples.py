"""The example logs of the specifications, both dialects, taken from the texts themselves where they are at hand."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from harken.views import SessionViewer

CORPUS = os.environ.get("HARKEN_CORPUS", "")
SPEC = Path(CORPUS).parent / "spec" if CORPUS else Path()
SPECS = ("session-log.md", "session-log-v1.md")

pytestmark = pytest.mark.skipif(not (SPEC / SPECS[0]).is_file(), reason="HARKEN_CORPUS does not lie beside the specs")


@pytest.fixture(params=SPECS)
def example(request, tmp_path):
    """Opens an example by its number."""
    found = re.findall(r"### Example (\d).*?```jsonl\n(.*?)```", (SPEC / request.param).read_text(), re.DOTALL)
    blocks = dict(found)
    assert {"1", "2", "3", "4"} == set(blocks)

    def open_example(number: int) -> SessionViewer:
        path = tmp_path / f"{number}.jsonl"
        path.write_text(blocks[str(number)], encoding="utf-8")
        viewer = SessionViewer(path)
        assert [] == viewer.problems
        return viewer

    return open_example


def ids(events):
    return [event["message_id"] for event in events]


class TestJackAndJill:
    def test_the_dialog_has_each_content_once_in_order(self, example):
        expected = [
            {
                "message_id": "msg_012",
                "content": "You meet in a cafe. Introduce yourselves.",
                "agent_id": "agent_root",
            },
            {"message_id": "msg_015", "content": "Hi, I'm Jack. *extends hand*", "agent_id": "agent_jack"},
            {"message_id": "msg_018", "content": "*smiles* Hello Jack, I'm Jill.", "agent_id": "agent_jill"},
        ]

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


def test_jills_inner_voice_is_between_what_she_heard_and_said(example):
    text = example(2).extract_agent_perspective(["agent_jill", "agent_jill_inner"])
    order = ["[Heard]: [Jack]: Hi", "Inner [Said]: Be friendly", "[Received]: Be friendly", "[Said]: *smiles*"]
    places = [text.index(part) for part in order]

    assert sorted(places) == places


def test_a_message_outside_the_file_still_has_hearers(example):
    viewer = example(2)

    assert ["agent_jill"] == [heard["agent_id"] for heard in viewer.who_heard("msg_015")]
    assert "msg_015" == viewer.extract_dialog(["agent_jill"])[0]["message_id"]
    assert ["msg_033"] == ids(viewer.trace_message_flow("msg_033"))


def test_the_blocked_searcher_is_an_intervention(example):
    (blocked,) = example(3).interventions()

    assert ("blocked", "ResourceMonitor", "agent_root", "msg_102") == (
        blocked["kind"],
        blocked["hook"],
        blocked["agent_id"],
        blocked["original"],
    )
    assert "Maximum subagents (3) already reached." == blocked["reason"]


def test_a_trigger_from_outside_was_heard(example):
    viewer = example(4)

    assert {"agent_watcher": "agent_watcher"} == viewer.list_agents()
    assert viewer.extract_agent_perspective("agent_watcher").startswith("[Heard]: File changed: data.json\n[Said]: ")
