"""Repair: a document that breaks rules made into one that does not, as far as that needs no guess.

It goes round and round: what the rules find is mended place by place, until a round changes nothing. So only what is an
error is changed, and a document without errors stays as it is, to the byte. Every change is told, and says whether the
new value is only another way to write the old one or was derived from the rest of the document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from harken.errors import BadRecord
from harken.formats.std.checking.rules import check_bytes, validate
from harken.formats.std.checking.schema import shown
from harken.formats.std.document import Document, dumps, loads, parse_session
from harken.formats.std.findings import OLD, DocumentChange, DocumentFinding
from harken.formats.std.json_text import HiddenValue, Json, hidden_values
from harken.formats.std.spellings import says_nothing

from . import (
    mend_agents,
    mend_annotations,
    mend_call_ids,
    mend_calls,
    mend_copies,
    mend_keys,
    mend_messages,
    mend_places,
    mend_session,
    mend_sub_sessions,
)
from .broken_json import mend
from .mend_shapes import by_type
from .mending import Mender, Mending, Spot, pattern_of, spot_at

_MOST_ROUNDS = 12
_OF_SHAPE = ("missing-field", "wrong-type")
_FIELD_RULES = (*_OF_SHAPE, "unknown-value")
_TIME = "unreadable-time"

_PARTS: tuple[tuple[re.Pattern[str], dict[str, Mender]], ...] = (
    (
        re.compile(r"(?:sub_sessions\[\]\.)?tool_calls\[\]\."),
        {**mend_calls.MENDERS, "subagent_info": mend_sub_sessions.named_alone},
    ),
    (re.compile(r"phase_annotations\[\]\."), mend_annotations.MENDERS),
    (re.compile(r"sub_sessions\[\]\.(?=agent\.agent_id$)"), mend_sub_sessions.SUB),
    (
        re.compile(
            r"collaboration\.(?:orchestrator|participants\[\])\.|sub_sessions\[\]\.agent\.|messages\[\]\.(?:from|to)_agent\."
        ),
        mend_agents.AGENT,
    ),
    (re.compile(r"collaboration\."), mend_agents.COLLABORATION),
    (re.compile(r"sub_sessions\[\]\."), mend_sub_sessions.SUB),
    (re.compile(r"messages\[\]\."), mend_messages.MESSAGE),
    (re.compile(r"summary\.agents(?:\[\]|\.\w+(?:\[\])?)\."), dict.fromkeys(
        ("agent_id", "agent_type", "tool_calls_count", "duration_ms", "status"), mend_session.agent_field
    )),
    (re.compile(""), {**mend_session.SESSION, "collaboration": mend_agents.collaboration}),
)  # fmt: skip
"""Where a path begins to what mends its fields; the first that fits counts."""
_BY_RULE: dict[str, Mender] = {
    **mend_sub_sessions.BY_RULE,
    **mend_messages.BY_RULE,
    "duplicate-id": mend_call_ids.repeated_id,
    "range-order": mend_annotations.range_order,
}


class Repaired(msgspec.Struct, frozen=True, kw_only=True):
    """A document after its repair."""

    data: bytes
    """Its bytes; the same as before where nothing was changed."""
    document: Document | None
    """None where the bytes are no session document, and could not be made one."""
    changes: list[DocumentChange]
    findings: list[DocumentFinding]
    """What is still to be said of it."""

    @property
    def is_valid(self) -> bool:
        """Whether no error is left."""
        return not any(finding.level == "error" for finding in self.findings)


def repair(data: bytes, name: str = "", *, session_id: str = "") -> Repaired:
    """Repair the bytes of a document. `name` is that of its file. A `session_id` is given to the document, and whatever
    names the old one follows."""
    checked, changes = check_bytes(data, name), list[DocumentChange]()
    if checked.document is None and (mended := mend(data)) is not None:
        data, changes = mended.data, mended.changes
        checked = check_bytes(data, name)
    if checked.document is None and (inside := unwrapped(data)) is not None:
        data, change = inside
        checked, changes = check_bytes(data, name), [*changes, change]
    document = checked.document
    if document is None or (checked.is_valid and session_id in ("", document.data.get("session_id"))):
        return Repaired(data=data, document=document, changes=changes, findings=checked.findings)
    doc = _mending(document, name)
    if not checked.is_valid:
        _mend(doc, checked.findings, name)
    if session_id:
        mend_session.rename(doc, session_id)
    if not doc.changes:
        return Repaired(data=data, document=document, changes=changes, findings=checked.findings)
    if document.generation != "v3":
        changes += _read_as_newest(loads(data), document)
    _keep_hidden(doc, hidden_values(data))
    return _written(doc, changes, name)


def reshaped(document: Document) -> tuple[Document, list[DocumentChange]]:
    """A document in the shape that the standard has, as far as it needs nothing that the document does not say: keys,
    lists, sub-sessions and the fields of messages under the names that they have there. The document is used up."""
    doc = Mending(_unshared(document), derives=False)
    _rounds(doc, validate(document), "")
    return msgspec.structs.replace(document, data=doc.data), doc.changes


def mended(document: Document) -> tuple[Document, list[DocumentChange]]:
    """A document with its errors mended, as far as a repair mends them, for whoever writes it anyway. It is used up."""
    doc = _mending(document, "")
    _rounds(doc, validate(document), "")
    return msgspec.structs.replace(document, data=doc.data), doc.changes


def unwrapped(data: bytes) -> tuple[bytes, DocumentChange] | None:
    """The document that a list or an object holds, and nothing else; None where there is none."""
    try:
        value = loads(data)
    except BadRecord:
        return None
    held = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    if len(held) != 1 or not isinstance(held[0], dict) or check_bytes(made := dumps(held[0])).document is None:
        return None
    what = f"`{next(iter(value))}`" if isinstance(value, dict) else "a list"
    said = f"the document was the only thing in {what}, and stands by itself now"
    return made, DocumentChange(rule="not-a-session", path="", message=said)


_NEWEST = {"v1": "steps", "early-v2": "phases", "v2": "phases"}
"""Generation to the field that the newest has others for."""


def _read_as_newest(data: Json, document: Document) -> Iterator[DocumentChange]:
    """What a document of an older generation is written with, beside the fields that it had."""
    for key in ("task_title", "tool_calls", "phase_annotations"):
        if document.data.get(key) is not None and document.data[key] != data.get(key):
            source = "title" if key == "task_title" else _NEWEST[document.generation]
            said = f"`{key}` was added: what `{source}` says, as the newest generation has it"
            yield DocumentChange(rule="old-generation", path=key, message=said, derived=key == "phase_annotations")


def _keep_hidden(doc: Mending, hidden: list[HiddenValue]) -> None:
    """Values that stood under a key which stands once more: a document that is written anew has each key once."""
    if not hidden:
        return
    kept = doc.data.setdefault("x_harken_hidden", [])
    if not isinstance(kept, list):
        kept = doc.data["x_harken_hidden"] = [kept]
    for one in hidden:
        kept.append({"path": one.path, "value": one.value})
        said = f"{shown(one.value)} stood under a key that stands once more; it is kept in `x_harken_hidden`"
        doc.tell("duplicate-key", one.path, said)


def _written(doc: Mending, changes: list[DocumentChange], name: str) -> Repaired:
    data = dumps(doc.data)
    checked = check_bytes(data, name)
    return Repaired(data=data, document=checked.document, changes=[*changes, *doc.changes], findings=checked.findings)


def mark_repairable(findings: list[DocumentFinding], document: Document, name: str) -> list[DocumentFinding]:
    """The findings, each of the errors with whether a repair mends it: whether it is gone afterwards. The document is
    used up: a second one beside it would be too much of a large file."""
    doc = _mending(document, name)
    left = [one.path for one in _rounds(doc, findings, name) if one.level == "error"]
    whole = {path for one in left for path in _above(one)}
    return [
        msgspec.structs.replace(one, repairable=one.path not in whole) if one.level == "error" else one
        for one in findings
    ]


def _above(path: str) -> Iterable[str]:
    """The path and those of what it lies in."""
    yield path
    for found in re.finditer(r"[.\[]", path):
        yield path[: found.start()]


def _mending(document: Document, name: str) -> Mending:
    return Mending(_unshared(document), name.rpartition("/")[2].removesuffix(".json"))


def _unshared(document: Document) -> dict[str, object]:
    """The object to work on. What was read from an older generation may hold one thing in two places."""
    if document.generation == "v3":
        return document.data
    return loads(dumps(document.data))  # type: ignore[no-any-return]


def _rounds(doc: Mending, findings: list[DocumentFinding], name: str) -> list[DocumentFinding]:
    """Mend round by round what was found; what is found in the end."""
    for _ in range(_MOST_ROUNDS):
        before = len(doc.changes)
        # In every round: what was an object by ids is a list only now, and is looked into.
        renamed = mend_keys.rename_keys(doc)
        if lifted := mend_places.lift_nested(doc) | mend_agents.gather_team(doc):
            mend_keys.rename_keys(doc)
        once = mend_copies.drop_copies(doc)
        spread = mend_agents.spread_types(doc)
        if renamed | lifted | once | spread | mend_messages.split_messages(doc):
            findings = validate(_read_again(doc, name), name)
        _round(doc, findings)
        if len(doc.changes) == before and not mend_messages.split_messages(doc, everybody=True):
            break
        findings = validate(_read_again(doc, name), name)
    return findings


def _read_again(doc: Mending, name: str) -> Document:
    """The document as a reader sees it after a round. Calls that were given an id may be those of a phase, which then
    has an annotation; that is mended, too, and not left to the next repair."""
    document = parse_session(doc.data, name)
    if document.data is not doc.data:
        known = doc.data.get("phase_annotations") or []
        added = {key: value for key, value in document.data.items() if doc.data.get(key) is not value}
        added["phase_annotations"] = document.data["phase_annotations"][len(known) :]
        made = loads(dumps(added))  # nothing in two places, see `_unshared`
        doc.data = {**document.data, **made, "phase_annotations": [*known, *made["phase_annotations"]]}
    return msgspec.structs.replace(document, data=doc.data)


def _mend(doc: Mending, findings: list[DocumentFinding], name: str) -> None:
    _rounds(doc, findings, name)
    mend_annotations.split_annotations(doc)
    if doc.changes:
        mend_session.updated_at(doc)


def _round(doc: Mending, findings: Iterable[DocumentFinding]) -> None:
    """Mend what was found; the status of the session first, since what else is asked for depends on whether it goes
    on, and the summary last, since it is counted from the rest. Who leads is found out when tasks and messages are
    where they should be, and before anybody is listed who was not."""
    doc.start_round()
    before = len(doc.changes)
    spots = [spot for one in findings if one.level == "error" and (spot := spot_at(doc, one.rule, one.path))]
    if any(spot.path == "status" and _mend_spot(spot) for spot in spots):
        return
    if doc.derives and _mend_told_times(doc, spots):
        return
    for turn in range(4):
        for spot in spots:
            if _turn(spot) == turn:
                _mend_spot(spot)
        if not turn and doc.derives:
            mend_agents.played_by_one(doc)
        if len(doc.changes) > before:
            return


def _mend_told_times(doc: Mending, spots: Iterable[Spot]) -> bool:
    """Read the times that stand in other spellings or under other names, before any is made from the others."""
    before, doc.derives = len(doc.changes), False
    for spot in spots:
        if spot.key in mend_session.TIMES and spot.rule in (*_OF_SHAPE, _TIME):
            _ = _mend_field(spot) if spot.value is None else mend_session.time(spot)
    doc.derives = True
    return len(doc.changes) > before


_LEADER = "collaboration.orchestrator"
_LISTING = ("unlisted-agent", "unknown-agent")
"""Rules by which agents come to the participants: who leads is none of those that nobody listed."""


_LAST = ("sequence", "reply", "unknown-sub-session", "unknown-finding")
"""Rules that are mended when nothing else is left: until then somebody may get the id that is named, and messages are
called by their places."""
_LAST_PLACES = re.compile(r"summary|agent\.model_id\Z|.*\.output\.verdict\Z", re.S)
"""Places, likewise: what is said of the agent tells who leads, and messages tell what a review came to."""
_OF_AGENT = re.compile(r"(?:sub_sessions\[\]\.)?tool_calls\[\]\.subagent_info")
"""What a call says of an agent, likewise: until sub-sessions are linked nobody can tell that it started none."""


def _turn(spot: Spot) -> int:
    if spot.path.startswith(_LEADER) and not mend_agents.is_told(spot.value if spot.path == _LEADER else spot.holder):
        return 1
    if spot.rule in _LISTING or (spot.path == "collaboration.participants" and spot.value is None):
        return 2
    return 3 if spot.rule in _LAST or _LAST_PLACES.match(spot.path) or _says_nothing_of_agent(spot) else 0


def _says_nothing_of_agent(spot: Spot) -> bool:
    """Whether a place is what a call says of an agent without saying which: no object, or one without values."""
    is_alone = spot.key == "subagent_info" or (isinstance(spot.holder, dict) and not any(spot.holder.values()))
    return is_alone and _OF_AGENT.match(pattern_of(spot.path)) is not None


def _mend_spot(spot: Spot) -> bool:
    if not spot.doc.derives and spot.rule not in (*_OF_SHAPE, _TIME):
        return False
    if spot.rule in _BY_RULE:
        return _BY_RULE[spot.rule](spot)
    if spot.rule == _TIME:
        return mend_session.time(spot) or (says_nothing(spot.value) and _mend_no_time(spot))
    if spot.rule == "empty-field":
        return _mend_empty(spot)
    if spot.rule not in _FIELD_RULES:
        return False
    return _mend_field(spot) or (spot.rule == "unknown-value" and _mend_said_nothing(spot))


def _mend_said_nothing(spot: Spot) -> bool:
    """A word of a closed list that says nothing (`N/A`) is as good as missing."""
    was = spot.value
    if not says_nothing(was) or not isinstance(spot.holder, dict) or not _mend_empty(spot):
        return False
    if was and spot.key in spot.holder:
        spot.holder.setdefault(OLD + spot.key, was)
    return True


def _mend_empty(spot: Spot) -> bool:
    """What is empty is mended as if it were missing."""
    was, spot.holder[spot.key] = spot.value, None
    if _mend_field(spot):
        return True
    spot.holder[spot.key] = was
    return False


def _mend_no_time(spot: Spot) -> bool:
    """A time that says nothing is as good as missing; where it may be, it is."""
    was = spot.value
    if spot.key in ("completed_at", "updated_at"):
        return spot.set_aside()
    is_mended = _mend_empty(spot)
    if is_mended and was:
        spot.holder.setdefault(OLD + spot.key, was)
    return is_mended


def _mend_field(spot: Spot) -> bool:
    if spot.key in mend_session.TIMES and mend_session.time(spot):
        return True
    path = pattern_of(spot.path)
    for begins, menders in _PARTS:
        if found := begins.match(path):
            mender = menders.get(path[found.end() :])
            return (mender is not None and mender(spot)) or by_type(spot)
    return False
