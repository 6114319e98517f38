"""A session that is being written: the page follows it, also across a restart of the server."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import harken
from support.large_session import write_large_session
from support.service import serving, small_store, token

from .conftest import Served, Visit

pytestmark = pytest.mark.page


class Growing:
    """A session of Claude Code that goes on."""

    def __init__(self, home: Path) -> None:
        self.session, self.path, self.records = write_large_session(home / ".claude", 40)

    def say(self, words: str) -> None:
        """The model says something more."""
        last = json.loads(self.path.read_text().splitlines()[-1])
        number = len(self.records)
        record = {**last, "uuid": f"00000000-0000-4000-8000-{number:012d}", "parentUuid": last["uuid"]}
        record["message"] = {
            **last["message"],
            "id": f"msg_more_{number}",
            "content": [{"type": "text", "text": words}],
        }
        self.records.append(record["uuid"])
        with self.path.open("a") as file:
            file.write(json.dumps(record) + "\n")


@pytest.fixture
def growing(tmp_path: Path) -> Growing:
    return Growing(tmp_path / "home")


@pytest.fixture
def watching(tmp_path: Path, growing: Growing, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A service that watches the home of that session."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    harken.open(tmp_path / "store.db").close()
    served = Served(tmp_path / "store.db")
    yield served
    if served.process.poll() is None:
        served.stop()


def open_end(browser: Browser, served: Served, growing: Growing) -> Page:
    visit = Visit(browser.new_context(viewport={"width": 1440, "height": 900}), served).sign_in()
    page = visit.open("/sessions")
    page.locator(f"a[href*='{growing.session}']").first.wait_for()
    page = visit.open(f"/s/{growing.session}")
    page.locator(".row-frame").first.wait_for()
    return page


def test_a_session_that_is_named_by_the_beginning_of_its_id_is_followed(
    browser: Browser, watching: Served, growing: Growing
) -> None:
    page = open_end(browser, watching, growing)
    page.goto(f"{watching.url}/s/{growing.session[:8]}")
    page.locator(".row-frame").first.wait_for()
    growing.say("a word that comes later")
    page.keyboard.press("Shift+G")
    expect(page.locator(".rows")).to_contain_text("a word that comes later")


def test_what_is_added_appears_and_is_followed(browser: Browser, watching: Served, growing: Growing) -> None:
    os.utime(growing.path)
    page = open_end(browser, watching, growing)
    page.keyboard.press("Shift+G")
    for number in range(3):
        growing.say(f"something new, number {number}")
        expect(page.get_by_text(f"something new, number {number}")).to_be_visible(timeout=20_000)
    page.context.close()


def test_the_page_goes_on_after_the_server_was_killed(browser: Browser, watching: Served, growing: Growing) -> None:
    page = open_end(browser, watching, growing)
    page.keyboard.press("Shift+G")
    growing.say("before the end of the server")
    expect(page.get_by_text("before the end of the server")).to_be_visible(timeout=20_000)
    watching.stop(signal.SIGKILL)
    growing.say("while nobody listened")
    watching.start()
    growing.say("after it came back")
    expect(page.get_by_text("after it came back")).to_be_visible(timeout=30_000)
    expect(page.get_by_text("while nobody listened")).to_have_count(1)
    page.context.close()


def test_a_view_that_was_asked_for_while_the_server_was_away_comes_when_it_is_back(
    browser: Browser, watching: Served, growing: Growing
) -> None:
    page = open_end(browser, watching, growing)
    other = Visit(page.context, watching).open("/sessions")
    other.locator("a[href*='/s/']").first.wait_for()
    watching.stop(signal.SIGKILL)
    for tab in (page, other):
        expect(tab.locator(".banner")).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("t")
    expect(page.locator("#main").get_by_text("The server does not answer").first).to_be_visible()
    watching.start()
    for tab in (page, other):
        expect(tab.locator(".banner")).to_have_count(0, timeout=20_000)
    expect(page.locator("#main").get_by_text("The server does not answer")).to_have_count(0)
    page.context.close()


def test_a_page_whose_token_was_revoked_says_so_by_itself_and_how_to_sign_in_again(
    browser: Browser, tmp_path: Path
) -> None:
    with small_store(tmp_path) as repo, serving(repo) as service:
        context = browser.new_context()
        page, other = context.new_page(), context.new_page()
        page.goto(f"{service.url}#token={token(service, name='phone')}")
        page.locator("header.top").wait_for()
        for tab in (page, other):
            tab.goto(f"{service.url}s/s")
            tab.locator(".row-frame").first.wait_for()

        service.app.tokens.revoke("phone")

        for tab in (page, other):
            expect(tab.get_by_role("heading", name="This page was signed out")).to_be_visible(timeout=20_000)
            expect(tab.locator("#main")).to_contain_text("harken token create")
            expect(tab.locator(".row-frame")).to_have_count(0)
        page.goto(f"{service.url}s/s#token={token(service, 'context/read')}")
        for tab in (page, other):
            tab.locator(".row-frame").first.wait_for()
        assert "token" not in page.url
        context.close()


def test_a_part_that_the_server_has_no_more_since_an_upgrade_asks_to_load_the_page_again(
    browser: Browser, tmp_path: Path
) -> None:
    with small_store(tmp_path) as repo, serving(repo) as service:
        context = browser.new_context()
        page = context.new_page()
        page.goto(f"{service.url}#token={token(service)}")
        page.locator("header.top").wait_for()
        page.goto(f"{service.url}s/s", wait_until="commit")
        page.locator(".row-frame").first.wait_for()
        page.route("**/part-*.js", lambda route: route.fulfill(status=404))
        page.keyboard.press("c")
        expect(page.get_by_role("dialog")).to_contain_text("This page has to be loaded again")
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
        page.keyboard.press("2")
        expect(page.locator("#main")).to_contain_text("the server may have another version")
        page.unroute("**/part-*.js")
        page.get_by_role("button", name="Load it again").click()
        expect(page.locator("#main")).not_to_contain_text("loaded again")
        assert page.url.endswith("/s/s?v=flow")
        page.locator(".row-frame, .flow, .state").first.wait_for()
        context.close()


def test_a_store_that_another_was_put_in_the_place_of_is_told_of_on_pages_that_are_open(
    browser: Browser, tmp_path: Path
) -> None:
    with small_store(tmp_path) as repo, serving(repo) as service:
        context = browser.new_context()
        page = context.new_page()
        page.goto(f"{service.url}#token={token(service)}")
        page.locator("header.top").wait_for()
        page.goto(f"{service.url}s/s")
        page.locator(".row-frame").first.wait_for()
        with harken.open(tmp_path / "other.db"):
            pass
        (tmp_path / "store.db").rename(tmp_path / "before.db")
        (tmp_path / "other.db").rename(tmp_path / "store.db")
        expect(page.locator(".banner")).to_contain_text("another was put in its place", timeout=20_000)
        expect(page.locator(".row-frame").first).to_be_visible()
        context.close()
