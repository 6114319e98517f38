"""What a person sees of sub-agents that were called in a few words, one of them in the background."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

import harken
from support.errands import LAST, NAMES, SESSION, SPEED, write_errands

from .conftest import Served, Visit, visiting

pytestmark = pytest.mark.page


@pytest.fixture(scope="module")
def errands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    where = tmp_path_factory.mktemp("errands")
    write_errands(where / "home")
    with harken.open(where / "store.db") as repo:
        list(repo.import_sessions([where / "home"]))
        repo.index.catch_up()
    served = Served(where / "store.db", 0, "--no-watch", "--read-only")
    yield served
    served.stop()


@pytest.fixture
def visit(browser: Browser, errands: Served) -> Iterator[Visit]:
    yield from visiting(browser, errands)


def test_a_sub_agent_has_one_name_in_flow_lanes_and_agents(visit: Visit) -> None:
    for view, names in (("flow", ".flow-head"), ("lanes", ".lane-label"), ("agents", ".agent-card h2")):
        page = visit.open(f"/s/{SESSION}?v={view}")
        for name in (SPEED, NAMES):
            expect(page.locator(names).filter(has_text=name).first).to_be_visible()


def test_an_agent_in_the_background_took_until_it_was_done_and_is_told_with_its_last_words(visit: Visit) -> None:
    page = visit.open(f"/s/{SESSION}?v=agents")

    card = page.locator(".agent-card", has=page.locator("h2", has_text=SPEED))
    expect(card).to_contain_text("Took29 s")
    expect(card).to_contain_text(LAST)
    expect(card).not_to_contain_text("launched")
    other = page.locator(".agent-card", has=page.locator("h2", has_text=NAMES))
    expect(other).to_contain_text("Took6 s")
    expect(other).to_contain_text("Gave back")


def test_a_moment_earlier_leads_to_the_beginning_though_agents_spoke_at_the_same_instant(visit: Visit) -> None:
    page = visit.open(f"/s/{SESSION}?v=flow&a=a0000001")
    page.locator(".moment-thumb").wait_for()
    moments = int(page.locator(".moment-thumb").get_attribute("aria-valuemax") or 0)

    for _ in range(moments):
        page.keyboard.press(",")
        page.wait_for_timeout(30)
    expect(page.locator(".moment-thumb")).to_have_attribute("aria-valuenow", "0")
    for _ in range(moments):
        page.keyboard.press(".")
        page.wait_for_timeout(30)
    expect(page.locator(".moment-thumb")).to_have_attribute("aria-valuenow", str(moments))


def test_escape_and_a_click_elsewhere_close_the_list_of_agents_and_nothing_else(visit: Visit) -> None:
    for view, opens in (("flow", "+ agent"), ("lanes", "3 of 3 agents")):
        page = visit.open(f"/s/{SESSION}?v={view}&a=a0000001")
        page.get_by_text(opens).click()
        expect(page.locator(".chooser-list")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator(".chooser-list")).to_be_hidden()
        assert "a=a0000001" in page.url
        page.get_by_text(opens).click()
        page.locator("h1").click()
        expect(page.locator(".chooser-list")).to_be_hidden()


def test_what_stands_below_the_title_does_not_cover_other_words(browser: Browser, errands: Served) -> None:
    for visit in visiting(browser, errands, viewport={"width": 768, "height": 700}):
        page = visit.open(f"/s/{SESSION}")
        page.locator(".facts .agent").wait_for()
        mark = page.locator(".facts .agent").bounding_box()
        after = page.locator(".facts > .agent + *").bounding_box()
        words = page.locator(".facts .agent .cut").bounding_box()
        assert mark is not None and after is not None and words is not None
        assert words["width"] > 40
        assert words["x"] + words["width"] <= after["x"]


def test_beside_the_list_a_session_has_the_calls_that_its_row_and_its_agents_have(visit: Visit) -> None:
    page = visit.open(f"/s/{SESSION}?v=agents")
    expect(page.locator(".agents-sum")).to_contain_text("3 calls, 1 failed")
    page = visit.open("/sessions")
    expect(page.locator(".preview .pairs")).to_contain_text("Calls3 1 failed")


def test_the_lines_of_a_scale_have_labels_of_their_own(visit: Visit) -> None:
    page = visit.open("/stats?since=all")
    page.locator(".bars-line span").first.wait_for()
    labels = page.locator(".bars-line span").all_inner_texts()
    assert len(set(labels)) == len(labels) > 2
