"""A session in which a tool, a hook and an agent ask a person; played to its end, or until it kills itself.

`python waiting.py FOLDER N` plays on from whatever FOLDER has, and is gone (SIGKILL) at the Nth point where something
was written; 0: never. Whoever answers opens the session on their own and knows nothing of its agents.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harken import Session, load_session
from harken.agents import Ask, Call, Hook, Moment, ScriptedModel, ask_person
from harken.errors import Waiting

SAID = "Everything is decided."
ANSWERS = {"Book tea?": "yes", "Book cake?": "no", "Pay 3?": "yes", "Pay 4?": "no", "Which one?": "The red one."}
SCRIPT: dict[str, Any] = {
    "agents": {
        "root": [
            {"call": [*({"tool": "book", "arguments": {"what": what}} for what in ("tea", "cake")),
                      *({"tool": "pay", "arguments": {"amount": amount}} for amount in (3, 4))]},
            {"call": {"tool": "task", "arguments": {"name": "Ann", "prompt": "Choose."}}},
            SAID,
        ],
        "Ann": [{"call": {"tool": "ask_person", "arguments": {"question": "Which one?"}}}, "It is red."],
    }
}  # fmt: skip


class Play:
    """One process of it."""

    def __init__(self, folder: Path, die_at: int) -> None:
        self.folder = folder
        self.log = folder / "log.jsonl"
        self.left = die_at
        self.points = 0

    def point(self, _: Sequence[Any] = ()) -> None:
        """Something was written: here it may end."""
        self.points += 1
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def effect(self, what: str) -> None:
        """Something that may not be done twice."""
        self.point()
        with (self.folder / "effects").open("a") as file:
            file.write(what + "\n")
        self.point()

    async def book(self, call: Call, what: str) -> str:
        """Book something."""
        answer = await call.ask(f"Book {what}?", ["yes", "no"])
        if answer == "yes":
            self.effect(f"book {what}")
        return f"{what}: {answer}"

    async def pay(self, amount: int) -> str:
        """Pay."""
        self.effect(f"pay {amount}")
        return f"Paid {amount}."

    def guard(self, moment: Moment) -> Ask | None:
        """Ask about money."""
        return Ask(f"Pay {moment.arguments['amount']}?") if moment.tool == "pay" else None

    def answer(self) -> bool:
        """Answer what is open; whether anything was."""
        if not self.log.exists():
            return False
        with Session(self.log, ack="os") as session:
            session.line_observers.append(self.point)
            questions = session.open_questions()
            for question in questions:
                session.answer(question.message_id, ANSWERS[question.text], by="Eve")
        return bool(questions)

    def go_on(self) -> bool:
        """Take the turn, or resume it; whether it came to its end."""
        root, session = load_session(
            self.log,
            language_model=ScriptedModel(SCRIPT, name="scripted:waiting"),
            tools=[self.book, self.pay, ask_person],
            hooks=[Hook(name="Guard", points=("tool",), function=self.guard)],
            ack="os",
        )
        with session:
            session.line_observers.append(self.point)
            if not root.transcript:
                root.harken("Go.")
            try:
                return root.is_pending is False or str(asyncio.run(root.resume())) == SAID
            except Waiting:
                return False

    def run(self) -> None:
        """Until it is over."""
        for _ in range(50):
            self.answer()
            if self.go_on():
                return
        raise AssertionError("it does not come to an end")


if __name__ == "__main__":
    play = Play(Path(sys.argv[1]), int(sys.argv[2]))
    play.run()
    print(play.points)
