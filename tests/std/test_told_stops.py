"""What hooks refuse and what is interrupted, as the messages of a document."""

from __future__ import annotations

import pytest

from harken.events import AgentCreated, AgentTerminated
from support.std_stories import Story
from support.std_told import lines, payloads, told


class TestHooks:
    def watched(self, point: str, verdict: str) -> Story:
        """A hook is asked about a call or about words of an agent."""
        story = Story()
        story.add(AgentCreated, "hook", name="Guard", role="hook", parent="main")
        call = story.spawn("ann", "Mend the clock.")
        if point == "tool":
            asked = story.call("ann", "w1", "Bash", command="rm -rf .")
        else:
            asked = story.say("ann", "The key is 1234.")
        story.hear("hook", "May it?", point=point, cause=asked, call_id="w1" if point == "tool" else "")
        ruled = story.say("hook", verdict)
        if point == "tool":
            story.result("ann", "w1", "Error: Action blocked by hook 'Guard': no", is_error=True, cause=(ruled,))
        elif point == "finished":
            piece = story.piece("hook", "Not so.", ruled)
            story.hear("ann", "[Guard]: Not so.", origin="sent_back", hook="hook", substance=piece)
        story.answer("ann", "It ticks.", call)
        return story

    @pytest.mark.parametrize(
        ("point", "subject", "unheard"),
        [
            ("tool", "Bash: rm -rf .", None),
            ("finished", "The key is 1234.", None),
            ("delivery", "The key is 1234.", True),
        ],
    )
    def test_a_refusal_is_feedback_for_the_agent_whose_act_it_was(
        self, point: str, subject: str, unheard: bool | None
    ) -> None:
        story = self.watched(point, "DENY. Not so.")

        (feedback,) = [m for m in told(story).messages if m["message_type"] == "feedback"]

        assert ("hook", "ann") == (feedback["from_agent"]["agent_id"], feedback["to_agent"]["agent_id"])
        assert {
            "feedback_type": "correction",
            "subject": subject,
            "content": "Not so.",
            "related_task_id": "task-002",
        } == feedback["payload"]
        assert unheard == feedback.get("x_harken_unheard")

    @pytest.mark.parametrize("point", ["tool", "delivery"])
    def test_an_approval_is_no_message(self, point: str) -> None:
        assert [] == payloads(self.watched(point, "APPROVE"), "feedback")

    def test_a_remark_is_guidance(self) -> None:
        story = Story()
        story.add(AgentCreated, "hook", name="Guard", role="hook", parent="main")
        asked = story.hear("main", "Hello.", source="user")
        story.hear("hook", "May it?", point="prompt", cause=asked)
        piece = story.piece("hook", "Be kind.", story.say("hook", "SAY: Be kind."))
        story.hear("main", "[Guard]: Be kind.", origin="remark", hook="hook", substance=piece)

        assert [{"feedback_type": "guidance", "content": "Be kind."}] == payloads(story, "feedback")


class TestAborts:
    @pytest.mark.parametrize("origin", ["interruption", "agent", "stopped"])
    def test_an_agent_that_is_interrupted_was_stopped_for_a_reason(self, origin: str) -> None:
        story = Story()
        story.spawn("ann", "Mend the clock.")
        story.work("ann")
        story.hear("ann", "[Request interrupted by user]", origin=origin)

        found = told(story)

        assert ["main > ann task_assignment task-001", "main > ann abort task-001"] == lines(story)
        assert {"scope": "task", "target_id": "task-001", "reason": "[Request interrupted by user]"} == found.messages[
            -1
        ]["payload"]
        assert ["messages[1].from_agent"] == found.derived

    def test_an_agent_that_is_waited_for_is_stopped_with_its_giver(self) -> None:
        story = Story()
        call = story.spawn("ann", "Mend the clock.")
        story.work("ann")
        story.result("main", call, "The user does not want this.", is_error=True)
        story.hear("main", "[Request interrupted by user for tool use]", origin="interruption")

        assert [
            "main > ann task_assignment task-001",
            "main > ann abort task-001",
            "ann > main task_completion task-001",
        ] == lines(story)

    def test_an_agent_in_the_background_is_not(self) -> None:
        story = Story()
        call = story.spawn("ann", "Mend the clock.")
        story.result("main", call, "launched")
        story.work("ann")
        story.hear("main", "[Request interrupted by user]", origin="interruption")

        assert ["main > ann task_assignment task-001"] == lines(story)

    def test_nor_one_that_had_answered(self) -> None:
        story = Story()
        call = story.spawn("ann", "Mend the clock.")
        story.answer("ann", "It ticks.", call)
        story.hear("main", "[Request interrupted by user]", origin="interruption")

        assert [] == payloads(story, "abort")

    @pytest.mark.parametrize("is_done", [True, False])
    def test_closing_an_agent_stops_its_task_unless_it_is_done(self, is_done: bool) -> None:
        story = Story()
        call = story.spawn("ann", "Mend the clock.")
        story.result("main", call, "launched")
        story.work("ann")
        if is_done:
            story.say("ann", "It ticks.")
        story.call("main", "stop", "close_agent", id="ann")

        assert ([] if is_done else [{"scope": "task", "target_id": "task-001"}]) == payloads(story, "abort")

    def test_ending_an_agent_in_the_middle_of_its_work_stops_it(self) -> None:
        story = Story()
        story.spawn("ann", "Mend the clock.")
        story.work("ann")
        record = story.call("main", "end", "terminate", name="ann")
        story.add(AgentTerminated, "ann", cause=record)

        assert ["main > ann abort task-001"] == lines(story)[1:]
