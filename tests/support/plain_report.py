"""A second count of what `stats SESSION --details` tells, made from what is known of the files and nothing of Harken.

It takes Claude Code's and Codex's records as plain JSON, writes them down as steps, and counts the steps as
docs/guides/numbers.md says in words. `plain_count` counts tokens, prompts and calls in the same way.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from . import plain_count
from .plain_count import Record, Usage, added, objects, weight

FIVE_MINUTES = 300_000_000
ENDS = {
    "response": "response",
    "call": "response",
    "result": "tool",
    "thinking": "thinking",
    "compaction": "compaction",
}
"""What the time before a step was spent on; a prompt is a person's turn, and everything else is idle."""


class Step(NamedTuple):
    """Something that an agent's record says."""

    agent: str
    kind: str
    """`prompt`, `injected`, `response`, `thinking`, `call`, `result` or `compaction`."""
    time: int | None
    text: str = ""
    tool: str = ""
    call: str = ""
    failed: bool = False
    record: str = ""
    """What the record is called in every file that has a copy of it."""


class Asked(NamedTuple):
    """What a record says that a request used."""

    agent: str
    key: tuple[str, str]
    time: int | None
    usage: Usage
    at: int
    """How many steps came before."""
    embedded: bool = False
    """Another agent's record tells it."""

    @property
    def context(self) -> int:
        """Tokens that stood before the model."""
        return sum(self.usage[field] or 0 for field in ("input", "cache_read", "cache_write"))


class Compacted(NamedTuple):
    """A compaction as its record tells it."""

    agent: str
    time: int | None
    at: int
    trigger: str
    before: int | None
    after: int | None


class Steps:
    """A file."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.times: list[tuple[str, int]] = []
        """Every instant that a record has, whatever it says, with its agent."""
        self.asked: list[Asked] = []
        self.compacted: list[Compacted] = []
        self.errors = 0


def micros(stamp: Any) -> int | None:
    """An instant as RFC 3339 has it, in microseconds."""
    try:
        instant = datetime.fromisoformat(stamp)
    except (TypeError, ValueError):
        return None
    instant = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
    return (instant - datetime(1970, 1, 1, tzinfo=UTC)) // (datetime.resolution)


# -- Claude Code -------------------------------------------------------------------------------------------------------


def claude(data: bytes) -> Steps:
    found = Steps()
    owners: dict[str, str] = {}
    for record in objects(data):
        time = micros(record.get("timestamp"))
        agent = _agent(record, owners)
        found.times += [] if time is None else [(agent, time)]
        _claude_request(found, record, agent, found.times[-1][1] if found.times else None)
        if record.get("type") == "system" and record.get("subtype") == "compact_boundary":
            about = record.get("compactMetadata") or {}
            facts = (about.get("trigger") or "", about.get("preTokens"), about.get("postTokens"))
            found.compacted.append(Compacted(agent, time, len(found.steps), *facts))
        found.errors += record.get("type") == "system" and record.get("subtype") == "api_error"
        found.errors += record.get("isApiErrorMessage") is True
        name = str(record.get("uuid") or "")
        name = name if len(name) == len("00000000-0000-4000-8000-000000000000") else ""
        found.steps += [step._replace(agent=agent, time=time, record=name) for step in _claude(record)]
    return found


def _claude_request(found: Steps, record: Record, agent: str, time: int | None) -> None:
    """What the record, or the sub-agent's record that it embeds, says that a request used."""
    embedded = record.get("type") == "progress"
    if embedded:
        data = plain_count._object(record.get("data"))
        agent, record = str(data.get("agentId") or ""), plain_count._object(data.get("message"))
    elif record.get("type") != "assistant":
        return
    body = plain_count._object(record.get("message"))
    if isinstance(body.get("usage"), dict) and body.get("model") != "<synthetic>" and (body.get("id") or not embedded):
        key = (body.get("id") or record.get("uuid") or "", record.get("requestId") or "")
        usage = plain_count._claude_usage(body["usage"])
        found.asked.append(Asked(agent, key, time, usage, len(found.steps), embedded))


