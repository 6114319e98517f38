"""A program that uses the Claude Agent SDK and is captured: run inside the laboratory, it prints what was captured.

    python -m support.claude_host LOG '{"prompts": [...], "options": {...}, "capture": {...}, "how": "query"}'

`how` is `query`, `client` (one prompt after the other), `break` (out of the loop when the result is there, and the
session is closed), `cancel` and `raise` (the host gives up) or `hang` (the same, and then it waits to be killed).
Nothing is captured where `capture` is null.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from contextlib import aclosing
from dataclasses import asdict
from typing import Any

from claude_agent_sdk import (
    AgentDefinition,
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    ResultMessage,
    query,
)

import harken.capture
from harken.capture import Session, TranscriptEntry


async def run(options: ClaudeAgentOptions, how: str, prompts: list[str]) -> list[str]:
    heard: list[str] = []
    if how == "client":
        async with ClaudeSDKClient(options) as client:
            for prompt in prompts:
                await client.query(prompt)
                heard += [type(message).__name__ async for message in client.receive_response()]
    elif how == "raise":
        async with aclosing(query(prompt=prompts[0], options=options)) as messages:
            async for message in messages:
                if isinstance(message, AssistantMessage):
                    raise RuntimeError("the host gives up")
    elif how == "break":
        async for message in query(prompt=prompts[0], options=options):
            if isinstance(message, ResultMessage):
                break
    else:
        for prompt in prompts:
            heard += [type(message).__name__ async for message in query(prompt=prompt, options=options)]
    return heard


async def main(session: Session, order: dict[str, Any]) -> dict[str, Any]:
    how, own = order.get("how", "query"), []

    async def host_hook(said: Any, tool_use_id: str | None, context: Any) -> Any:
        own.append(said["hook_event_name"])
        if how == "hang":
            print("HANGING", flush=True)
            await asyncio.sleep(600)
        if how == "cancel":
            task.cancel()
        return {}

    hooks: Any = {"PreToolUse": [HookMatcher(hooks=[host_hook])]}
    said = order.get("options", {})
    agents = {name: AgentDefinition(**agent) for name, agent in said.pop("agents", {}).items()}
    given = ClaudeAgentOptions(hooks=hooks, agents=agents, **said)
    capture = order.get("capture", {})
    options = given if capture is None else harken.capture.claude_agent(given, session, **capture)
    task = asyncio.ensure_future(run(options, how, order["prompts"]))
    try:
        heard = await task
    except (asyncio.CancelledError, RuntimeError):
        heard = [how]
    if how == "break":
        session.close()
    return {"heard": heard, "own": own, "entries": entries(session) if how != "raise" else []}


def entries(session: Session) -> list[dict[str, Any]]:
    return [asdict(entry) for entry in session[TranscriptEntry].all()]


if __name__ == "__main__":
    with Session(sys.argv[1]) as session:
        found = asyncio.run(main(session, json.loads(sys.argv[2])))
        for thread in threading.enumerate():
            if thread.name.startswith("harken"):
                thread.join(10)
        threads = [thread.name for thread in threading.enumerate() if thread.name.startswith("harken")]
    print(json.dumps({**found, "threads": threads}, default=str), flush=True)
