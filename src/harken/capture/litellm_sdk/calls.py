"""One call of LiteLLM, however often it is sent: from its request to the end of its reply."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from harken.capture.exchange import Capture, Exchange, never_raising
from harken.events import Error, Metric

from .replies import RoutedReply, SpokenApi, read_stream, read_whole
from .watching import StreamWatch, end, watch


class OpenCalls:
    """The calls of one capture whose reply is not logged yet."""

    def __init__(self, capture: Capture) -> None:
        self.capture = capture
        self.streams: WeakKeyDictionary[Any, LiteLLMCall] = WeakKeyDictionary()
        """Streams that the host is still reading, or has dropped."""
        self.late: deque[tuple[LiteLLMCall, StreamWatch]] = deque()
        """Streams that ended where nothing could be logged."""

    @never_raising
    def begin(self, api: SpokenApi, arguments: Mapping[str, Any]) -> LiteLLMCall | None:
        """Log a request that is about to be sent."""
        self.tell_late()
        request = api.asked(arguments)
        for stream, call in list(self.streams.items()):
            if call.is_before(request.messages):  # a host that goes on behind a reply will not read on
                end(stream)
        exchange = self.capture.request(request)
        if exchange is None:
            return None
        made_up = arguments.get("mock_response") is not None
        return LiteLLMCall(self, api, exchange, request.messages, made_up=made_up)

    @never_raising
    def tell_late(self) -> None:
        """Tell of the streams that ended where nothing could be logged."""
        while self.late:
            call, watched = self.late.popleft()
            call.tell_stream(watched)

    @never_raising
    def close(self) -> None:
        """What came until now is all."""
        for stream in list(self.streams):
            end(stream)
        self.tell_late()


class LiteLLMCall:
    """One call of the host."""

    def __init__(
        self, calls: OpenCalls, api: SpokenApi, exchange: Exchange, given: Sequence[Any], *, made_up: bool
    ) -> None:
        self.calls = calls
        self.capture = calls.capture
        self.api = api
        self.exchange = exchange
        self.given = given
        self.made_up = made_up
        """Whether the reply is the host's own."""
        self.trace = ""
        self.attempts = 0
        self.problem: BaseException | None = None
        """Why the last attempt failed, until the next one, or until it is known that there is none."""
        self.response: Any = None
        """A reply that LiteLLM has still to report with what it costs."""

    def is_before(self, messages: Any) -> bool:
        """Whether messages are those of this call and more."""
        count = len(self.given)
        return isinstance(messages, list) and len(messages) > count and self.given == messages[:count]

    @never_raising
    def answered(self, response: Any, told: Mapping[str, Any] | None = None) -> None:
        """A whole response came; `told` is what LiteLLM reports of the call."""
        self.tell(read_whole(response, told or {}))

    @never_raising
    def streams(self, stream: Any) -> Any:
        """The reply comes through a stream; gives what the host is to read."""
        watched = watch(stream, self._ended)
        self.calls.streams[watched] = self
        return watched

    def _ended(self, watched: StreamWatch) -> None:
        # A stream that is thrown away ends wherever its memory is taken back, also in the middle of a write to the log.
        if self.capture.session.lock._is_owned():  # type: ignore[attr-defined]
            self.calls.late.append((self, watched))
        else:
            self.tell_stream(watched)

    @never_raising
    def tell_stream(self, watched: StreamWatch) -> None:
        """Log what came through a stream."""
        self.tell(read_stream(self.api, watched, made_up=self.made_up))

    def tell(self, reply: RoutedReply) -> None:
        """Log a reply."""
        also: list[Metric] = getattr(reply, "also", [])  # what Anthropic's compaction used
        attempts = max(self.attempts, reply.metadata.get("attempts") or 1)
        thread = reply.metadata.pop("conversation", None)
        thread = thread.get("id") if isinstance(thread, dict) else thread
        self.exchange.reply(
            reply.events,
            usage=reply.usage,
            metadata={**reply.metadata, "attempts": attempts if attempts > 1 else None, "thread": thread},
            each=reply.each,
            entries=reply.entries,
            thread=thread if isinstance(thread, str) else "",
            also=also,
        )

    @never_raising
    def failed(self, problem: BaseException) -> None:
        """No reply came."""
        about = {
            "status": getattr(problem, "status_code", None),
            "provider": getattr(problem, "llm_provider", None),
            "attempts": self.attempts if self.attempts > 1 else None,
        }
        self.exchange.failed(problem, about)

    @never_raising
    def give_up(self) -> None:
        """LiteLLM will report nothing more of it."""
        if self.response is not None:
            self.answered(self.response)
        elif self.problem is not None:
            self.failed(self.problem)
        else:
            # Its stream was given up, most likely.
            self.exchange.reply([Error(message="LiteLLM did not report what came of it")], metadata={"partial": True})
