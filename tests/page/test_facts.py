"""Five facts, named beforehand, and how many clicks from Home each takes; agentsview 0.46.1 beside it.

Its counts were taken by hand in the same browser, with the same kind of sessions in its home, the shortest way each:

- where it failed: open the session, then the badge of its health, which names the tool and the messages it was
  between; the rows of the transcript look alike, and what it said is folded further down. So two, at the least.
- what it cost: open the session; the price stands in its head. One.
- who told Jill, what the compaction dropped: it has no view that tells. It reads no log of several agents that speak
  with each other, and keeps no record of what a context held before and after.
- the command to continue: open the session, then the key `c` copies it ("Resume" opens a menu first). Two.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

import harken
from support.page_sessions import working_day, write_session

from .conftest import Served, Visit, visiting
from .test_views import ready

pytestmark = pytest.mark.page

NEVER = 99
"""More clicks than anybody has patience for: it cannot be found at all."""
AGENTSVIEW = {"failed": 2, "cost": 1, "told": NEVER, "dropped": NEVER, "continue": 2}


class Finger:
    """Clicks, and counts them."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.clicks = 0

    def click(self, what: Locator) -> None:
        self.clicks += 1
        what.click()


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A day of Claude Code, at rest since an hour: a call that fails, a compaction, tokens with a price."""
    where = tmp_path_factory.mktemp("facts")
    records = working_day()
    last = datetime.fromisoformat(records[-1]["timestamp"])
    later = datetime.now(UTC) - timedelta(hours=1) - last
    for record in records:
        moved = datetime.fromisoformat(record["timestamp"]) + later
        record["timestamp"] = moved.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if record["type"] == "assistant":
            record["message"]["model"] = "claude-opus-4-5-20251101"
    write_session(where, records)
    with harken.open(where / "store.db") as repo:
        list(repo.import_sessions([where]))
        repo.index.catch_up()
    running = Served(where / "store.db", 0, "--no-watch")
    yield running
    running.stop()


@pytest.fixture
def at_home(browser: Browser, day: Served) -> Iterator[Finger]:
    for visit in visiting(browser, day, timezone_id="UTC"):
        visit.open("/")
        ready(visit.page)
        yield Finger(visit.page)


def test_where_it_failed(at_home: Finger) -> None:
    at_home.click(at_home.page.locator(".worth").get_by_text("failed").first)

    expect(at_home.page.locator(".row-frame.selected .call.failed .result")).to_be_in_viewport()
    assert 1 == at_home.clicks < AGENTSVIEW["failed"]


def test_what_it_cost(at_home: Finger) -> None:
    expect(at_home.page.locator(".go-on-row").filter(has_text="please mend the parser")).to_contain_text("$")

    assert 0 == at_home.clicks < AGENTSVIEW["cost"]


def test_what_the_compaction_dropped(at_home: Finger) -> None:
    at_home.click(at_home.page.locator(".worth").get_by_text("compaction"))
    at_home.click(at_home.page.get_by_role("link", name="what it dropped").first)

    expect(at_home.page.get_by_text("forget the colour of the old button").last).to_be_in_viewport()
    assert 2 == at_home.clicks < AGENTSVIEW["dropped"]


def test_the_command_to_continue(at_home: Finger) -> None:
    at_home.click(at_home.page.get_by_role("button", name="Continue").first)

    expect(at_home.page.get_by_role("dialog").locator(".command code")).to_contain_text("harken resume ctx-")
    assert 1 == at_home.clicks < AGENTSVIEW["continue"]


def test_who_told_jill(visit: Visit) -> None:
    page = visit.open("/")
    ready(page)
    finger = Finger(page)
    finger.click(page.locator(".day-bars, .go-on").get_by_role("link", name="Narrator").first)
    finger.click(page.get_by_role("link", name="Flow"))

    row = page.locator(".flow-row").filter(has_text="Hi, I'm Jack")
    expect(row).to_be_in_viewport()
    expect(row).to_contain_text("Jack to Jill")
    assert 2 == finger.clicks < AGENTSVIEW["told"]
