"""Small homes of Claude Code and Codex in which usage is told more than once, each with what was really used.

Every way in which tools like this one are known to count twice has a case. What a case used is written down request by
request; nothing of Harken is asked.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from support.rollouts import Rollout

Record = dict[str, Any]
OPUS, SONNET, GPT = "claude-opus-4-6", "claude-sonnet-4-5-20250929", "gpt-5.5"
LONG = SONNET + " above 200,000 tokens"
PRICES = {
    OPUS: ("5", "25", "0.5", "6.25", "10"),
    SONNET: ("3", "15", "0.3", "3.75", "6"),
    GPT: ("5", "30", "0.5", "5", "5"),
    LONG: ("6", "22.5", "0.6", "7.5", "12"),
}
"""Dollars for a million tokens: input, output, cache read, written for five minutes, for an hour."""


class Used(NamedTuple):
    """What one request really used."""

    model: str
    input: int
    output: int
    cache_read: int = 0
    cache_5m: int = 0
    cache_1h: int = 0

    @property
    def micros(self) -> Fraction:
        return sum((Fraction(p) * n for p, n in zip(PRICES[self.model], self[1:], strict=True)), Fraction(0))


class Case(NamedTuple):
    name: str
    write: Callable[[Path], list[Used]]


CASES: list[Case] = []


def case(write: Callable[[Path], list[Used]]) -> Callable[[Path], list[Used]]:
    CASES.append(Case(write.__name__.replace("_", " "), write))
    return write


# -- lines ------------------------------------------------------------------------------------------------------------


def said(session: str, number: int, parent: int | None = None, **more: Any) -> Record:
    return {
        "type": "user",
        "uuid": f"{session}-{number}",
        "parentUuid": None if parent is None else f"{session}-{parent}",
        "sessionId": session,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/work/demo",
        "version": "2.1.100",
        "timestamp": f"2026-03-01T10:{number // 60:02d}:{number % 60:02d}.000Z",
        "message": {"role": "user", "content": f"question {number}"},
    } | more


def answered(session: str, number: int, used: Used, message: str, *, output: int | None = None, **more: Any) -> Record:
    usage = {
        "input_tokens": used.input,
        "output_tokens": used.output if output is None else output,
        "cache_read_input_tokens": used.cache_read,
        "cache_creation_input_tokens": used.cache_5m + used.cache_1h,
        "cache_creation": {"ephemeral_5m_input_tokens": used.cache_5m, "ephemeral_1h_input_tokens": used.cache_1h},
    }
    body = {"id": message, "type": "message", "role": "assistant", "model": used.model, "usage": usage}
    body |= {"content": [{"type": "text", "text": f"answer {number}"}], "stop_reason": "end_turn"}
    record = said(session, number, number - 1)
    return record | {"type": "assistant", "requestId": f"req_{message}", "message": body} | more


def claude(home: Path, session: str, *records: Record, below: str = "") -> None:
    path = home / "claude/projects/-work-demo" / (below or f"{session}.jsonl")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(_line(record) for record in records))


def codex(home: Path, thread: str, rollout: Rollout) -> None:
    path = home / f"codex/sessions/2026/01/02/rollout-2026-01-02T00-00-00-{thread}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(_line(json.loads(line)) for line in rollout.lines))


def _line(record: Record) -> str:
    """As the programs write it: others look for `"usage":{` to the letter."""
    return json.dumps(record, separators=(",", ":")) + "\n"


def name(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


# -- the ways to count twice ------------------------------------------------------------------------------------------


@case
def several_lines_of_one_message(home: Path) -> list[Used]:
    one = Used(OPUS, 10, 200, 3000, 400, 50)
    lines = [answered(name(1), number, one, "msg_1") for number in (2, 3, 4)]
    claude(home, name(1), said(name(1), 1), *lines)
    return [one]


@case
def partial_reports_while_it_streams(home: Path) -> list[Used]:
    one = Used(OPUS, 10, 200, 3000, 400)
    lines = [answered(name(1), number, one, "msg_1", output=output) for number, output in ((2, 1), (3, 8), (4, 200))]
    claude(home, name(1), said(name(1), 1), *lines)
    return [one]


@case
def a_resumed_session_in_a_new_file(home: Path) -> list[Used]:
    first, second = Used(OPUS, 10, 200), Used(OPUS, 20, 300, 1000)
    before = [said(name(1), 1), answered(name(1), 2, first, "msg_1")]
    claude(home, name(1), *before)
    copies = [record | {"sessionId": name(2)} for record in before]
    after = [said(name(2), 3, parentUuid=f"{name(1)}-2"), answered(name(2), 4, second, "msg_2")]
    claude(home, name(2), *copies, *after)
    return [first, second]


@case
def a_fork_with_new_uuids(home: Path) -> list[Used]:
    first, second = Used(SONNET, 10, 200), Used(SONNET, 20, 300)
    claude(home, name(1), said(name(1), 1), answered(name(1), 2, first, "msg_1"))
    forked = [
        said(name(2), 1, forkedFrom={"sessionId": name(1), "messageUuid": f"{name(1)}-1"}),
        answered(name(2), 2, first, "msg_1", forkedFrom={"sessionId": name(1), "messageUuid": f"{name(1)}-2"}),
    ]
    claude(home, name(2), *forked, said(name(2), 3, 2), answered(name(2), 4, second, "msg_2"))
    return [first, second]


@case
def a_sub_agent_in_a_file_of_its_own(home: Path) -> list[Used]:
    first, second = Used(OPUS, 10, 200), Used(SONNET, 20, 300, 4000)
    claude(home, name(1), said(name(1), 1), answered(name(1), 2, first, "msg_1"), _progress(second, "msg_2"))
    side = {"isSidechain": True, "agentId": "a1"}
    agent = [said(name(1), 11, **side), answered(name(1), 12, second, "msg_2", **side)]
    claude(home, name(1), *agent, below=f"{name(1)}/subagents/agent-a1.jsonl")
    return [first, second]


@case
def a_sub_agent_that_only_its_parent_tells_of(home: Path) -> list[Used]:
    first, second = Used(OPUS, 10, 200), Used(SONNET, 20, 300)
    records = [said(name(1), 1), answered(name(1), 2, first, "msg_1"), _progress(second, "msg_2")]
    claude(home, name(1), *records, _progress(second, "msg_2"))
    return [first, second]


def _progress(used: Used, message: str) -> Record:
    inner = answered(name(1), 12, used, message, isSidechain=True, agentId="a1")
    data = {"type": "agent_progress", "agentId": "a1", "prompt": "look", "message": inner}
    return said(name(1), 3, 2) | {"type": "progress", "data": data, "parentToolUseID": "toolu_1"}


@case
def sub_agents_between_the_lines_of_their_session(home: Path) -> list[Used]:
    first, second = Used(OPUS, 10, 200), Used(SONNET, 20, 300)
    side = {"isSidechain": True, "agentId": "a1"}
    records = [said(name(1), 1), answered(name(1), 2, first, "msg_1")]
    records += [said(name(1), 11, **side), answered(name(1), 12, second, "msg_2", **side)]
    claude(home, name(1), *records)
    return [first, second]


@case
def what_the_harness_made_up(home: Path) -> list[Used]:
    first = Used(OPUS, 10, 200)
    made_up = answered(name(1), 4, Used(OPUS, 999, 999), "msg_2")
    made_up["message"]["model"] = "<synthetic>"
    claude(home, name(1), said(name(1), 1), answered(name(1), 2, first, "msg_1"), said(name(1), 3, 2), made_up)
    return [first]


@case
def a_copy_of_the_file_in_another_folder(home: Path) -> list[Used]:
    first = Used(OPUS, 10, 200, 0, 0, 1000)
    records = [said(name(1), 1), answered(name(1), 2, first, "msg_1")]
    claude(home, name(1), *records)
    claude(home, name(1), *records, below=f"../-work-backup/{name(1)}.jsonl")
    return [first]


@case
def a_long_request(home: Path) -> list[Used]:
    """Paid at the tier's prices as a whole, as the page of the time has it."""
    claude(home, name(1), said(name(1), 1), answered(name(1), 2, Used(SONNET, 250_000, 100), "msg_1"))
    return [Used(LONG, 250_000, 100)]


