"""Small sessions of Gemini CLI, built line by line as the program writes them."""

from __future__ import annotations

import json
from typing import Any

SESSION = "afc18a3c-80c8-4ad7-ae8a-3cc4982da865"
PROJECT = "fee9d82c057c8dcddbc60061899bab074a0e04b66be553455faf49cf5d39a810"
CONTEXT = (
    "<session_context>\nThis is the Gemini CLI. We are setting up the context for our chat.\n"
    "My operating system is: linux\n- **Workspace Directories:**\n  - /work/orchard\n</session_context>"
)
TOKENS = {"input": 100, "output": 7, "cached": 40, "thoughts": 3, "tool": 0, "total": 110}


class GeminiSession:
    """Lines are added; `data` is the file."""

    def __init__(self, session: str = SESSION, *, kind: str = "main", started: bool = True, **more: Any) -> None:
        self.lines: list[bytes] = []
        self.session = session
        self._clock = self._calls = 0
        self.header(kind, **more)
        if started:
            self.replaced(self.message("user", [{"text": CONTEXT}], "context"))

    @property
    def data(self) -> bytes:
        return b"".join(line + b"\n" for line in self.lines)

    def stamp(self) -> str:
        return f"2026-01-02T00:{self._clock // 60:02d}:{self._clock % 60:02d}.000Z"

    def raw(self, line: bytes) -> GeminiSession:
        self.lines.append(line)
        return self

    def add(self, record: dict[str, Any]) -> GeminiSession:
        return self.raw(json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode())

    def header(self, kind: str = "main", **more: Any) -> GeminiSession:
        self._clock += 1
        stamp = self.stamp()
        about = {"sessionId": self.session, "projectHash": PROJECT, "startTime": stamp, "lastUpdated": stamp}
        return self.add({**about, "kind": kind, **more})

    def changed(self, **change: Any) -> GeminiSession:
        return self.add({"$set": change})

    def replaced(self, *messages: dict[str, Any]) -> GeminiSession:
        """The whole list of messages, anew."""
        return self.changed(messages=list(messages), lastUpdated=self.stamp())

    def message(self, kind: str, content: Any, name: str = "", **more: Any) -> dict[str, Any]:
        self._clock += 1
        name = name or f"{len(self.lines):08d}-0000-4000-8000-{self._clock:012d}"
        return {"id": name, "timestamp": self.stamp(), "type": kind, "content": content, **more}

    def put(self, message: dict[str, Any]) -> GeminiSession:
        return self.add(message).changed(lastUpdated=message["timestamp"])

    def user(self, text: str, name: str = "", **more: Any) -> GeminiSession:
        return self.put(self.message("user", [{"text": text}], name, **more))

    def model(self, text: str, name: str = "", thoughts: tuple[str, ...] = (), **more: Any) -> GeminiSession:
        thought = [{"subject": "Thinking", "description": each, "timestamp": self.stamp()} for each in thoughts]
        known = {"thoughts": thought, "tokens": TOKENS, "model": "gemini-2.5-flash"}
        return self.put(self.message("gemini", text, name, **(known | more)))

    def tools(self, text: str, *results: str, failed: bool = False, name: str = "run", **more: Any) -> GeminiSession:
        """A message that calls tools: first without them, then with them and what they answered, then that again."""
        self.model(text)
        said = json.loads(self.lines[-2])
        calls = []
        for result in results:
            self._calls += 1
            call = f"{name}_{self._calls}"
            response = {"id": call, "name": name, "response": {"error" if failed else "output": result}}
            args = {"command": f"echo {self._calls}"}
            about = {"id": call, "name": name, "args": args, "result": [{"functionResponse": response}]}
            calls.append({**about, "status": "error" if failed else "success", "timestamp": self.stamp(), **more})
        self.add({**said, "toolCalls": calls})
        return self.put(self.message("user", [part for call in calls for part in call["result"]]))

    def rewound(self, name: str) -> GeminiSession:
        return self.add({"$rewindTo": name})

    def resumed(self, *, later: bool = False) -> GeminiSession:
        """What the program appends when it goes on: in the same minute its beginning too, then everything in fewer
        words."""
        if not later:
            self.header()
            self.replaced(self.message("user", [{"text": CONTEXT}], "context"))
        self._clock += 60
        self.changed(sessionId=self.session)
        return self.replaced(*self.poorer(keep=later))

    def poorer(self, *, keep: bool = False) -> list[dict[str, Any]]:
        """The messages as the program repeats them; those it knows keep what it knows."""
        found: dict[str, dict[str, Any]] = {}
        for line in self.lines:
            record = json.loads(line)
            if "id" in record and record["type"] in ("user", "gemini"):
                found[record["id"]] = record
        listed = [self.message("user", [{"text": CONTEXT}], "context")]
        for record in found.values():
            parts = record["content"] if isinstance(record["content"], list) else []
            if record["type"] == "gemini":
                parts = [
                    {"text": f"**{t['subject']}** {t['description']}", "thought": True} for t in record["thoughts"]
                ]
                parts += [{"text": record["content"]}] if record["content"] else []
                calls = record.get("toolCalls", [])
                parts += [{"functionCall": {key: call[key] for key in ("id", "name", "args")}} for call in calls]
            listed.append({**record, "content": parts} if keep else self.message(record["type"], parts, record["id"]))
            if results := [part for call in record.get("toolCalls", []) for part in call["result"]]:
                listed.append(self.message("user", results, f"{record['id']}_response"))
        return listed

    def compacted(self, summary: str, *kept: str) -> GeminiSession:
        """A list that a compaction made: the summary, thanks for it, and the last exchange under new names."""
        self._clock += 60
        self.changed(sessionId=self.session)
        stamp, context = self.stamp(), self.message("user", [{"text": CONTEXT}], "context")
        pairs = [("user", f"<state_snapshot>{summary}</state_snapshot>")]
        pairs += [("gemini", "Got it. Thanks for the additional context!")]
        pairs += [("gemini" if number % 2 else "user", text) for number, text in enumerate(kept)]
        listed = [self.message(kind, [{"text": text}]) | {"timestamp": stamp} for kind, text in pairs]
        return self.changed(messages=[context, *listed], lastUpdated=stamp)


