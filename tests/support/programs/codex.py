"""Codex in the laboratory."""

from __future__ import annotations

import json
from typing import Any

from support.lab import Lab, Run
from support.programs.base import Program
from support.scripted_model import Call, Cue, Say
from support.wire import responses_items


def _ask(lab: Lab, text: str, session: str) -> Run:
    return lab.codex(*(("resume", session) if session else ()), text)


def _delegate(task: str) -> list[Cue]:
    return [[Say("I delegate."), Call("spawn_agent", {"message": task}, namespace="multi_agent_v1")], _wait_for_agent]


def _wait_for_agent(body: dict[str, Any]) -> list[Call]:
    """It chooses the agent's id; the call that waits has to name it."""
    outputs = [item["output"] for item in body["input"] if item["type"] == "function_call_output"]
    agent = json.loads(outputs[-1])["agent_id"]
    return [Call("wait_agent", {"targets": [agent], "timeout_ms": 60000}, namespace="multi_agent_v1")]


def _compact(lab: Lab, session: str) -> None:
    """It folds by itself when it is asked something and its window is full."""
    lab.model.input_tokens = 900_000
    lab.model.play([Say("That was a lot.")])
    _small_window(lab, session, "Make it long.")
    lab.model.input_tokens = 100
    lab.model.play([Say(PROGRAM.summary)], to="summary")
    lab.model.play([Say("Folded.")])
    _small_window(lab, session, "Fold it.")


def _small_window(lab: Lab, session: str, text: str) -> None:
    window = ("-c", "model_context_window=10000", "-c", "model_auto_compact_token_limit=9000")
    done = lab.codex(*window, "resume", session, text)
    assert done.code == 0, done.err


PROGRAM = Program(
    name="codex",
    home=lambda lab: lab.codex_home,
    set_up=lambda lab: None,  # `Lab` itself writes its settings with every new model
    ask=_ask,
    session=lambda lab, run: str(run.lines[0]["thread_id"]),
    items=responses_items,
    shell=lambda command: Call("exec_command", {"cmd": command}),
    picture=lambda path: Call("view_image", {"path": path}),
    delegate=_delegate,
    compact=_compact,
)
