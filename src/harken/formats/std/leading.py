"""By which words an agent of a document says that it leads the others."""

from __future__ import annotations

import json

from .spellings import plain_key, plain_word

_WORDS = frozenset({
    "orchestrator", "orchestrate", "lead", "leader", "team_lead", "team_leader", "lead_agent", "coordinator",
    "coordinate", "manager", "supervisor", "master", "main_agent", "main", "conductor",
    "编排者", "编排器", "协调者", "协调员", "主导", "主导者", "负责人", "组长", "队长", "主控", "主管", "总控", "指挥",
    "领导", "统筹", "主代理", "主智能体",
})  # fmt: skip
LEADER_NAMES = tuple(
    f"{word}{end}"
    for word in ("orchestrator", "lead", "leader", "team_lead", "coordinator", "main_agent", "supervisor", "manager")
    for end in ("", "_id", "_agent", "_agent_id")
)
"""Names under which a document says who leads; the first is the standard's."""
_ROLES = ("role_category", "role", "agent_role", "agent_type", "type", "position")
_FLAGS = frozenset(f"is_{word}" for word in ("orchestrator", "lead", "leader", "coordinator", "main", "manager"))


def says_it_leads(agent: object) -> str:
    """The field by which an agent says so, with what it says; empty where it does not."""
    for key, said in agent.items() if isinstance(agent, dict) else ():
        name = plain_key(key)
        if (name in _FLAGS and said is True) or (name in _ROLES and plain_word(said) in _WORDS):
            return f"`{key}` is {json.dumps(said, ensure_ascii=False)}"
    return ""
