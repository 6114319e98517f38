"""`harken std validate`: what is wrong with session documents."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from . import completing, ui
from .options import PATH, json_option

if TYPE_CHECKING:
    from harken.api.std_repair import DocumentChangeAnswer
    from harken.api.std_validate import FindingAnswer, StdValidateAnswer

_ALIKE = 5
"""How many findings of one kind are shown; who wants them all takes --json."""
_NAMES = frozenset({"file-name", "file-suffix", "session-id-form"})
"""Rules about what a document is called."""
_PLACE = re.compile(r"\[\d+\]")


@click.command("validate")
@click.argument("files", nargs=-1, required=True, type=PATH, metavar="FILE...", shell_complete=completing.files)
@click.option("--strict", is_flag=True, help="Exit with 5 where there are errors or warnings")
@json_option
def validate_command(files: tuple[str, ...], strict: bool, as_json: bool) -> int:
    """Say what is wrong with session documents

    A FILE may be a folder: every *.json in it and below it is checked. `-` is stdin. Each finding is an error, a
    warning or a note; a document without errors is valid. A * marks what `harken std repair` mends (a name: where it
    writes into a folder). The exit code is 0 where every document is valid, 1 where one is not, and under --strict 5
    where there is an error or a warning. For example:

        harken std validate data/sessions
        harken std validate 2026-01-31-001-mend-the-clock.json --strict
    """
    from harken.api.std_validate import unreadable_error

    told: list[StdValidateAnswer] = []
    for answer in _answers(files, as_json):
        told.append(answer)
        if as_json:
            ui.json_line(answer)
        elif not answer.problem:
            _draw(answer)
    unread = [answer for answer in told if answer.problem]
    is_bad = any(answer.errors for answer in told) or (strict and any(answer.warnings for answer in told))
    if not as_json:
        for answer in unread if is_bad else unread[1:]:
            ui.warn(f"cannot read {answer.file}: {answer.problem}")
        _sum_up(told)
    if is_bad:
        return 5 if strict else 1
    if unread:
        raise unreadable_error(unread[0].file, unread[0].problem)
    return 0


def _answers(files: tuple[str, ...], as_json: bool) -> Iterator[StdValidateAnswer]:
    from harken.api.std_validate import StdValidateRequest, std_validate

    with ui.progress("checking", disable=as_json) as bar:
        for file in files:
            request = StdValidateRequest(paths=(file,))
            if file == "-":
                request = StdValidateRequest(body=sys.stdin.buffer.read())
            yield from std_validate(None, request, moved=bar.reach)


def _draw(answer: StdValidateAnswer) -> None:
    """A file: what it is, and below it what was found."""
    state = "valid" if answer.valid else "not valid"
    said = ", ".join(_counts(answer.errors, answer.warnings, answer.notes))
    kind = answer.kind if answer.generation in ("", "v3") else f"{answer.kind} ({answer.generation})"
    ui.line(f"{answer.file}: " + ", ".join(filter(None, (state, kind, said))), "strong")
    shown: Counter[tuple[str, str]] = Counter()
    for finding in answer.findings:
        shown[group_of(finding)] += 1
        if shown[group_of(finding)] <= _ALIKE:
            _draw_finding(finding)
    for (rule, path), number in shown.items():
        if number > _ALIKE:
            ui.fact("", f"and {number - _ALIKE} more of {rule} at {path or 'the document'} (--json lists them all)", 12)


def group_of(finding: FindingAnswer | DocumentChangeAnswer) -> tuple[str, str]:
    """What findings have in common that say the same of different places in a list."""
    return finding.rule, _PLACE.sub("[]", finding.path)


def _draw_finding(finding: FindingAnswer) -> None:
    where = finding.path
    if finding.line is not None:
        where = f"line {finding.line}, column {finding.column}"
    mark = "*" if finding.repairable else " "
    ui.fact(f"  {finding.level:<8}{mark}", f"{where + ': ' if where else ''}{finding.message} [{finding.rule}]", 12)


def _counts(errors: int, warnings: int, notes: int) -> Iterable[str]:
    numbers = ((errors, "error"), (warnings, "warning"), (notes, "note"))
    return [ui.count(number, noun) for number, noun in numbers if number]


def _sum_up(told: list[StdValidateAnswer]) -> None:
    read = [answer for answer in told if not answer.problem]
    if not read:
        return
    valid = sum(answer.valid for answer in read)
    found = _counts(*(sum(getattr(one, name) for one in read) for name in ("errors", "warnings", "notes")))
    ui.note(f"{ui.count(len(read), 'document')}, {valid} valid" + "".join(f", {one}" for one in found))
    mends = [finding for answer in read for finding in answer.findings if finding.repairable]
    if mends:
        # A document keeps the name that is given with -o; only in a folder does it get a new one.
        names = "; a name only where OUT is a folder" if any(one.rule in _NAMES for one in mends) else ""
        ui.note(f"`harken std repair FILE -o OUT` mends {len(mends)} of what was found (*){names}")
