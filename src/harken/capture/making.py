"""The acts that a method of the recorder comes to, from what is recorded and what it was given: pure functions, which
refuse what would make the document wrong."""

from __future__ import annotations

from typing import Any

from harken.errors import BadRequest
from harken.formats.std.categories import tool_category
from harken.formats.std.document import Json
from harken.formats.std.models import ADDED_MESSAGE_TYPES, CATEGORIES, LEVELS, MESSAGE_TYPES, STATUSES, TASK

from . import given
from .acts import Act, AgentJoined, CallBegun, CallEnded, MessageSent, RecordingEnded, SubBegun, SubEnded
from .given import GivenAgent, GivenTime
from .recording import RecordedSession
from .wording import summary_of

_ENDS = ("success", "failed")
_CUT_OFF = "the session ended before this did"


# -- calls -------------------------------------------------------------------------------------------------------------


def call_begun(
    recording: RecordedSession,
    sub: str | None,
    tool_name: str,
    params: object,
    *,
    category: str | None,
    description: str | None,
    call_id: str | None,
    start: int | None,
    present: int,
) -> CallBegun:
    """A call; `start` is when it was said to begin."""
    if sub is not None:
        _open_sub(recording, sub)
    tool = given.text(tool_name, "tool_name")
    asked = given.json_object(params, "params")
    input: Json = {"params": asked}
    if description is not None:
        input["description"] = given.text(description, "description")
    return CallBegun(
        time=not_before(start, recording.start_of(sub), present, "started_at"),
        call_id=_fresh(call_id, recording.calls, "call_id", f"{sub}-tool" if sub else "tool"),
        tool_name=tool,
        tool_category=given.one_of(category or tool_category(tool, asked), CATEGORIES, "category"),
        input=input,
        sub=sub,
    )


def call_ended(
    recording: RecordedSession, call_id: str, *, result: Any, error: object, ended_at: GivenTime, present: int
) -> CallEnded:
    """What a call that was begun came to."""
    if not isinstance(call_id, str) or call_id not in recording.calls:
        raise BadRequest(f"there is no call {call_id!r:.80}", hint="`begin_call` and `call` give back ids")
    if call_id not in recording.open_calls:
        raise BadRequest(f"call {call_id!r:.80} has ended already", hint="a call ends once; `call` ends it at once")
    output = given.call_output(result, error)
    end = not_before(given.instant(ended_at, "ended_at"), recording.open_calls[call_id], present, "ended_at")
    return CallEnded(time=end, call_id=call_id, output=output)


# -- sub-sessions ------------------------------------------------------------------------------------------------------


def sub_begun(
    recording: RecordedSession,
    agent: GivenAgent,
    description: str,
    *,
    task_id: str | None,
    priority: str,
    call_id: str | None,
    parent: str | None,
    sub_session_id: str | None,
    started_at: GivenTime,
    present: int,
) -> list[Act]:
    """A sub-session, the `Task` call that starts it unless that was begun before, and its agent where that is new."""
    who, acts = known_agent(recording, agent, present)
    what = given.text(description, "description")
    name = _fresh(sub_session_id, recording.subs, "sub_session_id", "sub")
    if recording.begun is not None and name == recording.begun.session_id:
        raise BadRequest(f"{name!r:.80} is the id of the session", hint="leave it out to get a new one")
    task = {
        "task_id": given.text(task_id, "task_id") if task_id is not None else _free(recording.by_task, "task"),
        "description": what,
        "priority": given.one_of(priority, LEVELS, "priority"),
    }
    start = given.instant(started_at, "started_at")
    if call_id is None:
        params = {"subagent_type": who["agent_type"], "prompt": what}
        rest: Json = {"category": "interaction", "description": None, "call_id": None}
        call = call_begun(recording, parent, TASK, params, start=start, present=present, **rest)
        acts, call_id, began = [*acts, call], call.call_id, call.time
    else:
        parent, began = _trigger(recording, call_id, parent)
    begins = not_before(start, began, present, "started_at")
    return [*acts, SubBegun(time=begins, sub_session_id=name, agent=who, call_id=call_id, task=task, parent=parent)]


