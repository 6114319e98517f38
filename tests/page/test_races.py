"""What happens between two screens: keys, answers and news in any order. Nothing here waits for a busy machine.

A browser runs promises between two keys, draws no screen and lets no timer run: `at_once` does the same. `Held` keeps
the answers of an operation back until the test has done what a person may do meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

import harken
from support.large_session import write_large_session

from .conftest import Served, Visit, visiting
from .test_views import ready

pytestmark = pytest.mark.page

LONG = 900
"""Records: more than one page of a list."""
AT_ONCE = """async (keys) => {
  for (const [key, ctrlKey] of keys) {
    const focused = document.activeElement || document.body;
    focused.dispatchEvent(new KeyboardEvent('keydown', {key, ctrlKey, bubbles: true}));
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
  }
  return LOOK;
}"""


def at_once(page: Page, keys: list[str], look: str) -> Any:
    """What the page is like behind keys that come faster than a screen; `Control+k` is the only one with a modifier."""
    pressed = [[key.removeprefix("Control+"), key.startswith("Control+")] for key in keys]
    return page.evaluate(AT_ONCE.replace("LOOK", look), pressed)


def news(page: Page, *changes: dict[str, Any]) -> None:
    """Tell the page of changes, as another tab that listens to the feed does."""
    page.evaluate(
        """async (changes) => {
          const others = new BroadcastChannel('harken-feed');
          others.postMessage({changes});
          await new Promise((done) => setTimeout(done, 20));
          others.close();
        }""",
        list(changes),
    )


class Held:
    """Answers of an operation that are kept back until they are let go."""

    def __init__(self, page: Page, operation: str, fits: Callable[[dict[str, Any]], bool] = lambda asked: True) -> None:
        self._page, self._path, self._fits = page, f"**/api/v1/{operation}", fits
        self._waiting: list[tuple[Route, Any]] = []
        self._is_open = False
        page.route(self._path, self._heard)

    def _heard(self, route: Route) -> None:
        if self._is_open or not self._fits(json.loads(route.request.post_data or "{}")):
            route.fallback()
        else:
            self._waiting.append((route, route.fetch()))

    def wait(self) -> Held:
        """Until one is held back."""
        for _ in range(300):
            if self._waiting:
                return self
            self._page.wait_for_timeout(50)
        raise AssertionError(f"nothing asked for {self._path}")

    def let_go(self) -> None:
        self._is_open = True
        for route, answer in self._waiting:
            route.fulfill(response=answer)
        self._page.unroute(self._path, self._heard)


@pytest.fixture(scope="session")
def long_served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    where = tmp_path_factory.mktemp("long")
    session, _, _ = write_large_session(where / "home", LONG)
    with harken.open(where / "store.db") as repo:
        assert ["new"] == [told.status for told in repo.import_sessions([where / "home"])]
        repo.index.catch_up()
    running = Served(where / "store.db", 0, "--no-watch")
    yield running, session
    running.stop()


@pytest.fixture
def long_visit(browser: Browser, long_served: tuple[Served, str]) -> Iterator[Visit]:
    yield from visiting(browser, long_served[0])


# -- keys that come faster than a screen ---


def test_keys_behind_the_one_that_opens_the_palette_are_meant_for_it(visit: Visit) -> None:
    page = visit.open("/")
    ready(page)
    assert "INPUT in the palette" == at_once(
        page,
        ["Control+k"],
        "document.activeElement.tagName + (document.activeElement.closest('.palette') ? ' in the palette' : '')",
    )


FILTER = "Filter sessions by words in them"


class HeldView:
    """The part of the page that has the list of sessions, kept back until it is let go, or lost."""

    def __init__(self, page: Page) -> None:
        self._waiting: list[tuple[Route, Any]] = []
        self._page = page
        page.route("**/part-*.js", self._heard)

    def _heard(self, route: Route) -> None:
        answer = route.fetch()
        if FILTER in answer.text():
            self._waiting.append((route, answer))
        else:
            route.fulfill(response=answer)

    def _taken(self) -> tuple[Route, Any]:
        for _ in range(300):
            if self._waiting:
                return self._waiting.pop()
            self._page.wait_for_timeout(50)
        raise AssertionError("nothing asked for the list of sessions")

    def let_go(self) -> None:
        route, answer = self._taken()
        route.fulfill(response=answer)

    def lose(self) -> None:
        route, _ = self._taken()
        route.abort()
        self._page.unroute("**/part-*.js", self._heard)


def test_a_view_hears_keys_before_it_is_drawn(visit: Visit) -> None:
    page = visit.open("/sessions")  # so that its part of the page is there
    ready(page)
    at_once(page, ["g", "h"], "null")
    ready(page)
    assert FILTER == at_once(page, ["g", "s", "/"], "document.activeElement.getAttribute('aria-label')")


def test_a_view_hears_keys_before_it_is_fetched(visit: Visit) -> None:
    page = visit.open("/")
    ready(page)
    at_once(page, ["g", "s", "/"], "null")
    expect(page.get_by_label(FILTER)).to_be_focused()


def test_what_is_typed_while_a_view_is_fetched_is_meant_for_it_in_its_order(visit: Visit) -> None:
    held = HeldView(visit.page)
    page = visit.open("/")
    ready(page)
    at_once(page, ["g", "s", "/", *"cae", "Backspace", *"fé g s t"], "null")
    theme = page.evaluate("document.documentElement.dataset.theme")
    page.wait_for_timeout(100)
    assert page.url.endswith("/sessions")
    expect(page.get_by_label(FILTER)).to_have_count(0)
    held.let_go()
    expect(page.get_by_label(FILTER)).to_be_focused()
    expect(page.get_by_label(FILTER)).to_have_value("café g s t")
    page.wait_for_url("**/sessions?q=caf%C3%A9+g+s+t")
    assert theme == page.evaluate("document.documentElement.dataset.theme")


def test_keys_for_a_view_that_is_left_or_that_nobody_waits_for_are_dropped(visit: Visit) -> None:
    held = HeldView(visit.page)
    page = visit.open("/")
    ready(page)
    at_once(page, ["g", "s", "/", "Escape", "g", "h"], "null")
    page.wait_for_url(lambda url: not url.endswith("/sessions"))
    at_once(page, ["g", "s"], "null")
    held.let_go()
    ready(page)
    expect(page.get_by_label(FILTER)).not_to_be_focused()


def test_keys_for_a_view_that_cannot_be_fetched_are_dropped(visit: Visit) -> None:
    held = HeldView(visit.page)
    page = visit.open("/")
    ready(page)
    at_once(page, ["g", "s", "/", "x"], "null")
    held.lose()
    expect(page.get_by_text("This page has to be loaded again")).to_be_visible()
    assert [] != visit.problems  # the browser tells of what was lost
    visit.problems.clear()
    at_once(page, ["g", "h"], "null")
    ready(page)
    at_once(page, ["g", "s"], "null")
    expect(page.get_by_label(FILTER)).to_be_visible()
    page.wait_for_timeout(100)
    expect(page.get_by_label(FILTER)).to_have_value("")
    expect(page.get_by_label(FILTER)).not_to_be_focused()


def test_the_hit_that_was_chosen_last_has_the_focus_at_once(visit: Visit) -> None:
    page = visit.open("/search?q=the")
    ready(page)
    page.keyboard.press("j")
    expect(page.locator(".hit.chosen")).to_be_focused()
    chosen, focused = at_once(page, ["j"], "[document.querySelector('.hit.chosen').id, document.activeElement.id]")
    assert chosen == focused


# -- words that are typed ---


def test_words_that_are_typed_do_not_follow_to_another_page(visit: Visit) -> None:
    page = visit.open("/sessions")
    ready(page)
    page.locator(".session-field input").fill("run")
    page.locator("nav.links a[href='/commits']").click()
    page.wait_for_timeout(400)
    assert page.url.endswith("/commits")
    page.go_back()
    expect(page.locator(".session-field input")).to_have_value("run")


def test_going_back_takes_the_words_out_of_a_field_that_has_the_focus(visit: Visit) -> None:
    page = visit.open("/sessions?q=run")
    ready(page)
    page.evaluate("() => { history.pushState(null, '', '/sessions?q=look'); dispatchEvent(new Event('popstate')); }")
    field = page.locator(".session-field input")
    field.focus()
    expect(field).to_have_value("look")
    page.evaluate("() => history.back()")
    expect(field).to_have_value("run")


def test_a_store_is_not_called_empty_while_all_of_it_is_asked_for(visit: Visit) -> None:
    page = visit.open("/sessions?q=zzqqxx")
    expect(page.locator(".state")).to_contain_text("No session says")
    held = Held(page, "sessions_page", lambda asked: not asked.get("query"))
    page.get_by_role("link", name="Clear all").click()
    held.wait()
    expect(page.locator(".session-field")).to_be_visible()
    expect(page.locator("#main")).not_to_contain_text("harken import")
    held.let_go()
    expect(page.locator(".session-row").first).to_be_visible()


def test_what_is_chosen_in_the_palette_stays_chosen_when_answers_come(visit: Visit) -> None:
    page = visit.open("/")
    ready(page)
    page.keyboard.press("Control+k")
    expect(page.locator(".palette-option").nth(3)).to_be_visible()
    held = Held(page, "sessions_page", lambda asked: asked.get("match") == "s")
    page.keyboard.type("s")
    held.wait()
    chosen = page.locator(".palette-option[aria-selected=true]")
    for _ in range(12):
        page.keyboard.press("ArrowDown")
        if "Stats" in chosen.inner_text():
            break
    assert "Stats" in chosen.inner_text()
    held.let_go()
    page.wait_for_timeout(200)
    assert "Stats" in chosen.inner_text()


# -- answers that come late ---


def test_a_row_that_comes_late_does_not_write_into_the_address_of_another_view(
    long_visit: Visit, long_served: tuple[Served, str]
) -> None:
    page = long_visit.open(f"/s/{long_served[1]}")
    ready(page)
    held = Held(page, "transcript", lambda asked: asked["start"] > 0 and asked["count"] == 1)
    page.keyboard.press("Shift+G")
    held.wait()
    page.keyboard.press("6")
    page.locator(".raw-record").first.wait_for()
    held.let_go()
    page.wait_for_timeout(300)
    assert "e=" not in page.url


def test_who_goes_home_is_not_taken_to_the_next_session(visit: Visit, sessions: dict[str, str]) -> None:
    page = visit.open(f"/s/{sessions['cafe']}")
    ready(page)
    held = Held(page, "sessions_page", lambda asked: asked.get("count") == 200)
    page.keyboard.press("]")
    held.wait()
    page.keyboard.press("g")
    page.keyboard.press("h")
    page.locator(".home").wait_for()
    held.let_go()
    page.wait_for_timeout(300)
    assert page.url.endswith("/")


def test_what_an_agent_knew_is_told_of_the_moment_that_was_asked_for_last(
    visit: Visit, sessions: dict[str, str]
) -> None:
    page = visit.open(f"/s/{sessions['cafe']}?v=flow")
    ready(page)
    page.keyboard.press("l")
    page.wait_for_url(lambda url: "a=" in url)
    ready(page)
    known = "() => [...document.querySelectorAll('.flow-row')].map((row) => row.className).join()"
    last = page.evaluate(known)
    for _ in range(3):
        page.keyboard.press(",")
    ready(page)
    expect(page.locator(".flow-row").first).to_be_visible()
    page.wait_for_timeout(400)
    earlier = page.evaluate(known)
    assert last != earlier
    held = Held(page, "flow_knows", lambda asked: asked["count"] > 1)
    for _ in range(3):
        page.keyboard.press(".")
    held.wait()
    for _ in range(3):
        page.keyboard.press(",")
    page.wait_for_timeout(400)
    held.let_go()
    page.wait_for_timeout(600)
    assert earlier == page.evaluate(known)


def test_words_that_were_unfolded_are_not_shown_as_what_another_said(visit: Visit, sessions: dict[str, str]) -> None:
    page = visit.open("/")

    def cut(route: Route) -> None:
        answer = route.fetch().json()
        route.fulfill(json={**answer, "rows": [{**row, "cut": 100} for row in answer["rows"]]})

    page.route("**/api/v1/flow_page", cut)
    page.route("**/api/v1/view_compare", lambda route: route.fulfill(body="", content_type="application/x-ndjson"))
    page.route("**/api/v1/transcript_row", lambda route: route.fulfill(json={"text": "ALL THAT WAS SAID"}))
    page = visit.open(f"/s/{sessions['cafe']}?v=flow")
    ready(page)
    page.keyboard.press("j")
    page.get_by_role("button", name="100 more characters").click()
    expect(page.locator("aside")).to_contain_text("ALL THAT WAS SAID")
    page.keyboard.press("j")
    expect(page.locator("aside")).not_to_contain_text("ALL THAT WAS SAID")
    page.unroute_all(behavior="wait")


# -- news ---


def test_rows_that_become_old_while_they_are_on_their_way_are_asked_for_again(
    long_visit: Visit, long_served: tuple[Served, str]
) -> None:
    session = long_served[1]
    page = long_visit.open(f"/s/{session}")
    ready(page)
    held = Held(page, "transcript", lambda asked: asked["count"] == 200)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.post_data or "") if "/transcript" in request.url else None)
    news(page, {"kind": "session", "subject": session})
    held.wait()
    asked.clear()
    news(page, {"kind": "session", "subject": session})
    held.let_go()
    page.wait_for_timeout(500)
    assert any('"count":200' in one for one in asked)


def test_news_that_come_faster_than_answers_do_not_keep_them_away(
    long_visit: Visit, long_served: tuple[Served, str]
) -> None:
    session = long_served[1]
    page = long_visit.open(f"/s/{session}")
    ready(page)
    held = Held(page, "transcript_outline")
    given_up: list[str] = []
    page.on("requestfailed", lambda request: given_up.append(request.url))
    news(page, {"kind": "session", "subject": session})
    held.wait()
    news(page, {"kind": "session", "subject": session})
    page.wait_for_timeout(200)
    held.let_go()
    page.wait_for_timeout(300)
    assert [] == given_up


def test_news_do_not_take_away_the_records_that_are_being_read(
    long_visit: Visit, long_served: tuple[Served, str]
) -> None:
    session = long_served[1]
    page = long_visit.open(f"/s/{session}?v=raw")
    ready(page)
    page.locator(".raw .list").evaluate("(list) => (list.scrollTop = 4000)")
    page.wait_for_timeout(400)  # heights are measured
    first = """(list) => {
      const box = list.getBoundingClientRect();
      return document.elementFromPoint(box.x + 60, box.y + 4).closest('[data-n]').dataset.n;
    }"""
    seen = page.locator(".raw .list").evaluate(first)
    held = Held(page, "raw_records", lambda asked: asked["count"] == 1)
    news(page, {"kind": "session", "subject": session})
    held.wait()
    expect(page.locator(".raw .list")).to_be_visible()
    held.let_go()
    ready(page)
    assert seen == page.locator(".raw .list").evaluate(first)


def test_news_do_not_call_back_who_has_left_a_field(visit: Visit) -> None:
    page = visit.open("/commits")
    ready(page)
    page.keyboard.press("j")
    page.get_by_role("button", name="Fork").click()
    expect(page.locator(".change input")).to_be_focused()
    page.get_by_role("button", name="Mark as A").focus()
    with page.expect_response("**/api/v1/commit_rows"):
        news(page, {"kind": "commit", "subject": ""})
    page.wait_for_timeout(200)
    expect(page.get_by_role("button", name="Mark as A")).to_be_focused()


@pytest.mark.parametrize(("path", "operation"), [("/", "home"), ("/sessions", "sessions_page")])
def test_while_the_index_is_made_the_page_says_so_and_goes_on_by_itself(
    visit: Visit, path: str, operation: str
) -> None:
    page = visit.open("/documents")
    ready(page)
    left = [9_000, 40, 0]

    def lacking(route: Route) -> None:
        answer = route.fetch()
        told = {**answer.json(), "behind": left[0]}
        route.fulfill(response=answer, json=told)

    page.route("**/api/v1/*_page", lacking)
    page.route("**/api/v1/home", lacking)
    page.goto(visit.served.url + path)
    expect(page.locator(".banner")).to_contain_text("9,000 changes of the store to go")
    left.pop(0)
    expect(page.locator(".banner")).to_contain_text("40 changes")
    left.pop(0)
    with page.expect_response(lambda answer: answer.url.endswith(f"/{operation}")):
        pass
    expect(page.locator(".banner")).to_have_count(0)


@pytest.mark.parametrize("path", ["/", "/sessions", "/s/{sub_agents}?v=lanes"])
def test_a_part_of_the_store_that_cannot_be_read_is_told_of_wherever_it_is_missing(
    visit: Visit, path: str, sessions: dict[str, str]
) -> None:
    def damaged(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json={**answer.json(), "damaged": 3})

    for operation in ("home", "sessions_page", "lanes"):
        visit.page.route(f"**/api/v1/{operation}", damaged)
    page = visit.open(path.format(**sessions))
    expect(page.locator(".banner")).to_contain_text("3 parts of the store cannot be read")
    expect(page.locator(".banner")).to_contain_text("harken fsck")
