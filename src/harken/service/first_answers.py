"""The page with the answers that it asks for first.

Whoever opens the address of a session gets, behind the page itself, what the page is going to ask: the head of the
session and its first rows. The page is on its way while these are made. They stand in an element that is no script, as
JSON without `<`, so that nothing in them can be anything but text. A page that finds none there asks for them. The
words of the first rows stand there to be read as well, until the page's script draws them (`first_words.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from .first_words import first_words
from .operations import SERVED, function_of, may
from .page import INDEX, file_of, page_file, read_file
from .settings import Visitor

FIRST_ROWS = 40
"""Rows that fill a window; `transcript.js` asks for as many."""
PATIENCE = 15.0
"""Seconds after which a page goes out without its answers."""
PageQuestion = tuple[str, dict[str, object]]
AnswerMaker = Callable[[list[PageQuestion], Visitor], Awaitable[list[bytes]]]
_END = b"</body>"


def first_questions(path: str, params: Mapping[str, str]) -> list[PageQuestion]:
    """What the page at an address asks for before it shows anything, word for word: it takes no other answer."""
    session = "/".join(part for part in path.removeprefix("/s/").split("/") if part) if path.startswith("/s/") else ""
    if not session:
        return []
    is_elsewhere = bool(params.get("v"))
    is_jump = bool(params.get("e") or params.get("q"))
    head: PageQuestion = ("session_page", {"session": session, "soon": not is_elsewhere})
    rows: PageQuestion = ("transcript", {"session": session, "start": 0, "count": FIRST_ROWS, "soon": not is_jump})
    return [head] if is_elsewhere else [head, rows]


def load_modules() -> None:
    """Load what the first answers are made with, so that nobody who asks waits for it."""
    for name, _ in first_questions("/s/any", {}):
        function_of(name)


class PageService:
    """Serves the page and its files. `ask` answers questions in the name of a visitor."""

    def __init__(self, ask: AnswerMaker) -> None:
        self._ask = ask

    async def respond(self, request: Request) -> Response:
        """A file, or the page; to those who may see them with its first answers."""
        path = file_of(request)
        if path != INDEX or request.method != "GET":
            return page_file(path, request)
        visitor: Visitor = request.state.visitor
        asked = first_questions(request.scope["path"], request.query_params)
        asked = [one for one in asked if may(visitor.grants, SERVED[one[0]])]
        return _PageWithAnswers(self._ask, asked, visitor) if asked else page_file(path, request)


class _PageWithAnswers(Response):
    """The page at once, and its answers when they are made."""

    media_type = "text/html"

    def __init__(self, ask: AnswerMaker, asked: list[PageQuestion], visitor: Visitor) -> None:
        super().__init__(headers={"cache-control": "no-store"})
        del self.headers["content-length"]
        self._ask, self._asked, self._visitor = ask, asked, visitor

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        page, end, rest = read_file(INDEX).rpartition(_END)
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": page, "more_body": True})
        try:
            async with asyncio.timeout(PATIENCE):
                answers = await self._ask(self._asked, self._visitor)
            is_beginning = [request.get("soon") for _, request in self._asked] == [True, True]
            words = first_words(*answers) if is_beginning else b""
            told = words + answers_element(self._asked, answers)
        except Exception:  # noqa: BLE001  the page is whole without them: it asks for them, and tells what is wrong
            told = b""
        await send({"type": "http.response.body", "body": told + end + rest, "more_body": False})


def answers_element(asked: list[PageQuestion], answers: list[bytes]) -> bytes:
    """PageQuestions and their answers as an element of the page."""
    told = [
        b'{"operation":%b,"request":%b,"answer":%b}' % (*map(msgspec.json.encode, one), answer)
        for one, answer in zip(asked, answers, strict=True)
    ]
    text = b"[" + b",".join(told) + b"]"
    return b'<script type="application/json" id="first-answers">' + text.replace(b"<", b"\\u003c") + b"</script>"
