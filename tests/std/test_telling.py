"""What agents told each other, as the messages of a document."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest

from harken.events import AgentCreated, AgentTerminated, Event, Metric, Prompt, Response, ToolCall
from harken.formats.std.exporting.spawning import session_tree
from harken.formats.std.exporting.telling import ToldMessages, messages_of
from harken.formats.std.models import PAYLOADS, AgentMessage
from support.std_stories import Story


def told(story: Story) -> ToldMessages:
    found = messages_of(session_tree(story.events))
    msgspec.convert(found.messages, list[AgentMessage])
    for message in found.messages:
        if message["message_type"] != "review_result" or "verdict" in message["payload"]:
            msgspec.convert(message["payload"], PAYLOADS[message["message_type"]])
    return found


def lines(story: Story) -> list[str]:
    """Who told whom, in which kind of message, about which task."""
    return [
        f"{m['from_agent']['agent_id']} > {m['to_agent']['agent_id']} "
        f"{m['message_type']} {m.get('correlation_id', '-')}"
        for m in told(story).messages
    ]


def payloads(story: Story, kind: str) -> list[dict[str, Any]]:
    return [m["payload"] for m in told(story).messages if m["message_type"] == kind]


class TestTasks:
    def test_a_call_is_an_assignment_and_its_result_the_completion(self) -> None:
        story = Story()
        call = story.spawn("ann", "Mend the clock.")
        story.answer("ann", "It ticks.", call)

        first, last = told(story).messages

        assert {
            "message_id": "msg-001",
            "timestamp": "1970-01-01T00:00:01.000000Z",
            "sequence_number": 1,
            "from_agent": {"agent_id": "main", "agent_type": "architect"},
            "to_agent": {"agent_id": "ann", "agent_type": "worker"},
            "message_type": "task_assignment",
            "payload": {"task": {"task_id": "task-001", "task_description": "Mend the clock."}},
            "correlation_id": "task-001",
        } == first
        assert {
            "message_id": "msg-002",
            "timestamp": "1970-01-01T00:00:05.000000Z",
            "sequence_number": 2,
            "from_agent": {"agent_id": "ann", "agent_type": "worker"},
            "to_agent": {"agent_id": "main", "agent_type": "architect"},
            "message_type": "task_completion",
            "payload": {"task_id": "task-001", "status": "completed", "summary": "It ticks."},
            "correlation_id": "task-001",
            "reply_to": "msg-001",
        } == last

    def test_what_is_said_before_the_answer_is_progress(self) -> None:
        story = Story()
        call = story.spawn("ann", "Mend the clock.")
        story.work("ann")
        story.say("ann", "The spring is broken.")
        story.work("ann")
        story.answer("ann", "It ticks.", call)

        found = told(story)

        assert ["task_assignment", "task_progress", "task_completion"] == [m["message_type"] for m in found.messages]
        assert {"task_id": "task-001", "current_step": "The spring is broken."} == found.messages[1]["payload"]
        assert "msg-001" == found.messages[1]["reply_to"]
        assert True is found.messages[1]["x_harken_unheard"]
        assert ["messages[1].to_agent"] == found.derived

    def test_progress_that_the_giver_heard_is_not_marked(self) -> None:
        story = Story()
        call = story.spawn("ann", "Mend the clock.")
        said = story.say("ann", "The spring is broken.")
        story.hear("main", "ann says: The spring is broken.", cause=(said,))
        story.work("ann")
        story.answer("ann", "It ticks.", call)

        found = told(story)

        assert ["task_assignment", "task_progress", "task_completion"] == [m["message_type"] for m in found.messages]
        assert "x_harken_unheard" not in found.messages[1]
        assert [] == found.derived

    def test_an_answer_that_is_an_error_is_a_failed_task(self) -> None:
        story = Story()
        call = story.spawn("ann", "Mend the clock.")
        story.work("ann")
        story.result("main", call, "API error", is_error=True)

        assert [{"task_id": "task-001", "status": "failed", "summary": "API error"}] == payloads(
            story, "task_completion"
        )

    def test_an_agent_in_the_background_completes_its_task_with_the_notice(self) -> None:
        story = Story()
        call = story.spawn("ann", "Mend the clock.")
        story.result("main", call, "launched")
        story.work("ann")
        said = story.say("ann", "It ticks.")
        story.hear("main", f"<tool-use-id>{call}</tool-use-id> It ticks.", origin="task_notification", cause=(said,))

        *_, last = told(story).messages

        assert ("task_completion", "It ticks.") == (last["message_type"], last["payload"]["summary"])
        assert "1970-01-01T00:00:08.000000Z" == last["timestamp"]

    def test_a_notice_of_failure_fails_the_task(self) -> None:
        story = Story()
        call = story.spawn("ann", "Mend the clock.")
        story.result("main", call, "launched")
        story.work("ann")
        words = f"<tool-use-id>{call}</tool-use-id><status>failed</status>"
        story.hear("main", words, origin="task_notification")

        assert ["failed"] == [payload["status"] for payload in payloads(story, "task_completion")]

    def test_an_agent_that_was_launched_and_never_heard_of_again_has_not_completed_its_task(self) -> None:
        story = Story()
        call = story.spawn("ann", "Mend the clock.")
        story.result("main", call, "launched")
        story.say("ann", "It ticks.")

        assert ["main > ann task_assignment task-001", "ann > main task_progress task-001"] == lines(story)

    @pytest.mark.parametrize(
        ("launch", "result", "notice", "expected"),
        [
            ({}, "It ticks.", "", ["It ticks."]),
            ({"run_in_background": True}, "launched", "", []),
            ({}, '{"agent_id": "ann", "nickname": "Ann"}', "", []),
            ({"run_in_background": True}, "launched", "<result>It ticks.</result>", ["It ticks."]),
        ],
    )
    def test_of_an_agent_whose_file_is_gone_the_result_is_the_answer(
        self, launch: dict[str, Any], result: str, notice: str, expected: list[str]
    ) -> None:
        story = Story()
        record = story.call("main", "c9", subagent_type="worker", prompt="Mend the clock.", **launch)
        story.result("main", "c9", result, cause=record)
        story.add(Metric, "ann", scope="agent", cause=record)
        if notice:
            words = f"<task-notification><task-id>ann</task-id>{notice}</task-notification>"
            story.hear("main", words, origin="task_notification")
        tree = session_tree(story.events)
        tree.agents["ann"].call = next(event for event in story.events if isinstance(event, ToolCall))

        found = messages_of(tree).messages

        assert ["Mend the clock."] == [
            message["payload"]["task"]["task_description"]
            for message in found
            if message["message_type"] == "task_assignment"
        ]
        assert expected == [
            message["payload"]["summary"] for message in found if message["message_type"] == "task_completion"
        ]

    def test_an_answer_that_comes_twice_completes_the_task_once(self) -> None:
        story = Story()
        call = story.spawn("ann", "Mend the clock.")
        story.result("main", call, "launched")
        said = story.say("ann", "It ticks.")
        story.call("main", "wait", "wait_agent", targets=["ann"])
        story.result("main", "wait", '{"ann": "It ticks."}', cause=(said,))
        story.hear("main", "It ticks.", origin="subagent_notification", cause=(said,))

        assert ["main > ann task_assignment task-001", "ann > main task_completion task-001"] == lines(story)

    def test_every_further_task_has_a_name_of_its_own(self) -> None:
        story = Story()
        call = story.spawn("ann", "Mend the clock.")
        story.answer("ann", "It ticks.", call)
        story.call("main", "more", "send_input", id="ann", message="Now wind it up.")
        story.hear("ann", "Now wind it up.", origin="agent")
        story.result("main", "more", "sent")
        said = story.say("ann", "Wound up.")
        story.hear("main", "ann: Wound up.", origin="subagent_notification", cause=(said,))

        found = told(story)

        assert [
            "main > ann task_assignment task-001",
            "ann > main task_completion task-001",
            "main > ann task_assignment task-001-2",
            "ann > main task_completion task-001-2",
        ] == lines(story)
        assert [None, "msg-001", None, "msg-003"] == [message.get("reply_to") for message in found.messages]
        assert [] == found.derived

    def test_what_comes_in_the_middle_of_a_task_belongs_to_it(self) -> None:
        story = Story()
        call = story.spawn("ann", "Mend the clock.")
        story.work("ann")
        story.call("main", "more", "send_input", id="ann", message="Mind the glass.")
        story.hear("ann", "Mind the glass.", origin="agent")
        story.work("ann")
        story.answer("ann", "It ticks.", call)

        assert [
            "main > ann task_assignment task-001",
            "main > ann feedback task-001",
            "ann > main task_completion task-001",
        ] == lines(story)
        assert [{"feedback_type": "guidance", "content": "Mind the glass.", "related_task_id": "task-001"}] == payloads(
            story, "feedback"
        )

    def test_what_an_agent_was_made_for_is_its_task_even_if_it_never_began(self) -> None:
        story = Story()
        story.spawn("ann", "Mend the clock.")
        story.hear("ann", "Mind the glass.", origin="agent")

        assert ["main > ann task_assignment task-001", "main > ann feedback task-001"] == lines(story)

    def test_agents_at_work_at_the_same_time_are_told_apart(self) -> None:
        story = Story()
        one, other = story.spawn("ann", "Left.", name="twin"), story.spawn("bob", "Right.", name="twin")
        story.answer("bob", "Right is done.", other)
        story.answer("ann", "Left is done.", one)

        assert [
            "main > ann task_assignment task-001",
            "main > bob task_assignment task-002",
            "bob > main task_completion task-002",
            "ann > main task_completion task-001",
        ] == lines(story)

    def test_an_agent_of_an_agent_is_told_by_the_one_that_made_it(self) -> None:
        story = Story()
        outer = story.spawn("ann", "Mend the clock.")
        inner = story.spawn("bob", "Find a spring.", by="ann")
        story.answer("bob", "Found.", inner, to="ann")
        story.answer("ann", "It ticks.", outer)

        assert [
            "main > ann task_assignment task-001",
            "ann > bob task_assignment task-002",
            "bob > ann task_completion task-002",
            "ann > main task_completion task-001",
        ] == lines(story)

    def test_a_call_that_made_nobody_assigns_nothing(self) -> None:
        story = Story()
        story.call("main", "c9", "Agent", prompt="Mend it.")
        story.result("main", "c9", "no such agent type", is_error=True)

        assert [] == lines(story)

    def test_a_task_whose_call_is_not_known_is_taken_for_the_makers(self) -> None:
        story = Story()
        story.add(AgentCreated, "ann", name="ann", role="child", parent="main")
        story.hear("ann", "Mend the clock.", origin="agent")
        story.say("ann", "It ticks.")

        found = told(story)

        assert "messages[0].from_agent" in found.derived
        assert ["main > ann task_assignment task-001", "ann > main task_progress task-001"] == lines(story)

    def test_what_a_person_says_to_an_agent_is_no_message(self) -> None:
        story = Story()
        story.add(AgentCreated, "ann", name="ann", role="child", parent="main")
        story.hear("ann", "Mend the clock.", source="user")
        story.say("ann", "It ticks.")

        assert [] == lines(story)
        assert "task-001" == told(story).tasks["ann"].tasks[0].task_id

    def test_a_message_without_a_time_has_the_nearest_and_says_so(self) -> None:
        story = Story()
        call = story.spawn("ann", "Mend the clock.")
        story.answer("ann", "It ticks.", call)
        story.events = [
            event.replace(time=None) if event.message_id in ("e1", "e5") else event for event in story.events
        ]

        found = told(story)

        assert ["1970-01-01T00:00:00.000000Z", "1970-01-01T00:00:04.000000Z"] == [
            message["timestamp"] for message in found.messages
        ]
        assert ["messages[0].timestamp", "messages[1].timestamp"] == found.derived

    @pytest.mark.parametrize("words", ["Understood.", "OK, will do", "Acknowledged: starting now"])
    def test_an_acknowledgment_is_one_where_it_was_said(self, words: str) -> None:
        story = Story()
        call = story.spawn("ann", "Mend the clock.")
        story.say("ann", words)
        story.work("ann")
        story.answer("ann", "It ticks.", call)

        assert [{"task_id": "task-001", "content": words}] == payloads(story, "acknowledgment")

    @pytest.mark.parametrize("words", ["Okapis are rare.", "I shall look at it.", "Understood. " + "Well. " * 50])
    def test_other_first_words_acknowledge_nothing(self, words: str) -> None:
        story = Story()
        call = story.spawn("ann", "Mend the clock.")
        story.say("ann", words)
        story.work("ann")
        story.answer("ann", "It ticks.", call)

        assert [] == payloads(story, "acknowledgment")

    def test_what_a_sub_agents_file_does_not_tell_from_a_task_is_none(self) -> None:
        story = Story()
        call = story.spawn("ann", "Mend the clock.")
        story.say("ann", "It ticks.")
        story.hear("ann", "<task-notification>something is done</task-notification>", origin="agent")
        story.answer("ann", "All is done.", call)

        assert ["task_assignment", "task_progress", "task_completion"] == [
            message["message_type"] for message in told(story).messages
        ]

    def test_an_agent_is_given_no_task_by_one_below_it(self) -> None:
        story = Story()
        outer = story.spawn("ann", "Mend the clock.")
        inner = story.spawn("bob", "Watch the door.", by="ann")
        story.result("ann", inner, "launched")
        story.say("ann", "We wait.")
        record = story.call("bob", "r1", "report", text="Somebody comes.")
        story.hear("ann", "[bob]: Somebody comes.", substance=story.piece("bob", "Somebody comes.", record))
        story.answer("ann", "It ticks.", outer)

        assert [
            "main > ann task_assignment task-001",
            "ann > bob task_assignment task-002",
            "ann > main task_progress task-001",
            "bob > ann task_progress task-002",
            "ann > main task_completion task-001",
        ] == lines(story)


class TestReviews:
    def reviewed(self, request: str, *replies: str) -> Story:
        """Two developers, then a reviewer that is asked once and answers."""
        story = Story()
        one, other = story.spawn("ann-1", "Left.", kind="developer"), story.spawn("bob-1", "Right.", kind="developer")
        story.answer("ann-1", "Left is done.", one)
        story.answer("bob-1", "Right is done.", other)
        for reply in replies:
            call = story.spawn("rev", request, kind="code-reviewer")
            story.answer("rev", reply, call)
        return story

    def test_a_reviewers_task_is_a_review_of_what_was_completed_last(self) -> None:
        story = self.reviewed("Have a look.", "Approved.")

        found = told(story)

        assert ["main > rev review_request task-003", "rev > main review_result task-003"] == lines(story)[-2:]
        assert {"review_id": "task-003", "task_id": "task-002", "context": "Have a look."} == found.messages[-2][
            "payload"
        ]
        assert {
            "task_id": "task-002",
            "review_id": "task-003",
            "verdict": "approved",
            "status": "completed",
            "summary": "Approved.",
        } == found.messages[-1]["payload"]
        assert found.messages[-2]["message_id"] == found.messages[-1]["reply_to"]
        assert ["messages[4].payload.task_id"] == found.derived

    @pytest.mark.parametrize("request_words", ["Review the work of ann-1.", "Look at task-001, please."])
    def test_what_the_request_names_is_reviewed(self, request_words: str) -> None:
        story = self.reviewed(request_words, "Approved.")

        assert ["task-001"] == [payload["task_id"] for payload in payloads(story, "review_result")]
        assert [] == told(story).derived

    def test_a_review_of_nothing_is_about_itself(self) -> None:
        story = Story()
        call = story.spawn("rev", "Look at the code.", kind="reviewer")
        story.answer("rev", "Rejected.", call)

        assert ["task-001"] == [payload["task_id"] for payload in payloads(story, "review_request")]

    def test_there_is_no_verdict_where_none_is_stated(self) -> None:
        story = self.reviewed("Have a look.", "It is not approved.")

        assert [None] == [payload.get("verdict") for payload in payloads(story, "review_result")]

    def test_a_second_review_is_a_request_of_its_own(self) -> None:
        story = self.reviewed("Have a look.", "Changes requested.")
        story.call("main", "again", "SendMessage", to="rev", message="Once more.")
        story.hear("rev", "Once more.", origin="agent")
        said = story.say("rev", "Approved.")
        story.hear("main", "Approved.", origin="task_notification", cause=(said,))

        assert ["task-003", "task-003-2"] == [payload["review_id"] for payload in payloads(story, "review_request")]
        assert ["changes_requested", "approved"] == [payload["verdict"] for payload in payloads(story, "review_result")]


class TestWords:
    def discussion(self) -> Story:
        """Two agents in a discussion, one who listens."""
        story = Story()
        for number, name in enumerate(("ann", "bob", "cyd")):
            record = story.call("main", f"t{number}", "task", name=name)
            story.add(AgentCreated, name, name=name, role="child", cause=record)
            story.result("main", f"t{number}", f"Created subagent: {name}")
        record = story.call("main", "d1", "discuss", prompt="Why?", speakers=["ann", "bob"], listeners=["cyd"])
        asked = story.piece("main", "Why?", record)
        for name in ("ann", "bob", "cyd"):
            story.hear(name, "Why?", substance=asked)
        one = story.say("ann", "Because.", cause=record)
        story.hear("bob", "[ann]: Because.", substance=one)
        story.hear("cyd", "[ann]: Because.", substance=one)
        other = story.say("bob", "No.", cause=record)
        story.hear("ann", "[bob]: No.", substance=other)
        story.hear("cyd", "[bob]: No.", substance=other)
        story.result("main", "d1", "[ann]: Because.\n\n[bob]: No.", cause=(one, other))
        return story

    def test_who_only_listens_was_given_no_task_by_it(self) -> None:
        assert [
            "main > cyd task_assignment task-003",  # the call that made it
            "main > ann task_assignment task-001",
            "main > bob task_assignment task-002",
            "main > cyd feedback task-003",
            "ann > bob feedback task-001",
            "ann > cyd feedback task-001",
            "bob > ann feedback task-002",
            "bob > cyd feedback task-002",
            "ann > main task_completion task-001",
            "bob > main task_completion task-002",
        ] == lines(self.discussion())

    def test_words_between_agents_say_that_their_type_was_chosen(self) -> None:
        found = told(self.discussion())

        assert {"feedback_type": "guidance", "content": "Because.", "related_task_id": "task-001"} == found.messages[4][
            "payload"
        ]
        assert ["messages[4].message_type", "messages[4].payload.feedback_type"] == [
            path for path in found.derived if path.startswith("messages[4]")
        ]

    def test_a_turn_to_speak_is_a_task_without_words(self) -> None:
        story = self.discussion()
        record = story.call("main", "d2", "discuss")
        said = story.say("ann", "Still because.", cause=record)
        story.result("main", "d2", "[ann]: Still because.", cause=(said,))

        *_, given, done = told(story).messages

        assert {"task": {"task_id": "task-001-2"}} == given["payload"]
        assert {"task_id": "task-001-2", "status": "completed", "summary": "Still because."} == done["payload"]

    def test_an_answer_is_told_as_it_was_heard(self) -> None:
        story = self.discussion()
        last = story.events[-1]
        story.events[-1] = last.replace(output="[ann]: I may not say.\n\n[bob]: No.")

        assert ["I may not say.", "No."] == [payload["summary"] for payload in payloads(story, "task_completion")]

    def test_a_report_to_the_giver_of_the_task_is_progress(self) -> None:
        story = Story()
        call = story.spawn("ann", "Watch the door.")
        record = story.call("ann", "r1", "report", text="Somebody comes.")
        piece = story.piece("ann", "Somebody comes.", record)
        story.hear("main", "[ann]: Somebody comes.", substance=piece)
        story.result("ann", "r1", "told")
        story.answer("ann", "Nobody any more.", call)

        assert [{"task_id": "task-001", "current_step": "Somebody comes."}] == payloads(story, "task_progress")
        assert [] == told(story).derived

    def test_members_of_a_team_are_known_by_their_names(self) -> None:
        story = Story()
        story.spawn("ann@team", "Left.")
        story.spawn("bob@team", "Right.")
        words = '<teammate-message teammate_id="{}" color="red">\nHello.\n</teammate-message>'
        story.hear("bob@team", words.format("ann"), origin="teammate")
        story.hear("main", words.format("bob"), origin="teammate")
        story.hear("main", words.format("nobody"), origin="teammate")
        story.hear("ann@team", words.format("team-lead"), origin="teammate")
        story.say("ann@team", "Hello, too.")

        assert [
            "main > ann@team task_assignment task-001",
            "main > bob@team task_assignment task-002",
            "ann@team > bob@team feedback task-001",
            "bob@team > main task_progress task-002",
            "main > ann@team feedback task-001",
            "ann@team > main task_progress task-001",
        ] == lines(story)
        assert ["Hello.", "Hello, too."] == [payload["current_step"] for payload in payloads(story, "task_progress")]

    def test_what_a_compaction_tells_again_is_not_said_twice(self) -> None:
        story = Story()
        call = story.spawn("ann", "Mend the clock.")
        said = story.say("ann", "The spring is broken.")
        story.work("ann")
        story.hear("ann", "Mend the clock.", substance="e3", origin="agent")
        story.say("ann", "The spring is broken.", substance=said)
        story.answer("ann", "It ticks.", call)

        assert ["task_assignment", "task_progress", "task_completion"] == [
            message["message_type"] for message in told(story).messages
        ]


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


class TestPatterns:
    def pattern(self, *tasks: tuple[str, str]) -> str:
        story = Story()
        for number, (task, answer) in enumerate(tasks):
            call = story.spawn(f"agent-{number}", task)
            story.answer(f"agent-{number}", answer, call)
        return told(story).pattern

    def test_where_each_answer_stands_in_the_next_task_it_is_a_pipeline(self) -> None:
        assert "pipeline" == self.pattern(
            ("Draft it.", "A draft of it."),
            ("Polish: A draft of it.", "Polished."),
            ("Print 'Polished.' now.", "Done."),
        )

    def test_where_one_does_not_it_is_none(self) -> None:
        assert "master_worker" == self.pattern(
            ("Draft it.", "A draft of it."), ("Polish: A draft of it.", "Polished."), ("Print something.", "Done.")
        )

    def test_one_agent_alone_is_no_pipeline(self) -> None:
        assert "master_worker" == self.pattern(("Draft it.", "A draft of it."))

    def test_agents_that_hear_each_other_are_peers(self) -> None:
        assert "peer_to_peer" == told(TestWords().discussion()).pattern


def test_a_thousand_agents_are_told_of_in_about_a_thousand_times_the_time_of_one() -> None:
    def seconds(count: int) -> float:
        story = Story()
        calls = [story.spawn(f"agent-{n}", f"Mend clock {n}.", kind="review" if n % 2 else "dev") for n in range(count)]
        for n, call in enumerate(calls):
            story.say(f"agent-{n}", "On it.")
            story.work(f"agent-{n}")
            story.answer(f"agent-{n}", f"Clock {n} ticks.", call)
        tree = session_tree(story.events)
        start = time.process_time()
        assert 3 * count == len(messages_of(tree).messages)
        return time.process_time() - start

    seconds(20)

    assert seconds(1000) < 40 * max(seconds(100), 0.005)


def test_events_that_make_no_sense_never_trip_it_up() -> None:
    story = Story()
    call = story.spawn("ann", "Mend the clock.")
    story.answer("ann", "It ticks.", call)
    odd: list[Event] = [
        Prompt(agent_id="ann", content="", substance="nowhere"),
        Prompt(message_id="loop", agent_id="bob", content="x", substance="loop", source="injected"),
        Response(agent_id="", content="nobody"),
        Response(message_id="self", agent_id="ann", content="me", cause=("self", "self", "e1")),
    ]

    for event in odd:
        for at in range(len(story.events) + 1):
            messages_of(session_tree([*story.events[:at], event, *story.events[at:]]))
