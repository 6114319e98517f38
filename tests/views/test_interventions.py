"""What a hook kept from whom, and what only looks like it: the log, the views and the command agree (#4)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from harken import Session, SessionViewer
from harken.agents import Agent, Deny, HookAgent, Moment, Rewrite, hook
from support.command import command, printed
from support.stage import call, lines, open_stage, say
from support.viewed import created, entry, viewed

from .test_one_model import hold

TRIO = [call("task", name=name) for name in ("Jack", "Jill", "Ann")]
MEETING = call("discuss", prompt="Talk.", speakers=["Jack"], listeners=["Jill", "Ann"])
PARTS: dict[str, Any] = {"root": [*TRIO, MEETING, "ok"], "Jack": ["The code is 1234."]}


@hook("delivery", name="Discreet")
def not_for_jill(moment: Moment) -> Deny | None:
    return Deny("she must not know") if "Jill" in moment.recipients and "1234" in moment.text else None


def staged(path: Path, parts: dict[str, Any], *hooks: Any, **options: Any) -> tuple[Agent, Session]:
    root, session = open_stage(path, parts, hooks=list(hooks), **options)
    say(root, "go")
    return root, session


class TestADeliveryThatAHookWithheld:
    """#4: it is in the list whoever the hook is, and the list says from whom it was kept."""

    @pytest.mark.parametrize("answer", ["DENY. Secret.", "**Denied**: secret", "I would rather not.", ""])
    def test_by_an_agent_is_an_intervention_whatever_its_words_were(self, tmp_path: Path, answer: str) -> None:
        guard = HookAgent(name="Guard", points=("delivery",), instructions="No secrets.")
        verdicts = {"rules": [{"when": "1234", "say": answer}], "otherwise": "APPROVE"}
        root, session = staged(tmp_path / "log", PARTS | {"Guard": verdicts}, guard)
        with session:
            (found,) = SessionViewer(session.path).interventions()

            present = {root.subagents["Jill"].agent_id, root.subagents["Ann"].agent_id, root.agent_id}
            assert ("withheld", "Guard", "The code is 1234.") == (found["kind"], found["hook"], found["said"])
            assert present == set(found["kept_from"] or ())

    def test_names_those_who_were_kept_from_it_and_no_others(self, tmp_path: Path) -> None:
        root, session = staged(tmp_path / "log", PARTS, not_for_jill)
        with session:
            (found,) = SessionViewer(session.path).interventions()
            (said,) = lines(session, content="The code is 1234.")

            assert [root.subagents["Jill"].agent_id] == found["kept_from"]
            viewer = SessionViewer(session.path)
            heard = {viewer.name(one["agent_id"]) for one in viewer.who_heard(said["message_id"])}
            assert {"Discreet", "Ann", root.agent_id} == heard  # a hook that was asked has heard it as well

    def test_is_not_said_to_be_heard_by_nobody_where_others_heard_it(self, tmp_path: Path) -> None:
        _, session = staged(tmp_path / "log", PARTS, not_for_jill)
        session.close()

        shown = printed("view", "interventions", str(session.path)).decode()

        assert "nobody heard" not in shown
        assert "and it was kept from Jill" in shown

    def test_in_a_log_that_does_not_say_from_whom_is_told_without_a_guess(self) -> None:
        asked = [
            created("q0", "guard", name="Guard", role="hook"),
            entry("q1", "jack", "assistant", "The code is 1234."),
            entry("q2", "guard", "user", "May this pass?\n\nThe code is 1234.", cause="q1"),
            entry("q3", "guard", "assistant", "DENY. Secret."),
        ]

        assert [None] == [one["kept_from"] for one in viewed(asked).interventions()]


