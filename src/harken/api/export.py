"""A session for others: a page that opens from disk, Markdown, plain text, its events as JSON lines, or a trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

from harken.errors import BadRequest
from harken.repo import Repo
from harken.views.documents import PictureFile

from .base import ApiAnswer
from .crossing import crosses
from .secret_rules import MaskedSecrets, RulesRequest, compiled, masked_secrets
from .writing import LossAnswer


class ExportRequest(RulesRequest, frozen=True, kw_only=True):
    """What to export, and how."""

    ref: str = ""
    """A session, which is exported whole, or a commit, branch or tag: the session as it stood there."""
    file: str = ""
    """The path of a session's file, in place of a REF."""
    to: str
    """`html` (one file with the page itself), `md`, `txt`, `jsonl` or `trace` (for Perfetto and chrome://tracing)."""
    agents: bool = True
    """Whether sub-agents are told of."""
    reveal: bool = False
    """Whether secrets stay as they are; else they are masked."""
    pictures: str = ""
    """The folder beside the document in which Markdown finds pictures; empty: they are mentioned, not shown."""
    prices: str = ""
    """A file whose prices stand over those that come with Harken; `html` tells what a session cost."""


class ExportPiece(ApiAnswer, frozen=True, kw_only=True):
    """A piece of a document, or a picture that lies beside it."""

    picture: str
    """The name of the picture in its folder; empty for the next piece of the document."""
    body: bytes
    """The bytes."""


class ExportCounts(ApiAnswer, frozen=True, kw_only=True):
    """What became of an export."""

    to: str
    """What was written."""
    size: int
    """Bytes of the document."""
    pictures: int
    """Pictures beside it."""
    agents: int
    """Sub-agents that are told of."""
    unread: int
    """Sub-agents that could not be read; `losses` says why."""
    masked: list[MaskedSecrets]
    """The secrets that were masked, by rule."""
    left_out: dict[str, int]
    """What is in the session and not in the document, by what it is."""
    losses: list[LossAnswer]
    """What the store could not give."""


class ExportReport(ApiAnswer, frozen=True, kw_only=True):
    """The end of an export."""

    report: ExportCounts
    """What became of it."""


@crosses
def export(
    repo: Repo, request: ExportRequest, *, moved: Callable[[str, int, int], None] | None = None
) -> Iterator[ExportPiece | ExportReport]:
    """A session as a document, piece by piece, and then what is not in it. `moved` is told now and then what is being
    done, with how many events it was done, and of how many (0 where nobody knows that yet)."""
    if bool(request.ref) == bool(request.file):
        raise BadRequest("name a REF or a file", hint="give exactly one of the two")
    if request.to == "html":
        yield from _viewer(request, repo, moved)
        return
    made = repo.export(
        Path(request.file) if request.file else request.ref,
        to=request.to,
        agents=request.agents,
        reveal=request.reveal,
        pictures=request.pictures,
        own_rules=compiled(request.own_rules),
    )
    size = pictures = 0
    for piece in made.pieces(moved):
        if isinstance(piece, PictureFile):
            pictures += 1
            yield ExportPiece(picture=piece.name, body=piece.data)
        else:
            size += len(piece)
            yield ExportPiece(picture="", body=piece)
    counts = ExportCounts(
        to=request.to,
        size=size,
        pictures=pictures,
        agents=made.agents,
        unread=made.unread,
        masked=masked_secrets(made.masked),
        left_out=dict(sorted(made.left_out.items())),
        losses=[LossAnswer(what=loss.what, count=loss.count, why=loss.why) for loss in made.losses],
    )
    yield ExportReport(report=counts)


def _viewer(
    request: ExportRequest, repo: Repo, moved: Callable[[str, int, int], None] | None
) -> Iterator[ExportPiece | ExportReport]:
    from harken.repo.masking import AnswerMasks

    from .viewer_export import ViewerExport, opened_file

    masks = AnswerMasks(compiled(request.own_rules), reveal=request.reveal)
    with opened_file(Path(request.file)) if request.file else nullcontext((repo, request.ref)) as (source, ref):
        made = ViewerExport(source, ref, masks, agents=request.agents, prices=request.prices)
        size = 0
        for piece in made.pieces(moved):
            size += len(piece)
            yield ExportPiece(picture="", body=piece)
        losses = [
            LossAnswer(what=f"rows of {name}", count=count, why=why) for (name, why), count in made.losses.items()
        ]
        counts = ExportCounts(
            to=request.to,
            size=size,
            pictures=0,
            agents=made.agents,
            unread=made.unread,
            masked=masked_secrets(dict(sorted(masks.counts.items()))),
            left_out=dict(sorted(made.left_out.items())),
            losses=losses,
        )
        yield ExportReport(report=counts)
