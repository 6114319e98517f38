"""Starting OpenCode under observation: `opencode run …`, whose stream of JSON lines is read.

Seen with OpenCode 1.18.33. Kilo has the same command.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from harken.errors import BadRequest
from harken.events import ToolCall
from harken.runtimes.arguments import OptionTable, option_names, take_apart
from harken.runtimes.base import Launcher, LineOwner, Plan, ShownLine, StreamReader, Template
from harken.runtimes.display import parse

_OPTIONS = OptionTable(
    one=option_names(
        "--command -s --session -m --model --agent --format --title --attach -p --password -u --username --dir --port "
        "--variant --replay-limit --log-level"
    ),
    many=option_names("-f --file"),
)


def launcher(program: str) -> Launcher:
    """How a program with this command line is started."""
    return Launcher(
        program=program,
        plan=partial(_plan, program),
        reader=_reader,
        owner=_owner,
        shown=_shown,
        template=partial(_template, program),
        quiet={f"{program.upper()}_DISABLE_AUTOUPDATE": "1"},
        told=_sub_agent_prompt,
        command=_command,
    )


def _plan(program: str, words: Sequence[str], resume: str) -> Plan:
    said = take_apart(words, _OPTIONS)
    if not said.plain or said.plain[0][1] != "run":
        raise BadRequest(
            f'only `run` can be wrapped: harken run {program} -- run "…"',
            hint="for a session on the screen, start it as usual and let `harken watch` follow its database",
        )
    continues = said.options.get("-s") or said.options.get("--session") or ""
    if resume and (continues or said.options.keys() & {"-c", "--continue"}):
        raise BadRequest("--from says what to continue, and so does the command", hint="leave out one of them")
    start = said.plain[0][0] + 1
    stream = said.options.get("--format") == "json"
    added = [] if stream else ["--format", "json"]
    # By itself it shows no reasoning, and in the user's own stream there is to be nothing more.
    added += [] if stream or "--thinking" in said.options else ["--thinking"]
    added += ["-s", resume] if resume else []
    return Plan(
        arguments=(*words[:start], *added, *words[start:]),
        prompt=" ".join(word for _, word in said.plain[1:]),
        show="stream" if stream else "text",
        continues=continues,
    )


def _template(program: str, template: Template, words: Sequence[str]) -> list[str]:
    if template.system_prompt or template.append_system_prompt:
        raise BadRequest(
            f"{program} takes no system prompt on its command line",
            hint=f"make an agent of it in the settings of {program}, and name that by `arguments`",
        )
    said = ["--model", template.model] if template.model else []
    return [*words[:1], *said, *template.arguments, *words[1:]]


def _reader(now: int) -> StreamReader:
    from harken.formats.opencode.stream import OpenCodeStreamReader

    return OpenCodeStreamReader(f"{now:x}")


def _owner(line: dict[str, Any]) -> LineOwner:
    session = line.get("sessionID")
    return LineOwner(session=session if isinstance(session, str) else "")


def _shown(line: bytes, found: dict[str, Any], show: str) -> ShownLine:
    part, error = found.get("part"), found.get("error")
    if found.get("type") == "text" and isinstance(part, dict) and isinstance(part.get("text"), str):
        return ShownLine(answer=part["text"].encode("utf-8", "replace") + b"\n")
    if found.get("type") == "error" and isinstance(error, dict):
        data = error.get("data")
        return ShownLine(note=f"ERROR: {data.get('message', '') if isinstance(data, dict) else error.get('name', '')}")
    return ShownLine()


def _argument(call: ToolCall, tool: str, name: str) -> str:
    found = parse(call.input).get(name) if call.name == tool else ""
    return found if isinstance(found, str) else ""


def _sub_agent_prompt(call: ToolCall) -> str:
    return _argument(call, "task", "prompt")


def _command(call: ToolCall) -> str:
    return _argument(call, "bash", "command")
