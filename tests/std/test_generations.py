"""Older documents are read in the fields of the newest generation, and keep their own."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.formats.std.document import parse_session
from harken.formats.std.generations import as_v3, generation_of
from support.std_documents import single
from support.std_strategies import documents, json_values, older

Json = dict[str, Any]
FIELDS = ("tool_calls", "phases", "steps", "phase_annotations")


def phase(name: str, *calls: str, **more: Any) -> Json:
    return {
        "phase_id": name,
        "phase_type": "explore",
        "status": "success",
        "ended_at": "2026-03-04T10:01:00Z",
        "tool_call_ids": list(calls),
        "context_used": [{"type": "file", "source": "a.py", "relevance": "high"}],
        "decisions": [],
        **more,
    }


def annotation(name: str, first: str, last: str, **more: Any) -> Json:
    return {
        "annotation_id": name,
        "phase_type": "explore",
        "tool_call_range": {"start_call_id": first, "end_call_id": last},
        "annotated_by": "auto",
        "annotated_at": "2026-03-04T10:02:00Z",
        "confidence": "medium",
        **more,
    }


class TestAnyGeneration:
    @given(older() | documents())
    def test_keeps_every_old_field_in_its_place(self, data: Json) -> None:
        read = as_v3(data)

        assert list(data) == list(read)[: len(data)]
        assert {key: data[key] for key in data if key != "phase_annotations"} == {
            key: read[key] for key in data if key != "phase_annotations"
        }
        annotations = data.get("phase_annotations", [])
        assert annotations == read.get("phase_annotations", [])[: len(annotations)]

    @given(older() | documents())
    def test_read_twice_is_read_once(self, data: Json) -> None:
        read = as_v3(data)

        before = generation_of(data)
        assert ("v3" if before == "v2" else before) == generation_of(read)
        assert read is as_v3(read)

    @given(older())
    def test_names_only_calls_that_it_names(self, data: Json) -> None:
        read = as_v3(data)

        ids = [made["call_id"] for made in read["tool_calls"]]
        named = {end for made in read["phase_annotations"] for end in made["tool_call_range"].values()}
        assert len(ids) == len(set(ids))
        assert named <= {*ids, "tool-gone"}

    @given(st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, json_values)))
    def test_may_be_anything_and_is_read_without_a_stumble(self, data: Json) -> None:

        assert {key: as_v3(data)[key] for key in data if data[key] not in (None, [])} == {
            key: value for key, value in data.items() if value not in (None, [])
        }

    @pytest.mark.parametrize("key", ["tool_calls", "phase_annotations"])
    @pytest.mark.parametrize("value", ["text", 7, {}, {"a": 1}])
    def test_replaces_nothing_that_it_cannot_read(self, key: str, value: object) -> None:
        for older_one in ({"steps": [{"step_name": "debug_fix"}]}, {"phases": [{"phase": "plan", "tool_calls": [{}]}]}):
            data = older_one | {key: value}

            assert value == as_v3(data)[key]


class TestSteps:
    def test_are_read_as_calls_each_with_an_annotation(self) -> None:
        data = {
            "session_id": "s",
            "created_at": "2026-01-25T10:00:00Z",
            "updated_at": "2026-01-25T11:00:00Z",
            "steps": [
                {
                    "step_id": "step-1",
                    "step_name": "requirement_input",
                    "status": "success",
                    "input": {"text": "mend it"},
                    "output": "understood",
                    "timestamp": "2026-01-25T10:00:01Z",
                    "duration_ms": 40,
                    "domain_matching_score": 0.9,
                },
                {"step_name": "debug_fix", "status": "failed", "input": "again", "error_message": "no luck"},
                {"step_id": "step-1", "step_name": "memory_consolidation", "status": "pending"},
            ],
        }

        document = parse_session(data)

        assert "v1" == document.generation
        assert [
            {
                "call_id": "step-1",
                "tool_name": "requirement_input",
                "tool_category": "interaction",
                "started_at": "2026-01-25T10:00:01Z",
                "duration_ms": 40,
                "input": {"params": {"text": "mend it"}},
                "output": {"status": "success", "result": {"display": "understood"}},
            },
            {
                "call_id": "tool-002",
                "tool_name": "debug_fix",
                "tool_category": "action",
                "input": {"params": {"input": "again"}},
                "output": {"status": "failed", "error": "no luck"},
            },
            {
                "call_id": "tool-003",
                "tool_name": "memory_consolidation",
                "tool_category": "action",
                "input": {"params": {}},
            },
        ] == document.data["tool_calls"]
        assert [("understand", "step-1"), ("execute", "tool-002"), ("unclassified", "tool-003")] == [
            (made["phase_type"], made["tool_call_range"]["start_call_id"])
            for made in document.data["phase_annotations"]
        ]
        assert data["steps"] == document.data["steps"]


class TestCallsInsidePhases:
    def test_are_numbered_in_order_and_have_no_times(self) -> None:
        data = {
            "title": "A first try",
            "phases": [
                {"phase": "understand", "context_references": [{"type": "file", "source": "README.md"}]},
                {
                    "phase": "explore",
                    "tool_calls": [
                        {"tool": "Bash", "target": "git log", "action": "look back", "details": "ten commits"},
                        {"tool": "Write", "target": "a.md", "action": "write it down"},
                    ],
                },
                {
                    "phase": "verify",
                    "tool_calls": [{"tool": "Bash", "target": "make test"}],
                    "context_references": ["Makefile"],
                },
            ],
            "artifacts": ["a.md"],
        }

        document = parse_session(data)

        assert "early-v2" == document.generation
        assert "A first try" == document.data["task_title"]
        assert [
            {
                "call_id": "tool-001",
                "tool_name": "Bash",
                "tool_category": "perception",
                "input": {"params": {"target": "git log", "details": "ten commits"}, "description": "look back"},
            },
            {
                "call_id": "tool-002",
                "tool_name": "Write",
                "tool_category": "action",
                "input": {"params": {"target": "a.md"}, "description": "write it down"},
            },
            {
                "call_id": "tool-003",
                "tool_name": "Bash",
                "tool_category": "action",
                "input": {"params": {"target": "make test"}},
            },
        ] == document.data["tool_calls"]
        assert [("explore", "tool-001", "tool-002"), ("verify", "tool-003", "tool-003")] == [
            (made["phase_type"], *made["tool_call_range"].values()) for made in document.data["phase_annotations"]
        ]
        assert not any("annotated_at" in made for made in document.data["phase_annotations"])
        assert [{"source": "Makefile"}] == document.data["phase_annotations"][1]["context_used"]
        assert data["phases"] == document.data["phases"]


class TestPhases:
    def test_are_read_as_annotations_over_their_calls(self) -> None:
        data = single() | {"phases": [phase("p-1", "tool-001", "tool-002"), phase("p-2")]}

        document = parse_session(data)

        used = [{"type": "file", "source": "a.py", "relevance": "high"}]
        assert "v2" == document.generation
        assert [annotation("p-1", "tool-001", "tool-002", decisions=[], context_used=used)] == document.data[
            "phase_annotations"
        ]

    def test_that_name_their_calls_in_any_order_are_annotated_from_the_first_to_the_last(self) -> None:
        data = single() | {"phases": [phase("p-1", "gone", "tool-002", "tool-001")]}

        (made,) = as_v3(data)["phase_annotations"]

        assert ["tool-001", "tool-002"] == list(made["tool_call_range"].values())

    def test_that_name_no_calls_are_told_by_the_calls_that_name_them(self) -> None:
        data = single() | {"phases": [phase("p-1"), phase("p-2")]}
        for made in data["tool_calls"]:
            made["phase_id"] = "p-2"

        (made,) = as_v3(data)["phase_annotations"]

        assert ("p-2", "tool-001", "tool-002") == (made["annotation_id"], *made["tool_call_range"].values())

    def test_are_told_of_by_the_end_of_the_session_or_their_own_or_nobody_knows_when(self) -> None:
        data = single() | {"phases": [phase("p-1", "tool-001")]}
        del data["completed_at"]

        assert "2026-03-04T10:01:00Z" == as_v3(data)["phase_annotations"][0]["annotated_at"]
        del data["phases"][0]["ended_at"]
        assert "annotated_at" not in as_v3(data)["phase_annotations"][0]


class TestAHalfOldDocument:
    def test_gets_an_annotation_for_each_phase_that_has_none_of_its_calls_annotated(self) -> None:
        known = annotation("mine", "tool-001", "tool-001", annotated_by="human")
        data = single() | {
            "phases": [phase("p-1", "tool-001"), phase("p-2", "tool-002")],
            "phase_annotations": [known],
        }

        document = parse_session(data)

        assert "v2" == document.generation
        assert known == document.data["phase_annotations"][0]
        assert ["mine", "p-2"] == [made["annotation_id"] for made in document.data["phase_annotations"]]

    @pytest.mark.parametrize(
        "where",
        [
            {"start_call_id": "tool-001", "end_call_id": "tool-002"},
            {"start": "tool-002", "end": "tool-001"},
            ["tool-001", "tool-002"],
        ],
    )
    def test_whose_phases_are_all_annotated_is_of_the_newest_generation(self, where: object) -> None:
        data = single() | {
            "phases": [phase("p-1", "tool-001"), phase("p-2", "tool-002")],
            "phase_annotations": [annotation("mine", "", "", tool_call_range=where)],
        }

        assert "v3" == generation_of(data)
        assert data is as_v3(data)

    def test_that_was_read_and_written_is_still_of_the_generation_that_knew_no_times(self) -> None:
        """So that what it never had is not missed from then on."""
        read = as_v3({"steps": [{"step_name": "debug_fix", "status": "success"}]})

        assert "v1" == generation_of(read)
        assert "v3" == generation_of(read | {"tool_calls": [*read["tool_calls"], single()["tool_calls"][0]]})

    def test_with_steps_and_calls_keeps_the_calls(self) -> None:
        data = single() | {"steps": [{"step_name": "debug_fix"}]}

        assert data is as_v3(data)
