"""The fields of the standards, written down a second time: the types, from which all checks are derived, say the same.

`name?` may be missing, `name!` is advised. Behind it stands what it holds: values are closed with `|` between them,
open ones end in `|…`, and those behind `+` were added by programs.
"""

from __future__ import annotations

import pytest
from msgspec import inspect

from harken.formats.std import models, payload_models
from harken.formats.std.models import StdObject

FIELDS: dict[str, str] = {
    "CheckResult": "passed flag; output? text; error? text",
    "DeveloperOutput":
        "task_id text; status completed|partial|failed; changes FileChanges; summary text; "
        "implementation_notes? text; self_review? SelfReview; blockers? [text]; suggestions? [anything]",
    "FileChange": "path text; lines_added? whole; lines_removed? whole; description? text; change_type? text",
    "FileChanges": "files_created [anything]; files_modified [anything]; files_deleted [anything]",
    "FindingLocation": "file text; line_start? whole; line_end? whole; code_snippet? text",
    "GenericAgentOutput": "output_type generic; task_id text; status text; summary text; data? anything",
    "RequiredChange":
        "change_id text; priority must_fix|should_fix|consider; related_findings [text]; description text",
    "ReviewerOutput":
        "review_id text; task_id text; verdict approved|changes_requested|rejected; "
        "findings [ReviewFinding]; verification Verification; summary text; "
        "required_changes? [RequiredChange]; commendations? [anything]",
    "ReviewFinding":
        "finding_id text; severity critical|major|minor|suggestion; "
        "category bug|security|performance|style|logic+test; file? text; line? whole; "
        "location? FindingLocation; description text; suggestion? text; rationale? text; "
        "fixed_in_iteration? whole",
    "SelfReview": "tests_run flag; tests_passed flag; type_check_passed flag; known_issues? [anything]",
    "Verification":
        "tests_passed? flag; type_check_passed? flag; custom_checks? {flag}; tests? CheckResult; "
        "type_check? CheckResult; lint? CheckResult; custom? {CheckResult}",
    "ModelOfAgent": "model_id text; capability_snapshot? text",
    "CallInput": "params {anything}; description? text; raw_command? text",
    "CallOutput": "status success|failed; result? {anything}; error? text; truncated? flag",
    "ContextContribution":
        "type file_content|search_result|command_output|knowledge|…; summary text; full_content? text",
    "ToolCount": "tool_name text; count whole",
    "SubagentInfo":
        "subagent_type text; tool_uses whole; tokens_used? whole; tools_breakdown? [ToolCount]; "
        "sub_session_id? text",
    "DocumentCall":
        "call_id text; tool_name text; "
        "tool_category perception|action|interaction|planning|task_management; started_at text; "
        "ended_at text; duration_ms number; input CallInput; output CallOutput; "
        "context_contribution? ContextContribution; subagent_info? SubagentInfo",
    "CallRange": "start_call_id text; end_call_id text",
    "ContextReference":
        "type claude_md|rule|standard|skill|spec|file|user_message|tool_result|capability|…; source text; "
        "relevance high|medium|low; summary? text; quoted_content? text; "
        "usage_mode? read|modified|read_then_modified",
    "Decision":
        "decision_id text; type tool_selection|approach|error_handling|skip|retry|…; description text; "
        "reasoning? text; alternatives_considered? [anything]",
    "PhaseAnnotation":
        "annotation_id text; phase_type understand|explore|plan|execute|verify|mixed|unclassified; "
        "tool_call_range CallRange; annotated_by agent|human|auto; annotated_at text; "
        "confidence high|medium|low; description? text; decisions? [Decision]; "
        "context_used? [ContextReference]",
    "LoopInfo": "attempt_number whole; max_attempts whole; is_retry flag; previous_attempt_id? text",
    "OldPhase":
        "phase_id text; phase_type understand|explore|plan|execute|verify|mixed|unclassified; status text; "
        "started_at? text; ended_at? text; duration_ms? number; input anything; output anything; "
        "tool_call_ids? [text]; context_used [anything]; decisions [anything]; loop_info? LoopInfo; "
        "exploration_record? {anything}",
    "SessionSummary":
        "total_duration_ms number; tool_calls_count whole; files_created [text]; files_modified [text]; "
        "errors_encountered? whole",
    "AgentSession":
        "session_id text; task_title text; task_description? text; user_prompt! text; created_at text; "
        "completed_at! text; updated_at? text; status success|failed|in_progress; agent! ModelOfAgent; "
        "tool_calls [DocumentCall]; phase_annotations? [PhaseAnnotation]; phases? [anything]; "
        "summary SessionSummary",
    "AgentIdentifier":
        "agent_id text; "
        "agent_type architect|developer|reviewer|challenger|product_owner|design_authority|…; "
        "instance_id? text; role_category? orchestrator|worker|validator|specialist",
    "Collaboration":
        "mode multi_agent|single; pattern master_worker|peer_to_peer|pipeline; "
        "orchestrator AgentIdentifier; participants [AgentIdentifier]",
    "AssignedTask": "task_id text; description text; priority high|medium|low",
    "SubAgentSession":
        "sub_session_id text; parent_session_id text; agent AgentIdentifier; triggered_by_call_id text; "
        "task AssignedTask; started_at text; completed_at? text; status success|failed|in_progress; "
        "tool_calls [DocumentCall]; output? anything",
    "AgentMessage":
        "message_id text; timestamp text; sequence_number whole; from_agent AgentIdentifier; "
        "to_agent AgentIdentifier; "
        "message_type task_assignment|task_progress|task_completion|review_request|review_result|feedback|abort|"
        "acknowledgment+status_query+status_response+status_update; "
        "payload anything; correlation_id? text; reply_to? text",
    "AgentSummary":
        "agent_id text; agent_type text; role_category? orchestrator|worker|validator|specialist; "
        "tool_calls_count whole; duration_ms number; status completed|failed|in_progress",
    "AgentsByRole": "architect AgentSummary; developers [AgentSummary]; reviewer? AgentSummary",
    "TaskCounts": "total whole; completed whole; failed whole",
    "AgentCounts": "orchestrators whole; workers whole; validators whole; specialists whole; total whole",
    "MultiAgentSessionSummary":
        "total_duration_ms number; tool_calls_count whole; files_created [text]; files_modified [text]; "
        "errors_encountered? whole; agents anything; agent_counts? AgentCounts; tasks TaskCounts; "
        "review_iterations whole; final_verdict? approved|rejected+changes_requested",
    "MultiAgentSession":
        "session_id text; task_title text; task_description? text; user_prompt! text; created_at text; "
        "completed_at! text; updated_at? text; status success|failed|in_progress; agent! ModelOfAgent; "
        "tool_calls [DocumentCall]; phase_annotations? [PhaseAnnotation]; phases? [anything]; "
        "summary MultiAgentSessionSummary; collaboration Collaboration; sub_sessions [SubAgentSession]; "
        "messages [AgentMessage]",
    "ReferenceFile": "path text; reason? text; sections? [text]",
    "TaskContext": "specs? [ReferenceFile]; reference_files? [ReferenceFile]; previous_attempts? [anything]",
    "TaskConstraints": "scope? [text]; testing_required? flag; must_not_break? [text]; style_guide? text",
    "DeveloperInput":
        "task_id text; task_description? text; description? text; context? TaskContext; "
        "constraints? TaskConstraints; acceptance_criteria? [text]; dependencies? [text]",
    "TaskAssignment":
        "task DeveloperInput; priority? high|medium|low; deadline? text; max_iterations? whole; "
        "dependencies? [text]",
    "TaskProgress":
        "task_id text; progress_percent? number; current_step? text; files_modified_so_far? [text]; "
        "estimated_remaining? anything; blockers? [anything]",
    "TaskCompletion": "task_id text; status? text",
    "ReviewScope": "files? [text]; focus_areas? [text]; ignore_patterns? [text]",
    "ReviewRequest":
        "review_id? text; task_id text; scope? ReviewScope; criteria? anything; context? anything; "
        "files? [text]",
    "ReviewResult": "review_id? text; task_id text; verdict approved|changes_requested|rejected",
    "Feedback":
        "feedback_type? clarification|correction|guidance|question; subject? text; content? text; "
        "action_required? flag; related_task_id? text",
    "Abort": "scope? task|session; target_id? text; reason? text; cleanup_required? flag",
    "Acknowledgment": "task_id? text",
}  # fmt: skip
NAMES: dict[type[inspect.Type], str] = {
    inspect.StrType: "text",
    inspect.IntType: "whole",
    inspect.FloatType: "number",
    inspect.BoolType: "flag",
    inspect.AnyType: "anything",
}