@case
def two_runtimes(home: Path) -> list[Used]:
    first, second = Used(OPUS, 10, 200), Used(GPT, 60, 20, 40)
    claude(home, name(1), said(name(1), 1), answered(name(1), 2, first, "msg_1"))
    codex(home, name(2), _thread(name(2), second))
    return [first, second]


@case
def running_totals_that_are_repeated(home: Path) -> list[Used]:
    steps = [Used(GPT, 60, 20, 40), Used(GPT, 30, 10, 70), Used(GPT, 5, 7, 100)]
    codex(home, name(1), _thread(name(1), *steps, repeat=2))
    return steps


@case
def requests_that_are_told_as_records_and_as_totals(home: Path) -> list[Used]:
    one = Used(GPT, 60, 20, 40)
    figures = {"input_tokens": 100, "cached_input_tokens": 40, "output_tokens": 20, "total_tokens": 120}
    rollout = Rollout(id=name(1)).add("turn_context", model=GPT, cwd="/work/demo").user("hi").model("hello")
    rollout.add("token_usage_record", thread_id=name(1), response_id="r1", usage=figures, thread_token_usage=figures)
    rollout.event("token_count", info={"total_token_usage": figures, "last_token_usage": figures})
    codex(home, name(1), rollout)
    return [one]


@case
def a_thread_that_was_forked(home: Path) -> list[Used]:
    steps, more = [Used(GPT, 60, 20, 40), Used(GPT, 30, 10, 70)], Used(GPT, 5, 7, 100)
    codex(home, name(1), _thread(name(1), *steps))
    forked = Rollout(id=name(2), forked_from_id=name(1))
    codex(home, name(2), _turns(forked.meta(id=name(1)), *steps, more))
    return [*steps, more]


def _thread(thread: str, *steps: Used, repeat: int = 1) -> Rollout:
    return _turns(Rollout(id=thread), *steps, repeat=repeat)


def _turns(rollout: Rollout, *steps: Used, repeat: int = 1) -> Rollout:
    rollout.add("turn_context", model=GPT, cwd="/work/demo")
    total = {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0, "total_tokens": 0}
    for number, step in enumerate(steps):
        rollout.user(f"question {number}").model(f"answer {number}")
        given = step.input + step.cache_read
        last = dict(zip(total, (given, step.cache_read, step.output, given + step.output), strict=True))
        total = {key: total[key] + last[key] for key in total}
        for _ in range(repeat):
            rollout.event("token_count", info={"total_token_usage": total, "last_token_usage": last})
    return rollout
