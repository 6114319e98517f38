"""Mending what a reviewer hands in: findings that are texts or lack fields, and a review that does not say how tests
and type check went."""

from __future__ import annotations

import re
from typing import Any

from harken.formats.std.document import Json
from harken.formats.std.parts import inner, text, values
from harken.formats.std.spellings import plain_word

from .mending import Mender, Spot, path_steps

_SEVERITIES = ("critical", "major", "minor", "suggestion")
_NEAREST = {
    "high": "major", "error": "major", "important": "major", "medium": "minor", "moderate": "minor", "low": "minor",
    "warning": "minor", "trivial": "suggestion", "info": "suggestion", "nit": "suggestion", "optional": "suggestion",
    "严重": "critical", "致命": "critical", "重要": "major", "高": "major", "中": "minor", "一般": "minor",
    "低": "minor", "轻微": "minor", "建议": "suggestion",
}  # fmt: skip
_CATEGORIES = {
    "security": "security 安全 injection xss csrf secret password vulnerability 漏洞",
    "performance": "performance 性能 slow latency memory",
    "style": "style 风格 naming format formatting lint typo readability maintainability 命名 格式 规范 可读性 可维护性",
    "test": "test tests testing coverage 测试",
    "bug": "bug crash crashes error exception null undefined leak race correctness 错误 崩溃 异常 缺陷 正确性",
}
_TAG = re.compile(r"^\W{0,3}([^\W\d]{1,20})\W{0,3}[:：\])】]")
_PATH = re.compile(r"(?<![\w/.])((?:[\w@.-]+/)*[\w@-][\w@.-]*\.[A-Za-z]{1,5})(?::([0-9]{1,7}))?(?![\w/])")
_WEB = re.compile(r"\b[a-z]+://\S+")


def finding(spot: Spot) -> bool:
    """A finding, or a change that is asked for, which is a text: its description."""
    return isinstance(spot.value, str) and spot.put({"description": spot.value}, "the text is its `description`")


def finding_id(spot: Spot) -> bool:
    if spot.value is not None or spot.take(("id",), str):
        return isinstance(spot.value, str)
    name = spot.doc.free_id("finding", "finding-{:03}".format, lambda: _finding_ids(spot.doc.data))
    return spot.put(name, "made from its place", derived=True)


def _finding_ids(data: Json) -> list[Any]:
    outputs = [inner(sub, "output") for sub in values(data.get("sub_sessions"))]
    return [one.get("finding_id") for output in outputs for one in values(output.get("findings"))]


def severity(spot: Spot) -> bool:
    """The word that it has, or that its text begins with; else by the verdict: who approves has found nothing that is
    critical or major, who does not has."""
    for said, why in (
        (
            spot.value or spot.holder.get("level") or spot.holder.get("priority"),
            "the nearest word that the standard has",
        ),
        (_tag(spot), "the word that its description begins with"),
    ):
        word = plain_word(said)
        if word := word if word in _SEVERITIES else _NEAREST.get(word, ""):
            return spot.put(word, why, derived=True)
    verdict = text(_output(spot), "verdict")
    if spot.value is not None or verdict not in ("approved", "changes_requested", "rejected"):
        return False
    return spot.put(
        "minor" if verdict == "approved" else "major", f"nobody said; the verdict is {verdict}", derived=True
    )


def category(spot: Spot) -> bool:
    """What its words are about: nothing else tells it."""
    told = text(spot.holder, "type") if spot.value is None else plain_word(spot.value)
    words = set(re.findall(r"[a-z]+|[\u4e00-\u9fff]+", f"{told} {text(spot.holder, 'description')}".lower()))
    for name, telling in _CATEGORIES.items():
        if any(word in words or (not word.isascii() and any(word in one for one in words)) for word in telling.split()):
            return spot.put(name, "by its words", derived=True)
    return spot.value is None and spot.put("logic", "nobody said", derived=True)


def change_id(spot: Spot) -> bool:
    if spot.value is not None or spot.take(("id",), str):
        return isinstance(spot.value, str)
    name = spot.doc.free_id("change", "change-{:03}".format, lambda: _change_ids(spot.doc.data))
    return spot.put(name, "made from its place", derived=True)


def _change_ids(data: Json) -> list[Any]:
    outputs = [inner(sub, "output") for sub in values(data.get("sub_sessions"))]
    return [one.get("change_id") for output in outputs for one in values(output.get("required_changes"))]


def change_priority(spot: Spot) -> bool:
    """By the verdict: who does not approve asks for what is required; who does, leaves it to the other."""
    verdict = text(_output(spot), "verdict")
    if spot.value is not None or verdict not in ("approved", "changes_requested", "rejected"):
        return False
    word = "consider" if verdict == "approved" else "must_fix"
    return spot.put(word, f"nobody said; the verdict is {verdict}", derived=True)


def related_findings(spot: Spot) -> bool:
    return spot.value is None and spot.put([], "none are named", derived=True)


def description(spot: Spot) -> bool:
    return spot.value is None and spot.take(("message", "text", "issue", "detail", "comment", "title", "summary"), str)


