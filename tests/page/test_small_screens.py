"""What is easily lost where there is little room: links, labels and long arguments in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

import harken
from support.claude_lines import assistant, result, user
from support.page_sessions import working_day, write_session

from .conftest import Served, visiting
from .test_views import AXE, ready

pytestmark = pytest.mark.page

PHONE = {"width": 360, "height": 740}
LONG = "\n".join(f"{n}. look at everything that has a number" for n in range(200))
SPY = """() => {
  window.folds = [];
  const fill = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (words, ...at) {
    const turned = this.getTransform();
    if (turned.a === 0 || Math.abs(turned.a) < 1e-6)
      window.folds.push([words, this.measureText(words).width, this.canvas.getBoundingClientRect().height]);
    return fill.call(this, words, ...at);
  };
}"""


def asked(uuid: str, parent: str, name: str, seconds: float) -> dict[str, Any]:
    """A call whose arguments are longer than a screen."""
    call = {"type": "tool_use", "id": name, "name": "SendMessage", "input": {"to": "Jill", "message": LONG}}
    return assistant(uuid, parent, [call], "m8", seconds)


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The day of a developer, with pauses of some minutes, and a call with many words."""
    where = tmp_path_factory.mktemp("small")
    last = [
        asked("b1", "a6", "c5", 1010),
        result("b2", "b1", "c5", 1011),
        user("p4", "b2", "thank you", 1484),
        assistant("a7", "p4", "You are welcome.", "m9", 1486),
    ]
    write_session(where, [*working_day(), *last])
    with harken.open(where / "store.db") as repo:
        list(repo.import_sessions([where]))
        repo.index.catch_up()
    running = Served(where / "store.db", 0, "--no-watch")
    yield running
    running.stop()


def test_what_a_compaction_dropped_is_one_touch_away_on_a_phone(browser: Browser, day: Served) -> None:
    for visit in visiting(browser, day, viewport=PHONE):
        page = visit.open("/s/S?v=commits")
        ready(page)
        page.locator(".commit-row.is-compaction").get_by_role("button", name="what it dropped").click()
        expect(
            page.locator(".commit-panel").get_by_role("heading", name="What this compaction dropped")
        ).to_be_visible()


def test_arguments_longer_than_a_screen_are_scrolled_by_keys(browser: Browser, day: Served) -> None:
    for visit in visiting(browser, day, viewport=PHONE, bypass_csp=True):
        page = visit.open("/s/S?e=b1")
        ready(page)
        page.locator(".given-pairs").wait_for()
        page.evaluate(AXE.read_text())
        found = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")["violations"]
        assert [] == [one["id"] for one in found if one["impact"] in ("serious", "critical")]


@pytest.mark.parametrize("wide", [360, 1280])
def test_a_folded_pause_says_how_long_it_was_within_its_lanes(wide: int, browser: Browser, day: Served) -> None:
    for visit in visiting(browser, day, viewport={"width": wide, "height": 740}):
        page: Page = visit.page
        page.add_init_script(f"({SPY})()")
        visit.open("/s/S?v=lanes")
        page.locator(".lane-label").first.wait_for()
        page.wait_for_function("() => window.folds.length")
        page.wait_for_timeout(300)
        folds = page.evaluate("() => window.folds")
        assert [] == [words for words, long, room in folds if long > room]
        assert all(words[0].isdigit() for words, _, _ in folds)


def test_what_ran_last_on_a_day_is_seen_on_a_phone(browser: Browser, tmp_path: Path) -> None:
    write_session(tmp_path, [user("p1", None, "late", 0), assistant("a1", "p1", "Good night.", "m1", 60)])
    with harken.open(tmp_path / "store.db") as repo:
        assert list(repo.import_sessions([tmp_path]))
    running = Served(tmp_path / "store.db", 0, "--no-watch")
    try:
        # At midnight in Greenwich it is ten in the evening there.
        for visit in visiting(browser, running, viewport=PHONE, timezone_id="Etc/GMT+2"):
            bar = visit.open("/?day=2025-12-31").locator(".day-bar")
            bar.wait_for()
            place = bar.bounding_box()
            assert place is not None
            assert 84 <= place["x"] <= place["x"] + place["width"] < PHONE["width"]
    finally:
        running.stop()
