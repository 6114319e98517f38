"""Starting Claude Code under observation: `claude -p …`, whose stream of JSON lines is read.

Seen with Claude Code 2.1.325. It puts piped text behind the prompt after a newline.
"""

from __future__ import annotations

import re
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
        "--agent --agents --append-system-prompt --append-system-prompt-file --autocompact --debug-file --effort "
        "--environment --fallback-model --input-format --json-schema --max-budget-usd --max-turns --model -n --name "
        "--output-format --permission-mode --permission-prompt-tool --plugin-dir --plugin-url --session-id "
        "--setting-sources --settings --system-prompt --system-prompt-file --system-prompt-snapshot "
        "--remote-control-session-name-prefix"
    ),
    many=option_names(
        "--add-dir --allowedTools --allowed-tools --betas --disallowedTools --disallowed-tools --file --mcp-config "
        "--tools"
    ),
    perhaps=option_names(
        "--cloud -d --debug --from-pr --prompt-suggestions --remote-control -r --resume --teleport -w --worktree"
    ),
)
_SUB_AGENT_TOOLS = ("Agent", "Task")
_TOO_MANY_TURNS = re.compile(r"Reached maximum number of turns \((\d+)\)")
_SHOW: dict[tuple[str, bool], Literal["text", "json", "array", "stream"]] = {
    ("text", False): "text",
    ("text", True): "text",
    ("json", False): "json",
    ("json", True): "array",
    ("stream-json", False): "stream",
    ("stream-json", True): "stream",
}
"""By `--output-format` and `--verbose`."""


def _plan(words: Sequence[str], resume: str) -> Plan:
    said = take_apart(words, _OPTIONS)
    if not said.options.keys() & {"-p", "--print"}:
        raise BadRequest(
            "only a run that prints its answer can be wrapped: give claude-code `-p`",
            hint="for a session on the screen, start it as usual and let `harken watch` follow its file",
        )
    taken = sorted(said.options.keys() & {"-r", "--resume", "-c", "--continue", "--session-id"})
    if resume and taken:
        raise BadRequest(f"--from says what to continue, and so does {taken[0]}", hint="leave out one of them")
    asked = said.options.get("--output-format", "text")
    verbose = "--verbose" in said.options
    if (asked, verbose) not in _SHOW:
        raise BadRequest(f"claude-code has no output format {asked!r}", hint="text, json or stream-json")
    added = [] if asked == "stream-json" else ["--output-format", "stream-json"]
    added += [] if verbose else ["--verbose"]
    added += ["--resume", resume] if resume else []
    # Of two formats the last one given would win, so the user's goes.
    kept = words if asked == "stream-json" else without_option(words, "--output-format")
    return Plan(
        arguments=(*added, *kept),
        prompt=said.plain[0][1] if said.plain else "",
        show=_SHOW[asked, verbose],
        typed_lines=said.options.get("--input-format") == "stream-json",
        echoes_prompts="--replay-user-messages" in said.options,
        continues=said.options.get("--resume") or said.options.get("-r") or "",
        wants_more="--forward-subagent-text" in said.options,
    )


def _reader(now: int) -> StreamReader:
    from harken.formats.claude_stream import ClaudeStreamReader

    return ClaudeStreamReader()


def _owner(line: dict[str, Any]) -> LineOwner:
    begins = line.get("type") == "system" and line.get("subtype") == "init"
    session = text_of(line.get("session_id")) if begins else ""
    call = text_of(line.get("parent_tool_use_id"))
    return LineOwner(session=session, agent=(text_of(line.get("agent_id")) or call) if call else "", call=call)


class _MoreLines:
    """Which lines are words of a sub-agent. By itself the program prints those of agents in the background alone."""

    def __init__(self) -> None:
        self._background: set[str] = set()

    def __call__(self, line: dict[str, Any]) -> bool:
        if line.get("subtype") == "task_started" and line.get("is_backgrounded"):
            self._background.add(text_of(line.get("tool_use_id")))
        call, message = text_of(line.get("parent_tool_use_id")), line.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        if line.get("type") != "assistant" or not call or call in self._background or not isinstance(content, list):
            return False
        return all(isinstance(block, dict) and block.get("type") in ("text", "thinking") for block in content)


def _shown(line: bytes, found: dict[str, Any], show: str) -> ShownLine:
    if found.get("type") != "result":
        return ShownLine()
    return ShownLine(answer=line if show == "json" else result_text(found))


def result_text(result: dict[str, Any]) -> bytes:
    """The text Claude Code prints for a `result` line."""
    if result.get("subtype") == "success":
        return text_of(result.get("result")).encode("utf-8", "replace")
    errors = result.get("errors")
    why = str(errors[0]) if isinstance(errors, list) and errors else str(result.get("subtype"))
    turns = _TOO_MANY_TURNS.fullmatch(why)
    return (f"Error: Reached max turns ({turns[1]})" if turns else f"Error: {why}").encode("utf-8", "replace")


def _typed(line: dict[str, Any]) -> str:
    """The text of a user message on a line of `--input-format stream-json`."""
    message = line.get("message")
    if line.get("type") != "user" or not isinstance(message, dict):
        return ""
    content = message.get("content")
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    texts = [block.get("text") for block in blocks if isinstance(block, dict) and block.get("type") == "text"]
    return "\n".join(text for text in texts if isinstance(text, str))


def _sub_agent_prompt(call: ToolCall) -> str:
    return str(parse(call.input).get("prompt") or "") if call.name in _SUB_AGENT_TOOLS else ""


def _session_files(home: Path, session: str) -> list[Path]:
    """The file of a session, and those of its sub-agents in the folder of its name."""
    folder = home / "projects"
    return [*sorted(folder.glob(f"*/{session}.jsonl")), *sorted(folder.glob(f"*/{session}/subagents/**/*.jsonl"))]


def _command(call: ToolCall) -> str:
    return text_of(parse(call.input).get("command")) if call.name == "Bash" else ""


LAUNCH = Launcher(
    program="claude",
    plan=_plan,
    reader=_reader,
    owner=_owner,
    shown=_shown,
    template=with_template,
    answers=lambda session: ["-p", *(["--resume", session] if session else [])],
    typed=_typed,
    told=_sub_agent_prompt,
    command=_command,
    session_files=_session_files,
    quiet={
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
    },
    # What `--forward-subagent-text` asks for; versions that do not know the option would refuse to start with it.
    more={"CLAUDE_CODE_FORWARD_SUBAGENT_TEXT": "1"},
    more_lines=_MoreLines,
)