class TestAReplyThatWasWithheld:
    """#4: whoever was kept from a reply does not know it, though a result says that there was one."""

    def test_from_the_one_who_asked_for_it_is_not_known_to_him(self, tmp_path: Path) -> None:
        @hook("delivery", name="Wall")
        def nothing_up(moment: Moment) -> Deny | None:
            return Deny("it stays below") if "1234" in moment.text else None

        parts = {"root": [call("task", name="Jack", prompt="The code?"), "ok"], "Jack": ["The code is 1234."]}
        root, session = staged(tmp_path / "log", parts, nothing_up)
        with session:
            viewer = SessionViewer(session.path)
            (said,) = lines(session, content="The code is 1234.")

            assert not viewer.knows(root.agent_id, said["message_id"])["knows"]
            assert ["Wall"] == [viewer.name(one["agent_id"]) for one in viewer.who_heard(said["message_id"])]
            assert [] == viewer.content_flow(said["message_id"])["results"]
            assert [[]] == [one["returned"] for one in viewer.sequence() if one["message_id"] == said["message_id"]]
            assert [root.agent_id] == viewer.interventions()[0]["kept_from"]

    def test_in_a_discussion_is_not_known_to_him_and_the_others_are(self, tmp_path: Path) -> None:
        @hook("delivery", name="Wall")
        def not_for_root(moment: Moment) -> Deny | None:
            return Deny("it stays below") if moment.recipients == ("root",) and "1234" in moment.text else None

        meeting = call("discuss", prompt="Talk.", speakers=["Jack", "Jill"])
        parts = PARTS | {"root": [*TRIO, meeting, "ok"], "Jill": ["Fine weather."]}
        root, session = staged(tmp_path / "log", parts, not_for_root)
        with session:
            viewer = SessionViewer(session.path)
            (secret,), (weather,) = lines(session, content="The code is 1234."), lines(session, content="Fine weather.")

            assert not viewer.knows(root.agent_id, secret["message_id"])["knows"]
            assert viewer.knows(root.agent_id, weather["message_id"])["knows"]
            assert viewer.knows("Jill", secret["message_id"])["knows"]

    def test_that_a_hook_changed_is_known_in_other_words(self, tmp_path: Path) -> None:
        @hook("delivery", name="Redact")
        def redact(moment: Moment) -> Rewrite | None:
            return Rewrite("The code is secret.") if "1234" in moment.text else None

        root, session = staged(tmp_path / "log", PARTS, redact)
        with session:
            (said,) = lines(session, content="The code is 1234.")
            found = SessionViewer(session.path).knows(root.agent_id, said["message_id"])

            assert (True, True) == (found["knows"], found["changed"])


class TestAToolResult:
    """#4: what merely reads like a hook's refusal is none."""

    ERROR = "Error: Action blocked by hook 'Guard': enough agents"

    def test_that_reads_like_a_refusal_is_none_without_a_hook(self) -> None:
        told = [
            entry("m1", "a", "assistant", tool_calls=[{"id": "c1", "function": {"name": "cat", "arguments": "{}"}}]),
            entry("m2", "a", "tool", self.ERROR, tool_call_id="c1"),
        ]

        assert [] == viewed(told).interventions()

    @pytest.mark.parametrize("kind", ["function", "agent"])
    def test_that_reads_like_a_refusal_is_none_where_the_hook_approved(self, tmp_path: Path, kind: str) -> None:
        def cat() -> str:
            return self.ERROR

        function = hook("tool", name="Guard")(lambda _: None)
        guard = function if kind == "function" else HookAgent(name="Guard", points=("tool",), instructions="")
        parts = {"root": [call("cat"), "ok"], "Guard": {"otherwise": "APPROVE"}}
        _, session = staged(tmp_path / "log", parts, guard, tools=[cat])
        with session:
            assert 1 == len(lines(session, content=self.ERROR))
            assert [] == SessionViewer(session.path).interventions()

    def test_that_follows_a_refusal_of_another_call_is_none(self, tmp_path: Path) -> None:
        def cat() -> str:
            return self.ERROR

        @hook("tool", name="Guard")
        def guard(moment: Moment) -> Deny | None:
            return Deny("enough agents") if moment.tool == "task" else None

        both = {"call": [{"tool": "task", "arguments": {"name": "Jack"}}, {"tool": "cat", "arguments": {}}]}
        _, session = staged(tmp_path / "log", {"root": [both, "ok"]}, guard, tools=[cat])
        with session:
            assert 2 == len(lines(session, content=self.ERROR))
            (found,) = SessionViewer(session.path).interventions()
            assert ("blocked", "Guard", "enough agents") == (found["kind"], found["hook"], found["reason"])

    def test_of_a_call_that_a_hook_of_another_program_refused_is_listed(self) -> None:
        """The specification's own example: the hook is known by its name alone, and names no cause."""
        told = [
            created("m1", "watch", name="Guard"),
            entry("m2", "a", "assistant", tool_calls=[{"id": "c1", "function": {"name": "task", "arguments": "{}"}}]),
            entry("m3", "watch", "user", "Approve?"),
            entry("m4", "watch", "assistant", "DENY. enough agents"),
            entry("m5", "a", "tool", self.ERROR, tool_call_id="c1"),
        ]

        assert [("blocked", "Guard", "m2")] == [
            (one["kind"], one["hook"], one["original"]) for one in viewed(told).interventions()
        ]


