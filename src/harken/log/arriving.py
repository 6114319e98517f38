"""Entries that arrive late: numbers that are below those of entries which stand already. The log only grows, so an edit
behind such an entry puts it at its place, for everybody who reads the log."""

from __future__ import annotations

from harken.events import Event, TranscriptEdit
from harken.events.edits import EditedEntries, is_entry
from harken.formats.session_log import ENTRY, ROLES, as_id, continues, events_of
from harken.formats.session_log.lines import LogLine


class NumberedTranscripts:
    """What stands in the transcript of each agent: the ids of records, and the number of the first entry of each."""

    def __init__(self) -> None:
        self._agents: dict[str, EditedEntries[tuple[LogLine, int]]] = {}

    def take(self, line: LogLine, number: int | None) -> None:
        """The next line of the log, and the number of its first entry; None where it is none that was not there."""
        kind = line.get("event_type")
        if kind not in (ENTRY, TranscriptEdit.kind):
            return
        transcript = self._agents.setdefault(as_id(line.get("agent_id")) or "", EditedEntries())
        last = transcript.last
        if number is None:
            number = -1 if last is None else last[1]
        entry = ({"message_id": line.get("message_id")}, number)
        if kind == ENTRY:
            role = line.get("role")
            if isinstance(role, str) and role in ROLES and (last is None or not continues(last[0], line)):
                transcript.add(entry)
            return
        for event in events_of(line):
            if isinstance(event, TranscriptEdit):
                transcript.edit(event, entry)

    def edits_behind(self, event: Event, agent_id: str, number: int) -> list[Event]:
        """What puts an entry that is about to be logged before those with higher numbers; mostly nothing."""
        transcript = self._agents.get(agent_id)
        if transcript is None or not is_entry(event):
            return []
        at = len(transcript)
        while at and transcript.given[transcript.numbers[at - 1]][1] > number:
            at -= 1
        return [TranscriptEdit(agent_id=agent_id, action="place", n=at)] if at < len(transcript) else []
