"""What a runtime's command line says, and what a wrapper has to add to it. Pure: lists of words in, a plan out.

The wrapper needs three things from the words the user typed: the prompt (the stream does not repeat it), how the
answer was to be shown, and where to put words of its own. The tables name the options that take a value; an option
nobody here knows is taken to be a switch, as most of them are.

Seen with Claude Code 2.1.325 and Codex 0.166.0. Claude Code puts piped text behind the prompt after a newline; Codex
wraps it in a `<stdin>` block.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from harken.errors import BadRequest


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_CLAUDE_ONE = _names(
    "--agent --agents --append-system-prompt --append-system-prompt-file --autocompact --debug-file --effort "
    "--environment --fallback-model --input-format --json-schema --max-budget-usd --max-turns --model -n --name "
    "--output-format --permission-mode --permission-prompt-tool --plugin-dir --plugin-url --session-id "
    "--setting-sources --settings --system-prompt --system-prompt-file --system-prompt-snapshot "
    "--remote-control-session-name-prefix"
)
_CLAUDE_MANY = _names(
    "--add-dir --allowedTools --allowed-tools --betas --disallowedTools --disallowed-tools --file --mcp-config --tools"
)
_CLAUDE_PERHAPS = _names(
    "--cloud -d --debug --from-pr --prompt-suggestions --remote-control -r --resume --teleport -w --worktree"
)
_CODEX_ONE = _names(
    "-c --config --enable --disable -m --model --local-provider -p --profile -s --sandbox -C --cd --add-dir "
    "--thread-source --cyber-access-program --output-schema --color -o --output-last-message -a "
    "--ask-for-approval"
)
_CODEX_MANY = frozenset(("-i", "--image"))
_NONE: frozenset[str] = frozenset()


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How to start the runtime, and what to make of its output."""

    runtime: str
    program: str
    arguments: tuple[str, ...]
    prompt: str = ""
    """The prompt given as an argument."""
    show: str = "text"
    """What the user is to see: the final `text`, its last result as `json`, all lines as an `array`, the `stream`."""
    typed_lines: bool = False
    """Whether stdin is a stream of JSON lines rather than text of the prompt."""

    def full_prompt(self, piped: str) -> str:
        """The prompt as the runtime puts it together from its argument and what was piped in."""
        if not piped or self.typed_lines:
            return self.prompt
        if not self.prompt:
            return piped
        if self.runtime == "codex":
            return f"{self.prompt}\n\n<stdin>\n{piped.removesuffix(chr(10))}\n</stdin>"
        return f"{self.prompt}\n{piped}"


class _Words(msgspec.Struct, frozen=True):
    """A command line taken apart: plain words with their places, and options with their values."""

    plain: list[tuple[int, str]]
    options: dict[str, str]


def _take_apart(
    words: Sequence[str], one: frozenset[str], many: frozenset[str], perhaps: frozenset[str] = _NONE
) -> _Words:
    plain: list[tuple[int, str]] = []
    options: dict[str, str] = {}
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word == "--":
            plain += list(enumerate(words[at:], at))
            break
        if not word.startswith("-") or word == "-":
            plain.append((at - 1, word))
            continue
        name, equals, value = word.partition("=")
        if equals:
            options[name] = value
            continue
        options[word] = ""
        if word in one and at < len(words):
            options[word] = words[at]
            at += 1
        elif word in many or word in perhaps:
            while at < len(words) and not words[at].startswith("-"):
                options[word] = words[at]
                at += 1
                if word in perhaps:
                    break
    return _Words(plain, options)


def plan_run(runtime: str, words: Sequence[str], *, resume: str = "") -> Plan:
    """The plan for the words that followed `--`; `resume` is a session that is to be continued."""
    if runtime == "claude-code":
        return _plan_claude(list(words), resume)
    if runtime == "codex":
        return _plan_codex(list(words), resume)
    raise BadRequest(f"{runtime!r} is no runtime that can be run", hint="there are: claude-code, codex")


def _plan_claude(words: list[str], resume: str) -> Plan:
    said = _take_apart(words, _CLAUDE_ONE, _CLAUDE_MANY, _CLAUDE_PERHAPS)
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
    show = {"text": "text", "json": "array" if verbose else "json", "stream-json": "stream"}.get(asked)
    if show is None:
        raise BadRequest(f"claude-code has no output format {asked!r}", hint="text, json or stream-json")
    added = [] if asked == "stream-json" else ["--output-format", "stream-json"]
    added += [] if verbose else ["--verbose"]
    added += ["--resume", resume] if resume else []
    return Plan(
        runtime="claude-code",
        program="claude",
        arguments=(*added, *_without(words, "--output-format", keep=asked == "stream-json")),
        prompt=said.plain[0][1] if said.plain else "",
        show=show,
        typed_lines=said.options.get("--input-format") == "stream-json",
    )


def _without(words: list[str], option: str, *, keep: bool) -> list[str]:
    """The words without an option and its value; the last one given would win otherwise."""
    if keep:
        return words
    left: list[str] = []
    skip = False
    for at, word in enumerate(words):
        if word == "--":
            return left + words[at:]
        if skip:
            skip = False
        elif word == option:
            skip = True
        elif not word.startswith(option + "="):
            left.append(word)
    return left


def _plan_codex(words: list[str], resume: str) -> Plan:
    said = _take_apart(words, _CODEX_ONE, _CODEX_MANY)
    if not said.plain or said.plain[0][1] not in ("exec", "e"):
        raise BadRequest(
            'only `exec` can be wrapped: harken run codex -- exec "…"',
            hint="for a session on the screen, start it as usual and let `harken watch` follow its file",
        )
    start = said.plain[0][0] + 1
    plain = said.plain[1:]
    command = plain[0][1] if plain and plain[0][1] in ("resume", "fork", "review") else ""
    if resume and command:
        raise BadRequest(f"--from says what to continue, and so does `{command}`", hint="leave out one of them")
    if command:
        plain = plain[1:]
        if command != "review" and "--last" not in said.options:
            plain = plain[1:]
    prompt_at, prompt = plain[0] if plain else (len(words), "")
    arguments = [*words[:start], *([] if "--json" in said.options else ["--json"])]
    arguments += [*words[start:prompt_at], *(["resume", resume] if resume else []), *words[prompt_at:]]
    return Plan(
        runtime="codex",
        program="codex",
        arguments=tuple(arguments),
        prompt="" if prompt == "-" else prompt,
        show="stream" if "--json" in said.options else "text",
    )
