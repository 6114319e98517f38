"""Reviews, words between agents, and how they worked together, as a document tells them."""

from __future__ import annotations

import pytest

from harken.events import AgentCreated
from support.std_stories import Story
from support.std_told import lines, payloads, told


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
