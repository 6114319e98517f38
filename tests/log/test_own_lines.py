"""#11: the lines of one agent, read alone, are its lines among all, whatever the file holds and whoever writes it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harken.formats.session_log import as_id, may_be_log
from harken.log import Session, transcripts
from views.test_laws import dirty_logs


def hold(session: Session) -> None:
    everything = list(session.records())
    names = {as_id(data.get("agent_id")) or "" for data in everything} | {"nobody"}
    for name in names:
        own = [data for data in everything if (as_id(data.get("agent_id")) or "") == name]
        assert own == list(session.records_of([name]))
        assert transcripts.entries(everything, name) == session.entries(name)
    assert everything == list(session.records_of(names))


@given(dirty_logs())
@settings(max_examples=150, deadline=None)
def test_of_any_file(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "session.jsonl"
        path.write_bytes(data)
        with Session(path, readonly=True) as session:
            hold(session)
        if may_be_log([data]):
            with Session(path, ack="os") as session:
                session.log_piece_of_text("a", "x", None)
                hold(session)


NAMES = st.sampled_from(["agent_001", "agent_01", "ä", 'a "b"', "back\\slash", "a/b", "7", "\u2028"])
WRITES = st.lists(st.tuples(NAMES, st.text(max_size=5), st.booleans()), max_size=12)


@given(WRITES, WRITES)
@settings(max_examples=60, deadline=None)
def test_of_what_is_written_and_loaded_and_written_on(first: list[Any], second: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "session.jsonl"
        for writes in (first, second):
            with Session(path, ack="os") as session:
                for name, text, together in writes:
                    if together:
                        with session.batch():
                            session.log_transcript_entry(name, {"role": "user", "content": text})
                            session.log_transcript_entry("other", {"role": "user", "content": text})
                            hold(session)
                    else:
                        session.log_transcript_entry(name, {"role": "user", "content": text})
                hold(session)
