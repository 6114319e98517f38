"""What sub-agents hand in: developers, reviewers and all others, each in the shapes of the standard and of programs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from .model_base import FINDING_CATEGORIES, Extended, ReviewVerdict, StdObject


class FileChange(StdObject, frozen=True, kw_only=True):
    """A file that was changed."""

    path: str
    lines_added: int | None = None
    lines_removed: int | None = None
    description: str | None = None
    change_type: str | None = None


class FileChanges(StdObject, frozen=True, kw_only=True):
    """The files that a developer changed; each a `FileChange` or its path."""

    files_created: list[Any]
    files_modified: list[Any]
    files_deleted: list[Any]


class SelfReview(StdObject, frozen=True, kw_only=True):
    """What a developer says of its own work."""

    tests_run: bool
    tests_passed: bool
    type_check_passed: bool
    known_issues: list[Any] | None = None


class DeveloperOutput(StdObject, frozen=True, kw_only=True):
    """What a developer hands in."""

    task_id: str
    status: Literal["completed", "partial", "failed"]
    changes: FileChanges
    summary: str
    implementation_notes: str | None = None
    self_review: SelfReview | None = None
    blockers: list[str] | None = None
    suggestions: list[Any] | None = None


class FindingLocation(StdObject, frozen=True, kw_only=True):
    """Where a reviewer found something."""

    file: str
    line_start: int | None = None
    line_end: int | None = None
    code_snippet: str | None = None


class ReviewFinding(StdObject, frozen=True, kw_only=True):
    """Something a reviewer found, in a `file` or at a `location`: one of the two is there."""

    finding_id: str
    severity: Literal["critical", "major", "minor", "suggestion"]
    category: Annotated[str, Extended(FINDING_CATEGORIES, "test")]
    file: str | None = None
    line: int | None = None
    location: FindingLocation | None = None
    description: str
    suggestion: str | None = None
    rationale: str | None = None
    fixed_in_iteration: int | None = None


class CheckResult(StdObject, frozen=True, kw_only=True):
    """How a check went."""

    passed: bool
    output: str | None = None
    error: str | None = None


class Verification(StdObject, frozen=True, kw_only=True):
    """What a reviewer ran: the two flags of the standard, or a result for each check."""

    tests_passed: bool | None = None
    type_check_passed: bool | None = None
    custom_checks: dict[str, bool] | None = None
    tests: CheckResult | None = None
    type_check: CheckResult | None = None
    lint: CheckResult | None = None
    custom: dict[str, CheckResult] | None = None


class RequiredChange(StdObject, frozen=True, kw_only=True):
    """What a reviewer wants changed."""

    change_id: str
    priority: Literal["must_fix", "should_fix", "consider"]
    related_findings: list[str]
    description: str


class ReviewerOutput(StdObject, frozen=True, kw_only=True):
    """What a reviewer hands in. `task_id` is the task that was reviewed."""

    review_id: str
    task_id: str
    verdict: ReviewVerdict
    findings: list[ReviewFinding]
    verification: Verification
    summary: str
    required_changes: list[RequiredChange] | None = None
    commendations: list[Any] | None = None


class GenericAgentOutput(StdObject, frozen=True, kw_only=True):
    """What any other agent hands in."""

    output_type: Literal["generic"]
    task_id: str
    status: str
    summary: str
    data: Any = None


SubAgentOutput = DeveloperOutput | ReviewerOutput | GenericAgentOutput


def output_model(output: dict[str, Any], agent_type: str = "") -> type[StdObject]:
    """Which of the three a sub-session's output is meant to be: by what it says, else by who made it."""
    if output.get("output_type") == "generic":
        return GenericAgentOutput
    if output.keys() & {"verdict", "findings", "review_id", "verification"}:
        return ReviewerOutput
    if "changes" in output or agent_type == "developer":
        return DeveloperOutput
    return ReviewerOutput if agent_type == "reviewer" else GenericAgentOutput
