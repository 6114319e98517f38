"""Starting Copilot CLI under observation: `copilot -p …`, whose stream of JSON lines is read.

Seen with Copilot CLI 1.0.102. The stream has the lines of the session's own file, and between them lines that are only
for whoever watches (`ephemeral`). It names the session in its last line, so the plan gives it a name. What a request
used stands in the file alone, which is imported when the run is over. With `-p` it reads nothing from stdin.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harken.errors import BadRequest
from harken.events import Event, ToolCall
from harken.formats.copilot_cli import events_of_line
from harken.runtimes.arguments import OptionTable, option_names, take_apart
from harken.runtimes.base import Launcher, LineOwner, Plan, ShownLine, StreamReader, Template
from harken.runtimes.display import parse

_OPTIONS = OptionTable(
    one=option_names(
        "-p --prompt -i --interactive --model --reasoning-effort --context --auto-tier --agent -n --name --session-id "
        "-C --log-dir --log-level --stream --output-format --add-dir --attachment --disable-mcp-server "
        "--add-github-mcp-toolset --add-github-mcp-tool --plugin-dir --additional-mcp-config --mcp-github-auth "
        "--max-autopilot-continues --mode --max-ai-credits --usage-output-file --dynamic-retrieval"
    ),
    many=option_names("--allow-tool --deny-tool --available-tools --excluded-tools --secret-env-vars --allow-url"),
)
_JSON = "--output-format=json"


def _value(said: dict[str, str], *names: str) -> str:
    return next((said[name] for name in names if name in said), "")


def _plan(words: Sequence[str], resume: str) -> Plan:
    said = take_apart(words, _OPTIONS)
    prompt = _value(said.options, "-p", "--prompt")
    if not prompt:
        raise BadRequest(
            'only a prompt can be wrapped: harken run copilot-cli -- -p "…"',
            hint="for a session on the screen, start it as usual and let `harken watch` follow its file",
        )
    going_on = [name for name in ("-r", "--resume", "--continue", "--connect") if name in said.options]
    if resume and going_on:
        raise BadRequest(f"--from says what to continue, and so does `{going_on[0]}`", hint="leave out one of them")
    asked = _value(said.options, "--output-format")
    session = resume or _value(said.options, "-r", "--resume", "--session-id")
    more = [] if asked == "json" else [_JSON]
    more += [f"--resume={resume}"] if resume else []
    if not session and not going_on:
        # The stream names the session in its last line, so it is given its name.
        session = str(uuid.UUID(bytes=os.urandom(16), version=4))
        more.append(f"--session-id={session}")
    return Plan(
        arguments=(*words, *more),
        prompt=prompt,
        show="stream" if asked == "json" else "text",
        continues=session if going_on else "",
        session=session,
    )


def _template(template: Template, words: Sequence[str]) -> list[str]:
    if template.system_prompt or template.append_system_prompt:
        raise BadRequest(
            f"template {template.name!r} has instructions, which Copilot CLI takes from files alone",
            hint="write them into AGENTS.md, or leave them out of the template",
        )
    return [*(["--model", template.model] if template.model else []), *template.arguments, *words]


class CopilotStreamReader:
    """Turns the lines of the stream into events; those that are only for whoever watches say nothing."""

    def feed(self, line: bytes) -> list[Event]:
        """The events on the next line."""
        return events_of_line(line)


def _reader(now: int) -> StreamReader:
    return CopilotStreamReader()


def _owner(line: dict[str, Any]) -> LineOwner:
    data, agent = line.get("data"), line.get("agentId")
    session = line.get("sessionId") if line.get("type") == "result" else ""
    call = data.get("parentToolCallId", data.get("toolCallId")) if isinstance(data, dict) else ""
    return LineOwner(
        session=session if isinstance(session, str) else "",
        agent=agent if isinstance(agent, str) else "",
        call=call if isinstance(agent, str) and isinstance(call, str) else "",
    )


def _shown(line: bytes, found: dict[str, Any], show: str) -> ShownLine:
    data = found.get("data")
    if not isinstance(data, dict) or found.get("agentId"):
        return ShownLine()
    if found.get("type") == "assistant.message" and isinstance(text := data.get("content"), str) and text:
        return ShownLine(answer=text.encode("utf-8", "replace"), replaces=True)
    if found.get("type") == "session.error":
        return ShownLine(note=f"ERROR: {data.get('message', '')}")
    return ShownLine()


def _command(call: ToolCall) -> str:
    command = parse(call.input).get("command") if call.name == "bash" else ""
    return command if isinstance(command, str) else ""


LAUNCH = Launcher(
    program="copilot",
    plan=_plan,
    reader=_reader,
    owner=_owner,
    shown=_shown,
    template=_template,
    quiet={"COPILOT_AUTO_UPDATE": "false"},
    # The stream repeats what was asked, and to a sub-agent too.
    full_prompt=lambda prompt, piped: "",
    named_by_plan=True,
    command=_command,
    session_files=lambda home, session: [path for path in (_file(home, session),) if path.is_file()],
)


def _file(home: Path, session: str) -> Path:
    return home / "session-state" / session / "events.jsonl"
