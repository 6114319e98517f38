"""Starting Qwen Code under observation: `qwen "…"`, whose stream of JSON lines is read.

Seen with Qwen Code 0.24.4. It puts piped text before the prompt, with an empty line between.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from harken.errors import BadRequest
from harken.events import ToolCall
from harken.runtimes.arguments import OptionTable, option_names, take_apart, with_template, without_option
from harken.runtimes.base import Launcher, LineOwner, Plan, ShownLine, StreamReader
from harken.runtimes.display import parse
from harken.text import text_of

_OPTIONS = OptionTable(
    one=option_names(
        "--telemetry-target --telemetry-otlp-endpoint --telemetry-otlp-protocol --telemetry-outfile --proxy -m --model "
        "-p --prompt -i --prompt-interactive --system-prompt --append-system-prompt --output-style --sandbox-image "
        "--approval-mode --channel --mcp-config --openai-logging-dir --openai-api-key --openai-base-url --input-format "
        "-o --output-format --json-fd --json-file --json-schema --input-file -r --resume --session-id "
        "--max-session-turns --max-wall-time --max-tool-calls --max-subagent-depth --auth-type"
    ),
    many=option_names(
        "--fallback-model --allowed-mcp-server-names --allowed-tools -e --extensions --include-directories --add-dir "
        "--core-tools --exclude-tools --disabled-slash-commands"
    ),
    perhaps=option_names("--worktree"),
)
_FORMATS: dict[str, Literal["text", "array", "stream"]] = {"text": "text", "json": "array", "stream-json": "stream"}


def _plan(words: Sequence[str], resume: str) -> Plan:
    said = take_apart(words, _OPTIONS)
    typed_lines = said.options.get("--input-format") == "stream-json"
    prompt = said.options.get("-p") or said.options.get("--prompt") or " ".join(word for _, word in said.plain)
    if said.options.keys() & {"-i", "--prompt-interactive"} or not (prompt or typed_lines):
        raise BadRequest(
            'only a run that is given its prompt can be wrapped: harken run qwen-code -- "…"',
            hint="for a session on the screen, start it as usual and let `harken watch` follow its file",
        )
    taken = sorted(said.options.keys() & {"-r", "--resume", "-c", "--continue", "--session-id"})
    if resume and taken:
        raise BadRequest(f"--from says what to continue, and so does {taken[0]}", hint="leave out one of them")
    asked = said.options.get("--output-format") or said.options.get("-o") or "text"
    if asked not in _FORMATS:
        raise BadRequest(f"qwen-code has no output format {asked!r}", hint="text, json or stream-json")
    kept = list(words)
    if asked != "stream-json":
        kept = ["--output-format", "stream-json", *without_option(without_option(kept, "--output-format"), "-o")]
    forks = "--fork-session" in said.options
    return Plan(
        arguments=(*(["--resume", resume] if resume else []), *kept),
        prompt=prompt,
        show=_FORMATS[asked],
        typed_lines=typed_lines,
        continues="" if forks else said.options.get("--resume") or said.options.get("-r") or "",
    )


def _reader(now: int) -> StreamReader:
    from harken.formats.qwen_code.stream import QwenStreamReader

    return QwenStreamReader()


def _owner(line: dict[str, Any]) -> LineOwner:
    begins = line.get("type") == "system" and line.get("subtype") == "init"
    call = text_of(line.get("parent_tool_use_id"))
    return LineOwner(session=text_of(line.get("session_id")) if begins else "", agent=call, call=call)


def _shown(line: bytes, found: dict[str, Any], show: str) -> ShownLine:
    if found.get("type") != "result":
        return ShownLine()
    error = found.get("error")
    if found.get("is_error") is True and isinstance(error, dict):
        return ShownLine(note=text_of(error.get("message")) or str(found.get("subtype")))
    return ShownLine(answer=text_of(found.get("result")).encode("utf-8", "replace"), replaces=True)


def _full_prompt(prompt: str, piped: str) -> str:
    piped = piped.rstrip()
    return f"{piped}\n\n{prompt}" if prompt and piped else prompt or piped


def _typed(line: dict[str, Any]) -> str:
    """The text of a user message on a line of `--input-format stream-json`."""
    message = line.get("message")
    if line.get("type") != "user" or not isinstance(message, dict):
        return ""
    content = message.get("content")
    blocks = content if isinstance(content, list) else [content]
    texts = [block.get("text") if isinstance(block, dict) else block for block in blocks]
    return "\n".join(text for text in texts if isinstance(text, str))


def _sub_agent_prompt(call: ToolCall) -> str:
    return text_of(parse(call.input).get("prompt")) if call.name == "agent" else ""


def _command(call: ToolCall) -> str:
    return text_of(parse(call.input).get("command")) if call.name == "run_shell_command" else ""


def _session_files(home: Path, session: str) -> list[Path]:
    """The file of a session, and those of its sub-agents in the folder of its name."""
    folder = home / "projects"
    own = sorted(folder.glob(f"*/chats/{session}.jsonl"))
    return [*own, *sorted(folder.glob(f"*/subagents/{session}/agent-*.jsonl"))]


LAUNCH = Launcher(
    program="qwen",
    plan=_plan,
    reader=_reader,
    owner=_owner,
    shown=_shown,
    template=with_template,
    full_prompt=_full_prompt,
    typed=_typed,
    told=_sub_agent_prompt,
    command=_command,
    asking_session=lambda environ: environ.get("QWEN_CODE_SESSION_ID", ""),
    session_files=_session_files,
    quiet={"QWEN_USAGE_STATISTICS_ENABLED": "false"},
)