def _agent(record: Record, owners: dict[str, str]) -> str:
    """The agent that a record names, or the first record of the side chain it is in."""
    if record.get("isSidechain") is not True:
        return str(record.get("agentId") or "") if record.get("type") in ("user", "assistant", "system") else ""
    name = record.get("agentId") or owners.get(str(record.get("parentUuid"))) or record.get("uuid")
    owners[str(record.get("uuid"))] = str(name)
    return str(name)


def _claude(record: Record) -> Iterator[Step]:
    kind = record.get("type")
    body = record.get("message") if isinstance(record.get("message"), dict) else {}
    content = body.get("content")  # type: ignore[union-attr]
    if kind == "system" and record.get("subtype") == "compact_boundary":
        yield Step("", "compaction", None)
    elif kind == "assistant":
        made_up = body.get("model") == "<synthetic>" or record.get("isApiErrorMessage")  # type: ignore[union-attr]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content or []:
            yield from _claude_block(block, bool(made_up))
    elif kind == "user":
        results = (
            [b for b in content if isinstance(b, dict) and b.get("type") == "tool_result"]
            if isinstance(content, list)
            else []
        )
        for block in results:
            yield Step("", "result", None, call=block.get("tool_use_id") or "", failed=block.get("is_error") is True)
        if not results:
            yield from _claude_words(content, record)
    elif kind == "attachment":
        inner = record.get("attachment")
        if isinstance(inner, dict) and inner.get("type") == "queued_command":
            typed = inner.get("commandMode") in (None, "prompt")
            for step in _claude_words(inner.get("prompt"), inner):
                yield step if typed else step._replace(kind="injected")


def _claude_block(block: Record, made_up: bool) -> Iterator[Step]:
    kind = str(block.get("type"))
    if kind == "text" and not made_up:
        yield Step("", "response", None, text=block["text"])
    elif kind in ("thinking", "redacted_thinking"):
        yield Step("", "thinking", None)
    elif kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
        yield Step(
            "", "call", None, text=json.dumps(block.get("input")), tool=block["name"], call=block.get("id") or ""
        )
    elif kind.endswith("_tool_result"):
        yield Step("", "result", None, call=block.get("tool_use_id") or "")


def _claude_words(content: Any, record: Record) -> Iterator[Step]:
    place = plain_count._claude_place(content, record)
    if place:
        blocks = [content] if isinstance(content, str) else content
        texts = [
            b if isinstance(b, str) else b["text"] for b in blocks if isinstance(b, str) or b.get("type") == "text"
        ]
        origin = record.get("origin")
        by_field = (isinstance(origin, dict) and origin.get("kind") == "human") or record.get("promptSource")
        typed = texts if by_field else [text for text in texts if plain_count._typed(text)]
        yield Step("", "prompt" if place == "human" else "injected", None, text="\n".join(typed))


# -- Codex -------------------------------------------------------------------------------------------------------------


def codex(data: bytes) -> Steps:
    found = Steps()
    whole = list(objects(data))
    records = [plain_count._unwrapped(record) for record in whole]
    typed = {text for kind, payload in records if (text := plain_count._codex_typed(kind, payload)) is not None}
    meta: Record = next((payload for kind, payload in records if kind == "session_meta"), {})
    told = meta.get("source")
    spawned = bool(meta.get("parent_thread_id")) or (isinstance(told, dict) and "subagent" in told)
    roles = {payload.get("role") or payload.get("type") for kind, payload in records if kind == "response_item"}
    for place, (record, (kind, payload)) in enumerate(zip(whole, records, strict=True)):
        time = micros(record.get("timestamp", record.get("created_at")))
        found.times += [] if time is None else [("", time)]
        found.errors += kind == "event_msg" and payload.get("type") in ("error", "stream_error")
        said = _codex_steps(kind, payload, typed, spawned, roles)
        found.steps += [step._replace(time=time, call=step.call or f"@{place}") for step in said]
    requests = plain_count.count_codex(data).requests
    found.asked = [Asked("", key, None, usage, 0) for key, usage in requests.items()]
    return found


