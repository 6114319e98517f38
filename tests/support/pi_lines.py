"""Lines as pi writes them, for tests: a session that is told entry by entry."""

from __future__ import annotations

import json
from typing import Any

SESSION = "01a1df6a-de81-743f-b91f-716d8b9fb628"
FILE = f"2026-11-15T13-34-45-377Z_{SESSION}.jsonl"
COST = {"input": 0.0003, "output": 0.000105, "cacheRead": 0.000012, "cacheWrite": 0.000075, "total": 0.000492}
USAGE = {"input": 100, "output": 7, "cacheRead": 40, "cacheWrite": 20, "totalTokens": 167, "cost": COST}
MODEL = {"api": "anthropic-messages", "provider": "loop", "model": "test-model"}
Json = dict[str, Any]


def line(record: Json) -> bytes:
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


class PiSession:
    """A session in the making. Entries hang one from the other, unless somebody goes back."""

    def __init__(self, session: str = SESSION, *, version: int | None = 3, **header: Any) -> None:
        self.version = version or 1
        self._second = 0
        self.last: str | None = None
        told = {"version": version} if version is not None else {}
        self.lines = [
            line(
                {"type": "session", **told, "id": session, "timestamp": self.stamp(), "cwd": "/home/me/proj", **header}
            )
        ]

    @property
    def data(self) -> bytes:
        return b"".join(self.lines)

    def stamp(self) -> str:
        self._second += 1
        return f"2026-11-15T13:{34 + self._second // 60:02d}:{self._second % 60:02d}.377Z"

    @property
    def moment(self) -> int:
        """The present in milliseconds."""
        return 1794749685377 + self._second * 1000

    def entry(self, kind: str, id: str = "", **about: Any) -> PiSession:
        name = id or f"{len(self.lines):08x}"
        tree = {"id": name, "parentId": self.last} if self.version > 1 else {}
        self.lines.append(line({"type": kind, **tree, "timestamp": self.stamp(), **about}))
        self.last = name
        return self

    def back_to(self, entry: str | None) -> PiSession:
        """Go on from an earlier entry."""
        self.last = entry
        return self

    def message(self, role: str, id: str = "", **about: Any) -> PiSession:
        return self.entry("message", id, message={"role": role, **about, "timestamp": self.moment})

    def began(self) -> PiSession:
        self.entry("model_change", provider="loop", modelId="test-model")
        return self.entry("thinking_level_change", thinkingLevel="high")

    def user(self, text: str, id: str = "", *more: Json) -> PiSession:
        return self.message("user", id, content=[{"type": "text", "text": text}, *more])

    def answer(self, *blocks: Json | str, id: str = "", stop: str = "", usage: Json = USAGE, **about: Any) -> PiSession:
        content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
        called = any(block["type"] == "toolCall" for block in content)
        how = {"usage": usage, "stopReason": stop or ("toolUse" if called else "stop")}
        reply = {"responseId": f"msg_{len(self.lines):06d}"}
        return self.message("assistant", id, content=content, **{**MODEL, **how, **reply, **about})

    def result(self, call: str, text: str, *more: Json, failed: bool = False, **about: Any) -> PiSession:
        content = [{"type": "text", "text": text}, *more]
        return self.message("toolResult", toolCallId=call, toolName="bash", content=content, isError=failed, **about)

    def shell(self, command: str, output: str, code: int = 0, **about: Any) -> PiSession:
        how = {"exitCode": code, "cancelled": False, "truncated": False}
        return self.message("bashExecution", command=command, output=output, **how, **about)

    def compaction(self, summary: str, first_kept: str, id: str = "", **about: Any) -> PiSession:
        told = {"tokensBefore": 173, "details": {"readFiles": [], "modifiedFiles": []}, "fromHook": False}
        return self.entry("compaction", id, summary=summary, firstKeptEntryId=first_kept, **told, **about)


def thinking(text: str) -> Json:
    return {"type": "thinking", "thinking": text, "thinkingSignature": "sig=="}


