"""One function per operation: a typed request in, a typed answer out.

The command line is a shell around these functions, and so will be HTTP and MCP. A function takes the `Repo` and a
request; it gives one answer, or an iterator of them where there may be many. Requests and answers are frozen values
that can cross a wire: a REF is text, a time is RFC 3339 text (in requests also an integer of microseconds), and a field
of bytes called `body` is what a shell carries beside the JSON (a file, the body of an HTTP message). Nothing here
prints, or reads arguments or the environment. Errors are those of `harken.errors`, each with a code.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

OPERATIONS: dict[str, str] = {
    "agents": "sessions",
    "annotate": "commits",
    "backup": "upkeep",
    "changes": "feed",
    "chat": "chat",
    "checkpoint": "writing",
    "commit_rows": "commit_rows",
    "compact": "writing",
    "compaction": "compaction",
    "current_context": "running",
    "delete_key": "principals",
    "delete_name": "names",
    "describe": "commits",
    "diff": "commits",
    "doctor": "upkeep",
    "document": "documents",
    "documents": "documents",
    "end_session": "principals",
    "event_bytes": "verbatim",
    "events": "views",
    "export": "export",
    "export_parquet": "parquet",
    "fidelity": "fidelity",
    "flow_knows": "flow_page",
    "flow_page": "flow_page",
    "flow_place": "flow_page",
    "forget": "forgetting",
    "fork": "names",
    "formats": "catalog",
    "fsck": "upkeep",
    "gc": "upkeep",
    "get_key": "principals",
    "graph": "commits",
    "history": "commits",
    "home": "home",
    "import_sessions": "runtimes",
    "index": "index",
    "keys": "principals",
    "lanes": "lanes",
    "latest_session": "principals",
    "log": "commits",
    "materialize": "writing",
    "moves": "names",
    "names": "names",
    "pin": "names",
    "principal_metrics": "principals",
    "put_key": "principals",
    "raw_records": "raw_records",
    "report": "report",
    "resolve": "commits",
    "restore": "forgetting",
    "resume": "runtimes",
    "run": "running",
    "running_sessions": "principals",
    "runtimes": "runtimes",
    "search": "search",
    "search_values": "search_values",
    "secrets": "forgetting",
    "session_page": "session_page",
    "session_rows": "verbatim",
    "sessions": "sessions",
    "sessions_page": "sessions_page",
    "set_name": "names",
    "show": "commits",
    "snapshot": "writing",
    "sql": "sql",
    "sql_schema": "sql",
    "start_session": "principals",
    "stats": "stats",
    "stats_page": "stats_page",
    "std_export": "std_export",
    "std_repair": "std_repair",
    "std_show": "std_show",
    "std_validate": "std_validate",
    "summarize": "summarize",
    "trace": "views",
    "transcript": "transcript",
    "transcript_find": "transcript",
    "transcript_outline": "transcript",
    "transcript_place": "transcript",
    "transcript_row": "transcript",
    "undo": "names",
    "update_metadata": "metadata",
    "usage": "usage",
    "view_compare": "views",
    "view_dialog": "views",
    "view_flow": "views",
    "view_heard": "views",
    "view_interventions": "views",
    "view_knows": "views",
    "view_perspective": "views",
    "view_problems": "views",
    "view_sequence": "views",
    "view_timeline": "views",
    "view_tree": "views",
    "view_who_knows": "views",
    "watch": "runtimes",
}
"""Every operation and the module it is in; modules are loaded when they are needed."""


def operation(name: str) -> Callable[..., Any]:
    """The function of that operation."""
    found: Callable[..., Any] = getattr(importlib.import_module(f".{OPERATIONS[name]}", __name__), name)
    return found
