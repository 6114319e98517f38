"""Mending what a reviewer hands in: findings that are texts or lack fields, and a review that does not say how tests
and type check went."""

from __future__ import annotations

import re
from typing import Any

from harken.formats.std.checking.schema import shown
from harken.formats.std.document import Json
from harken.formats.std.parts import inner, text, values
from harken.formats.std.spellings import known_status, known_word, plain_word, says_nothing
from harken.formats.std.verdicts import ReviewVerdicts

from .mend_shapes import by_type
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
_NOTHING_FOUND = re.compile(
    r"no (?:\w+ ){0,2}(?:issues?|findings?|problems?|concerns?|bugs?)(?: (?:were )?\w+)?"
    r"|(?:没有|无|未)(?:发现)?(?:任何)?问题"
)
_VERDICTS = ("approved", "changes_requested", "rejected")
_WEB = re.compile(r"\b[a-z]+://\S+")


def finding(spot: Spot) -> bool:
    """A finding, or a change that is asked for, which is a text: its description."""
    return isinstance(spot.value, str) and spot.put({"description": spot.value}, "the text is its `description`")


def findings(spot: Spot) -> bool:
    """What was found: by its severity, or in words that say that it is nothing. An output without findings and without
    a verdict is no review."""
    said = spot.value
    if said is None and spot.take(("issues", "problems"), list):
        return True
    if isinstance(said, dict) and said and all(plain_word(key) in (*_SEVERITIES, *_NEAREST) for key in said):
        made = [
            {**(one if isinstance(one, dict) else {"description": one}), "severity": key}
            for key, listed in said.items()
            for one in (listed if isinstance(listed, list) else [listed])
        ]
        if all(isinstance(one.get("description", ""), str) for one in made):
            return spot.put(made, "its entries, each of the severity under which it stood")
    if isinstance(said, str) and (says_nothing(said) or _NOTHING_FOUND.fullmatch(said.strip(" .!。！").lower())):
        return spot.put([], "the words say that there are none", derived=True)
    if said is not None or not isinstance(spot.holder.get("verification"), dict):
        return False
    if known_word(spot.holder.get("verdict"), _VERDICTS):
        return spot.put([], "none are named", derived=True)
    return False


def verdict(spot: Spot) -> bool:
    """What its agent's message says of this review. An output without any is no review as the standard has it."""
    if spot.value is not None:
        return False
    told = spot.doc.once("told verdicts", lambda: ReviewVerdicts(spot.doc.data))
    if said := told.of(spot.doc.data["sub_sessions"][path_steps(spot.path)[1]]):
        return spot.put(said, "as its message says", derived=True)
    return _as_generic(spot, "it states no verdict, as a review must")


def finding_id(spot: Spot) -> bool:
    if spot.value is not None or spot.take(("id",), str):
        return isinstance(spot.value, str)
    if name := spot.doc.once(("missing finding", path_steps(spot.path)[1]), lambda: _missing_finding(_output(spot))):
        return spot.put(name, "the only id that a change names and no finding has", derived=True)
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
    if verdict not in _VERDICTS:
        return False
    why = "nobody said" if spot.value is None else "nobody knows what that means"
    return spot.put("minor" if verdict == "approved" else "major", f"{why}; the verdict is {verdict}", derived=True)


def category(spot: Spot) -> bool:
    """What its words are about: nothing else tells it."""
    told = text(spot.holder, "type") if spot.value is None else plain_word(spot.value)
    words = set(re.findall(r"[a-z]+|[\u4e00-\u9fff]+", f"{told} {text(spot.holder, 'description')}".lower()))
    for name, telling in _CATEGORIES.items():
        if any(word in words or (not word.isascii() and any(word in one for one in words)) for word in telling.split()):
            return spot.put(name, "by its words", derived=True)
    why = "nobody said" if spot.value is None else "no category of the standard is meant by it"
    return (spot.value is None or isinstance(spot.value, str)) and spot.put("logic", why, derived=True)


def _missing_finding(output: Json) -> str:
    """The id of the only finding without one, where changes name one that is not there; else empty."""
    ids = [text(one, "finding_id") for one in values(output.get("findings"))]
    related = [one.get("related_findings") for one in values(output.get("required_changes"))]
    listed = [name for names in related if isinstance(names, list) for name in names if isinstance(name, str)]
    named = {*listed} - {*ids, ""}
    return named.pop() if len(named) == 1 and ids.count("") == 1 else ""


