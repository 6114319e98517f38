"""`harken std repair`: session documents mended, never in place."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from harken.errors import BadRequest
from harken.files import names_in

from . import completing, ui
from .options import PATH, is_there, json_option
from .std_validate import group_of
from .targets import check_target, note_file, target_folder, write_target

if TYPE_CHECKING:
    from harken.api.std_repair import StdRepairAnswer

_ALIKE = 5
"""How many changes of one kind are shown; who wants them all takes --json."""
MOST_LEFT = 20
"""How many errors that are left are shown."""


@click.command("repair")
@click.argument("files", nargs=-1, required=True, type=PATH, metavar="FILE...", shell_complete=completing.files)
@click.option(
    "-o",
    "--output",
    metavar="FILE|DIR",
    shell_complete=completing.files,
    help="Where to write (`-`: stdout); in a folder it is named by date, number and title",
)
@click.option("--force", is_flag=True, help="Replace a FILE that is there already; never the original")
@json_option
@click.pass_context
def repair_command(ctx: click.Context, files: tuple[str, ...], output: str | None, force: bool, as_json: bool) -> int:
    """Mend session documents, and say what was changed

    Errors are mended where there is one way to do so (marked *), or where the rest of the document tells (+). What
    cannot be mended (!) stays as it is. Without -o nothing is written: what would be changed is told. The original is
    never changed. A FILE may be a folder, and `-` is stdin. The exit code is 0 where every document is valid
    afterwards and 1 where one is not; it is written all the same, unless it is no session document. For example:

        harken std repair 2026-01-31-001-mend-it.json

        harken std repair 2026-01-31-001-mend-it.json -o mended.json

        harken std repair data/sessions -o data/mended
    """
    target = _Target(ctx, files, output, force=force, as_json=as_json)
    told: list[StdRepairAnswer] = []
    for answer in _answers(files, target, as_json):
        done = target.write(answer)
        told.append(msgspec.structs.replace(done, body=b""))
        if as_json:
            ui.json_line(done)
        elif not done.problem:
            _draw(done, stderr=target.is_stdout)
    return _sum_up(told, as_json, is_named=output is not None)


class _Target:
    """Where documents are written: nowhere, to stdout, to a file, or to a folder."""

    def __init__(
        self, ctx: click.Context, files: tuple[str, ...], output: str | None, *, force: bool, as_json: bool
    ) -> None:
        from harken.repo import absolute_location, default_location

        from .config import store_of

        self._store = absolute_location(store_of(ctx) or str(default_location()))
        self._files = files
        self.is_stdout = output == "-"
        self.path = None if output in (None, "-") else Path(str(output))
        self.folder = None if self.path is None else target_folder(str(output))
        self._force = force and self.folder is None  # a name that was free belongs to whoever took it meanwhile
        several = len(files) > 1 or (files[0] != "-" and is_there(files[0]) and Path(files[0]).is_dir())
        if several and output is not None and self.folder is None:
            what = "stdout" if self.is_stdout else output
            hint = "make a folder, or name one that is there"
            raise BadRequest(f"several documents need a folder, and {what} is none", hint=hint)
        if self.is_stdout and as_json:
            raise BadRequest(
                "a document and a report cannot both go to stdout", hint="name a file with -o, or leave out --json"
            )
        if self.path is not None and self.folder is None:
            self._check(self.path)

    @property
    def name(self) -> str:
        """What the file will be called, where that was said."""
        return self.path.name if self.path is not None and self.folder is None else ""

    def taken(self) -> tuple[str, ...] | None:
        """The names in the folder; None where it is no folder."""
        return None if self.folder is None else names_in(self.folder)

    def write(self, answer: StdRepairAnswer) -> StdRepairAnswer:
        """Write a document, and say where; what is no session document is not written."""
        if not answer.kind:
            return answer
        if self.is_stdout:
            ui.raw(answer.body if not ui.is_terminal() else _safe(answer.body))
            return msgspec.structs.replace(answer, output="-")
        if self.path is None:
            return answer
        path = self.folder / answer.name if self.folder is not None else self.path
        self._check(path, answer.file)
        write_target(path, answer.body, force=self._force)
        note_file(path)
        return msgspec.structs.replace(answer, output=str(path))

    def _check(self, path: Path, file: str = "-") -> None:
        """Refuse to write over an original, by whatever name, over the store, and over another file unless asked to."""
        target = path.resolve()  # what is written to: in `none/../x.json` a folder that is not there is passed over
        for original in (*self._files, file):
            if original != "-" and is_there(original) and target.exists() and target.samefile(original):
                raise BadRequest(f"{path} is the original", hint="name another file; nothing was written")
        check_target(path, self._store, force=self._force)


def _safe(body: bytes) -> bytes:
    from harken.text import safe_json

    return safe_json(body.decode()).encode()


def _answers(files: tuple[str, ...], target: _Target, as_json: bool) -> Iterator[StdRepairAnswer]:
    from harken.api.std_repair import StdRepairRequest, std_repair

    body = sys.stdin.buffer.read() if "-" in files else None
    paths = tuple(file for file in files if file != "-")
    request = StdRepairRequest(paths=paths, body=body, name=target.name, taken=target.taken())
    with ui.progress("repairing", disable=as_json or target.is_stdout) as bar:
        yield from std_repair(None, request, moved=bar.reach)


def _draw(answer: StdRepairAnswer, *, stderr: bool) -> None:
    """A file: what became of it, and below it what was changed and what is left."""
    state = "valid" if answer.valid else "not valid"
    changes = ui.count(len(answer.changes), "change") if answer.changes else "nothing to change"
    written = f", written to {answer.output}" if answer.output not in ("", "-") else ""
    head = f"{answer.file}: {changes}, {state}{' afterwards' if answer.changes else ''}{written}"
    if stderr:
        ui.note(head)
    else:
        ui.line(head, "strong")
    for mark, text in _lines(answer):
        if stderr:
            ui.note(f"  {mark} {text}")
        else:
            ui.fact(f"  {mark}", text, 4)


def _lines(answer: StdRepairAnswer) -> Iterator[tuple[str, str]]:
    """What there is to say of a document, each with its mark."""
    shown: Counter[tuple[str, str]] = Counter()
    for change in answer.changes:
        shown[group_of(change)] += 1
        if shown[group_of(change)] <= _ALIKE:
            where = f"{change.path}: " if change.path else ""
            yield "+" if change.derived else "*", f"{where}{change.message} [{change.rule}]"
    for (rule, path), number in shown.items():
        if number > _ALIKE:
            yield " ", f"and {number - _ALIKE} more of {rule} at {path or 'the text'} (--json lists them all)"
    left = [finding for finding in answer.findings if finding.level == "error"]
    for finding in left[:MOST_LEFT]:
        where = f"line {finding.line}, column {finding.column}" if finding.line is not None else finding.path
        yield "!", f"{where + ': ' if where else ''}{finding.message} [{finding.rule}]"
    if len(left) > MOST_LEFT:
        yield " ", f"and {ui.count(len(left) - MOST_LEFT, 'more error')} (`harken std validate` lists them)"


def _sum_up(told: list[StdRepairAnswer], as_json: bool, *, is_named: bool) -> int:
    """`is_named`: whether it was said where to write."""
    from harken.api.std_validate import unreadable_error

    read = [answer for answer in told if not answer.problem]
    unread = [answer for answer in told if answer.problem]
    is_bad = not all(answer.valid for answer in read)
    if not as_json:
        for answer in unread if is_bad else unread[1:]:
            ui.warn(f"cannot read {answer.file}: {answer.problem}")
        _note_sum(read, is_named=is_named)
    if is_bad:
        return 1
    if unread:
        raise unreadable_error(unread[0].file, unread[0].problem)
    return 0


def _note_sum(read: list[StdRepairAnswer], *, is_named: bool) -> None:
    if not read:
        return
    valid, written = sum(answer.valid for answer in read), sum(bool(answer.output) for answer in read)
    said = f"{written} written" if is_named else "nothing was written"
    if not is_named and any(answer.changes for answer in read):
        said += ": name a file or a folder with -o"
    ui.note(f"{ui.count(len(read), 'document')}, {valid} valid afterwards, {said}")
