"""A session as one HTML file with the page itself in it: transcript, flow, lanes, agents and find, opened from disk.

The file holds the page's script and style, whose hashes its policy names, and the answers the page would ask for,
packed: JSON, gzip, base64. Rows are written as they are read. Nothing in the file is HTML made from a transcript.
"""

from __future__ import annotations

import base64
import contextlib
import html
import zlib
from collections import Counter
from collections.abc import Collection, Iterator
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec

from harken import ids
from harken.errors import HarkenError, NotFound
from harken.repo import Repo
from harken.repo.exporting import ExportMoved
from harken.repo.masking import AnswerMasks
from harken.repo.transcripts import OpenTranscript, ReadRow
from harken.text import safe

from .flow_page import MOST_ROWS as MOST_FLOW_ROWS
from .flow_page import FlowPageRequest, flow_levels, flow_page
from .lanes import MOST_SEGMENTS, LanesRequest, lanes
from .session_page import SessionPageRequest, session_page
from .sessions import AgentsRequest, agents
from .transcript import WHOLE, RowShower, TranscriptOutlineRequest, TranscriptRow, transcript_outline

ROWS_AT_ONCE = 50
LONG = 20_000
"""Rows from which on a session of one agent is exported without its flow: all of it would have to be read at once."""
PICTURES = 64 << 20
"""Bytes of pictures that are put into a file; others are only mentioned."""


