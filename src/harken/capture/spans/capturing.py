"""Spans with GenAI attributes, put into a session as they end or arrive."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harken.capture.conversations import REQUEST, Conversations
from harken.capture.exchange import Capture, CapturedRequest, Exchange, never_raising, warn_once
from harken.capture.mask import Mask, masked, masking
from harken.errors import BadRequest
from harken.events import AgentCreated, Error, Event, System
from harken.events.base import is_name
from harken.events.prints import CapturedConversation
from harken.formats.kit.jsonl import encode
from harken.formats.otel_genai.calls import CALL, ModelSpan, failure_of, kind_of, output_events
from harken.formats.otel_genai.messages import message_events
from harken.formats.otel_genai.spans import TraceSpan, merged, read_documents
from harken.formats.otel_genai.telling import AgentRun, SpanKey, Teller
from harken.formats.otel_genai.usage import usage_of
from harken.formats.session_log import events_of
from harken.formats.session_log.lines import LogLine
from harken.formats.session_log.writing import ENTRIES
from harken.log import Session

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor

ADAPTER = "opentelemetry"
NAME = "gen_ai.agent.name"
"""The attribute of an agent under which its spans' own name stands; its name in the session may have a number."""
ABOVE = "parent_span_id"
"""In the metadata of a reply: the span around its own, which has the call inside it."""
MOST = 20_000
"""Spans that are remembered; of more than that the older half is forgotten."""


def otel_processor(session: Session, *, mask: Mask = None) -> SpanProcessor:
    """A span processor that puts finished spans with GenAI attributes into a session. It is given to a tracer provider
    (`provider.add_span_processor`); spans of other kinds are passed over."""
    masking(mask)
    try:
        from .processor import CapturingProcessor
    except ImportError as problem:
        raise BadRequest(f"OpenTelemetry cannot be used: {problem}", hint="pip install 'harken[otel]'") from problem
    return CapturingProcessor(session, mask)


def receive_otlp(session: Session, body: bytes, *, mask: Mask = None) -> int:
    """Put the spans of an OTLP/JSON body (traces or logs) into a session; how many of them are about a model.

    A span whose parents have not arrived waits for them, at most until the session is closed."""
    masking(mask)
    try:
        return SpanCapture.of(session, mask).receive(body) or 0
    except Exception as problem:  # noqa: BLE001
        warn_once(session, problem)
        return 0


class _TellingCapture(Capture):
    """A capture that says what it logged, so that no span of a tool tells it again."""

    teller: SpanCapture

    def log(self, conversation: CapturedConversation, events: Sequence[Event], beside: Sequence[dict[str, Any]]) -> str:
        message_id = super().log(conversation, events, beside)
        self.teller.heard(conversation, events, message_id)
        return message_id


