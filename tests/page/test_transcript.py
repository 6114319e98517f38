"""The transcript of a session of 100,000 records: quick to open, to scroll and to find one's way in."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from .conftest import Visit

pytestmark = pytest.mark.page

Large = tuple[object, str, list[str]]


def in_sight(page: Page) -> list[int]:
    """The numbers of the rows that are loaded and in sight."""
    found: list[int] = page.evaluate(
        """() => [...document.querySelectorAll('.rows .list-row')]
            .filter(row => row.querySelector('.row-frame')
                && row.getBoundingClientRect().bottom > 100 && row.getBoundingClientRect().top < innerHeight)
            .map(row => Number(row.dataset.n)).sort((a, b) => a - b)"""
    )
    return found


def test_few_rows_are_elements_however_long_the_session_is(large_visit: Visit, large: Large) -> None:
    page = large_visit.open(f"/s/{large[1]}")
    page.locator(".row-frame").first.wait_for()
    assert 3000 > page.evaluate("() => document.querySelectorAll('*').length")
    assert 0 == in_sight(page)[0]


@pytest.mark.parametrize("at", [0.0, 0.5, 0.87, 0.9999])
def test_a_link_to_a_record_shows_that_record(large_visit: Visit, large: Large, at: float) -> None:
    record = large[2][int(at * len(large[2]))]
    page = large_visit.open(f"/s/{large[1]}?e={record}")
    selected = page.locator(".row-frame.selected")
    selected.wait_for()
    page.wait_for_timeout(500)
    assert selected.evaluate(
        "row => row.getBoundingClientRect().top >= 60 && row.getBoundingClientRect().top < innerHeight"
    )


def test_the_end_is_as_near_as_the_beginning(large_visit: Visit, large: Large) -> None:
    page = large_visit.open(f"/s/{large[1]}")
    page.locator(".row-frame").first.wait_for()
    page.keyboard.press("Shift+G")
    page.locator(".row-frame.selected").wait_for()
    last = in_sight(page)[-1]
    page.keyboard.press("g")
    page.keyboard.press("g")
    expect(page.locator("#row-0")).to_be_visible()
    assert last > 50_000


def test_rows_that_are_scrolled_to_are_in_their_order_without_gaps(large_visit: Visit, large: Large) -> None:
    page = large_visit.open(f"/s/{large[1]}")
    page.locator(".row-frame").first.wait_for()
    for share in (0.2, 0.21, 0.8, 0.1):
        page.evaluate(
            "(share) => { const list = document.querySelector('.rows'); list.scrollTop = share * list.scrollHeight }",
            share,
        )
        page.wait_for_function(
            "() => document.querySelector('.rows').ariaBusy === 'false' && document.querySelector('.rows .row-frame')"
        )
        page.wait_for_timeout(400)
        numbers = in_sight(page)
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def test_words_are_found_one_after_the_other(large_visit: Visit, large: Large) -> None:
    page = large_visit.open(f"/s/{large[1]}")
    page.locator(".row-frame").first.wait_for()
    page.keyboard.press("/")
    page.get_by_label("Find in this session").fill("socket merge")
    expect(page.locator(".find")).to_contain_text("1 of", timeout=20_000)
    page.keyboard.press("Enter")
    expect(page.locator(".find")).to_contain_text("2 of")
    expect(page.locator(".rows mark").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".find")).to_have_count(0)


def test_prompts_are_jumped_to_by_key_and_by_the_outline(large_visit: Visit, large: Large) -> None:
    page = large_visit.open(f"/s/{large[1]}")
    page.locator(".outline-prompt").nth(3).wait_for()
    page.locator(".row-frame").first.wait_for()
    for _ in range(3):
        page.keyboard.press("Shift+J")
    expect(page.locator(".row-frame.selected.kind-prompt")).to_be_visible()
    page.locator(".outline-prompt").nth(1).click()
    expect(page.locator(".row-frame.selected.kind-prompt")).to_be_visible()


def test_the_selection_is_in_the_address_and_survives_a_change_of_view(large_visit: Visit, large: Large) -> None:
    page = large_visit.open(f"/s/{large[1]}")
    page.locator(".row-frame").first.wait_for()
    page.keyboard.press("j")
    page.locator(".row-frame.selected").wait_for()
    first = page.url
    assert "e=" in first
    page.keyboard.press("3")
    page.wait_for_url("**v=lanes**")
    page.keyboard.press("1")
    page.locator(".row-frame.selected").wait_for()
    assert first == page.url


def test_a_row_that_is_selected_stays_where_it_is(large_visit: Visit, large: Large) -> None:
    page = large_visit.open(f"/s/{large[1]}")
    page.locator(".row-frame").first.wait_for()
    page.wait_for_timeout(500)
    row = page.locator(f"#row-{in_sight(page)[-2]}")
    before = row.bounding_box()
    row.locator("time").click()
    page.locator(".row-frame.selected").wait_for()
    page.wait_for_timeout(700)
    assert before == row.bounding_box()


def test_what_is_written_from_right_to_left_begins_at_the_right(large_visit: Visit, large: Large) -> None:
    page = large_visit.open(f"/s/{large[1]}")
    page.locator(".prompt .plain").first.wait_for()
    start = page.locator(".prompt .plain").first.evaluate(
        """box => {
            box.textContent = '\u0645\u0631\u062d\u0628\u0627 main.py';
            const range = document.createRange();
            range.selectNodeContents(box);
            return range.getBoundingClientRect().right - box.getBoundingClientRect().right;
        }"""
    )
    assert 2 > abs(start)


PATCH = """*** Begin Patch
*** Update File: notes.txt
@@
 first