def every_type() -> dict[str, type[StdObject]]:
    found = [*vars(models).values(), *vars(payload_models).values()]
    types = [one for one in found if isinstance(one, type) and issubclass(one, StdObject) and one is not StdObject]
    return {one.__name__: one for one in types}


def held(info: inspect.Type) -> str:
    """What a field holds, in the words of `FIELDS`."""
    match info:
        case inspect.Metadata():
            extra = info.extra or {}
            if "open" in extra:
                return "|".join((*extra["open"], "…"))
            if "known" in extra:
                return "|".join(extra["known"]) + "".join(f"+{one}" for one in extra["added"])
            return held(info.type)
        case inspect.UnionType():
            (other,) = (one for one in info.types if not isinstance(one, inspect.NoneType))
            return held(other)
        case inspect.LiteralType():
            return "|".join(sorted(map(str, info.values)))
        case inspect.ListType():
            return f"[{held(info.item_type)}]"
        case inspect.DictType():
            return "{" + held(info.value_type) + "}"
        case inspect.StructType():
            return info.cls.__name__
        case _:
            return NAMES[type(info)]


def described(field: inspect.Field) -> str:
    is_advised = isinstance(field.type, inspect.Metadata) and (field.type.extra or {}).get("advised")
    mark = "!" if is_advised else "" if field.required else "?"
    return f"{field.encode_name}{mark} {held(field.type)}"


def sorted_values(line: str) -> str:
    """A field of `FIELDS`, with closed values in the order in which they are compared."""
    name, _, holds = line.strip().partition(" ")
    is_closed = "|" in holds and "…" not in holds and "+" not in holds
    return f"{name} {'|'.join(sorted(holds.split('|'))) if is_closed else holds}"


def test_every_type_is_written_down() -> None:
    assert FIELDS.keys() == every_type().keys()


@pytest.mark.parametrize("name", FIELDS)
def test_a_type_has_the_fields_of_the_standard(name: str) -> None:
    info = inspect.type_info(every_type()[name])
    assert isinstance(info, inspect.StructType)
    assert sorted(map(sorted_values, FIELDS[name].split(";"))) == sorted(map(described, info.fields))
