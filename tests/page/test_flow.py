"""Flow: who said what to whom, what was heard of it, who knows it, and what an agent knew at a moment."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

import harken
from harken import load_session
from harken.agents import Deny, Moment, Rewrite, hook

from .conftest import EXAMPLES, Served, Visit, visiting

pytestmark = pytest.mark.page

ROWS = ".flow-list .flow-row"


SECRET = "A novel? Whatever about? The password is 4711-rain."
SPOILER = "She has put you in the book."


@hook("delivery", name="redact-secrets")
def redact(moment: Moment) -> Rewrite | None:
    clean = moment.text.replace("4711-rain", "[withheld]")
    return Rewrite(clean) if clean != moment.text else None


@hook("delivery", name="no-spoilers")
def refuse(moment: Moment) -> Deny | None:
    return Deny("it gives the ending away") if SPOILER in moment.text else None


def _play(log: Path, model: str) -> None:
    root, session = load_session(log, name="Narrator", language_model=model, hooks=[redact, refuse])
    with session:
        root.harken("Create Jack and Jill and let them meet in a café.")
        asyncio.run(root.response())


@pytest.fixture(scope="module")
def hooked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    """The café with a hook that changes a message and one that blocks another."""
    where = tmp_path_factory.mktemp("hooked")
    played = (EXAMPLES / "cafe.toml").read_text()
    played = played.replace("A novel? Whatever about?", SECRET).replace("Then I had better be interesting.", SPOILER)
    (where / "cafe.toml").write_text(played)
    log = where / "hooked.jsonl"
    with ThreadPoolExecutor(1) as other:  # the browser's driver has a loop of its own in this thread
        other.submit(_play, log, f"scripted:{where / 'cafe.toml'}").result()
    with harken.open(where / "store.db") as repo:
        list(repo.import_sessions([log]))
        (name,) = (row.session for row in repo.sessions() if not row.parent)
    running = Served(where / "store.db", 0, "--no-watch")
    yield running, name
    running.stop()


def opened(visit: Visit, path: str) -> Page:
    page = visit.open(path)
    page.locator(ROWS).first.wait_for()
    return page


def columns(page: Page) -> list[str]:
    return page.locator(".flow-name-top b").all_inner_texts()


def test_every_agent_of_the_cafe_has_a_column_and_wires_go_from_speakers_to_hearers(
    visit: Visit, sessions: dict[str, str]
) -> None:
    page = opened(visit, f"/s/{sessions['cafe']}?v=flow")

    assert ["You", "Narrator", "Jack", "Jill", "Inner"] == columns(page)
    told = page.locator(ROWS).filter(has_text="You share a table")
    assert 2 == told.locator(".ear.how-verbatim").count()
    said = page.locator(ROWS).filter(has_text="I hire people")
    assert (1, 1) == (said.locator(".wire.how-named").count(), said.locator(".wire.how-result").count())
    expect(said).to_contain_text("Jack to Jill (with the name before it), Narrator (in a tool result)")


def test_what_a_hook_changed_is_marked_compared_and_asked_for(visit: Visit, sessions: dict[str, str]) -> None:
    page = opened(visit, f"/s/{sessions['redaction']}?v=flow")

    row = page.locator(ROWS).filter(has=page.locator(".ear.how-changed")).first
    row.locator(".flow-card").click()
    panel = page.locator(".flow-panel")
    expect(panel.locator("del").first).to_contain_text("1234")
    expect(panel.locator("ins").first).to_contain_text("[REDACTED]")
    expect(panel).to_contain_text("Redactor")
    expect(panel.locator("h2", has_text="Who knows")).to_contain_text("1234")
    expect(panel.locator(".know li").first).to_contain_text("Jack")
    expect(panel.locator(".know li.not", has_text="Jill")).to_contain_text("not these words")


def test_words_that_are_selected_can_be_asked_for(visit: Visit, sessions: dict[str, str]) -> None:
    page = opened(visit, f"/s/{sessions['cafe']}?v=flow")
    page.locator(".flow-card", has_text="Do not sound as if").click()

    words = page.locator(".flow-panel .say-words .plain").first
    words.evaluate("element => getSelection().setBaseAndExtent(element.firstChild, 0, element.firstChild, 15)")
    page.get_by_role("button", name="Who knows").click()

    known = page.locator(".flow-panel .know")
    expect(known.locator("li", has_text="Inner").first).to_contain_text("said it")
    expect(known.locator("li", has_text="Jill").first).to_contain_text("read it in a tool result")
    expect(known.locator("li.not", has_text="Jack")).to_contain_text("never")
    assert "k=He+hires+people" in page.url


def test_with_an_agent_and_a_moment_what_was_not_heard_is_dashed_and_what_came_later_fades(
    visit: Visit, sessions: dict[str, str]
) -> None:
    page = opened(visit, f"/s/{sessions['cafe']}?v=flow")
    page.get_by_role("button", name="Jack").first.click()
    expect(page.locator(".flow-row.unheard", has_text="What do I say?")).to_be_visible()
    for _ in range(4):
        page.keyboard.press(",")

    expect(page.locator(".flow-row.later").last).to_be_attached()
    expect(page.locator(".knew")).to_contain_text("knew")
    assert "a=" in page.url
    assert "t=" in page.url
    page.keyboard.press("f")
    expect(page.locator(".flow-row.later")).to_have_count(0)


def test_a_long_name_that_is_cut_says_that_it_goes_on(visit: Visit, sessions: dict[str, str]) -> None:
    long = "Inner voice of a writer who has nobody else to ask"

    def answer(route: Route) -> None:
        told = route.fetch()
        route.fulfill(response=told, body=told.text().replace('"Inner"', json.dumps(long)))

    visit.page.route("**/api/v1/flow_page", answer)
    page = opened(visit, f"/s/{sessions['cafe']}?v=flow")
    expect(page.get_by_text("made Inner voice of a writer who has nobody…")).to_be_visible()
    page.unroute_all(behavior="wait")


def test_columns_are_removed_and_added(visit: Visit, sessions: dict[str, str]) -> None:
    page = opened(visit, f"/s/{sessions['cafe']}?v=flow")
    page.locator(".flow-name", has_text="Inner").hover()
    page.get_by_label("Remove the column of Inner").click()
    expect(page.locator(".flow-name-top b")).to_have_count(4)

    page.locator(".chooser summary").click()
    page.get_by_label("Inner").check()
    expect(page.locator(".flow-name-top b")).to_have_count(5)


def test_keys_go_from_row_to_row_and_the_address_names_what_is_selected(visit: Visit, sessions: dict[str, str]) -> None:
    page = opened(visit, f"/s/{sessions['cafe']}?v=flow")
    page.keyboard.press("g")
    page.keyboard.press("g")
    expect(page.locator(".flow-row.selected")).to_contain_text("Create Jack and Jill")
    page.keyboard.press("j")
    expect(page.locator(".flow-row.selected")).to_contain_text("made Jack and Jill")
    page.keyboard.press("G")
    expect(page.locator(".flow-row.selected")).to_contain_text("kept the ending")
    again = page.url

    page.goto(again)
    expect(page.locator(".flow-row.selected")).to_contain_text("kept the ending")
    page.keyboard.press("Escape")
    expect(page.locator(".flow-row.selected")).to_have_count(0)


def test_parallel_sub_agents_each_have_a_column(visit: Visit, sessions: dict[str, str]) -> None:
    page = opened(visit, f"/s/{sessions['sub_agents']}?v=flow")

    assert 5 <= len(columns(page))
    expect(page.locator(".flow-made").first).to_contain_text("made")


def test_one_agent_alone_is_told_so_and_offered_the_transcript(
    large_visit: Visit, large: tuple[object, str, object]
) -> None:
    page = large_visit.open(f"/s/{large[1]}?v=flow")

    expect(page.locator(".state h2")).to_contain_text("One agent")
    page.get_by_role("link", name="Read the transcript").click()
    page.locator(".row-frame").first.wait_for()


def test_on_a_small_screen_lanes_stand_beside_the_words(
    browser: Browser, served: Served, sessions: dict[str, str]
) -> None:
    for visit in visiting(browser, served, viewport={"width": 360, "height": 740}):
        page = opened(visit, f"/s/{sessions['cafe']}?v=flow")
        expect(page.locator(ROWS).filter(has_text="You share a table")).to_contain_text("Narrator → Jack, Jill")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.locator(".flow-card", has_text="You share a table").click()
        expect(page.locator(".flow-panel.open")).to_be_visible()


def test_what_one_hook_changed_and_another_blocked_is_seen_in_the_wires_and_in_the_panel(
    browser: Browser, hooked: tuple[Served, str]
) -> None:
    served, session = hooked
    for visit in visiting(browser, served):
        page = opened(visit, f"/s/{session}?v=flow")
        panel = page.locator(".flow-panel")
        expect(panel.locator(".things li")).to_have_count(2)

        changed = page.locator(ROWS).filter(has_text=SECRET)
        assert 1 == changed.locator(".wire.how-changed").count()
        changed.locator(".flow-card").click()
        expect(panel.locator("ins").first).to_have_text("[withheld]")
        expect(panel.locator(".know li.not", has_text="Jill")).to_contain_text("not these words")

        blocked = page.locator(ROWS).filter(has_text=SPOILER)
        assert 2 == blocked.locator(".ear.how-blocked").count()
        blocked.locator(".flow-card").click()
        expect(panel.locator(".via.how-blocked").first).to_contain_text("it gives the ending away")
