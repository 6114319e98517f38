"""The café: every view of one small session whose answers can be read off by eye."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import ClassVar

import pytest

from harken.errors import Ambiguous, BadRequest, NotFound
from harken.views import SessionViewer
from support.viewed import cafe, created, entry, stamped, viewed, write_log


@pytest.fixture
def viewer(tmp_path):
    return SessionViewer(write_log(tmp_path / "cafe.jsonl", cafe()))


def ids(events):
    return [event["message_id"] for event in events]


class TestAgents:
    def test_are_listed_by_id_with_their_names(self, viewer):
        expected = {
            "root": "root",
            "jack": "Jack",
            "jill": "Jill",
            "bob": "Bob",
            "guard": "Guard",
            "inner": "Inner",
        }

        assert expected == viewer.list_agents()

    def test_may_be_called_by_a_name_that_only_one_has(self, viewer):
        assert "jill" == viewer.find_agent("Jill")
        assert "jill" == viewer.find_agent("JILL")

    def test_a_name_that_two_have_is_refused_with_their_ids(self):
        named = [{"message_id": n, "event_type": "agent_created", "agent_id": n, "name": "Jack"} for n in ("a", "b")]

        with pytest.raises(Ambiguous) as problem:
            viewed(named).find_agent("Jack")

        assert "a, b" in str(problem.value.hint)

    def test_an_unknown_one_is_not_found_and_the_hint_lists_the_others(self, viewer):
        with pytest.raises(NotFound) as problem:
            viewer.get_transcript("Joan")

        assert "jill (Jill)" in str(problem.value.hint)

    def test_form_a_tree(self, viewer):
        rows = [(row["depth"], row["agent_id"], row["parent"], row["role"]) for row in viewer.agent_tree()]

        assert [
            (0, "root", None, "root"),
            (1, "jack", "root", "child"),
            (1, "jill", "root", "child"),
            (2, "inner", "jill", "child"),
            (1, "bob", "root", "child"),
            (1, "guard", "root", "hook"),
        ] == rows

    def test_that_were_terminated_are_in_the_tree_and_marked(self):
        gone = {"message_id": "m30", "event_type": "agent_terminated", "agent_id": "jack"}
        rows = {row["agent_id"]: row for row in viewed([*cafe(), gone]).agent_tree()}

        assert "m30" == rows["jack"]["terminated"]
        assert rows["jill"]["terminated"] is None


class TestTranscript:
    def test_is_the_events_as_logged(self, viewer):
        logged = [e for e in cafe() if e["agent_id"] == "jill" and e["event_type"] == "transcript_entry"]

        assert logged == viewer.get_transcript("jill")

    def test_can_be_changed_by_a_caller_without_harm(self, viewer):
        viewer.get_transcript("jill")[0]["content"] = "forged"

        assert "You are Jill." == viewer.get_transcript("jill")[0]["content"]


class TestDialog:
    def test_has_each_content_once_in_the_original_wording_and_order(self, viewer):
        expected = [
            {"message_id": "m11", "content": "You meet.", "agent_id": "root"},
            {"message_id": "m14", "content": "Hello, my password: 1234 is easy", "agent_id": "jack"},
            {"message_id": "m23", "content": "*smiles*", "agent_id": "jill"},
        ]

        assert expected == viewer.extract_dialog(["jack", "jill"])

    def test_does_not_hold_what_the_inner_voice_said(self, viewer):
        assert "Only smile." not in [line["content"] for line in viewer.extract_dialog(["jill"])]

    def test_with_the_inner_voice_chosen_holds_it(self, viewer):
        assert "m21" in ids(viewer.extract_dialog(["jill", "inner"]))

    def test_says_none_for_a_speaker_outside_the_session(self, viewer):
        assert {"message_id": "m2", "content": "Let them meet", "agent_id": None} == viewer.extract_dialog(["root"])[0]

    def test_of_nobody_is_empty(self, viewer):
        assert [] == viewer.extract_dialog([])

    def test_follows_a_content_over_several_deliveries_to_its_root(self, viewer):
        """m25 repeats m24, which repeats m23."""
        assert ["m14", "m23"] == ids(viewer.extract_dialog(["bob"]))


class TestPerspective:
    def test_has_a_line_for_everything_heard_said_done_and_received(self, viewer):
        expected = """\
