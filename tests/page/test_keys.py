"""Every key of the help does what the help says."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from .conftest import Visit
from .test_views import ready

pytestmark = pytest.mark.page


def has_param(name: str, value: str) -> Callable[[Page], None]:
    return lambda page: page.wait_for_url(lambda url: f"{name}={value}" in url)


def at(path: str) -> Callable[[Page], None]:
    return lambda page: page.wait_for_url(lambda url: url.split("?")[0].endswith(path))


def shows(selector: str) -> Callable[[Page], None]:
    return lambda page: expect(page.locator(selector).first).to_be_visible()


def hides(selector: str) -> Callable[[Page], None]:
    return lambda page: expect(page.locator(selector)).to_have_count(0)


def changes(what: str) -> Callable[[Page], None]:
    """That some value of the page is another one than before the key."""

    def check(page: Page) -> None:
        page.wait_for_function(f"() => String({what}) !== window.BEFORE")

    check.what = what  # type: ignore[attr-defined]
    return check


SELECTED = "document.querySelector('.row-frame.selected')?.id"
FOUND = "document.querySelector('.find')?.innerText"
TRANSCRIPT, FLOW, LANES = "/s/{sub_agents}", "/s/{cafe}?v=flow", "/s/{sub_agents}?v=lanes"
COMMITS = "/s/{sub_agents}?v=commits"
KEYS: dict[str, tuple[str, list[str], Callable[[Page], None]]] = {
    "Search and go anywhere": ("/", ["Control+k"], shows(".palette")),
    "These keys": ("/", ["?"], shows(".help")),
    "Home": ("/sessions", ["g", "h"], at("/")),
    "Sessions": ("/", ["g", "s"], at("/sessions")),
    "Commits": ("/", ["g", "c"], at("/commits")),
    "Stats": ("/", ["g", "t"], at("/stats")),
    "Documents": ("/", ["g", "d"], at("/documents")),
    "Light or dark": ("/", ["t"], changes("document.documentElement.dataset.theme")),
    "Close what is open, innermost first": ("/", ["?", "Escape"], hides(".help")),
    "Next": (TRANSCRIPT, ["j"], changes(SELECTED)),
    "Previous": (TRANSCRIPT, ["j", "j", "j", "k"], shows(".row-frame.selected")),
    "First": (TRANSCRIPT, ["j", "j", "g", "g"], shows("#row-0.selected")),
    "Last": (TRANSCRIPT, ["Shift+G"], changes(SELECTED)),
    "Open or unfold": ("/sessions", ["j", "Enter"], shows(".session-head")),
    "Find, filter or search": (TRANSCRIPT, ["/"], shows(".find input:focus")),
    "Copy a link to this": (TRANSCRIPT, ["j", "y"], shows(".row-frame.selected")),
    "Transcript": (FLOW, ["1"], shows(".row-frame")),
    "Flow: who said what to whom": (TRANSCRIPT, ["2"], has_param("v", "flow")),
    "Lanes: when each agent did what": (TRANSCRIPT, ["3"], has_param("v", "lanes")),
    "Commits of this session": (TRANSCRIPT, ["4"], has_param("v", "commits")),
    "Agents": (TRANSCRIPT, ["5"], has_param("v", "agents")),
    "Raw records": (TRANSCRIPT, ["6"], has_param("v", "raw")),
    "Next prompt": (TRANSCRIPT, ["Shift+J"], shows(".row-frame.selected.kind-prompt")),
    "Previous prompt": (TRANSCRIPT, ["Shift+G", "Shift+K"], shows(".row-frame.selected.kind-prompt")),
    "Next failure": (TRANSCRIPT, ["e"], changes("0")),
    "Previous failure": (TRANSCRIPT, ["E"], changes("0")),
    "Next hit": (TRANSCRIPT + "?q=the", ["n"], changes(FOUND)),
    "Previous hit": (TRANSCRIPT + "?q=the", ["Shift+N"], changes(FOUND)),
    "Unfold or fold all results": (TRANSCRIPT, ["x"], shows(".call[open]")),
    "Next session": (FLOW, ["]"], changes("location.pathname")),
    "Previous session": (FLOW, ["]", "["], shows(".session-head")),
    "Continue from here": (TRANSCRIPT, ["c"], shows("[role=dialog]")),
}
"""By what the help says: where the key is pressed, the keys, and what must follow. Those of flow, lanes and commits
have tests of their own."""
ELSEWHERE = {"Flow and lanes", "Commits"}


def told(page: Page) -> dict[str, str]:
    """What the help says of each key, and in which group."""
    found: dict[str, str] = page.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll('.help section')].flatMap(section =>
            [...section.querySelectorAll('dt')]
                .map(term => [term.innerText, section.querySelector('h3').innerText])))"""
    )
    return found


