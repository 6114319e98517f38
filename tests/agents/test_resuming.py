"""Whatever the log held when the process died, the resumed session comes to the same end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from harken import SessionViewer
from harken.agents import Approve, Deny, Hook, Rewrite
from harken.errors import ModelFailed
from support.discussion import DIALOG, dialog, play, transcripts
from support.stage import call, contents, lines, open_stage, say


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "discussion.jsonl"
    play(path, ack="os")
    return path


def test_the_discussion_has_everything_that_can_be_interrupted(whole: Path) -> None:
    assert DIALOG == dialog(whole)
    heard = transcripts(whole)
    assert ("user", "[Jack]: Hi, I'm Jack. password: [REDACTED]") in heard["Jill"]
    assert ("user", "[Reviewer]: Say who you are first.") in heard["Jill"]
    assert ("user", "[remind]: Keep it short.") in heard["root"]
    assert ("assistant", "Be kind.") in heard["Inner"]


def test_a_log_cut_after_any_line_is_resumed_to_the_same_end(whole: Path, tmp_path: Path) -> None:
    """Every agent, hooks included, ends with the very transcript it would have had without the crash."""
    lines = whole.read_bytes().splitlines(keepends=True)
    expected, spoken = transcripts(whole), dialog(whole)
    path = tmp_path / "cut.jsonl"
    for cut in range(len(lines)):
        path.write_bytes(b"".join(lines[:cut]))

        reply = play(path, ack="os")

        assert "They have met." == reply, f"cut after line {cut}"
        assert spoken == dialog(path), f"cut after line {cut}"
        assert expected == transcripts(path), f"cut after line {cut}"


PRAISED = {
    "root": [
        {
            "call": [
                {"tool": "task", "arguments": {"name": "Ann", "prompt": "Say something."}},
                {"tool": "discuss", "arguments": {"prompt": "Again.", "speakers": ["Ann", "Ann"]}},
            ]
        },
        call("task", name="Bob", prompt="And you?"),
        "Both have spoken.",
    ],
    "Ann": ["draft", "One.", "Two.", "Three."],
    "Bob": [call("task", name="Eve", prompt="Help me."), "Eve says hello."],
    "Eve": ["Hello."],
}
REVIEWERS = [
    Hook(name="Praise", points=("finished",), function=lambda m: Approve(say="Well said.")),
    Hook(name="Strict", points=("finished",), function=lambda m: Deny("no drafts") if m.text == "draft" else None),
    Hook(name="Echo", points=("delivery",), function=lambda m: Approve(say="You were heard.")),
    Hook(name="Loud", points=("delivery",), function=lambda m: Rewrite(m.text.upper())),
    Hook(name="Past", points=("prompt",), function=lambda m: Approve(say=f"You know this: {m.text[:5]}")),
]


def praise(path: Path) -> str:
    root, session = open_stage(path, PRAISED, hooks=REVIEWERS, name="root")
    with session:
        if not any(entry["role"] == "user" for entry in root.transcript):
            root.harken("Let them speak.")
        return asyncio.run(root.resume()) or _last_word(root.transcript)


def _last_word(entries: list[dict[str, str]]) -> str:
    return next(entry["content"] for entry in reversed(entries) if entry["role"] == "assistant")


def test_hooks_that_talk_all_the_time_do_not_repeat_themselves(tmp_path: Path) -> None:
    path = tmp_path / "log"
    praise(path)
    lines, expected = path.read_bytes().splitlines(keepends=True), transcripts(path)
    assert ("user", "[Praise]: Well said.") in expected["Ann"]
    for cut in range(len(lines)):
        path.write_bytes(b"".join(lines[:cut]))

        assert "Both have spoken." == praise(path), f"cut after line {cut}"
        assert expected == transcripts(path), f"cut after line {cut}"


def test_a_resumed_log_begins_with_the_very_bytes_that_were_there(whole: Path, tmp_path: Path) -> None:
    lines = whole.read_bytes().splitlines(keepends=True)
    path = tmp_path / "cut.jsonl"
    before = b"".join(lines[: len(lines) // 2])
    path.write_bytes(before)

    play(path, ack="os")

    assert path.read_bytes().startswith(before)
    ids = SessionViewer(path).index.ids
    assert len(ids) == len(set(ids))


def test_an_agent_that_was_cut_off_from_its_instructions_gets_them_at_the_next_load(tmp_path: Path) -> None:
    path = tmp_path / "log"
    root, session = open_stage(path, {})
    with session:
        root.spawn("J", "You are careful.", tools=[])
    whole = path.read_bytes()
    path.write_bytes(b"".join(whole.splitlines(keepends=True)[:-1]))

    for _ in range(2):
        root, session = open_stage(path, {})
        with session:
            assert [("system", "You are careful.")] == [
                (entry["role"], entry["content"]) for entry in root.subagents["J"].transcript
            ]


ASKED_TWICE = {
    "root": [call("task", name="Ann", prompt="What is the plan?"), "Done."],
    "Ann": [{"say": "Yes, I am here.", "failures": 3}, "The plan is tea."],
}


class TestWhomATurnWasTakenFor:
    """What an agent answers to somebody else, while a call of its parent is open, is not the answer to that call."""

    @pytest.mark.parametrize("loaded", [False, True], ids=["in the same process", "after a load"])
    def test_an_answer_to_somebody_else_is_not_taken_for_the_open_call(self, tmp_path: Path, loaded: bool) -> None:
        path = tmp_path / "log"
        root, session = open_stage(path, ASKED_TWICE)
        with pytest.raises(ModelFailed):
            say(root, "Ask Ann.")
        assert "Yes, I am here." == say(root.subagents["Ann"], "Are you there?")
        if loaded:
            session.close()
            root, session = open_stage(path, ASKED_TWICE)

        with session:
            assert "Done." == asyncio.run(root.resume())

            assert ["The plan is tea."] == contents(root, "tool")
            asked = "What is the plan?"
            assert [asked, "Are you there?", asked] == contents(root.subagents["Ann"], "user")
            assert 1 == len(lines(session, event_type="piece_of_text", content=asked))

    @pytest.mark.parametrize("by", ["itself", "its parent"])
    def test_a_turn_that_was_cut_off_is_still_that_calls_whoever_finishes_it(self, tmp_path: Path, by: str) -> None:
        """Ann had used a tool and then failed; her turn is resumed by itself before the parent's, or with it."""
        parts = {
            "root": [call("task", name="Ann", prompt="What is the plan?"), "Done."],
            "Ann": [call("look"), {"say": "The plan is tea.", "failures": 3}, "never"],
        }
        root, session = open_stage(tmp_path / "log", parts, tools=[look])
        with session:
            with pytest.raises(ModelFailed):
                say(root, "Ask Ann.")
            if by == "itself":
                assert "The plan is tea." == asyncio.run(root.subagents["Ann"].resume())

            assert "Done." == asyncio.run(root.resume())

            assert ["The plan is tea."] == contents(root, "tool")
            assert ["What is the plan?"] == contents(root.subagents["Ann"], "user")

    def test_an_utterance_that_was_sent_back_is_said_anew_for_the_same_call(self, tmp_path: Path) -> None:
        parts = {
            "root": [call("task", name="Ann", prompt="What is the plan?"), "Done."],
            "Ann": ["draft", {"say": "The plan is tea.", "failures": 3}, "never"],
        }
        strict = Hook(name="S", points=("finished",), function=lambda m: Deny("no") if m.text == "draft" else None)
        root, session = open_stage(tmp_path / "log", parts, hooks=[strict])
        with session:
            with pytest.raises(ModelFailed):
                say(root, "Ask Ann.")
            assert "The plan is tea." == asyncio.run(root.subagents["Ann"].resume())

            assert "Done." == asyncio.run(root.resume())

            assert ["The plan is tea."] == contents(root, "tool")

    def test_the_log_says_which_message_asked_for_a_turn(self, tmp_path: Path) -> None:
        parts = {"root": ASKED_TWICE["root"], "Ann": ["Tea.", "Hello."]}
        root, session = open_stage(tmp_path / "log", parts)
        with session:
            say(root, "Ask Ann.")
            say(root.subagents["Ann"], "Hello?")

            (asking,) = [entry["message_id"] for entry in root.transcript if entry.get("tool_calls")]
            said = [entry for entry in root.subagents["Ann"].transcript if entry["role"] == "assistant"]
            assert [asking, None] == [entry.get("cause") for entry in said]
            assert [None, None] == [entry.get("cause") for entry in root.transcript if entry["role"] == "assistant"]


def look() -> str:
    """Look around."""
    return "a café"