def _codex_steps(kind: str, payload: Record, typed: set[str], spawned: bool, roles: set[Any]) -> Iterator[Step]:
    name = payload.get("type")
    if kind == "compacted":
        yield Step("", "compaction", None)
    elif kind == "inter_agent_communication":
        yield Step("", "injected", None)
    elif kind == "response_item":
        yield from _codex_item(payload, typed, spawned)
    elif kind == "event_msg" and name == "user_message" and "user" not in roles:
        yield Step("", "injected" if spawned else "prompt", None, text=payload["message"])
    elif kind == "event_msg" and name == "agent_message" and "assistant" not in roles:
        yield Step("", "response", None, text=payload["message"])
    elif kind == "event_msg" and name == "agent_reasoning" and "reasoning" not in roles:
        yield Step("", "thinking", None)


def _codex_item(item: Record, typed: set[str], spawned: bool) -> Iterator[Step]:
    kind, role = str(item.get("type")), item.get("role")
    seen = plain_count.Count()
    plain_count._codex_item(seen, "", item, typed, spawned)
    parts = item.get("content") if isinstance(item.get("content"), list) else [{"text": item.get("content")}]
    texts = [part["text"] for part in parts or [] if isinstance(part, dict) and isinstance(part.get("text"), str)]
    if kind == "message" and role == "assistant":
        yield Step("", "response", None, text="\n".join(texts))
    elif kind == "reasoning":
        yield Step("", "thinking", None)
    call = item.get("call_id") or item.get("id") or ""
    for _, tool in seen.calls:
        given = next((item[key] for key in ("arguments", "input", "action") if item.get(key) is not None), None)
        yield Step("", "call", None, text=given if isinstance(given, str) else json.dumps(given), tool=tool, call=call)
    for _, place in seen.places:
        if place == "tool_result":
            output = item.get("output")
            bad = isinstance(output, dict) and output.get("success") is False
            yield Step("", "result", None, call=call, failed=bad)
        elif place == "human":
            whole = "\n".join(texts) in typed
            words = texts if whole else [text for text in texts if not plain_count._put_in(text)]
            yield Step("", "prompt", None, text="\n".join(words))
        else:
            yield Step("", "injected", None)


# -- counting ----------------------------------------------------------------------------------------------------------


class Spent(NamedTuple):
    """A stretch of time."""

    agent: str
    state: str
    start: int
    end: int


def spent(steps: list[Step]) -> list[Spent]:
    """From the latest instant that the agent had before to each step, by what the step is."""
    latest: dict[str, int] = {}
    found: list[Spent] = []
    for step in steps:
        if step.time is None:
            continue
        before = latest.get(step.agent, step.time)
        if step.time > before:
            person = "idle" if step.time - before > FIVE_MINUTES else "prompt"
            state = person if step.kind == "prompt" else ENDS.get(step.kind, "idle")
            found.append(Spent(step.agent, state, before, step.time))
        latest[step.agent] = max(before, step.time)
    return found


def by_state(stretches: list[Spent]) -> dict[str, int]:
    """Microseconds by what they were spent on."""
    sums: Counter[str] = Counter()
    for one in stretches:
        sums[one.state] += one.end - one.start
    return dict(sums)


