"""The views of a log that a session writes, while it is still open."""

from __future__ import annotations

import json

import pytest

from harken import LoggedString, Session, SessionViewer
from harken.errors import NotFound
from harken.events import AgentCreated, Error, Prompt, System, Thinking, ToolCall, ToolResult
from harken.formats.session_log import records_of
from harken.log import OpenQuestion


def test_a_session_can_be_looked_at_while_it_is_written(tmp_path):
    path = tmp_path / "session.jsonl"
    with Session(path) as session:
        jack, jill = session.allocate_agent_id(), session.allocate_agent_id()
        session.log_agent_created(jack, name="Jack")
        session.log_agent_created(jill, name="Jill")
        said = session.log_transcript_entry(jack, {"role": "assistant", "content": "Hello"})
        session.log_transcript_entry(jill, {"role": "user", "content": "[Jack]: Hello"}, substance=said)

        viewer = SessionViewer(path)

        assert [{"message_id": said, "content": "Hello", "agent_id": jack}] == viewer.extract_dialog([jack, jill])
        assert ["Jill"] == [viewer.name(heard["agent_id"]) for heard in viewer.who_heard(said)]
        assert viewer.who_heard(said)[0]["time"] is not None
        assert [] == viewer.problems


def test_a_string_that_carries_its_message_is_asked_about_as_the_message(tmp_path):
    path = tmp_path / "session.jsonl"
    with Session(path) as session:
        jack, jill = session.allocate_agent_id(), session.allocate_agent_id()
        session.log_agent_created(jack, name="Jack")
        session.log_agent_created(jill, name="Jill")
        said = session.log_transcript_entry(jack, {"role": "assistant", "content": "password: 1234"})
        session.log_transcript_entry(jill, {"role": "user", "content": "password: [REDACTED]"}, substance=said)

    viewer = SessionViewer(path)

    assert not viewer.knows("Jill", "password: 1234")["knows"]
    assert viewer.knows("Jill", LoggedString("password: 1234", said))["knows"]
    assert viewer.knows("Jill", LoggedString("password: 1234", said))["changed"]


