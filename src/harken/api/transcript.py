"""A session's transcript in bounded ranges: rows, an outline of all of them, the place of a record, words in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from harken.analytics.transcript_rows import FAILURES, strip_of
from harken.context import project_of
from harken.errors import BadRequest, NotFound
from harken.repo import Repo
from harken.repo.transcript_finding import nearest
from harken.repo.transcripts import OpenTranscript, ReadRow, open_calls

from .base import ApiAnswer, ApiRequest, stamp
from .crossing import crosses

if TYPE_CHECKING:
    from harken.repo.masking import Masks
    from harken.views.transcript import RowSettings, ShownCall, ShownRow

MOST_ROWS = 500
CLIPPED, WHOLE = 8_000, 2_000_000
"""Characters of a text in a range, and of a row that is asked for by itself."""
LISTED, FILES, ROWS_OF_FILE = 5_000, 1_000, 200
"""How many prompts, failures and compactions an outline lists, how many files, and how many rows of each."""
LONGEST_STRIP = 2_000
MOST_FOUND = 20_000


class TranscriptRequest(ApiRequest, frozen=True, kw_only=True):
    """Which rows to show."""

    session: str
    """The id of a session in the store, or a unique beginning of one."""
    start: int = 0
    """The number of the first row; a negative one counts from the end."""
    count: int = 200
    """How many rows, at most 500."""
    mask: bool = False
    """Whether to mask what looks like a secret."""
    soon: bool = False
    """Whether the first rows are wanted before all rows of a long session are counted."""


class PictureAnswer(ApiAnswer, frozen=True, kw_only=True):
    """A picture in a row."""

    media_type: str
    """What it is, by its bytes; as its record says, where it cannot be shown."""
    bytes: int
    """Its size."""
    url: str | None
    """Where the service has it; null where it is none that a browser may be given."""


class CallAnswer(ApiAnswer, frozen=True, kw_only=True):
    """A call of a tool, and what became of it."""

    id: str
    """The id of the call."""
    tool: str
    """The tool."""
    what: str
    """What it was to do, on one line."""
    category: str
    """`read`, `search`, `edit`, `command`, `web`, `agent`, `task`, `ask` or `other`."""
    input: dict[str, Any]
    """What it was called with; what is no object stands without a name."""
    input_cut: int
    """How many characters of that were left out."""
    answered: bool
    """Whether it has a result."""
    failed: bool
    """Whether the result is a failure."""
    result: str
    """The result; empty where there is none, or where it stands in a row of its own."""
    result_cut: int
    """How many characters of that were left out."""
    took_ms: int | None
    """Milliseconds until the result; null where nobody knows."""
    session: str | None
    """The session of the sub-agent that it made."""
    files: list[tuple[str, str]]
    """Files that it names, each with what was to be done: `read`, `write`, `edit` or `delete`."""


class TranscriptRow(ApiAnswer, frozen=True, kw_only=True):
    """Something that a reader sees as one thing: words of somebody, a thought, a call with its result, a notice."""

    n: int
    """Its number in the transcript as it stands."""
    id: str
    """The record it is made from; empty where that has no name."""
    index: int
    """Which of the record's events it is."""
    agent: str
    """Whose it is, where the session has several agents."""
    who: str
    """Who says it, for people."""
    time: str | None
    """When it was said."""
    kind: str
    """`prompt`, `answer`, `thinking`, `call`, `result`, `injected`, `instructions`, `notice`, `error`, `compaction`,
    `agent`, `edit` or `unread`."""
    text: str
    """What it says."""
    cut: int
    """How many characters of that were left out."""
    title: str
    """What it is called where it is folded."""
    call: CallAnswer | None
    """The call, for a row of that kind."""
    pictures: list[PictureAnswer]
    """The pictures in it."""