def finding_place(spot: Spot) -> bool:
    """The file that the finding is in: what it says under another name, the only one that its words name, or the only
    one that was changed."""
    holder: Json = spot.value
    for name in ("path", "file_path", "filename", "file_name"):
        if found := text(holder, name):
            return _put_file(spot, holder, found, f"as `{name}` says")
    named = set(_PATH.findall(_WEB.sub("", text(holder, "description"))))
    if len({file for file, _ in named}) == 1:
        file, line = max(named, key=lambda one: len(one[1]))
        if line and len(named) == 1 and holder.get("line") is None:
            holder["line"] = int(line)
        return _put_file(spot, holder, file, "the only file that its description names", derived=True)
    changed = spot.doc.once("changed files", lambda: _changed_files(spot.doc.data))
    if len(changed) == 1 and not named:
        return _put_file(spot, holder, next(iter(changed)), "the only file that was changed", derived=True)
    return False


def _put_file(spot: Spot, holder: Json, file: str, why: str, *, derived: bool = False) -> bool:
    there = Spot(doc=spot.doc, rule=spot.rule, path=f"{spot.path}.file", holder=holder, key="file")
    return there.put(file, why, derived=derived)


def _changed_files(data: Json) -> set[str]:
    summary = inner(data, "summary")
    holders = [summary, *(inner(inner(sub, "output"), "changes") for sub in values(data.get("sub_sessions")))]
    listed = [holder.get(key) for holder in holders for key in ("files_created", "files_modified")]
    entries = [one for files in listed if isinstance(files, list) for one in files]
    return {one if isinstance(one, str) else text(one, "path") for one in entries} - {""}


def review_id(spot: Spot) -> bool:
    if spot.value is not None or spot.take(("id",), str):
        return isinstance(spot.value, str)
    name = spot.doc.free_id("review", "review-{:03}".format, lambda: _review_ids(spot.doc.data))
    return spot.put(name, "made from its place", derived=True)


def _review_ids(data: Json) -> list[Any]:
    return [inner(sub, "output").get("review_id") for sub in values(data.get("sub_sessions"))]


def verification(spot: Spot) -> bool:
    """A review that does not say how tests and type check went is none as the standard has it: any agent's output."""
    if isinstance(spot.value, dict):
        return False
    return _as_generic(spot, "it does not say how tests and type check went, as a review must")


_LISTS = ("files_created", "files_modified", "files_deleted")


def _as_generic(spot: Spot, why: str) -> bool:
    output = _output(spot)
    if output.get("output_type") is not None or not spot.doc.derives:
        return False
    output["output_type"] = "generic"
    said = f'`output_type` was missing, is "generic": {why}'
    spot.doc.tell(spot.rule, spot.path.partition(".output")[0] + ".output.output_type", said, derived=True)
    return True


def _output(spot: Spot) -> Json:
    return inner(spot.doc.data["sub_sessions"][path_steps(spot.path)[1]], "output")


def _tag(spot: Spot) -> str:
    found = _TAG.match(text(spot.holder, "description"))
    return found[1] if found else ""


def changed_files(spot: Spot) -> bool:
    """The changes of a developer that are a list of files, or stand in the output itself. An output without any is none
    of a developer as the standard has it: any agent's."""
    said, output = spot.value, _output(spot)
    if said is None:
        made = {key: output[key] if isinstance(output.get(key), list) else [] for key in _LISTS}
        if any(map(made.get, _LISTS)):
            return spot.put(made, "the files that stand beside it")
        return _as_generic(spot, "it does not say what was changed, as a developer's must")
    if isinstance(said, list) and all(isinstance(one, str | dict) for one in said):
        made = {"files_created": [], "files_modified": said, "files_deleted": []}
        return spot.put(made, "nobody said which were new: they were changed", derived=True)
    return False


def file_list(spot: Spot) -> bool:
    """The files of one kind, which may stand under another name."""
    if spot.value is not None:
        return False
    return spot.take(_OTHER_LISTS[spot.key], list) or spot.put([], "none are named", derived=True)


_OTHER_LISTS = {
    "files_created": ("created", "added", "new", "new_files", "created_files"),
    "files_modified": ("modified", "changed", "updated", "edited", "modified_files"),
    "files_deleted": ("deleted", "removed", "deleted_files"),
}


REVIEW: dict[str, Mender] = {
    "output.review_id": review_id,
    "output.verification": verification,
    "output.findings[]": finding,
    "output.findings[].finding_id": finding_id,
    "output.findings[].severity": severity,
    "output.findings[].category": category,
    "output.findings[].description": description,
    "output.required_changes[]": finding,
    "output.required_changes[].change_id": change_id,
    "output.required_changes[].priority": change_priority,
    "output.required_changes[].related_findings": related_findings,
    "output.required_changes[].description": description,
    "output.changes": changed_files,
    "output.changes.files_created": file_list,
    "output.changes.files_modified": file_list,
    "output.changes.files_deleted": file_list,
}
