"""Words about a stretch of conversation: a line for a list or a page for a compaction, made without a model; what a
model is asked; and the summary that somebody wrote."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from harken.events import Error, Event, Output, Prompt, Response, System, Thinking, ToolCall, ToolResult
from harken.events.base import clean, excerpt, of_one_agent
from harken.events.tools import doing
from harken.formats.base import Format, count
from harken.store.base import Annotation

WRITTEN = "summary"
"""The key of the annotation that is a commit's summary, by whoever wrote it."""
LINE = 100
EXCERPT = 600
REQUESTS = 20


def written(notes: Sequence[Annotation]) -> Annotation | None:
    """The newest summary among the annotations of a commit."""
    return next((note for note in reversed(notes) if note.key == WRITTEN and note.value), None)


def line(events: Sequence[Event], folder: str = "") -> str:
    """One line about what happened, for a commit nobody has described; paths stand as from the folder."""
    return _outline(events, folder) or _remainder(events)


def line_of(known: Format, data: bytes, folder: str = "") -> str:
    """`line` for a delta, from a brief look at it where that is enough."""
    if known.brief_reader is None:
        # A chain keeps what other agents of its log said meanwhile: that is told in chains of their own.
        return line(of_one_agent(known.read_delta(data))[0], folder)
    brief = known.brief_reader(data)
    return (_outline(brief, folder) if brief else "") or line(known.read_delta(data), folder)


def _outline(events: Sequence[Event], folder: str) -> str:
    """What was asked, what was done, what was said last; empty where there is nothing of it."""
    asked = injected = said = ""
    calls: list[str] = []
    for event in events:
        if isinstance(event, ToolCall):
            calls.append(excerpt(doing(event, folder), LINE // 2))
        elif isinstance(event, Response) and event.content.strip():
            said = event.content
        elif isinstance(event, Prompt) and event.content.strip():
            # What a person asked says more than what the harness put in.
            if event.source == "injected":
                injected = injected or event.content
            else:
                asked = asked or event.content
    parts = [excerpt(asked or injected, LINE // 2), _done(calls), excerpt(said, LINE // 2)]
    return " → ".join(part for part in parts if part)


def _done(calls: Sequence[str]) -> str:
    """What was done, as much as a line holds, and how much more."""
    told, length = list[str](), 0
    counted = Counter(calls)
    for what, n in counted.items():
        text = f"{what} ×{n}" if n > 1 else what
        if told and length + len(text) > LINE:
            break
        told.append(text)
        length += len(text) + 2
    more = len(counted) - len(told)
    return ", ".join(told) + (f", {more} more" if more else "")


def _calls(events: Sequence[Event]) -> str:
    return _tally(Counter(e.name for e in events if isinstance(e, ToolCall)))


def _tally(counter: Counter[str]) -> str:
    return ", ".join(f"{name or '?'} ×{n}" if n > 1 else (name or "?") for name, n in counter.most_common(8))


def _remainder(events: Sequence[Event]) -> str:
    for event in events:
        match event:
            case ToolResult():
                return "result: " + excerpt(event.output, LINE // 2)
            case Error():
                return "error: " + excerpt(event.message, LINE // 2)
            case System():
                return f"{event.subtype or 'system'}: {excerpt(event.message, LINE // 2)}".rstrip(": ")
            case Prompt() if event.images:
                return f"showed {len(event.images)} pictures" if len(event.images) > 1 else "showed a picture"
            case Thinking() if event.content:
                return "thinking: " + excerpt(event.content, LINE // 2)
            case Output() if event.why:
                return f"unread: {excerpt(event.why, LINE // 2)}"
    return f"{len(events)} events" if len(events) != 1 else f"one {events[0].kind} event"


def extract(events: Sequence[Event]) -> str:
    """A summary made of the conversation's own words: what was asked, what was done, what was said last."""
    asked = [e.content for e in events if isinstance(e, Prompt) and e.source != "injected" and e.content.strip()]
    told = [e.content for e in events if isinstance(e, Prompt) and e.source == "injected" and e.content.strip()]
    answers = [e.content for e in events if isinstance(e, Response) and e.content.strip()]
    failed = sum(1 for e in events if isinstance(e, ToolResult) and e.is_error)
    parts = [
        f"Summary of the conversation so far ({count(events).messages} messages), put together from its own words."
    ]
    for title, texts in (("Context given", told[:1]), ("First request", asked[:1])):
        parts += [f"{title}: {excerpt(text, EXCERPT)}" for text in texts]
    if later := asked[1:]:
        shown = later[-REQUESTS:]
        left_out = f" (the last {len(shown)} of {len(later)})" if len(shown) < len(later) else ""
        parts.append(f"Later requests{left_out}:\n" + "\n".join(f"- {excerpt(text, LINE * 2)}" for text in shown))
    if tools := _calls(events):
        parts.append(f"Tools used: {tools}" + (f"; {failed} calls failed" if failed else "") + ".")
    parts += [f"Last answer: {excerpt(text, EXCERPT * 2)}" for text in answers[-1:]]
    return clean("\n\n".join(parts))


REQUEST = 200_000
"""How many characters of a conversation a model is shown; the middle of a longer one is left out."""


def request(events: Sequence[Event]) -> str:
    """What a model is asked when it is to write the summary."""
    return (
        "Below is a conversation between a user and an assistant that uses tools. Write the summary that will stand "
        "in its place when the assistant goes on: the task, what was decided and why, what was found out (files, "
        "names, numbers), what failed, and what is still to do. Write only the summary.\n\n"
        + conversation(events, REQUEST)
    )


def conversation(events: Sequence[Event], most: int) -> str:
    """A conversation as a model is shown it: of a longer one so many characters, from its beginning and its end."""
    said = "\n".join(text for event in events if (text := _spoken(event)))
    if len(said) <= most:
        return said
    return f"{said[: most // 2]}\n[… {len(said) - most} characters left out …]\n{said[-most // 2 :]}"


def _spoken(event: Event) -> str:
    """An event as a model is shown it; empty for what is no conversation."""
    match event:
        case Prompt():
            return f"User: {event.content}"
        case Response():
            return f"Assistant: {event.content}"
        case ToolCall():
            return f"Assistant calls {event.name}: {excerpt(event.input.decode('utf-8', 'replace'), EXCERPT)}"
        case ToolResult():
            return f"{'The tool failed' if event.is_error else 'The tool answers'}: {excerpt(event.output, EXCERPT)}"
    return ""
