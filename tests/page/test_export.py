"""An exported session opens from disk: every view that needs no server, find, and nothing but the file."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

import harken
from harken.api.base import stamp
from harken.api.export import ExportPiece, ExportRequest, export
from harken.api.flow_page import FlowPageRequest, flow_page
from harken.repo import Repo
from support.contexts import keep, memory_repo
from support.hostile import EVIL, evil_events

from .conftest import Visit
from .test_ways import scrolls

pytestmark = pytest.mark.page

OPEN = 4.0
"""Seconds within which a session of 100,000 records opens."""


def write(repo: Repo, ref: str, path: Path) -> Path:
    pieces = export(repo, ExportRequest(ref=ref, to="html"))
    path.write_bytes(b"".join(piece.body for piece in pieces if isinstance(piece, ExportPiece)))
    return path


class FromDisk:
    """A page that was opened from disk, and what it asked for and complained of."""

    def __init__(self, browser: Browser, path: Path) -> None:
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.context = browser.new_context(viewport={"width": 1440, "height": 900})
        self.page: Page = self.context.new_page()
        self.page.on("console", lambda told: told.type in ("error", "warning") and self.problems.append(told.text))
        self.page.on("pageerror", lambda problem: self.problems.append(str(problem)))
        self.page.on("dialog", lambda dialog: self.problems.append(dialog.message))
        self.page.on("request", lambda asked: asked.url.startswith("data:") or self.requests.append(asked.url))
        self.path = path
        self.page.goto(path.as_uri())

    def close(self) -> None:
        self.context.close()
        assert [self.path.as_uri()] == self.requests
        assert [] == self.problems


@pytest.fixture
def disk(browser: Browser, store: Path, sessions: dict[str, str], tmp_path: Path) -> Iterator[FromDisk]:
    with harken.open(store) as repo:
        path = write(repo, sessions["cafe"].partition("/")[0], tmp_path / "cafe.html")
    found = FromDisk(browser, path)
    yield found
    found.close()


def test_its_views_open_by_keys_and_by_address(disk: FromDisk) -> None:
    page = disk.page
    expect(page.locator(".rows .list-row").first).to_be_visible()
    for key, view, there in (("2", "flow", ".flow"), ("3", "lanes", ".lanes"), ("5", "agents", ".session-view > *")):
        page.keyboard.press(key)
        expect(page.locator(there).first).to_be_visible()
        assert f"v={view}" in page.url
    page.goto(disk.path.as_uri() + "#/s/export?v=flow")
    page.reload()
    expect(page.locator(".flow").first).to_be_visible()
    disk.requests = disk.requests[:1]  # it was opened again


def test_it_says_who_is_an_agent_and_who_a_hook_as_the_page_does(
    browser: Browser, store: Path, visit: Visit, sessions: dict[str, str], tmp_path: Path
) -> None:
    page = visit.open(f"/s/{sessions['redaction']}?v=agents")
    page.locator(".agents-sum").wait_for()
    expect(page.locator(".agents-sum")).to_contain_text("hook")
    with harken.open(store) as repo:
        found = FromDisk(browser, write(repo, sessions["redaction"], tmp_path / "redaction.html"))
    found.page.locator(".row-frame").first.wait_for()
    found.page.keyboard.press("5")
    expect(found.page.locator(".agents-sum")).to_have_text(page.locator(".agents-sum").inner_text())
    told = [card.inner_text() for card in page.locator(".agent-title").all()]
    assert told == [card.inner_text() for card in found.page.locator(".agent-title").all()]
    found.close()


def test_words_are_found_in_it(disk: FromDisk) -> None:
    page = disk.page
    expect(page.locator(".rows .list-row").first).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("café")
    page.keyboard.press("Enter")

    expect(page.locator("mark").first).to_be_visible()


@pytest.mark.parametrize("words", ["cafe", "CAFÉ"])
def test_accents_make_no_difference_to_what_is_found_and_marked(disk: FromDisk, words: str) -> None:
    page = disk.page
    expect(page.locator(".rows .list-row").first).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type(words)

    expect(page.locator(".find")).to_contain_text("1 of")
    expect(page.locator("mark").first).to_have_text(re.compile("^café$", re.IGNORECASE))


def test_keys_scroll_what_was_just_opened(disk: FromDisk) -> None:
    disk.page.set_viewport_size({"width": 1440, "height": 420})
    expect(disk.page.locator(".rows .list-row").first).to_be_visible()
    scrolls(disk.page)


KNEW = """() => [
  ...[...document.querySelectorAll('.knew p, .knew ~ section .things .cut2')].map(one => one.innerText),
  ...[...document.querySelectorAll('.flow-row')].slice(0, 8).map(one => one.className),
]"""


@pytest.mark.parametrize("name", ["cafe", "redaction", "steel_man", "sub_agents"])
def test_what_an_agent_knew_is_what_the_service_says(
    name: str, browser: Browser, visit: Visit, store: Path, sessions: dict[str, str], tmp_path: Path
) -> None:
    session = sessions[name]
    with harken.open(store) as repo:
        path = write(repo, session, tmp_path / "one.html")
        flow = flow_page(repo, FlowPageRequest(session=session))
    found = FromDisk(browser, path)
    moments = [flow.moments[number * (len(flow.moments) - 1) // 3][0] for number in range(4)]
    for agent in [column.agent for column in flow.columns if column.agent]:
        for moment in [*moments, None]:
            about = f"/s/{session}?v=flow&a={agent}" + (f"&t={quote(str(stamp(moment)))}" if moment else "")
            visit.open(about)
            found.page.goto("about:blank")
            found.page.goto(f"{path.as_uri()}#{about}")
            for page in (visit.page, found.page):
                page.locator(".knew").wait_for()
                page.locator(".flow-row").nth(3).wait_for()
                page.wait_for_timeout(100)
            assert sorted(visit.page.evaluate(KNEW)) == sorted(found.page.evaluate(KNEW)), about
    found.requests = found.requests[:1]
    found.close()


def test_a_sub_agent_in_it_is_opened_by_its_address(
    browser: Browser, store: Path, sessions: dict[str, str], tmp_path: Path
) -> None:
    with harken.open(store) as repo:
        path = write(repo, sessions["sub_agents"], tmp_path / "agents.html")
        agent = next(row.session for row in repo.sessions() if row.parent == sessions["sub_agents"])
    found = FromDisk(browser, path)
    found.page.goto(f"{path.as_uri()}#/s/{agent}")
    found.page.reload()

    expect(found.page.locator(".rows .list-row").first).to_be_visible()
    found.requests = found.requests[:1]
    found.close()


def test_what_is_hostile_is_text_in_every_view(browser: Browser, tmp_path: Path) -> None:
    repo = memory_repo()
    keep(repo, evil_events(), session_id=EVIL[:60], template="claude-code")
    found = FromDisk(browser, write(repo, EVIL[:60], tmp_path / "evil.html"))

    for key in "1235":
        found.page.keyboard.press(key)
        found.page.wait_for_timeout(300)
        assert 0 == found.page.locator("#app script, #app iframe, #app a[href^='javascript']").count()
    found.close()


def test_a_session_of_100_000_records_opens_soon(
    browser: Browser, large: tuple[Path, str, list[str]], tmp_path: Path
) -> None:
    with harken.open(large[0]) as repo:
        path = write(repo, large[1], tmp_path / "large.html")
    began = time.monotonic()
    found = FromDisk(browser, path)
    expect(found.page.locator(".rows .list-row").first).to_be_visible(timeout=20_000)
    took = time.monotonic() - began
    found.close()

    assert took < OPEN
