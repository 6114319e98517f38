"""A program that uses the Claude Agent SDK and is captured: run inside the laboratory, it prints what was captured.

    python -m support.claude_host LOG '{"prompts": [...], "options": {...}, "capture": {...}, "how": "query"}'

`how` is `query`, `client` (one prompt after the other), `cancel` (the host gives up when a tool is used) or `hang`
(the same, and then it waits to be killed).
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from dataclasses import asdict
from typing import Any

from claude_agent_sdk import AgentDefinition, ClaudeAgentOptions, ClaudeSDKClient, HookMatcher, query

import harken.capture
from harken.capture import Session, TranscriptEntry


async def run(options: ClaudeAgentOptions, how: str, prompts: list[str]) -> list[str]:
    heard: list[str] = []
    if how == "client":
        async with ClaudeSDKClient(options) as client:
            for prompt in prompts:
                await client.query(prompt)
                heard += [type(message).__name__ async for message in client.receive_response()]
    else:
        for prompt in prompts:
            heard += [type(message).__name__ async for message in query(prompt=prompt, options=options)]
    return heard


async def main(log: str, order: dict[str, Any]) -> None:
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
    with Session(log) as session:
        options = harken.capture.claude_agent(given, session, **order.get("capture", {}))
        task = asyncio.ensure_future(run(options, how, order["prompts"]))
        heard = []
        try:
            heard = await task
        except asyncio.CancelledError:
            heard = ["cancelled"]
        entries = [asdict(entry) for entry in session[TranscriptEntry].all()]
        threads = [thread.name for thread in threading.enumerate() if thread.name.startswith("harken")]
        tasks = len(asyncio.all_tasks()) - 1
    found = {"entries": entries, "heard": heard, "own": own, "threads": threads, "tasks": tasks}
    print(json.dumps(found, default=str), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], json.loads(sys.argv[2])))
