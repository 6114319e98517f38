"""Ways through the page that one takes without thinking: keys that scroll, the back button, a link that is too old."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from .conftest import Visit
from .test_views import VIEWS, ready

pytestmark = pytest.mark.page

SCROLLED = "Math.max(...[...document.querySelectorAll('#main, #main .page, #main .list')].map(one => one.scrollTop))"


def scrolls(page: Page) -> None:
    """That the keys of the browser scroll what was just opened."""
    page.keyboard.press("PageDown")
    page.wait_for_function(f"() => {SCROLLED} > 50")
    page.keyboard.press("Home")
    page.wait_for_function(f"() => {SCROLLED} === 0")
    page.keyboard.press("End")
    page.wait_for_function(f"() => {SCROLLED} > 50")


@pytest.mark.parametrize("name", ["transcript", "sessions", "commits", "stats", "flow", "raw", "home"])
def test_keys_scroll_what_was_just_opened(name: str, visit: Visit, sessions: dict[str, str]) -> None:
    visit.page.set_viewport_size({"width": 1440, "height": 420})
    page = visit.open(VIEWS[name].format(**sessions))
    ready(page)
    scrolls(page)


def test_words_that_are_gone_back_to_are_in_the_find_bar(visit: Visit, sessions: dict[str, str]) -> None:
    page = visit.open(f"/s/{sessions['sub_agents']}?q=delegate")
    field = page.locator(".find input")
    expect(field).to_have_value("delegate")
    page.evaluate(
        "() => { history.pushState(null, '', location.pathname + '?q=look'); dispatchEvent(new Event('popstate')); }"
    )
    expect(field).to_have_value("look")
    page.go_back()
    expect(field).to_have_value("delegate")
    field.press("End")
    page.keyboard.type(" it three")
    expect(field).to_have_value("delegate it three")


def test_keys_that_come_at_once_behind_the_one_that_opens_the_find_bar_are_written_in_it(
    visit: Visit, sessions: dict[str, str]
) -> None:
    page = visit.open(f"/s/{sessions['sub_agents']}")
    ready(page)
    page.evaluate(
        """async () => {
          document.dispatchEvent(new KeyboardEvent('keydown', {key: '/', bubbles: true}));
          await Promise.resolve(); // what a browser does between two keys; no screen is drawn, and no timer runs
          await Promise.resolve();
          document.execCommand('insertText', false, 'look');
        }"""
    )
    expect(page.locator(".find input")).to_have_value("look")


def test_going_back_before_the_screen_is_drawn_is_not_undone(visit: Visit, sessions: dict[str, str]) -> None:
    page = visit.open(f"/s/{sessions['sub_agents']}?q=delegate")
    field = page.locator(".find input")
    expect(field).to_have_value("delegate")
    page.evaluate(
        """async () => {
          const to = (words) => {
            history.replaceState(null, '', location.pathname + '?q=' + words);
            dispatchEvent(new Event('popstate'));
          };
          to('look');
          while (document.querySelector('.find input').value !== 'look') await new Promise((done) => setTimeout(done));
          to('delegate');
        }"""
    )
    expect(field).to_have_value("delegate")
    assert "q=delegate" in page.url


def test_a_view_that_is_chosen_by_a_key_has_the_address_of_its_tab(visit: Visit, sessions: dict[str, str]) -> None:
    page = visit.open(f"/s/{sessions['cafe']}?v=flow&a=agent_002&cols=you,agent_002&tools=some")
    ready(page)
    tab = page.locator(".view-tabs a", has_text="Lanes").get_attribute("href")
    page.keyboard.press("3")
    page.wait_for_url(visit.served.url + str(tab))


def test_a_record_that_is_not_there_is_said_to_be_missing(visit: Visit, sessions: dict[str, str]) -> None:
    page = visit.open(f"/s/{sessions['sub_agents']}?e=00000000-0000-4000-8000-000000000000")
    expect(page.locator(".toast")).to_contain_text("no such record")
    visit.problems.clear()  # the browser tells of the 404


def test_the_hit_that_one_is_at_is_marked(visit: Visit, sessions: dict[str, str]) -> None:
    page = visit.open(f"/s/{sessions['sub_agents']}?q=look")
    expect(page.locator(".row-frame.hit")).to_have_count(1)
    first = page.locator(".row-frame.hit").get_attribute("id")
    page.locator(".find input").press("Enter")
    expect(page.locator(".row-frame.hit")).not_to_have_id(str(first))


def test_a_sub_agent_is_told_what_it_was_asked_in_the_session_that_asked(
    visit: Visit, sessions: dict[str, str]
) -> None:
    page = visit.open(f"/s/{sessions['debate']}/agent_002?v=agents")
    ready(page)
    expect(page.locator(".agent-links a").first).to_have_attribute(
        "href", re.compile(re.escape(f"/s/{sessions['debate']}?e="))
    )


def test_tokens_that_nobody_counted_are_not_called_none(visit: Visit, sessions: dict[str, str]) -> None:
    page = visit.open(f"/s/{sessions['cafe']}")
    ready(page)
    expect(page.locator(".side")).to_contain_text("Newest commit")
    expect(page.locator(".side")).not_to_contain_text("Tokens")
