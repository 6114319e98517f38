"""Writes a small session, tears the file, and goes on with it; says each id once it was acknowledged to it."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from harken.errors import Poisoned
from harken.log import Session


def say(*ids: str) -> None:
    os.write(1, "".join(f"{message_id}\n" for message_id in ids).encode())


def first(session: Session) -> None:
    root = session.allocate_agent_id()
    say(session.log_agent_created(root, role="root", language_model="example/model-1"))
    calls = [{"id": "c1", "type": "function", "function": {"name": "task", "arguments": '{"name": "Jack"}'}}]
    made = session.log_transcript_entry(root, {"role": "assistant", "tool_calls": calls})
    say(made)
    with session.batch():
        jack = session.allocate_agent_id()
        ids = [
            session.log_agent_created(jack, made, "Jack"),
            session.log_transcript_entry(jack, {"role": "system", "content": "You are Jack."}),
            session.log_transcript_entry(root, {"role": "tool", "tool_call_id": "c1", "content": "Jack is here"}),
        ]
    say(*ids)


def second(session: Session) -> None:
    say(session.log_transcript_entry("agent_002", {"role": "user", "content": "Hello"}))
    say(session.log_agent_terminated("agent_002", reason="done"))
    session.flush()
    say(session.log_transcript_entry("agent_001", {"role": "assistant", "content": "Good-bye"}))


def stubborn(session: Session) -> None:
    """Tries again after a failure, as nobody should."""
    say(session.log_piece_of_text("agent_001", "one", "msg_001"))
    failures = 0
    for _ in range(2):
        try:
            session.log_piece_of_text("agent_001", "two", "msg_001")
        except Poisoned:
            failures += 1
    if failures == 2:
        say("poisoned twice")


def tear(path: str) -> None:
    """Leave half a line, as a writer that died would; by `writev`, so that it is not mistaken for the session's own."""
    with suppress(OSError):
        fd = os.open(path, os.O_WRONLY | os.O_APPEND)
        os.writev(fd, [b'{"message_id":"msg_006","event_type":"transcr'])
        os.close(fd)


def main(path: str, ack: str) -> None:
    if ack == "disk-stubborn":
        with Session(path) as session:
            stubborn(session)
        return
    with Session(path, ack=ack) as session:  # type: ignore[arg-type]
        first(session)
    tear(path)
    with Session.load(path, ack=ack) as session:
        second(session)


main(*sys.argv[1:])
