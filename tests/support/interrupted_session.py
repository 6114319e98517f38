"""Interrupts a session by a signal at 25 moments of its writing; prints what it believes and what its file says."""

import json
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from harken.errors import Poisoned
from harken.log import Session


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def strike(delay: float) -> None:
    timer = threading.Timer(delay, signal.pthread_kill, (threading.get_ident(), signal.SIGUSR1))
    timer.daemon = True
    timer.start()


def interrupted(path: Path, ack: Any, delay: float) -> dict[str, Any]:
    session = Session(path, ack=ack)
    try:
        strike(delay)
        while True:
            session.log_piece_of_text("a", "x", "m")
    except KeyboardInterrupt:
        pass
    poisoned = False
    try:
        session.log_piece_of_text("a", "more", "m")
    except Poisoned:
        poisoned = True
    session.close()
    there = Session.load(path, readonly=True)
    return {"poisoned": poisoned, "live": list(session.registry.messages), "there": list(there.registry.messages)}


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, interrupt)
    for at in range(25):
        print(json.dumps(interrupted(Path(sys.argv[1]) / str(at), sys.argv[2], 0.001 + at * 0.0001)))
