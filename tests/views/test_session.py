"""The views of a log that a session writes, while it is still open."""

from __future__ import annotations

from harken import LoggedString, Session, SessionViewer


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
