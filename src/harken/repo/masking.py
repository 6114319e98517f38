"""Events without secrets: what is shown to others, people or models, goes through here first."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from harken.events import Event, Image, Prompt
from harken.text import plain

if TYPE_CHECKING:
    from harken.secrets import Rule


class Masks:
    """Takes secrets out of every text of an event, and counts them by rule."""

    def __init__(self, own_rules: Sequence[Rule], *, reveal: bool, for_people: bool) -> None:
        """Secrets are what Harken's rules find, and these. `for_people` takes out what colours a text in a terminal,
        too: before the secrets, since it may stand in the middle of one."""
        from harken.secrets import RULES, mask

        self._mask: Callable[..., Any] | None = None if reveal else mask
        self._rules = (*RULES, *own_rules)
        self._for_people = for_people
        self.counts: Counter[str] = Counter()

    def event(self, event: Event) -> Event:
        """The event, with every text in it masked."""
        changes = {}
        for name in event.__struct_fields__:
            value = getattr(event, name)
            if value and (masked := self._value(value)) != value:
                changes[name] = masked
        if not changes:
            return event
        if {"substance", "cause"} & changes.keys():
            # One of the two is None, and stays so.
            changes = {"substance": event.substance, "cause": event.cause} | changes
        masked_event: Event = event.replace(**changes)
        return masked_event

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bytes):
            return self._json(value)
        if isinstance(value, tuple):
            return tuple(map(self._value, value))
        if isinstance(value, Image):
            return msgspec.structs.replace(value, media_type=self.text(value.media_type), url=self.text(value.url))
        return value

    def text(self, text: str) -> str:
        """The text without secrets."""
        text = plain(text) if self._for_people else text
        if self._mask is None or not text:
            return text
        masked, found = self._mask(text, self._rules)
        if "\x1b" in text:  # colour in the middle of a secret hides it from the rules, not from a reader
            bare, more = self._mask(plain(text), self._rules)
            masked, found = (bare, more) if len(more) > len(found) else (masked, found)
        self.counts.update(one.rule for one in found)
        return str(masked)

    def _json(self, data: bytes) -> bytes:
        """JSON text without secrets: as it is written, and as it reads, since any character may stand there escaped."""
        if self._mask is None:
            return data
        masked = self.text(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        if b"\\" not in masked:
            return masked
        try:
            value = json.loads(masked)
            read = self._inside(value)
            if read == value:
                return masked
            # Without spaces, as records of our own are written: they are known by how they begin.
            return json.dumps(read, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
        except (ValueError, RecursionError):
            return masked

    def _inside(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._inside(one) for one in value]
        if isinstance(value, dict):
            return {self.text(name): self._inside(one) for name, one in value.items()}
        return value


class AnswerMasks(Masks):
    """Takes secrets out of answers: values of any depth, as JSON has them.

    An answer may hold the beginning of a text, cut in the middle of a secret, which no rule knows any more. So the
    secrets that were found are remembered, and a text that ends with the beginning of one is masked there."""

    def __init__(self, own_rules: Sequence[Rule], *, reveal: bool) -> None:
        super().__init__(own_rules, reveal=reveal, for_people=False)
        self._known: dict[str, str] = {}
        """Secrets on one line, each with its rule."""

    def answer(self, value: Any) -> Any:
        """The value without secrets; give whole texts before those that are cut."""
        if self._mask is None:
            return value
        masked = self._inside(value)
        return self._ends(masked) if self._known else masked

    def text(self, text: str) -> str:
        """The text without secrets."""
        masked = super().text(text)
        if masked != text:
            self._remember(text)
            self._remember(plain(text))
        return masked

    def _remember(self, text: str) -> None:
        from harken.secrets import find

        data = text.encode("utf-8", "surrogatepass")
        for one in find(data, self._rules):
            if len(self._known) < MOST_KNOWN:
                secret = data[one.start : one.end].decode("utf-8", "replace")
                self._known[_on_one_line(secret[:LONGEST_KNOWN])] = one.rule

    def _ends(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._end(value)
        if isinstance(value, list):
            return [self._ends(one) for one in value]
        if isinstance(value, dict):
            return {name: self._ends(one) for name, one in value.items()}
        return value

    def _end(self, text: str) -> str:
        end = text[-LONGEST_KNOWN - 1 :]
        tail = _uncut(_on_one_line(end))
        for secret, rule in self._known.items():
            if secret[:FEWEST_KNOWN] not in tail:
                continue
            for size in range(min(len(secret), len(tail)), FEWEST_KNOWN - 1, -1):
                if tail.endswith(secret[:size]):
                    self.counts[rule] += 1
                    return text[: -len(end)] + tail[:-size] + f"[masked: {rule}]"
        return text


MOST_KNOWN, LONGEST_KNOWN, FEWEST_KNOWN = 1_000, 300, 6
"""How many secrets are remembered, how many characters of each, and how many of them give one away."""


class MaskedTitle:
    """A title without secrets. No rule knows one that the title's end cuts off: then the text that it begins stands."""

    def __init__(self, title: str, masks: Masks) -> None:
        self.text = masks.text(title)
        self._start, self._masked_start = _uncut(title), _uncut(self.text)

    def see(self, event: Event, masked: Event) -> None:
        """One more event, as it is and as it is told."""
        if event is masked or not isinstance(event, Prompt) or not isinstance(masked, Prompt) or not self._start:
            return
        is_its_text = _on_one_line(event.content).startswith(self._start)
        if is_its_text and not _on_one_line(masked.content).startswith(self._masked_start):
            self.text, self._start = masked.content, ""


def _uncut(title: str) -> str:
    return title.removesuffix("…").rstrip()


def _on_one_line(text: str) -> str:
    return " ".join(text.split())