class TranscriptAnswer(ApiAnswer, frozen=True, kw_only=True):
    """Some rows of a transcript."""

    session: str
    """The id of the session."""
    tip: str | None
    """The full name of the commit it stands at: rows of another tip may have other numbers."""
    total: int
    """How many rows there are."""
    start: int
    """The number of the first row here."""
    rows: list[TranscriptRow]
    """The rows."""
    partial: bool = False
    """Whether not all rows were counted: there are more than `total`. Only where they were wanted soon."""


@crosses
def transcript(repo: Repo, request: TranscriptRequest) -> TranscriptAnswer:
    """The rows `start` to `start + count` of a session's transcript, and how many there are."""
    if not 0 <= request.count <= MOST_ROWS:
        raise BadRequest(f"a range has at most {MOST_ROWS} rows", hint="ask for the next ones in another request")
    is_beginning = request.soon and request.start == 0
    opened = repo.transcripts.open(request.session, first=request.count if is_beginning else None)
    total = len(opened.layout)
    start = max(0, total + request.start) if request.start < 0 else min(request.start, total)
    rows = repo.transcripts.rows(opened, start, request.count)
    return TranscriptAnswer(
        session=opened.row.session,
        tip=opened.row.stand or None,
        total=total,
        start=start,
        rows=RowShower(repo, opened, CLIPPED, mask=request.mask).show(rows),
        partial=not opened.layout.is_whole,
    )


class TranscriptRowRequest(ApiRequest, frozen=True, kw_only=True):
    """Which row to show whole: by its record, or by its number."""

    session: str
    """The id of a session in the store, or a unique beginning of one."""
    id: str = ""
    """The record it is made from."""
    index: int = 0
    """Which of the record's events it is."""
    n: int | None = None
    """Its number, in place of a record."""
    mask: bool = False
    """Whether to mask what looks like a secret."""


@crosses
def transcript_row(repo: Repo, request: TranscriptRowRequest) -> TranscriptRow:
    """One row with nothing cut, up to two million characters of a text."""
    opened = repo.transcripts.open(request.session)
    if (request.n is None) == (not request.id):
        raise BadRequest("name a record or the number of a row", hint="give exactly one of the two")
    number = request.n if request.n is not None else _place(repo, opened, request.id, request.index)
    rows = repo.transcripts.rows(opened, number, 1) if number >= 0 else []
    if not rows:
        raise NotFound(f"there is no row {number}", hint=f"the transcript has {len(opened.layout)} rows")
    return RowShower(repo, opened, WHOLE, mask=request.mask).show(rows)[0]


class TranscriptPlaceRequest(ApiRequest, frozen=True, kw_only=True):
    """Which record to look for."""

    session: str
    """The id of a session in the store, or a unique beginning of one."""
    id: str
    """The record's id."""
    index: int = 0
    """Which of its events."""


class PlaceAnswer(ApiAnswer, frozen=True, kw_only=True):
    """Where a record stands."""

    session: str
    """The id of the session."""
    tip: str | None
    """The full name of the commit it stands at."""
    n: int
    """The number of its row; of the row that it stands in or before, where it has none of its own."""
    total: int
    """How many rows there are."""


@crosses
def transcript_place(repo: Repo, request: TranscriptPlaceRequest) -> PlaceAnswer:
    """The number of the row of a record."""
    opened = repo.transcripts.open(request.session)
    number = _place(repo, opened, request.id, request.index)
    return PlaceAnswer(session=opened.row.session, tip=opened.row.stand or None, n=number, total=len(opened.layout))


def _place(repo: Repo, opened: OpenTranscript, name: str, index: int) -> int:
    number = repo.transcripts.place(opened, name, index) if name else None
    if number is None:
        hint = "it may stand in another version of the session, or in that of a sub-agent"
        raise NotFound(f"session {opened.row.session} has no record {name!r}", hint=hint)
    return number


class TranscriptFindRequest(ApiRequest, frozen=True, kw_only=True):
    """What to look for in a transcript."""

    session: str
    """The id of a session in the store, or a unique beginning of one."""
    words: str
    """Words, all of which a row has to hold; what stands in quotation marks is one piece. A word may go on."""
    start: int = 0
    """Where more rows were found than are asked for, those from this number on come first."""
    limit: int = 2_000
    """How many rows at most, up to 20,000."""


