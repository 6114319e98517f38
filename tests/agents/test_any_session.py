"""Any session of `task` and `discuss`, cut anywhere, is resumed to the end it would have had."""

from __future__ import annotations

import asyncio
import re
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harken import SessionViewer
from harken.agents import Approve, Deny, Hook, HookAgent, Rewrite
from support.stage import open_stage

NAMES = st.sampled_from(["A", "B", "C"])
TEXTS = st.sampled_from(["red", "green", "blue", "a long walk"])


def call(tool: str) -> Any:
    return lambda arguments: {"tool": tool, "arguments": {k: v for k, v in arguments.items() if v is not None}}


TASKS = st.fixed_dictionaries({"name": NAMES, "prompt": st.none() | TEXTS, "system_prompt": st.none() | TEXTS}).map(
    call("task")
)
DISCUSSIONS = st.fixed_dictionaries(
    {
        "prompt": st.none() | TEXTS,
        "speakers": st.none() | st.lists(NAMES, min_size=1, max_size=3),
        "listeners": st.none() | st.lists(NAMES, max_size=2),
    }
).map(call("discuss"))
LINES = st.one_of(
    TEXTS,
    st.fixed_dictionaries({"call": st.lists(st.one_of(TASKS, DISCUSSIONS), min_size=1, max_size=3)}),
    st.fixed_dictionaries({"say": TEXTS, "think": TEXTS}),
)
PARTS = st.fixed_dictionaries(
    {
        "root": st.fixed_dictionaries({"lines": st.lists(LINES, max_size=4), "otherwise": st.just("The end.")}),
        "root/A": st.fixed_dictionaries({"lines": st.lists(LINES, max_size=3), "otherwise": TEXTS}),
        "B": st.fixed_dictionaries({"lines": st.lists(LINES, max_size=2), "otherwise": TEXTS}),
        "Guard": st.just({"rules": [{"when": "'C'", "say": "DENY. Not C."}], "otherwise": "APPROVE"}),
        "*": st.fixed_dictionaries({"otherwise": TEXTS}),
    }
)
HOOKS = {
    "guard": HookAgent(name="Guard", points=("tool",), instructions="No C."),
    "paint": Hook(name="Paint", points=("delivery",), function=lambda m: Rewrite("[RED]") if m.text == "red" else None),
    "hush": Hook(name="Hush", points=("delivery",), function=lambda m: Deny("no") if m.text == "blue" else None),
    "strict": Hook(
        name="Strict", points=("finished",), function=lambda m: Deny("again") if m.text == "green" else None
    ),
    "kind": Hook(name="Kind", points=("prompt", "finished"), function=lambda m: Approve(say=f"Kind of {m.text}.")),
}


def play(path: Path, parts: dict[str, Any], hooks: list[str]) -> None:
    root, session = open_stage(path, parts, hooks=[HOOKS[name] for name in hooks], name="root")
    with session:
        if not any(entry["role"] == "user" for entry in root.transcript):
            root.harken("Begin.")
        asyncio.run(root.resume())


def everybody(path: Path) -> list[tuple[str, list[tuple[str, str]]]]:
    """All transcripts; ids are left out, since one that was torn with its line is not given again."""
    viewer = SessionViewer(path)
    return [
        (
            viewer.name(agent_id) or "root",
            [
                (entry["role"], re.sub(r"agent_\d+", "agent", entry.get("content", "")))
                for entry in viewer.get_transcript(agent_id)
            ],
        )
        for agent_id in viewer.list_agents()
    ]


@settings(max_examples=60, deadline=None)
@given(parts=PARTS, hooks=st.lists(st.sampled_from(sorted(HOOKS)), unique=True), data=st.data())
def test_a_session_cut_anywhere_comes_to_the_same_end(parts: dict[str, Any], hooks: list[str], data: Any) -> None:
    """At the end of a line, in the middle of one, or between a line and its newline."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log")
        play(path, parts, hooks)
        whole, expected = path.read_bytes(), everybody(path)
        ends = [place for place, byte in enumerate(whole) if byte == 0x0A]
        cut = data.draw(st.one_of(st.sampled_from(ends), st.integers(0, len(whole)))) + data.draw(st.integers(0, 1))
        path.write_bytes(whole[:cut])

        play(path, parts, hooks)

        assert expected == everybody(path)
