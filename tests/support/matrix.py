"""A conversation with a bit of everything, held by each real program and continued in every other.

Each program does what it can: thinking, calls side by side of which one fails, a picture that a tool shows, a
sub-agent, a compaction before all that. What it knew at the end is its own last request and the answer to it.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

from support.conversations import DOT, Held, heard, knew, prompt, session_of, shell
from support.harken_cli import harken
from support.lab import Lab
from support.programs import program
from support.scripted_model import Say, Think
from support.wire import Item

NEXT = "And now?"
SPOKEN = ("user", "assistant")


@dataclass(frozen=True)
class Crossing:
    """One program's conversation in another: what had to be there, what was, and what was told as lost."""

    source: str
    target: str
    tier: str
    losses: dict[str, int]
    expected: list[Item]
    sent: list[Item]

    @property
    def is_whole(self) -> bool:
        """Whether everything arrived, once and in order."""
        return self.expected == self.sent


def hold(lab: Lab, runtime: str) -> Held:
    """Have the program hold the conversation."""
    known = program(runtime)
    lab.model.play([Say("I am here.")])
    session = session_of(lab, runtime, prompt(lab, runtime, "Are you there?"))
    if known.compact is not None:
        known.compact(lab, session)
    calls = [shell(runtime, command) for command in ("sleep 0.3; echo one", "echo two", "echo three >&2; exit 3")]
    lab.model.play([Think("let me see"), Say("All at once."), *calls], [Say("Three results.")])
    prompt(lab, runtime, "Do it in parallel — très bien ☕!", session)
    if known.picture is not None:
        path = lab.work / "dot.png"
        path.write_bytes(base64.b64decode(DOT))
        lab.model.play([Say("Let me see it."), known.picture(str(path))], [Say("A dot.")])
        prompt(lab, runtime, "What is in the picture?", session)
    if known.delegate is not None:
        lab.model.play([Say("The report of SUB-ONE.")], to="SUB-ONE")
        lab.model.play(*known.delegate("SUB-ONE: look around"), [Say("It is done.")])
        prompt(lab, runtime, "Delegate it.", session)
    lab.model.play([Say("You are welcome.")])
    prompt(lab, runtime, "Thank you.", session)
    return Held(runtime, session, knew(lab, runtime, "You are welcome."))


def continue_in(lab: Lab, session: str, target: str) -> dict[str, Any]:
    """Have Harken write a session for a program, and run what has to run first; the answer is what `resume` said."""
    known = program(target)
    known.set_up(lab)
    home = known.home(lab)
    home.mkdir(parents=True, exist_ok=True)
    [written] = harken(lab, "resume", session, "--in", target, "--home", str(home), "--cwd", str(lab.work))
    for command in written["prepare"]:
        done = lab.run(*command, env=known.environment(lab))
        assert done.code == 0, done.err
    return written


def cross(lab: Lab, held: Held, target: str) -> Crossing:
    """Continue the conversation in a program, and look at what that sends."""
    written = continue_in(lab, held.session, target)
    lab.model.play([Say("Gladly.")])
    prompt(lab, target, NEXT, str(written["session"]))
    losses = {str(loss["what"]): int(loss["count"]) for loss in written["losses"]}
    sent = heard(lab, target)
    return Crossing(
        source=held.runtime,
        target=target,
        tier=str(written["tier"]),
        losses=losses,
        expected=plain([*expected(held, target, losses), Item("user", NEXT)]),
        sent=plain(sent),
    )


def expected(held: Held, target: str, losses: dict[str, int]) -> list[Item]:
    """What the target has to know: everything but what is told as lost, and never less than texts, calls, results."""
    if held.runtime == target:
        return held.knew
    no_pictures = any("picture" in what for what in losses)
    return [item for item in held.knew if item.kind != "thinking" and not (item.kind == "image" and no_pictures)]


def plain(items: list[Item]) -> list[Item]:
    """The same without what says nothing: texts of one speaker are one text, calls and results go by their number (a
    program may give them other ids), and results of calls made at once stand in the order of the calls."""
    numbers = {item.id: str(at) for at, item in enumerate(each for each in items if each.kind == "call")}
    found: list[Item] = []
    waiting: list[Item] = []
    for item in [*items, Item("end")]:
        if item.kind == "result":
            waiting.append(Item("result", item.text.strip(), numbers.get(item.id, "?")))
            continue
        if item.kind == "image" and waiting:
            waiting.append(Item("image", item.text))  # behind the result that it came with
            continue
        found += sorted(waiting, key=lambda one: int(one.id) if one.id.isdigit() else len(items)) if waiting else []
        waiting = []
        text = item.text.strip()
        if item.kind == "call":
            found.append(Item("call", item.text, numbers[item.id], item.input))
        elif item.kind in SPOKEN and found and found[-1].kind == item.kind:
            found[-1] = Item(item.kind, f"{found[-1].text}\n{text}")
        elif item.kind != "end":
            found.append(Item(item.kind, text))
    return found


def table(crossings: list[Crossing]) -> str:
    """What came of it, as Markdown."""
    rows = ["| from | to | tier | everything arrived | told as lost |", "|---|---|---|---|---|"]
    for one in crossings:
        lost = ", ".join(f"{what} ×{count}" for what, count in sorted(one.losses.items())) or "–"
        rows.append(f"| {one.source} | {one.target} | {one.tier} | {'yes' if one.is_whole else 'no'} | {lost} |")
    return "\n".join(rows)
