"""What requests used, each once.

A request of the main conversation is told twice: by a telemetry record, and right behind it by `usageMetadata` of the
answer. A telemetry record alone tells of requests that left no answer in the file: a summary, an attempt that was made
again, a helper. So the telemetry counts; an answer counts where no telemetry with its figures stands close before it,
as in files of older versions or of other hands, and a telemetry record that comes late repeats its answer.

Requests of a sub-agent are in the telemetry of the file that started it and in the file of its own. The first are
`embedded` and count where the sub-agent's own file is not there; that of a hidden helper never is.

A fork copies records with their uuids, so requests are named by those.
"""

from __future__ import annotations

import re
from typing import Any, cast

from harken.events import Metric
from harken.events.base import LARGEST_COUNT, clean, figure
from harken.events.runs import EMBEDDED
from harken.formats.kit.gemini import metric_of, usage_of
from harken.formats.kit.jsonl import Record

from .records import inner, text

RESPONSE, FAILURE = "qwen-code.api_response", "qwen-code.api_error"
NEAR = 16
"""How many records may stand between the two reports of one request."""
_TOLD = {
    "promptTokenCount": "input_token_count",
    "candidatesTokenCount": "output_token_count",
    "cachedContentTokenCount": "cached_content_token_count",
    "thoughtsTokenCount": "thoughts_token_count",
    "totalTokenCount": "total_token_count",
}
ReportedTokens = tuple[int, int, int]


def event_of(record: Record) -> Record:
    """What a telemetry record tells."""
    payload = record.get("systemPayload")
    event = payload.get("uiEvent") if isinstance(payload, dict) else None
    return event if isinstance(event, dict) else {}


def is_response(event: Record) -> bool:
    """Whether it tells of a request that was answered."""
    return event.get("event.name") == RESPONSE


def agent_key(agent: str, session: str = "") -> str:
    """The name under which the requests of a sub-agent are known, in its own file and in that of its parent. Telemetry
    before 0.23 does not tell the agent's id: then all agents of one name in a session are known by one."""
    return f"qwen:{session}#{agent}" if session else f"qwen:{agent}"


_VERSION = re.compile(r"(\d{1,4})\.(\d{1,4})")


def _tells_ids(record: Record) -> bool:
    """Whether the version that wrote a record tells the ids of agents in its telemetry."""
    found = _VERSION.match(text(record, "version"))
    return found is None or (int(found[1]), int(found[2])) >= (0, 23)


def _figures(usage: Record, prompt: str, made: str, total: str) -> ReportedTokens:
    return figure(usage.get(prompt)) or 0, figure(usage.get(made)) or 0, figure(usage.get(total)) or 0


_IN_ANSWER = ("promptTokenCount", "candidatesTokenCount", "totalTokenCount")
_IN_EVENT = tuple(_TOLD[name] for name in _IN_ANSWER)


class QwenMeter:
    """Tells which records report a request, one after the other as they stand in the file."""

    __slots__ = ("_age", "_figures", "_is_answer")

    def __init__(self) -> None:
        self._figures: ReportedTokens | None = None
        self._is_answer = False
        self._age = 0

    @property
    def waits(self) -> bool:
        """Whether the next records may repeat a report, so that no cut may fall before them."""
        return self._figures is not None

    def clear(self) -> None:
        """Something was heard: what follows is of another request."""
        self._figures = None

    def age(self) -> None:
        """A record came that reports nothing."""
        if self._figures is not None:
            self._age += 1
            if self._age >= NEAR:
                self._figures = None

    def _remember(self, figures: ReportedTokens, *, is_answer: bool) -> None:
        self._figures, self._is_answer, self._age = figures, is_answer, 0

    def answer(self, record: Record) -> bool:
        """Whether the `usageMetadata` of an answer is the report of its request."""
        usage = record.get("usageMetadata")
        if not isinstance(usage, dict) or not usage:
            self.age()
            return False
        figures = _figures(usage, *_IN_ANSWER)
        if self._figures == figures and not self._is_answer:
            self._figures = None
            return False
        self._remember(figures, is_answer=True)
        return True

    def response(self, event: Record) -> bool:
        """Whether a telemetry record is the report of its request."""
        if "subagent_id" in event or "subagent_name" in event:
            self.age()
            return True
        figures = _figures(event, *_IN_EVENT)
        if self._figures == figures and self._is_answer:
            self._figures = None
            return False
        self._remember(figures, is_answer=False)
        return True


def answer_metric(record: Record, uuid: str) -> Metric | None:
    """What an answer's own figures say; `uuid` names its record."""
    usage = record["usageMetadata"]
    model, agent = clean(text(record, "model")), clean(text(record, "agentId"))
    if agent and record.get("isSidechain") is True:
        name = clean(text(record, "agentName"))
        key = agent_key(agent) if _tells_ids(record) or not name else agent_key(name, clean(text(record, "sessionId")))
        return usage_of(usage, model=model, api_id=key, request_id=uuid)
    return usage_of(usage, model=model, api_id=uuid)


def plain_tokens(event: Record) -> tuple[int, int, int] | None:
    """Input, output and what came from the cache, of a telemetry record that has every figure and some above zero, as
    nearly all have; the same that `telemetry_metric` says, in a quarter of the time."""
    counts = [event.get(name) for name in _TOLD.values()]
    for count in counts:
        if type(count) is not int or not 0 <= count < LARGEST_COUNT:
            return None
    prompt, made, cached, thought, total = cast("list[int]", counts)
    if not (prompt or made or total):
        return None
    return max(0, prompt - cached), made if prompt + made == total else made + thought, cached


def telemetry_key(record: Record, event: Record, uuid: str) -> tuple[str, str, str]:
    """Under which key the request of a telemetry record counts, and the sub-agent that it is of, if any."""
    if "subagent_id" not in event and "subagent_name" not in event:
        return uuid, "", ""
    agent, name = clean(text(event, "subagent_id")), clean(text(event, "subagent_name"))
    if agent:
        return agent_key(agent), uuid, agent
    # A fork tells the requests of the agents of the session that it copies.
    session = text(inner(record, "forkedFrom"), "sessionId") or text(record, "sessionId")
    return (agent_key(name, clean(session)), uuid, name) if name else (uuid, "", "")


def telemetry_metric(record: Record, uuid: str) -> Metric | None:
    """What a telemetry record's figures say. Zeros alone say that nobody counted."""
    event = event_of(record)
    about: dict[str, Any] = {"model": clean(text(event, "model"))}
    took = event.get("duration_ms")
    if isinstance(took, int) and 0 <= took < 1 << 40:
        about["duration_seconds"] = took / 1000
    api_id, request_id, agent = telemetry_key(record, event, uuid)
    about |= {"api_id": api_id, "request_id": request_id}
    if agent:
        about |= {"agent_id": agent, "scope": EMBEDDED}
    prompt, made, cached, thought, total = [figure(event.get(name)) for name in _TOLD.values()]
    if not (prompt or made or total):
        return Metric(**about)
    return metric_of((prompt, cached, made, thought, None, total), **about)
