"""Which conversation a request goes on with, and what of it is new.

A program's loop sends its whole history each time, and one client may serve several conversations. What was captured
of a conversation is compared with the request, event by event: the conversation that is the longest beginning of the
request is continued. One that shares a beginning and then differs was altered: it is cut back to what they share, and
what the request says again of the rest stands again.
Instructions are not compared: many conversations begin with the same ones, and some programs change them at each turn.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import orjson

from .base import Event
from .edits import INSTRUCTIONS, is_entry
from .messages import Prompt, Response, System
from .runs import Output
from .tools import ToolCall, ToolResult

Print = int
"""What two events have in common that say the same."""
COMPACT_SUMMARY = "compact_summary"
"""The subtype of the `system` event that is a provider's summary of what was said before."""
_SPACES = re.compile(r"\s+")


def print_of(event: Event) -> Print | None:
    """What of an event is compared; None for what a program may leave out when it sends a history again."""
    match event:
        case Prompt():
            return hash(("user", _words(event.content), event.images))
        case Response():
            return hash(("assistant", _words(event.content))) if event.content.strip() else None
        case ToolCall():
            return hash(("call", event.id, event.name, _arguments(event.input)))
        case ToolResult():
            return hash(("result", event.id, _result(event.output), event.images))
        case System(subtype="instructions"):
            return hash(("system", _words(event.message)))
        case System(subtype="compact_summary") if event.message:
            return hash(("user", _words(event.message), ()))  # in a transcript a prompt stands for what was folded
        case System(subtype="compact_summary"):
            return hash(("compaction", _sealed(event.metadata)))
    return None


def prints_in(message: Sequence[Event]) -> list[tuple[Event, Print]]:
    """What of a message is compared, and the event that says it.

    Beside the words that a host sends may stand parts that no event has a place for (a file that the provider keeps):
    with others it is another message. Of what a model said, programs leave such parts out."""
    found = [(event, one) for event in message if (one := print_of(event)) is not None]
    outputs = [event for event in message if isinstance(event, Output)]
    if not outputs or any(isinstance(event, Response | ToolCall) for event, _ in found):
        return found
    for at, (event, one) in enumerate(found):
        parts = [_part(other.raw) for other in outputs if other.message_id == event.message_id]
        if isinstance(event, Prompt | ToolResult) and any(parts):
            found[at] = event, hash((one, *filter(None, parts)))
            break
    return found


def _part(text: bytes) -> Print | None:
    """A part of a message, wherever the host wants it cached; None for what is none."""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(found, dict) or not isinstance(found.get("type"), str):
        return None
    said = {key: value for key, value in found.items() if key != "cache_control"}
    return hash(("part", orjson.dumps(said, option=orjson.OPT_SORT_KEYS)))


def is_instructions(event: Event) -> bool:
    """Whether the event is instructions, which are not compared."""
    return isinstance(event, System) and event.subtype == INSTRUCTIONS


def _sealed(text: bytes) -> str:
    """What only the provider can read of a summary."""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return ""
    return str(found.get("encrypted_content") or "") if isinstance(found, dict) else ""


def _words(text: str) -> str:
    return _SPACES.sub(" ", text).strip() if len(text) < 10_000 else text.strip()


def _result(text: str) -> str:
    """What a tool answered; where it is JSON, however it is spaced and ordered, and without fields that are null, since
    hosts send the objects of their SDK (`model_dump(exclude_none=True)`)."""
    if not text.startswith(("{", "[")):
        return _words(text)
    return _words("\n".join(_arguments(line.encode(), _without_nulls).decode() for line in text.split("\n")))


def _arguments(text: bytes, made: Callable[[Any], Any] = lambda value: value) -> bytes:
    """Arguments however they are spaced and ordered, or what is made of them."""
    try:
        return orjson.dumps(made(orjson.loads(text or b"{}")), option=orjson.OPT_SORT_KEYS)
    except (orjson.JSONDecodeError, TypeError, RecursionError):
        return text


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(one) for key, one in value.items() if one is not None}
    return [_without_nulls(one) for one in value] if isinstance(value, list) else value


def chain(before: int, prints: Iterable[Print]) -> list[int]:
    """For each print, what stands for it and everything before it."""
    found = []
    for one in prints:
        before = hash((before, one))
        found.append(before)
    return found


class RequestPlace(NamedTuple):
    """Where a request belongs."""

    conversation: CapturedConversation
    shared: int
    """How many prints of the request the conversation has already."""
    altered: bool
    """Whether the conversation has more than that, and so must be cut back."""
    after: int | None = None
    """Where the request names the reply it follows: how many prints of the conversation come before it."""
    late: bool = False
    """Whether the conversation had gone on when it was heard of: all of the request stands there, and more."""
    back_to: str = ""
    """The name of that reply, where it does not stand now and what stood then is to stand again."""
    apart: bool = False
    """Whether another conversation begins with what the request follows, since a reply is awaited in this one."""


