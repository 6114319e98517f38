"""Mending entries that stand in a list twice, word for word: one of them goes, since it says nothing more."""

from __future__ import annotations

from harken.formats.std.checking.schema import shown
from harken.formats.std.copies import LISTS, calls_by_id, lists_with_copies
from harken.formats.std.document import Json
from harken.formats.std.parts import objects

from .mending import Mending

_KEYS = dict(LISTS)


def drop_copies(doc: Mending) -> bool:
    """Leave every such entry in its list once; whether there were any."""
    doc.start_round()
    before = len(doc.changes)
    _drop_in(doc, doc.data, "", None)
    called = calls_by_id(doc.data)
    for place, sub in objects(doc.data.get("sub_sessions")):
        _drop_in(doc, sub, f"sub_sessions[{place}].", called)
    return len(doc.changes) > before


def _drop_in(doc: Mending, part: Json, path: str, called: Json | None) -> None:
    for name, copies in list(lists_with_copies(part, called)):
        kept, moved = list[object](), dict[int, int]()
        for place, entry in enumerate(part[name]):
            first = copies.get(place, place)
            moved[place] = len(kept) if first == place else moved.get(first, 0) if first is not None else 0
            if place not in copies:
                kept.append(entry)
        doc.move(path + name, moved)
        for place, first in copies.items():
            entry = shown(part[name][place][_KEYS[name]])
            if first is None:
                said = (
                    f"{entry} is the call that started the sub-session, word for word; it stands among the main calls"
                )
                doc.tell("duplicate-id", path + name, said)
            else:
                said = f"{entry} stood in the list once more, word for word; it stands there once"
                doc.tell("duplicate-id", f"{path}{name}[{moved[first]}]", said)
        part[name] = kept
