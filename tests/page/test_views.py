"""Every view opens by its address, in both themes and on a small screen, without a fault that a browser can tell."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from support.service import serving, small_store, token

from .conftest import Served, Visit, visiting

pytestmark = pytest.mark.page

AXE = Path(__file__).parents[2] / ".tools" / "web" / "node_modules" / "axe-core" / "axe.min.js"
VIEWS = {
    "home": "/",
    "sessions": "/sessions",
    "search": "/search?q=caf%C3%A9",
    "commits": "/commits",
    "stats": "/stats",
    "documents": "/documents",
    "transcript": "/s/{sub_agents}",
    "flow": "/s/{cafe}?v=flow",
    "lanes": "/s/{sub_agents}?v=lanes",
    "session commits": "/s/{sub_agents}?v=commits",
    "agents": "/s/{cafe}?v=agents",
    "raw": "/s/{sub_agents}?v=raw",
}
"""Every view, and an address that shows it."""


def ready(page: Page) -> None:
    """Until what was asked for is there."""
    page.locator("#main").wait_for()
    page.wait_for_function("() => !document.querySelector('.loading, [aria-busy=true]')")
    page.wait_for_timeout(300)


@pytest.fixture(params=["light", "dark"])
def theme(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_opens_by_its_address_and_is_accessible(
    name: str, theme: str, browser: Browser, served: Served, sessions: dict[str, str]
) -> None:
    for visit in visiting(browser, served, color_scheme=theme, bypass_csp=True):
        page = visit.open(VIEWS[name].format(**sessions))
        ready(page)
        assert 0 == page.locator(".state h2:text('did not work'), .state h2:text('no such')").count()
        page.evaluate(AXE.read_text())
        found: list[dict[str, Any]] = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")[
            "violations"
        ]
        serious = [
            (one["id"], [node["html"][:120] for node in one["nodes"][:3]])
            for one in found
            if one["impact"] in ("serious", "critical")
        ]
        assert [] == serious


@pytest.mark.parametrize("name", VIEWS)
def test_nothing_is_wider_than_a_small_screen(
    name: str, browser: Browser, served: Served, sessions: dict[str, str]
) -> None:
    for visit in visiting(browser, served, viewport={"width": 360, "height": 740}):
        page = visit.open(VIEWS[name].format(**sessions))
        ready(page)
        assert 360 >= page.evaluate("() => document.documentElement.scrollWidth")
        assert page.locator("nav.tabbar").is_visible()


def test_an_address_that_means_nothing_says_so(visit: Visit) -> None:
    page = visit.open("/nowhere")
    assert page.get_by_text("There is no such page").is_visible()


def test_a_session_that_is_not_there_says_so(visit: Visit) -> None:
    page = visit.open("/s/no-such-session")
    page.get_by_text("There is no such thing here").wait_for()
    visit.problems.clear()  # the browser tells of every answer that is no 200


@pytest.mark.parametrize("day", ["2026-13-99", "2026-02-30", "yesterday"])
def test_what_is_no_day_is_told_in_plain_words(visit: Visit, day: str) -> None:
    page = visit.open(f"/?day={day}")
    page.get_by_text(f"'{day}' is no day").wait_for()
    assert page.get_by_text("write it like 2026-01-31").is_visible()
    visit.problems.clear()  # the browser tells of every answer that is no 200


def test_a_model_that_two_programs_spell_differently_is_one_row_of_the_stats(visit: Visit) -> None:
    page = visit.page
    spellings = ["claude-sonnet-4.5", "claude-sonnet-4-5-20250929"]

    def answer(route: Route) -> None:
        told = [json.loads(line) for line in route.fetch().text().splitlines()]
        others = [one for one in told if one.get("by") != "model"]
        models = [one for one in told if one.get("by") == "model" and one["requests"]][:1]
        twice = [{**one, "key": key} for one in models for key in spellings]
        route.fulfill(body="\n".join(map(json.dumps, [*others, *twice])), content_type="application/x-ndjson")

    page.route("**/api/v1/usage", answer)
    visit.open("/stats?since=all")
    row = page.locator(".cost-shares table").filter(has_text="Model").locator("tbody tr")
    expect(row).to_have_count(1)
    expect(row.locator("a")).to_have_text("sonnet 4.5")
    expect(row.locator("a")).to_have_attribute("href", re.compile("4.5.*20250929"))
    page.unroute_all(behavior="wait")


def test_stats_call_no_store_empty_that_has_sessions(browser: Browser, tmp_path: Path) -> None:
    with small_store(tmp_path) as repo, serving(repo) as service:
        context = browser.new_context()
        page = context.new_page()
        lack = {"stale": 3}

        def uncounted(route: Route) -> None:
            told = [json.loads(line) for line in route.fetch().text().splitlines()]
            for one in told:
                if "hours" in one:
                    one |= {"requests": 0, "calls": 0} | lack
            route.fulfill(body="".join(json.dumps(one) + "\n" for one in told), content_type="application/x-ndjson")

        page.route("**/api/v1/usage", uncounted)
        page.goto(f"{service.url}stats#token={token(service)}")
        expect(page.locator("#main")).to_contain_text("Nothing is counted yet")
        lack.clear()
        expect(page.locator("#main")).to_contain_text("Nothing was counted here", timeout=20_000)
        expect(page.locator("#main")).to_contain_text("In none of 1 session was a tool called")
        page.unroute("**/api/v1/usage")
        context.close()


def test_the_list_of_operations_opens_without_an_error(visit: Visit) -> None:
    page = visit.open("/docs")
    expect(page.get_by_role("heading", name="Harken: operations")).to_be_visible()
    page.wait_for_timeout(300)
