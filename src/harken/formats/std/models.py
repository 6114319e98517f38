"""What a session document may hold, as types: the single-agent session of STD-001, the multi-agent one of STD-008, and
what real documents add to them.

These types are the one place that says which fields there are, which of them must be there and what they may be:
the checks of `rules` are derived from them, and `view` reads a document through them. How a field says more than its
type is in `model_base`; what sub-agents hand in and what messages carry are in files of their own.

A document itself is kept as the JSON object it is (`document.Document`), so that nothing unknown is lost.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

import msgspec

from .model_base import ADDED_MESSAGE_TYPES as ADDED_MESSAGE_TYPES
from .model_base import AGENT_TYPES as AGENT_TYPES
from .model_base import CATEGORIES as CATEGORIES
from .model_base import (
    CONTEXT_TYPES,
    CONTRIBUTIONS,
    DECISION_TYPES,
    Advised,
    Extended,
    Open,
    RoleCategory,
)
from .model_base import LEVELS as LEVELS
from .model_base import MESSAGE_TYPES as MESSAGE_TYPES
from .model_base import MODES as MODES
from .model_base import PATTERNS as PATTERNS
from .model_base import PHASE_TYPES as PHASE_TYPES
from .model_base import STATUSES as STATUSES
from .model_base import TASK as TASK
from .model_base import VERDICTS as VERDICTS
from .model_base import Level as Level
from .model_base import Status as Status
from .model_base import StdObject as StdObject
from .output_models import CheckResult as CheckResult
from .output_models import DeveloperOutput as DeveloperOutput
from .output_models import FileChange as FileChange
from .output_models import FileChanges as FileChanges
from .output_models import FindingLocation as FindingLocation
from .output_models import GenericAgentOutput as GenericAgentOutput
from .output_models import RequiredChange as RequiredChange
from .output_models import ReviewerOutput as ReviewerOutput
from .output_models import ReviewFinding as ReviewFinding
from .output_models import SelfReview as SelfReview
from .output_models import SubAgentOutput as SubAgentOutput
from .output_models import Verification as Verification
from .output_models import output_model as output_model
from .payload_models import PAYLOADS as PAYLOADS

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
    tool_uses: int
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
    relevance: Level
    summary: str | None = None
    quoted_content: str | None = None
    usage_mode: Literal["read", "modified", "read_then_modified"] | None = None


class Decision(StdObject, frozen=True, kw_only=True):
    """A choice that the agent made."""

    decision_id: str
    type: Annotated[str, Open(*DECISION_TYPES)]
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


class LoopInfo(StdObject, frozen=True, kw_only=True):
    """Which attempt a phase of v2 was."""

    attempt_number: int
    max_attempts: int
    is_retry: bool
    previous_attempt_id: str | None = None


class OldPhase(StdObject, frozen=True, kw_only=True):
    """An entry of `phases`, of generation v2."""

    phase_id: str
    phase_type: Literal["understand", "explore", "plan", "execute", "verify", "mixed", "unclassified"]
    status: str
    started_at: str | None = None
    ended_at: str | None = None
    duration_ms: float | None = None
    input: Any
    output: Any
    tool_call_ids: list[str] | None = None
    context_used: list[Any]
    decisions: list[Any]
    loop_info: LoopInfo | None = None
    exploration_record: dict[str, Any] | None = None


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
