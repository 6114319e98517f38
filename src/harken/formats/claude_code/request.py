"""The message list that goes to the model when a session is resumed: the judge of `context`.

Built from the active branch by the rules the real program was seen to follow (2.1.325, about 200 small files and the
golden requests). Not what the file says but what the model would read, repairs included:

    records      assistant records of one message id become one message, calls last; user records next to each other
                 become one, results first, with a newline where two texts meet
    left out     a call nobody answered, unless it ends the session; a message of nothing but thinking or blanks;
                 error messages the harness made up; thinking that another model signed; results without a call
    put in       a result for a call that ends the session; an answer after a prompt that nobody answered
    attachments  stand before the prompt they came with, or inside the result they follow

`turns.py` decides which records are sent; here they become messages that the API accepts.
"""

from __future__ import annotations

from typing import Any

import msgspec

from harken.formats.base import Loss, Written
from harken.formats.kit.anthropic import Block
from harken.formats.kit.jsonl import encode

from .turns import (
    NO_CONTENT,
    SEALED,
    RequestTurn,
    answer_the_last,
    calls_in,
    drop_empty,
    drop_unanswered,
    lift_attachments,
    no_result,
    turns_of_branch,
)


def messages(data: bytes, *, model: str | None = None, prompt: str | None = None) -> list[dict[str, Any]]:
    """What Claude Code would send for this session, as `[{"role", "content": [block…]}, …]`.

    `model` is the model it would be sent to: thinking that another one signed is left out (None keeps all).
    `prompt` is what the user says next; without it the list ends where the session does.
    """
    return _build(data, model, prompt)[0]


def write_request(data: bytes) -> Written:
    """A session's context as the body of a request, with what the program leaves out or puts in."""
    sent, changes = _build(data, None, None)
    if any(block.get("type") == "tool_use" and not block.get("id") for one in sent for block in one["content"]):
        from harken.formats.anthropic_messages import write  # a call without an id gets one there, and an answer

        from .read import read_conversation

        return write(read_conversation(data))
    return Written(data=encode({"messages": _alternating(sent)}), losses=changes)


