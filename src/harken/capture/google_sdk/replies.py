"""Replies of the Gemini API as events, with what else they say: usage, why they ended, ids."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from harken.events import Error, Event, Image, Metric, Output, Prompt, Response, ToolResult
from harken.events.base import clean
from harken.formats.kit.gemini import (
    MODEL,
    CallIds,
    content_events,
    contents_of,
    inner,
    media_of,
    text,
    usage_of,
)
from harken.formats.kit.gemini_joining import camel, joined
from harken.formats.kit.jsonl import Record, encode, parse
from harken.formats.transcript.events import draft_of

MEDIA = ("image", "audio", "video", "document")
"""What else than text a content of an interaction may be."""
_BODY = {
    "responseId": "response_id",
    "modelVersion": "model",
    "usageMetadata": "usage",
    "promptFeedback": "prompt_feedback",
}
_CANDIDATE = {
    "finishReason": "finish_reason",
    "finishMessage": "finish_message",
    "safetyRatings": "safety_ratings",
    "citationMetadata": "citation_metadata",
    "groundingMetadata": "grounding_metadata",
    "urlContextMetadata": "url_context_metadata",
    "avgLogprobs": "avg_logprobs",
    "logprobsResult": "logprobs_result",
    "tokenCount": "token_count",
}
"""What a candidate says of itself, and under which name it is kept."""
BLOCKED = frozenset(
    {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT"}
)
"""Why a candidate ends that the provider keeps back."""


@dataclass
class GoogleReply:
    """A reply, as an exchange takes it."""

    events: list[Event] = field(default_factory=list)
    each: list[dict[str, Any]] = field(default_factory=list)
    """For each event what else is known of its entry."""
    entries: dict[int, dict[str, Any]] = field(default_factory=dict)
    """For events that are no entry by themselves, by their number: the entry they are."""
    usage: Metric | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    def add(self, event: Event, *, entry: dict[str, Any] | None = None, **about: Any) -> None:
        """The next event."""
        if entry is not None:
            self.entries[len(self.events)] = entry
        self.events.append(event)
        self.each.append(about)

    def add_all(self, events: Iterable[Event]) -> None:
        """Events that were read; what no event has a place for is an entry with what it says."""
        for event in events:
            if isinstance(event, Output) and event.why:
                self._add_unsaid(event)
            elif isinstance(event, ToolResult):
                self.add(event, kind="server_tool")  # the host's own come in requests
            else:
                self.add(event)

    def _add_unsaid(self, event: Output) -> None:
        part = parse(event.raw) or {}
        if (media := _media_in(part)) is not None and (draft := draft_of(Prompt(images=(media,)), {})) is not None:
            about = {"kind": "media", **(draft.metadata or {})}
            self.add(event, entry={"role": "assistant", "content": draft.content}, **about)
        else:
            self.add(event, entry={"role": "assistant", "content": pretty(part)}, kind="item")

    def ended(self, problem: BaseException | None, error: Any, *, whole: bool) -> GoogleReply:
        """The reply with what went wrong, if anything did."""
        if isinstance(problem, GeneratorExit):
            problem = None  # the host wants no more
        if problem is not None:
            self.metadata["error"] = f"{type(problem).__name__}: {problem}".removesuffix(": ")
        if error:
            self.metadata["error"] = error
            words = error.get("message") if isinstance(error, dict) else error
            self.add(Error(message=clean(str(words or "the provider reports an error"))))
        elif not self.events and not whole:
            self.add(Error(message="the reply ended before anything came"))
        self.metadata["partial"] = None if whole and not error and problem is None else True
        return self


def _media_in(part: Record) -> Image | None:
    """The media that a part of the model is, or a content of an interaction."""
    blob = inner(part, "inlineData") or inner(part, "fileData")
    if not blob and text(part, "type") in MEDIA:
        blob = {**part, "fileUri": part.get("uri")}
    return media_of(blob) if blob else None


def unreadable(body: bytes) -> GoogleReply:
    """A reply that is none of the API."""
    found = GoogleReply()
    found.add(Error(message=f"the reply is none of the API: {clean(body[:2000].decode(errors='replace'))}"))
    return found


def pretty(value: Any) -> str:
    """A value as text for people."""
    return clean(json.dumps(value, indent=2, ensure_ascii=False, default=str))


# -- contents ----------------------------------------------------------------------------------------------------------


def join_chunks(chunks: Iterable[Any]) -> Record:
    """The reply that the chunks are; one that came whole is a chunk alone."""
    body: Record = {}
    candidates: dict[int, Record] = {}
    for chunk in chunks:
        said = {**camel(chunk)} if isinstance(chunk, dict) else {"error": {"message": f"not a reply: {chunk!r:.200}"}}
        given = said.pop("candidates", None)
        said["usageMetadata"] = {**inner(body, "usageMetadata"), **inner(said, "usageMetadata")}
        body |= said
        for one in map(camel, (one for one in given if isinstance(one, dict))) if isinstance(given, list) else ():
            index = one.get("index")
            own = candidates.setdefault(index if type(index) is int else 0, {"parts": []})
            own["parts"] += [part for content in contents_of(one.get("content")) for part in content["parts"]]
            own |= {key: value for key, value in one.items() if key != "content"}
    whole = (candidates[index] for index in sorted(candidates))
    body["candidates"] = [{**one, "parts": joined(one["parts"])} for one in whole]
    return body


def token_in(chunks: Iterable[Any]) -> str:
    """The token with which a reply that is not at its end can be continued; empty where there is none."""
    first: Record = next(iter(join_chunks(chunks)["candidates"]), {})
    return "" if _is_finished(first) else text(first, "continuationToken")


def _is_finished(candidate: Record) -> bool:
    return text(candidate, "finishReason") not in ("", "CONTINUATION")


def read_contents(
    hops: Sequence[Sequence[Any]], ids: CallIds, model: str, problem: BaseException | None, *, streamed: bool
) -> GoogleReply:
    """A reply of `generateContent`, whole or in chunks; in the chunks of each request, where it was continued."""
    body = join_chunks(chunk for chunks in hops for chunk in chunks)
    candidates: list[Record] = body["candidates"]
    first = candidates[0] if candidates else {"parts": []}
    found = GoogleReply()
    answered = text(body, "modelVersion") or model
    events = list(content_events(ids.named({"role": MODEL, "parts": first["parts"]}), answered))
    if events and all(isinstance(event, Output) and not event.why for event in events):
        events.insert(0, Response(model=answered))  # a signature alone, which is no entry
    found.add_all(event.replace(api_id=text(body, "responseId")) for event in events)
    for other in candidates[1:]:
        words = "".join(text(part, "text") for part in other["parts"] if isinstance(part, dict))
        entry = {"role": "assistant", "content": words or pretty(other["parts"])}
        found.add(Output(raw=encode(other)), entry=entry, kind="choice", choice=other.get("index"))
    found.metadata = {name: body.get(key) or None for key, name in _BODY.items()}
    found.metadata |= {name: first.get(key) for key, name in _CANDIDATE.items()}
    reason = text(first, "finishReason")
    _tell_blocked(found, body, reason)
    about = {"model": answered, "api_id": text(body, "responseId"), "stop_reason": reason.lower()}
    found.usage = _used(hops, about)
    found.metadata["requests"] = len(hops) if len(hops) > 1 else None
    finished = bool(candidates) and all(map(_is_finished, candidates))
    whole = (
        finished
        or (not streamed and reason != "CONTINUATION")
        or bool(inner(body, "promptFeedback").get("blockReason"))
    )
    return found.ended(problem, body.get("error"), whole=whole)


def _used(hops: Sequence[Sequence[Any]], about: dict[str, Any]) -> Metric | None:
    """What all requests of a reply used."""
    total: Metric | None = None
    for chunks in hops:
        own = usage_of(join_chunks(chunks).get("usageMetadata"), **about)
        if total is not None and own is not None:
            thought = [one for one in (total.reasoning_tokens, own.reasoning_tokens) if one is not None]
            own = own.with_tokens(total.tokens + own.tokens).replace(reasoning_tokens=sum(thought) if thought else None)
        total = own or total
    return total


def _tell_blocked(found: GoogleReply, body: Record, reason: str) -> None:
    """Say what the provider keeps back, where it says nothing else."""
    feedback = inner(body, "promptFeedback")
    if blocked := text(feedback, "blockReason"):
        why = text(feedback, "blockReasonMessage") or blocked
        found.add(Error(message=f"the prompt was blocked: {why}"), kind="refusal")
    elif reason in BLOCKED:
        why = found.metadata.get("finish_message") or reason
        found.add(Error(message=f"the reply was blocked: {clean(str(why))}"), kind="refusal")
    elif not found.events and reason not in ("", "STOP", "MAX_TOKENS", "CONTINUATION"):
        found.add(Error(message=f"the reply has no content: {reason}"))
