"""Which verdict a reviewer's reply states."""

from __future__ import annotations

import pytest

from harken.formats.std.exporting.reviews import is_reviewer, stated_verdict
from harken.formats.std.exporting.spawning import SpawnedAgent

STATED = {
    "Approved.": "approved",
    "APPROVED": "approved",
    "Looked at everything. It is approved.": "approved",
    "**Verdict:** Approved": "approved",
    "## Verdict: changes requested\nFix the lock.": "changes_requested",
    "changes_requested": "changes_requested",
    "Changes requested: the lock is never freed.": "changes_requested",
    "Rejected, because the design cannot work.": "rejected",
    "1. Rejected.": "rejected",
    '```json\n{"verdict": "approved", "findings": []}\n```': "approved",
    "The decision is: rejected.": "rejected",
    "Bad input is rejected with a clear error. Verdict: approved.": "approved",
    "Approved. Bad input is now rejected early.": "approved",
    '"Is it approved?" you asked. Changes requested.': "changes_requested",
    "> Verdict: rejected\n\nThat was last time. Approved.": "approved",
    "✅ Approved": "approved",
    "Approved with minor remarks.": "approved",
    "The change is approved.": "approved",
    "Overall, this PR is rejected.": "rejected",
    "I have approved it.": "approved",
    "So the work is now approved, with two remarks.": "approved",
    "Rejected inputs are logged. Changes requested.": "changes_requested",
    '{"review": {"status": "changes_requested"}}': "changes_requested",
    "Final status: approved": "approved",
    "My verdict on this is: approved": "approved",
    "Result: rejected, since invoices are lost.": "rejected",
    "Result: approved by the reviewer": "approved",
    "Verdict: approved overall": "approved",
    "Decision: rejected this time.": "rejected",
}
NOT_STATED = (
    "",
    "Looks good to me.",
    "This is not approved.",
    "Not approved",
    "It isn't approved yet.",
    "I haven’t approved it.",
    "No changes requested.",
    "It was never rejected.",
    "Should it be approved?",
    '"Has it been approved?" is what I was asked.',
    "> Approved",
    "It can be approved once the tests pass.",
    "Approved if the tests pass.",
    "I answer with approved, changes_requested or rejected.",
    "approved / changes_requested / rejected",
    "Unapproved, pre-approved and disapproved are other words.",
    "Verdict: approved\nVerdict: rejected",
    "```\nprint('approved')\n```",
    "Verdict: not approved",
    "Result: rejected invoices now appear",
    "Status: approved users see the page.",
    "Decision: rejected requests are logged twice",
    "Bad input is rejected.",
    "Bad input is rejected with a clear error; the tests pass.",
    "Requests without a token are rejected.",
    "Rejected requests now return 400.",
    "Approved plugins are loaded first.",
    "The parser rejected three files.",
    "With a bad token it is rejected with a clear error.",
    "It is rejected with a clear error.",
    "The handler sets status: rejected in the database.",
    "The list of changes requested by the user is long.",
    "I looked at how orders are approved and rejected.",
)


@pytest.mark.parametrize("reply", STATED)
def test_a_verdict_that_is_stated_is_found(reply: str) -> None:
    assert STATED[reply] == stated_verdict(reply)


@pytest.mark.parametrize("reply", NOT_STATED)
def test_what_is_denied_asked_quoted_or_left_open_is_no_verdict(reply: str) -> None:
    assert "" == stated_verdict(reply)


def test_a_long_reply_full_of_verdicts_is_read_in_no_time() -> None:
    assert "" == stated_verdict("it is approved it is rejected " * 2_000 + "```\n" * 20_000 + '"' * 20_000 + "?")


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        ("a1", "code-reviewer", True),
        ("Reviewer 2", "", True),
        ("a1", "PRReview", True),
        ("a1", "developer", False),
        ("viewer", "", False),
    ],
)
def test_a_reviewer_is_known_by_its_type_or_its_name(name: str, kind: str, expected: bool) -> None:
    agent = SpawnedAgent(number=1, agent_id="a1", name=name, agent_type=kind)

    assert expected == is_reviewer(agent)
