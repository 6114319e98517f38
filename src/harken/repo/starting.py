"""`repo.agent`: a native agent that begins with a conversation of the store, in a session that is open.

What is carried over stands in the log as the agent's own transcript. The line that makes the agent says which commit it
starts from, and each entry which session it is from: it is counted there, and nowhere else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harken.context import Ref, get_commit
from harken.errors import BadRequest
from harken.store import Store

if TYPE_CHECKING:
    from harken.agents import Agent
    from harken.log import Session

STARTS_FROM = "starts_from"
"""In the `attributes` of the line that makes an agent: what it starts from."""


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
