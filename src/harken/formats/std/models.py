"""What a session document may hold, as types: the single-agent session of STD-001, the multi-agent one of STD-008, and
what real documents add to them.

These types are the one place that says which fields there are, which of them must be there and what they may be:
the checks of `rules` are derived from them, and `view` reads a document through them. A field without a default is
required. What else a field's rule needs stands in its annotation:

- `Literal[…]`: no other value is allowed.
- `Open(…)`: these values are known; another one is worth a note.
- `Extended(…)`: the values of the standard, and those that programs have added, which are worth a note; no other.
- `Advised`: required by the standard, but often missing; that is worth a warning.
- `Any`: several shapes are allowed, and `rules` looks at them itself.

A document itself is kept as the JSON object it is (`document.Document`), so that nothing unknown is lost.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

import msgspec

# -- vocabularies ------------------------------------------------------------------------------------------------------

STATUSES = ("success", "failed", "in_progress")
CATEGORIES = ("perception", "action", "interaction", "planning", "task_management")
PATTERNS = ("master_worker", "peer_to_peer", "pipeline")
AGENT_TYPES = ("architect", "developer", "reviewer", "challenger", "product_owner", "design_authority")
MESSAGE_TYPES = (
    "task_assignment", "task_progress", "task_completion", "review_request", "review_result", "feedback", "abort",
    "acknowledgment",
)  # fmt: skip
ADDED_MESSAGE_TYPES = ("status_query", "status_response", "status_update")
"""Types that programs have added to those of the standard."""
FINDING_CATEGORIES = ("bug", "security", "performance", "style", "logic")
VERDICTS = ("approved", "changes_requested", "rejected")
PHASE_TYPES = ("understand", "explore", "plan", "execute", "verify", "mixed", "unclassified")
CONTRIBUTIONS = ("file_content", "search_result", "command_output", "knowledge")
CONTEXT_TYPES = (
    "claude_md", "rule", "standard", "skill", "spec", "file", "user_message", "tool_result", "capability",
)  # fmt: skip
DECISION_TYPES = ("tool_selection", "approach", "error_handling", "skip", "retry")

Status = Literal["success", "failed", "in_progress"]
Level = Literal["high", "medium", "low"]
RoleCategory = Literal["orchestrator", "worker", "validator", "specialist"]
ReviewVerdict = Literal["approved", "changes_requested", "rejected"]


def Open(*values: str) -> msgspec.Meta:
    """A vocabulary that may be added to."""
    return msgspec.Meta(extra={"open": values})


def Extended(values: tuple[str, ...], *added: str) -> msgspec.Meta:
    """A vocabulary of the standard, and what programs have added to it; nothing else is allowed."""
    return msgspec.Meta(extra={"known": values, "added": added})


Advised = msgspec.Meta(extra={"advised": True})
"""A field that the standard requires, and whose absence makes a document no less readable."""


class StdObject(msgspec.Struct, frozen=True, kw_only=True):
    """An object in a document."""


# -- STD-001: one agent ------------------------------------------------------------------------------------------------


class ModelOfAgent(StdObject, frozen=True, kw_only=True):
    """`agent`: the model that did the work."""

    model_id: str
    capability_snapshot: str | None = None
    """A date."""


class CallInput(StdObject, frozen=True, kw_only=True):
    """What a tool was asked."""

    params: dict[str, Any]
    description: str | None = None
    raw_command: str | None = None


class CallOutput(StdObject, frozen=True, kw_only=True):
    """What a tool answered."""

    status: Literal["success", "failed"]
    result: dict[str, Any] | None = None
    """`display` is what a person is shown."""
    error: str | None = None
    truncated: bool | None = None


class ContextContribution(StdObject, frozen=True, kw_only=True):
    """What a call added to the agent's context."""

    type: Annotated[str, Open(*CONTRIBUTIONS)]
    summary: str
    full_content: str | None = None


class ToolCount(StdObject, frozen=True, kw_only=True):
    """How often a sub-agent used a tool."""

    tool_name: str
    count: int


class SubagentInfo(StdObject, frozen=True, kw_only=True):
    """What a Task call says of the agent it started."""

    subagent_type: str
    tool_uses: int | None = None
    tokens_used: int | None = None
    tools_breakdown: list[ToolCount] | None = None
    sub_session_id: str | None = None
    """STD-008: the entry of `sub_sessions`."""


class DocumentCall(StdObject, frozen=True, kw_only=True):
    """An entry of `tool_calls`. While a session is in progress the last three required ones may be missing."""

    call_id: str
    tool_name: str
    tool_category: Literal["perception", "action", "interaction", "planning", "task_management"]
    started_at: str
    ended_at: str
    duration_ms: float
    input: CallInput
    output: CallOutput
    context_contribution: ContextContribution | None = None
    subagent_info: SubagentInfo | None = None


class CallRange(StdObject, frozen=True, kw_only=True):
    """The calls of a phase, both ends among them."""

    start_call_id: str
    end_call_id: str


class ContextReference(StdObject, frozen=True, kw_only=True):
    """Something that a phase made use of."""

    type: Annotated[str, Open(*CONTEXT_TYPES)]
    source: str
    relevance: Level | None = None
    summary: str | None = None
    quoted_content: str | None = None
    usage_mode: Literal["read", "modified", "read_then_modified"] | None = None


class Decision(StdObject, frozen=True, kw_only=True):
    """A choice that the agent made."""

    decision_id: str | None = None
    type: Annotated[str | None, Open(*DECISION_TYPES)] = None
    description: str
    reasoning: str | None = None
    alternatives_considered: list[Any] | None = None


