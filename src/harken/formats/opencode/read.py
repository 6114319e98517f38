"""A message of OpenCode's as events.

A user's message is a prompt for each of its texts. An assistant's message is a step (in old sessions several):
thoughts, words and calls in the order of its parts, then the results of the calls, as they go to the model. What a step
used stands in its last part; a message without such a part tells it of itself.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import force_setattr

from harken.events import Error, Event, Image, Metric, Output, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.events.base import clean, figure, join_parts
from harken.events.places import ATTACHED
from harken.events.tally import BOUNDARY
from harken.formats.kit.jsonl import Record, encode

from .records import MessagePart, RowMessage, inside, number, text

REMINDER = "reminder"
"""What kind of injected text it is by which the program tells its model about its own modes."""
NOTICES = frozenset({REMINDER})
WHAT_DID_WE_DO = "What did we do so far?"
"""What goes to the model in the place of a part that asks for a summary."""
SUBTASK = "The following tool was executed by the user"
INTERRUPTED = "[Tool execution was interrupted]"
CLEARED = "[Old tool result content cleared]"
ABORTED = "MessageAbortedError"
EARLIEST, LATEST = 10**12, 253_402_300_800_000
"""Milliseconds between which an instant lies; a message without a time of its own has a small number there."""
QUIET = ("step-start", "snapshot", "patch", "agent")
"""Parts that are for the program alone."""


def instant(value: Any) -> int | None:
    """Milliseconds as an instant; None where nobody wrote any down."""
    found = number(value)
    return found * 1000 if EARLIEST <= found < LATEST else None


def message_events(message: RowMessage, *, spawned: bool = False, as_sent: bool = False) -> list[Event]:
    """What a message says; nothing where it is neither a user's nor an assistant's. `spawned`: in the session of a
    sub-agent the user is another agent. `as_sent`: as the program would send it, rather than as it was."""
    teller = _Teller(message, spawned=spawned, as_sent=as_sent)
    if message.role == "user":
        teller.user()
    elif message.role == "assistant":
        teller.assistant()
    name = clean(message.id)
    for place, event in enumerate(
        teller.events
    ):  # nobody has them yet: to make them anew would take three times as long
        force_setattr(event, "message_id", name)
        if place:
            force_setattr(event, "index", place)
    return teller.events


def is_sent(message: RowMessage) -> bool:
    """Whether the program sends the message: not what failed, unless it was broken off and says something."""
    error = message.info.get("error")
    if message.role != "assistant" or not error:
        return True
    return inside(error, "name") == ABORTED and any(
        part.type not in ("step-start", "reasoning") for part in message.parts
    )


class _Teller:
    def __init__(self, message: RowMessage, *, spawned: bool, as_sent: bool) -> None:
        self._message, self._spawned, self._as_sent = message, spawned, as_sent
        self._created = instant(message.created or inside(message.info, "time", "created"))
        self._model = clean(text(message.info.get("modelID")))
        self._results: list[Event] = []
        self._steps = self._finished = 0
        self._request = clean(message.id)
        """What is called the same in everything that one request of the model brought."""
        self.events: list[Event] = []

    def _time(self, told: Any) -> int | None:
        return instant(told) or self._created

    # -- what stands in the user's place -------------------------------------------------------------------------------

    def user(self) -> None:
        pictures: list[Image] = []
        for part in self._message.parts:
            match kind := _told_as(part):
                case "text":
                    self._prompt(part.data, pictures)
                    pictures = []
                case "file":
                    pictures += self._file(part)
                case "compaction":
                    about = {key: value for key, value in part.data.items() if key != "type"}
                    self.events.append(System(subtype=BOUNDARY, metadata=encode(about), time=self._created))
                    self._inject(WHAT_DID_WE_DO, "compact_request")
                case "subtask":
                    self._inject(SUBTASK, "subtask")
                case _:
                    self._other(part, kind)
        if pictures:
            self.events.append(Prompt(images=tuple(pictures), time=self._created, **self._who()))

    def _who(self) -> dict[str, Any]:
        return {"source": "injected", "origin": "agent"} if self._spawned else {}

    def _prompt(self, data: Record, pictures: list[Image]) -> None:
        content = clean(text(data.get("text")))
        if data.get("ignored"):
            self.events.append(System(subtype="notice", message=content, time=self._created))
            return
        words, images = join_parts([*pictures, content] if content else pictures)
        if not words and not images:
            return
        who = self._who()
        if data.get("synthetic"):
            is_reminder = content.lstrip().startswith("<system-reminder>")
            who = {"source": "injected", "origin": REMINDER if is_reminder else f"{ATTACHED}synthetic"}
        self.events.append(Prompt(content=words, images=images, time=self._created, **who))

    def _inject(self, words: str, origin: str) -> None:
        self.events.append(Prompt(content=words, source="injected", origin=origin, time=self._created))

    def _file(self, part: MessagePart) -> list[Image]:
        """A picture or a document that goes along; a text is told by the texts before it."""
        picture = picture_of(part.data)
        if picture is None:
            self._other(part, part.type)
        return [] if picture is None else [picture]

    # -- what the model said and did -----------------------------------------------------------------------------------

    def assistant(self) -> None:
        info = self._message.info
        for part in self._message.parts:
            match kind := _told_as(part):
                case "step-start":
                    self._step()
                case "text":
                    if content := clean(text(part.data.get("text"))):
                        time = self._time(inside(part.data, "time", "start"))
                        said = Response(content=content, model=self._model, api_id=self._request, time=time)
                        self.events.append(said)
                case "reasoning":
                    self._think(part.data)
                case "tool":
                    self._call(part.data)
                case "step-finish":
                    self._metric(part.data, self._finished)
                    self._finished += 1
                case "retry":
                    self._error(part.data.get("error"))
                case _:
                    self._other(part, kind)
        self._answer()
        if not self._finished:
            self._metric(info, 0)
        if info.get("error"):
            self._error(info["error"])

    def _step(self) -> None:
        self._answer()
        self._steps += 1
        if self._steps > 1:
            self._request = f"{clean(self._message.id)}/{self._steps}"

    def _answer(self) -> None:
        self.events += self._results
        self._results = []

    def _think(self, data: Record) -> None:
        content, (name, seal) = clean(text(data.get("text"))), sealed(data.get("metadata"))
        if content or seal:
            time = self._time(inside(data, "time", "start"))
            redacted = {"redactedData": True, "signature": None if content else False}.get(name)
            said = Thinking(content=content, signature=clean(seal), redacted=redacted, api_id=self._request, time=time)
            self.events.append(said)

    def _call(self, data: Record) -> None:
        state = data.get("state")
        state = state if isinstance(state, dict) else {}
        name, call = clean(text(data.get("tool"))), clean(text(data.get("callID")))
        start, end = self._time(inside(state, "time", "start")), self._time(inside(state, "time", "end"))
        given = state.get("input")
        raw = text(state.get("raw")) if not given else ""
        arguments = raw.encode(errors="replace") if raw else encode(given if given is not None else {})
        is_providers = bool(inside(data, "metadata", "providerExecuted"))
        self.events.append(
            ToolCall(id=call, name=name, input=arguments, server_tool=is_providers, api_id=self._request, time=start)
        )
        output, is_error, images = self._outcome(state)
        if output is not None:
            self._results.append(
                ToolResult(id=call, name=name, output=clean(output), is_error=is_error, images=images, time=end)
            )

    def _outcome(self, state: Record) -> tuple[str | None, bool, tuple[Image, ...]]:
        """What a tool answered, whether it failed, and its pictures; no text where it has not answered."""
        match state.get("status"):
            case "completed":
                if self._as_sent and inside(state, "time", "compacted"):
                    return CLEARED, False, ()
                attached = state.get("attachments")
                found = map(picture_of, attached if isinstance(attached, list) else [])
                return _words(state.get("output")), False, tuple(filter(None, found))
            case "error":
                kept = inside(state, "metadata", "output")
                if inside(state, "metadata", "interrupted") is True and isinstance(kept, str):
                    return kept, False, ()
                return _words(state.get("error")), True, ()
            case status if status not in ("pending", "running") and isinstance(state.get("output"), str):
                return state["output"], False, ()
        return (INTERRUPTED, True, ()) if self._as_sent else (None, False, ())

    def _metric(self, data: Record, step: int) -> None:
        """What a request used. A copy of the message in another session has another id, the same time and figures."""
        tokens = data.get("tokens")
        tokens = tokens if isinstance(tokens, dict) else {}
        heard, said, thought = (_count(tokens.get(name)) for name in ("input", "output", "reasoning"))
        read, written = (_count(inside(tokens, "cache", name)) for name in ("read", "write"))
        told = data.get("cost")
        cost = float(told) if isinstance(told, int | float) else 0.0
        if not (heard or said or thought or read or written or cost):
            return
        said = _written(tokens, heard + read + written, said, thought)
        self.events.append(
            Metric(
                input_tokens=heard,
                output_tokens=said,
                reasoning_tokens=thought or None,
                cache_read_tokens=read,
                cache_write_tokens=written,
                cost_usd=cost,
                model=self._model,
                stop_reason=clean(text(data.get("reason")) or text(data.get("finish"))),
                request_id=f"{step}.{heard}.{said}.{read}.{written}",
                api_id=f"opencode@{self._message.created}",
                time=self._time(inside(self._message.info, "time", "completed")),
            )
        )

    def _error(self, error: Any) -> None:
        name, words = text(inside(error, "name")), text(inside(error, "data", "message"))
        message = ": ".join(filter(None, (name, words))) or "the message failed"
        self.events.append(Error(message=clean(message), time=self._created))

    def _other(self, part: MessagePart, told_as: str) -> None:
        if part.type in QUIET:
            return
        known = part.type in ("file", "text", "step-finish", "retry", "compaction", "subtask")
        why = "" if known else f"a part of an unknown type, {clean(part.type)[:40]!r}"
        if not told_as:
            why = "a part whose words are no text"
        self.events.append(Output(raw=encode({"id": part.id, **part.data}), why=why, time=self._created))


def _told_as(part: MessagePart) -> str:
    """What a part is read as: its type; nothing where its words are no text."""
    kind = part.type
    is_damaged = kind in ("text", "reasoning") and not isinstance(part.data.get("text"), str | None)
    return "" if is_damaged else kind


def _words(told: Any) -> str:
    """What a tool answered; what is no text as JSON."""
    return told if isinstance(told, str) else "" if told is None else encode(told).decode()


def _count(told: Any) -> int:
    return figure(number(told)) or 0


def _written(tokens: Record, heard: int, output: int, reasoning: int) -> int:
    """What the model wrote, its reasoning among it. `output` is without it in new sessions and with it in old ones:
    where there is a total, that tells."""
    rest = number(tokens.get("total")) - heard
    return rest if output <= rest <= output + reasoning else output + reasoning


def picture_of(data: Any) -> Image | None:
    """The picture or document that a part of type `file` is; None where it is a text, a folder or nothing."""
    media, url = text(inside(data, "mime")), text(inside(data, "url"))
    if not url or media.startswith("text/") or media == "application/x-directory":
        return None
    if url.startswith("data:"):
        head, _, content = url.partition(",")
        return Image(media_type=clean(media), data=clean(content)) if head.endswith(";base64") else None
    return Image(media_type=clean(media), url=clean(url))


def sealed(metadata: Any) -> tuple[str, str]:
    """What a provider needs to know its own reasoning by, and what it calls that, as the first that left something."""
    for provider in metadata.values() if isinstance(metadata, dict) else ():
        for name in ("signature", "redactedData", "reasoningEncryptedContent"):
            if found := text(inside(provider, name)):
                return name, found
    return "", ""
