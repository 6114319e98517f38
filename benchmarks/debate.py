"""A debate of twenty agents and two thousand messages, each heard by all: holding it, playing it again, every view."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from harken.views import SessionViewer
from support.debate import Debater, hold, same_lines

SPEAKERS, SPOKEN = 20, 100
ROUNDS = 3
LIMIT = 1.0


def views(viewer: SessionViewer) -> dict:
    everybody = list(viewer.list_agents())
    first, last = everybody[:2]
    spoken = viewer.index.ids[-SPEAKERS]
    return {
        "list_agents": viewer.list_agents,
        "get_transcript": lambda: viewer.get_transcript(last),
        "extract_dialog, all agents": lambda: viewer.extract_dialog(everybody),
        "extract_agent_perspective, all agents": lambda: viewer.extract_agent_perspective(everybody),
        "build_causality_index": viewer.build_causality_index,
        "trace_message_flow": lambda: viewer.trace_message_flow(spoken),
        "trace_content_references": lambda: viewer.trace_content_references(spoken),
        "perspective, all agents": lambda: viewer.perspective(everybody),
        "interventions": viewer.interventions,
        "who_heard": lambda: viewer.who_heard(spoken),
        "knows, a message": lambda: viewer.knows(first, spoken),
        "knows, words that nobody said": lambda: viewer.knows(last, "no such words"),
        "said_vs_heard, all changes": viewer.said_vs_heard,
        "agent_tree": viewer.agent_tree,
        "timeline": viewer.timeline,
        "sequence": viewer.sequence,
        "flow": viewer.flow,
    }


def timed(function) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def main(out) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, again = Path(folder) / "debate.jsonl", Path(folder) / "again.jsonl"
        held = timed(lambda: hold(path, Debater(SPEAKERS, SPOKEN)))
        replayed = timed(lambda: hold(again, f"replay:{path}"))
        exact = same_lines(path) == same_lines(again)
        out(f"| a debate of {SPEAKERS} agents, {SPEAKERS * SPOKEN:,} messages | ms | limit |")
        out("|---|---|---|")
        out(f"| hold it | {held * 1e3:.0f} | – |")
        out(f"| play it again ({'the same' if exact else 'not the same'} log) | {replayed * 1e3:.0f} | – |")
        opened = min(timed(lambda: SessionViewer(path)) for _ in range(ROUNDS))
        out(f"| open: read the file and build the index, best of {ROUNDS} | {opened * 1e3:.0f} | {LIMIT * 1e3:.0f} |")
        for name, view in views(SessionViewer(path)).items():
            out(f"| {name} | {min(timed(view) for _ in range(ROUNDS)) * 1e3:.1f} | {LIMIT * 1e3:.0f} |")


if __name__ == "__main__":
    main(print)
