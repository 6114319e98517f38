"""What is played to the real programs to record their sessions: one function for each scenario.

`scripts/record` plays them; a scenario says what the model answers, and what a person says meanwhile.
"""

from __future__ import annotations

import base64
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from support.conversations import DOT
from support.lab import Lab, Run
from support.scripted_model import Call, Refuse, Say, Think, Turn

INSTRUCTIONS = "Be brief."
PROBE = "What were we doing?"
PROBE_MODEL = "claude-sonnet-4-5-20250929"
OWN_AGENTS = {
    "looker": {"description": "Looks around", "prompt": "Look around.", "tools": ["Read"]},
    "late": {"description": "Is late", "prompt": "Be late.", "tools": ["Bash"]},
}
AGENTS = ("--agents", json.dumps(OWN_AGENTS), "--tools")
"""Sub-agents of our own, with one tool each: their files hold less that is not ours."""
BARE = ("--bare", "--tools", "Bash,Read")
"""Claude Code without its notices, for scenarios that are not about those."""
NARROW = ("-c", "model_context_window=10000", "-c", "model_auto_compact_token_limit=9000")


class Recorder:
    """One recording: a laboratory, a program at some version, and what was said to it."""

    def __init__(self, runtime: str, version: str, lab: Lab) -> None:
        self.runtime, self.lab = runtime, lab
        self.version = tuple(int(part) for part in version.split("."))
        self.session = ""
        self.ours = [INSTRUCTIONS, PROBE, *leaves(OWN_AGENTS)]
        self.steps: dict[Path, list[int]] = {}
        self.printed: list[str] = []
        self.model = lab.model
        self.options = ("--tools", "Bash")

    @property
    def claude(self) -> bool:
        return self.runtime == "claude-code"

    def say(self, text: str, *options: str, session: str | None = None, env: dict[str, str] | None = None) -> Run:
        """Say something, in the session of this recording unless another is named; note how long the file is then."""
        self.ours.append(text)
        name = self.session if session is None else session
        if self.claude:
            going_on = ("--resume", name) if name else ()
            own = ("--system-prompt", INSTRUCTIONS, *self.options, *options)
            done = self.lab.claude(text, *own, *going_on, env=env)
        else:
            own = ("-c", f'instructions="{INSTRUCTIONS}"', *options)
            done = self.lab.codex(*own, *(("resume", name) if name else ()), text, env=env)
        self.note(done)
        return done

    def note(self, done: Run) -> None:
        """Take the session's name from the first run, and from every one its length and what was printed."""
        self.printed += [line for line in done.out.splitlines() if line.startswith("{")]
        if not self.session:
            first = next(line for line in done.lines if "session_id" in line or "thread_id" in line)
            self.session = first.get("session_id") or first["thread_id"]
        for path in self.main_files():
            count = path.read_bytes().count(b"\n")
            if count not in (steps := self.steps.setdefault(path, [])):
                steps.append(count)

    def main_files(self) -> list[Path]:
        return self.lab.claude_sessions() if self.claude else self.lab.codex_sessions()

    def shell(self, command: str) -> Call:
        """A call of the program's own shell; what it prints is ours, too."""
        self.ours += [command, *re.findall(r"echo '?([^;>'&]+)", command)]
        if self.claude:
            return Call("Bash", {"command": command, "description": "run"})
        if self.version < (0, 100):
            return Call("shell", {"command": ["bash", "-lc", command]})
        return Call("exec_command", {"cmd": command})

    def look(self, words: str) -> Call:
        """A call that reads a note."""
        if not self.claude:
            return self.shell(f"echo {words}")
        note = self.lab.work / f"{words.replace(' ', '-')}.txt"
        note.write_text(f"{words}\n")
        self.ours.append(words)
        return Call("Read", {"file_path": str(note)})

    def play(self, *turns: Any, to: str = "main") -> None:
        self.model.play(*turns, to=to)

    def agent(self, prompt: str, *, background: bool = False) -> Call:
        """A call that starts a sub-agent."""
        if not self.claude:
            space = "multi_agent_v1" if self.version >= (0, 140) else ""
            return Call("spawn_agent", {"message": prompt}, namespace=space)
        ask = {"description": "look", "subagent_type": "late" if background else "looker", "prompt": prompt}
        return Call("Task" if self.version < (2, 1, 60) else "Agent", ask | {"run_in_background": background})


def leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from leaves(inner)


def plain(on: Recorder) -> None:
    """Three prompts; thinking, a tool, three calls at once of which one fails, a question that is resumed."""
    on.play([Think("Let me see."), Say("I will look."), on.shell("echo the first result")], [Say("It worked.")])
    on.say("Please run it.")
    calls = [on.shell("sleep 0.3; echo one"), on.shell("echo two"), on.shell("echo three >&2; exit 3")]
    on.play([Say("All at once."), *calls], [on.shell("echo four")], [Say("Four results.")])
    on.say("Now in parallel.")
    on.play([Say("You are welcome.")])
    on.say("Thank you — très bien ☕!")


def agents(on: Recorder) -> None:
    """A sub-agent, and the parent that waits for it."""
    on.options = (*AGENTS, "Agent,Task,Read", "--model", PROBE_MODEL)
    on.play([Say("Looking."), on.look("inside one")], [Say("The report of SUB-ONE.")], to="SUB-ONE")
    rest = [[Say("All are back.")]] if on.claude else [waiting] * 2
    on.play([Say("I delegate."), on.agent("SUB-ONE: look around")], *rest)
    on.say("Delegate it.")


def parallel_agents(on: Recorder) -> None:
    """Two sub-agents at once; with Claude Code a third one in the background, whose report comes later."""
    on.options = (*AGENTS, "Agent,Task,Read,Bash")
    for name in ("SUB-ONE", "SUB-TWO"):
        on.play([Say("Looking."), on.look(f"inside {name}")], [Say(f"The report of {name}.")], to=name)
    both = [on.agent("SUB-ONE: look around"), on.agent("SUB-TWO: look around")]
    if not on.claude:
        on.play([Say("I delegate."), *both], *[waiting] * 4)
        on.say("Delegate it twice.")
        return
    on.play([on.shell("sleep 1; echo late")], [Say("The report of SUB-LATE.")], to="SUB-LATE")
    late = on.agent("SUB-LATE: look around", background=True)
    on.play([Say("I delegate."), *both], [late], [Say("Two are back.")], [Say("All are back.")])
    on.say("Delegate it three times.")


def waiting(body: dict[str, Any]) -> Turn:
    """Codex chooses the agents' ids; the call that waits has to name those that are not back yet."""
    outputs = [_object(item["output"]) for item in body["input"] if item["type"] == "function_call_output"]
    names = [told["agent_id"] for told in outputs if told.get("agent_id")]
    back = {name for told in outputs for name in _object(told.get("status"))}
    space = next((item.get("namespace", "") for item in body["input"] if item.get("name") == "spawn_agent"), "")
    if not (missing := [name for name in names if name not in back]):
        return [Say("All are back.")]
    return [Call("wait_agent", {"targets": missing, "timeout_ms": 20000}, namespace=space)]


