"""What messages carry. The standard leaves it open; programs agreed on these."""

from __future__ import annotations

from typing import Any, Literal

from .model_base import Level, ReviewVerdict, StdObject


class ReferenceFile(StdObject, frozen=True, kw_only=True):
    """A file that is worth reading for a task."""

    path: str
    reason: str | None = None
    sections: list[str] | None = None


class TaskContext(StdObject, frozen=True, kw_only=True):
    """What a sub-agent should know."""

    specs: list[ReferenceFile] | None = None
    reference_files: list[ReferenceFile] | None = None
    previous_attempts: list[Any] | None = None


class TaskConstraints(StdObject, frozen=True, kw_only=True):
    """What a sub-agent must heed."""

    scope: list[str] | None = None
    """Globs of the files that it may change."""
    testing_required: bool | None = None
    must_not_break: list[str] | None = None
    style_guide: str | None = None


class DeveloperInput(StdObject, frozen=True, kw_only=True):
    """What a sub-agent is to do; the standard's own example says `task_description`, its sub-sessions `description`."""

    task_id: str
    task_description: str | None = None
    description: str | None = None
    context: TaskContext | None = None
    constraints: TaskConstraints | None = None
    acceptance_criteria: list[str] | None = None
    dependencies: list[str] | None = None


class TaskAssignment(StdObject, frozen=True, kw_only=True):
    """`task_assignment`."""

    task: DeveloperInput
    priority: Level | None = None
    deadline: str | None = None
    max_iterations: int | None = None
    dependencies: list[str] | None = None


class TaskProgress(StdObject, frozen=True, kw_only=True):
    """`task_progress`."""

    task_id: str
    progress_percent: float | None = None
    current_step: str | None = None
    files_modified_so_far: list[str] | None = None
    estimated_remaining: Any = None
    blockers: list[Any] | None = None


class TaskCompletion(StdObject, frozen=True, kw_only=True):
    """`task_completion`."""

    task_id: str
    status: str | None = None


class ReviewScope(StdObject, frozen=True, kw_only=True):
    """What a reviewer is to look at."""

    files: list[str] | None = None
    focus_areas: list[str] | None = None
    ignore_patterns: list[str] | None = None


class ReviewRequest(StdObject, frozen=True, kw_only=True):
    """`review_request`."""

    review_id: str | None = None
    task_id: str
    scope: ReviewScope | None = None
    criteria: Any = None
    context: Any = None
    files: list[str] | None = None


class ReviewResult(StdObject, frozen=True, kw_only=True):
    """`review_result`."""

    review_id: str | None = None
    task_id: str
    verdict: ReviewVerdict


class Feedback(StdObject, frozen=True, kw_only=True):
    """`feedback`."""

    feedback_type: Literal["clarification", "correction", "guidance", "question"] | None = None
    subject: str | None = None
    content: str | None = None
    action_required: bool | None = None
    related_task_id: str | None = None


class Abort(StdObject, frozen=True, kw_only=True):
    """`abort`."""

    scope: Literal["task", "session"] | None = None
    target_id: str | None = None
    reason: str | None = None
    cleanup_required: bool | None = None


class Acknowledgment(StdObject, frozen=True, kw_only=True):
    """`acknowledgment`, and the two that ask for a status."""

    task_id: str | None = None


PAYLOADS: dict[str, type[StdObject]] = {
    "task_assignment": TaskAssignment,
    "task_progress": TaskProgress,
    "task_completion": TaskCompletion,
    "review_request": ReviewRequest,
    "review_result": ReviewResult,
    "feedback": Feedback,
    "abort": Abort,
    "acknowledgment": Acknowledgment,
    "status_query": Acknowledgment,
    "status_response": Acknowledgment,
    "status_update": Acknowledgment,
}
"""Message type to what its payload is."""
