"""Groups of agents: whose turn it is, discussions side by side, and words outside a discussion."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from harken import Session, SessionViewer
from harken.agents import Agent, Call
from harken.agents.discussing import choice, is_pass
from harken.agents.side_by_side import reaches, waits_for
from harken.agents.speaking import broadcast, whisper
from support.debate import Debater, hold, same_lines
from support.discussion import transcripts
from support.stage import call, contents, open_stage, say

MADE = {"call": [{"tool": "task", "arguments": {"name": name}} for name in ("Ann", "Bob", "Eve")]}


def held(path: Path, parts: dict[str, Any], **how: Any) -> tuple[str, dict[str, list[tuple[str, str]]]]:
    """What a discussion of Ann, Bob and Eve comes to, and everybody's transcript."""
    root, session = open_stage(path, {"root": [MADE, call("discuss", **how), "Over."], **parts})
    with session:
        say(root, "Go.")
        result = contents(root, "tool")[-1]
    return result, transcripts(path)


class TestTurns:
    def test_in_a_round_robin_of_two_rounds_each_speaks_twice_in_order(self, tmp_path: Path) -> None:
        parts = {name: [f"{name} one.", f"{name} two."] for name in ("Ann", "Bob", "Eve")}
        result, heard = held(tmp_path / "log", parts, prompt="Well?", rounds=2)

        words = [f"[{name}]: {name} {number}." for number in ("one", "two") for name in ("Ann", "Bob", "Eve")]
        assert "\n\n".join(words) == result
        assert [
            ("user", "Well?"),
            ("user", "[Ann]: Ann one."),
            ("assistant", "Bob one."),
            ("user", "[Eve]: Eve one."),
            ("user", "[Ann]: Ann two."),
            ("assistant", "Bob two."),
            ("user", "[Eve]: Eve two."),
        ] == heard["Bob"]

    def test_a_moderator_says_who_is_next_and_when_it_is_over(self, tmp_path: Path) -> None:
        parts = {
            "Eve": ["Welcome.\nNEXT: Bob", "Ann, what do you say?", "Thank you.\n**Next: end.**"],
            "Ann": ["I agree."],
            "Bob": ["It rains."],
        }
        result, heard = held(
            tmp_path / "log", parts, prompt="The weather.", turns="moderator", moderator="Eve", rounds=9
        )

        said = ["[Eve]: Welcome.\nNEXT: Bob", "[Bob]: It rains.", "[Eve]: Ann, what do you say?", "[Ann]: I agree."]
        assert "\n\n".join([*said, "[Eve]: Thank you.\n**Next: end.**"]) == result
        assert [role for role, _ in heard["Eve"]] == ["user", "user", *["assistant", "user"] * 2, "assistant"]
        assert ("user", "[Eve]: Welcome.\nNEXT: Bob") in heard["Ann"]
        assert not any("You lead" in words for _, words in heard["Ann"] + heard["Bob"])

    def test_who_names_nobody_gets_who_has_waited_longest(self, tmp_path: Path) -> None:
        parts = {"Eve": ["NEXT: Bob", "Go on.", "Ann or Bob?", "NEXT: END"], "Ann": ["A.", "B."], "Bob": ["C.", "D."]}
        result, _ = held(tmp_path / "log", parts, turns="moderator", moderator="Eve", rounds=2, prompt="Hm.")

        assert ["C.", "A.", "D."] == [line[7:] for line in result.split("\n\n") if not line.startswith("[Eve]")]

    def test_a_moderator_that_never_ends_it_is_ended(self, tmp_path: Path) -> None:
        parts = {"Eve": {"otherwise": "NEXT: Ann"}, "Ann": {"otherwise": "I."}}
        result, _ = held(tmp_path / "log", parts, turns="moderator", moderator="Eve", rounds=2, prompt="Hm.")

        assert 4 == result.count("[Ann]: I.")

    def test_in_a_free_discussion_nobody_hears_who_passes_and_it_ends_when_all_do(self, tmp_path: Path) -> None:
        parts = {"Ann": ["Hello.", "PASS", "Pass."], "Bob": ["Hi.", "*pass*"], "Eve": ["PASS", "PASS"]}
        result, heard = held(tmp_path / "log", parts, prompt="Meet.", turns="free", rounds=50)

        assert "[Ann]: Hello.\n\n[Bob]: Hi." == result
        assert ["Meet.", "[Ann]: Hello.", "[Bob]: Hi."] == [
            words for role, words in heard["Eve"] if role == "user" and "Speak when" not in words
        ]

    def test_where_all_pass_nobody_said_anything(self, tmp_path: Path) -> None:
        parts = {name: ["PASS"] for name in ("Ann", "Bob", "Eve")}
        assert "Nobody said anything." == held(tmp_path / "log", parts, prompt="Meet.", turns="free")[0]

    @pytest.mark.parametrize(
        ("how", "why"),
        [
            ({"turns": "moderator"}, "a moderator says who is next"),
            ({"moderator": "Ann"}, "a moderator says who is next"),
            ({"turns": "moderator", "moderator": "Joe"}, "no subagent 'Joe'"),
            ({"turns": "loud"}, "do not fit"),
            ({"rounds": 0}, "do not fit"),
            ({"rounds": 100_000}, "do not fit"),
        ],
    )
    def test_what_cannot_be_is_told_to_whoever_asked_for_it(self, tmp_path: Path, how: Any, why: str) -> None:
        result, _ = held(tmp_path / "log", {}, **how)
        assert result.startswith("Error: ")
        assert why in result

    @pytest.mark.parametrize(
        ("said", "expected"),
        [
            ("NEXT: Ann", "Ann"),
            ("Well.\n> next : `Ann`.\n", "Ann"),
            ("NEXT: Bob\nNEXT: Ann", "Ann"),
            ("What is next? Ann.", ""),
        ],
    )
    def test_a_choice_is_the_last_line_that_says_so(self, said: str, expected: str) -> None:
        assert expected == choice(said)

    def test_a_pass_is_that_word_alone(self) -> None:
        assert all(map(is_pass, ("PASS", " pass.\n", "**Pass**")))
        assert not any(map(is_pass, ("I pass the salt.", "", "passing")))