def _alternating(sent: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages with those of one role behind each other as one, as the API takes them; the program itself may send
    two of the model's in a row."""
    made: list[dict[str, Any]] = []
    for one in sent:
        if made and made[-1]["role"] == one["role"]:
            made[-1] = {**one, "content": [*made[-1]["content"], *one["content"]]}
        else:
            made.append(one)
    return made


def _build(data: bytes, model: str | None, prompt: str | None) -> tuple[list[dict[str, Any]], tuple[Loss, ...]]:
    turns = turns_of_branch(data)
    said = list(turns)
    # In this order: without its unanswered calls a message may be empty, and what is empty needs no answer.
    turns = drop_unanswered(turns)
    turns = drop_empty(turns)
    answer_the_last(turns)
    if prompt is not None:
        turns.append(RequestTurn("user", [{"type": "text", "text": prompt}]))
    turns = lift_attachments(turns)
    # Errors are left out only now: they count as an answer to the prompt before them.
    sent = [_finish(m, model) for m in _pair(_merge([turn for turn in turns if turn.mark != "error"]))]
    result = [{"role": m.role, "content": m.blocks} for m in sent if m.blocks]
    return result, _losses(said, sent)


def _losses(said: list[RequestTurn], sent: list[RequestTurn]) -> tuple[Loss, ...]:
    """What the request does not hold of what was said."""
    lost = [
        Loss(what=what, count=before - after, why=why)
        for what, kind, why in (
            ("calls without a result", "tool_use", "the program leaves them out"),
            ("results without a call", "tool_result", "the program leaves them out"),
            ("thinking", "thinking", "it is not sent without the words it led to"),
        )
        if (before := _count(said, kind)) > (after := _count(sent, kind))
    ]
    if errors := sum(turn.mark == "error" for turn in said):
        lost.append(Loss(what="error messages", count=errors, why="the program made them up itself"))
    return tuple(lost)


def _count(turns: list[RequestTurn], kind: str) -> int:
    return sum(block.get("type") == kind for turn in turns for block in turn.blocks)


class _Message(msgspec.Struct):
    """A message of the request while it is put together; a user's results come before everything else."""

    role: str
    results: list[Block]
    others: list[Block]
    id: str = ""
    model: str = ""

    def add(self, blocks: list[Block]) -> None:
        """Take in blocks of another record."""
        for block in blocks:
            (self.results if block.get("type") == "tool_result" else self.others).append(block)


def _merge(turns: list[RequestTurn]) -> list[RequestTurn]:
    """Records as messages. The program writes a record for every block, as it arrives, so one message of the API is
    several records, with the results of its first calls between them."""
    sent: list[_Message] = []
    near: dict[str, _Message] = {}
    """By message id (empty where a record has none), the assistant's messages since the last prompt: a late record of
    theirs still finds them."""
    for turn in turns:
        if turn.role == "assistant":
            # Tools answer while a message is still being written, so results do not end it; a prompt does.
            if sent and sent[-1].role == "user" and not sent[-1].results:
                near.clear()
            if turn.id not in near:
                near[turn.id] = _Message("assistant", [], [], turn.id, turn.model)
                sent.append(near[turn.id])
            near[turn.id].others += turn.blocks
        elif turn.role == "attachment":
            _merge_attachment(sent, turn)
        elif sent and sent[-1].role == "user":
            _join(sent[-1], turn.blocks)
        else:
            sent.append(_Message("user", [], []))
            sent[-1].add(turn.blocks)
    return [RequestTurn(message.role, message.results + message.others, message.id, message.model) for message in sent]


def _join(message: _Message, blocks: list[Block]) -> None:
    """Two user records become one message: a newline where two texts meet."""
    if message.others and blocks and message.others[-1].get("type") == blocks[0].get("type") == "text":
        last = message.others[-1]
        message.others[-1] = last | {"text": last["text"] and last["text"] + "\n"}
    message.add(blocks)


def _merge_attachment(sent: list[_Message], turn: RequestTurn) -> None:
    if not sent or sent[-1].role != "user":
        # The program does not join what one attachment says in several messages.
        sent += [_Message("user", [], list(part)) for part in turn.parts]
        return
    message = sent[-1]
    for part in turn.parts:
        # Reminders go into the result they follow: the API wants results first, and nothing between them.
        words = all(b.get("type") == "text" and b["text"].startswith("<system-reminder>") for b in part)
        if words and message.results and not message.others and turn.mark != "apart":
            message.results[-1] = _fold(message.results[-1], part)
        else:
            message.others += part


def _fold(result: Block, part: list[Block]) -> Block:
    """The result with the harness's words behind it."""
    content = result.get("content")
    if isinstance(content, list):
        *others, last = content or [{}]
        if isinstance(last, dict) and isinstance(text := last.get("text"), str):
            last = last | {"text": f"{text}\n"}
        return result | {"content": [*others, *([last] if last else []), *part]}
    texts = [content] if isinstance(content, str) else []
    parts = [text.strip() for text in (*texts, *(block["text"] for block in part))]
    return result | {"content": "\n\n".join(filter(None, parts))}


def _pair(sent: list[RequestTurn]) -> list[RequestTurn]:
    """Every call followed by its result, once; every result behind its call.

    The API refuses a request in which a call has no result in the next message, a result has no call in the message
    before, or two calls have one id. After interruptions, resumes and compactions a file can hold all three."""
    paired: list[RequestTurn] = []
    seen: set[Any] = set()
    open_calls: list[Any] = []
    for message in sent:
        if message.role == "assistant":
            if open_calls:
                paired.append(RequestTurn("user", [no_result(call) for call in open_calls]))
            open_calls = _pair_assistant(message, seen)
        else:
            _pair_user(message, open_calls, first=not paired)
            open_calls = []
        paired.append(message)
    if open_calls:
        paired.append(RequestTurn("user", [no_result(call) for call in open_calls]))
    return paired


def _pair_assistant(message: RequestTurn, seen: set[Any]) -> list[Any]:
    """Drop calls that were made before, and put the others last."""
    calls: list[Block] = []
    others: list[Block] = []
    for block in message.blocks:
        if block.get("type") != "tool_use":
            others.append(block)
        elif block.get("id") not in seen:
            seen.add(block.get("id"))
            calls.append(block)
    # A message may not be empty; these are the program's own words for it.
    if message.blocks and not calls and not others:
        others = [{"type": "text", "text": "[Tool use interrupted]"}]
    message.blocks = others + calls
    return calls_in(calls)


def _pair_user(message: RequestTurn, calls: list[Any], *, first: bool) -> None:
    """Keep the first result of each call of the message before, put in those that are missing, and drop all others."""
    results: dict[Any, Block] = {}
    asked = set(calls)
    for block in message.blocks:
        if block.get("type") == "tool_result" and block.get("tool_use_id") in asked:
            results.setdefault(block.get("tool_use_id"), block)
    missing = [no_result(call) for call in calls if call not in results]
    others = [block for block in message.blocks if block.get("type") != "tool_result"]
    if message.blocks and not results and not missing and not others:
        gone = "[Orphaned tool result removed due to conversation resume]"
        others = [{"type": "text", "text": gone if first else NO_CONTENT}]
    message.blocks = missing + list(results.values()) + others


def _finish(message: RequestTurn, model: str | None) -> RequestTurn:
    """The message without what the API would refuse: empty texts, and thinking that another model signed."""
    if message.role == "user":
        # Nothing but empty texts: one alone goes out as it is, several become the program's words for nothing.
        said = [block for block in message.blocks if block.get("type") != "text" or block["text"]]
        if message.blocks and not said:
            said = message.blocks if len(message.blocks) == 1 else [{"type": "text", "text": NO_CONTENT}]
        message.blocks = said
        return message
    # What another model thought is signed for that model, and would be refused.
    if model is not None and message.model not in ("", model):
        message.blocks = [block for block in message.blocks if block.get("type") not in SEALED]
    if not message.blocks:
        message.blocks = [{"type": "text", "text": NO_CONTENT}]
    return message
