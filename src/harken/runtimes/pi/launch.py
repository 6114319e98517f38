"""Starting pi under observation: `pi -p …`, whose stream of JSON lines is read.

Seen with pi 0.73.1 and 0.87.1. It puts what is piped in straight before the prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harken.errors import BadRequest
from harken.events import ToolCall
from harken.formats.pi.scan import session_in
from harken.runtimes.arguments import OptionTable, option_names, take_apart, with_template
from harken.runtimes.base import Launcher, LineOwner, Plan, ShownLine, StreamReader
from harken.runtimes.display import parse

_OPTIONS = OptionTable(
    one=option_names(
        "--mode --provider --model --api-key --system-prompt --append-system-prompt --session --session-id --fork "
        "--session-dir --models -t --tools -xt --exclude-tools --thinking --export -e --extension --skill "
        "--prompt-template --theme --use-theme --tui-mode -n --name"
    ),
    perhaps=option_names("--list-models"),
)
_CONTINUING = ("--session", "--fork", "-c", "--continue", "-r", "--resume", "--no-session")
_PRINTING = ("-p", "--print")


def _plan(words: Sequence[str], resume: str) -> Plan:
    said = take_apart(words, _OPTIONS)
    mode = said.options.get("--mode", "")
    if mode == "rpc" or not (mode == "json" or any(word in said.options for word in _PRINTING)):
        raise BadRequest(
            'only `-p` can be wrapped: harken run pi -- -p "…"',
            hint="for a session on the screen, start it as usual and let `harken watch` follow its file",
        )
    if resume and (chosen := next((word for word in _CONTINUING if word in said.options), "")):
        raise BadRequest(f"--from says what to continue, and so does `{chosen}`", hint="leave out one of them")
    # A word that begins with @ is a file.
    prompt = next((word for _, word in said.plain if not word.startswith("@")), "")
    ours = [*([] if mode == "json" else ["--mode", "json"]), *(["--session", resume] if resume else [])]
    kept = [word for at, word in enumerate(words) if not _is_text_mode(words, at)]
    return Plan(
        arguments=(*ours, *kept),
        prompt=prompt,
        show="stream" if mode == "json" else "text",
        continues=_named(said.options.get("--session", "")),
    )


def _is_text_mode(words: Sequence[str], at: int) -> bool:
    """Whether a word is part of `--mode text`, which says what is shown, and would keep the stream from coming."""
    text = ["--mode", "text"]
    return list(words[at : at + 2]) == text or (at > 0 and list(words[at - 1 : at + 1]) == text)


def _named(session: str) -> str:
    """The session that somebody names: by its id, or by its file."""
    return session_in(session) if session.endswith(".jsonl") else session


def _reader(now: int) -> StreamReader:
    from harken.formats.pi.stream import PiStreamReader

    # No line of the stream has an id, and a session may be gone on with.
    return PiStreamReader(f"{now:x}")


def _owner(line: dict[str, Any]) -> LineOwner:
    session = line.get("id") if line.get("type") == "session" else ""
    return LineOwner(session=session if isinstance(session, str) else "")


def _shown(line: bytes, found: dict[str, Any], show: str) -> ShownLine:
    message = found.get("message")
    if found.get("type") != "message_end" or not isinstance(message, dict) or message.get("role") != "assistant":
        return ShownLine()
    if message.get("stopReason") in ("error", "aborted"):
        return ShownLine(note=str(message.get("errorMessage") or f"Request {message['stopReason']}"))
    content = message.get("content")
    texts = [block.get("text") for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    said = "\n".join(text for text in texts if isinstance(text, str))
    return ShownLine(answer=said.encode("utf-8", "replace"), replaces=True) if said else ShownLine()


def _session_files(home: Path, session: str) -> list[Path]:
    return sorted((home / "sessions").glob(f"*/*_{session}.jsonl"))


def _command(call: ToolCall) -> str:
    command = parse(call.input).get("command") if call.name == "bash" else ""
    return command if isinstance(command, str) else ""


LAUNCH = Launcher(
    program="pi",
    plan=_plan,
    reader=_reader,
    owner=_owner,
    shown=_shown,
    template=with_template,
    quiet={"PI_SKIP_VERSION_CHECK": "1", "PI_TELEMETRY": "0"},
    full_prompt=lambda prompt, piped: piped.strip() + prompt,
    command=_command,
    asking_session=lambda environ: environ.get("PI_SESSION_ID", ""),
    session_files=_session_files,
)