def samples() -> list[bytes]:
    """Files that hold everything there is."""
    plain = GeminiSession().user("Run it.").tools("I will look.", "one", "two").model("It worked.", thoughts=("hm",))
    plain.user("Again?").tools("", "no such file", failed=True).model("It did not.").changed(summary="Running things")
    resumed = GeminiSession().user("First.").tools("Looking.", "found").model("Done.").resumed().user("Second.")
    resumed.model("Done again.").resumed(later=True).user("Third.").model("And again.")
    folded = GeminiSession().user("First.").model("Done.").user("Second.").model("Fine.")
    folded.compacted("they talked", "Second.", "Fine.").user("Third.").tools("Wait.", "three").model("Yes.")
    rewound = GeminiSession(started=False).user("One.", "u1").model("1", "g1").user("Two.", "u2").model("2", "g2")
    rewound.rewound("u2").user("Other.", "u3").model("3", "g3").add({"id": "n", "type": "info", "content": "note"})
    long = GeminiSession()
    for number in range(30):
        long.user(f"Question {number}?").tools(f"Step {number}.", "yes", f"no {number}", failed=number % 7 == 3)
        long.tools("", "more").model(f"Answer {number}.", thoughts=("hm", "so") if number % 3 else ())
        if number % 10 == 8:
            long.resumed(later=number > 10)
    long.compacted("a lot", "Question 29?", "Answer 29.").user("And?").model("Yes.").user(
        "<hook_context>x</hook_context>"
    )
    agent = GeminiSession("99ab3399-b49e-4159-b16b-6f2d9807a575", kind="subagent", started=False, directories=["/w"])
    agent.user("Look around.").tools("", "nothing").model("There is nothing.")
    return [each.data for each in (plain, resumed, folded, rewound, long, agent)]


def printed(*pieces: str) -> list[dict[str, Any]]:
    """What a run prints line by line, as steps of a fake program."""
    said = [{"type": "message", "role": "assistant", "content": piece, "delta": True} for piece in pieces]
    stats = {"total_tokens": 110, "input_tokens": 100, "output_tokens": 7, "cached": 40}
    lines = [{"type": "init", "session_id": SESSION, "model": "gemini-2.5-flash"}, *said]
    lines.append({"type": "result", "status": "success", "stats": stats})
    return [{"line": {"timestamp": "2026-01-02T00:00:00.000Z", **line}} for line in lines]


def document(*messages: dict[str, Any], session: str = SESSION, indent: int | None = 2, **more: Any) -> bytes:
    """A session as versions before 0.40 kept it."""
    times = {"startTime": "2026-01-02T00:00:00.000Z", "lastUpdated": "2026-01-02T00:01:00.000Z"}
    about = {"sessionId": session, "projectHash": PROJECT, **times}
    return json.dumps({**about, "messages": list(messages), **more}, indent=indent, ensure_ascii=False).encode()


def documents() -> list[bytes]:
    """Documents that hold everything there is."""
    lines = (
        GeminiSession(started=False)
        .user("Lesen, bitte: été?")
        .tools("Gern.", "one", "two")
        .model("Ja.", thoughts=("hm",))
    )
    found: dict[str, dict[str, Any]] = {}
    for line in lines.lines:
        record = json.loads(line)
        if "id" in record and "functionResponse" not in str(record["content"]):
            found[record["id"]] = record
    found["note"] = {"id": "note", "type": "info", "content": "a note", "timestamp": "2026-01-02T00:02:00.000Z"}
    messages = list(found.values())
    return [
        document(*messages),
        document(*messages, indent=None, kind="main", summary="Reading"),
        document(*messages[:1]),
        document(),
    ]
