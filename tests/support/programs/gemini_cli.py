"""Gemini CLI in the laboratory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.lab import Lab, Run
from support.programs.base import Program
from support.scripted_model import Call, Cue, Say
from support.wire import Item, contents_items


def home(lab: Lab) -> Path:
    return lab.home / ".gemini"


def set_up(lab: Lab, *, clears_up: bool = False, **model: float) -> None:
    """Its settings. By itself it clears up at every start, and takes away sessions that went on in a later minute."""
    home(lab).mkdir(exist_ok=True)
    kept = {} if clears_up else {"sessionRetention": {"enabled": False}}
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}, "model": model, "general": kept}
    (home(lab) / "settings.json").write_text(json.dumps(settings))


def environment(lab: Lab) -> dict[str, str]:
    return {
        "GEMINI_API_KEY": "loopback",
        "GOOGLE_GEMINI_BASE_URL": f"http://127.0.0.1:{lab.port}",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }


def ask(lab: Lab, text: str, session: str = "") -> Run:
    words = ("--yolo", "-m", "gemini-2.5-flash", "--output-format", "stream-json")
    again = ("--resume", session) if session else ()
    return lab.run("gemini", "-p", text, *words, *again, env=environment(lab))


def sessions(lab: Lab) -> list[Path]:
    """The files of its sessions, oldest first."""
    found = home(lab).glob("tmp/*/chats/session-*.jsonl")
    return sorted(found, key=lambda path: path.stat().st_mtime_ns)


def items(body: dict[str, Any]) -> list[Item]:
    """A request without what the program's own resume sends a second time: results, and the pictures in them."""
    found: list[Item] = []
    seen: set[str] = set()
    repeated = False
    for item in contents_items(body):
        if item.kind == "image" and repeated:
            continue
        repeated = item.kind == "result" and item.id in seen
        if not repeated:
            found.append(item)
            seen.add(item.id if item.kind == "result" else "")
    return found


def _delegate(task: str) -> list[Cue]:
    """The sub-agent has to report by a call, so it answers from the main conversation's script, not from one that is
    found by its prompt."""
    ask = Call("invoke_agent", {"agent_name": "generalist", "prompt": task.replace("SUB-", "AGENT-")})
    report = Call("complete_task", {"result": {"response": "The report."}})
    return [[Say("I delegate."), ask], [Say("Looking."), report]]


def fold(lab: Lab, session: str, text: str = "Go on.", answer: str = "Gladly so.") -> None:
    """Have it fold the session before it hears the next prompt."""
    lab.model.play([Say(PROGRAM.summary)], [Say(PROGRAM.summary)], to="summary")
    lab.model.play([Say(answer)])
    set_up(lab, compressionThreshold=0.00001)
    done = ask(lab, text, session)
    assert done.code == 0, done.err
    assert items(lab.model.asked()[-1])[0].text == PROGRAM.summary
    set_up(lab)


def _compact(lab: Lab, session: str) -> None:
    """It folds nothing that the summary would make longer."""
    lab.model.play([Say(" ".join(f"Word {number}." for number in range(300)))])
    done = ask(lab, "Tell me more.", session)
    assert done.code == 0, done.err
    fold(lab, session)


PROGRAM = Program(
    name="gemini-cli",
    home=home,
    set_up=set_up,
    ask=ask,
    session=lambda lab, run: str(run.lines[0]["session_id"]),
    items=items,
    shell=lambda command: Call("run_shell_command", {"command": command}),
    picture=lambda path: Call("read_file", {"file_path": path}),
    delegate=_delegate,
    compact=_compact,
    environment=environment,
    summary="<state_snapshot>SUMMARY: they ran it.</state_snapshot>",
)
