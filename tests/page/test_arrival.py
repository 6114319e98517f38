"""How the page of a session begins: its first answers come with it, late, or not at all."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Route, expect

import harken
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


BOXES = """(selector) => [...document.querySelectorAll(selector)].map((one) => {
  const { x, y, width, height } = one.getBoundingClientRect();
  return { x, y, width, height, text: one.textContent.replace(/\\s+/g, '') };
})"""


@pytest.mark.parametrize("width", [1440, 1000, 380])
@pytest.mark.parametrize("name", ["sub_agents", "rollout", "e0ee1aad"])
def test_the_first_words_can_be_read_before_the_script_is_there_and_stay_where_they_are(
    visit: Visit, sessions: dict[str, str], name: str, width: int
) -> None:
    page = visit.page
    page.set_viewport_size({"width": width, "height": 800})
    held: list[Route] = []
    page.route("**/app.js*", lambda route: held.append(route))
    page.goto(f"{visit.served.url}/s/{sessions[name]}", wait_until="commit")
    expect(page.locator("#first-words .first-row").first).to_be_visible()
    page.evaluate("() => document.fonts.ready")
    first, head = page.evaluate(BOXES, ".first-row"), page.evaluate(BOXES, ".first-head b")

    while not held:
        page.wait_for_timeout(20)
    held[0].continue_()

    expect(page.locator(".row-frame").first).to_be_visible()
    expect(page.locator("#first-words")).to_have_count(0)
    then = page.evaluate(BOXES, ".row-frame")[: len(first)]
    for before, after in [*zip(first, then, strict=True), *zip(head, page.evaluate(BOXES, "h1"), strict=True)]:
        assert [before[key] for key in "xy"] == pytest.approx([after[key] for key in "xy"], abs=1)
        assert before["text"] in after["text"] or page.locator(".answer").count()
    # The last one may be higher: only the script knows that.
    for before, after in zip(first[:-1], then[:-1], strict=True):
        assert (before["width"], before["height"]) == pytest.approx((after["width"], after["height"]), abs=1)


def test_who_goes_elsewhere_before_the_answers_are_there_sees_no_words_of_what_was_left(
    browser: Browser, store: Path, sessions: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = threading.Event()
    real = operation("transcript")

    def slow(*asked: Any) -> Any:
        made.wait(20)
        return real(*asked)

    with harken.open(store) as repo, serving(repo) as service:
        context = browser.new_context()
        page = context.new_page()
        try:
            page.goto(f"{service.url}#token={token(service)}")
            page.locator("header.top").wait_for()
            page.goto(f"{service.url}s/{sessions['rollout']}")
            expect(page.locator(".row-frame").first).to_be_visible()
            replace_operation(monkeypatch, "transcript", slow)
            page.goto(f"{service.url}s/{sessions['rollout']}", wait_until="commit")
            page.locator(".links a", has_text="Documents").click()
            expect(page.locator("h1", has_text="Documents")).to_be_visible()
            made.set()
            page.wait_for_function("() => document.readyState === 'complete'")
            expect(page.locator("#first-words")).to_have_count(0)
        finally:
            made.set()
            context.close()


def test_a_session_that_is_opened_at_a_record_or_goes_on_has_no_first_words(
    visit: Visit, sessions: dict[str, str]
) -> None:
    page = visit.page
    page.route("**/app.js*", lambda route: route.abort())
    for address in (f"/s/{sessions['cafe']}?e=x", f"/s/{sessions['cafe']}?v=flow", "/"):
        page.goto(visit.served.url + address)
        expect(page.locator("#first-words")).to_have_count(0)
    page.unroute("**/app.js*")
    page.goto("about:blank")
    visit.problems.clear()  # that the script was not there


def test_the_theme_that_was_chosen_is_there_with_the_first_words(visit: Visit, sessions: dict[str, str]) -> None:
    page = visit.page
    page.evaluate("() => localStorage.setItem('harken-theme', 'dark')")
    page.route("**/app.js*", lambda route: route.abort())
    page.goto(f"{visit.served.url}/s/{sessions['rollout']}")
    expect(page.locator("#first-words")).to_be_visible()
    assert "dark" == page.evaluate("() => document.documentElement.dataset.theme")
    page.goto("about:blank")
    visit.problems.clear()  # that the script was not there
