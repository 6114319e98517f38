"""How the page of a session begins: its first answers come with it, late, or not at all."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Route, expect

from harken.api import operation
from support.service import replace_operation, serving, small_store, token

from .conftest import Served, Visit

pytestmark = pytest.mark.page


def test_whoever_waits_for_the_first_answers_sees_the_frame(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = threading.Event()
    real = operation("session_page")

    def slow(*asked: Any) -> Any:
        made.wait(20)
        return real(*asked)

    replace_operation(monkeypatch, "session_page", slow)
    with small_store(tmp_path) as repo, serving(repo) as service:
        context = browser.new_context()
        page = context.new_page()
        try:
            page.goto(f"{service.url}#token={token(service)}")
            page.locator("header.top").wait_for()
            page.goto(f"{service.url}s/s", wait_until="commit")
            expect(page.locator("header.top")).to_be_visible()
            expect(page.locator(".loading")).to_be_visible()
            made.set()
            expect(page.locator(".row-frame").first).to_be_visible()
            expect(page.locator(".loading")).to_have_count(0)
        finally:
            made.set()
            context.close()


def test_answers_that_were_cut_off_are_asked_for(visit: Visit, sessions: dict[str, str]) -> None:
    def cut(route: Route) -> None:
        told = route.fetch()
        body = told.text()
        route.fulfill(response=told, body=body[: body.index("first-answers") + 400])

    visit.page.route("**/s/*", cut)
    page = visit.open(f"/s/{sessions['cafe']}")
    expect(page.locator(".row-frame").first).to_be_visible()


@pytest.mark.parametrize("key", ["Shift+G", "End"])
def test_the_end_of_a_long_session_is_its_end_before_all_rows_are_counted(
    browser: Browser, large: tuple[Path, str, list[str]], key: str
) -> None:
    served = Served(large[0], 0, "--no-watch")
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    try:
        visit = Visit(context, served).sign_in()
        held: list[Route] = []
        let_go = threading.Event()
        visit.page.route(
            "**/api/v1/transcript", lambda route: route.continue_() if let_go.is_set() else held.append(route)
        )
        page = visit.open(f"/s/{large[1]}")
        page.locator(".row-frame").first.wait_for()
        while not held:
            page.wait_for_timeout(20)
        expect(page.locator(".counting")).to_contain_text("Counting the rows: there are more than ")
        assert {"-1"} == set(page.locator("[data-n]").evaluate_all("all => all.map(one => one.ariaSetSize)"))
        page.keyboard.press(key)
        let_go.set()
        for route in held:
            route.continue_()
        far = "() => [...document.querySelectorAll('[data-n]')].some((one) => Number(one.dataset.n) > 10_000)"
        page.wait_for_function(far)
        expect(page.locator(".counting")).to_have_count(0)
        assert "-1" not in page.locator("[data-n]").evaluate_all("all => all.map(one => one.ariaSetSize)")
    finally:
        context.close()
        served.stop()
