"""A request and its reply, put into a session: the one way in for every SDK.

An adapter makes events of what its SDK sends and hears, and calls three things: `Capture.request` before the call,
`Exchange.reply` or `Exchange.failed` after it. Nothing here raises into the program that is captured.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import msgspec
import orjson

from harken.clock import now as present
from harken.clock import to_datetime
from harken.errors import HarkenError
from harken.events import Error, Event, Metric, Output, Response, System, ToolCall, ToolResult
from harken.events.edits import summary_prompt
from harken.events.prints import (
    COMPACT_SUMMARY,
    CapturedConversation,
    Print,
    RequestPlace,
    chain,
    is_instructions,
    print_of,
    prints_in,
    shared_links,
)
from harken.events.session import TranscriptEdit
from harken.events.tally import BOUNDARY
from harken.formats.transcript.events import plain, plain_json
from harken.log import Session
from harken.log.choosing import chosen

from .conversations import REQUEST, Conversations
from .late import PlaceOfReply, aside
from .mask import Mask, masked, masked_value, masking
from .telemetry import InvokedTools, PromptExecuted, PromptRendered

P = ParamSpec("P")
T = TypeVar("T")
Reader = Callable[[Any], Iterable[Event]]
"""From one message as JSON has it to its events."""
_log = logging.getLogger("harken.capture")


@dataclass(frozen=True, kw_only=True)
class CapturedRequest:
    """What is about to be sent."""

    messages: Sequence[Any]
    """As the host gave them; SDK objects are made JSON of."""
    read: Reader
    instructions: Sequence[str] = ()
    """What the API takes apart from the messages."""
    model: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What else the request says: parameters, tools. Kept with the notice of the request."""
    follows: str = ""
    """The reply, conversation or thread of the provider that this goes on with; the messages are then all new."""
    placed: Callable[[Sequence[Print]], RequestPlace] | None = None
    """Where it belongs, by whoever knows more of it than its messages."""


def never_raising(function: Callable[P, T]) -> Callable[P, T | None]:
    """Whatever goes wrong while capturing is told once, and is not the host's concern."""

    @wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> T | None:
        try:
            return function(*args, **kwargs)
        except Exception as problem:  # noqa: BLE001
            owner = args[0]
            warn_once(getattr(owner, "capture", owner), problem)
            return None

    return guarded


def warn_once(capture: Any, problem: BaseException) -> None:
    """Say that something could not be captured; once for each captured client."""
    if not getattr(capture, "warned", False):
        capture.warned = True
        _log.warning("capture failed, and the session lacks something: %s: %s", type(problem).__name__, problem)


