"""#1: a file that is not a session log is never appended to; what a crash leaves of one is."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken import load_session
from harken.errors import BadRequest
from harken.formats.session_log import may_be_log
from harken.log import Session
from support.claude_lines import user

FIRST = b'{"message_id":"msg_001","event_type":"agent_created","agent_id":"agent_001","role":"root"}\n'
FOREIGN = {
    "a README": b"# Harken\n\nKeeps what agents did.\n",
    "JSON of something else": b'{"name": "harken", "version": 1}\n',
    "a message without an event": b'{"message_id": 7}\n',
    "a list": b"[1, 2]\n",
    "random bytes": random.Random(1).randbytes(500),
    "one word": b"x",
    "one space": b" ",
    "blank lines": b"\n \n\t\n",
    "a transcript of Claude Code": json.dumps(user("u1", None, "Hello")).encode() + b"\n",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


class TestAFileOfSomethingElse:
    @pytest.mark.parametrize("data", FOREIGN.values(), ids=FOREIGN)
    def test_is_refused_and_left_as_it_is(self, path: Path, data: bytes) -> None:
        path.write_bytes(data)

        for open_it in (Session, Session.load, load_session):
            with pytest.raises(BadRequest, match="is not a session log"):
                open_it(path)

        assert data == path.read_bytes()
        assert [path.name] == os.listdir(path.parent)


class TestWhatALogMayLookLike:
    @pytest.mark.parametrize(
        "data", [b"", b"\n", FIRST, b"\n \n" + FIRST, b"what a mess\n" + FIRST, b"\xff\xfe\n" + FIRST]
    )
    def test_new_and_soiled_ones_are_gone_on_with(self, path: Path, data: bytes) -> None:
        path.write_bytes(data)

        with Session(path) as session:
            session.log_piece_of_text("agent_001", "Hello", None)

        assert path.read_bytes().startswith(data)

    @given(cut=st.integers(0, len(FIRST)), again=st.integers(0, len(FIRST)), zeros=st.integers(0, 3))
    def test_a_first_line_torn_anywhere_is_healed(self, cut: int, again: int, zeros: int) -> None:
        assert may_be_log([FIRST[:cut] + b"\0" * zeros])
        assert may_be_log([FIRST[:cut] + b"\n" + FIRST[:again]])  # and the healing was torn as well

    def test_dialects_that_are_read_are_written_to(self, path: Path) -> None:
        path.write_text(
            '{"message_id":"0","event_type":"agent_created","agent":"main","role":"primary","parent":"user"}\n'
        )

        with Session(path) as session:
            assert "main" == session.root