def _object(text: Any) -> dict[str, Any]:
    try:
        value = json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def compacted(on: Recorder) -> None:
    """Folded into a summary when it grew too long, and went on: Claude Code within a turn, Codex before the next."""
    how: dict[str, Any] = {"env": {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "100000"}} if on.claude else {}
    window = () if on.claude else NARROW
    on.play([Say("I will look."), on.shell("echo the first result")], [Say("It worked.")])
    on.say("Please run it.")
    on.play([Say("<summary>SUMMARY: they ran it.</summary>" if on.claude else "SUMMARY: they ran it.")], to="summary")
    on.ours.append("SUMMARY: they ran it.")
    last = [Say("That was a lot.")]
    on.play(
        costing(on, 990_000 if on.version >= (2, 1, 150) else 190_000, [on.shell("echo long")]),
        costing(on, 100 if on.claude else 900_000, last),
    )
    on.say("Make it long.", *window, **how)
    on.play(costing(on, 100, [on.shell("echo after the fold")]), [Say("Still here.")])
    on.say("Are you there?", *window, **how)
    on.play([Say("Good bye.")])
    on.say("Good bye.", *window, **how)


def costing(on: Recorder, tokens: int, turn: Turn) -> Callable[[dict[str, Any]], Turn]:
    """A turn for which the model says that the conversation has become this long."""

    def answer(_: dict[str, Any]) -> Turn:
        on.model.input_tokens = tokens
        return turn

    return answer


def asked_to_compact(on: Recorder) -> None:
    """Folded twice by the command /compact, which keeps the last answer beside the summary."""
    on.options = BARE
    on.play([Say("I will look."), on.shell("echo the first result")], [Say("It worked.")])
    on.say("Please run it.")
    for round in ("FIRST", "SECOND"):
        on.play([Say(f"<summary>{round} SUMMARY: they ran it.</summary>")], to="summary")
        on.ours.append(f"{round} SUMMARY: they ran it.")
        on.say("/compact")
        on.play([on.shell(f"echo after the fold {round}")], [Say("Still here.")])
        on.say("Are you there?")


def pictures(on: Recorder) -> None:
    """A picture in the prompt, and a tool that answers with one."""
    on.options = BARE
    path = on.lab.work / "dot.png"
    path.write_bytes(base64.b64decode(DOT))
    look = Call("Read", {"file_path": str(path)}) if on.claude else Call("view_image", {"path": str(path)})
    on.play([Say("Let me see it."), look], [Say("A dot.")])
    on.say("What is in the picture?")
    on.play([Say("The same dot.")])
    if on.claude:
        source = {"type": "base64", "media_type": "image/png", "data": DOT}
        talk(on, [{"type": "text", "text": "And in this one?"}, {"type": "image", "source": source}])
    else:
        image = ("-i", str(path), "--")
        on.ours.append("And in this one?")
        on.note(on.lab.codex("-c", f'instructions="{INSTRUCTIONS}"', "resume", on.session, *image, "And in this one?"))


def long_results(on: Recorder) -> None:
    """Results so long that they lie in files of their own, or are cut."""
    on.options = BARE
    on.play([on.shell("seq 1 6400")], [Say("Counted.")])
    on.say("Count.")
    on.play([Say("All of them.")])
    on.say("How far?")


def interrupted(on: Recorder) -> None:
    """Stopped by a person while a tool ran; then it went on."""
    on.options = BARE
    if on.claude:
        on.play([Say("It takes a while."), on.shell("sleep 20; echo late")])
        talk(on, [{"type": "text", "text": "Take your time."}], interrupt=True)
    else:
        on.play([Say("It takes a while."), on.shell("sleep 1; kill -INT $PPID; sleep 20")])
        on.say("Take your time.")
    on.play([Say("Where was I?")])
    on.say("Go on.")


def cut_off(on: Recorder) -> None:
    """Killed while a tool ran: a call that nobody answered ends the session."""
    on.options = BARE
    on.play([Say("I will end it."), on.shell("sleep 1; kill -9 $PPID")])
    on.say("End it.")


def refused(on: Recorder) -> None:
    """The provider refused a request; the prompt after it went through."""
    on.options = BARE
    on.play([Say("Hello.")])
    on.say("Hi.")
    on.play(*[[Refuse(400)]] * 9)
    on.say("Say something refused.")
    on.model._turns["main"].clear()
    on.play([Say("Better.")])
    on.say("And now?")


