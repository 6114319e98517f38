"""What needs the store itself: it is refused, with what to do instead."""

from __future__ import annotations

from harken.errors import BadRequest

_THERE = "run it where the store lies, with `harken.open(PATH)` or `harken --store PATH`"

NEEDS_STORE: dict[str, str] = {
    "agent": f"it begins in a session's log that is kept as it is written; {_THERE}",
    "backup": f"the copy is a file beside the store; {_THERE}",
    "chat": f"it writes a session's log and keeps it open; {_THERE}",
    "current_context": "it asks a run on this machine; `harken current-context` needs no store",
    "doctor": f"it looks at an installation; {_THERE}",
    "export_parquet": f"the tables are written from the index's file; {_THERE}",
    "finish_forgetting": f"it rewrites the store's file; {_THERE}",
    "lift_forgetting": "`restore` of the service lets sessions in again, by their paths",
    "restored_along": "`restore` of the service says which others are let in with those at some paths",
    "run": f"it starts a program and stays with it; {_THERE}",
    "session": f"a session's log is kept as it is written; {_THERE}",
    "store_spools": f"runs leave spools beside the store; {_THERE}",
    "track": "keep events with `checkpoint` as they come, or track them where the store lies",
    "unfinished_forgetting": f"what is being forgotten is in the store's file; {_THERE}",
    "waiting_spools": f"runs leave spools beside the store; {_THERE}",
    "watch": "`harken serve` watches by itself, and `since` and `wait` tell what came",
}
"""Operations and methods of `Repo` that no service can answer, and what to do instead."""


def needs_store(what: str, why: str) -> BadRequest:
    """What cannot be asked over a wire."""
    return BadRequest(f"`{what}` needs the store itself, not a service", hint=why)