def test_the_help_and_the_tests_tell_of_the_same_keys(visit: Visit) -> None:
    page = visit.open("/")
    ready(page)
    page.keyboard.press("?")
    page.locator(".help").wait_for()
    assert {name for name, group in told(page).items() if group not in ELSEWHERE} == set(KEYS)


UNSURE = {"Next failure", "Previous failure"}
"""What depends on the session: the demonstrations have none."""


@pytest.mark.parametrize("name", [name for name in KEYS if name not in UNSURE])
def test_a_key_does_what_the_help_says(name: str, visit: Visit, sessions: dict[str, str]) -> None:
    address, keys, check = KEYS[name]
    page = visit.open(address.format(**sessions))
    ready(page)
    if what := getattr(check, "what", ""):
        page.evaluate(f"() => {{ window.BEFORE = String({what}) }}")
    for key in keys:
        page.keyboard.press(key)
        page.wait_for_timeout(250)
    check(page)


def test_single_keys_do_nothing_in_a_field(visit: Visit) -> None:
    page = visit.open("/search")
    ready(page)
    page.get_by_label("Search everything").fill("")
    page.get_by_label("Search everything").type("t g s ?")
    assert page.url.endswith("/search")
    assert 0 == page.locator(".help").count()


def test_the_palette_finds_and_opens_a_session(visit: Visit) -> None:
    page = visit.open("/")
    ready(page)
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("café")
    page.locator(".palette-option", has_text="café").nth(1).wait_for()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.locator(".session-head, .hit, .search").first.wait_for()


def test_keys_do_nothing_below_a_dialog_and_escape_closes_it_first(visit: Visit, sessions: dict[str, str]) -> None:
    page = visit.open("/sessions")
    ready(page)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.locator(".row-frame").first.wait_for()
    page.keyboard.press("j")
    page.locator(".row-frame.selected").wait_for()
    page.keyboard.press("?")
    page.locator(".help").wait_for()
    address = page.url
    for key in ("j", "2", "g", "s"):
        page.keyboard.press(key)
    page.wait_for_timeout(200)
    assert address == page.url
    page.keyboard.press("Escape")
    expect(page.locator(".help")).to_have_count(0)
    expect(page.locator(".row-frame.selected")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(page.locator(".row-frame.selected")).to_have_count(0)


def test_a_link_that_is_copied_is_told_of(visit: Visit, sessions: dict[str, str]) -> None:
    page = visit.open(TRANSCRIPT.format(**sessions))
    ready(page)
    page.keyboard.press("y")
    expect(page.get_by_role("status").filter(has_text="The link is copied")).to_be_visible()


def test_closing_find_gives_the_focus_back_to_the_rows(visit: Visit, sessions: dict[str, str]) -> None:
    page = visit.open(TRANSCRIPT.format(**sessions))
    ready(page)
    page.keyboard.press("/")
    page.locator(".find input:focus").wait_for()
    page.keyboard.press("Escape")
    expect(page.locator(".list.rows:focus")).to_have_count(1)
