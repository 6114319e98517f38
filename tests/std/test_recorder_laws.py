"""Whatever a program tells a recorder, in whatever order: the document has no error, and the log gives it back."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harken.capture import MultiAgentRecorder
from harken.errors import BadRequest
from harken.formats.std.document import read
from harken.formats.std.models import MESSAGE_TYPES
from support.std_checks import errors_of

IDS = st.sampled_from(["tool-001", "tool-002", "sub-001", "sub-002", "msg-001", "task-001", "x\ud800", "", None])
AGENTS = st.sampled_from(["lead", "developer-01", ("new", "reviewer"), ("new", "tester"), "nobody", 7])
TIMES = st.sampled_from([None, None, None, "2026-03-04T10:00:05Z", "2030-01-01T00:00:00Z", "soon"])
OUTPUTS = st.sampled_from(
    [None, "done", {"summary": "s", "output_type": "generic"}, {"verdict": "approved"}, {"changes": {}}, [1]]
)
PAYLOADS = st.sampled_from(
    [None, "hello", {}, {"task": {"task_id": "task-001"}}, {"task_id": "task-001"}, {"review_id": "r", "task_id": "t"}]
)
STATUSES = st.sampled_from(["success", "failed", "done"])
ACTS = st.one_of(
    st.tuples(st.just("call"), st.fixed_dictionaries({"tool_name": IDS, "call_id": IDS, "ended_at": TIMES})),
    st.tuples(st.just("begin_call"), st.fixed_dictionaries({"tool_name": st.just("Task"), "sub": IDS, "call_id": IDS})),
    st.tuples(st.just("end_call"), st.fixed_dictionaries({"call_id": IDS, "error": IDS, "ended_at": TIMES})),
    st.tuples(
        st.just("start_sub"),
        st.fixed_dictionaries(
            {"agent": AGENTS, "description": IDS, "parent": IDS, "call_id": IDS, "task_id": IDS, "started_at": TIMES}
        ),
    ),
    st.tuples(st.just("sub_call"), st.fixed_dictionaries({"sub_session_id": IDS, "tool_name": st.just("Read")})),
    st.tuples(
        st.just("finish_sub"),
        st.fixed_dictionaries({"sub_session_id": IDS, "output": OUTPUTS, "status": STATUSES, "completed_at": TIMES}),
    ),
    st.tuples(
        st.just("message"),
        st.fixed_dictionaries(
            {
                "from_agent": AGENTS,
                "to_agent": AGENTS,
                "message_type": st.sampled_from(MESSAGE_TYPES),
                "payload": PAYLOADS,
                "reply_to": IDS,
                "sent_at": TIMES,
            }
        ),
    ),
)


@settings(max_examples=25)
@given(acts=st.lists(ACTS, max_size=25), end=st.sampled_from(["success", "failed", "in_progress"]))
def test_no_order_of_acts_makes_an_invalid_document(acts: list[tuple[str, dict[str, Any]]], end: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "2026-03-04-001-law-multi.json")
        about: Any = {"task_title": "Law", "user_prompt": "Try", "orchestrator": "lead", "clock": lambda: 10**15}
        recorder = MultiAgentRecorder(path, participants=["developer-01"], **about)
        recorder.start_sub("developer-01", "work")
        for name, arguments in acts:
            with suppress(BadRequest):
                getattr(recorder, name)(**arguments)
        try:
            recorder.close(end)
        except BadRequest:
            recorder.close("failed")
        written = path.read_bytes()

        assert [] == errors_of(read(written).data)
        assert read(written).data == MultiAgentRecorder.recover(path).data
        assert written == path.read_bytes()
