"""The fields of a document that no event tells, in their places in the document that is written of its events."""

from __future__ import annotations

import re
from collections.abc import Mapping

from harken.formats.std.beside import aside, laid
from harken.formats.std.checking.rules import validate
from harken.formats.std.document import Document, Json, dumps, kind_of
from harken.formats.std.json_text import loads_kept
from harken.formats.std.parts import text

_CALL_PATH = re.compile(r"(?:sub_sessions\[(\d+)\]\.)?tool_calls\[(\d+)\]")


def with_beside(data: Json, beside: Json, records: Mapping[str, str]) -> tuple[Json, list[str]]:
    """A document with these fields, and the paths of what had to be filled in. What breaks the standard there is mended
    as a repair does it, else set aside. `records` are the records of its calls, by their ids."""
    if not beside:
        return data, []
    made = laid(data, beside, records)
    if not (wrong := _wrong_paths(made)):
        return made, []
    for _ in range(2):
        mended, filled_in = _mended(made)
        if not (left := _wrong_paths(mended)):
            return mended, filled_in
        made = laid(data, _without(beside, left, mended, records), records)
    return laid(data, _without(beside, wrong, laid(data, beside, records), records), records), []


def _mended(made: Json) -> tuple[Json, list[str]]:
    from harken.formats.std.repairing.repair import mended  # most documents need none

    made = loads_kept(dumps(made))  # it has parts in common with what the document said
    document, changes = mended(Document(data=made, kind=kind_of(made)))
    return document.data, [change.path for change in changes if change.derived]


def _without(beside: Json, wrong: set[str], made: Json, records: Mapping[str, str]) -> Json:
    """The fields, with those at these paths of the document set aside."""
    return aside(beside, wrong, {records.get(name, "") for name in _calls_at(made, wrong)})


def _wrong_paths(made: Json) -> set[str]:
    return {one.path for one in validate(Document(data=made, kind=kind_of(made))) if one.level == "error"}


def _calls_at(made: Json, paths: set[str]) -> set[str]:
    """The ids of the calls in which these paths lie."""
    places = [found.groups() for path in paths if (found := _CALL_PATH.match(path))]
    lists = [(made if sub is None else made["sub_sessions"][int(sub)], int(at)) for sub, at in places]
    return {text(holder["tool_calls"][at], "call_id") for holder, at in lists}