class TranscriptFound(ApiAnswer, frozen=True, kw_only=True):
    """The rows that hold some words."""

    session: str
    """The id of the session."""
    tip: str | None
    """The full name of the commit it stands at."""
    total: int
    """How many rows there are in the transcript."""
    found: int
    """How many of them hold the words."""
    rows: list[int]
    """Their numbers, in order."""
    complete: bool
    """Whether all of the transcript was looked through; else there was no time for the rest."""


@crosses
def transcript_find(repo: Repo, request: TranscriptFindRequest) -> TranscriptFound:
    """The numbers of the rows that hold some words: in what was said, in calls and in their results."""
    if not 1 <= request.limit <= MOST_FOUND:
        raise BadRequest(f"at most {MOST_FOUND} rows are found at once", hint="ask for fewer, from a `start` on")
    opened = repo.transcripts.open(request.session)
    found = repo.transcripts.find(opened, request.words)
    return TranscriptFound(
        session=opened.row.session,
        tip=opened.row.stand or None,
        total=len(opened.layout),
        found=len(found.rows),
        rows=nearest(found.rows, request.start, request.limit),
        complete=found.complete,
    )


# -- the outline -------------------------------------------------------------------------------------------------------


class TranscriptOutlineRequest(ApiRequest, frozen=True, kw_only=True):
    """Whose outline to make."""

    session: str
    """The id of a session in the store, or a unique beginning of one."""
    strip: int = 400
    """How many letters the strip has at most, up to 2,000."""
    mask: bool = False
    """Whether to mask what looks like a secret."""


class OutlineMark(ApiAnswer, frozen=True, kw_only=True):
    """A row that an outline names."""

    n: int
    """The number of the row."""
    text: str
    """Its first words, or what failed."""


class OutlineFile(ApiAnswer, frozen=True, kw_only=True):
    """A file that calls name."""

    path: str
    """Its path."""
    ops: dict[str, int]
    """How often what was to be done to it: `read`, `write`, `edit`, `delete`."""
    rows: list[int]
    """The numbers of the rows, the last 200 of them."""


class OutlineAnswer(ApiAnswer, frozen=True, kw_only=True):
    """A transcript at a glance. Of more than 5,000 prompts, failures or compactions the last are listed."""

    session: str
    """The id of the session."""
    tip: str | None
    """The full name of the commit it stands at."""
    total: int
    """How many rows there are."""
    prompts: list[OutlineMark]
    """What was asked."""
    compactions: list[OutlineMark]
    """Where the conversation was compacted."""
    failures: list[OutlineMark]
    """What failed."""
    files: list[OutlineFile]
    """The files that were touched: those that were changed first, then by how often; at most 1,000."""
    counts: dict[str, int]
    """How many prompts, compactions, failures and files there are."""
    strip: str
    """One letter for each call in order: `r` reading or searching, `c` a command, `e` an edit, `a` an agent, `o` any
    other; the capital where it failed; `|` is a compaction, `p` a prompt. A longer one is sampled."""


@crosses
def transcript_outline(repo: Repo, request: TranscriptOutlineRequest) -> OutlineAnswer:
    """Prompts, compactions, failures and files with the numbers of their rows, and the strip of the whole."""
    if not 1 <= request.strip <= LONGEST_STRIP:
        raise BadRequest(f"a strip has 1 to {LONGEST_STRIP} letters", hint="ask for as many as can be drawn")
    opened = repo.transcripts.open(request.session)
    layout = opened.layout
    told = masks(mask=request.mask)
    marks: dict[str, list[OutlineMark]] = {"p": [], "|": [], "x": []}
    files: dict[str, dict[str, list[int]]] = {}
    for number, mark, text in layout.marks():
        if mark in marks:
            marks[mark].append(OutlineMark(n=number, text=text))
        else:
            files.setdefault(text, {}).setdefault(mark, []).append(number)
    listed = {mark: [_masked(one, told) for one in found[-LISTED:]] for mark, found in marks.items()}
    return OutlineAnswer(
        session=opened.row.session,
        tip=opened.row.stand or None,
        total=len(layout),
        prompts=listed["p"],
        compactions=listed["|"],
        failures=listed["x"],
        files=_files(files, project_of(opened.row), told),
        counts={
            "prompts": len(marks["p"]),
            "compactions": len(marks["|"]),
            "failures": sum(layout.letters.count(letter) for letter in FAILURES),
            "files": len(files),
        },
        strip=strip_of(layout.letters, request.strip),
    )


