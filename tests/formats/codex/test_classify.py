"""Who speaks in the user's place: every row of the table, and what comes before the table."""

from __future__ import annotations

import pytest

from harken.events import Prompt
from harken.formats.codex import read
from harken.formats.codex.classify import MARKERS, Marker, begins_turn, is_contextual, marker_of, origin_of
from harken.formats.codex.scan import scan
from support.rollouts import Rollout, message, said


def sample(marker: Marker) -> str:
    opening = marker.opening + (">" if marker.opening[0] == "<" and marker.opening[-1] not in ">_" else "")
    return f"{opening}\nsomething\n{marker.closing}"


@pytest.mark.parametrize("marker", MARKERS, ids=lambda marker: marker.opening[:40])
def test_a_row(marker: Marker) -> None:
    text = sample(marker)

    assert marker == marker_of(text)
    assert marker == marker_of(f"  {text.upper()}\n"), "case and white space do not matter"
    assert marker.native == is_contextual([{"type": "input_text", "text": text}])
    assert marker.native != begins_turn(message("user", text))


@pytest.mark.parametrize("marker", [marker for marker in MARKERS if marker.closing], ids=lambda m: m.opening[:40])
def test_a_row_needs_its_end(marker: Marker) -> None:
    assert marker_of(sample(marker) + " and my own words") is None


def test_an_address_is_no_context() -> None:
    assert ["", ""] == [origin_of("Fix <environment_context>"), origin_of("hello")]


def test_a_persons_words_next_to_injected_ones_are_a_persons() -> None:
    parts = message("user", "do it", "<skill>\nx\n</skill>")["content"]

    assert "" == origin_of(parts)
    assert is_contextual(parts), "though Codex itself counts the message as context"


def prompts(rollout: Rollout) -> list[tuple[str, str, str]]:
    return [(e.content, e.source, e.origin) for e in read(rollout.data) if isinstance(e, Prompt)]


def test_what_was_typed_is_the_users_whatever_it_looks_like() -> None:
    pasted = "<skill>\nwhat does this do?\n</skill>"

    found = prompts(Rollout().user(pasted).event("user_message", message=pasted).user("<skill>\nreal\n</skill>"))

    assert [(pasted, "user", ""), ("<skill>\nreal\n</skill>", "injected", "skill")] == found


def test_a_message_that_says_where_it_comes_from_is_believed() -> None:
    key = "internal_chat_message_metadata_passthrough"
    rollout = Rollout()
    for text, kind in (("typed", "user.text"), ("world", "hooks.hook_context"), ("old", "unknown")):
        rollout.item("message", **said("user", text), **{key: {"content_item_kinds": [kind]}})

    assert [("typed", "user", ""), ("world", "injected", "hook_context"), ("old", "user", "")] == prompts(rollout)


def test_in_a_sub_agents_thread_the_user_is_its_parent() -> None:
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "p"}}}

    found = prompts(Rollout(source=source).user("<environment_context></environment_context>").user("look at x"))

    assert [("injected", "environment"), ("injected", "agent")] == [(source, origin) for _, source, origin in found]


PUT_IN_BY_CLAUDE_CODE = [
    ("local_command_caveat", "<local-command-caveat>not by the user</local-command-caveat>"),
    ("command", "<command-name>/compact</command-name>\n<command-args></command-args>"),
    ("local_command_output", "<local-command-stdout>Compacted</local-command-stdout>"),
    ("task_notification", "<task-notification>\n<task-id>a1</task-id>\n</task-notification>"),
    ("compact_summary", "This session is being continued from a previous conversation that ran out of context."),
]


@pytest.mark.parametrize(("origin", "text"), PUT_IN_BY_CLAUDE_CODE, ids=[row[0] for row in PUT_IN_BY_CLAUDE_CODE])
def test_what_claude_code_put_in_the_users_place_is_nobodys_in_codex_either(origin: str, text: str) -> None:
    rollout = Rollout().user(text).user("go on").event("user_message", message="go on")

    assert [(text, "injected", origin), ("go on", "user", "")] == prompts(rollout)
    counted = scan(rollout.data).tally.prompts
    assert (1, 1) == (counted.human, counted.injected)
    assert begins_turn(message("user", text)), "Codex itself knows nothing of it"


def test_a_persons_words_behind_claude_codes_are_a_persons() -> None:
    assert "" == origin_of("<system-reminder>today is monday</system-reminder>\nwhat day is it?")