class TestAPrefixOfTheDelivery:
    """#4: what the program itself puts before a text is no change of it."""

    async def whisper(self, root: Agent) -> None:
        jack, jill = root.subagents["Jack"], root.subagents["Jill"]
        await jack.deliver("The code is 1234.", [jill], prefix="Jack whispers: ")

    def test_is_no_change(self, tmp_path: Path) -> None:
        root, session = staged(tmp_path / "log", {"root": [*TRIO, "ok"]})
        with session:
            asyncio.run(self.whisper(root))
            viewer = SessionViewer(session.path)
            (said,) = lines(session, event_type="piece_of_text")

            assert [] == viewer.interventions()
            assert [("Jill", False)] == [
                (viewer.name(one["agent_id"]), one["changed"]) for one in viewer.who_heard(said["message_id"])
            ]
            assert ["Jack whispers: "] == [one["label"] for one in viewer.said_vs_heard(said["message_id"])]

    def test_stands_apart_from_what_a_hook_changed(self, tmp_path: Path) -> None:
        @hook("delivery", name="Redact")
        def redact(moment: Moment) -> Rewrite | None:
            return Rewrite("The code is secret.") if "1234" in moment.text else None

        root, session = staged(tmp_path / "log", {"root": [*TRIO, "ok"]}, redact)
        with session:
            asyncio.run(self.whisper(root))
            (found,) = SessionViewer(session.path).interventions()

            assert ("The code is 1234.", "The code is secret.") == (found["said"], found["heard"])

    def test_in_somebody_elses_name_is_a_change(self, tmp_path: Path) -> None:
        root, session = staged(tmp_path / "log", {"root": [*TRIO, "ok"]})
        with session:
            jack, jill = root.subagents["Jack"], root.subagents["Jill"]
            asyncio.run(jack.deliver("The code is 1234.", [jill], prefix="[Ann]: "))

            assert ["changed"] == [one["kind"] for one in SessionViewer(session.path).interventions()]


class TestTheCommand:
    """#4: the text and `--json` name the same agents."""

    def test_heard_names_every_hearer_in_both(self, tmp_path: Path) -> None:
        root, session = staged(tmp_path / "log", PARTS, not_for_jill)
        (said,) = lines(session, content="The code is 1234.")
        session.close()

        asked = ("view", "heard", str(session.path), said["message_id"])
        told, shown = command(*asked, "--json"), printed(*asked).decode()

        (guard,) = (agent for agent, info in session.agents.items() if info.role == "hook")
        assert [guard, root.subagents["Ann"].agent_id, root.agent_id] == [one["agent_id"] for one in told]
        marked = [line.split() for line in shown.splitlines() if line.strip()[:2] in ("->", "=>")]
        assert ["Discreet", "Ann", root.agent_id] == [words[1] for words in marked]

    def test_interventions_name_those_kept_from_it_in_json(self, tmp_path: Path) -> None:
        root, session = staged(tmp_path / "log", PARTS, not_for_jill)
        session.close()

        (found,) = command("view", "interventions", str(session.path), "--json")

        assert [root.subagents["Jill"].agent_id] == found["kept_from"]

    def test_every_door_gives_the_same_answers(self, tmp_path: Path) -> None:
        """The live session, the log file, an import and a store that kept the log as it grew."""

        @hook("delivery", name="Redact")
        def redact(moment: Moment) -> Rewrite | None:
            return Rewrite(moment.text.replace("1234", "secret")) if "Ann" in moment.recipients else None

        root, session = staged(tmp_path / "log.jsonl", PARTS, not_for_jill, redact)
        with session:
            jack, ann = root.subagents["Jack"], root.subagents["Ann"]
            asyncio.run(jack.deliver("The code is 1234.", [ann], prefix="Jack whispers: "))

        hold(session.path, steps=3)
        found = command("view", "interventions", str(session.path), "--json")
        assert SessionViewer(session.path).interventions() == found
        assert {"withheld", "changed"} == {one["kind"] for one in found}
