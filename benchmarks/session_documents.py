"""Checking a large session document: many agents, links everywhere, against the bare JSON decoder.

The document is checked in a process of its own, so that its memory can be told.
"""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

CALLS = 50_000
WORKERS = 500
SECONDS = 2.0
MEMORY = 8
Json = dict[str, Any]

CHILD = """
import json, re, sys, time
from harken.formats.std.checking.rules import validate_bytes
def peak(): return 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
before = peak()
data = open(sys.argv[1], "rb").read()
start, worked = time.perf_counter(), time.process_time()
if sys.argv[2] == "check":
    checked = validate_bytes(data, sys.argv[1].rpartition("/")[2])
    told = sorted({finding.rule for finding in checked.findings})
else:
    json.loads(data)
    told = []
print(json.dumps([time.perf_counter() - start, time.process_time() - worked, peak() - before, told]))
"""


def time_at(second: float) -> str:
    start = datetime.datetime(2026, 3, 4, 10, tzinfo=datetime.UTC)
    return (start + datetime.timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%SZ")


def call(name: str, second: int, tool: str, category: str, params: Json, **more: Any) -> Json:
    return {
        "call_id": name,
        "tool_name": tool,
        "tool_category": category,
        "started_at": time_at(second),
        "ended_at": time_at(second + 1),
        "duration_ms": 1000,
        "input": {"params": params, "description": f"the work of {name}"},
        "output": {"status": "success", "result": {"display": f"what came of {name}, in a few words"}},
        **more,
    }


def document(calls: int = CALLS, workers: int = WORKERS) -> Json:
    """A valid document of that many calls: a lead that has every other agent do a task, one after another, and each
    of its own calls annotated."""
    from harken.formats.std.summary import computed_summary

    each = calls // workers - 1
    length = each + 2
    lead = {"agent_id": "lead", "agent_type": "architect"}
    agents = [{"agent_id": f"worker-{number}", "agent_type": "developer"} for number in range(workers)]
    made: Json = {
        "session_id": "2026-03-04-001-many-hands-multi",
        "task_title": "Many hands",
        "user_prompt": "Have all of it done.",
        "created_at": time_at(0),
        "completed_at": time_at(workers * length + 1),
        "status": "success",
        "agent": {"model_id": "claude-opus-4-5"},
        "collaboration": {
            "mode": "multi_agent",
            "pattern": "master_worker",
            "orchestrator": lead,
            "participants": agents,
        },
        "tool_calls": [],
        "phase_annotations": [],
        "sub_sessions": [],
        "messages": [],
    }
    for number, agent in enumerate(agents):
        add_work(made, lead, agent, number, number * length, each)
    return made | {"summary": computed_summary(made)}


def add_work(made: Json, lead: Json, agent: Json, number: int, start: int, calls: int) -> None:
    spawn, sub, task = f"spawn-{number}", f"sub-{number}", f"task-{number}"
    end = start + calls + 1
    files = [{"path": f"src/part_{number}.py", "lines_added": 3}]
    info = {"subagent_type": "developer", "sub_session_id": sub, "tool_uses": calls}
    spawning = call(spawn, start, "Task", "interaction", {"prompt": "do it"}, subagent_info=info)
    made["tool_calls"].append(spawning | {"ended_at": time_at(end), "duration_ms": (end - start) * 1000})
    made["phase_annotations"].append(
        {
            "annotation_id": f"phase-{number}",
            "phase_type": "execute",
            "tool_call_range": {"start_call_id": spawn, "end_call_id": spawn},
            "annotated_by": "agent",
            "annotated_at": time_at(end),
            "confidence": "high",
        }
    )
    edited = {"file_path": files[0]["path"], "old_string": "1", "new_string": "2"}
    made["sub_sessions"].append(
        {
            "sub_session_id": sub,
            "parent_session_id": made["session_id"],
            "agent": agent,
            "triggered_by_call_id": spawn,
            "task": {"task_id": task, "description": "one part of it", "priority": "medium"},
            "started_at": time_at(start),
            "completed_at": time_at(end),
            "status": "success",
            "tool_calls": [
                call(f"{sub}-{at}", start + at, "Edit", "action", edited) for at in range(calls)
            ],
            "output": {
                "task_id": task,
                "status": "completed",
                "changes": {"files_created": [], "files_modified": files, "files_deleted": []},
                "summary": "done",
            },
        }
    )  # fmt: skip
    for sender, hearer, kind, when, payload in (
        (lead, agent, "task_assignment", start, {"task": {"task_id": task, "description": "one part of it"}}),
        (agent, lead, "task_completion", end, {"task_id": task, "status": "completed"}),
    ):
        sequence = len(made["messages"]) + 1
        made["messages"].append(
            {
                "message_id": f"msg-{sequence}",
                "timestamp": time_at(when),
                "sequence_number": sequence,
                "from_agent": sender,
                "to_agent": hearer,
                "message_type": kind,
                "payload": payload,
                "correlation_id": task,
                **({"reply_to": f"msg-{sequence - 1}"} if kind == "task_completion" else {}),
            }
        )


def measured(path: Path, what: str) -> tuple[float, float, int, list[str]]:
    """Seconds, seconds of a processor, bytes of memory, and the rules that were broken."""
    done = subprocess.run([sys.executable, "-c", CHILD, str(path), what], capture_output=True, text=True, check=True)
    seconds, worked, memory, told = json.loads(done.stdout)
    return seconds, worked, memory, told


def main(out: Callable[[str], object]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "2026-03-04-001-many-hands-multi.json"
        # Without blanks: memory is told as a multiple of the file.
        path.write_text(json.dumps(document(), separators=(",", ":")))
        size = path.stat().st_size
        rounds = {what: [measured(path, what) for _ in range(3)] for what in ("decode", "check")}
    told = ", ".join(rounds["check"][0][3]) or "nothing"
    title = f"a session document of {CALLS:,} calls, {WORKERS} sub-sessions ({size / 1e6:.0f} MB)"
    out(f"| {title} | s (best and worst of 3) | CPU s | memory | limit |")
    out("|---|---|---|---|---|")
    for what, name, limit in (
        ("decode", "decode it with `json`", "–"),
        ("check", f"check it (found: {told})", f"{SECONDS:.0f} s, {MEMORY}×"),
    ):
        walls, works, memories, _ = zip(*rounds[what], strict=True)
        out(
            f"| {name} | {min(walls):.2f}, {max(walls):.2f} | {min(works):.2f} | {max(memories) / size:.1f}× the file |"
            f" {limit} |"
        )


if __name__ == "__main__":
    main(print)
