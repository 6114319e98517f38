"""Commits, continuing, documents and raw records in a real browser: by keys, by links, and what they change."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import harken

from .conftest import Served, Visit, visiting
from .test_views import ready

pytestmark = pytest.mark.page

DOCUMENT = {
    "session_id": "2026-03-04-001-mend-the-clock",
    "task_title": "Mend the clock <img src=x onerror=alert(1)>",
    "user_prompt": "The clock is an hour late, mend it.",
    "created_at": "2026-03-04T10:00:00Z",
    "completed_at": "2026-03-04T10:02:00Z",
    "status": "success",
    "agent": {"model_id": "claude-sonnet-4-5"},
    "tool_calls": [],
    "summary": {"total_duration_ms": 120000, "tool_calls_count": 7, "files_created": [], "files_modified": []},
}


def opened(visit: Visit, address: str) -> Page:
    page = visit.open(address)
    ready(page)
    return page


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)
        page.wait_for_timeout(60)


def parameter(page: Page, name: str) -> str:
    found = re.search(rf"[?&]{name}=([^&]*)", page.url)
    return found[1] if found else ""


def test_keys_choose_mark_and_compare_and_the_address_says_so(visit: Visit, sessions: dict[str, str]) -> None:
    page = opened(visit, f"/s/{sessions['sub_agents']}?v=commits")
    press(page, "j", "a", "j", "j", "b")

    panel = page.locator(".commit-panel")
    expect(panel.get_by_role("heading", name="Only A knows")).to_be_visible()
    assert parameter(page, "A").startswith("ctx-")
    assert parameter(page, "B").startswith("ctx-")
    expect(panel.locator(".shares")).to_be_visible()

    page.reload()
    expect(page.locator(".commit-panel").get_by_role("heading", name="Only A knows")).to_be_visible()
    press(page, "Escape")
    assert ("", "") == (parameter(page, "A"), parameter(page, "B"))


def test_runs_are_folded_and_unfolded_by_a_key(visit: Visit, sessions: dict[str, str]) -> None:
    page = opened(visit, f"/s/{sessions['sub_agents']}?v=commits&line=straight")
    folded = page.locator(".commit-row.is-folded").count()
    press(page, "z")
    page.wait_for_timeout(400)

    assert "all" == parameter(page, "z")
    assert 0 == page.locator(".commit-row.is-folded").count()
    press(page, "z")
    page.wait_for_timeout(400)
    assert folded == page.locator(".commit-row.is-folded").count()


def test_a_branch_is_started_from_the_page(visit: Visit, sessions: dict[str, str], store: Path) -> None:
    page = opened(visit, f"/s/{sessions['sub_agents']}?v=commits")
    press(page, "j")
    page.get_by_role("button", name="Fork").click()
    page.get_by_label("What the branch is called").fill("from-the-page")
    page.get_by_role("button", name="Fork here").click()

    expect(page.get_by_text("The branch from-the-page begins here.")).to_be_visible()
    expect(page.locator(".commit-name", has_text="from-the-page").first).to_be_visible()
    with harken.open(store) as repo:
        named = repo.find_name("from-the-page")
        assert named is not None
        assert repo.commit(named).short == parameter(page, "c")


def test_a_name_that_is_taken_is_refused_with_a_reason(visit: Visit, sessions: dict[str, str], store: Path) -> None:
    with harken.open(store) as repo:
        repo.fork(sessions["sub_agents"], "taken")
    page = opened(visit, f"/s/{sessions['sub_agents']}?v=commits")
    press(page, "j")
    page.get_by_role("button", name="Fork").click()
    page.get_by_label("What the branch is called").fill("taken")
    page.get_by_role("button", name="Fork here").click()

    expect(page.get_by_role("alert")).to_contain_text("taken")
    visit.problems.clear()  # the browser tells of every answer that is a refusal


def test_a_remark_is_shown_in_place_of_the_first_words(visit: Visit, sessions: dict[str, str]) -> None:
    page = opened(visit, f"/s/{sessions['sub_agents']}?v=commits")
    press(page, "j")
    page.get_by_role("button", name="Annotate").click()
    page.get_by_label("What is to be said").fill("here it <b>still</b> worked")
    page.get_by_role("button", name="Say it").click()

    expect(page.locator(".commit-words", has_text="here it <b>still</b> worked").first).to_be_visible()


def test_before_one_chooses_each_runtime_says_what_it_would_be_given(visit: Visit, sessions: dict[str, str]) -> None:
    page = opened(visit, f"/s/{sessions['sub_agents']}")
    press(page, "c")

    dialog = page.get_by_role("dialog", name="Continue from here")
    expect(dialog.locator(".runtime-choice", has_text="Claude Code").locator(".tag")).to_have_text("exact")
    expect(dialog.locator(".runtime-choice", has_text="Codex").locator(".tag")).to_have_text("translated")
    expect(dialog.locator(".command code").first).to_contain_text("--in claude-code")
    dialog.locator(".runtime-choice", has_text="Codex").click()
    expect(dialog.locator(".command code").first).to_contain_text("--in codex")
    press(page, "Escape")
    expect(dialog).to_have_count(0)


def test_what_is_written_says_which_command_goes_on(visit: Visit, sessions: dict[str, str], tmp_path: Path) -> None:
    page = opened(visit, f"/s/{sessions['sub_agents']}")
    press(page, "c")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("It is going to work in").fill(str(tmp_path))
    dialog.get_by_role("button", name="Write it for Claude Code").click()

    expect(dialog.get_by_text("It is written.")).to_be_visible()
    expect(dialog.locator(".written .command code")).to_contain_text(f"cd {tmp_path} && ")
    expect(dialog.locator(".written .command code")).to_contain_text("claude --resume")


def test_what_a_compaction_dropped_is_one_click_away(visit: Visit, store: Path) -> None:
    with harken.open(store) as repo:
        found = [one.session_id for one in repo.log() if one.commit_type == "compaction" and "/" not in one.session_id]
    page = opened(visit, f"/s/{found[0]}?v=commits")
    page.locator(".commit-row.is-compaction").first.get_by_role("button", name="what it dropped").click()

    panel = page.locator(".commit-panel")
    expect(panel.get_by_role("heading", name="What this compaction dropped")).to_be_visible()
    expect(panel.get_by_role("row", name=re.compile("Answers|Prompts|Calls")).first).to_be_visible()


def test_a_commit_has_an_address(visit: Visit, sessions: dict[str, str], store: Path) -> None:
    with harken.open(store) as repo:
        commit = repo.commit(sessions["sub_agents"])
    page = opened(visit, f"/c/{commit.short}")

    expect(page.locator(".commit-row.chosen .cell-context")).to_have_text(commit.short)
    expect(page.locator(".commit-panel").get_by_role("button", name="Continue")).to_be_visible()


@pytest.fixture
def document(served: Served, tmp_path: Path) -> str:
    path = tmp_path / f"{DOCUMENT['session_id']}.json"
    path.write_text(json.dumps(DOCUMENT))
    with harken.open(served.store) as repo:
        assert {"new", "unchanged"} >= {told.status for told in repo.import_sessions([path])}
    return str(DOCUMENT["session_id"])


def test_a_document_is_shown_with_what_the_validator_says(visit: Visit, document: str) -> None:
    page = opened(visit, "/documents")
    page.locator(".document-entry", has_text="Mend the clock").first.click()

    shown = page.locator(".document")
    expect(shown.locator(".document-title")).to_have_text("Mend the clock <img src=x onerror=alert(1)>")
    expect(shown.locator(".findings")).to_contain_text("tool_calls_count")
    expect(shown.get_by_role("table")).to_contain_text("main")
    assert document == parameter(page, "d")


def test_raw_records_are_the_bytes_of_the_session(visit: Visit, sessions: dict[str, str], store: Path) -> None:
    with harken.open(store) as repo:
        first = repo.materialize(sessions["sub_agents"], stop="root").bytes.decode()[:120]
    page = opened(visit, f"/s/{sessions['sub_agents']}?v=raw")

    expect(page.locator(".raw-record pre").first).to_contain_text(first)
    press(page, "Enter")
    expect(page.locator(".raw-head").first).to_have_attribute("aria-expanded", "true")


def test_buttons_that_write_say_so_where_the_server_only_shows(
    browser: Browser, store: Path, sessions: dict[str, str]
) -> None:
    running = Served(store, 0, "--no-watch", "--read-only")
    try:
        for visit in visiting(browser, running):
            page = opened(visit, f"/s/{sessions['sub_agents']}?v=commits")
            press(page, "j")
            panel = page.locator(".commit-panel")
            expect(panel.get_by_role("note")).to_contain_text("This server only shows")
            expect(panel.get_by_role("button", name="Fork")).to_be_disabled()
            expect(panel.get_by_role("button", name="Annotate")).to_be_disabled()
            press(page, "c")
            dialog = page.get_by_role("dialog")
            expect(dialog.get_by_role("note")).to_contain_text("The command above does the same")
            expect(dialog.get_by_role("button", name="Write it for")).to_be_disabled()
            expect(dialog.locator(".command code").first).to_contain_text("harken resume")
    finally:
        running.stop()