class LastEntry(NamedTuple):
    """The end of a conversation at some time."""

    number: int
    """Of the entry."""
    link: int
    """What stands for it and everything before it."""


class _ComparedPart(NamedTuple):
    """What is compared of one event of an entry."""

    print: Print
    is_instructions: bool
    is_compaction: bool


class CapturedConversation:
    """What is known of one conversation: its agent, and a print for each thing said in it."""

    def __init__(self, agent_id: str, name: str = "", beginnings: ByBeginning | None = None) -> None:
        self.agent_id = agent_id
        self.name = name
        self._beginnings = {} if beginnings is None else beginnings
        self.chain: list[int] = []
        self.entry_at: list[int] = []
        """For each print, the place in the transcript of the entry in which it stands."""
        self.instructions: dict[Print, int] = {}
        """The instructions that were given, and the place of the entry in which each stands."""
        self.compactions: set[Print] = set()
        self.replies: dict[str, int] = {}
        """By the provider's names of replies: how many prints there were after each."""
        self.answered = (-1, -1)
        """The place of the last captured reply among the prints."""
        self._given: list[tuple[_ComparedPart, ...]] = []
        """Every entry that the transcript ever had, numbered as an edit counts them."""
        self._standing: dict[int, None] = {}
        """The numbers of the entries that stand, in their order."""
        self._said_at: dict[int, int] = {}
        """The number of an entry, by the link of its last print when it was said."""
        self._cut_off: dict[Print, list[int]] = {}
        """The entries that were cut off last, by their first print."""
        self._before: dict[int, int] = {}
        """By the number of an entry, the one that it was said behind."""
        self._names: dict[str, LastEntry] = {}
        """By the provider's names of replies: the entry that stood last."""
        self.late: dict[str, str] = {}
        """By the names of replies that are no part of it: the record of each, which came behind the entry so named."""

    @property
    def entries(self) -> int:
        """How many entries stand."""
        return len(self._standing)

    def say(self, records: Iterable[Sequence[Event]]) -> None:
        """Records were added to the transcript."""
        for record in records:
            if any(map(is_entry, record)):
                self._stand(self.give(record))
            else:
                self._compare(_parts(record))

    def give(self, record: Sequence[Event]) -> int:
        """Know an entry that the transcript has or had; gives its number."""
        self._given.append(_parts(record))
        return len(self._given) - 1

    def follow(self, numbers: Sequence[int]) -> None:
        """Of the entries that are known these stand, in this order."""
        keep = 0
        for known, number in zip(self._standing, numbers, strict=False):
            if known != number:
                break
            keep += 1
        if keep < self.entries:
            self._keep(bisect_left(self.entry_at, keep), keep)
        for number in numbers[keep:]:
            self._stand(number)

    def named(self, name: str) -> None:
        """The provider calls what was said last, or the whole conversation, by this name."""
        self.late.pop(name, None)
        self.replies[name] = len(self.chain)
        if self.chain:
            self._names[name] = self.last_entry

    def named_late(self, name: str, behind: LastEntry, record: str) -> None:
        """The provider calls a reply by this name that came to what ended with that entry, and is no part of this."""
        self._names[name] = behind
        self.late[name] = record

    @property
    def last_entry(self) -> LastEntry:
        """Where the conversation ends now."""
        return LastEntry(next(reversed(self._standing), -1), self.chain[-1] if self.chain else 0)

    def path_to(self, name: str) -> list[int]:
        """The numbers of the entries that stood when a reply got its name; none where that is not known."""
        number, link = self._names.get(name, LastEntry(-1, 0))
        found: list[int] = []
        while number >= 0:
            found.append(number)
            number = self._before.get(number, -1)
        found.reverse()
        parts = (part for number in found for part in self._given[number])
        links = chain(0, (part.print for part in parts if not part.is_instructions))
        return found if links and links[-1] == link else []  # entries may have stood again behind others meanwhile

    def go_back(self, name: str) -> tuple[int, list[range]]:
        """Have stand again what stood when a reply got its name; gives how many entries stay, and which stand again."""
        path, standing = self.path_to(name), list(self._standing)
        keep = next((at for at, pair in enumerate(zip(path, standing, strict=False)) if pair[0] != pair[1]), None)
        keep = min(len(path), len(standing)) if keep is None else keep
        again: list[range] = []
        for number in path[keep:]:
            if again and again[-1].stop == number:
                again[-1] = range(again[-1].start, number + 1)
            else:
                again.append(range(number, number + 1))
        self.follow(path)
        self.replies[name] = len(self.chain)
        return keep, again

    def numbers_before(self, place: RequestPlace) -> list[int]:
        """The entries that a request follows which names a reply."""
        if place.back_to:
            return self.path_to(place.back_to)
        at = place.after if place.after is not None else len(self.chain)
        return list(self._standing)[: self.entry_at[at] if at < len(self.entry_at) else self.entries]

    def _stand(self, number: int) -> None:
        self._compare(self._given[number])
        self._before.setdefault(number, next(reversed(self._standing), -1))
        self._standing[number] = None
        if _is_said(self._given[number]) and number == len(self._given) - 1:
            self._said_at[self.chain[-1]] = number

    def _compare(self, parts: Iterable[_ComparedPart]) -> None:
        for part in parts:
            if part.is_instructions:
                self.instructions[part.print] = self.entries
                continue
            if part.is_compaction:
                self.compactions.add(part.print)
            self.chain += chain(self.chain[-1] if self.chain else 0, (part.print,))
            self.entry_at.append(self.entries)
            if len(self.chain) == 1 and self not in (alike := self._beginnings.setdefault(self.chain[0], [])):
                alike.append(self)

    def rest(self, messages: Sequence[Sequence[Print]], shared: int) -> Iterator[tuple[int, range | None]]:
        """What a request says behind the prints that it shares: the number of a message that is new, which is said
        before the next is asked for; or of the first that entries say which now stand again, and the numbers of these,
        of which an edit tells."""
        at = first_behind(messages, shared)
        while at < len(messages):
            again, taken = self._restore(messages, at)
            yield at, again if taken else None
            at += taken or 1
        self._cut_off = {}

    def _restore(self, messages: Sequence[Sequence[Print]], at: int) -> tuple[range, int]:
        """Have entries stand again that say the next messages; gives a run of numbers, and how many messages."""
        first = last = -1
        taken = 0
        while (found := self._find_said(messages, at + taken)) is not None and (last < 0 or found[0] == last + 1):
            last, more = found
            first = last if first < 0 else first
            taken += more
            self._stand(last)
        return range(first, last + 1), taken

    def _find_said(self, messages: Sequence[Sequence[Print]], at: int) -> tuple[int, int] | None:
        """An entry that does not stand and says the next messages, and how many these are. It was cut off just now; or
        what stands is what stood before it when it was said. Else the words are the same, and may be new."""
        if self.entries == len(self._given) or at >= len(messages) or not messages[at]:
            return None
        link, said = self.chain[-1] if self.chain else 0, list[Print]()
        candidates = [number for number in self._cut_off.get(messages[at][0], ()) if number not in self._standing]
        for count, own in enumerate(messages[at : at + _LONGEST], 1):
            said += own
            links = chain(link, own)
            link = links[-1] if links else link
            number = self._said_at.get(link)
            known = candidates if number is None or number in self._standing else [number, *candidates]
            for number in known if own else ():
                if said == [part.print for part in self._given[number] if not part.is_instructions]:
                    return number, count
        return None

    def fold(self) -> tuple[int, int]:
        """Everything behind the first instructions is about to become one entry; gives which entries these are."""
        entries = self.entries
        _, start = self.cut(0)
        return start, entries

    def forget(self) -> None:
        """Nothing of it is known any more: it is read anew."""
        self.cut(0)
        self.instructions, self.compactions = {}, set()
        self._given, self._standing, self._said_at, self._cut_off = [], {}, {}, {}
        self._before, self._names, self.late = {}, {}, {}

    def cut_back(
        self, place: RequestPlace, messages: Sequence[Sequence[Print]], read: Callable[[int], Sequence[Event]]
    ) -> tuple[int, int | None]:
        """Cut off what a request does not go on with; gives how many of its prints stand, and how many entries stay,
        None where all do. `read` gives the events of a message by its number."""
        if place.late:
            return place.shared, None
        shared = self._whole(place.shared if place.after is None else place.after)
        keep = self._thought_behind(shared) if place.shared else None
        if keep is not None and _goes_on(messages, shared, read):
            keep = None
        if not place.altered and keep is None:
            return place.shared, None
        shared, keep = self.cut(shared, keep)
        return shared if place.after is None else 0, keep

    def cut(self, shared: int, keep: int | None = None) -> tuple[int, int]:
        """Cut off everything behind so many prints, or before where that would split an entry; gives how many, and how
        many entries stay. Of entries behind them in which nothing is compared, `keep` says how many stay."""
        shared = self._whole(shared)
        if keep is None:
            keep = self.entry_at[shared] if shared < len(self.entry_at) else self.entries
        self._keep(shared, keep)
        return shared, keep

    def cut_behind(self, entry: LastEntry) -> int:
        """Cut off what was said behind an entry, and in which nothing is compared; gives how many entries stay."""
        keep = next((at for at, number in enumerate(self._standing, 1) if number == entry.number), self.entries)
        return self.cut(len(self.chain), keep)[1]

    def _whole(self, shared: int) -> int:
        """So many prints, or fewer where that would split an entry."""
        at = self.entry_at
        while 0 < shared < len(at) and at[shared - 1] == at[shared]:
            shared -= 1
        return shared

    def _thought_behind(self, shared: int) -> int | None:
        """The place of a reply right behind so many prints in which nothing is compared (thinking alone)."""
        at = self.entry_at
        first, end = at[shared - 1] + 1 if shared else 0, at[shared] if shared < len(at) else self.entries
        between = enumerate(islice(self._standing, first, end), first) if first < end else ()
        return next((place for place, number in between if not self._given[number]), None)

    def _keep(self, shared: int, keep: int) -> None:
        """Cut off all but so many prints, which are so many entries."""
        del self.chain[shared:], self.entry_at[shared:]
        self.instructions = {one: entry for one, entry in self.instructions.items() if entry < keep}
        self._cut_off = {}
        for number in list(self._standing)[keep:]:
            del self._standing[number]
            if said := [part.print for part in self._given[number] if not part.is_instructions]:
                self._cut_off.setdefault(said[0], []).append(number)
        self.replies = {name: at for name, at in self.replies.items() if at <= shared and self._has_last(name)}

    def _has_last(self, name: str) -> bool:
        """Whether the entry stands that was the last when a reply got its name; it may be one that is not compared."""
        return name not in self._names or self._names[name].number in self._standing