def _trigger(recording: RecordedSession, call_id: str, parent: str | None) -> tuple[str | None, int]:
    """In which sub-session the call was made, and when."""
    if not isinstance(call_id, str) or call_id not in recording.open_calls:
        raise BadRequest(
            f"there is no open call {call_id!r:.80}", hint="`begin_call` gives back an id; or leave it out"
        )
    call, owner = recording.calls[call_id], recording.owner[call_id]
    if call["tool_name"] != TASK:
        raise BadRequest(f"call {call_id!r:.80} is no Task call", hint='begin it as begin_call("Task", …)')
    if "subagent_info" in call:
        raise BadRequest(f"call {call_id!r:.80} has started a sub-agent already", hint="one call starts one sub-agent")
    if parent is not None and parent != owner:
        raise BadRequest(f"call {call_id!r:.80} was not made in {parent!r:.80}", hint="leave `parent` out")
    if owner is not None:
        _open_sub(recording, owner)
    return owner, recording.open_calls[call_id]


def sub_ended(
    recording: RecordedSession,
    sub_session_id: str,
    output: Any,
    *,
    status: str,
    tokens_used: int | None,
    completed_at: GivenTime,
    present: int,
) -> list[Act]:
    """The end of a sub-session, of the call that started it, and of what is open in it where it failed."""
    sub = _open_sub(recording, sub_session_id)
    given.one_of(status, _ENDS, "status of a sub-session that has ended")
    if tokens_used is not None and (type(tokens_used) is not int or tokens_used < 0):
        raise BadRequest(f"{tokens_used!r:.80} is no number of tokens", hint="pass a whole number, or leave it out")
    made = given.sub_output(output, sub["agent"]["agent_type"], sub["task"]["task_id"], status)
    if status == "success":
        _refuse_open(recording, sub_session_id, "finish_sub")
    end = not_before(
        given.instant(completed_at, "completed_at"), recording.last_in[sub_session_id], present, "completed_at"
    )
    acts = _cut_off(recording, sub_session_id, end)
    return [*acts, *_end_of(recording, sub_session_id, status, made, tokens_used, end)]


def _end_of(
    recording: RecordedSession, sub_session_id: str, status: str, output: Json | None, tokens: int | None, end: int
) -> list[Act]:
    ended = SubEnded(time=end, sub_session_id=sub_session_id, status=status, output=output, tokens_used=tokens)
    trigger = recording.subs[sub_session_id]["triggered_by_call_id"]
    if trigger not in recording.open_calls:
        return [ended]  # a call that only launched the sub-agent
    said = summary_of(output)
    error = (said or "the sub-agent failed") if status == "failed" else None
    answer = given.call_output(said or None if error is None else None, error)
    return [ended, CallEnded(time=end, call_id=trigger, output=answer)]


def _refuse_open(recording: RecordedSession, sub: str | None, method: str) -> None:
    """A success has nothing left open."""
    if started := recording.started_of(sub):
        hint = f'`finish_sub` it first, or {method} with status="failed"'
        raise BadRequest(f"sub-session {started[0]!r:.80} is still open", hint=hint)
    if begun := recording.calls_of(sub):
        raise BadRequest(
            f"call {begun[0]!r:.80} is still open", hint=f'`end_call` it first, or {method} with status="failed"'
        )


def _cut_off(recording: RecordedSession, sub: str | None, end: int) -> list[Act]:
    """The ends of everything that is open in a sub-session, or in all, the innermost first."""
    acts: list[Act] = []
    for name in recording.started_of(sub):
        acts += _cut_off(recording, name, end)
        acts += _end_of(recording, name, "failed", None, None, end)
    ended = {act.call_id for act in acts if isinstance(act, CallEnded)}
    output = given.call_output(None, _CUT_OFF)
    return acts + [
        CallEnded(time=end, call_id=call_id, output=output)
        for call_id in recording.calls_of(sub)
        if call_id not in ended
    ]


def left_open(recording: RecordedSession) -> list[Act]:
    """The ends of all that is open in a recording that is over: they stood in a part of the log that cannot be read."""
    acts: list[Act] = []
    for name in reversed(recording.open_subs):
        acts += _end_of(recording, name, "failed", None, None, recording.last)
    ended = {act.call_id for act in acts if isinstance(act, CallEnded)}
    output = given.call_output(None, "what came of it cannot be read any more")
    open_calls = (name for name in recording.open_calls if name not in ended)
    return acts + [CallEnded(time=recording.last, call_id=name, output=output) for name in open_calls]


