"""What the documents of a session have in common: their head and foot, who speaks, and the pictures in them."""

from __future__ import annotations

import base64
import binascii
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from harken import clock
from harken.events import Image
from harken.text import one_line

from .passages import AgentBegins, AgentEnds, Aside, Passage, Remark, Speech, Step, SummedUp

COMPACTION = "Compaction: from here on the model had a summary in place of what came before."


class DocumentHead(msgspec.Struct, frozen=True, kw_only=True):
    """What stands above a session."""

    title: str
    facts: tuple[tuple[str, str], ...]


class DocumentFoot(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader has to know of what the document does not say."""

    masked: Mapping[str, int]
    """How many secrets were masked, by rule."""
    left_out: Mapping[str, int]
    losses: tuple[str, ...]

    def lines(self) -> list[str]:
        """A line for each of them."""
        found = []
        if self.masked:
            found.append(f"Masked: {_counted(self.masked)}.")
        if self.left_out:
            found.append(f"Left out: {_counted(self.left_out)}. An export to jsonl has them.")
        return found + [f"Lost: {loss}." for loss in self.losses]


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} ×{count:,}" for name, count in sorted(counts.items()))


class PictureFile(msgspec.Struct, frozen=True, kw_only=True):
    """A picture that lies beside a document."""

    name: str
    data: bytes


_MAGIC = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpg", b"GIF87a": "gif", b"GIF89a": "gif"}
MEDIA_TYPES = {"png": "image/png", "jpg": "image/jpeg", "gif": "image/gif", "webp": "image/webp"}


def picture_bytes(image: Image) -> tuple[str, bytes] | None:
    """The kind of a picture and its bytes, as these say themselves; None for what a browser might take for a page, for
    an address, and for what is no picture."""
    try:
        data = base64.b64decode(image.data, validate=True)
    except (binascii.Error, ValueError):
        return None
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp", data
    return next(((kind, data) for magic, kind in _MAGIC.items() if data.startswith(magic)), None)


def moment(time: int | None) -> str:
    """A time for people, in UTC; empty where nobody knows it."""
    if time is None or not clock.in_calendar(time):
        return ""
    return clock.format_seconds(time).replace("T", " ").replace("Z", " UTC")


class DocumentWriter(ABC):
    """Writes passages one after the other; who speaks is said when it is somebody else."""

    def __init__(self) -> None:
        self._speaker = ""
        self.depth = 0
        """How many sub-agents' stories are open."""
        self.absent = 0
        """How many pictures were mentioned and not shown."""

    def pieces(
        self, head: DocumentHead, passages: Iterable[Passage], foot: Callable[[], DocumentFoot]
    ) -> Iterator[str | PictureFile]:
        """The document, piece by piece; `foot` is asked when everything else has been written."""
        yield self.begin(head)
        for passage in passages:
            yield from self._passage(passage)
        yield self.end(foot())

    def _passage(self, passage: Passage) -> Iterator[str | PictureFile]:
        match passage:
            case Speech() | Aside() | Step():
                is_user = isinstance(passage, Speech) and passage.is_user
                if passage.who != self._speaker or is_user:
                    yield self.speaker(one_line(passage.who), moment(passage.time), is_user=is_user)
                    self._speaker = passage.who
                yield from self._words(passage)
            case Remark():
                yield self.remark(passage)
            case SummedUp():
                yield self.summed_up(passage)
            case AgentBegins():
                yield self.agent_begins(passage)
                self.depth += 1
                self._speaker = ""
            case AgentEnds():
                self.depth -= 1
                self._speaker = ""
                yield self.agent_ends(passage)

    def _words(self, passage: Speech | Aside | Step) -> Iterator[str | PictureFile]:
        match passage:
            case Speech():
                return self.speech(passage)
            case Aside():
                return self.aside(passage)
            case Step():
                return self.step(passage)

    def absent_picture(self, image: Image) -> str:
        """What stands in place of a picture that is not shown."""
        self.absent += 1
        what = image.media_type or "picture"
        if image.url:
            return f"[{what} at {image.url}]"
        return f"[{what}, {len(image.data) * 3 // 4:,} bytes, not shown]"

    # -- what each kind of document says in its own way -----------------------------------------------------------

    @abstractmethod
    def begin(self, head: DocumentHead) -> str:
        """What stands above everything."""

    @abstractmethod
    def end(self, foot: DocumentFoot) -> str:
        """What stands below everything."""

    @abstractmethod
    def speaker(self, who: str, time: str, *, is_user: bool) -> str:
        """Somebody else speaks now."""

    @abstractmethod
    def speech(self, said: Speech) -> Iterator[str | PictureFile]:
        """What was said."""

    @abstractmethod
    def aside(self, aside: Aside) -> Iterator[str | PictureFile]:
        """What a reader may skip."""

    @abstractmethod
    def step(self, step: Step) -> Iterator[str | PictureFile]:
        """A call and its result."""

    @abstractmethod
    def remark(self, remark: Remark) -> str:
        """What happened, on a line."""

    @abstractmethod
    def summed_up(self, summary: SummedUp) -> str:
        """A compaction."""

    @abstractmethod
    def agent_begins(self, agent: AgentBegins) -> str:
        """The head of a sub-agent's story."""

    @abstractmethod
    def agent_ends(self, agent: AgentEnds) -> str:
        """The end of a sub-agent's story."""


def listed(given: Iterable[tuple[str, str]]) -> tuple[list[str], list[tuple[str, str]]]:
    """The arguments of a call: those that go on a line, and those that need room."""
    short, long = list[str](), list[tuple[str, str]]()
    for name, value in given:
        if name and "\n" not in value and len(value) <= _LINE:
            short.append(f"{one_line(name)}: {value}")
        else:
            long.append((one_line(name), value))
    return short, long


_LINE = 300