class Capture:
    """What one client sends and hears, put into one session."""

    def __init__(self, session: Session, adapter: str, *, mask: Mask = None) -> None:
        self.session = session
        self.adapter = adapter
        self.warned = False
        self.mask = masking(mask)
        self._prints: dict[tuple[int, int], tuple[Print, ...]] = {}
        """By what tells a message from others: what is compared of it. A history is sent again and again."""
        self._instructing: set[tuple[int, int]] = set()
        """The messages among them that hold instructions."""
        self._settings: dict[str, bytes] = {}
        self._untold: list[object] = []
        """What the bus hears of once it is in the log."""
        self.calls: dict[str, ToolCall] = {}
        """Calls whose result was not sent yet."""
        self._invoked = InvokedTools()
        self.time: int | None = None
        """When what is logged happened, where that was not now."""
        try:
            Conversations.of(session)
        except HarkenError as problem:  # the log cannot be written now; it is tried again
            warn_once(self, problem)

    @property
    def session_id(self) -> str:
        """What the events on the bus call the session."""
        return getattr(self.session, "session_id", "") or self.session.path.stem

    @never_raising
    def request(self, request: CapturedRequest) -> Exchange:
        """Log what is new in a request, and that it is about to be sent."""
        raw = [plain_json(message) for message in request.messages]
        prints = [self._prints_of(text, request.read) for text in raw]
        session = self.session
        with session.lock:
            place = self._place(request, [one for own in prints for one in own])
            with session.batch():
                exchange = self._log_request(request, raw, prints, place)
            told, self._untold = self._untold, []
        for event in told:
            self.tell(event)
        return exchange

    def _prints_of(self, text: bytes, read: Reader) -> tuple[Print, ...]:
        key = (hash(text), len(text))
        if (known := self._prints.get(key)) is None:
            events = list(masked(read(orjson.loads(text)), self.mask))
            if len(self._prints) > 100_000:
                self._prints.clear()
            known = self._prints[key] = tuple(one for event, one in prints_in(events) if not is_instructions(event))
            if any(map(is_instructions, events)):
                self._instructing.add(key)
        return known

    def _place(self, request: CapturedRequest, prints: Sequence[Print]) -> RequestPlace | None:
        known = Conversations.of(self.session)
        if (name := chosen(self.session)) is not None:
            return known.named(name, prints, request.model, request.follows)
        if request.placed is not None:
            return request.placed(prints)
        found = known.after(request.follows) if request.follows else known.find(prints)
        # Two that are asked at the same time and differ are two conversations: neither takes the other's words back.
        if found is None or not found.altered or not known.is_waited_for(found.conversation):
            return found
        return found._replace(apart=True) if request.follows else None

    def _log_request(
        self,
        request: CapturedRequest,
        raw: Sequence[bytes],
        prints: Sequence[tuple[Print, ...]],
        place: RequestPlace | None,
    ) -> Exchange:
        if place is None or place.apart:
            conversation = Conversations.of(self.session).begin("", request.model)
        else:
            conversation = place.conversation
        shared = place.shared if place else 0
        if place is not None and place.apart:
            self._log_again(conversation, place, request.follows)
        elif place is not None and place.back_to:
            keep, again = conversation.go_back(place.back_to)
            self.log_cut(conversation, keep)
            for numbers in again:
                self.log_restored(conversation, numbers)
        elif place is not None:
            shared, cut = conversation.cut_back(place, prints, lambda at: list(request.read(orjson.loads(raw[at]))))
            if cut is not None:
                self.log_cut(conversation, cut)
        self._log_instructions(request.instructions, conversation)
        new = self._log_messages(request, raw, prints, conversation, shared)
        cause = self._log_notice(request, conversation)
        messages = tuple(masked_value(orjson.loads(raw[number]), self.mask) for number in new)
        self._untold.append(PromptRendered(self.adapter, self.session_id, messages, to_datetime(present())))
        end = place.shared if place is not None and place.late else None
        return Exchange(capture=self, conversation=conversation, cause=cause, model=request.model, end=end)

    def _log_again(self, conversation: CapturedConversation, place: RequestPlace, name: str) -> None:
        """A conversation begins with what was said in another one, until a reply of that name."""
        for said in Conversations.of(self.session).said_before(place):
            events = [event.replace(cause=None, substance=None) for event in said]
            self.log(conversation, events, [{} for _ in events])
        Conversations.of(self.session).name(conversation, [name])

    def _log_messages(
        self,
        request: CapturedRequest,
        raw: Sequence[bytes],
        prints: Sequence[tuple[Print, ...]],
        conversation: CapturedConversation,
        shared: int,
    ) -> list[int]:
        """Log what the conversation does not have; gives the numbers of the messages that nobody has said before.

        Instructions stand where the request has them. Those among what is shared are given to what follows it."""
        new: list[int] = []
        instructed = 0
        for at, again in conversation.rest(prints, shared):
            self._log_instructing(request, raw[instructed : at + 1], conversation)
            instructed = at + 1
            if again is not None:
                self.log_restored(conversation, again)
            elif prints[at]:
                new.append(at)
                self._log_message(conversation, list(request.read(orjson.loads(raw[at]))))
        self._log_instructing(request, raw[instructed:], conversation)
        return new

    def _log_instructing(
        self, request: CapturedRequest, raw: Sequence[bytes], conversation: CapturedConversation
    ) -> None:
        """Log what messages instruct, where this conversation was not given it before."""
        for text in raw if self._instructing else ():
            if (hash(text), len(text)) in self._instructing:
                # What else the message says (whose it is) stands beside what it instructs.
                said = [e for e in request.read(orjson.loads(text)) if is_instructions(e) or isinstance(e, Output)]
                self._log_given(said, conversation)

    def _log_instructions(self, instructions: Sequence[str], conversation: CapturedConversation) -> None:
        """Log what the API takes as instructions, where this conversation was not given it before."""
        for text in instructions:
            self._log_given([System(subtype="instructions", message=text)], conversation)

    def _log_given(self, message: Sequence[Event], conversation: CapturedConversation) -> None:
        events = list(masked(message, self.mask))
        if not {print_of(event) for event in events if is_instructions(event)} <= conversation.instructions.keys():
            self.log(conversation, events, [{} for _ in events])

    def _log_message(self, conversation: CapturedConversation, events: list[Event]) -> None:
        events = [event for event in masked(events, self.mask) if not is_instructions(event)]
        # What is no entry belongs to the one before it when the log is read: here to the message it was sent in.
        events.sort(key=lambda event: isinstance(event, Output))
        for event in events:
            if isinstance(event, ToolCall):
                self.calls[event.id] = event
        self.log(conversation, events, [{} for _ in events])
        for event in events:
            if isinstance(event, ToolResult) and (call := self.calls.pop(event.id, None)) is not None:
                told = self._invoked.tell(self.adapter, self.session_id, conversation.agent_id, call, event.output)
                self._untold += [told] if told is not None else []

    def _log_notice(self, request: CapturedRequest, conversation: CapturedConversation) -> str:
        """That the request goes out. Settings that are as they were the last time are not said again."""
        said: dict[str, Any] = {"adapter": self.adapter, "model": request.model}
        for key, value in request.settings.items():
            text = plain_json(value)
            if self._settings.get(key) != text:
                self._settings[key] = text
                said[key] = masked_value(orjson.loads(text), self.mask)
        notice = System(agent_id=conversation.agent_id, subtype=REQUEST, metadata=plain_json(said), time=self.time)
        (message_id,) = self.session.append([notice])
        return message_id

    def log(self, conversation: CapturedConversation, events: Sequence[Event], beside: Sequence[dict[str, Any]]) -> str:
        """Log one message: its events as one record, which is what an edit counts."""
        placed = [
            event.replace(agent_id=conversation.agent_id, index=number, message_id="", time=self.time)
            for number, event in enumerate(events)
        ]
        if not placed:
            return ""
        with self.session.batch():
            message_id = self.session.append(placed, beside=beside)[0]
            Conversations.of(self.session).own.add(message_id)
        conversation.say([placed])
        return message_id

    def log_cut(self, conversation: CapturedConversation, keep: int) -> None:
        """Log that of a conversation so many entries stay."""
        self._log_edit(conversation, TranscriptEdit(action="truncate", n=keep))

    def log_restored(self, conversation: CapturedConversation, numbers: range) -> None:
        """Log that these entries of a conversation stand again."""
        self._log_edit(conversation, TranscriptEdit(action="restore", start=numbers.start, n=numbers.stop))

    def _log_edit(self, conversation: CapturedConversation, edit: TranscriptEdit) -> None:
        with self.session.batch():
            logged = self.session.append([edit.replace(agent_id=conversation.agent_id, time=self.time)])
            Conversations.of(self.session).own.update(logged)

    def tell(self, event: object) -> None:
        """Put something on the bus and into its slice. What it tells of is logged, whatever becomes of this."""
        try:
            self.session.dispatch(event)
        except Exception as problem:  # noqa: BLE001
            warn_once(self, problem)


