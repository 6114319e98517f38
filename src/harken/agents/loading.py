"""`load_session`: the agents of a session log, brought back with their transcripts, their tree and their hooks."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from typing import Any

from harken.errors import BadRequest
from harken.log import Session

from .agent import Agent
from .asking import Listener
from .hooks import Hook, HookAgent, distinct
from .limits import SESSION_LIMITS, RunLimits
from .models import Model, Retries
from .options import ModelOptions
from .pool import AgentPool
from .tools import Given, Tool, Toolset, by_name

DEEPEST = 100
"""What hangs deeper in the tree of a log than this is left in the registry; no agent of ours gets so deep."""


class MissingHook(UserWarning):
    """A function hook that the session had, and that was not passed again."""


def load_session(
    session_file: str | os.PathLike[str] | Session,
    *,
    language_model: str | Model | None = None,
    system_prompt: str | None = None,
    name: str | None = None,
    tools: Iterable[Given] = (),
    hooks: Iterable[Hook | HookAgent] = (),
    retries: Retries | None = None,
    window: int | None = None,
    parallel: int | None = None,
    stream: Listener | None = None,
    options: ModelOptions | None = None,
    limits: RunLimits | None = None,
    **session_options: Any,
) -> tuple[Agent, Session]:
    """The root agent with the tree below it, and its session; a file that does not exist is made.

    Agents and hook agents come back from the log. Functions live in the program: pass the tools and the function
    hooks again (a hook is known by its name; one that the log does not know is attached to the root). A model that
    is given stands for every agent; name and system prompt are for a root that is made. `window` is how many tokens an
    agent may be shown before it makes room, where its model does not say or says too much; `parallel` how many calls of
    one message work at a time; `stream(agent, piece)` is told what models say while they say it. `options` say how
    the root's model is asked, and those of agents below that have none of their own; `limits` how much the session may
    use. What else is given is handed to `Session`; a session that is open already (one that a repo keeps, say) may
    stand in place of the file.
    """
    given = distinct(hooks)
    if window is not None and (type(window) is not int or window <= 0):
        raise BadRequest(f"a window is a number of tokens, and {window!r:.80} is none", hint="such as window=200_000")
    if parallel is not None and (type(parallel) is not int or parallel <= 0):
        raise BadRequest(f"at least one call works at a time, not {parallel!r:.80}", hint="such as parallel=8")
    session = session_file if isinstance(session_file, Session) else Session(session_file, **session_options)
    try:
        pool = AgentPool.of(session)
        pool.retries = retries or pool.retries
        pool.window = window or pool.window
        pool.parallel = parallel or pool.parallel
        pool.stream = stream or pool.stream
        pool.language_model = None if language_model is None else pool.take_model(language_model)
        if language_model is not None:
            pool.chosen.clear()
            pool.made.clear()
        fresh = _fresh(session, given)
        pool.take_hooks(hook for hook in given if isinstance(hook, Hook))
        root = _root(pool, system_prompt, name, by_name(tools))
        if options is not None:
            root.options = options
        if limits is not None:
            pool.settings.change(root, SESSION_LIMITS, limits)
        for hook in fresh:
            root.add_hook(hook)
        if pool.missing:
            names = ", ".join(repr(name) for name in pool.missing)
            problem = MissingHook(f"the session had function hooks that were not passed again: {names}")
            warnings.warn(problem, stacklevel=2)
    except BaseException:
        if session is not session_file:
            session.close()
        raise
    return root, session


def _fresh(session: Session, given: list[Hook | HookAgent]) -> list[Hook | HookAgent]:
    """The hooks that the log does not know; one that it knows as something else would be lost, and is refused."""
    fresh: list[Hook | HookAgent] = []
    known = {info.name: info for info in session.agents.values() if info.role == "hook" and not info.terminated}
    for hook in given:
        if (info := known.get(hook.name)) is None:
            fresh.append(hook)
            continue
        was, now = info.attributes.get("kind") == "function", isinstance(hook, Hook)
        if was != now:
            raise BadRequest(
                f"the session has a hook {hook.name!r} already, which is {'a function' if was else 'an agent'}",
                hint="give the new hook another name",
            )
    return fresh


def _root(pool: AgentPool, system_prompt: str | None, name: str | None, tools: dict[str, Tool | Toolset]) -> Agent:
    session = pool.session
    root_id = session.root
    if root_id is None or session.agents[root_id].role == "hook":
        made = Agent(session, system_prompt, name=name, language_model=pool.language_model, tools=tools.values())
        made.create()
        return made
    pool.give_tools(root_id, tools)
    with pool.reviving.bringing_back_many(agent_id for agent_id, info in session.agents.items() if not info.terminated):
        root = pool.get(root_id)
        level = [root]
        for _ in range(DEEPEST):
            level = [child for agent in level for child in agent.subagents.values()]
        for agent in level:
            agent.subagents.hidden = True
    if system_prompt is not None and not root.transcript:
        root.instruct(system_prompt)
    return root