_LONGEST = 64
"""So many messages of a request may be one entry: the items of one reply."""


def first_behind(messages: Sequence[Sequence[Print]], shared: int) -> int:
    """The number of the first message behind so many prints."""
    at = 0
    while at < len(messages) and shared > 0:
        shared -= len(messages[at])
        at += 1
    return at


def _is_said(parts: Sequence[_ComparedPart]) -> bool:
    """Whether an entry says something that is compared and is no instruction."""
    return not all(part.is_instructions for part in parts)


def _goes_on(messages: Sequence[Sequence[Print]], shared: int, read: Callable[[int], Sequence[Event]]) -> bool:
    """Whether a request goes on behind a reply of thinking alone: it sends it back, or a user speaks next. Else it is
    asked again, or something else was answered."""
    for number in range(first_behind(messages, shared), len(messages)):
        events = read(number)
        if not events or not all(map(is_instructions, events)):
            return not (messages[number] and any(isinstance(event, Response | ToolCall) for event in events))
    return False


def _parts(record: Sequence[Event]) -> tuple[_ComparedPart, ...]:
    return tuple(
        _ComparedPart(one, is_instructions(event), isinstance(event, System)) for event, one in prints_in(record)
    )


ByBeginning = dict[int, list[CapturedConversation]]
"""Conversations by their first link, also those that were cut back since and begin in another way."""


