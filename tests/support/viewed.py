"""Builders of sessions for the views: a café by hand, long ones by number, and hostile ones."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harken.formats.session_log import events_of, normalise
from harken.views import SessionViewer

Entry = dict[str, Any]


def entry(message_id: str, agent: str, role: str, content: str | None = None, **more: Any) -> Entry:
    """A line of a transcript."""
    words = {} if content is None else {"content": content}
    return {
        "message_id": message_id,
        "event_type": "transcript_entry",
        "agent_id": agent,
        "role": role,
        **words,
        **more,
    }


def created(message_id: str, agent: str, **more: Any) -> Entry:
    """An agent comes into being."""
    return {"message_id": message_id, "event_type": "agent_created", "agent_id": agent, **more}


def text(message_id: str, agent: str, content: str, cause: Any) -> Entry:
    """Text made for others."""
    return {
        "message_id": message_id,
        "event_type": "piece_of_text",
        "agent_id": agent,
        "content": content,
        "cause": cause,
    }


def calls(*named: tuple[str, str]) -> list[Entry]:
    """Tool calls by (id, name); the arguments are not JSON on purpose, since nobody may parse them."""
    return [{"id": i, "type": "function", "function": {"name": n, "arguments": f"<{n} {i}>"}} for i, n in named]


def stamped(events: Iterable[Entry], *, start: int = 0) -> list[Entry]:
    """The events a second apart."""
    return [
        event | {"timestamp": f"2026-01-{1 + n // 86400:02}T{n // 3600 % 24:02}:{n // 60 % 60:02}:{n % 60:02}.000000Z"}
        for n, event in enumerate(events, start)
    ]


def cafe() -> list[Entry]:
    """Jack and Jill meet; Jill has an inner voice; a hook hides Jack's password from Jill, not from Bob."""
    return stamped(
        [
            created("m1", "root", role="root", language_model="scripted"),
            entry("m2", "root", "user", "Let them meet"),
            entry("m3", "root", "assistant", tool_calls=calls(("c1", "task"), ("c2", "task"), ("c3", "task"))),
            created("m4", "jack", cause="m3", name="Jack", role="child"),
            created("m5", "jill", cause="m3", name="Jill", role="child"),
            created("m6", "bob", cause="m3", name="Bob", role="child"),
            created("m7", "guard", cause="m3", name="Guard", role="hook"),
            entry("m8", "jill", "system", "You are Jill."),
            entry("m9", "root", "tool", "made", tool_call_id="c1"),
            entry("m10", "root", "assistant", tool_calls=calls(("c4", "discuss"))),
            text("m11", "root", "You meet.", "m10"),
            entry("m12", "jack", "user", "You meet.", substance="m11"),
            entry("m13", "jill", "user", "You meet.", substance="m11"),
            entry("m14", "jack", "assistant", "Hello, my password: 1234 is easy"),
            entry(
                "m15", "jill", "user", "[Jack]: Hello, my password: [REDACTED] is easy", substance="m14", hook="guard"
            ),
            entry("m16", "bob", "user", "[Jack]: Hello, my password: 1234 is easy", substance="m14"),
            entry("m17", "jill", "assistant", "Let me think.", tool_calls=calls(("c5", "discuss"))),
            created("m18", "inner", cause="m17", name="Inner", role="child"),
            text("m19", "jill", "What shall I say?", "m17"),
            entry("m20", "inner", "user", "What shall I say?", substance="m19"),
            entry("m21", "inner", "assistant", "Only smile."),
            entry("m22", "jill", "tool", "Only smile.", tool_call_id="c5", cause=["m21"]),
            entry("m23", "jill", "assistant", "*smiles*"),
            entry("m24", "jack", "user", "[Jill]: *smiles*", substance="m23"),
            entry("m25", "bob", "user", "[Jill]: *smiles*", substance="m24"),
            entry("m26", "root", "tool", "Hello…\n\n*smiles*", tool_call_id="c4", cause=["m14", "m23"]),
            entry("m27", "root", "assistant", tool_calls=calls(("c6", "task"))),
            entry("m28", "root", "tool", "Error: Action blocked by hook 'Guard': enough agents", tool_call_id="c6"),
            entry("m29", "root", "assistant", "They met."),
        ]
    )


def long_session(events: int, agents: int = 20) -> list[Entry]:
    """Rounds of talk: somebody speaks, everybody else hears it, some in other words, one result gathers it."""
    names = [f"agent_{n:03}" for n in range(1, agents + 1)]
    made: list[Entry] = [created("msg_0", "agent_root", role="root")]
    made += [created(f"msg_{n}", name, name=f"Speaker {n}", cause="msg_0") for n, name in enumerate(names, 1)]
    while len(made) < events:
        turn = len(made)
        speaker = names[turn % agents]
        said = f"Turn {turn}: " + "words about the matter at hand " * 4
        made.append(entry(f"msg_{turn}", "agent_root", "assistant", tool_calls=calls((f"c{turn}", "discuss"))))
        origin = f"msg_{turn + 1}"
        made.append(entry(origin, speaker, "assistant", said))
        for name in names:
            if name != speaker:
                heard = f"[Speaker {names.index(speaker) + 1}]: {said}"
                changed = heard.replace("matter", "[REDACTED]") if len(made) % 50 == 0 else heard
                made.append(entry(f"msg_{len(made)}", name, "user", changed, substance=origin))
        made.append(entry(f"msg_{len(made)}", "agent_root", "tool", said, tool_call_id=f"c{turn}", cause=[origin]))
    return stamped(made[:events])


def write_log(path: Path, events: Iterable[Entry]) -> Path:
    """The events as a log file."""
    path.write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    return path


def logged(lines: Iterable[Entry]) -> SessionViewer:
    """The views of a log with these lines."""
    return SessionViewer.of_log(json.dumps(line).encode() + b"\n" for line in lines)


def viewed(lines: Iterable[Entry]) -> SessionViewer:
    """The views of the events on these lines."""
    return SessionViewer.of(event for line in lines for event in events_of(normalise(line)))
