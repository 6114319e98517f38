"""Home, sessions, search and stats: what they tell, and that the keyboard reaches all of it."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import harken

from .conftest import Served, Visit, visiting

pytestmark = pytest.mark.page

MANY = 2_000
SHOWN_IN = 500
"""Milliseconds in which the first rows of many sessions are shown."""
CHOSEN = ".session-row.chosen .session-title"
FIRST_SEEN = """
(selector) => {
  const look = () => { if (!window.seen && document.querySelector(selector)) window.seen = performance.now(); };
  new MutationObserver(look).observe(document, { childList: true, subtree: true });
}
"""


def write_session(folder: Path, number: int, ended: datetime) -> None:
    """A short session of Claude Code: a prompt, a call that may fail, and an answer."""
    session, project = str(uuid.UUID(int=number)), f"/home/dev/p{number % 7}"
    words = [
        ("user", {"role": "user", "content": f"Look at number {number}"}),
        (
            "assistant",
            _answer(number, 1, {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": "ls"}}),
        ),
        ("user", {"role": "user", "content": [_result(f"t{number}", failed=number % 5 == 0)]}),
        ("assistant", _answer(number, 2, {"type": "text", "text": "It is there."})),
    ]
    lines, parent = [], None
    for at, (kind, message) in enumerate(words):
        record = str(uuid.UUID(int=number * 10 + at + (1 << 64)))
        when = (ended - timedelta(seconds=10 * (len(words) - at))).isoformat(timespec="milliseconds")
        head = {"parentUuid": parent, "isSidechain": False, "cwd": project, "sessionId": session, "version": "2.1.0"}
        more = {"type": kind, "message": message, "uuid": record, "timestamp": when.replace("+00:00", "Z")}
        lines.append(json.dumps(head | more))
        parent = record
    place = folder / ".claude" / "projects" / project.replace("/", "-") / f"{session}.jsonl"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("\n".join(lines) + "\n")


def _answer(number: int, part: int, block: dict[str, object]) -> dict[str, object]:
    usage = {
        "input_tokens": 9,
        "output_tokens": 90,
        "cache_read_input_tokens": 9000,
        "cache_creation_input_tokens": 100,
    }
    about = {"id": f"msg_{number}_{part}", "type": "message", "role": "assistant", "model": "claude-opus-4-5-20251101"}
    return {**about, "usage": usage, "content": [block]}


def _result(call: str, *, failed: bool) -> dict[str, object]:
    return {"type": "tool_result", "tool_use_id": call, "content": "a b c", "is_error": failed}


@pytest.fixture(scope="module")
def many_served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Two thousand sessions; the last one has just been written to."""
    where = tmp_path_factory.mktemp("many")
    now = datetime.now(UTC)
    for number in range(1, MANY + 1):
        write_session(where, number, now - timedelta(minutes=20 * (number - 1)))
    with harken.open(where / "store.db") as repo:
        assert MANY == sum(told.status == "new" for told in repo.import_sessions([where]))
        repo.index.catch_up()
    running = Served(where / "store.db", 0, "--no-watch")
    yield running
    running.stop()


@pytest.fixture
def many(browser: Browser, many_served: Served) -> Iterator[Visit]:
    yield from visiting(browser, many_served)


def open_list(visit: Visit, path: str = "/sessions") -> Page:
    page = visit.open(path)
    page.locator(".session-row").first.wait_for()
    return page


# -- many sessions ---


@pytest.mark.parametrize(("path", "seen"), [("/", ".sentence"), ("/sessions", ".session-row")])
def test_two_thousand_sessions_are_shown_at_once(many: Visit, path: str, seen: str) -> None:
    many.page.add_init_script(f"({FIRST_SEEN})({json.dumps(seen)})")
    taken = []
    for _ in range(5):
        page = many.open(path)
        page.locator(seen).first.wait_for()
        taken.append(page.evaluate("() => window.seen"))
    assert min(taken) < SHOWN_IN


