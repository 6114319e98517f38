"""A document made from a session, checked on the way."""

from __future__ import annotations

from typing import Any

from harken.formats.std.checking.rules import validate
from harken.formats.std.document import read, write
from harken.formats.std.exporting.from_events import Exported, SessionFacts, document_of
from support.std_sessions import Told

FACTS = SessionFacts(session="s-1", runtime="claude-code", title="The clock")


def exported(told: Told, kind: Any = None, facts: SessionFacts = FACTS) -> Exported:
    """The document, which is valid, and reads as it was written."""
    made = document_of(told.events, facts, kind)
    assert [] == [one for one in validate(made.document) if one.level == "error"]
    assert made.document.data == read(write(made.document)).data
    return made


def without_more(value: Any) -> Any:
    """A value without what only Harken writes, and times with one spelling."""
    if isinstance(value, dict):
        return {key: without_more(one) for key, one in value.items() if not key.startswith("x_harken")}
    if isinstance(value, list):
        return [without_more(one) for one in value]
    return value.replace(".000000Z", "Z") if isinstance(value, str) else value