# -- messages, agents, the end -----------------------------------------------------------------------------------------


def message_sent(
    recording: RecordedSession,
    from_agent: GivenAgent,
    to_agent: GivenAgent,
    message_type: str,
    payload: Any,
    *,
    message_id: str | None,
    correlation_id: str | None,
    reply_to: str | None,
    sent_at: GivenTime,
    present: int,
) -> list[Act]:
    """A message, and its agents where they are new."""
    sender, joined = known_agent(recording, from_agent, present)
    hearer, joined_too = known_agent(recording, to_agent, present)
    if reply_to is not None and not (isinstance(reply_to, str) and reply_to in recording.messages):
        raise BadRequest(f"there is no message {reply_to!r:.80} to reply to", hint="`message` gives back ids")
    kind = given.one_of(message_type, (*MESSAGE_TYPES, *ADDED_MESSAGE_TYPES), "message_type")
    sent = MessageSent(
        time=not_before(given.instant(sent_at, "sent_at"), None, present, "sent_at"),
        message_id=_fresh(message_id, recording.messages, "message_id", "msg"),
        from_agent=sender["agent_id"],
        to_agent=hearer["agent_id"],
        message_type=kind,
        payload=given.plain({} if payload is None else payload, "payload"),
        correlation_id=given.text(correlation_id, "correlation_id") if correlation_id is not None else None,
        reply_to=reply_to,
    )
    if problem := recording.threads.problem({"message_type": kind, "payload": sent.payload}):
        raise BadRequest(problem[2], hint="assign a task once, before it is completed; ask for a review first")
    return [*joined, *(act for act in joined_too if act not in joined), sent]


def known_agent(recording: RecordedSession, value: GivenAgent, present: int) -> tuple[Json, list[Act]]:
    """An agent of the recording. One that is given with its type may be new: then it joins."""
    who = given.agent(value)
    known = recording.agents.get(who["agent_id"])
    if known is None:
        if not given.has_type(value):
            hint = 'name it among the participants, or pass ("id", "type") to add it'
            raise BadRequest(f"there is no agent {who['agent_id']!r:.80} in this session", hint=hint)
        return who, [AgentJoined(time=present, agent=who)]
    if given.has_type(value) and known["agent_type"] != who["agent_type"]:
        is_what = f"{who['agent_id']!r:.80} is a {known['agent_type']!r:.80}"
        raise BadRequest(f"{is_what}, not a {who['agent_type']!r:.80}", hint="an agent keeps its type: give another id")
    return known, []


def closing(recording: RecordedSession, status: str, present: int) -> list[Act]:
    """The end of the recording. A failure cuts off what is open; a session in progress leaves it open."""
    given.one_of(status, STATUSES, "status")
    if status == "success":
        _refuse_open(recording, None, "close")
    end = max(present, recording.last)
    acts = _cut_off(recording, None, end) if status == "failed" else []
    return [*acts, RecordingEnded(time=end, status=status)]


# -- ids and times -----------------------------------------------------------------------------------------------------


def _open_sub(recording: RecordedSession, name: object) -> Json:
    if not isinstance(name, str) or name not in recording.subs:
        raise BadRequest(f"there is no sub-session {name!r:.80}", hint="`start_sub` gives back its id")
    if name not in recording.open_subs:
        raise BadRequest(f"sub-session {name!r:.80} has ended", hint="start another one")
    sub: Json = recording.subs[name]
    return sub


def _fresh(value: str | None, taken: dict[str, Any], what: str, stem: str) -> str:
    """The id that was given, if nobody has it, or a new one."""
    if value is None:
        return _free(taken, stem)
    if given.text(value, what) in taken:
        raise BadRequest(f"there is a {what} {value!r:.80} already", hint="leave it out to get a new one")
    return str(value)


def _free(taken: Any, stem: str) -> str:
    number = len(taken) + 1
    while (name := f"{stem}-{number:03d}") in taken:
        number += 1
    return name


def not_before(value: int | None, start: int | None, present: int, what: str) -> int:
    """The time that was given, else now. A clock that was set back does not turn the order round; a program that does
    is told."""
    if value is None:
        return present if start is None else max(start, present)
    if start is not None and value < start:
        raise BadRequest(f"{what} is before what it follows", hint="give a later time, or leave it out")
    return value