def forked(on: Recorder) -> None:
    """Forked by the program itself: the same beginning, two ends."""
    on.options = BARE
    on.play([Say("I will look."), on.shell("echo the first result")], [Say("It worked.")])
    on.say("Please run it.")
    on.play([Say("This way.")])
    on.say("One way.")
    on.play([Say("That way.")])
    if on.claude:
        on.say("Another way.", "--fork-session")
    else:
        on.ours.append("Another way.")
        on.note(on.lab.codex("-c", f'instructions="{INSTRUCTIONS}"', "fork", on.session, "Another way."))


def own_instructions(on: Recorder) -> None:
    """With the program's own instructions, which are filler here, and a file of ours that it reads by itself."""
    (on.lab.work / ("CLAUDE.md" if on.claude else "AGENTS.md")).write_text("Prefer short words.\n")
    on.ours += ["Prefer short words.", "Who are you?"]
    on.options = ("--tools", "Read", "--model", PROBE_MODEL)
    on.play([Think("Let me see."), Say("A program.")])
    on.note(on.lab.claude("Who are you?", *on.options) if on.claude else on.lab.codex("Who are you?"))


LEAP = "def days(year):\n    return 365\n"


def everyday(on: Recorder) -> None:
    """A small piece of work, as in the picture of the README."""
    on.options = BARE
    path = on.lab.work / "dates.py"
    path.write_text(LEAP)
    on.ours += [LEAP, "def days(year):", "return 365"]
    look = on.shell("cat dates.py")
    change = on.shell("sed -i 's/365/365 + leap(year)/' dates.py")
    on.play([Say("Let me look at it."), look], [Say("It takes every year for 365 days long; leap years are missing.")])
    on.say("Why does the test for 29 February fail?")
    on.play([change], [Say("Fixed: leap years have 366 days now, and the test passes.")])
    on.say("Please fix it.")


def talk(on: Recorder, content: list[dict[str, Any]], *, interrupt: bool = False) -> None:
    """Claude Code fed with JSON lines: the only way to show it a picture, or to stop it, without a screen."""
    on.ours += [block["text"] for block in content if block["type"] == "text"]
    shape = ("--input-format", "stream-json", "--output-format", "stream-json", "--verbose")
    going_on = ("--resume", on.session) if on.session else ()
    own = ("--system-prompt", INSTRUCTIONS, *on.options, "--dangerously-skip-permissions", *going_on)
    process = subprocess.Popen(
        on.lab.namespace.command(["claude", "-p", *shape, *own]),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=on.lab.work, env=on.lab.environment,
    )  # fmt: skip
    said: list[str] = []

    def send(value: dict[str, Any]) -> None:
        process.stdin.write(json.dumps(value) + "\n")
        process.stdin.flush()

    send({"type": "user", "message": {"role": "user", "content": content}})
    for line in process.stdout:
        said.append(line)
        if interrupt and '"tool_use"' in line and '"assistant"' in line:
            send({"type": "control_request", "request_id": "stop", "request": {"subtype": "interrupt"}})
            interrupt = False
        if json.loads(line).get("type") == "result":
            break
    process.stdin.close()
    said += process.stdout
    on.note(Run(process.wait(60), "".join(said), ""))


Scenario = Callable[[Recorder], None]
EVERYWHERE: tuple[Scenario, ...] = (plain, agents, compacted)
HERE: tuple[Scenario, ...] = (
    *EVERYWHERE, parallel_agents, asked_to_compact, pictures, long_results, interrupted, cut_off, refused, forked,
    own_instructions, everyday,
)  # fmt: skip


def possible(runtime: str, version: str, scenario: Scenario) -> bool:
    """Whether the program can do this without a screen."""
    number = tuple(int(part) for part in version.split("."))
    if runtime == "codex":
        return scenario is not asked_to_compact and (scenario is not agents or number >= (0, 150))
    return True
