"""What agents told each other, as the messages of a document."""

from __future__ import annotations

import time
from typing import Any

import pytest

from harken.events import AgentCreated, Event, Metric, Prompt, Response, ToolCall
from harken.formats.std.exporting.spawning import session_tree
from harken.formats.std.exporting.telling import messages_of
from support.std_stories import Story
from support.std_told import lines, payloads, told


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

    def test_later_words_acknowledge_nothing(self) -> None:
        story = Story()
        call = story.spawn("ann", "Mend the clock.")
        story.say("ann", "I shall look at it.")
        story.work("ann")
        story.say("ann", "Understood.")
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
    # The best of three: the collector of a process with many tests behind it takes time of its own.
    thousand, hundred = (min(seconds(count) for _ in range(3)) for count in (1000, 100))
    assert thousand < 40 * max(hundred, 0.005)


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
