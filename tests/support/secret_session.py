"""A session with a secret in many places, and sub-agents whose files lie beside it."""

from __future__ import annotations

from pathlib import Path

from support.sessions import ClaudeSession

KEY = "sk-ant-api03-" + "Q7w2E9r4T6y1U8i3O5p0" * 3
ESCAPED = KEY.replace("a", "\\u0061")
COLOURED = KEY[:20] + "\x1b[0m" + KEY[20:]


def write_session(folder: Path) -> Path:
    """A session with a sub-agent whose file lies beside it, a compaction, and a secret in many places."""
    main = ClaudeSession("11111111-1111-4111-8111-111111111111")
    main.prompt(f"use {KEY} please")
    main.call("Bash", f"the key is {COLOURED}")
    main.lines[-2] = main.lines[-2].replace(b'"n": ', f'"{KEY}": "{ESCAPED}", "n": '.encode())
    main.call("Task", "it is done", agent="abc", prompt="look around")
    main.add("system", subtype="compact_boundary", content="Conversation compacted")
    main.answer("all done")
    main.prompt("and now?")
    main.call("Task", "done again", agent="def", prompt="look again")
    path = folder / f"{main.session}.jsonl"
    path.write_bytes(main.data)
    for agent, said in (("abc", f"I looked: {KEY}"), ("def", "I looked again")):
        sub = ClaudeSession(main.session, agent=agent, salt=agent, start=10)
        sub.prompt("look around" if agent == "abc" else "look again")
        sub.answer(said)
        (folder / main.session / "subagents").mkdir(parents=True, exist_ok=True)
        (folder / main.session / "subagents" / f"agent-{agent}.jsonl").write_bytes(sub.data)
    return path