class PhaseAnnotation(StdObject, frozen=True, kw_only=True):
    """What somebody said later of a stretch of calls."""

    annotation_id: str
    phase_type: Literal["understand", "explore", "plan", "execute", "verify", "mixed", "unclassified"]
    tool_call_range: CallRange
    annotated_by: Literal["agent", "human", "auto"]
    annotated_at: str
    confidence: Level
    description: str | None = None
    decisions: list[Decision] | None = None
    context_used: list[ContextReference] | None = None


class SessionSummary(StdObject, frozen=True, kw_only=True):
    """`summary` of a single-agent session."""

    total_duration_ms: float
    tool_calls_count: int
    files_created: list[str]
    files_modified: list[str]
    errors_encountered: int | None = None


class AgentSession(StdObject, frozen=True, kw_only=True):
    """A document of STD-001."""

    session_id: str
    task_title: str
    task_description: str | None = None
    user_prompt: Annotated[str, Advised]
    created_at: str
    completed_at: Annotated[str, Advised]
    updated_at: str | None = None
    status: Status
    agent: Annotated[ModelOfAgent, Advised]
    tool_calls: list[DocumentCall]
    phase_annotations: list[PhaseAnnotation] | None = None
    phases: list[Any] | None = None
    """Of an older generation."""
    summary: SessionSummary


# -- STD-008: several agents -------------------------------------------------------------------------------------------


class AgentIdentifier(StdObject, frozen=True, kw_only=True):
    """Who."""

    agent_id: str
    agent_type: Annotated[str, Open(*AGENT_TYPES)]
    instance_id: str | None = None
    role_category: RoleCategory | None = None


class Collaboration(StdObject, frozen=True, kw_only=True):
    """Who took part, and how they worked together."""

    mode: Literal["multi_agent", "single"]
    """The type of the standard has the first alone; its migration writes the second."""
    pattern: Literal["master_worker", "peer_to_peer", "pipeline"]
    orchestrator: AgentIdentifier
    participants: list[AgentIdentifier]


class AssignedTask(StdObject, frozen=True, kw_only=True):
    """What a sub-agent was to do."""

    task_id: str
    description: str
    priority: Level


class SubAgentSession(StdObject, frozen=True, kw_only=True):
    """The work of a sub-agent on one task."""

    sub_session_id: str
    parent_session_id: str
    agent: AgentIdentifier
    triggered_by_call_id: str
    task: AssignedTask
    started_at: str
    completed_at: str | None = None
    status: Status
    tool_calls: list[DocumentCall]
    output: Any = None
    """`DeveloperOutput`, `ReviewerOutput` or `GenericAgentOutput`: `output_model` tells which."""


class AgentMessage(StdObject, frozen=True, kw_only=True):
    """What one agent told another."""

    message_id: str
    timestamp: str
    sequence_number: int
    from_agent: AgentIdentifier
    to_agent: AgentIdentifier
    message_type: Annotated[str, Extended(MESSAGE_TYPES, *ADDED_MESSAGE_TYPES)]
    payload: Any
    """One of `PAYLOADS`, by the message's type."""
    correlation_id: str | None = None
    reply_to: str | None = None


# -- what sub-agents hand in -------------------------------------------------------------------------------------------


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


# -- what messages carry: the standard leaves it open, programs agreed on these ---------------------------------------


class TaskAssignment(StdObject, frozen=True, kw_only=True):
    """`task_assignment`."""

    task: dict[str, Any]
    """`task_id`, and what is to be done: `task_description` or `description`, `context`, `constraints` …"""
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


class ReviewRequest(StdObject, frozen=True, kw_only=True):
    """`review_request`."""

    review_id: str | None = None
    task_id: str
    scope: dict[str, Any] | None = None
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


# -- the summary of several agents -------------------------------------------------------------------------------------


class AgentSummary(StdObject, frozen=True, kw_only=True):
    """What one agent did, in numbers."""

    agent_id: str
    agent_type: str
    role_category: RoleCategory | None = None
    tool_calls_count: int
    duration_ms: float
    status: Literal["completed", "failed", "in_progress"]


class AgentsByRole(StdObject, frozen=True, kw_only=True):
    """`summary.agents` as the standard has it; programs write a list of `AgentSummary`."""

    architect: AgentSummary
    developers: list[AgentSummary]
    reviewer: AgentSummary | None = None


class TaskCounts(StdObject, frozen=True, kw_only=True):
    """How many tasks there were, reviews left out."""

    total: int
    completed: int
    failed: int


class AgentCounts(StdObject, frozen=True, kw_only=True):
    """How many agents there were of each role."""

    orchestrators: int
    workers: int
    validators: int
    specialists: int
    total: int


class MultiAgentSessionSummary(SessionSummary, frozen=True, kw_only=True):
    """`summary` of a multi-agent session."""

    agents: Any
    """`AgentsByRole`, or a list of `AgentSummary`."""
    agent_counts: AgentCounts | None = None
    tasks: TaskCounts
    review_iterations: int
    final_verdict: Annotated[str | None, Extended(("approved", "rejected"), "changes_requested")] = None


class MultiAgentSession(AgentSession, frozen=True, kw_only=True):
    """A document of STD-008."""

    collaboration: Collaboration
    sub_sessions: list[SubAgentSession]
    messages: list[AgentMessage]
    summary: MultiAgentSessionSummary


# -- a look at a document, whatever state it is in ---------------------------------------------------------------------

M = TypeVar("M", bound=StdObject)


def view(model: type[M], value: object) -> M | None:
    """The object as that type, where it is one; None where something in it is not as it must be."""
    try:
        return msgspec.convert(value, model)
    except (ValueError, RecursionError, OverflowError):  # a key may be a lone surrogate, which is no ValidationError
        return None