class ViewerExport:
    """The file of a session, to be taken piece by piece; then what was masked and what was lost is known."""

    def __init__(self, repo: Repo, ref: str, masks: AnswerMasks, *, agents: bool = True, prices: str = "") -> None:
        self._repo, self._masks, self._prices = repo, masks, prices
        self._opened = repo.transcripts.open(ref)
        self._ref = ref
        self._sessions = self._included() if agents else []
        self.losses: Counter[tuple[str, str]] = Counter()
        """How many rows could not be read: of whom, and why."""
        self.left_out: Counter[str] = Counter()
        self._pictures = 0
        self._script, self._style = bundle()

    @property
    def agents(self) -> int:
        """How many sub-agents are in it."""
        return len(self._sessions)

    @property
    def unread(self) -> int:
        """How many sub-agents could not be read."""
        return len({whose for whose, _ in self.losses} & set(self._sessions))

    def _included(self) -> list[str]:
        """The sub-agents; of a session as it stood at an earlier commit those that had ended by then."""
        opened = self._opened
        below = self._repo.transcripts.children(opened.row)
        if opened.earlier:
            until = self._repo.commit(opened.row.stand).time
            below = [each for each in below if each.ended is not None and each.ended <= until]
        return [each.session for each in below]

    def pieces(self, moved: ExportMoved | None = None) -> Iterator[bytes]:
        """The file. `moved` is told what is being done, with how many rows it was done, and of how many."""
        script, style = self._script, self._style
        policy = (
            f"default-src 'none'; script-src '{ids.integrity(script)}'; style-src '{ids.integrity(style)}'; "
            "img-src data:; base-uri 'none'; form-action 'none'; "
            "require-trusted-types-for 'script'; trusted-types 'none'"
        )
        name = html.escape(safe(self._masks.text(self._opened.row.session)))
        yield (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
            '<meta name="referrer" content="no-referrer">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<meta name="color-scheme" content="light dark">\n'
            f"<title>{name} · Harken</title>\n<style>{style}</style>\n</head>\n<body>\n"
            '<div id="app"></div>\n<noscript>This file needs JavaScript; '
            "`harken export --to md` writes one that does not.</noscript>\n"
            '<script type="application/octet-stream" id="harken-data">\n'
        ).encode()
        yield from _packed(self._data(moved))
        yield f'\n</script>\n<script type="module">{script}</script>\n</body>\n</html>\n'.encode()

    # -- the answers -------------------------------------------------------------------------------------------

    def _data(self, moved: ExportMoved | None) -> Iterator[bytes]:
        """The answers as JSON, piece by piece. Rows come first: what is whole in them may stand cut elsewhere."""
        opened = self._repo.transcripts
        transcripts = [
            (self._opened.row.session, self._opened),
            *((name, opened.open(name)) for name in self._sessions),
        ]
        total, done = sum(len(each.layout) for _, each in transcripts), 0
        yield b'{"main":' + _json(self._masks.answer(self._opened.row.session)) + b',"rows":{'
        for number, (name, each) in enumerate(transcripts):
            yield (b"," if number else b"") + _json(self._masks.answer(name)) + b":["
            for at in range(0, len(each.layout), ROWS_AT_ONCE):
                rows = self._rows(name, each, at)
                yield (b"," if at else b"") + b",".join(_json(row) for row in rows)
                done += len(rows)
                if moved is not None:
                    moved("writing", done, total)
            yield b"]"
        yield b'},"sessions":{'
        for number, (name, each) in enumerate(transcripts):
            yield (b"," if number else b"") + _json(self._masks.answer(name)) + b":" + _json(self._answers(name, each))
        yield b"}}"

    def _rows(self, name: str, opened: OpenTranscript, start: int) -> list[Any]:
        read = self._repo.transcripts.rows(opened, start, ROWS_AT_ONCE)
        shower = RowShower(self._repo, opened, WHOLE, mask=False)
        found = []
        for row, told in zip(read, shower.show(read), strict=True):
            if row.row is None:
                self.losses[name, row.problem] += 1
            found.append(self._row(name, row, told, opened))
        return found

    def _row(self, name: str, row: ReadRow, told: TranscriptRow, opened: OpenTranscript) -> Any:
        answer = msgspec.to_builtins(told)
        pictures = [self._picture(opened, picture) for picture in answer.pop("pictures")]
        if (call := answer["call"]) is not None and call["session"] not in self._sessions:
            call["session"] = None
        return self._masks.answer(answer) | {"pictures": pictures}

    def _picture(self, opened: OpenTranscript, picture: dict[str, Any]) -> dict[str, Any]:
        """A picture with its bytes in place of its address."""
        from harken.views.documents import MEDIA_TYPES, picture_bytes

        masked: dict[str, Any] = self._masks.answer(picture)
        url, masked["url"] = picture["url"], None
        if url is not None and self._pictures < PICTURES:
            message, index, number = url.split("/")[-3:]
            with contextlib.suppress(NotFound):
                image = self._repo.transcripts.picture(opened, unquote(message), int(index), int(number))
                if (found := picture_bytes(image)) is not None:
                    self._pictures += len(found[1])
                    data = base64.b64encode(found[1]).decode()
                    return masked | {"url": f"data:{MEDIA_TYPES[found[0]]};base64,{data}"}
        self.left_out["pictures"] += 1
        return masked

    def _answers(self, name: str, opened: OpenTranscript) -> dict[str, Any]:
        ref = self._ref if name == self._opened.row.session else name
        page = msgspec.to_builtins(session_page(self._repo, SessionPageRequest(session=ref, prices=self._prices)))
        kept = {name, self._opened.row.session, *self._sessions}
        page["agents"] = [each for each in page["agents"] if each["session"] in (None, *kept)]
        page |= {"running": False, "resumable": False, "continued_by": [], "previous": None, "next": None}
        page["parent"] = page["parent"] if page["parent"] in kept else None
        page["parent_stored"] = page["parent"] is not None
        outline = transcript_outline(self._repo, TranscriptOutlineRequest(session=ref))
        answers = {
            "session_page": page,
            "transcript": {"session": name, "tip": opened.row.stand or None, "total": len(opened.layout)},
            "transcript_outline": msgspec.to_builtins(outline),
        }
        if not opened.earlier:
            answers["lanes"] = msgspec.to_builtins(
                lanes(self._repo, LanesRequest(session=name, segments=MOST_SEGMENTS, prices=self._prices))
            )
            if len(page["agents"]) > 1 or len(opened.layout) <= LONG:
                try:
                    answers["flow"] = self._flow(name)
                    if len(page["agents"]) > 1:
                        answers["agents"] = self._agents(name, kept)
                except HarkenError:  # one sub-agent that cannot be read is enough; its rows say why
                    self.left_out["flow"] += 1
        masked: dict[str, Any] = self._masks.answer(answers)
        return masked

    def _agents(self, name: str, kept: Collection[str]) -> list[dict[str, Any]]:
        """Who took part, and what each is; the transcripts of some may not be in the file."""
        told = [msgspec.to_builtins(each) for each in agents(self._repo, AgentsRequest(session=name))]
        return [each | {"session": each["session"] if each["session"] in kept else None} for each in told]

    def _flow(self, name: str) -> dict[str, Any]:
        """Every row of the flow once, and what each level of it has in its head."""
        heads: dict[str, Any] = {}
        rows: list[Any] = []
        for level in flow_levels():
            request = FlowPageRequest(session=name, start=0, count=MOST_FLOW_ROWS, tools=level)
            answer = flow_page(self._repo, request)
            heads[level] = msgspec.to_builtins(msgspec.structs.replace(answer, rows=[]))
            if level == "all":
                rows = list(msgspec.to_builtins(answer.rows))
                for at in range(MOST_FLOW_ROWS, answer.total, MOST_FLOW_ROWS):
                    part = flow_page(self._repo, msgspec.structs.replace(request, start=at))
                    rows += msgspec.to_builtins(part.rows)
        return {"heads": heads, "rows": rows, "levels": {level: list(kinds) for level, kinds in flow_levels().items()}}


