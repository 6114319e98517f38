"""Every view of a long session log: how long it takes to open it, and then each view, against a limit of a second."""

from __future__ import annotations

import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

import orjson

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from harken.views import SessionViewer
from support.viewed import long_session, write_log

EVENTS = 100_000
ROUNDS = 3
LIMIT = 1.0


def views(viewer: SessionViewer) -> dict:
    everybody = list(viewer.list_agents())
    last = viewer.index.ids[-1]
    spoken = viewer.index.ids[-5]
    return {
        "list_agents": viewer.list_agents,
        "get_transcript": lambda: viewer.get_transcript("agent_root"),
        "extract_dialog, all agents": lambda: viewer.extract_dialog(everybody),
        "extract_agent_perspective, all agents": lambda: viewer.extract_agent_perspective(everybody),
        "build_causality_index": viewer.build_causality_index,
        "trace_message_flow": lambda: viewer.trace_message_flow(last),
        "trace_content_references": lambda: viewer.trace_content_references(spoken),
        "perspective, all agents": lambda: viewer.perspective(everybody),
        "interventions": viewer.interventions,
        "who_heard": lambda: viewer.who_heard(spoken),
        "knows, a message": lambda: viewer.knows("agent_001", last, at="2027-01-01T00:00:00Z"),
        "knows, words that nobody said": lambda: viewer.knows("agent_001", "no such words"),
        "said_vs_heard, all changes": viewer.said_vs_heard,
        "agent_tree": viewer.agent_tree,
        "timeline": viewer.timeline,
        "sequence": viewer.sequence,
        "flow": viewer.flow,
    }


def best(function) -> float:
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def main(out) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write_log(Path(folder) / "long.jsonl", long_session(EVENTS))
        size = path.stat().st_size
        decode = best(lambda: [orjson.loads(line) for line in path.read_bytes().splitlines()])
        opened = best(lambda: SessionViewer(path))
        tracemalloc.start()
        viewer = SessionViewer(path)
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        out(f"| views of {EVENTS:,} events ({size / 1e6:.0f} MB) | ms (best of {ROUNDS}) | limit |")
        out("|---|---|---|")
        out(f"| decode the lines with orjson | {decode * 1e3:.0f} | – |")
        out(f"| open: read the file and build the index | {opened * 1e3:.0f} | {LIMIT * 1e3:.0f} |")
        for name, view in views(viewer).items():
            out(f"| {name} | {best(view) * 1e3:.1f} | {LIMIT * 1e3:.0f} |")
        out(f"| memory held, as a multiple of the file | {held / size:.1f}× | 4× |")


if __name__ == "__main__":
    main(print)
