"""`harken export`: a session as a document to show to others."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import completing, ui
from .options import CORRUPT, SESSION, is_file, json_option, pass_repo_unless_file, store_file
from .secret_rules import note_masked, own_rules
from .targets import check_target, make_target_folder, target_folder, write_target

if TYPE_CHECKING:
    from harken.api.export import ExportCounts, ExportPiece, ExportReport
    from harken.repo import Repo

FORMS = ("html", "md", "txt", "jsonl", "trace")
TABLES = "parquet"
"""Not a session: every view of the index, into a folder."""


@click.command("export")
@click.argument("session", metavar="REF|SESSION|FILE|DIR", type=SESSION, shell_complete=completing.session_or_file)
@click.option("--to", type=click.Choice((*FORMS, TABLES)), help="What to write (default: as -o FILE ends)")
@click.option(
    "-o",
    "--output",
    metavar="FILE|DIR",
    shell_complete=completing.files,
    help="Where to write (default: stdout, also `-`); in a folder it is called after the session",
)
@click.option("--force", is_flag=True, help="Replace a FILE that is there already")
@click.option(
    "--agents/--no-agents",
    "with_agents",
    default=True,
    help="Tell of sub-agents where they were asked for, or not at all",
)
@click.option("--reveal", is_flag=True, help="Keep secrets; without this they are masked")
@json_option
@click.pass_context
def export_command(ctx: click.Context, /, session: str, to: str | None, **settings: Any) -> Any:
    """Write a session as a page, Markdown, text, JSON lines or a trace, without secrets

    A session is written whole; with a commit, branch or tag, as it stood there. Keys and passwords that a rule knows
    (`harken secrets`) are masked; how many is said on stderr and at the end of the document. An HTML
    file is the page itself with the session in it: it opens from disk, and needs nothing else. A trace opens in
    Perfetto (ui.perfetto.dev). Pictures of a Markdown file lie in a folder beside it. With --json the report, and
    not the document, goes to stdout. For example:

        harken export 3f2a --to md -o session.md

        harken export review -o review.html

        harken export 3f2a --to trace -o session.json

        harken export 3f2a --to txt | less

    With --to parquet every view that `harken sql` reads is written as a file into the folder DIR, for DuckDB and other
    engines (pip install 'harken[analytics]'):

        harken export --to parquet tables
    """
    if to == TABLES:
        from .export_tables import export_tables

        return ctx.invoke(export_tables, folder=session, **settings)
    return ctx.invoke(_export, session=session, to=to, **settings)


@pass_repo_unless_file
def _export(
    repo: Repo,
    session: str,
    to: str | None,
    output: str | None,
    force: bool,
    with_agents: bool,
    reveal: bool,
    as_json: bool,
) -> int:
    from harken.api.export import ExportRequest, export

    from .config import prices

    path = None if output in (None, "-") else Path(str(output))
    folder = None if path is None else target_folder(str(output))
    form = to or _form_of(path)
    path = path if folder is None else folder / f"{_name(session)}.{form}"
    pictures = path.with_name(f"{path.stem}-pictures") if path is not None and form == "md" else None
    for target in (target for target in (path, pictures) if target is not None):
        check_target(target, store_file(repo), force=force)
    place = {"file": session} if is_file(session) else {"ref": session}
    request = ExportRequest(
        **place,
        to=form,
        agents=with_agents,
        reveal=reveal,
        own_rules=own_rules(),
        pictures=pictures.name if pictures is not None else "",
        prices=prices() or "",
    )
    # On a screen that shows the document a bar would stand in the middle of it.
    with ui.progress("exporting", disable=as_json or (path is None and sys.stdout.isatty())) as bar:
        document = _Document(export(repo, request, moved=bar.say), pictures, force=force)
        if path is not None:
            document.write(path)
        else:
            for piece in document.pieces():
                if not as_json:
                    ui.raw(piece)
    assert document.report is not None  # the last of the answers
    if as_json:
        ui.json_line(document.report)
    else:
        _remark(document.report.report)
    return CORRUPT if document.report.report.unread else 0


def _form_of(path: Path | None) -> str:
    form = path.suffix.lstrip(".").lower() if path is not None else ""
    if form not in FORMS:
        raise click.UsageError(f"say what to write: --to {'|'.join(FORMS)}, or -o FILE that ends in one of these")
    return form


def _name(session: str) -> str:
    """What the file of a session is called in a folder; the word may be anything, a path too."""
    return re.sub(r"[^A-Za-z0-9._\-]+", "-", Path(session).name or session).strip("-.")[:80] or "session"


class _Document:
    """A document as it comes, with the pictures beside it."""

    def __init__(self, answers: Iterable[ExportPiece | ExportReport], folder: Path | None, *, force: bool) -> None:
        self._answers, self._folder, self._force = answers, folder, force
        self._made: list[Path] = []
        self.report: ExportReport | None = None

    def pieces(self, size: int = 1 << 16) -> Iterator[bytes]:
        """The document in pieces of about this size; pictures are written on the way."""
        from harken.api.export import ExportReport

        waiting, held = list[bytes](), 0
        for one in self._answers:
            if isinstance(one, ExportReport):
                self.report = one
            elif one.picture:
                self._picture(one.picture, one.body)
            else:
                waiting.append(one.body)
                held += len(one.body)
                if held >= size:
                    yield b"".join(waiting)
                    waiting, held = [], 0
        yield b"".join(waiting)

    def write(self, path: Path) -> None:
        """Write it whole or not at all."""
        try:
            write_target(path, self.pieces(), force=self._force)
        except BaseException:
            for made in reversed(self._made):
                made.rmdir() if made.is_dir() else made.unlink(missing_ok=True)
            raise

    def _picture(self, name: str, data: bytes) -> None:
        if self._folder is None:
            return
        path = self._folder / name
        if not self._folder.exists():
            make_target_folder(self._folder)
            self._made.append(self._folder)
        if not path.exists():
            self._made.append(path)
        write_target(path, data, force=self._force)


def _remark(counts: ExportCounts) -> None:
    note_masked(counts.masked)
    if absent := counts.left_out.get("pictures"):
        ui.note(f"not shown: {ui.count(absent, 'picture')}")
    for loss in counts.losses:
        ui.note(f"lost: {loss.what} ×{loss.count}: {loss.why}")