def find_conversation(
    known: Sequence[CapturedConversation], prints: Sequence[Print], beginnings: ByBeginning | None = None
) -> RequestPlace | None:
    """The conversation that a request goes on with; None where it shares a beginning with none."""
    links = chain(0, prints)
    alike = known if beginnings is None else beginnings.get(links[0], ()) if links else ()
    whole = {conversation.chain[-1]: conversation for conversation in alike if conversation.chain}
    for length in range(len(links), 0, -1):
        if (found := whole.get(links[length - 1])) is not None:
            return RequestPlace(found, length, altered=False)
    best: RequestPlace | None = None
    for conversation in reversed(alike):
        shared = shared_links(conversation.chain, links)
        if shared > (best.shared if best else 0):
            best = RequestPlace(conversation, shared, altered=True)
    return best or _compacted(known, prints)


def _compacted(known: Sequence[CapturedConversation], prints: Sequence[Print]) -> RequestPlace | None:
    """The conversation whose summary a request has in place of all that was said before."""
    found = (one for one in reversed(known) if one.compactions and not one.compactions.isdisjoint(prints))
    return next((RequestPlace(one, 0, altered=True) for one in found), None)


def shared_links(one: Sequence[int], other: Sequence[int]) -> int:
    """How many links two chains begin with together; a link stands for all before it, so halving finds it."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[middle - 1] == other[middle - 1]:
            low = middle
        else:
            high = middle - 1
    return low