def _masked(mark: OutlineMark, told: Masks | None) -> OutlineMark:
    return mark if told is None else msgspec.structs.replace(mark, text=told.text(mark.text))


def _files(files: dict[str, dict[str, list[int]]], folder: str, told: Masks | None) -> list[OutlineFile]:
    around = folder.rstrip("/") + "/"
    found = []
    for path, ops in files.items():
        shown = path.removeprefix(around) if len(around) > 1 else path
        rows = sorted({number for numbers in ops.values() for number in numbers})
        counts = {op: len(numbers) for op, numbers in ops.items()}
        found.append(OutlineFile(path=told.text(shown) if told else shown, ops=counts, rows=rows[-ROWS_OF_FILE:]))
    found.sort(key=lambda one: (not one.ops.keys() - {"read"}, -sum(one.ops.values()), one.path))
    return found[:FILES]


# -- rows for a page ---------------------------------------------------------------------------------------------------


def masks(*, mask: bool) -> Masks | None:
    """What masks secrets; None where they are shown."""
    if not mask:
        return None
    from harken.repo.masking import Masks

    return Masks((), reveal=False, for_people=False)


class RowShower:
    """Makes answers of rows that were read."""

    def __init__(self, repo: Repo, opened: OpenTranscript, most: int, *, mask: bool) -> None:
        self._repo, self._opened, self._most = repo, opened, most
        self._masks = masks(mask=mask)

    def show(self, rows: list[ReadRow]) -> list[TranscriptRow]:
        """The rows as answers."""
        from harken.views.transcript import shown_row, unread_row

        how = self._settings()
        outcomes = self._repo.transcripts.outcomes(self._opened, open_calls(rows))
        found = []
        for read in rows:
            if read.row is None:
                found.append(_answer(unread_row(read.number, read.problem)))
                continue
            row = read.row
            if self._masks is not None:
                joined = None if row.joined is None else self._masks.event(row.joined)
                row = row._replace(event=self._masks.event(row.event), joined=joined)
            found.append(_answer(shown_row(read.number, row, how), outcomes))
        return found

    def _settings(self) -> RowSettings:
        from harken.views.transcript import RowSettings

        opened, transcripts = self._opened, self._repo.transcripts
        names, spawned = transcripts.agent_names(opened), transcripts.spawned(opened)
        return RowSettings(
            session=opened.row.session,
            folder=project_of(opened.row),
            names=lambda agent: names.get(agent, ""),
            spawned=spawned,
            most=self._most,
        )


def _answer(row: ShownRow, outcomes: Any = None) -> TranscriptRow:
    return TranscriptRow(
        n=row.n,
        id=row.id,
        index=row.index,
        agent=row.agent,
        who=row.who,
        time=stamp(row.time),
        kind=row.kind,
        text=row.text,
        cut=row.cut,
        title=row.title,
        call=_call(row.call, outcomes or {}) if row.call is not None else None,
        pictures=[PictureAnswer(media_type=one.media_type, bytes=one.bytes, url=one.url) for one in row.pictures],
    )


def _call(call: ShownCall, outcomes: dict[str, tuple[bool, int | None]]) -> CallAnswer:
    fields = {name: getattr(call, name) for name in CallAnswer.__struct_fields__}
    if not call.answered and call.id in outcomes:
        failed, took = outcomes[call.id]
        fields |= {"answered": True, "failed": failed, "took_ms": None if took is None else took // 1000}
    return CallAnswer(**fields)