def test_text_made_for_several_by_a_tool_nobody_knows_is_one_content(tmp_path):
    path = tmp_path / "session.jsonl"
    with Session(path) as session:
        root, jack, jill = (session.allocate_agent_id() for _ in range(3))
        for agent, name in ((root, None), (jack, "Jack"), (jill, "Jill")):
            session.log_agent_created(agent, name=name)
        call = {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": {"name": "broadcast"}}]}
        made = session.log_piece_of_text(root, "Attention", session.log_transcript_entry(root, call))
        for agent in (jack, jill):
            session.log_transcript_entry(agent, {"role": "user", "content": "Attention"}, substance=made)

    viewer = SessionViewer(path)

    assert [made] == [line["message_id"] for line in viewer.extract_dialog(["Jack", "Jill"])]
    assert [jack, jill] == [heard["agent_id"] for heard in viewer.who_heard(made)]
    assert [("broadcast", "action"), ("Attention", "text"), ("Attention", "heard")] == [
        (one["content"], one["kind"]) for one in viewer.timeline() if one["kind"] != "created"
    ][:3]


def test_the_timeline_tells_what_was_asked_answered_and_failed(tmp_path):
    path = tmp_path / "session.jsonl"
    with Session(path) as session:
        session.log_agent_created("root", role="root")
        session.append([System(agent_id="root", subtype="calls_held"), Error(agent_id="root", message="overloaded")])
        asked = session.ask_person(OpenQuestion(message_id="", agent_id="root", text="Where to?"))
        session.answer(asked.message_id, "Rome")

    told = [(one["kind"], one["content"]) for one in SessionViewer(path).timeline()]

    assert [
        ("system", "calls held"),
        ("error", "overloaded"),
        ("system", "question: Where to?"),
        ("system", "answer: Rome"),
    ] == told[1:]


def test_the_tree_and_the_session_agree_on_who_made_whom_while_several_calls_are_open(tmp_path):
    """Without a cause only the order and the name in the arguments can tell, and there is one way to tell by them."""

    def making(call_id, name):
        function = {"name": "task", "arguments": json.dumps({"name": name})}
        return {"role": "assistant", "tool_calls": [{"id": call_id, "type": "function", "function": function}]}

    path = tmp_path / "session.jsonl"
    with Session(path) as session:
        session.log_agent_created("root", role="root")
        session.log_transcript_entry("root", making("c1", "Jack"))
        session.log_agent_created("jack", name="Jack")
        of_root = session.log_transcript_entry("root", making("c2", "Jill"))
        of_jack = session.log_transcript_entry("jack", making("c3", "Bob"))
        jill = session.log_agent_created("jill", name="Jill")
        bob = session.log_agent_created("bob", name="Bob")
        parents = {agent_id: info.parent for agent_id, info in session.agents.items()}

    viewer = SessionViewer(path)

    assert {"root": None, "jack": "root", "jill": "root", "bob": "jack"} == parents
    assert parents == {row["agent_id"]: row["parent"] for row in viewer.agent_tree()}
    assert {jill: of_root, bob: of_jack}.items() <= viewer.build_causality_index().items()


def test_only_the_first_agent_without_a_parent_is_the_root(tmp_path):
    path = tmp_path / "session.jsonl"
    with Session(path) as session:
        for agent in ("main", "stray"):
            session.log_agent_created(agent)
        assert "main" == session.root

    assert [("main", "root"), ("stray", "")] == [
        (row["agent_id"], row["role"]) for row in SessionViewer(path).agent_tree()
    ]


def test_the_trace_of_a_discussion_leads_to_the_replies_and_to_the_call(tmp_path):
    path = tmp_path / "session.jsonl"
    with Session(path) as session:
        root, jack = session.allocate_agent_id(), session.allocate_agent_id()
        session.log_agent_created(root)
        session.log_agent_created(jack, name="Jack", parent=root)
        function = {"name": "discuss", "arguments": "{}"}
        call = session.log_transcript_entry(
            root, {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": function}]}
        )
        piece = session.log_piece_of_text(root, "Speak.", call)
        session.log_transcript_entry(jack, {"role": "user", "content": "Speak."}, piece)
        reply = session.log_transcript_entry(jack, {"role": "assistant", "content": "Hello"})
        result = session.log_transcript_entry(
            root, {"role": "tool", "tool_call_id": "c", "content": "[Jack]: Hello"}, cause=[reply]
        )

    viewer = SessionViewer(path)

    assert [call, reply, result] == [event["message_id"] for event in viewer.trace_message_flow(result)]
    assert [reply] == viewer.build_causality_index()[result]


def test_the_line_of_a_message_is_the_one_that_was_logged_whatever_else_stands_on_it(tmp_path):
    path = tmp_path / "session.jsonl"
    with Session(path) as session:
        session.log_agent_created("a", role="root")
        said = session.log_transcript_entry("a", {"role": "assistant", "content": "Hello", "refusal": "none"})
        logged = json.loads(path.read_text().splitlines()[-1])

        assert logged == session.line(said) == SessionViewer(path).line(said)
        assert [logged] == SessionViewer(path).get_transcript("a")
        with pytest.raises(NotFound):
            session.line("msg_999")


def test_events_of_another_format_have_the_lines_a_session_log_would_have():
    events = [
        Prompt(content="hi", message_id="u1", agent_id="claude-code"),
        Thinking(content="hm", message_id="u2", agent_id="claude-code"),
        ToolCall(id="c", name="Read", input=b"{}", message_id="u2", index=1, agent_id="claude-code"),
    ]

    viewer = SessionViewer.of(events)

    assert records_of(events) == viewer.get_transcript("claude-code")
    assert [("heard", "hi"), ("action", "Read {}")] == [(one["kind"], one["content"]) for one in viewer.timeline()]


def test_a_message_that_is_only_named_has_no_line():
    viewer = SessionViewer.of([Prompt(content="hi", message_id="u1", agent_id="a", substance="elsewhere")])

    with pytest.raises(NotFound):
        viewer.line("elsewhere")


def test_a_sub_agent_was_told_by_the_one_that_called_it_where_one_record_has_call_and_result() -> None:
    """As OpenCode and Gemini CLI write them: the message that calls has what came back, too."""
    made = {"message_id": "m", "agent_id": "main", "time": 1}
    viewer = SessionViewer.of([
        AgentCreated(message_id="main#created", agent_id="main", name="main", role="root"),
        ToolCall(**made, index=0, id="c", name="task", input=b'{"prompt": "read the notes"}'),
        ToolResult(**made, index=1, id="c", output="papaya"),
        AgentCreated(message_id="sub#created", agent_id="sub", name="sub", role="child", parent="main", cause="m"),
        Prompt(message_id="p", agent_id="sub", cause="m", content="read the notes", time=2),
    ])  # fmt: skip

    assert ["main"] == [line["agent_id"] for line in viewer.extract_dialog(["main", "sub"])]


def test_a_message_that_says_two_things_is_repeated_without_a_change() -> None:
    """As Gemini CLI folds a conversation: the prompt and the files that it names are one message, then and again."""
    heard = {"agent_id": "main", "time": 1}
    viewer = SessionViewer.of([
        AgentCreated(message_id="main#created", agent_id="main", name="main", role="root"),
        Prompt(message_id="m", **heard, content="look at @pic.png"),
        Prompt(message_id="m", **heard, index=1, content="--- files ---", source="injected", origin="attachment:files"),
        Prompt(message_id="fold", **heard, content="look at @pic.png", substance="m"),
        Prompt(message_id="fold", **heard, index=1, content="--- files ---", source="injected", substance="m"),
    ])  # fmt: skip

    assert [] == viewer.interventions()
    assert ["look at @pic.png", "--- files ---"] == [one["content"] for one in viewer.flow()]
