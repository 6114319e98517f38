"""An agent that is sent back to work, and one that reviews twice, from the files that a runtime writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import harken
from harken.formats.std.checking.rules import validate
from support.rollouts import Rollout
from support.sessions import ClaudeSession

SESSION = "11111111-1111-4111-8111-111111111111"


class Files:
    """A session and its agents, on one clock."""

    def __init__(self) -> None:
        self.main = ClaudeSession(SESSION)
        self.agents: dict[str, ClaudeSession] = {}
        self.clock = 0

    def of(self, name: str) -> ClaudeSession:
        self.clock += 1
        found = self.main if not name else self.agents.setdefault(name, ClaudeSession(SESSION, agent=name, salt=name))
        found.count = self.clock
        return found

    def call(self, name: str, call_id: str, tool: str, **params: Any) -> None:
        block = {"type": "tool_use", "id": call_id, "name": tool, "input": params}
        message = {"id": f"msg_{self.clock}", "role": "assistant", "model": "scripted", "content": [block]}
        self.of(name).add("assistant", message=message)

    def result(self, name: str, call_id: str, text: str, *, failed: bool = False, agent: str = "") -> None:
        block = {"type": "tool_result", "tool_use_id": call_id, "content": text, "is_error": failed}
        told = {"toolUseResult": {"agentId": agent, "status": "completed"}} if agent else {}
        self.of(name).add("user", message={"role": "user", "content": [block]}, **told)

    def work(self, name: str, call_id: str, tool: str, text: str, **params: Any) -> None:
        self.call(name, call_id, tool, **params)
        self.result(name, call_id, text)

    def write(self, folder: Path) -> None:
        below = folder / SESSION / "subagents"
        below.mkdir(parents=True)
        (folder / f"{SESSION}.jsonl").write_bytes(self.main.data)
        for name, agent in self.agents.items():
            (below / f"agent-{name}.jsonl").write_bytes(agent.data)


def told() -> Files:
    """A developer writes, a reviewer wants a change, the developer makes it, the reviewer approves."""
    files = Files()
    files.of("").prompt("Have it written.")
    files.call("", "t1", "Agent", subagent_type="developer", prompt="Write a.py")
    files.of("aaa111").prompt("Write a.py")
    files.of("aaa111").answer("Understood.")
    files.work("aaa111", "w1", "Write", "File created successfully", file_path="a.py", content="x\ny\n")
    files.of("aaa111").answer("Wrote two lines.")
    files.result("", "t1", "Wrote two lines.\nagentId: aaa111", agent="aaa111")
    files.call("", "t2", "Agent", subagent_type="code-reviewer", prompt="Review the work of aaa111.")
    files.of("bbb222").prompt("Review the work of aaa111.")
    files.work("bbb222", "r1", "Bash", "2 passed", command="pytest -q")
    files.work("bbb222", "r2", "Bash", "Success", command="mypy")
    files.of("bbb222").answer("Verdict: changes requested.")
    files.result("", "t2", "Verdict: changes requested.", agent="bbb222")
    files.call("", "t3", "Agent", resume="aaa111", subagent_type="developer", prompt="Add a docstring.")
    files.of("aaa111").prompt("Add a docstring.")
    files.work("aaa111", "w2", "Edit", "updated", file_path="a.py", old_string="x", new_string='"""d"""\nx')
    files.of("aaa111").answer("Docstring added.")
    files.result("", "t3", "Docstring added.\nagentId: aaa111", agent="aaa111")
    files.work("", "t4", "SendMessage", "sent", to="bbb222", message="Look again.")
    files.of("bbb222").prompt("Look again.", origin={"kind": "coordinator"})
    files.of("bbb222").answer("Approved.")
    notice = "<task-notification><task-id>bbb222</task-id><result>Approved.</result></task-notification>"
    files.of("").prompt(notice, origin={"kind": "task-notification"})
    files.call("", "t5", "Agent", subagent_type="nobody", prompt="Celebrate.")
    files.result("", "t5", "no such agent", failed=True)
    files.of("").answer("All done.")
    return files


def test_every_task_of_an_agent_and_every_review_is_told(tmp_path: Path) -> None:
    told().write(tmp_path / "project")
    with harken.open("memory:") as repo:
        for _ in repo.import_sessions([tmp_path / "project"]):
            pass

        document = repo.document(SESSION).document

    data = document.data
    assert [
        ("task_assignment", "aaa111", "task-001", ""),
        ("acknowledgment", "aaa111", "task-001", "msg-001"),
        ("task_completion", "aaa111", "task-001", "msg-001"),
        ("review_request", "bbb222", "task-001", ""),
        ("review_result", "bbb222", "task-001", "msg-004"),
        ("task_assignment", "aaa111", "task-001-2", ""),
        ("task_completion", "aaa111", "task-001-2", "msg-006"),
        ("review_request", "bbb222", "task-001-2", ""),
        ("review_result", "bbb222", "task-001-2", "msg-008"),
    ] == [
        (
            message["message_type"],
            next(message[end]["agent_id"] for end in ("from_agent", "to_agent") if message[end]["agent_id"] in _AGENTS),
            message["payload"].get("task_id") or message["payload"]["task"]["task_id"],
            message.get("reply_to", ""),
        )
        for message in data["messages"]
    ]
    assert ["t1", "t2"] == [sub["triggered_by_call_id"] for sub in data["sub_sessions"]]
    assert [{"path": "a.py", "lines_added": 3, "lines_removed": 0}] == data["sub_sessions"][0]["output"]["changes"][
        "files_created"
    ]
    assert ("approved", {"tests_passed": True, "type_check_passed": True}) == (
        data["sub_sessions"][1]["output"]["verdict"],
        data["sub_sessions"][1]["output"]["verification"],
    )
    assert (2, "approved", {"total": 2, "completed": 2, "failed": 0}) == (
        data["summary"]["review_iterations"],
        data["summary"]["final_verdict"],
        data["summary"]["tasks"],
    )
    assert [] == [finding for finding in validate(document) if finding.level == "error"]


def test_the_sub_session_of_an_agent_that_is_sent_back_to_work_ends_when_its_last_answer_comes(tmp_path: Path) -> None:
    told().write(tmp_path / "project")
    with harken.open("memory:") as repo:
        for _ in repo.import_sessions([tmp_path / "project"]):
            pass
        data = repo.document(SESSION).document.data

    came = {message["from_agent"]["agent_id"]: message["timestamp"] for message in data["messages"]}
    assert [came[name] for name in _AGENTS] == [sub["completed_at"] for sub in data["sub_sessions"]]


_AGENTS = ("aaa111", "bbb222")
MAIN, WORKER, HELPER, SLOW = (f"019b8d62-7a80-7ee5-8ebf-00000000000{number}" for number in range(1, 5))


class Threads:
    """A thread and those that it started, each in a file of its own, on one clock."""

    def __init__(self) -> None:
        self.threads: dict[str, Rollout] = {MAIN: Rollout(id=MAIN)}

    def spawn(self, parent: str, call_id: str, child: str, message: str) -> None:
        self.line(parent).call(call_id, "spawn_agent", json.dumps({"message": message}))
        source = {"subagent": {"thread_spawn": {"parent_thread_id": parent, "depth": 1, "agent_role": "worker"}}}
        self.threads[child] = Rollout(bare=True)
        self.line(child).meta(id=child, parent_thread_id=parent, source=source)
        self.line(parent).output(call_id, json.dumps({"agent_id": child}))
        self.line(child).user(message)

    def line(self, name: str) -> Rollout:
        """A rollout whose next line is the latest of all: its clock counts lines, so that empty ones fill it up."""
        rollout = self.threads[name]
        longest = max(len(one.lines) for one in self.threads.values())
        rollout.lines += [b""] * (longest - len(rollout.lines))
        return rollout

    def notice(self, of: str, **status: str) -> None:
        told = json.dumps({"agent_path": of, "status": status})
        self.line(MAIN).user(f"<subagent_notification>\n{told}\n</subagent_notification>")

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        for name, rollout in self.threads.items():
            lines = [line + b"\n" for line in rollout.lines if line]
            (folder / f"rollout-2026-01-02T00-00-00-{name}.jsonl").write_bytes(b"".join(lines))


def test_threads_that_are_sent_more_wait_for_others_and_are_closed(tmp_path: Path) -> None:
    threads = Threads()
    threads.line(MAIN).user("Have it written.")
    threads.spawn(MAIN, "c1", WORKER, "Write it.")
    threads.spawn(WORKER, "n1", HELPER, "Help me.")
    threads.line(HELPER).model("Helped.")
    threads.line(WORKER).call("n2", "wait", json.dumps({"ids": [HELPER]}))
    threads.line(WORKER).output("n2", json.dumps({"status": {HELPER: {"completed": "Helped."}}}))
    threads.line(WORKER).model("Written.")
    threads.line(MAIN).call("c2", "wait", json.dumps({"ids": [WORKER]}))
    threads.line(MAIN).output("c2", json.dumps({"status": {WORKER: {"completed": "Written."}}}))
    threads.notice(WORKER, completed="Written.")
    threads.line(MAIN).call("c3", "send_input", json.dumps({"id": WORKER, "message": "Test it."}))
    threads.line(MAIN).output("c3", json.dumps({"submission_id": "s1"}))
    threads.line(WORKER).user("Test it.")
    threads.line(WORKER).model("Tested.")
    threads.notice(WORKER, completed="Tested.")
    threads.spawn(MAIN, "c4", SLOW, "Take long.")
    threads.line(SLOW).call("y1", "exec_command", json.dumps({"cmd": "sleep 99"}))
    threads.line(MAIN).call("c5", "close_agent", json.dumps({"id": SLOW}))
    threads.notice(SLOW, errored="It was closed.")
    threads.line(MAIN).model("Done.")
    threads.write(tmp_path / "sessions")
    with harken.open("memory:") as repo:
        for _ in repo.import_sessions([tmp_path / "sessions"]):
            pass

        document = repo.document(MAIN).document

    data = document.data
    assert [
        ("codex", WORKER, "task_assignment", "task-001", "Write it."),
        (WORKER, HELPER, "task_assignment", "task-002", "Help me."),
        (HELPER, WORKER, "task_completion", "task-002", "Helped."),
        (WORKER, "codex", "task_completion", "task-001", "Written."),
        ("codex", WORKER, "task_assignment", "task-001-2", "Test it."),
        (WORKER, "codex", "task_completion", "task-001-2", "Tested."),
        ("codex", SLOW, "task_assignment", "task-003", "Take long."),
        ("codex", SLOW, "abort", "task-003", ""),
        (SLOW, "codex", "task_completion", "task-003", "It was closed."),
    ] == [
        (
            message["from_agent"]["agent_id"],
            message["to_agent"]["agent_id"],
            message["message_type"],
            message["correlation_id"],
            message["payload"].get("task", {}).get("task_description") or message["payload"].get("summary", ""),
        )
        for message in data["messages"]
    ]
    assert [("c1", data["session_id"]), ("n1", "sub-001"), ("c4", data["session_id"])] == [
        (sub["triggered_by_call_id"], sub["parent_session_id"]) for sub in data["sub_sessions"]
    ]
    assert [] == [finding for finding in validate(document) if finding.level == "error"]
