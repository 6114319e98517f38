"""The script behind `demo`, so that a first try needs no key, no network and no file."""

from __future__ import annotations

from typing import Any

DEMO: dict[str, Any] = {
    "about": "The built-in demonstration: canned lines, no language model.",
    "agents": {
        "root": {
            "rules": [
                {
                    "when": "[Jack]:",
                    "say": "They have met. Try `/dialog Jack Jill` and `/perspective Jill`.",
                },
                {
                    "when": "Created subagent: Jill",
                    "call": {
                        "tool": "discuss",
                        "arguments": {
                            "prompt": "You share a table in a crowded café. Introduce yourselves.",
                            "speakers": ["Jack", "Jill"],
                        },
                    },
                },
                {
                    "when": "Created subagent: Jack",
                    "call": {
                        "tool": "task",
                        "arguments": {"name": "Jill", "system_prompt": "You are Jill, who writes novels."},
                    },
                },
                {"when": "already has a subagent", "say": "Jack and Jill are here already. See `/agents`."},
                {
                    "when": "caf",
                    "call": {
                        "tool": "task",
                        "arguments": {"name": "Jack", "system_prompt": "You are Jack, who works in an office."},
                    },
                },
            ],
            "otherwise": (
                "I am a small script, not a language model, and know one trick: say `café`. "
                "For real answers start with `--model PROVIDER/NAME`."
            ),
        },
        "Jack": {"otherwise": "Hello, I'm Jack. Is this seat really free?"},
        "Jill": {"otherwise": "It is now. I'm Jill; mind the manuscript."},
        "*": {"otherwise": "I have nothing to say in this demonstration."},
    },
}