class Exchange:
    """A request that was sent, and waits for its reply."""

    def __init__(
        self, *, capture: Capture, conversation: CapturedConversation, cause: str, model: str, end: int | None = None
    ) -> None:
        self.capture = capture
        self.conversation = conversation
        self.cause = cause
        self.model = model
        self.done = False
        self._place = PlaceOfReply(conversation, end)
        self._known = Conversations.of(capture.session)
        self._known.waiting.add(self)

    @never_raising
    def reply(
        self,
        events: Sequence[Event],
        *,
        usage: Metric | None = None,
        metadata: Mapping[str, Any] | None = None,
        each: Sequence[Mapping[str, Any]] = (),
        entries: Mapping[int, Mapping[str, Any]] | None = None,
        thread: str = "",
        also: Sequence[Metric] = (),
    ) -> None:
        """Log what the model answered.

        `metadata` is of the whole reply and stands with its first entry (`partial` where the stream broke, `attempts`
        where it was tried again; `response_id` is a name by which a request may follow it); `each` is of the entries
        one by one. `entries` has the fields of the entry that an `Output` is, by the number of the event. `thread` is
        the provider's own name for the conversation. `also` are figures of what the provider did beside the reply. A
        summary in the reply stands from then on for everything before it."""
        if self.done:
            return
        self.done = True
        capture = self.capture
        events = list(masked(events, capture.mask)) or [Response(model=self.model)]
        about = dict(metadata or {})
        beside = [_beside(each[at] if at < len(each) else {}, {} if at else about) for at in range(len(events))]
        for at, entry in (entries or {}).items():
            beside[at] |= plain(dict(entry))
        beside = [masked_value(one, capture.mask) for one in beside]
        events = [event.replace(cause=self.cause) for event in events]
        with capture.session.lock, capture.session.batch():
            place = self._place.find(events)
            if place.cut is not None:
                capture.log_cut(self.conversation, place.cut)
            events = self._known.told_apart(events)
            told = events if place.stands else aside(events, beside, is_said=place.is_said)
            message_id = self._log_reply(told, beside)
            for one in (usage, *also):
                self._count(one, message_id)
            names = {about.get("response_id"), *(event.api_id for event in events)}
            told_names = [name for name in names if isinstance(name, str)]
            if place.stands or place.is_said:
                self._known.name(self.conversation, [thread, *told_names])
            else:
                self._known.name_late(self.conversation, told_names, self._place.behind, message_id)
        for event in events:
            if isinstance(event, ToolCall):
                capture.calls[event.id] = event
        if not any(isinstance(event, ToolCall) and not event.server_tool for event in events):
            said = "\n".join(event.content for event in events if isinstance(event, Response))
            tokens = msgspec.structs.asdict(usage.tokens) if usage is not None else {}
            counts = {key: count for key, count in tokens.items() if count is not None}
            when = to_datetime(present())
            capture.tell(PromptExecuted(capture.adapter, capture.session_id, said, counts, when))

    def _log_reply(self, events: Sequence[Event], beside: Sequence[dict[str, Any]]) -> str:
        message_id, start = "", 0
        for at, event in enumerate(events):
            if not isinstance(event, System) or event.subtype != COMPACT_SUMMARY:
                continue
            if not event.message:
                self._log_compaction()
            else:
                self.capture.log(self.conversation, events[start:at], beside[start:at])
                message_id, start = self._fold(event, beside[at]), at + 1
        return self.capture.log(self.conversation, events[start:], beside[start:]) or message_id

    def _log_compaction(self) -> None:
        """Say that the provider made a summary that only it can read: the conversation itself does not show it."""
        agent = self.conversation.agent_id
        notice = System(agent_id=agent, subtype=BOUNDARY, cause=self.cause, time=self.capture.time)
        self.capture.session.append([notice])

    def _fold(self, summary: System, beside: dict[str, Any]) -> str:
        """The provider made a summary of the conversation, and hears nothing else of it from now on."""
        start, end = self.conversation.fold()
        edit = TranscriptEdit(
            agent_id=self.conversation.agent_id,
            action="compact",
            start=start,
            n=end,
            content=summary.message,
            cause=summary.cause,
            api_id=summary.api_id,
            time=self.capture.time,
        )
        (message_id,) = self.capture.session.append([edit], beside=[{"role": "assistant", **beside}])
        self._known.own.add(message_id)
        self.conversation.say([[summary_prompt(summary.message)]])
        return message_id

    def _count(self, usage: Metric | None, message_id: str) -> None:
        if usage is not None:
            whose = {"agent_id": self.conversation.agent_id, "message_id": "", "time": self.capture.time}
            model = usage.model or self.model  # not every reply says which model made it
            self.capture.session.append([usage.replace(cause=message_id, model=model, **whose)])

    @never_raising
    def compacted(
        self,
        messages: Sequence[Sequence[Event]],
        *,
        usage: Metric | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Log what the provider made of the conversation: from now on it is these messages. `metadata` stands with the
        last of them, the summary."""
        if self.done or not messages:
            return
        self.done = True
        capture, conversation = self.capture, self.conversation
        records = [[event.replace(cause=self.cause) for event in masked(one, capture.mask)] for one in messages]
        prints = [[one for _, one in prints_in(record)] for record in records]
        about = masked_value(_beside({}, metadata or {}), capture.mask)
        with capture.session.lock, capture.session.batch():
            links = chain(0, (one for own in prints for one in own))
            shared, keep = conversation.cut(shared_links(conversation.chain, links))
            self._log_compaction()
            capture.log_cut(conversation, keep)
            message_id = ""
            for at, again in conversation.rest(prints, shared):
                if again is not None:
                    capture.log_restored(conversation, again)
                else:
                    beside = [about if at == len(records) - 1 else {} for _ in records[at]]
                    message_id = capture.log(conversation, records[at], beside)
            self._count(usage, message_id)

    @never_raising
    def failed(self, problem: BaseException, metadata: Mapping[str, Any] | None = None) -> None:
        """Log that no reply came: the provider refused, the connection broke, the host gave up."""
        if self.done:
            return
        self.done = True
        words = f"{type(problem).__name__}: {problem}".removesuffix(": ")
        (error,) = masked([Error(message=words, cause=self.cause)], self.capture.mask)
        beside = masked_value(_beside({}, {"type": type(problem).__name__, **(metadata or {})}), self.capture.mask)
        with self.capture.session.lock:
            self.capture.log(self.conversation, [error], [beside])


def _beside(*said: Mapping[str, Any]) -> dict[str, Any]:
    about = {key: value for one in said for key, value in one.items() if value is not None}
    return {"metadata": plain(about)} if about else {}