-old words
+new words
*** End Patch"""
CHANGES = {
    "Claude Code": {"file_path": "notes.txt", "old_string": "old words", "new_string": "new words"},
    "OpenCode": {"filePath": "notes.txt", "oldString": "old words", "newString": "new words"},
    "pi": {"path": "notes.txt", "edits": [{"oldText": "old words", "newText": "new words"}]},
    "Copilot CLI": {"path": "notes.txt", "old_str": "old words", "new_str": "new words"},
    "a patch": {"input": PATCH},
}


@pytest.mark.parametrize("who", CHANGES)
def test_an_edit_is_drawn_as_a_difference_whoever_made_it(who: str, visit: Visit, sessions: dict[str, str]) -> None:
    page = visit.page
    with_call(page, {"tool": "edit", "category": "edit", "input": CHANGES[who]})
    page = visit.open(f"/s/{sessions['sub_agents']}")
    difference = page.locator(".call .diff").first
    expect(difference.locator(".removed span")).to_have_text("old words")
    expect(difference.locator(".added span")).to_have_text("new words")
    page.unroute_all(behavior="wait")


@pytest.mark.parametrize("name", ["content", "description", "step"])
def test_what_is_to_be_done_is_a_list_whatever_it_is_called(name: str, visit: Visit, sessions: dict[str, str]) -> None:
    page = visit.page
    todos = [{name: "read the notes", "status": "in_progress"}]
    with_call(page, {"tool": "write_todos", "category": "task", "input": {"todos": todos}})
    page = visit.open(f"/s/{sessions['sub_agents']}")
    expect(page.locator(".todos li").first).to_contain_text("read the notes")
    page.unroute_all(behavior="wait")


@pytest.mark.parametrize(
    ("call", "where", "left"),
    [
        ({"tool": "TodoWrite", "input": {"todos": [{"content": f"do {n}"} for n in range(70)]}}, ".todos", "10 more"),
        ({"tool": "Configure", "input": {f"option {n}": f"{n}" for n in range(42)}}, ".given-pairs", "12 more"),
    ],
)
def test_what_is_too_long_to_show_says_how_much_is_left_out(
    call: dict[str, Any], where: str, left: str, visit: Visit, sessions: dict[str, str]
) -> None:
    page = visit.page
    with_call(page, {"category": "task", "what": "", **call})
    page = visit.open(f"/s/{sessions['sub_agents']}")
    expect(page.locator(where).first).to_contain_text(left)
    page.unroute_all(behavior="wait")


def with_call(page: Page, call: dict[str, Any]) -> None:
    """Have every call of the transcript be this one."""

    def answer(route: Route) -> None:
        told = route.fetch().json()
        for row in told["rows"]:
            if row.get("call"):
                row["call"] = {**row["call"], "session": None, **call}
        route.fulfill(json=told)

    def without_answers(route: Route) -> None:
        told = route.fetch()
        route.fulfill(response=told, body=told.text().replace('id="first-answers"', ""))

    page.route("**/api/v1/transcript", answer)
    page.route("**/s/*", without_answers)  # so that it asks for them


def test_what_is_marked_is_what_was_found(visit: Visit, sessions: dict[str, str]) -> None:
    page = visit.open(f"/s/{sessions['cafe']}?q=CAFE")
    expect(page.locator(".find")).to_contain_text("1 of")
    expect(page.locator("mark").first).to_have_text("café")

    page.get_by_label("Find in this session").fill("café nobodysaidthis")
    expect(page.locator(".find")).to_contain_text("nothing")
    expect(page.locator("mark")).to_have_count(0)

    page.get_by_label("Find in this session").fill("crowded table")  # no row but those that have both has a mark
    expect(page.locator(".find")).to_contain_text("1 of")
    texts = page.locator(".row-frame", has=page.locator("mark")).all_inner_texts()
    assert texts
    assert all("crowded" in text.lower() and "table" in text.lower() for text in texts)


def test_the_strip_of_a_sub_agent_has_its_calls_and_is_as_long_as_these(visit: Visit, sessions: dict[str, str]) -> None:
    page = visit.open(f"/s/{sessions['sub_agents']}")
    head = page.locator(".subagent-head").first
    expect(head).to_contain_text("1 call")
    assert 1 == head.locator("rect").count()
    place = head.locator("svg").bounding_box()
    assert place is not None
    assert place["width"] <= 12