def by_window(stretches: list[Spent], size: int) -> dict[int, dict[str, int]]:
    """The same in windows, each of which begins at a multiple of its size."""
    found: dict[int, Counter[str]] = {}
    for one in stretches:
        for place in range(one.start // size, one.end // size + 1):
            inside = min(one.end, (place + 1) * size) - max(one.start, place * size)
            if inside > 0:
                found.setdefault(place * size, Counter())[one.state] += inside
    return {start: dict(sums) for start, sums in found.items()}


def by_hour(steps: Iterable[Step | Asked]) -> dict[tuple[int, int], int]:
    """Steps by weekday (Monday is 0) and hour in Greenwich."""
    times = [datetime.fromtimestamp(step.time / 1e6, UTC) for step in steps if step.time is not None]
    return dict(Counter((time.weekday(), time.hour) for time in times))


class Tool(NamedTuple):
    """What became of a tool's calls."""

    calls: int
    failed: int
    unanswered: int
    retries: int
    durations: list[int]


def each_once(steps: list[Step]) -> list[Step]:
    """Calls and results without those that another record tells again: of one agent, under one id, at one time."""
    found: dict[tuple[object, ...], Step] = {}
    for place, step in enumerate(steps):
        if step.kind in ("call", "result"):
            is_known_by_id = step.call and step.time is not None
            key = (step.call, step.time, step.tool, step.text) if is_known_by_id else (place,)
            found.setdefault((step.kind, step.agent, *key), step)
    return list(found.values())


def by_tool(steps: list[Step]) -> dict[str, Tool]:
    """A result is that of the last call by its id that has none; without times, of the first. One that came before
    every call by its id is that of one that is left in the end."""
    asked: list[tuple[Step, list[Step]]] = []
    early: list[Step] = []
    for step in each_once(steps):
        if step.kind == "call":
            asked.append((step, []))
        elif not _end(asked, step):
            early.append(step)
    for step in early:
        _end(asked, step)
    found: dict[str, Tool] = {}
    for tool in {call.tool for call, _ in asked}:
        mine = [(call, results[0] if results else None) for call, results in asked if call.tool == tool]
        found[tool] = Tool(
            len(mine),
            sum(result is not None and result.failed for _, result in mine),
            sum(result is None for _, result in mine),
            _retries(mine),
            [
                max(0, result.time - call.time)
                for call, result in mine
                if result is not None and result.time is not None and call.time is not None
            ],
        )
    return found


def _end(asked: list[tuple[Step, list[Step]]], result: Step) -> bool:
    named = [one for one in asked if result.call and (one[0].agent, one[0].call) == (result.agent, result.call)]
    waiting = [(call, results) for call, results in named if not results]
    if waiting:
        waiting[-1 if waiting[-1][0].time is not None else 0][1].append(result)
    return bool(waiting)


def _retries(mine: list[tuple[Step, Step | None]]) -> int:
    again = 0
    for agent in {call.agent for call, _ in mine}:
        own = [(call, result) for call, result in mine if call.agent == agent]
        for (first, ended), (second, _) in itertools.pairwise(own):
            again += ended is not None and ended.failed and first.text == second.text
    return again


FILES = {
    "Read": ("file_path", "read"),
    "Edit": ("file_path", "edit"),
    "MultiEdit": ("file_path", "edit"),
    "Write": ("file_path", "write"),
    "NotebookEdit": ("notebook_path", "edit"),
    "NotebookRead": ("notebook_path", "read"),
    "view_image": ("path", "read"),
}
"""The tools that take a file, the argument that names it, and what they do with it."""
PATCHES = {
    "*** Add File: ": "write",
    "*** Update File: ": "edit",
    "*** Delete File: ": "delete",
    "*** Move to: ": "write",
}
"""How the lines of a patch begin that name a file; in whatever tool it is."""


def by_file(steps: list[Step]) -> dict[str, Counter[str]]:
    """What calls do to files."""
    found: dict[str, Counter[str]] = {}
    for step in each_once(steps):
        for path, op in _files(step) if step.kind == "call" else ():
            found.setdefault(path, Counter())[op] += 1
    return found


def _files(call: Step) -> set[tuple[str, str]]:
    try:
        given = json.loads(call.text)
    except ValueError:
        given = call.text
    lines = [line.strip() for text in _texts(given) for line in text.split("\n")]
    if any("*** Begin Patch" in line for line in lines):
        return {(line[len(head) :], op) for line in lines for head, op in PATCHES.items() if line.startswith(head)}
    key, op = FILES.get(call.tool, ("", ""))
    return {(given[key], op)} if key and given.get(key) else set()


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(inner)


class Share(NamedTuple):
    """What some of the agents did."""

    agents: int
    responses: int
    calls: int
    requests: int
    tokens: Usage


def delegation(found: Steps) -> tuple[Share, Share]:
    """What the session's own agent did, which has no name in its file (where everybody has one, it is the agent of the
    first step), and what the others did. A request that both tell of is the others'."""
    agents = [step.agent for step in found.steps]
    own = {""} if "" in agents or not agents else {"", agents[0]}
    theirs = _requests([asked for asked in found.asked if asked.agent not in own])
    mine = _requests([asked for asked in found.asked if asked.agent in own])
    others = {one.agent for one in [*found.steps, *found.asked]} - own
    did = [step for step in found.steps if step.agent in own], [step for step in found.steps if step.agent not in own]
    left = {key: usage for key, usage in mine.items() if key not in theirs}
    return _share(1, did[0], left), _share(len(others), did[1], theirs)


def _share(agents: int, steps: list[Step], requests: dict[tuple[str, str], Usage]) -> Share:
    kinds = Counter(step.kind for step in steps)
    return Share(agents, kinds["response"], kinds["call"], len(requests), added(list(requests.values())))


def _requests(asked: list[Asked]) -> dict[tuple[str, str], Usage]:
    """Each once, with the largest output; one that is embedded counts where its message is told nowhere else."""
    known = {one.key[0] for one in asked if not one.embedded}
    best: dict[tuple[str, str], Usage] = {}
    for one in asked:
        if one.embedded and one.key[0] in known:
            continue
        if one.key not in best or weight(one.usage) > weight(best[one.key]):
            best[one.key] = one.usage
    return best


def curve(found: Steps) -> list[int]:
    """Tokens before the model, request by request, as the last record of each tells."""
    last = {one.key: one.context for one in found.asked if not one.embedded and one.context}
    return list(last.values())


def compactions(found: Steps) -> list[tuple[str, int | None, int | None, int | None]]:
    """The trigger, the tokens before and after, and how long it had been since the one before or the first record."""
    begun: dict[str, int] = {}
    for agent, time in found.times:
        begun.setdefault(agent, time)
    told = []
    for place, one in enumerate(found.compacted):
        mine = [asked for asked in found.asked if asked.agent == one.agent and not asked.embedded and asked.context]
        ends = [other.at for other in found.compacted[place + 1 :] if other.agent == one.agent]
        earlier = [asked.context for asked in mine if asked.at <= one.at]
        later = [asked.context for asked in mine if one.at < asked.at <= min(ends, default=len(found.steps))]
        before = one.before if one.before is not None else earlier[-1] if earlier else None
        after = one.after if one.after is not None else later[0] if later else None
        start = begun.get(one.agent)
        told.append((one.trigger, before, after, None if None in (one.time, start) else max(0, one.time - start)))  # type: ignore[operator]
        if one.time is not None:
            begun[one.agent] = one.time
    return told


def peak(spans: list[tuple[int, int]]) -> int:
    """The most sessions that go on at one instant; one that ends as another begins does not meet it."""
    return max((sum(start <= now < max(end, start + 1) for start, end in spans) for now, _ in spans), default=0)


def flow(path: Path) -> dict[tuple[str, str], tuple[int, int]]:
    """Of one of Harken's own logs: messages and characters by who said them first and who heard them."""
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    said = {line["message_id"]: line for line in reversed(lines)}
    edges: dict[tuple[str, str], tuple[int, int]] = {}
    for line in lines:
        first = line
        while first and first.get("substance"):
            first = said.get(first["substance"])
        if first and first is not line and first["agent_id"] != line["agent_id"]:
            edge = (first["agent_id"], line["agent_id"])
            messages, characters = edges.get(edge, (0, 0))
            edges[edge] = (messages + 1, characters + len(line.get("content") or ""))
    return edges


def results(data: bytes) -> list[Record]:
    """What runs say at their end, on the stream that Claude Code prints: one object a line, or one list."""
    try:
        whole = json.loads(data)
    except ValueError:
        whole = list(objects(data))
    records = whole if isinstance(whole, list) else [whole]
    return [record for record in records if record.get("type") == "result" and "subtype" in record]