class SpanCapture(Teller):
    """The spans of one session, whoever brings them."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.capture = _TellingCapture(session, ADAPTER)
        self.capture.teller = self
        self._exchanges: dict[SpanKey, Exchange] = {}
        self._waiting: dict[SpanKey, TraceSpan] = {}
        """Spans whose parents have not arrived."""
        self._done: dict[SpanKey, bool] = {}
        """Spans that were told, and whether they said something; those of an earlier process, too."""
        self._recall()
        session.before_close(self.close)

    @classmethod
    def of(cls, session: Session, mask: Mask) -> SpanCapture:
        """The one of a session."""
        with session.lock:
            if not isinstance(known := session.extensions.get("spans"), cls):
                known = session.extensions["spans"] = cls(session)
            known.capture.mask = masking(mask)
        return known

    def _recall(self) -> None:
        """What an earlier process captured in the same log."""
        names: dict[str, str] = {}
        known = {conversation.agent_id: conversation for conversation in Conversations.of(self.session)}
        for agent_id, conversation in known.items():
            info = self.session.agents[agent_id]
            name = info.attributes.get(NAME)
            own = name if isinstance(name, str) else "" if info.name.isdecimal() else info.name
            names[agent_id] = own
            self.named.setdefault((own, info.parent or ""), []).append(conversation)
        for thread, conversation in Conversations.of(self.session).by_reply.items():
            self.threads[thread, names.get(conversation.agent_id, "")] = conversation
        for line in self.session.records() if self.session.registry.records else ():
            agent_id = str(line.get("agent_id"))
            around = self._recall_spans(line)
            if (speaker := known.get(agent_id)) is not None:
                self._recall_said(speaker, line)
                for key in around:
                    run = self.runs.setdefault(key, AgentRun(names[agent_id], None, [], []))
                    if speaker not in run.conversations:
                        run.conversations.append(speaker)

    def _recall_spans(self, line: LogLine) -> list[SpanKey]:
        """Which spans told a line; gives those around them."""
        found = []
        for one in line.get(ENTRIES) or ():
            about = one.get("metadata") if isinstance(one, Mapping) else None
            if isinstance(about, Mapping) and isinstance(span := about.get("span_id"), str):
                trace = str(about.get("trace_id", ""))
                self._done[trace, span] = True
                if isinstance(above := about.get(ABOVE), str):
                    found.append((trace, above))
        self.spans.around_calls.update(found)
        return found

    def _recall_said(self, conversation: CapturedConversation, line: LogLine) -> None:
        """What a conversation said, so that no span of a tool says it again, and when it last asked."""
        events = events_of(line)
        self.heard(conversation, events, str(line.get("message_id")))
        for event in events:
            if isinstance(event, System) and event.subtype == REQUEST:
                agent_id = conversation.agent_id
                self.latest[agent_id] = max(self.latest.get(agent_id, 0), event.time or 0)

    # Spans as they come

    @never_raising
    def ended(self, span: TraceSpan, around: Iterable[TraceSpan]) -> None:
        """A span ended; `around` are those that it is part of and that have not ended."""
        with self.session.lock:
            if span.key in self._done or not kind_of(span):
                self.spans.parents[span.key] = span.parent
                return
            for one in around:
                self.spans.add(one)
            found = self.spans.add(span)
            if found is not None:
                self._done[span.key] = bool(found.messages or found.outputs)
                with self.session.batch():
                    self.end(found)
            self._forget()

    @never_raising
    def receive(self, body: bytes) -> int:
        """Spans arrived, in whatever order."""
        arrived: list[TraceSpan] = []
        for document in read_documents(body):
            arrived += document.spans
            for unread in document.unread:
                warn_once(self.capture, ValueError(unread.why))
        with self.session.lock:
            for span in arrived:
                if span.name:
                    self.spans.parents[span.key] = None if span.remote_parent else span.parent
            for span in arrived:
                self._take(span)
            ready = [span for span in self._waiting.values() if span.name and self._is_rooted(span)]
            if len(self._waiting) > MOST:
                ready = list(self._waiting.values())
            self._tell(ready)
            self._forget()
        return sum(bool(kind_of(span)) for span in arrived)

    def _take(self, span: TraceSpan) -> None:
        """Keep a span until its parents are known; an event that was logged waits for its span."""
        if self._done.get(span.key, not kind_of(span)):
            return  # it was told, or is not about a model
        if span.key in self._done and span.name:
            return
        known = self._waiting.get(span.key)
        if known is None or (span.name and known.name):
            self._waiting[span.key] = span
        else:
            (self._waiting[span.key],) = merged([known, span])
        if span.key in self._done:  # its words come behind it
            self.begun.discard(span.key)
            self._tell([self._waiting[span.key]])

    def _is_rooted(self, span: TraceSpan) -> bool:
        """Whether all spans around it are known."""
        last = span.key
        for key in self.spans.above(span.key):
            last = key
        return last in self.spans.parents

    def _tell(self, ready: Sequence[TraceSpan]) -> None:
        for span in ready:
            self._waiting.pop(span.key, None)
        found = self.spans.place(ready)
        for one in found:
            self._done[one.span.key] = bool(one.messages or one.outputs)
        with self.session.batch():
            self.tell(found)

    @never_raising
    def close(self) -> None:
        """Nothing more comes: what waits is told with what is known."""
        with self.session.lock:
            self._tell(list(self._waiting.values()))
            with self.session.batch():
                self.finish()

    def _forget(self) -> None:
        """Let go of the older half of what is remembered of spans, where that is much."""
        spans: tuple[dict[Any, Any], ...] = (self.spans.parents, self.spans.about, self._done, self.runs)
        for known in (*spans, self.calls, self.callers):
            if len(known) > MOST:
                for key in list(known)[: MOST // 2]:
                    del known[key]
        for keys in (self.spans.around_calls, self.spans.around_failures, self.begun, self.answered):
            if len(keys) > MOST:
                keys.clear()

    # What is done with them

    def begin(self, name: str, parent: str, cause: str, found: ModelSpan) -> CapturedConversation:
        known = Conversations.of(self.session)
        root = self.session.root
        if not parent and root is not None and not any(info.entries for info in self.session.agents.values()):
            return known.add(root, name)
        agent_id = self.session.allocate_agent_id()
        told = {NAME: name, "gen_ai.agent.id": found.agent_id, "gen_ai.conversation.id": found.conversation}
        created = AgentCreated(
            agent_id=agent_id,
            name=self._free_name(name, parent) if name or root is not None else "",
            language_model=found.asked or found.model,
            role="child" if parent else "root",
            parent=parent,
            cause=cause or None,
            time=found.start or None,
            attributes=encode({key: value for key, value in told.items() if value}),
        )
        self.session.append([created])
        return known.add(agent_id, name)

    def _free_name(self, name: str, parent: str) -> str:
        """The name, or one with a number where another agent beside it has that; none for what cannot be a name."""
        if parent and not name:
            return ""
        plain = name if is_name(name) and name == name.strip() else ""
        for number in range(1, MOST):
            tried = (plain if number == 1 else f"{plain} {number}".strip()) or str(number)
            try:
                self.session.check_name(tried, below=parent or None)
            except BadRequest:
                continue
            if parent or all(info.name != tried for info in self.session.agents.values()):
                return tried
        return ""

    def request(self, found: ModelSpan) -> None:
        self.capture.time = found.start or None
        asked = CapturedRequest(
            messages=found.messages,
            read=message_events,
            instructions=found.instructions,
            model=found.asked or found.model,
            settings=_settings(found),
            placed=lambda prints: self.place(found, prints),
        )
        if (exchange := self.capture.request(asked)) is not None:
            self._exchanges[found.span.key] = exchange

    def reply(self, found: ModelSpan) -> None:
        exchange = self._exchanges.pop(found.span.key, None)
        if exchange is None:
            return  # the request could not be logged, and that was told
        self.capture.time = found.end or None
        events, usage = output_events(found), usage_of(found)
        about = _about(found)
        if events or usage is not None or not found.span.failed:
            exchange.reply(events, usage=usage, metadata=about, thread=found.conversation)
        if found.span.failed:
            error = Error(message=failure_of(found), cause=exchange.cause)
            beside = {"metadata": {"kind": "error", **about}}
            self.capture.log(exchange.conversation, list(masked([error], self.capture.mask)), [beside])

    def note(self, conversation: CapturedConversation, event: Event, time: int | None) -> None:
        self.capture.time = time
        about = _place_of(self.current) if self.current is not None else {}
        beside: dict[str, Any] = {"metadata": about} if about else {}
        self.capture.log(conversation, list(masked([event], self.capture.mask)), [beside])


def _settings(found: ModelSpan) -> dict[str, Any]:
    """What else the request says: parameters, tools."""
    said = found.span.attributes
    return {key: value for key, value in said.items() if key.startswith(("gen_ai.request.", "gen_ai.tool.definitions"))}


def _about(found: ModelSpan) -> dict[str, Any]:
    """What is kept of a span beside what was said."""
    said = found.span.attributes
    about = {
        "model": found.model,
        "response_id": found.response_id,
        "thread": found.conversation,
        "provider": said.get("gen_ai.provider.name", said.get("gen_ai.system")),
        "finish_reason": said.get("gen_ai.response.finish_reasons"),
    }
    place = _place_of(found) | ({ABOVE: found.span.parent_id} if found.kind == CALL else {})
    return {key: value for key, value in (about | place).items() if value}


def _place_of(found: ModelSpan) -> dict[str, Any]:
    """The span that tells."""
    return {"trace_id": found.span.trace_id, "span_id": found.span.span_id}
