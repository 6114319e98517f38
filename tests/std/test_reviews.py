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
    "Approved: yes": "approved",
    '{"approved": true}': "approved",
    "**Approved**: ✅": "approved",
    "Approved: no issues found.": "approved",
    "Approved: not a single problem.": "approved",
    "Approved (no remarks).": "approved",
    "Approved: 2026-03-04": "approved",
    "## Approved\n\nNo changes needed.": "approved",
    "Rejected: no tests, and none of the old ones pass.": "rejected",
    "Rejected: 3 critical bugs.": "rejected",
    "Rejected: 1. The lock is never freed.": "rejected",
    "❌ Rejected": "rejected",
    "Changes requested: no error handling around the lock.": "changes_requested",
    "Changes requested: 2": "changes_requested",
    "3 changes requested.": "changes_requested",
    "Changes requested:\n- [ ] free the lock": "changes_requested",
    "Changes requested ❌": "changes_requested",
    "- [ ] Approved\n- [x] Changes requested\n- [ ] Rejected": "changes_requested",
    "~~Approved~~ Changes requested": "changes_requested",
}
INSTEAD = {
    "Approved: no. Changes requested.": "changes_requested",
    "Approved: no, changes requested": "changes_requested",
    "Not approved: changes requested.": "changes_requested",
    "Verdict: not approved, changes requested": "changes_requested",
    "Not rejected but approved.": "approved",
    "No changes requested, approved.": "approved",
    "Changes requested: none. Approved: yes.": "approved",
    '{"approved": false, "changes_requested": true}': "changes_requested",
    "Approved? No. The design is rejected.": "rejected",
}
"""A denial with what is so instead."""
TAKEN_BACK = (
    "Approved: no…",
    "Approved: no, the tests fail.",
    "Approved: no because the tests fail",
    "Approved: not yet",
    "Approved: not by me.",
    "Approved - not yet.",
    "Approved (no)",
    "Approved：否",
    "Approved: pending",
    "Approved: once the tests pass",
    "Approved: n/a",
    "Approved: -",
    "Approved: [ ]",
    "Approved: 0",
    "Approved: 0/3 files",
    "Approved: 3/3 files",
    "Approved: 12",
    '{"approved": false}',
    '{"approved": "no"}',
    '{"approved": ""}',
    '{"approved": null, "rejected": []}',
    "approved=False",
    "**Approved**: ❌",
    "**Approved:** ❌",
    "Approved ❌",
    "❌ Approved",
    "| Approved | no |",
    "- [ ] Approved",
    "☐ Approved",
    "~~Approved~~",
    "<!-- Approved -->",
    "Verdict: approved: no",
    "## Approved\n\nNo.",
    "Rejected: none",
    "Rejected: no",
    "Rejected: 0",
    "Rejected: 3",
    "Rejected: never",
    "Rejected: not applicable",
    "Rejected:\n- none",
    "2 approved, 1 rejected",
    "Changes requested: No",
    "Changes requested: none.",
    "Changes requested: nothing to change",
    "Changes requested: no further changes needed",
    "Changes requested: no issues found",
    "## Changes requested\n\n- None",
    "0 changes requested",
)
PRESENT = {
    "Previous verdict: changes requested.\nVerdict now: approved": "approved",
    "Previous verdict: changes requested.\nApproved.": "approved",
    "My earlier verdict was rejected, my verdict is now: approved.": "approved",
    'The last verdict: "changes requested". Verdict: approved': "approved",
    "Verdict (previous): rejected\nVerdict: approved": "approved",
    "Verdict of the first review: rejected\nVerdict: changes requested": "changes_requested",
    "In the previous round, the verdict: rejected. It is approved.": "approved",
    "Changes requested (last time).\nApproved.": "approved",
    "Changes requested (in the first round), now approved.": "",
    "Last time: rejected. Now: approved.": "approved",
    '{"previous": {"verdict": "rejected"}, "verdict": "approved"}': "approved",
    '{"previous_verdict": "rejected", "verdict": "approved"}': "approved",
    "## Previous review\nVerdict: rejected\n### Why\nRejected.\n## Now\nApproved.": "approved",
    "**Previous verdict**\n\nRejected.\n\n**Verdict now**\n\nApproved.": "approved",
    "Last time:\nVerdict: rejected\n\nApproved.": "approved",
    "Verdict on speed: rejected\nVerdict on style: approved\nFinal verdict: rejected": "rejected",
    "Verdict on the last commit: approved": "approved",
    "Previous verdict: rejected.": "",
    "Verdict: rejected\nVerdict: approved": "",
}
"""Verdicts of two times, to that of now; empty where none is."""
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


@pytest.mark.parametrize("reply", INSTEAD)
def test_what_is_so_instead_of_what_is_denied_is_the_verdict(reply: str) -> None:
    assert INSTEAD[reply] == stated_verdict(reply)


@pytest.mark.parametrize("reply", TAKEN_BACK)
def test_a_verdict_that_is_answered_with_no_or_only_counts_something_is_none(reply: str) -> None:
    assert "" == stated_verdict(reply)


@pytest.mark.parametrize("reply", PRESENT)
def test_of_an_earlier_verdict_and_that_of_now_the_one_of_now_counts(reply: str) -> None:
    assert PRESENT[reply] == stated_verdict(reply)


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