MODERATED = {
    "root": [
        MADE,
        call("discuss", prompt="One.", turns="moderator", moderator="Eve", rounds=2),
        call("discuss", prompt="Two.", turns="free", speakers=["Ann", "Bob"], listeners=["Eve"], rounds=3),
        call("broadcast", text="It is late."),
        call("whisper", name="bob", text="Stay."),
        "Over.",
    ],
    "Eve": ["NEXT: Bob", "NEXT: Ann", "NEXT: END"],
    "Ann": ["A1.", "A2.", "PASS"],
    "Bob": ["B1.", call("whisper", name="Eve", text="I am tired."), "PASS"],
}


def play(path: Path) -> str:
    root, session = open_stage(path, MODERATED, tools=[broadcast, whisper], name="root")
    with session:
        if not any(entry["role"] == "user" for entry in root.transcript):
            root.harken("Go.")
        asyncio.run(root.resume())
        return str(root.transcript[-1]["content"])


def test_a_log_cut_after_any_line_comes_to_the_same_end(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    assert "Over." == play(whole)
    lines, expected = whole.read_bytes().splitlines(keepends=True), transcripts(whole)
    path = tmp_path / "cut"
    for cut in range(len(lines)):
        path.write_bytes(b"".join(lines[:cut]))

        assert "Over." == play(path), f"cut after line {cut}"
        assert expected == transcripts(path), f"cut after line {cut}"


class TestSpeaking:
    def test_a_broadcast_is_one_piece_of_text_and_a_whisper_has_one_hearer(self, tmp_path: Path) -> None:
        play(tmp_path / "log")
        viewer, heard = SessionViewer(tmp_path / "log"), transcripts(tmp_path / "log")

        for name in ("Ann", "Bob", "Eve"):
            assert ("user", "[root]: It is late.") in heard[name]
        assert ("user", "[root, whispering]: Stay.") in heard["Bob"]
        assert ("user", "[Bob, whispering]: I am tired.") in heard["Eve"]
        assert {"Ann", "Bob", "Eve"} == _hearers(viewer, tmp_path / "log", "It is late.")
        assert {"Bob"} == _hearers(viewer, tmp_path / "log", "Stay.")
        assert {"Eve"} == _hearers(viewer, tmp_path / "log", "I am tired.")

    def test_nobody_has_changed_what_is_whispered(self, tmp_path: Path) -> None:
        play(tmp_path / "log")
        assert [] == SessionViewer(tmp_path / "log").interventions()

    def test_words_in_the_mouth_of_one_whose_name_reads_like_a_whisper_are_changed(self, tmp_path: Path) -> None:
        async def pretend(call: Call) -> str:
            """Speak as somebody else."""
            await call.agent.deliver("Stay.", [call.agent.subagents["Ann"]], prefix="[root, whispering]: ")
            return "Done."

        parts = {"root": [call("task", name="Ann"), call("task", name="root, whispering"), call("pretend"), "Hm."]}
        root, session = open_stage(tmp_path / "log", parts, tools=[pretend])
        with session:
            say(root, "Go.")
        assert ["changed"] == [one["kind"] for one in SessionViewer(tmp_path / "log").interventions()]

    def test_nobody_hears_what_is_whispered_to_a_stranger(self, tmp_path: Path) -> None:
        parts = {"root": [call("task", name="Ann"), call("whisper", name="Joe", text="Psst."), "Hm."]}
        root, session = open_stage(tmp_path / "log", parts, tools=[whisper])
        with session:
            say(root, "Go.")
            assert "Error: nobody near root is called 'Joe'" == contents(root, "tool")[-1]

    def test_who_is_alone_broadcasts_to_nobody(self, tmp_path: Path) -> None:
        root, session = open_stage(
            tmp_path / "log", {"root": [call("broadcast", text="Hello?"), "Hm."]}, tools=[broadcast]
        )
        with session:
            say(root, "Go.")
            assert "there is nobody who could hear root" in contents(root, "tool")[-1]


def _hearers(viewer: SessionViewer, path: Path, words: str) -> set[str]:
    with Session.load(path, readonly=True) as session:
        said = next(str(data["message_id"]) for data in session.records() if data.get("content") == words)
    return {viewer.name(line["agent_id"]) for line in viewer.who_heard(said)}


class TestSideBySide:
    def test_discussions_of_different_agents_need_not_name_listeners(self, tmp_path: Path) -> None:
        tool = Agent(open_stage(tmp_path / "log", {})[1]).tools["discuss"]
        two = [(tool, '{"speakers": ["Ann"]}'), (tool, '{"speakers": ["Bob"]}')]

        assert [[], []] == waits_for(reaches(two, seated=False), guarded=False)
        assert [[], [0]] == waits_for(reaches(two, seated=True), guarded=False)
        third = (tool, '{"speakers": ["Eve"], "listeners": ["Joe"]}')
        assert [[], [0], [0, 1]] == waits_for(reaches([*two, third], seated=False), guarded=False)

    def test_a_moderator_of_both_keeps_them_in_order(self, tmp_path: Path) -> None:
        tool = Agent(open_stage(tmp_path / "log", {})[1]).tools["discuss"]
        two = [
            (tool, f'{{"speakers": ["{name}"], "turns": "moderator", "moderator": "Eve"}}') for name in ("Ann", "Bob")
        ]
        assert [[], [0]] == waits_for(reaches(two, seated=False), guarded=False)

    def test_two_discussions_of_one_reply_overlap_and_replay_exactly(self, tmp_path: Path) -> None:
        meetings = [
            {"tool": "discuss", "arguments": {"prompt": "Meet.", "speakers": [a, b], "rounds": 2}}
            for a, b in ("AB", "CD")
        ]
        made = [{"tool": "task", "arguments": {"name": name}} for name in "ABCD"]
        late = {name: {"otherwise": {"say": f"I am {name}.", "delay": 0.05}} for name in "ABCD"}
        root, session = open_stage(tmp_path / "log", {"root": [{"call": made}, {"call": meetings}, "Over."], **late})
        with session:
            say(root, "Go.")
            spoke = [data["agent_id"] for data in session.records() if data.get("role") == "assistant"]
        names = {info.agent_id: info.name for info in session.agents.values()}
        order = [names[agent] for agent in spoke if names[agent] in tuple("ABCD")]

        assert {"A", "C"} == set(order[:2])
        hold_again(tmp_path / "again", tmp_path / "log")
        assert transcripts(tmp_path / "log") == transcripts(tmp_path / "again")


def hold_again(path: Path, recording: Path) -> None:
    from harken import load_session

    root, session = load_session(path, language_model=f"replay:{recording}", ack="os")
    with session:
        say(root, "Go.")


def test_a_debate_is_replayed_line_by_line(tmp_path: Path) -> None:
    """Five agents and sixty messages; `make test-faults` holds one of twenty agents and two thousand."""
    recorded = hold(tmp_path / "recorded", Debater(5, 12))
    again = hold(tmp_path / "again", f"replay:{recorded}")

    lines = same_lines(recorded)
    assert 60 == sum(line.get("role") == "assistant" for line in lines) - 3
    assert lines == same_lines(again)
