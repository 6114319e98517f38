"""Whatever looks at one commit reads it rightly, whether sessions are lines, documents or rows: a commit of a document
is one message of it, or what stands around the messages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.desk import Desk

SAID = ["one", "I have heard 1 prompts, the first was 'one'.", "two", "I have heard 2 prompts, the first was 'one'."]


@pytest.fixture
def talk(desk: Desk, name: str, session: str) -> str:
    """A session of two prompts."""
    desk.call(name, "ask", "--continue", session, "two")
    desk.harken("import")
    return session


def words(lines: list[dict[str, Any]]) -> list[str]:
    """What is said in the events of an answer."""
    return [said for line in lines for said in SAID if line["line"].endswith(said) and "metric" not in line["event"]]


@pytest.mark.parametrize("name", ["notebook", "scribe", "ledger"])
class TestOneCommit:
    def test_log_show_and_diff_say_what_each_adds(self, desk: Desk, name: str, talk: str) -> None:
        commits = desk.lines("log", talk)[::-1]
        shown = [desk.lines("show", commit["id"])[0]["content"] for commit in commits]
        start, *lines = desk.lines("diff", talk, commits[0]["id"])

        assert SAID == [said for content in shown for said in words(content)]
        for commit, content in zip(commits, shown, strict=True):
            assert " → ".join(words(content)) == commit["summary"]
        assert (commits[0]["id"], 0) == (start["ancestor"], start["unread"])
        assert SAID[len(words(shown[0])) :] == words(lines)
        assert {"here"} == {line["side"] for line in lines}

    def test_every_name_that_is_printed_is_found_forked_and_resumed(self, desk: Desk, name: str, talk: str) -> None:
        names = [line["message_id"] for line in desk.lines("view", "dialog", talk)]
        for message in names:
            content = desk.lines("show", f"{talk}@{message}")[0]["content"]
            assert message in [line["event"]["message_id"] for line in content]
        middle = f"{talk}@{names[1]}"
        desk.harken("fork", middle, "--name", "try")
        [own] = desk.lines("resume", middle, "--in", name)
        [other] = desk.lines("resume", middle, "--in", "codex")

        assert 4 == len(names)
        assert SAID[:2] == desk.conversation("try")
        assert "I have heard 2 prompts, the first was 'one'.\n" == desk.call(*own["command"], "and?")
        desk.harken("import")
        assert SAID[:2] == desk.conversation(other["session"])

    def test_each_is_written_out_counted_and_kept_again(self, desk: Desk, name: str, talk: str) -> None:
        commits = desk.lines("log", talk)[::-1]
        heard = [desk.conversation(commit["id"]) for commit in commits]
        artifact = ("--artifact", commits[0]["artifact"], "--format", f"{name}-v1")
        again = desk.harken("checkpoint", *artifact).strip()
        [figures] = desk.lines("stats", talk)

        assert all(SAID[: len(said)] == said for said in heard)
        assert SAID == heard[-1]
        assert heard[0] == desk.conversation(again)
        assert commits[0]["summary"] == desk.lines("log", again)[0]["summary"]
        assert {"human": 2, "injected": 0, "tool_result": 0} == figures["prompts"]


def test_messages_without_names_are_found_by_their_places(desk: Desk) -> None:
    """A place counts the messages of the chain, whatever envelope stands around them."""
    folder = desk.folder / ".scribe" / "sessions"
    folder.mkdir(parents=True)
    messages = [{"role": role, "text": text} for role, text in zip(["user", "assistant"] * 2, SAID, strict=True)]
    (folder / "bare.json").write_text(
        json.dumps({"scribe": 1, "session": "bare", "messages": messages}).replace(": [", ":[")
    )
    desk.sessions("scribe")
    names = [line["message_id"] for line in desk.lines("view", "dialog", "bare")]

    assert ["@0", "@1", "@2", "@3"] == names
    assert [SAID[2]] == words(desk.lines("show", "bare@@2")[0]["content"])
    assert SAID[:3] == desk.conversation("bare@@2")


@pytest.mark.parametrize("text", ['{"scribe":1,"session":"torn","messages":[{"id":"a","ro', '{"scribe":1,"sess'])
def test_a_torn_document_is_kept_and_counted_as_unread(desk: Desk, text: str) -> None:
    folder = desk.folder / ".scribe" / "sessions"
    folder.mkdir(parents=True)
    (folder / "torn.json").write_text(text)
    [line] = desk.sessions("scribe")

    assert ("new", 1, 1, 1) == tuple(line[key] for key in ("status", "commits", "records", "opaque"))
    assert "unread: " in desk.harken("log", "torn")
    assert text == desk.harken("materialize", "torn")