# -- the file ----------------------------------------------------------------------------------------------------------


def bundle() -> tuple[str, str]:
    """The script and the style of the page, such that they can stand inside a page."""
    folder = resources.files("harken") / "service" / "web" / "static"
    try:
        script, style = ((folder / name).read_text("utf-8") for name in ("viewer.js", "viewer.css"))
    except OSError:
        raise NotFound(
            "the page is not part of this installation", hint="`make web` builds it; `--to md` needs nothing"
        ) from None
    # A script ends at its end tag wherever that stands; in strings and patterns the stroke may be escaped.
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--"), style.replace("</style", "<\\/style")


def _json(value: Any) -> bytes:
    return msgspec.json.encode(value)


def _packed(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The pieces as gzip in base64. The head of a gzip that zlib makes tells no time: the same is always the same."""
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    held = b""
    for piece in pieces:
        held += packer.compress(piece)
        whole = len(held) - len(held) % 3
        if whole:
            yield base64.b64encode(held[:whole])
            held = held[whole:]
    yield base64.b64encode(held + packer.flush())


@contextlib.contextmanager
def opened_file(path: Path) -> Iterator[tuple[Repo, str]]:
    """A repository for as long as a file is exported, and the session that the file is in it."""
    from harken.repo.looking import format_of, in_store_of_its_own, open_file
    from harken.store import open_store

    format_of(path)  # what nobody reads is refused at once
    with in_store_of_its_own(path) as found:
        if found is not None:
            store, row = found
            with _closing_index(Repo(store)) as repo:
                yield repo, row.session
            return
    data, format = open_file(path)
    with contextlib.closing(open_store("memory:")) as store, _closing_index(Repo(store)) as repo:
        repo.checkpoint(data, format=format.name, session_id=path.stem or "session")
        yield repo, path.stem or "session"


@contextlib.contextmanager
def _closing_index(repo: Repo) -> Iterator[Repo]:
    try:
        yield repo
    finally:
        if "index" in repo.__dict__:
            with contextlib.suppress(HarkenError, OSError):
                repo.index.close()
