"""What a reviewer checked: tests and type checks that it ran, by how their commands ended."""

from __future__ import annotations

import re
from collections.abc import Iterable

from harken.events import ToolCall, ToolResult
from harken.formats.std.arguments import params_of
from harken.formats.std.document import Json

_TESTS = re.compile(
    r"(?:\S*/)?(?:pytest|tox|nox|jest|vitest|mocha|ctest|rspec|phpunit)\b|"
    r"(?:\S*/)?python[\d.]* -m (?:pytest|unittest)\b|(?:npm|pnpm|yarn|bun)(?: run)? test\b|"
    r"(?:cargo|go|mvn|gradle|\./gradlew|make|mix|dotnet|swift|deno|bazel|just) test\b"
)
_TYPES = re.compile(
    r"(?:\S*/)?(?:mypy|pyright|tsc|basedpyright|flow)\b|(?:\S*/)?python[\d.]* -m mypy\b|cargo check\b|go vet\b|"
    r"(?:npm|pnpm|yarn|bun)(?: run)? (?:type-?check|tsc)\b|npx tsc\b|(?:make|just) type-?check\b"
)
_SETTING_UP = re.compile(r"(?:cd|export|source|\.|set)(?:\s|$)")
_PREFIX = re.compile(r"(?:(?:[A-Za-z_]\w*=\S*|uv run|poetry run|npx|env|time|nice)\s+)*")
_EXIT = re.compile(r"(?:exit(?:ed with)? code|exit status):?\s*(-?\d+)", re.I)


def verification_of(calls: Iterable[tuple[ToolCall, ToolResult | None]]) -> Json:
    """`tests_passed` and `type_check_passed`, as far as calls tell; the last run of each counts."""
    found: Json = {}
    for call, result in calls:
        command = _command(call)
        if result is None or not command or re.search(r"[|;\n&]", command.replace("&&", "")):
            continue  # how it ended says nothing of each part
        passed = not _failed(result)
        parts = [_PREFIX.sub("", part.strip(), count=1) for part in command.split("&&")]
        runs = [part for part in parts if not _SETTING_UP.match(part)]
        for key, pattern in (("tests_passed", _TESTS), ("type_check_passed", _TYPES)):
            if any(pattern.match(part) for part in runs) and (passed or len(runs) == 1):
                found[key] = passed
    return found


def _command(call: ToolCall) -> str:
    params = params_of(call.input)
    given = params.get("command", params.get("cmd"))
    if isinstance(given, list):
        words = [word for word in given if isinstance(word, str)]
        return words[2] if len(words) == 3 and words[1].startswith("-") else " ".join(words)
    return given if isinstance(given, str) else ""


def _failed(result: ToolResult) -> bool:
    ended = _EXIT.search(result.output[:500])
    return result.is_error or (ended is not None and int(ended[1]) != 0)
