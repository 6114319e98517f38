"""Usage, counted once.

A response is written over several lines which all repeat its `usage`, forks copy the lines, and progress records
embed those of a sub-agent. So a figure belongs to its (message id, request id); of several the one with the largest
output stands; messages the harness made up do not count; an embedded one counts where its id is seen nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from harken.formats.facts import Tokens as Counted

from .records import Body, Line, Tokens

Key = tuple[str, str]
"""(API message id, request id)."""
SYNTHETIC = "<synthetic>"
LARGEST = 1 << 53
"""No count of tokens reaches this; beyond it programs that know only floating numbers lose count."""


class UsageRow(msgspec.Struct, frozen=True, gc=False):
    """What one API message cost in tokens."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    model: str = ""
    nested: bool = False
    """Known only from a progress record."""

    def beats(self, other: UsageRow) -> bool:
        """Whether this row stands where both claim the same key."""
        if self.nested != other.nested:
            return other.nested
        return self.output > other.output


class UsageBook:
    """Takes in usage wherever it occurs and keeps each once."""

    def __init__(self) -> None:
        self._rows: dict[Key, UsageRow] = {}

    def add(self, key: Key, row: UsageRow) -> None:
        """Note a figure; the larger output stands."""
        other = self._rows.get(key)
        if other is None or row.beats(other):
            self._rows[key] = row

    def add_record(self, line: Line, where: str) -> None:
        """Note what an assistant record says; `where` names it if the API gave it no id."""
        body = line.message
        if body is None or body.model == SYNTHETIC:
            return
        tokens = body.usage or _old_fields(line)
        if tokens is None:
            return
        key = (body.id or where, line.requestId or "")
        # Most lines only repeat what the first line of their message said.
        known = self._rows.get(key)
        if known is None or known.nested or (tokens.output_tokens or 0) > known.output:
            self._rows[key] = row_of(tokens, body.model)

    def add_nested(self, line: Line) -> None:
        """Note what a progress record embeds."""
        inner = line.data.message if line.data is not None else None
        if inner is None or isinstance(inner, str) or inner.message is None:
            return
        body: Body = inner.message
        if body.usage is not None and body.id and body.model != SYNTHETIC:
            self.add((body.id, inner.requestId or ""), row_of(body.usage, body.model, nested=True))

    def rows(self) -> dict[Key, UsageRow]:
        """All of it, each once."""
        return settle(self._rows)


def tokens_of(row: UsageRow) -> Counted:
    """The row in the form every runtime's scan answers with."""
    return Counted(row.input, row.output, row.cache_read, row.cache_write, row.nested)


def row_of(tokens: Tokens, model: str | None = None, *, nested: bool = False) -> UsageRow:
    """The figures of a `usage` object."""
    return UsageRow(
        _figure(tokens.input_tokens),
        _figure(tokens.output_tokens),
        _figure(tokens.cache_read_input_tokens),
        _figure(tokens.cache_creation_input_tokens),
        model or "",
        nested,
    )


def _figure(value: int | None) -> int:
    """A count that can be one; what a hostile file claims beyond that is none."""
    return value if value is not None and 0 < value < LARGEST else 0


def settle(rows: Mapping[Key, UsageRow]) -> dict[Key, UsageRow]:
    """Without the embedded figures whose message is also known from a record of its own."""
    named = {key[0] for key, row in rows.items() if not row.nested}
    return {key: row for key, row in rows.items() if not (row.nested and key[0] in named)}


def _old_fields(line: Line) -> Tokens | None:
    """Early builds are said to have written the figures beside the message."""
    if line.inputTokens is None and line.outputTokens is None:
        return None
    return Tokens(line.inputTokens, line.outputTokens, line.cacheReadInputTokens, line.cacheCreationInputTokens)
