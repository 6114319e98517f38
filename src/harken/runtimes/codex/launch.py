"""Starting Codex under observation: `codex exec …`, whose stream of JSON lines is read.

Seen with Codex 0.166.0. It wraps piped text in a `<stdin>` block behind the prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from harken.errors import BadRequest
from harken.events import ToolCall
from harken.runtimes.arguments import OptionTable, option_names, take_apart
from harken.runtimes.base import Launcher, LineOwner, Plan, ShownLine, StreamReader, Template
from harken.runtimes.display import parse

_OPTIONS = OptionTable(
    one=option_names(
        "-c --config --enable --disable -m --model --local-provider -p --profile -s --sandbox -C --cd --add-dir "
        "--thread-source --cyber-access-program --output-schema --color -o --output-last-message -a "
        "--ask-for-approval"
    ),
    many=option_names("-i --image"),
)
_CONTINUING = ("resume", "fork", "review")


def _plan(words: Sequence[str], resume: str) -> Plan:
    said = take_apart(words, _OPTIONS)
    if not said.plain or said.plain[0][1] not in ("exec", "e"):
        raise BadRequest(
            'only `exec` can be wrapped: harken run codex -- exec "…"',
            hint="for a session on the screen, start it as usual and let `harken watch` follow its file",
        )
    start = said.plain[0][0] + 1
    plain = said.plain[1:]
    command = plain[0][1] if plain and plain[0][1] in _CONTINUING else ""
    if resume and command:
        raise BadRequest(f"--from says what to continue, and so does `{command}`", hint="leave out one of them")
    continues = ""
    if command:
        plain = plain[1:]
        if command != "review" and "--last" not in said.options:
            continues = plain[0][1] if plain and command == "resume" else ""
            plain = plain[1:]
    prompt_at, prompt = plain[0] if plain else (len(words), "")
    arguments = [*words[:start], *([] if "--json" in said.options else ["--json"])]
    arguments += [*words[start:prompt_at], *(["resume", resume] if resume else []), *words[prompt_at:]]
    return Plan(
        arguments=tuple(arguments),
        prompt="" if prompt == "-" else prompt,
        show="stream" if "--json" in said.options else "text",
        continues=continues,
    )


def _template(template: Template, words: Sequence[str]) -> list[str]:
    settings = {
        "model": template.model,
        "instructions": template.system_prompt,
        "developer_instructions": template.append_system_prompt,
    }
    said = [word for key, value in settings.items() if value for word in ("-c", f"{key}={_toml_string(value)}")]
    # Options of `exec` stand behind it.
    return [*words[:1], *said, *template.arguments, *words[1:]]


def _toml_string(text: str) -> str:
    # A JSON string is a TOML basic string, once the one character they disagree on (DEL) is escaped.
    return msgspec.json.encode(text).decode().replace("\x7f", "\\u007f")


def _reader(now: int) -> StreamReader:
    from harken.formats.codex_stream import CodexStreamReader

    # Codex numbers its items anew in every run of a thread.
    return CodexStreamReader(f"{now:x}")


def _owner(line: dict[str, Any]) -> LineOwner:
    thread = line.get("thread_id") if line.get("type") == "thread.started" else ""
    return LineOwner(session=thread if isinstance(thread, str) else "")


def _shown(line: bytes, found: dict[str, Any], show: str) -> ShownLine:
    item, error = found.get("item"), found.get("error")
    if found.get("type") == "item.completed" and isinstance(item, dict) and item.get("type") == "agent_message":
        text = item.get("text")
        return ShownLine(answer=text.encode("utf-8", "replace") if isinstance(text, str) else b"", replaces=True)
    if found.get("type") == "turn.failed" and isinstance(error, dict):
        return ShownLine(note=f"ERROR: {error.get('message', '')}")
    return ShownLine()


def _session_files(home: Path, session: str) -> list[Path]:
    """The rollouts of a thread, one for each time that it went back; a sub-agent is a thread of its own, and its items
    are not on the stream."""
    found = ((home / "sessions").glob(f"*/*/*/rollout-*-{session}{end}") for end in (".jsonl", "_*.jsonl"))
    return sorted(path for paths in found for path in paths)


def _full_prompt(prompt: str, piped: str) -> str:
    if not piped or not prompt:
        return prompt or piped
    return f"{prompt}\n\n<stdin>\n{piped.removesuffix(chr(10))}\n</stdin>"


def _command(call: ToolCall) -> str:
    command = parse(call.input).get("cmd") if call.name == "exec_command" else ""
    return command if isinstance(command, str) else ""


LAUNCH = Launcher(
    program="codex",
    plan=_plan,
    reader=_reader,
    owner=_owner,
    shown=_shown,
    template=_template,
    answers=lambda session: ["exec", *(["resume", session] if session else []), "-"],
    full_prompt=_full_prompt,
    command=_command,
    asking_session=lambda environ: environ.get("CODEX_THREAD_ID", ""),
    session_files=_session_files,
)
