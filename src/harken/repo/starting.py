"""`repo.agent`: a native agent that begins with a conversation of the store, in a session that is open.

What is carried over stands in the log as the agent's own transcript. The line that makes the agent says which commit it
starts from and how many entries follow, and each of these which session it is from: it is counted there, and nowhere
else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harken.context import Ref, get_commit
from harken.errors import BadRequest, HarkenError
from harken.formats.session_log import ENTRY
from harken.store import Store

if TYPE_CHECKING:
    from harken.agents import Agent
    from harken.log import Session

STARTS_FROM = "starts_from"
"""In the `attributes` of the line that makes an agent: what it starts from."""


def write_rest(store: Store, session: Session) -> None:
    """Write the rest of what agents begin with, where a process died before it had written all of it. Whoever has other
    entries than this version would write stays as it is, and so does one whose commit the store does not have."""
    from harken.agents.opening import opening

    from .beginning import transcript

    for info in list(session.agents.values()):
        told = info.attributes.get(STARTS_FROM)
        if info.entries >= info.begins_with or info.terminated or info.edits or not isinstance(told, dict):
            continue
        try:
            whole = opening(session, None, transcript(store, get_commit(store, str(told.get("commit")))))
        except HarkenError:
            continue  # it is told where somebody speaks to the agent
        there = [line for line in session.records_of([info.agent_id]) if line.get("event_type") == ENTRY]
        pairs = zip(whole, there, strict=False)
        if len(whole) == info.begins_with and all(entry.items() <= line.items() for entry, line in pairs):
            with session.batch():
                for entry in whole[len(there) :]:
                    session.log_transcript_entry(info.agent_id, entry)


class Starting:
    """Agents that start from what is in the store."""

    store: Store

    def agent(self, ref: Ref, *, session: Session, **settings: Any) -> Agent:
        """A native agent in a session that is open, which begins with the conversation at a commit of any runtime.

        `settings` are those of `Agent`: `name`, `language_model`, `tools`, `hooks`, `options`, and `parent`, which is
        the session's root where it has one."""
        from harken.agents import Agent, AgentPool

        from .beginning import transcript

        if given := {"system_prompt", "init_prompt", "agent_id", "role"} & settings.keys():
            raise BadRequest(f"`agent` does not take {min(given)!r}", hint="its transcript is the conversation")
        AgentPool.of(session)  # says what is wrong with what is no session
        source = get_commit(self.store, ref)
        above = settings.pop("parent", None) or session.root
        agent = Agent(session, None, transcript(self.store, source), parent=above, **settings)
        with session.batch():  # whole or not at all
            agent.create(attributes={STARTS_FROM: {"commit": source.id, "session": source.session_id}})
        return agent
