"""What Claude Code sends for a session: each case was given to the real program (2.1.325), and this is what it sent.

A message is written as its role and its blocks: a text as it is, `+c` a call, `=c` its result, `!c` a result that was
put in, `~t` thinking.
"""

from __future__ import annotations

from typing import Any

import pytest

from harken.formats import get
from harken.formats.claude_code import context, messages
from support.claude_lines import (
    assistant,
    attachment,
    boundary,
    call,
    dump,
    line_of,
    notice,
    progress,
    result,
    sent,
    summary,
    text,
    thinking,
    user,
)

UNANSWERED = "A No response requested."
Q = user("u1", None, "q", 1)
A = assistant("a1", "u1", "x", "m1", 5)
CALL = assistant("a1", "u1", [call("c1")], "m1", 5)
END = (user("u8", "a1", "p", 50), assistant("a8", "u8", "y", "m8", 51))
REMINDER = {"type": "silent_turn_reminder", "text": "R"}
REMINDED = "<system-reminder>\nR\n</system-reminder>"
CAVEAT = "<local-command-caveat>not for you</local-command-caveat>"
COMMAND = "<command-name>/exit</command-name>"
OUTPUT = "<local-command-stdout>bye</local-command-stdout>"


def after(parent: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A last turn that hangs from the record."""
    return (END[0] | {"parentUuid": parent}, END[1])


LAST = ["U p", "A y"]

RECORDS = {
    "lines of one message become one": (
        [Q, assistant("a1", "u1", [thinking("t")], "m1"), assistant("a2", "a1", "x", "m1"), *after("a2")],
        ["U q", "A ~t | x", *LAST],
    ),
    "calls stand last": (
        [
            Q,
            assistant("a1", "u1", [call("c1"), text("x"), call("c2")], "m1"),
            result("r1", "a1", "c1"),
            result("r2", "r1", "c2"),
            *after("r2"),
        ],
        ["U q", "A x | +c1 | +c2", "U =c1 | =c2 | p", "A y"],
    ),
    "texts that meet get a newline": (
        [Q, user("u2", "u1", [text("a"), text("b")]), user("u3", "u2", "c"), *after("u3")],
        ["U q\n | a | b\n | c\n | p", "A y"],
    ),
    "results stand first": (
        [Q, CALL, user("u2", "a1", "hurry"), result("r1", "u2", "c1"), *after("r1")],
        ["U q", "A +c1", "U =c1 | hurry\n | p", "A y"],
    ),
    "meta records are sent": (
        [Q, A, user("u2", "a1", "meta", isMeta=True), *after("u2")],
        ["U q", "A x", "U meta\n | p", "A y"],
    ),
    "empty texts are not sent": (
        [Q, A, user("u2", "a1", [text(""), text("a")]), *after("u2")],
        ["U q", "A x", "U a\n | p", "A y"],
    ),
    "a tool goes by its name of today": (
        [Q, assistant("a1", "u1", [call("c1", "Task")], "m1"), result("r1", "a1", "c1"), *after("r1")],
        ["U q", "A +c1", "U =c1 | p", "A y"],
    ),
    "another message is another message": (
        [Q, A, assistant("a2", "a1", "z", "m2"), *after("a2")],
        ["U q", "A x", "A z", *LAST],
    ),
    "a late line joins its message across results": (
        [
            Q,
            CALL,
            result("r1", "a1", "c1"),
            assistant("a2", "r1", [call("c2")], "m2"),
            result("r2", "a2", "c2"),
            assistant("a3", "r2", "late", "m1"),
            *after("a3"),
        ],
        ["U q", "A late | +c1", "U =c1", "A +c2", "U =c2 | p", "A y"],
    ),
    "but not across a prompt": (
        [Q, A, user("u2", "a1", "mid"), assistant("a2", "u2", "z", "m1"), *after("a2")],
        ["U q", "A x", "U mid", "A z", *LAST],
    ),
    "local commands kept as notices are sent": (
        [Q, A, notice("n1", "a1", "local_command", content=COMMAND), notice("n2", "n1", "turn_duration"), *after("n2")],
        ["U q", "A x", f"U {COMMAND}\n | p", "A y"],
    ),
    "a block nobody knows is not sent": (
        [Q, assistant("a1", "u1", [{"type": "fallback"}, text("x")], "m1"), *after("a1")],
        ["U q", "A x", *LAST],
    ),
}

LEFT_OUT = {
    "a call nobody answered": ([Q, CALL, *after("a1")], ["U q\n | p", "A y"]),
    "with the words on its line": (
        [Q, assistant("a1", "u1", [text("x"), call("c1")], "m1"), *after("a1")],
        ["U q\n | p", "A y"],
    ),
    "but not the words on another line": (
        [Q, A, assistant("a2", "a1", [call("c1")], "m1"), *after("a2")],
        ["U q", "A x", *LAST],
    ),
    "of two calls the one nobody answered": (
        [Q, CALL, assistant("a2", "a1", [call("c2")], "m1"), result("r1", "a2", "c2"), *after("r1")],
        ["U q", "A +c2", "U =c2 | p", "A y"],
    ),
    "unless both stand on one line": (
        [Q, assistant("a1", "u1", [call("c1"), call("c2")], "m1"), result("r1", "a1", "c1"), *after("r1")],
        ["U q", "A +c1 | +c2", "U !c2 | =c1 | p", "A y"],
    ),
    "a result without a call": (
        [Q, A, user("u2", "a1", "hm"), result("r1", "u2", "c9"), *after("r1")],
        ["U q", "A x", "U hm\n | p", "A y"],
    ),
    "a result that comes twice": (
        [Q, CALL, result("r1", "a1", "c1"), result("r2", "r1", "c1"), *after("r2")],
        ["U q", "A +c1", "U =c1 | p", "A y"],
    ),
    "a call that comes twice": (
        [
            Q,
            CALL,
            result("r1", "a1", "c1"),
            assistant("a2", "r1", [call("c1")], "m2"),
            result("r2", "a2", "c1"),
            *after("r2"),
        ],
        ["U q", "A +c1", "U =c1", "A [Tool use interrupted]", *LAST],
    ),
    "a result that comes too late": (
        [Q, CALL, assistant("a2", "a1", "z", "m2"), result("r1", "a2", "c1"), *after("r1")],
        ["U q", "A +c1", "U !c1", "A z", *LAST],
    ),
    "blank words": ([Q, assistant("a1", "u1", "\n\n", "m1"), *after("a1")], ["U q\n | p", "A y"]),
    "but not beside a call": (
        [Q, assistant("a1", "u1", [text("\n"), call("c1")], "m1"), result("r1", "a1", "c1"), *after("r1")],
        ["U q", "A \n | +c1", "U =c1 | p", "A y"],
    ),
    "thinking that led to nothing": (
        [Q, assistant("a1", "u1", [thinking("t")], "m1"), *after("a1")],
        ["U q\n | p", "A y"],
    ),
    "thinking that led to blank words": (
        [Q, assistant("a1", "u1", [thinking("t")], "m1"), assistant("a2", "a1", " ", "m1"), *after("a2")],
        ["U q\n | p", "A y"],
    ),
    "thinking that led to a call nobody answered": (
        [Q, assistant("a1", "u1", [thinking("t")], "m1"), assistant("a2", "a1", [call("c1")], "m1"), *after("a2")],
        ["U q\n | p", "A y"],
    ),
    "thinking of another model": (
        [Q, assistant("a1", "u1", [thinking("t"), text("x")], "m1", model="other"), *after("a1")],
        ["U q", "A x", *LAST],
    ),
    "errors the harness made up": (
        [Q, assistant("a1", "u1", "API Error", "m1", model="<synthetic>", isApiErrorMessage=True), *after("a1")],
        ["U q\n | p", "A y"],
    ),
    "but not other words it made up": (
        [Q, assistant("a1", "u1", "No response requested.", "m1", model="<synthetic>"), *after("a1")],
        ["U q", UNANSWERED, *LAST],
    ),
}

ENDS = {
    "a prompt nobody answered gets an answer": ([Q, A, user("u2", "a1", "p")], ["U q", "A x", "U p", UNANSWERED]),
    "so does a meta record": ([Q, A, user("u2", "a1", "p", isMeta=True)], ["U q", "A x", "U p", UNANSWERED]),
    "a call gets a result": ([Q, CALL], ["U q", "A +c1", "U !c1", UNANSWERED]),
    "notices behind it do not matter": (
        [Q, CALL, progress("p1", "a1"), notice("n1", "p1", "turn_duration")],
        ["U q", "A +c1", "U !c1", UNANSWERED],
    ),
    "nor does thinking that led to nothing": (
        [Q, CALL, assistant("a2", "a1", [thinking("t")], "m2")],
        ["U q", "A +c1", "U !c1", UNANSWERED],
    ),
    "of two calls the open one": (
        [Q, CALL, assistant("a2", "a1", [call("c2")], "m1"), result("r1", "a1", "c1")],
        ["U q", "A +c1 | +c2", "U =c1 | !c2", UNANSWERED],
    ),
    "only the last message's": (
        [Q, CALL, assistant("a2", "a1", [call("c2")], "m2")],
        ["U q", "A +c2", "U !c2", UNANSWERED],
    ),
    "a turn that stops behind a result keeps its calls": (
        [
            Q,
            CALL,
            assistant("a2", "a1", [call("c2")], "m1"),
            result("r2", "a2", "c2"),
            assistant("a3", "r2", [call("c3")], "m2"),
            result("r3", "a3", "c3"),
        ],
        ["U q", "A +c1 | +c2", "U !c1 | =c2", "A +c3", "U =c3", UNANSWERED],
    ),
    "one that stops with words does not": (
        [
            Q,
            CALL,
            assistant("a2", "a1", [call("c2")], "m1"),
            result("r2", "a2", "c2"),
            assistant("a3", "r2", "z", "m2"),
        ],
        ["U q", "A +c2", "U =c2", "A z"],
    ),
    "a call before a prompt is left out": ([Q, CALL, user("u2", "a1", "p")], ["U q\n | p", UNANSWERED]),
    "words end it": ([Q, A], ["U q", "A x"]),
    "local commands wait for the next prompt": (
        [Q, A, user("u2", "a1", CAVEAT, isMeta=True), user("u3", "u2", COMMAND), user("u4", "u3", OUTPUT)],
        ["U q", "A x", f"U {CAVEAT}\n | {COMMAND}\n | {OUTPUT}"],
    ),
    "without the caveat they do not": (
        [Q, A, user("u3", "a1", COMMAND), user("u4", "u3", OUTPUT)],
        ["U q", "A x", f"U {COMMAND}\n | {OUTPUT}", UNANSWERED],
    ),
    "unless all of them are meta": (
        [Q, A, user("u3", "a1", COMMAND, isMeta=True), user("u4", "u3", OUTPUT, isMeta=True)],
        ["U q", "A x", f"U {COMMAND}\n | {OUTPUT}"],
    ),
    "all and not some": (
        [Q, A, user("u3", "a1", COMMAND), user("u4", "u3", OUTPUT, isMeta=True)],
        ["U q", "A x", f"U {COMMAND}\n | {OUTPUT}", UNANSWERED],
    ),
    "a prompt behind them ends that": (
        [Q, A, user("u2", "a1", CAVEAT, isMeta=True), user("u3", "u2", OUTPUT), user("u4", "u3", "p")],
        ["U q", "A x", f"U {CAVEAT}\n | {OUTPUT}\n | p", UNANSWERED],
    ),
    "an error the harness made up is no prompt": (
        [Q, assistant("a1", "u1", "API Error", "m1", model="<synthetic>", isApiErrorMessage=True)],
        ["U q"],
    ),
    "an attachment behind a prompt does not matter": (
        [Q, A, user("u2", "a1", "p"), attachment("t1", "u2", REMINDER)],
        ["U q", "A x", f"U {REMINDED}\n | p", UNANSWERED],
    ),
    "but behind a summary the next prompt is waited for": (
        [boundary("b1"), summary("s1", "b1"), attachment("t1", "s1", REMINDER)],
        [f"U {REMINDED}\n | SUMMARY"],
    ),
    "and behind an interruption": (
        [Q, A, user("u2", "a1", "[Request interrupted by user]"), attachment("t1", "u2", REMINDER)],
        ["U q", "A x", f"U {REMINDED}\n | [Request interrupted by user]"],
    ),
    "a compaction": ([Q, A, boundary("b1"), summary("s1", "b1")], ["U SUMMARY", UNANSWERED]),
}

ATTACHED = {
    "before the prompt it came with": (
        [Q, A, user("u2", "a1", "p"), attachment("t1", "u2", REMINDER), assistant("a8", "t1", "y", "m8")],
        ["U q", "A x", f"U {REMINDED}\n | p", "A y"],
    ),
    "inside the result it follows": (
        [Q, CALL, result("r1", "a1", "c1"), attachment("t1", "r1", REMINDER), *after("t1")],
        ["U q", "A +c1", "U =c1 | p", "A y"],
    ),
    "behind the results where it stood before them": (
        [Q, CALL, attachment("t1", "a1", REMINDER), result("r1", "t1", "c1"), assistant("a8", "r1", "y", "m8")],
        ["U q", "A +c1", f"U =c1 | {REMINDED}", "A y"],
    ),
    "word for word where it was written down": (
        [Q, A, attachment("t1", "a1", {"type": "new"}, rendered=[{"content": "as sent"}]), *after("t1")],
        ["U q", "A x", "U as sent\n | p", "A y"],
    ),
    "nothing where it only keeps books": (
        [Q, A, attachment("t1", "a1", {"type": "command_permissions"}), *after("t1")],
        ["U q", "A x", *LAST],
    ),
    "beside the path with its result": (
        [
            Q,
            CALL,
            assistant("a2", "a1", [call("c2")], "m1"),
            result("r1", "a1", "c1"),
            attachment("t1", "r1", REMINDER),
            result("r2", "a2", "c2"),
            *after("r2"),
        ],
        ["U q", "A +c1 | +c2", "U =c1 | =c2 | p", "A y"],
    ),
}


@pytest.mark.parametrize(("records", "expected"), RECORDS.values(), ids=RECORDS)
def test_records_become_messages(records: list[Any], expected: list[str]) -> None:
    assert expected == sent(*records)


@pytest.mark.parametrize(("records", "expected"), LEFT_OUT.values(), ids=LEFT_OUT)
def test_is_left_out(records: list[Any], expected: list[str]) -> None:
    assert expected == sent(*records)


@pytest.mark.parametrize(("records", "expected"), ENDS.values(), ids=ENDS)
def test_at_the_end(records: list[Any], expected: list[str]) -> None:
    assert expected == sent(*records)


@pytest.mark.parametrize(("records", "expected"), ATTACHED.values(), ids=ATTACHED)
def test_an_attachment_stands(records: list[Any], expected: list[str]) -> None:
    assert expected == sent(*records)


def test_what_a_background_task_reports_is_marked_as_nobodys_words() -> None:
    (report,) = sent(user("u1", None, "done", origin={"kind": "task-notification"}))[:1]

    assert report.startswith("U <system-reminder>\n")
    assert report.endswith("\n\ndone\n</system-reminder>")


def test_assistant_records_without_an_id_are_one_message() -> None:
    nameless = [assistant("a1", "u1", "x", ""), assistant("a2", "a1", "y", "")]
    for record in nameless:
        del record["message"]["id"]

    assert ["U q", "A x | y", *LAST] == sent(Q, *nameless, *after("a2"))


def test_the_next_prompt_joins_what_waits_for_it() -> None:
    data = dump(Q, A, user("u2", "a1", CAVEAT, isMeta=True), user("u3", "u2", OUTPUT))

    assert f"U {CAVEAT}\n | {OUTPUT}\n | next" == line_of(messages(data, prompt="next")[-1])


def test_a_summary_record_in_the_specifications_shape_is_told() -> None:
    data = dump(Q, A, boundary("b1"), {"type": "summary", "summary": "WHAT WAS", "leafUuid": "a1"}, *after("b1"))

    assert ["U WHAT WAS\n | p", "A y"] == [line_of(message) for message in messages(context(data))]


def test_the_request_format_is_made_word_for_word_and_says_what_it_left_out() -> None:
    data = dump(Q, CALL, *after("a1"))

    written = get("claude-code-v1").direct["anthropic-messages-v1"](context(data))

    assert {"U q\n | p", "A y"} == {line_of(message) for message in messages(data)}
    assert [("calls without a result", 1)] == [(loss.what, loss.count) for loss in written.losses]
    assert ["prompt", "response"] == [event.kind for event in get("anthropic-messages-v1").read(written.data)]
