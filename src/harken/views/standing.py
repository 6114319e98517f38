"""What still stands in a transcript: entries may be cut off or folded into a summary later on.

The log keeps them all, and the views show them; an agent that goes on from here has only what stands.
"""

from __future__ import annotations

from heapq import merge

from harken.events import TranscriptEdit
from harken.events.edits import edit
from harken.formats.session_log import ROLES, events_of
from harken.log.transcripts import continues

from .index import EDITED, Index


def standing(index: Index, agent_id: str, until: int) -> set[int]:
    """The entries of an agent's transcript that stood after the first `until` events."""
    entries: list[list[int]] = []
    for at in merge(index.transcripts.get(agent_id, ()), index.edits.get(agent_id, ())):
        if at >= until:
            break
        event = index.events[at]
        if index.kinds[at] == EDITED:
            for change in events_of(event):
                if isinstance(change, TranscriptEdit):
                    edit(entries, change, [at])
        elif event.get("role") not in ROLES:
            continue
        elif entries and continues(index.events[entries[-1][0]], event):
            entries[-1].append(at)  # one message on several lines is one entry
        else:
            entries.append([at])
    return {at for entry in entries for at in entry}