def unknown_finding(spot: Spot) -> bool:
    """A change is about a finding that is not there: it is about the others; what it named is kept beside."""
    steps = path_steps(spot.path)
    output: Json = spot.doc.data["sub_sessions"][steps[1]]["output"]
    change = output["required_changes"][steps[-3]]
    known = spot.doc.once(
        ("findings", steps[1]), lambda: {text(f, "finding_id") for f in values(output.get("findings"))}
    )
    path = spot.path.rpartition("[")[0]
    whole = Spot(doc=spot.doc, rule=spot.rule, path=path, holder=change, key="related_findings")
    left = [name for name in whole.value if not isinstance(name, str) or name in known]
    odd = ", ".join(shown(name) for name in whole.value if name not in left)
    return not odd or whole.put(left, f"without {odd}, which no finding is called", keep=True)


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
    if spot.value is not None or verdict not in _VERDICTS:
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
    listed = holder.get("files")
    if isinstance(listed, list) and listed:
        first = listed[0] if isinstance(listed[0], str) else text(listed[0], "path")
        return bool(first) and _put_file(spot, holder, first, "the first of its `files`", derived=True)
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


def location(spot: Spot) -> bool:
    """A place that is written as a path, with a line or without."""
    found = _PATH.fullmatch(spot.value.strip()) if isinstance(spot.value, str) else None
    if found is None:
        return False
    line = {"line_start": int(found[2])} if found[2] else {}
    return spot.put({"file": found[1], **line}, "the text is its `file`", keep=True)


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


_UNCHECKED = "it does not say how tests and type check went, as a review must"


def verification(spot: Spot) -> bool:
    """A review that does not say how tests and type check went is none as the standard has it: any agent's output."""
    return not isinstance(spot.value, dict) and _as_generic(spot, _UNCHECKED)


def check_flag(spot: Spot) -> bool:
    """One of the two that a review has to say, and does not."""
    names = {"tests_passed": ("tests_pass",), "type_check_passed": ("typecheck_passed", "type_checks_passed")}
    return spot.take(names.get(spot.key, ()), bool) or _as_generic(spot, _UNCHECKED)


def check_result(spot: Spot) -> bool:
    """How a check went, in a word."""
    passed = spot.value if isinstance(spot.value, bool) else {"success": True, "failed": False}.get(_status(spot))
    return passed is not None and spot.put({"passed": passed}, "whether it passed", keep=True)


def _status(spot: Spot) -> str:
    return known_status(spot.value) or ""


def self_review(spot: Spot) -> bool:
    """What a developer says of its own work need not be there; the part of it that is there stands beside."""
    if by_type(spot):
        return True
    whole = Spot(doc=spot.doc, rule=spot.rule, path=spot.path.rpartition(".")[0], holder=_output(spot), key=_OWN)
    return whole.value is not None and whole.set_aside("which does not say how tests and type check went")


_OWN = "self_review"


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
    if isinstance(said, str):
        return _as_generic(spot, "it does not say which files were changed, as a developer's must")
    if isinstance(said, list) and all(isinstance(one, str | dict) for one in said):
        made = {"files_created": [], "files_modified": said, "files_deleted": []}
        return spot.put(made, "nobody said which were new: they were changed", derived=True)
    return False


def file_list(spot: Spot) -> bool:
    """The files of one kind, which may stand under another name."""
    if spot.value is not None:
        return False
    return spot.take(_OTHER_LISTS[spot.key], list) or spot.put([], "none are named", derived=True)


def changed_path(spot: Spot) -> bool:
    return spot.value is None and spot.take(("file", "file_path", "filename", "file_name", "name"), str)


_OTHER_LISTS = {
    "files_created": ("created", "added", "new", "new_files", "created_files"),
    "files_modified": ("modified", "changed", "updated", "edited", "modified_files"),
    "files_deleted": ("deleted", "removed", "deleted_files"),
}


REVIEW: dict[str, Mender] = {
    "output.review_id": review_id,
    "output.verdict": verdict,
    "output.verification": verification,
    "output.verification.tests": check_result,
    "output.verification.type_check": check_result,
    "output.verification.lint": check_result,
    "output.self_review.tests_run": self_review,
    "output.self_review.tests_passed": self_review,
    "output.self_review.type_check_passed": self_review,
    "output.findings": findings,
    "output.findings[]": finding,
    "output.findings[].finding_id": finding_id,
    "output.findings[].severity": severity,
    "output.findings[].category": category,
    "output.findings[].description": description,
    "output.findings[].location": location,
    "output.required_changes[]": finding,
    "output.required_changes[].change_id": change_id,
    "output.required_changes[].priority": change_priority,
    "output.required_changes[].related_findings": related_findings,
    "output.required_changes[].description": description,
    "output.changes": changed_files,
    "output.changes.files_created": file_list,
    "output.changes.files_modified": file_list,
    "output.changes.files_deleted": file_list,
    "output.changes.files_created[].path": changed_path,
    "output.changes.files_modified[].path": changed_path,
    "output.changes.files_deleted[].path": changed_path,
}
