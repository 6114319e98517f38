"""Lanes and agents: when each agent did what, and who made whom."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import harken
from support.double_counting import a_sub_agent_that_only_its_parent_tells_of

from .conftest import Served, Visit, visiting

pytestmark = pytest.mark.page


def opened(visit: Visit, path: str) -> Page:
    page = visit.open(path)
    page.locator(".lane-label").first.wait_for()
    page.wait_for_timeout(400)
    return page


def window_of(page: Page) -> tuple[int, int] | None:
    found = re.search(r"w=(\d+)\.\.(\d+)", page.url)
    return (int(found[1]), int(found[2])) if found else None


def test_keys_zoom_step_and_fit(visit: Visit, sessions: dict[str, str]) -> None:
    page = opened(visit, f"/s/{sessions['sub_agents']}?v=lanes")
    page.keyboard.press("+")
    page.wait_for_timeout(100)
    first = window_of(page)
    page.keyboard.press("+")
    page.wait_for_timeout(100)
    second = window_of(page)
    assert first is not None
    assert second is not None
    assert second[1] - second[0] < first[1] - first[0]
    page.keyboard.press("f")
    page.wait_for_timeout(100)
    assert window_of(page) is None

    page.keyboard.press(".")
    expect(page.locator(".lanes-selected")).to_be_visible()
    one = page.url
    page.keyboard.press(".")
    page.wait_for_function("before => location.href !== before", arg=one)
    page.keyboard.press(",")
    page.wait_for_function("before => location.href === before", arg=one)
    page.keyboard.press("l")
    page.wait_for_function("() => location.search.includes('a=')")


def test_the_wheel_zooms_and_the_brush_moves_the_window(visit: Visit, sessions: dict[str, str]) -> None:
    page = opened(visit, f"/s/{sessions['sub_agents']}?v=lanes")
    box = page.locator(".map-box").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 20, steps=4)
    page.mouse.up()
    page.wait_for_timeout(100)
    brushed = window_of(page)
    assert brushed is not None

    canvas = page.locator(".lanes-stay canvas").bounding_box()
    assert canvas is not None
    page.mouse.move(canvas["x"] + canvas["width"] / 2, canvas["y"] + 60)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -200)
    page.keyboard.up("Control")
    page.wait_for_timeout(200)
    wheeled = window_of(page)
    assert wheeled is not None
    assert wheeled[1] - wheeled[0] < brushed[1] - brushed[0]


def test_a_click_on_a_bar_tells_what_was_done_and_leads_to_the_transcript(
    visit: Visit, sessions: dict[str, str]
) -> None:
    page = opened(visit, f"/s/{sessions['sub_agents']}?v=lanes")
    page.keyboard.press(".")
    page.locator(".brief").wait_for()
    page.keyboard.press("Enter")
    page.locator(".row-frame.selected").wait_for()


def test_the_drawing_has_a_table_behind_it(visit: Visit, sessions: dict[str, str]) -> None:
    page = opened(visit, f"/s/{sessions['sub_agents']}?v=lanes")

    rows = page.locator("table:has(caption) tbody tr")
    assert page.locator(".lane-label").count() == rows.count()


def test_a_hundred_thousand_events_have_lanes(large_visit: Visit, large: tuple[object, str, object]) -> None:
    page = opened(large_visit, f"/s/{large[1]}?v=lanes")
    page.keyboard.press("e")
    expect(page.locator(".lanes-selected")).to_contain_text("failed")
    for _ in range(6):
        page.keyboard.press("+")
    page.wait_for_timeout(600)
    drawn = page.locator(".lanes-stay canvas").evaluate(
        "canvas => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some(one => one)"
    )
    assert drawn


def test_agents_are_a_tree_of_cards_with_what_they_were_told_and_gave_back(
    visit: Visit, sessions: dict[str, str]
) -> None:
    page = visit.open(f"/s/{sessions['cafe']}?v=agents")
    jill = page.locator(".agent-card", has=page.locator("h2", has_text=re.compile("^Jill$")))
    expect(jill).to_contain_text("sub-agent of Narrator")
    expect(jill).to_contain_text("an aspiring author")
    inner = page.locator(".agent-card", has=page.locator("h2", has_text=re.compile("^Inner$")))
    expect(inner).to_contain_text("sub-agent of Jill")
    page.keyboard.press("j")
    expect(page.locator(".agent-card.chosen")).to_contain_text("Narrator")

    jill.get_by_role("link", name="Transcript").click()
    page.locator(".row-frame").first.wait_for()


def test_lanes_and_agents_fit_a_small_screen(browser: Browser, served: Served, sessions: dict[str, str]) -> None:
    for visit in visiting(browser, served, viewport={"width": 360, "height": 740}):
        for view in ("lanes", "agents"):
            page = visit.open(f"/s/{sessions['sub_agents']}?v={view}")
            page.locator(".lane-label, .agent-card").first.wait_for()
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_agents_without_a_lane_are_told_with_what_they_cost(browser: Browser, tmp_path: Path) -> None:
    a_sub_agent_that_only_its_parent_tells_of(tmp_path / "home")
    with harken.open(tmp_path / "store.db") as repo:
        list(repo.import_sessions([tmp_path / "home"]))
        (session,) = [row.session for row in repo.sessions()]
        repo.index.catch_up()
    served = Served(tmp_path / "store.db", 0, "--no-watch", "--read-only")
    try:
        for visit in visiting(browser, served, viewport={"width": 360, "height": 740}):
            page = opened(visit, f"/s/{session}?v=lanes")
            expect(page.locator(".lanes-unseen")).to_contain_text("1 more agent without a lane cost $")
            visit.open(f"/s/{session}?v=agents")
            expect(page.locator(".agents-sum")).to_contain_text("of 1 agent of which only the usage is known")
            expect(page.locator(".agents-sum")).not_to_contain_text("alone")
    finally:
        served.stop()


def test_sub_agents_without_a_lane_count_below_the_lanes_as_everywhere(visit: Visit, sessions: dict[str, str]) -> None:
    page = opened(visit, f"/s/{sessions['resource_hook']}?v=lanes")
    expect(page.locator(".lane-label")).to_have_count(2)
    expect(page.locator(".lanes-foot")).to_contain_text("Sub-agents4, 1 with a lane")
    visit.open("/sessions")
    row = page.locator(f"a[href*='{sessions['resource_hook']}']").first
    row.wait_for()
    expect(page.get_by_text("4 agents").first).to_be_visible()
