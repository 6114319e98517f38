"""The same meeting written in each of the three dialects gives the same views."""

from __future__ import annotations

import json

import pytest

from harken.views import SessionViewer
from support.viewed import calls, created, entry, text, write_log

NEW = [
    created("1", "main", role="root"),
    entry("2", "main", "assistant", tool_calls=calls(("c1", "task"))),
    created("3", "jack", cause="2", name="Jack"),
    entry("4", "main", "tool", "made", tool_call_id="c1"),
    entry("5", "main", "assistant", tool_calls=calls(("c2", "discuss"))),
    text("6", "main", "Speak.", "5"),
    entry("7", "jack", "user", "Speak.", substance="6"),
    entry("8", "jack", "assistant", "Hello"),
    entry("9", "main", "tool", "Hello", tool_call_id="c2", cause=["8"]),
]


def as_v1(event):
    old = {{"substance": "content_id", "cause": "caused_by"}.get(key, key): value for key, value in event.items()}
    if event["event_type"] == "piece_of_text":
        del old["agent_id"]
    if event["event_type"] == "agent_created":
        old.pop("caused_by", None)
        old.pop("role", None)
    return old


def as_smallchat(event):
    old = {{"agent_id": "agent"}.get(key, key): value for key, value in event.items()}
    if event["event_type"] == "piece_of_text":
        old |= {"event_type": "fragment", "cause": "5.c2"}
    if event["event_type"] == "agent_created":
        old |= {"parent": "main" if "cause" in event else "user", "role": "child" if "cause" in event else "primary"}
        old |= {"cause": "2.c1"} if "cause" in event else {}
    if event.get("role") == "tool":
        old["tool_call"] = {"c1": "2", "c2": "5"}[event["tool_call_id"]]
    return old


def write_smallchat(path, events):
    path.write_text("".join(json.dumps(as_smallchat(event)) + "\n\n" for event in events), encoding="utf-8")
    return path


@pytest.fixture(params=["v2", "v1", "smallchat"])
def viewer(request, tmp_path):
    path = tmp_path / "log.jsonl"
    if request.param == "smallchat":
        return SessionViewer(write_smallchat(path, NEW))
    return SessionViewer(write_log(path, map(as_v1, NEW) if request.param == "v1" else NEW))


def test_the_dialog_is_the_same(viewer):
    assert [("6", "Speak.", "main"), ("8", "Hello", "jack")] == [
        (line["message_id"], line["content"], line["agent_id"]) for line in viewer.extract_dialog(["jack"])
    ]


def test_the_tree_is_the_same(viewer):
    assert [("main", None), ("jack", "main")] == [(row["agent_id"], row["parent"]) for row in viewer.agent_tree()]


def test_the_causes_are_the_same(viewer):
    assert {"3": "2", "4": "2", "6": "5", "7": "6", "9": ["8"]} == viewer.build_causality_index()


def test_the_hearers_are_the_same(viewer):
    assert [("jack", 1)] == [(heard["agent_id"], heard["hops"]) for heard in viewer.who_heard("6")]
    assert ["5", "8", "9"] == [event["message_id"] for event in viewer.trace_message_flow("9")]


def test_nothing_is_reported_as_a_problem(viewer):
    assert [] == viewer.problems


def test_the_person_of_smallchat_is_no_agent(tmp_path):
    events = [
        {"message_id": "0", "event_type": "agent_created", "agent": "main", "name": "main", "parent": "user"},
        {"message_id": "1", "event_type": "fragment", "agent": "user", "content": "hi", "cause": "user"},
        {"message_id": "2", "event_type": "transcript_entry", "agent": "main", "role": "user", "content": "hi"}
        | {"substance": "1"},
    ]
    viewer = SessionViewer(write_log(tmp_path / "log.jsonl", events))

    assert {"main": "main"} == viewer.list_agents()
    assert [{"message_id": "1", "content": "hi", "agent_id": "user"}] == viewer.extract_dialog(["main"])