def call(id: str, command: str = "ls") -> Json:
    return {"type": "toolCall", "id": id, "name": "bash", "arguments": {"command": command}}


DOT = "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEUlEQVR4nGM4ISeHFTEMLQkAkL9BAbKfPiIAAAAASUVORK5CYII="
PICTURE = {"type": "image", "mimeType": "image/png", "data": DOT}


def conversation(session: str = SESSION, **header: Any) -> PiSession:
    """Two turns, with thinking, two calls of which one fails, a picture and a command that a person ran."""
    made = PiSession(session, **header).began().user("What is in the notes?")
    made.answer(thinking("I will look."), "I will look.", call("t1", "cat notes"), call("t2", "exit 3"))
    made.result("t1", "The fruit is PAPAYA-77.\n").result(
        "t2", "(no output)\n\nCommand exited with code 3", failed=True
    )
    made.answer("The fruit is PAPAYA-77.").user("Look at this.", "", PICTURE).answer("A red square.")
    return made.shell("echo user-bash", "user-bash\n").entry("session_info", name="My name")


def compacted() -> PiSession:
    """A conversation that was compacted and went on: the last turn was kept."""
    made = conversation().user("Keep this.", "kept0001").answer("It is kept.")
    return made.compaction("SUMMARY: the fruit.", "kept0001").user("Go on.").answer("Gladly.")


def branched() -> PiSession:
    """A conversation in which somebody went back, twice; the second time with a summary of what was left."""
    made = PiSession().began().user("Root.", "root0001").answer("One.").user("Leave this.").answer("Left.")
    made.back_to("root0001").answer("Two.", id="two00001").user("And that.").answer("That.")
    made.back_to("two00001").entry("branch_summary", fromId=made.last, summary="They tried that.")
    return made.user("Now this.").answer("This.").entry("label", targetId="root0001", label="here")


def legacy() -> PiSession:
    """The first version: no ids, no version; a compaction counts records."""
    made = PiSession(version=None, provider="anthropic", modelId="claude-sonnet-4-5", thinkingLevel="off")
    made.user("First.").answer("One.", responseId="").user("Second.").answer("Two.", responseId="")
    made.entry("compaction", summary="SUMMARY: first.", firstKeptEntryIndex=3, tokensBefore=100)
    return (
        made.user("Third.")
        .answer("Three.", responseId="")
        .answer(
            stop="aborted",
            errorMessage="Request was aborted",
            usage={**USAGE, **dict.fromkeys(USAGE, 0)},
            responseId="",
        )
    )


def openclaw() -> PiSession:
    """A session of OpenClaw's: what it notes for itself, a sub-agent, an answer that it gave by itself, a new start."""
    made = PiSession().began().entry("custom", customType="model-snapshot", data={"modelId": "test-model"})
    told = {"customType": "openclaw.runtime-context", "display": False}
    made.user("Delegate it.").entry("custom_message", content="You are in a chat.", **told)
    made.answer("I delegate.", call("t1"))
    accepted = {"status": "accepted", "childSessionKey": "agent:main:subagent:56d1ffc2-631a-4967-bc1f-b39da594b726"}
    made.result("t1", json.dumps(accepted), details=accepted).answer("It is under way.")
    made.answer("Sent.", provider="openclaw", model="delivery-mirror", usage={**USAGE, **dict.fromkeys(USAGE, 0)})
    made.user("Begin anew.").answer("Yes.").entry("reset", reason="new", firstKeptEntryId="")
    return made.user("Hello again.").answer("Hello.")


STREAM = (
    line({"type": "session", "version": 3, "id": SESSION, "timestamp": "2026-11-15T13:34:45.377Z", "cwd": "/x"}),
    line({"type": "agent_start"}),
    line({"type": "message_end", "message": {"role": "user", "content": [{"type": "text", "text": "hi"}]}}),
    line({"type": "message_end", "message": {"role": "assistant", "content": [{"type": "text", "text": "Hello."}]}}),
    line({"type": "agent_end", "messages": []}),
)
"""What `pi --mode json` prints."""