def test_a_long_list_has_few_elements_and_reaches_its_end(many: Visit) -> None:
    page = open_list(many)
    page.keyboard.press("Shift+G")
    expect(page.locator(CHOSEN)).to_have_text(f"Look at number {MANY}")
    assert page.evaluate("() => document.querySelectorAll('*').length") < 3000
    page.keyboard.press("k")
    expect(page.locator(CHOSEN)).to_have_text(f"Look at number {MANY - 1}")
    page.keyboard.press("g")
    page.keyboard.press("g")
    expect(page.locator(CHOSEN)).to_have_text("Look at number 1")


def test_j_and_k_choose_and_enter_opens(many: Visit) -> None:
    page = open_list(many)
    for key in "jjjk":
        page.keyboard.press(key)
        page.wait_for_timeout(60)
    expect(page.locator(CHOSEN)).to_have_text("Look at number 2")
    expect(page.locator(".preview-title")).to_have_text("Look at number 2")
    page.keyboard.press("Enter")
    page.locator(".session-head h1").wait_for()
    assert f"/s/{uuid.UUID(int=2)}" in page.url


def test_what_was_chosen_is_in_the_address(many: Visit) -> None:
    page = open_list(many, f"/sessions?s={uuid.UUID(int=3)}")
    expect(page.locator(CHOSEN)).to_have_text("Look at number 3")


def test_a_slash_filters_by_words_and_shows_where_they_stand(many: Visit) -> None:
    page = open_list(many)
    page.keyboard.press("/")
    page.keyboard.type("number 1999")
    expect(page.locator(".session-row")).to_have_count(1)
    assert "1999" == page.locator(".session-places mark").last.inner_text()
    assert "q=number+1999" in page.url
    page.locator(".session-places a").first.click()
    page.locator(".session-head h1").wait_for()
    assert "e=" in page.url


def test_filters_narrow_and_escape_takes_them_away(many: Visit) -> None:
    page = open_list(many)
    told = page.locator(".session-told")
    page.locator(".filters a", has_text="p3").click()
    expect(told).to_contain_text("286 sessions")
    page.locator(".filters a", has_text="failures").click()
    expect(told).to_contain_text("57 sessions")
    expect(page.locator(".session-field .chip")).to_have_count(2)
    # What there is without the filter is an answer of its own.
    expect(page.locator(".filters a", has_text="Claude Code").locator(".dim")).to_have_text("2,000")
    page.keyboard.press("Escape")
    expect(told).to_contain_text("2,000 sessions")
    assert page.url.endswith("/sessions")


def test_running_sessions_are_counted_in_the_bar(browser: Browser, tmp_path: Path) -> None:
    now = datetime.now(UTC)
    for number, began in ((1, now), (2, now - timedelta(hours=1))):
        write_session(tmp_path / "home", number, began)
    with harken.open(tmp_path / "store.db") as repo:
        assert 2 == len(list(repo.import_sessions([tmp_path / "home"])))
    running = Served(tmp_path / "store.db", 0, "--no-watch")
    try:
        for visit in visiting(browser, running):
            page = open_list(visit)
            expect(page.locator(".session-told")).to_contain_text("2 sessions")
            page.locator(".live").click()
            expect(page.locator(".session-told")).to_contain_text("1 session")
            expect(page.locator(".session-row")).to_have_count(1)
    finally:
        running.stop()


def test_no_match_says_what_to_do(many: Visit) -> None:
    page = many.open("/sessions?q=nobodysaidthis&has=errors")
    page.get_by_text("No session says “nobodysaidthis”").wait_for()
    page.get_by_role("link", name="Clear all").click()
    page.locator(".session-row").first.wait_for()


# -- home ---


def test_home_tells_the_day_in_a_sentence_of_links(many: Visit) -> None:
    page = many.open("/")
    page.locator(".sentence").wait_for()
    links = page.locator(".sentence a")
    assert links.count() >= 3
    links.first.click()
    page.locator(".session-row").first.wait_for()
    assert "/sessions?since=" in page.url


