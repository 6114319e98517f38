"""What still stands in a transcript: entries may be cut off or folded into a summary later on.

The log keeps them all, and the views show them; an agent that goes on from here has only what stands.
"""

from __future__ import annotations

from functools import partial
from heapq import merge

from harken.log import edit_transcript

from .index import EDITED, Index


def standing(index: Index, agent_id: str, until: int) -> set[int]:
    """The entries of an agent's transcript that stood after the first `until` events."""
    entries: list[list[int]] = []
    for at in merge(index.transcripts.get(agent_id, ()), index.edits.get(agent_id, ())):
        if at >= until:
            break
        event = index.events[at]
        if index.kinds[at] == EDITED:
            edit_transcript(entries, event, partial(list, (at,)))
        elif entries and event.get("index") and index.ids[entries[-1][0]] == index.ids[at]:
            entries[-1].append(at)  # one message on several lines is one entry
        else:
            entries.append([at])
    return {at for entry in entries for at in entry}
