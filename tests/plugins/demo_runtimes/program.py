"""The programs of the three runtimes: `NAME ask [--json] [--model M] [--continue SESSION] PROMPT`.

The model is a parrot that knows how much it has heard, so an answer shows whether a session was resumed whole."""

from __future__ import annotations

import json
import sys
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from harken.errors import BadRequest
from harken.events import Event
from harken.runtimes import Launcher, LineOwner, Plan, ShownLine, Template
from harken.runtimes.arguments import OptionTable, option_names, take_apart

from .records import Record, events_of

OPTIONS = OptionTable(one=option_names("--model --continue"))


class Sessions(Protocol):
    """Where a program keeps its sessions."""

    def load(self, session: str) -> list[Record]:
        """The records of a session."""
        ...

    def save(self, session: str, cwd: str, records: Sequence[Record], added: Sequence[Record]) -> None:
        """Keep the records, of which the last ones are new."""
        ...


def main(sessions: Sessions) -> None:
    """What happens when somebody calls the program."""
    said = take_apart(sys.argv[1:], OPTIONS)
    session = said.options.get("--continue") or uuid.uuid4().hex
    heard = sessions.load(session) if "--continue" in said.options else []
    prompts = [record["text"] for record in heard if record.get("role") == "user"]
    prompt = said.plain[-1][1]
    answer = f"I have heard {len(prompts) + 1} prompts, the first was {[*prompts, prompt][0]!r}."
    now = time.time_ns() // 1000
    added: list[Record] = [
        {"id": uuid.uuid4().hex, "time": now, "role": "user", "text": prompt},
        {"id": uuid.uuid4().hex, "time": now + 1, "role": "assistant", "text": answer, "tokens": [100, 7]},
    ]
    sessions.save(session, str(Path.cwd()), [*heard, *added], added)
    if "--json" in said.options:
        print(json.dumps({"type": "begin", "session": session}))
        print(json.dumps({"type": "said", "record": added[1]}))
    else:
        print(answer)


# -- how Harken starts it ----------------------------------------------------------------------------------------------


def _plan(words: Sequence[str], resume: str) -> Plan:
    said = take_apart(words, OPTIONS)
    if not said.plain or said.plain[0][1] != "ask":
        raise BadRequest("only `ask` can be wrapped")
    start = said.plain[0][0] + 1
    added = [*([] if "--json" in said.options else ["--json"]), *(["--continue", resume] if resume else [])]
    return Plan(
        arguments=(*words[:start], *added, *words[start:]),
        prompt=said.plain[-1][1] if len(said.plain) > 1 else "",
        show="stream" if "--json" in said.options else "text",
    )


def _template(template: Template, words: Sequence[str]) -> list[str]:
    model = ["--model", template.model] if template.model else []
    return [*words[:1], *model, *template.arguments, *words[1:]]


class _Reader:
    def feed(self, line: bytes) -> Sequence[Event]:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            return []
        record = found.get("record") if isinstance(found, dict) else None
        return events_of(json.dumps(record).encode()) if isinstance(record, dict) else []


def _owner(line: dict[str, Any]) -> LineOwner:
    session = line.get("session") if line.get("type") == "begin" else ""
    return LineOwner(session=session if isinstance(session, str) else "")


def _shown(line: bytes, found: dict[str, Any], show: str) -> ShownLine:
    record = found.get("record")
    text = record.get("text") if isinstance(record, dict) else None
    return ShownLine(answer=text.encode(), replaces=True) if isinstance(text, str) else ShownLine()


def launcher(program: str) -> Launcher:
    """How the program of that name is started under observation."""
    return Launcher(
        program=program, plan=_plan, reader=lambda now: _Reader(), owner=_owner, shown=_shown, template=_template
    )