def test_home_offers_to_go_on_by_keyboard(many: Visit) -> None:
    page = many.open("/")
    page.locator(".go-on-row").first.wait_for()
    page.keyboard.press("j")
    page.keyboard.press("j")
    title = page.locator(".go-on-row.chosen .go-on-title").inner_text()
    page.keyboard.press("Enter")
    expect(page.locator(".session-head h1")).to_contain_text(title)


def test_home_shows_the_week_and_the_day_as_it_ran(many: Visit) -> None:
    page = many.open("/")
    page.locator(".day-bar").first.wait_for()
    assert 7 == page.locator(".week li").count()
    page.locator(".week li").nth(3).locator("a").click()
    page.get_by_role("heading", name="The day, as it ran").wait_for()
    assert "day=" in page.url


def test_a_day_without_sessions_names_the_nearest_with_some(many: Visit) -> None:
    page = many.open("/?day=2020-01-01")
    page.get_by_text("Nothing ran on this day.").wait_for()
    assert 1 == page.locator(".sentence a").count()


def test_an_empty_store_says_how_to_fill_it(browser: Browser, tmp_path: Path) -> None:
    harken.open(tmp_path / "store.db").close()
    running = Served(tmp_path / "store.db", 0, "--no-watch")
    try:
        for visit in visiting(browser, running):
            for path in ("/", "/sessions", "/stats"):
                page = visit.open(path)
                page.get_by_text("Nothing heard yet").wait_for()
                assert page.get_by_text("harken import", exact=True).is_visible()
    finally:
        running.stop()


# -- search ---


def test_hits_are_by_session_and_open_at_the_record(many: Visit) -> None:
    page = many.open("/search?q=number+role:human")
    page.locator(".hit").first.wait_for()
    assert page.locator(".hit-head").count() >= 1
    page.keyboard.press("j")
    page.locator(".hit.chosen").wait_for()
    page.keyboard.press("Enter")
    page.locator(".session-head h1").wait_for()
    assert "e=" in page.url


def test_kinds_and_times_become_part_of_the_words(many: Visit) -> None:
    page = many.open("/search?q=there")
    page.locator(".hit").first.wait_for()
    page.get_by_role("button", name="Answers", exact=True).click()
    expect(page.get_by_label("Search everything")).to_have_value("there role:assistant")
    expect(page.locator(".hit-role").first).to_have_text("Answer")


# -- stats ---


def test_stats_begin_with_a_sentence_and_have_tables(many: Visit) -> None:
    page = many.open("/stats?since=all")
    page.locator(".cards").wait_for()
    assert "2,000 sessions" in page.locator(".sentence").inner_text()
    assert 7 * 24 == page.locator(".heat tbody td").count()
    assert "Bash" in page.locator(".tools tbody th").first.inner_text()
    assert "400 · 20 %" in page.locator(".tools tbody tr").first.inner_text()
    expect(page.locator(".bar > span")).not_to_have_count(0)
    page.get_by_role("button", name="Model", exact=True).click()
    expect(page.locator(".by-day .keys")).to_contain_text("opus 4.5")
    assert "split=model" in page.url


def test_stats_of_a_window_without_anything_say_so(many: Visit) -> None:
    page = many.open("/stats?since=2020-01-01&until=2020-01-02")
    page.get_by_text("Nothing was counted here").wait_for()


# -- as it comes ---


def test_a_new_session_appears_by_itself(browser: Browser, tmp_path: Path) -> None:
    write_session(tmp_path / "one", 1, datetime.now(UTC) - timedelta(hours=1))
    with harken.open(tmp_path / "store.db") as repo:
        assert list(repo.import_sessions([tmp_path / "one"]))
    running = Served(tmp_path / "store.db", 0, "--no-watch")
    try:
        for visit in visiting(browser, running):
            page = open_list(visit)
            expect(page.locator(".session-row")).to_have_count(1)
            time.sleep(1)  # the feed is followed from now on
            write_session(tmp_path / "two", 2, datetime.now(UTC))
            with harken.open(tmp_path / "store.db") as repo:
                assert list(repo.import_sessions([tmp_path / "two"]))
            expect(page.locator(".session-row")).to_have_count(2)
            page.locator(".live", has_text="1 running").wait_for()
    finally:
        running.stop()