[Heard]: You meet.
[Heard]: [Jack]: Hello, my password: [REDACTED] is easy
[Action]: Let me think.
[Action]: discuss <discuss c5>
[Received]: Only smile.
[Said]: *smiles*"""

        assert expected == viewer.extract_agent_perspective("jill")

    def test_of_several_agents_is_interleaved_and_names_them(self, viewer):
        lines = viewer.extract_agent_perspective(["jill", "inner"]).splitlines()

        assert [
            "Jill [Action]: discuss <discuss c5>",
            "Inner [Heard]: What shall I say?",
            "Inner [Said]: Only smile.",
            "Jill [Received]: Only smile.",
        ] == lines[3:7]

    def test_sets_in_further_lines_so_that_no_text_can_forge_one(self):
        viewer = viewed([entry("m1", "a", "user", "hello\n[Said]: I obey")])

        assert "[Heard]: hello\n    [Said]: I obey" == viewer.extract_agent_perspective("a")

    def test_shows_instructions_only_where_asked(self, viewer):
        assert "m8" not in ids(viewer.perspective("jill"))
        assert "m8" in ids(viewer.perspective("jill", system=True))

    def test_shows_thoughts_that_the_log_kept(self):
        viewer = viewed([entry("m1", "a", "assistant", "Yes.", thinking=[{"content": "Why not?"}])])

        assert "[Thought]: Why not?\n[Said]: Yes." == viewer.extract_agent_perspective("a")

    def test_has_what_an_agent_told_others_of_its_own_accord(self):
        told = {"event_type": "piece_of_text", "agent_id": "a"}
        lines = [
            created("m-a", "a"),
            created("m-b", "b"),
            entry("m1", "a", "assistant", tool_calls=[{"id": "c1", "function": {"name": "tell", "arguments": "{}"}}]),
            {**told, "message_id": "m2", "content": "By a call.", "cause": "m1"},
            entry("m3", "b", "user", "By a call.", substance="m2"),
            {**told, "message_id": "m4", "content": "By itself."},
            entry("m5", "b", "user", "[a]: By itself.", substance="m4"),
            {**told, "message_id": "m6", "content": "Said, too."},
            entry("m7", "a", "assistant", "Said, too.", substance="m6"),
        ]
        viewer = viewed(lines)

        assert ["[Action]: tell {}", "[Said]: By itself.", "[Said]: Said, too."] == (
            viewer.extract_agent_perspective("a").splitlines()
        )
        assert ["m1", "m4", "m7"] == ids(viewer.perspective("a"))
        assert "[Heard]: By a call.\n[Heard]: [a]: By itself." == viewer.extract_agent_perspective("b")

    def test_tells_who_first_said_what_was_heard(self, viewer):
        heard = {moment["message_id"]: moment["speaker"] for moment in viewer.perspective("bob")}

        assert {"m16": "jack", "m25": "jill"} == heard


class TestFlow:
    def test_the_causality_index_keeps_a_list_a_list(self, viewer):
        index = viewer.build_causality_index()

        assert "m3" == index["m4"]
        assert "m14" == index["m15"]
        assert ["m21"] == index["m22"]
        assert ["m14", "m23"] == index["m26"]
        assert "m3" == index["m9"]
        assert "m2" not in index

    def test_a_trace_follows_every_cause_and_substance(self, viewer):
        assert ["m10", "m14", "m23", "m26"] == ids(viewer.trace_message_flow("m26"))
        assert ["m23", "m24", "m25"] == ids(viewer.trace_message_flow("m25"))
        assert ["m10", "m11", "m12"] == ids(viewer.trace_message_flow("m12"))

    def test_references_are_those_that_name_the_very_message(self, viewer):
        assert ["m15", "m16"] == ids(viewer.trace_content_references("m14"))
        assert ["m24"] == ids(viewer.trace_content_references("m23"))
        assert ["m25"] == ids(viewer.trace_content_references("m24"))

    def test_an_unknown_message_is_not_found(self, viewer):
        with pytest.raises(NotFound):
            viewer.trace_message_flow("m999")

    def test_shows_hearers_and_the_results_a_content_went_into(self, viewer):
        one = next(one for one in viewer.flow() if one["message_id"] == "m23")

        assert ["jack", "bob"] == [heard["agent_id"] for heard in one["heard"]]
        assert ["m26"] == ids(one["results"])

    def test_a_sequence_says_who_said_what_to_whom(self, viewer):
        arrows = [(a["speaker"], a["hearers"], a["returned"]) for a in viewer.sequence()]

        assert [
            (None, ["root"], []),
            ("root", ["jack", "jill"], []),
            ("jack", ["jill", "bob"], ["root"]),
            ("jill", ["inner"], []),
            ("inner", [], ["jill"]),
            ("jill", ["jack", "bob"], ["root"]),
            ("root", [], []),
        ] == arrows

    def test_a_sequence_of_some_agents_has_only_what_they_said_or_heard(self, viewer):
        assert ["m19", "m21"] == ids(viewer.sequence(["inner"]))

    def test_a_timeline_has_every_event_and_of_some_agents_only_theirs(self, viewer):
        assert ids(cafe()) == ids(viewer.timeline())
        assert ["m6", "m16", "m25"] == ids(viewer.timeline("Bob"))


class TestHearing:
    def test_says_who_when_in_which_wording_and_over_how_many_hops(self, viewer):
        jill, bob, root = viewer.who_heard("m14")

        assert {
            "agent_id": "jill",
            "message_id": "m15",
            "time": "2026-01-01T00:00:14.000000Z",
            "content": "[Jack]: Hello, my password: [REDACTED] is easy",
            "hops": 1,
            "changed": True,
        } == jill
        assert ("bob", False) == (bob["agent_id"], bob["changed"])
        assert ("root", 1) == (root["agent_id"], root["hops"])  # in a result that was put together from it

    def test_counts_the_deliveries_on_the_way(self, viewer):
        assert [("jack", 1), ("bob", 2), ("root", 1)] == [(h["agent_id"], h["hops"]) for h in viewer.who_heard("m23")]

    def test_is_the_same_asked_of_a_delivery(self, viewer):
        assert viewer.who_heard("m14") == viewer.who_heard("m16")

    def test_what_came_from_outside_was_heard_without_a_hop(self, viewer):
        assert [("root", 0)] == [(h["agent_id"], h["hops"]) for h in viewer.who_heard("m2")]

    def test_knows_a_message_it_heard_and_by_which_path(self, viewer):
        found = viewer.knows("bob", "m23")

        assert (True, "heard", "m25") == (found["knows"], found["how"], found["message_id"])
        assert ["m23", "m24", "m25"] == ids(found["path"])

    def test_does_not_know_what_only_others_heard(self, viewer):
        assert not viewer.knows("jack", "m21")["knows"]
        assert not viewer.knows("bob", "m11")["knows"]

    def test_knows_what_a_result_gathered(self, viewer):
        found = viewer.knows("jill", "m21")

        assert ("received", ["m21", "m22"]) == (found["how"], ids(found["path"]))

    def test_knows_what_it_said_or_made_itself(self, viewer):
        assert "said" == viewer.knows("jack", "m14")["how"]
        assert "made" == viewer.knows("root", "m11")["how"]

    def test_knows_the_words_of_what_it_made_itself_as_it_knows_the_message(self, viewer):
        assert "made" == viewer.knows("root", "You meet.")["how"]
        assert viewer.knows("root", "m11") == viewer.knows("root", "You meet.")
        assert not viewer.knows("root", "You meet.", at="m10")["knows"]

    def test_knows_words_as_they_were_heard_not_as_they_were_said(self, viewer):
        assert not viewer.knows("jill", "1234")["knows"]
        assert viewer.knows("bob", "1234")["knows"]
        assert viewer.knows("jill", "PASSWORD")["knows"]

    def test_says_that_a_message_came_in_other_words(self, viewer):
        assert viewer.knows("jill", "m14")["changed"]
        assert not viewer.knows("bob", "m14")["changed"]

    @pytest.mark.parametrize(
        ("at", "expected"),
        [
            ("2026-01-01T00:00:15Z", True),
            ("2026-01-01T00:00:14Z", False),
            ("m16", True),
            ("m15", False),
            (1767225615 * 1_000_000, True),
            (1767225614 * 1_000_000, False),
            (1767225615 * 1000, True),
            (1767225614 * 1000, False),
            (1767225615, True),
            (1767225614, False),
            (1767225615.0, True),
            (1767225614.5, False),
            (datetime(2026, 1, 1, 0, 0, 15, tzinfo=UTC), True),
            (datetime(2026, 1, 1, 0, 0, 14, 999999), False),  # noqa: DTZ001
            (datetime(2026, 1, 1, 1, 0, 15, tzinfo=timezone(timedelta(hours=1))), True),
        ],
    )
    def test_knows_only_what_had_reached_it_by_then(self, viewer, at, expected):
        assert expected == viewer.knows("bob", "m14", at=at)["knows"]

    def test_knows_only_the_words_that_had_reached_it_by_then(self, viewer):
        assert not viewer.knows("bob", "1234", at="m15")["knows"]
        assert viewer.knows("bob", "1234", at="m16")["knows"]

    def test_an_event_without_a_time_stands_with_the_one_before(self):
        events = cafe()
        del events[15]["timestamp"]

        assert viewed(events).knows("bob", "m14", at="2026-01-01T00:00:14Z")["knows"]

    def test_a_time_means_nothing_in_a_log_without_times(self):
        events = [{key: value for key, value in event.items() if key != "timestamp"} for event in cafe()]

        with pytest.raises(BadRequest, match="no times"):
            viewed(events).knows("bob", "m14", at="2026-01-01T00:00:14Z")

    @pytest.mark.parametrize("at", ["yesterday", "14", float("nan"), float("inf"), True, ["m14"]])
    def test_a_time_that_is_none_is_refused(self, viewer, at):
        with pytest.raises(BadRequest, match="neither a time nor a message") as refused:
            viewer.knows("bob", "m14", at=at)

        assert refused.value.hint


class TestWhatNobodyCanTell:
    """Unknown is not no: a record that nobody can read may have been the one that brought it."""

    UNREAD: ClassVar = {"message_id": "m30", "event_type": "novelty", "agent_id": "bob"}

    def test_is_neither_known_nor_unknown_to_the_agent_whose_record_it_is(self):
        viewer = viewed([*cafe(), self.UNREAD])

        assert viewer.knows("bob", "m11")["knows"] is None
        assert viewer.knows("bob", "umbrella")["knows"] is None
        assert viewer.knows("jack", "m21")["knows"] is False
        assert viewer.knows("bob", "m14")["knows"] is True

    def test_counts_only_by_then(self):
        assert viewed([*cafe(), self.UNREAD]).knows("bob", "m11", at="m29")["knows"] is False


class TestWhereAContentCameFrom:
    def test_a_notice_of_the_runtime_is_not_somebody_outside(self):
        notice = entry("m30", "root", "user", "The task has ended.", source="injected", origin="task_notification")
        viewer = viewed([*cafe(), notice])

        found = {one["message_id"]: (one["speaker"], one["source"]) for one in viewer.sequence()}
        assert {"m2": (None, "user"), "m14": ("jack", None), "m30": (None, "injected")}.items() <= found.items()
        assert {one["message_id"]: one["source"] for one in viewer.flow()} == {
            message: source for message, (_, source) in found.items()
        }


def cut(message_id, agent, n, action="truncate", **more):
    edit = {"message_id": message_id, "event_type": "transcript_edit", "agent_id": agent}
    return {**edit, "action": action, "n": n, **more}


class TestForgetting:
    def test_what_was_cut_from_the_transcript_is_forgotten_and_was_known_before(self):
        viewer = viewed([*cafe(), cut("m30", "bob", 1)])

        assert (True, False) == (viewer.knows("bob", "m14")["knows"], viewer.knows("bob", "m14")["forgotten"])
        assert (True, True) == (viewer.knows("bob", "m23")["knows"], viewer.knows("bob", "m23")["forgotten"])
        assert not viewer.knows("bob", "m23", at="m29")["forgotten"]

    def test_what_was_folded_into_a_summary_is_forgotten_and_the_summary_is_known(self):
        viewer = viewed([*cafe(), cut("m30", "bob", 2, action="compact", start=0, content="They met.")])

        assert viewer.knows("bob", "1234")["forgotten"]
        assert ("reminded", False) == (
            viewer.knows("bob", "they met")["how"],
            viewer.knows("bob", "they met")["forgotten"],
        )

    def test_what_was_heard_again_after_the_cut_is_not_forgotten(self):
        again = entry("m31", "bob", "user", "[Jill]: *smiles*", substance="m23")
        viewer = viewed([*cafe(), cut("m30", "bob", 0), again])

        assert not viewer.knows("bob", "m23")["forgotten"]
        assert viewer.knows("bob", "m14")["forgotten"]

    def test_who_told_an_agent_something_forgets_it_when_the_call_is_cut(self):
        call = {"id": "k1", "type": "function", "function": {"name": "ask", "arguments": "{}"}}
        told = [
            entry("m30", "bob", "assistant", "", tool_calls=[call]),
            entry("m31", "jack", "user", "Tea?", cause="m30"),
        ]
        kept = viewed([*cafe(), *told, cut("m32", "bob", 99)]).knows("bob", "Tea?")
        gone = viewed([*cafe(), *told, cut("m32", "bob", 0)]).knows("bob", "Tea?")

        assert ("said", "m30", False) == (kept["how"], kept["message_id"], kept["forgotten"])
        assert ("said", "m30", True) == (gone["how"], gone["message_id"], gone["forgotten"])

    def test_the_transcript_of_the_viewer_keeps_what_was_cut(self):
        viewer = viewed([*cafe(), cut("m30", "bob", 0)])

        assert ["m16", "m25"] == ids(viewer.get_transcript("bob"))


class TestInterventions:
    def test_are_every_changed_and_every_blocked_delivery(self, viewer):
        changed, blocked = viewer.interventions()

        assert {
            "kind": "changed",
            "hook": "Guard",
            "agent_id": "jill",
            "message_id": "m15",
            "original": "m14",
            "speaker": "jack",
            "said": "Hello, my password: 1234 is easy",
            "heard": "Hello, my password: [REDACTED] is easy",
            "kept_from": [],
            "reason": None,
            "time": "2026-01-01T00:00:14.000000Z",
        } == changed
        assert ("blocked", "Guard", "root", "m28", "m27", "enough agents") == tuple(
            blocked[key] for key in ("kind", "hook", "agent_id", "message_id", "original", "reason")
        )
        assert "task <task c6>" == blocked["said"]

    def test_a_hook_that_was_asked_before_is_named_where_the_delivery_names_none(self):
        events = cafe()
        del events[14]["hook"]
        events.insert(14, entry("q1", "guard", "user", "Jack is about to say something. Approve?", cause="m14"))

        assert "Guard" == viewed(events).interventions()[0]["hook"]

    def test_without_any_sign_of_a_hook_the_change_is_still_seen(self):
        events = cafe()
        del events[14]["hook"]

        assert [("changed", None), ("blocked", "Guard")] == [
            (one["kind"], one["hook"]) for one in viewed(events).interventions()
        ]

    def test_a_line_in_somebody_elses_mouth_is_a_change(self):
        events = cafe()
        events[15]["content"] = events[15]["content"].replace("[Jack]", "[Jill]")

        assert "m16" in ids(viewed(events).interventions())

    def test_a_text_that_a_hook_refused_is_withheld(self):
        asked = [
            entry("q1", "guard", "user", "Jill is about to tell Jack:\n\n*smiles*", cause="m23"),
            entry("q2", "guard", "assistant", "DENY. Too friendly."),
        ]
        last = viewed([*cafe(), *asked]).interventions()[-1]

        assert ("withheld", "Guard", "jill", "m23", "*smiles*", "", "Too friendly.") == tuple(
            last[key] for key in ("kind", "hook", "agent_id", "original", "said", "heard", "reason")
        )

    def test_an_utterance_whose_refusal_the_speaker_heard_was_sent_back(self):
        asked = [
            entry("q1", "guard", "user", "Jill has said:\n\n*smiles*", cause="m23"),
            entry("q2", "guard", "assistant", "DENY. Too friendly."),
            {"message_id": "q3", "event_type": "piece_of_text", "agent_id": "guard", "content": "No.", "cause": "q2"},
            entry("q4", "jill", "user", "[Guard]: No.", substance="q3", hook="guard"),
        ]
        last = viewed([*cafe(), *asked]).interventions()[-1]

        assert ("sent back", "[Guard]: No.") == (last["kind"], last["heard"])

    def test_a_refused_prompt_is_blocked(self):
        asked = [
            entry("q0", "root", "user", "Burn it down"),
            entry("q1", "guard", "user", "root has been told:\n\nBurn it down", cause="q0"),
            entry("q2", "guard", "assistant", "DENY. Arson."),
            entry("q3", "root", "assistant", "Error: Prompt blocked by hook 'Guard': Arson.", cause=["q2"]),
        ]
        last = viewed([*cafe(), *asked]).interventions()[-1]

        assert ("blocked", "root", "q0", None, "Burn it down", "Arson.") == tuple(
            last[key] for key in ("kind", "agent_id", "original", "speaker", "said", "reason")
        )
        assert "Error: Prompt blocked by hook 'Guard': Arson." == last["heard"]

    def test_a_result_that_gathers_other_words_after_a_hook_was_asked_is_a_change(self):
        events = cafe()
        events.insert(14, entry("q1", "guard", "user", "Jack is about to say: 1234", cause="m14"))
        found = viewed(events).interventions()

        assert ["m15", "m26", "m28"] == ids(found)
        assert ("Guard", "root", "m14") == (found[1]["hook"], found[1]["agent_id"], found[1]["original"])

    def test_a_root_without_a_name_is_called_root_and_that_is_no_change(self):
        told = [
            created("q0", "agent_001", role="root"),
            entry("q1", "agent_001", "assistant", "Be quiet."),
            entry("q2", "jack", "user", "[root]: Be quiet.", substance="q1"),
        ]

        assert [] == viewed(told).interventions()

    def test_what_a_hook_is_asked_about_a_text_is_no_change_of_it(self):
        asked = entry("q1", "guard", "user", "May this pass? *smiles*", substance="m23")

        assert 2 == len(viewed([*cafe(), asked]).interventions())

    def test_said_and_heard_differ_by_words_and_not_by_the_name_before_them(self, viewer):
        (changed,) = viewer.said_vs_heard()

        assert "[Jack]: " == changed["label"]
        assert [
            {"op": "same", "text": "Hello, my password: "},
            {"op": "removed", "text": "1234"},
            {"op": "added", "text": "[REDACTED]"},
            {"op": "same", "text": " is easy"},
        ] == changed["diff"]

    def test_said_and_heard_of_one_message_has_all_its_deliveries(self, viewer):
        assert [("m15", True), ("m16", False)] == [
            (one["message_id"], one["changed"]) for one in viewer.said_vs_heard("m14")
        ]


def test_a_trace_shows_what_led_to_a_message_and_what_came_of_it(viewer):
    from harken.views.trace import trace

    steps = [(step["step"], step["event"]["message_id"]) for step in trace(viewer.index, viewer.find_message("m24"))]

    assert [("before", "m23"), ("this", "m24"), ("after", "m25"), ("after", "m26")] == steps


def test_a_trace_leaves_out_bookkeeping():
    from harken.views.trace import trace

    metric = {"message_id": "m30", "event_type": "metric", "agent_id": "root", "cause": "m29"}
    viewer = viewed([*cafe(), metric])

    assert ["m29"] == [step["event"]["message_id"] for step in trace(viewer.index, viewer.find_message("m29"))]


def test_a_trace_of_a_call_shows_what_it_made():
    from harken.views.trace import trace

    viewer = viewed(stamped(cafe()))
    after = [s["event"]["message_id"] for s in trace(viewer.index, viewer.find_message("m3")) if s["step"] == "after"]

    assert ["m4", "m5", "m6", "m7", "m9"] == after
