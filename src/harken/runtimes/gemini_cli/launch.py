"""Starting Gemini CLI under observation: `gemini -p …`, whose stream of JSON lines is read.

Seen with Gemini CLI 0.61.0. It puts piped text before the prompt, with an empty line between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from harken.errors import BadRequest
from harken.events import ToolCall
from harken.runtimes.arguments import OptionTable, option_names, take_apart, without_option
from harken.runtimes.base import Launcher, LineOwner, Plan, ShownLine, StreamReader, Template
from harken.runtimes.display import parse
from harken.text import text_of

_OPTIONS = OptionTable(
    one=option_names(
        "-m --model -p --prompt -i --prompt-interactive --approval-mode --policy --admin-policy --session-file "
        "--session-id --allowed-mcp-server-names --allowed-tools -e --extensions --include-directories -o "
        "--output-format --delete-session"
    ),
    perhaps=option_names("-r --resume -w --worktree"),
)
_CONTINUING = frozenset({"-r", "--resume", "--session-id", "--session-file"})
_STREAM = "stream-json"


def _plan(words: Sequence[str], resume: str) -> Plan:
    said = take_apart(words, _OPTIONS)
    options = said.options
    if not options.keys() & {"-p", "--prompt"}:
        raise BadRequest(
            'only a run that prints its answer can be wrapped: harken run gemini-cli -- -p "…"',
            hint="for a session on the screen, start it as usual and let `harken watch` follow its file",
        )
    taken = sorted(options.keys() & _CONTINUING)
    if resume and taken:
        raise BadRequest(f"--from says what to continue, and so does {taken[0]}", hint="leave out one of them")
    asked = options.get("--output-format") or options.get("-o") or "text"
    if asked not in ("text", _STREAM):
        raise BadRequest(f"a wrapped gemini-cli cannot print {asked!r}", hint=f"text or {_STREAM}")
    kept = list(words)
    if asked == "text":
        kept = without_option(without_option(words, "--output-format"), "-o")
    added = [] if asked == _STREAM else ["--output-format", _STREAM]
    added += ["--resume", resume] if resume else []
    return Plan(
        arguments=(*added, *kept),
        prompt=options.get("--prompt") or options.get("-p") or "",
        show="stream" if asked == _STREAM else "text",
        continues=options.get("--resume") or options.get("-r") or "",
    )


def _template(template: Template, words: Sequence[str]) -> list[str]:
    if template.system_prompt or template.append_system_prompt:
        raise BadRequest(
            "gemini-cli takes no system prompt on its command line",
            hint="write a GEMINI.md, or set GEMINI_SYSTEM_MD to a file",
        )
    return [*(["--model", template.model] if template.model else []), *template.arguments, *words]


def _reader(now: int) -> StreamReader:
    from harken.formats.gemini_stream import GeminiStreamReader

    # Its lines have no ids, and a session may have many runs.
    return GeminiStreamReader(f"{now:x}")


def _owner(line: dict[str, Any]) -> LineOwner:
    session = line.get("session_id") if line.get("type") == "init" else ""
    return LineOwner(session=session if isinstance(session, str) else "")


def _shown(line: bytes, found: dict[str, Any], show: str) -> ShownLine:
    kind = found.get("type")
    if kind == "message" and found.get("role") == "assistant":
        return ShownLine(answer=text_of(found.get("content")).encode("utf-8", "replace"), joins=True)
    if kind == "tool_result":
        return ShownLine(answer=b"\n", joins=True)  # what it says next stands on a line of its own
    if kind == "error":
        return ShownLine(note=f"[ERROR] {text_of(found.get('message'))}")
    problem = found.get("error")
    if kind == "result" and found.get("status") != "success" and isinstance(problem, dict):
        return ShownLine(note=text_of(problem.get("message")))
    return ShownLine()


def _session_files(home: Path, session: str) -> Iterator[Path]:
    """The files of a session, as the program names them and as we do, and those of its sub-agents."""
    for digits in (session[:8], session[-12:]):
        yield from sorted((home / "tmp").glob(f"*/chats/session-*-{digits}.jsonl"))
    yield from sorted((home / "tmp").glob(f"*/chats/{session}/*.jsonl"))


def _full_prompt(prompt: str, piped: str) -> str:
    return f"{piped}\n\n{prompt}" if prompt and piped else prompt or piped


def _command(call: ToolCall) -> str:
    return text_of(parse(call.input).get("command")) if call.name == "run_shell_command" else ""


LAUNCH = Launcher(
    program="gemini",
    plan=_plan,
    reader=_reader,
    owner=_owner,
    shown=_shown,
    template=_template,
    full_prompt=_full_prompt,
    command=_command,
    session_files=_session_files,
    quiet={"GEMINI_TELEMETRY_ENABLED": "false"},
)
