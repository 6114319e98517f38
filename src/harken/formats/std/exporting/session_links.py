"""Where things stand in a session, and what names what: for whoever has to find out who told whom."""

from __future__ import annotations

import re
from collections.abc import Iterator

from harken.events import Event, PieceOfText, Prompt, Response, ToolCall, ToolResult
from harken.events.base import holds

from .spawning import SessionTree

Utterance = Response | PieceOfText
"""What an agent said, or had others hear."""
Delivery = Prompt | ToolResult
"""What may bring an agent the words of another."""

_TEAM = re.compile(
    r"<teammate-message\s[^>]{0,500}?teammate_id=\"([^\"]{1,200})\"[^>]{0,500}>(.*?)(?:</teammate-message>|\Z)", re.S
)


class SessionLinks:
    """One look at all events of a tree."""

    def __init__(self, tree: SessionTree) -> None:
        self.tree = tree
        self._places: dict[int, int] = {}
        self._records: dict[str, Event] = {}
        """What a record is known for: its words, else its first event."""
        self._calls: dict[str, list[ToolCall]] = {}
        self._results: dict[tuple[str, str], ToolResult] = {}
        self._names = _unique_names(tree)
        for place, event in enumerate(tree.events):
            self._look(place, event)

    def _look(self, place: int, event: Event) -> None:
        self._places[id(event)] = place
        name = event.message_id
        if name:
            known = self._records.get(name)
            if known is None or (not _has_words(known) and _has_words(event)):
                self._records[name] = event
        if isinstance(event, ToolCall):
            self._calls.setdefault(name, []).append(event)
        elif isinstance(event, ToolResult) and event.id:
            self._results.setdefault((event.agent_id, event.id), event)

    def place(self, event: Event) -> int:
        """Where an event stands in the order of the log."""
        return self._places[id(event)]

    def agent(self, event: Event) -> str:
        """Whose event it is."""
        return event.agent_id if event.agent_id in self.tree.agents else self.tree.main

    def is_hook(self, agent: str) -> bool:
        """Whether the agent watches others."""
        return agent in self.tree.agents and self.tree.agents[agent].is_hook

    def is_above(self, one: str, other: str) -> bool:
        """Whether an agent made another, or one that made it."""
        agents = self.tree.agents
        while other in agents:
            other = agents[other].parent
            if other == one:
                return True
        return False

    def teammate(self, event: Delivery) -> tuple[str, str] | None:
        """The agent that a message between the members of a team is from, and what it says."""
        found = _TEAM.match(event.content.lstrip()) if isinstance(event, Prompt) else None
        speaker = self._names.get(found[1]) if found is not None else None
        if found is None or speaker is None or speaker == self.agent(event):
            return None
        return speaker, found[2].strip()

    def label(self, said: Event) -> str:
        """What delivery puts before an agent's words, unless it says otherwise."""
        agent = self.tree.agents.get(self.agent(said))
        created = self.tree.main_created
        return f"[{agent.name if agent else (created.name if created else '') or 'root'}]: "

    def without_label(self, event: Delivery) -> str:
        """What was heard, without the `[Name]: ` that delivery puts before it."""
        if isinstance(event, ToolResult):
            return event.output
        if event.label and event.content.startswith(event.label):
            return event.content[len(event.label) :]
        for said in self.brought(event):
            if event.content.startswith(label := self.label(said)):
                return event.content[len(label) :]
        return event.content

    def result(self, call: ToolCall | None) -> ToolResult | None:
        """What answers a call."""
        return self._results.get((call.agent_id, call.id)) if call is not None and call.id else None

    def calls(self, record: str) -> list[ToolCall]:
        """The calls that a record makes."""
        return self._calls.get(record, [])

    def record(self, name: str) -> Event | None:
        """What a record is known for."""
        return self._records.get(name)

    def origin(self, name: str) -> Event | None:
        """What was said first of all that is said again in a record; None where the session does not hold it."""
        seen: set[str] = set()
        found = self._records.get(name)
        while found is not None and found.substance and found.substance not in seen:
            seen.add(found.substance)
            found = self._records.get(found.substance)
        return found

    def is_repeated(self, event: Event) -> bool:
        """Whether an agent's own record has what the event says already: a compaction tells it again."""
        said = self.origin(event.substance) if event.substance else None
        return said is not None and self.agent(said) == self.agent(event) and not isinstance(said, PieceOfText)

    def brought(self, event: Delivery) -> Iterator[Utterance]:
        """The words of others that an event brings, each once."""
        names = (event.substance,) if event.substance else event.causes()
        found = (self.origin(name) for name in dict.fromkeys(names))
        hearer = self.agent(event)
        for said in {id(one): one for one in found if one is not None}.values():
            if isinstance(said, Response | PieceOfText) and self.agent(said) != hearer:
                yield said

    def asking(self, event: Event, words: str = "") -> ToolCall | None:
        """The call of another agent that an event was caused by; of several in one record the one with the words."""
        return self._caused_by(event, words, own=False)

    def told_by(self, said: Event, words: str = "") -> ToolCall | None:
        """The agent's own call by which it had others hear something."""
        return self._caused_by(said, words, own=True)

    def _caused_by(self, event: Event, words: str, *, own: bool) -> ToolCall | None:
        # What an agent is given may be linked to the call itself as the same words.
        for cause in (event.substance,) if event.substance else event.causes():
            calls = [call for call in self._calls.get(cause, ()) if (call.agent_id == event.agent_id) is own]
            if calls:
                return calls[0] if len(calls) == 1 else _with_words(calls, words.strip())
        return None


def _unique_names(tree: SessionTree) -> dict[str, str]:
    """What members of a team call each other; a name that two have names nobody."""
    found: dict[str, set[str]] = {"team-lead": {tree.main}}
    for agent in tree.agents.values():
        for name in (agent.agent_id, agent.name, agent.agent_id.partition("@")[0]):
            found.setdefault(name, set()).add(agent.agent_id)
    return {name: next(iter(agents)) for name, agents in found.items() if len(agents) == 1}


def _with_words(calls: list[ToolCall], words: str) -> ToolCall:
    # Nobody makes a hundred calls at once; a session that says so shall not cost a search of them for each.
    asked = (call for call in calls[:100] if words and holds(call.input.decode("utf-8", "replace"), words))
    return next(asked, calls[0])


def _has_words(event: Event) -> bool:
    return isinstance(event, Response | PieceOfText | Prompt) and bool(event.content.strip())
