"""Which project a session belongs to: the folder of the first record that names one.

Programs write the folder they work in as `cwd`: Claude Code and streams in each record, Codex in the payload of
`session_meta` and `turn_context`. A tool's arguments may have a `cwd` as well, so only these two places count.
"""

from __future__ import annotations

from harken.events.base import clean

from .kit.jsonl import is_overlong, parse

_KEY = b'"cwd"'


def project_of(data: bytes) -> str:
    """The folder, as the record has it; empty where no record names one."""
    at = data.find(_KEY)
    while at >= 0:
        start, end = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
        end = len(data) if end < 0 else end
        if not is_overlong(end - start) and (folder := _folder(data[start:end])):
            return folder
        at = data.find(_KEY, end)
    return ""


def _folder(line: bytes) -> str:
    record = parse(line)
    payload = record.get("payload") if record is not None else None
    for place in (record, payload):
        if isinstance(place, dict) and isinstance(folder := place.get("cwd"), str) and folder:
            return clean(folder)
    return ""
