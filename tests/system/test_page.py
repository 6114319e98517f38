"""The page of an export in a real browser: everything in it is text, nothing runs, nothing is asked of the network."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harken.events import Event, Image, Prompt, Response, ToolCall, ToolResult
from harken.text import CONTROL
from harken.views import page
from harken.views.documents import DocumentFoot, DocumentHead
from harken.views.story import SessionStory
from support.browser import Browser
from support.hostile import EVIL, PIXEL, evil_events

pytestmark = pytest.mark.system

WIDTHS = (360, 600, 1024, 1400)
HUGE = "x" * 50_000
TEXT = "data:image/png;base64," + PIXEL
OPEN = "document.querySelectorAll('details').forEach(one => { one.open = true })"
LUMINANCE = """
(() => {
  const parts = colour => colour.match(/[0-9.]+/g).slice(0, 3).map(part => {
    const share = part / 255
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  })
  const light = colour => { const [r, g, b] = parts(colour); return 0.2126 * r + 0.7152 * g + 0.0722 * b }
  const behind = node => {
    const colour = getComputedStyle(node).backgroundColor
    return /, 0\\)$/.test(colour) ? behind(node.parentElement) : colour
  }
  const texts = [...document.querySelectorAll('h1, h2, dd, .said, pre, summary, .remark, .alert, time, footer p')]
  return texts.map(node => {
    const [one, other] = [light(getComputedStyle(node).color), light(behind(node))]
    return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05)
  })
})()
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as started:
        yield started


def written(events: list[Event]) -> str:
    head = DocumentHead(title=EVIL, facts=(("Session", EVIL), ("Project", HUGE[:500])))
    foot = DocumentFoot(masked={"a rule": 1}, left_out={EVIL: 2}, losses=(EVIL,))
    pieces = page.PageWriter().pieces(head, SessionStory(events).passages(""), lambda: foot)
    return "".join(piece for piece in pieces if isinstance(piece, str))


def session() -> list[Event]:
    """Whatever may stand in a transcript, and two pictures that are some."""
    picture = Image(media_type="image/png", data=PIXEL)
    return [
        Prompt(message_id="1", content=HUGE, images=(picture,)),
        Response(message_id="2", content=f"{TEXT} <img src='{TEXT}'>"),
        ToolCall(message_id="3", id="c", name="Bash", input=b'{"command": "' + HUGE.encode() + b'"}'),
        ToolResult(
            message_id="4", id="c", output=HUGE, images=(picture, Image(media_type="image/png", data="PHN2Zz4="))
        ),
        *evil_events(),
    ]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("page") / "session.html"
    made.write_text(written(session()))
    return made


def test_nothing_runs_and_nothing_is_asked_of_the_network(browser: Browser, path: Path) -> None:
    browser.open(path)
    browser.run(OPEN)

    assert [path.as_uri()] == browser.requests()
    assert [] == browser.told("Page.javascriptDialogOpening")
    assert [] == browser.told("Runtime.exceptionThrown")
    assert [] == browser.told("Log.entryAdded")
    assert 0 == browser.run("document.scripts.length")
    assert 0 == browser.run("document.querySelectorAll('a, iframe, object, embed, form, link, base, svg').length")


def test_what_is_hostile_shows_as_text(browser: Browser, path: Path) -> None:
    browser.open(path)
    browser.run(OPEN)
    shown = browser.run("document.body.innerText")

    assert shown.count("<script>alert(1)</script></pre></summary></details></style><img src=x onerror=alert(1)>") > 20
    assert "[a](javascript:b) ![x](http://y) @user" in shown
    assert f"{TEXT} <img src='{TEXT}'>" in shown
    assert HUGE in shown
    assert not CONTROL.search(shown.replace("\n", "").replace("\t", ""))
    assert "\u202e" not in shown


def test_only_pictures_are_shown_as_pictures(browser: Browser, path: Path) -> None:
    browser.open(path)

    sizes = browser.run("[...document.images].map(one => one.naturalWidth)")

    with_pictures = sum(1 for event in evil_events() if getattr(event, "images", ()))
    assert [1] * (2 + with_pictures) == sizes


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_it_fits_the_window_and_can_be_read(browser: Browser, path: Path, width: int, dark: bool) -> None:
    browser.resize(width, dark=dark)
    browser.open(path)
    browser.run(OPEN)

    assert width >= browser.run("document.documentElement.scrollWidth")
    assert 4.5 <= min(browser.run(LUMINANCE))
    background = browser.run("getComputedStyle(document.body).backgroundColor")
    assert ("rgb(19, 20, 21)" if dark else "rgb(247, 246, 243)") == background


def test_a_mistake_of_ours_would_still_run_and_load_nothing(browser: Browser, tmp_path: Path) -> None:
    asked: list[str] = []

    class Listener(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Listener) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        there = f"http://127.0.0.1:{server.server_port}"
        mistake = (
            f"<script>window.ran = 1</script><img src={there}/a onerror='window.ran = 1'>"
            f"<link rel=stylesheet href={there}/b><style>h1 {{ color: rgb(1, 2, 3) }}</style>"
            f"<iframe src={there}/c></iframe><svg onload='window.ran = 1'></svg><base href={there}>"
        )
        whole = tmp_path / "mistake.html"
        whole.write_text(written([]).replace("<hr>", f"{mistake}<hr>", 1))
        browser.open(whole)
        ran, colour = browser.run("window.ran"), browser.run("getComputedStyle(document.querySelector('h1')).color")
        server.shutdown()

    assert "<script>" in whole.read_text()
    assert (None, []) == (ran, asked)
    assert "rgb(1, 2, 3)" != colour
