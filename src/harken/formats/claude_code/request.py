"""The message list that goes to the model when a session is resumed: the judge of `context`.

Built from the active branch by the rules the real program was seen to follow (2.1.325, about 200 small files and the
golden requests). Not what the file says but what the model would read, repairs included:

    records      assistant records of one message id become one message, calls last; user records next to each other
                 become one, results first, with a newline where two texts meet
    left out     a call nobody answered, unless it ends the session; a message of nothing but thinking or blanks;
                 error messages the harness made up; thinking that another model signed; results without a call
    put in       a result for a call that ends the session; an answer after a prompt that nobody answered
    attachments  stand before the prompt they came with, or inside the result they follow
"""

from __future__ import annotations

from itertools import takewhile
from typing import Any

import msgspec

from harken.formats.base import Loss, Written
from harken.formats.kit.jsonl import encode, take_apart

from .attachments import Turns, remind, render
from .branch import Node, choose, survey

Block = dict[str, Any]
UNANSWERED = "No response requested."
"""What Claude Code puts in the assistant's place after a prompt that was never answered."""
NO_CONTENT = "(no content)"
RENAMED = {"Task": "Agent", "ListPeers": "ListAgents"}
"""Tools that go by another name today; calls to them are sent under it."""
_LOCAL = ("<command-name>", "<command-message>", "<local-command-stdout>", "<local-command-stderr>")
_INTERRUPTIONS = ("[Request interrupted by user]", "[Request interrupted by user for tool use]")
_SEALED = ("thinking", "redacted_thinking")
_SENT = frozenset(
    {
        "text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image", "document", "server_tool_use",
        "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result", "mcp_tool_use",
        "mcp_tool_result", "search_result", "container_upload",
    }
)  # fmt: skip


class Turn(msgspec.Struct):
    """A record on its way into the request."""

    role: str
    """`user`, `assistant` or `attachment`."""
    blocks: list[Block]
    id: str = ""
    model: str = ""
    parts: Turns = []
    """What an attachment says, message by message."""
    mark: str = ""
    """`caveat`, `local` and `local meta` for what local commands leave behind, `error` for a made-up error message,
    `notice` for a notice that is sent, `summary` and `interruption` for themselves."""

    @property
    def answers(self) -> bool:
        """Whether it holds a tool's result."""
        return any(block.get("type") == "tool_result" for block in self.blocks)


def messages(data: bytes, *, model: str | None = None, prompt: str | None = None) -> list[dict[str, Any]]:
    """What Claude Code would send for this session, as `[{"role", "content": [block…]}, …]`.

    `model` is the model it would be sent to: thinking that another one signed is left out (None keeps all).
    `prompt` is what the user says next; without it the list ends where the session does.
    """
    return _build(data, model, prompt)[0]


def write_request(data: bytes) -> Written:
    """A session's context as the body of a request, with what the program leaves out or puts in."""
    sent, changes = _build(data, None, None)
    return Written(data=encode({"messages": sent}), losses=changes)


def _build(data: bytes, model: str | None, prompt: str | None) -> tuple[list[dict[str, Any]], tuple[Loss, ...]]:
    turns = _turns(data)
    said = list(turns)
    turns = _drop_unanswered(turns)
    turns = _drop_empty(turns)
    _answer_the_last(turns)
    if prompt is not None:
        turns.append(Turn("user", [{"type": "text", "text": prompt}]))
    turns = _lift_attachments(turns)
    sent = [_finish(m, model) for m in _pair(_merge([turn for turn in turns if turn.mark != "error"]))]
    result = [{"role": m.role, "content": m.blocks} for m in sent if m.blocks]
    return result, _losses(said, sent)


def _losses(said: list[Turn], sent: list[Turn]) -> tuple[Loss, ...]:
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


def _count(turns: list[Turn], kind: str) -> int:
    return sum(block.get("type") == kind for turn in turns for block in turn.blocks)


def _turns(data: bytes) -> list[Turn]:
    found = survey(data)
    turns: list[Turn] = []
    for index in choose(found).order:
        node = found.nodes[index]
        if node.first:
            turns += _turns_of(_record(data, node.start, node.end), node, data)
    return turns


def _record(data: bytes, start: int, end: int) -> dict[str, Any]:
    objects, _ = take_apart(data, start, end)
    return objects[0][0] if objects else {}


def _turns_of(record: dict[str, Any], node: Node, data: bytes) -> list[Turn]:
    kind = record.get("type")
    if kind == "attachment":
        parts, _ = render(record)
        return [Turn("attachment", [], parts=parts)] if parts else []
    if kind == "system":
        return _notice(record, node, data)
    body = record.get("message")
    if kind not in ("user", "assistant") or not isinstance(body, dict):
        return []
    blocks = _blocks(body.get("content"))
    if kind == "user":
        origin = record.get("origin")
        if isinstance(origin, dict) and origin.get("kind") == "task-notification":
            blocks = _notification(blocks)
        return [Turn("user", blocks, mark=_mark(record, blocks))]
    made_up = record.get("isApiErrorMessage") is True and body.get("model") == "<synthetic>"
    for block in blocks:
        if block.get("type") == "tool_use":
            block["name"] = RENAMED.get(name := block.get("name") or "", name)
    return [Turn("assistant", blocks, str(body.get("id") or ""), str(body.get("model") or ""), mark="error" * made_up)]


def _notice(record: dict[str, Any], node: Node, data: bytes) -> list[Turn]:
    """Of the runtime's notices the model reads local commands, and a compaction's summary in the old shape."""
    if record.get("subtype") == "local_command" and isinstance(text := record.get("content"), str):
        return [Turn("user", [{"type": "text", "text": text}], mark="notice")]
    if node.summary is not None:
        text = _record(data, *node.summary).get("summary")
        return [Turn("user", [{"type": "text", "text": text}])] if isinstance(text, str) else []
    return []


def _blocks(content: Any) -> list[Block]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        return []
    blocks = [block for item in content if (block := _block(item)) is not None]
    if any(_names_tools(block) for block in blocks):
        blocks.append({"type": "text", "text": "Tool loaded."})
    return blocks


def _block(item: Any) -> Block | None:
    """A block as it may be sent: of a known type, with words where there should be words and names that are names."""
    block = {"type": "text", "text": item} if isinstance(item, str) else dict(item) if isinstance(item, dict) else {}
    kind = block.get("type")
    if not isinstance(kind, str) or kind not in _SENT:
        return None
    if kind == "text":
        return block if isinstance(block.get("text"), str) and block["text"] else None
    for key in ("id", "tool_use_id", "name"):
        if key in block and not isinstance(block[key], str):
            block[key] = None
    return block


def _notification(blocks: list[Block]) -> list[Block]:
    """What a background task reports is marked as nobody's words."""
    words = "\n".join(block["text"] for block in blocks if block.get("type") == "text")
    told = remind(f"A background task reports; no person wrote this.\n\n{words}")
    return [told, *(block for block in blocks if block.get("type") != "text")]


def _names_tools(block: Block) -> bool:
    inner = block.get("content")
    return (
        block.get("type") == "tool_result"
        and isinstance(inner, list)
        and any(isinstance(part, dict) and part.get("type") == "tool_reference" for part in inner)
    )


def _mark(record: dict[str, Any], blocks: list[Block]) -> str:
    text = blocks[0].get("text", "") if len(blocks) == 1 else ""
    if record.get("isCompactSummary") is True:
        return "summary"
    if text in _INTERRUPTIONS:
        return "interruption"
    if record.get("isMeta") is True and text.startswith("<local-command-caveat>"):
        return "caveat"
    if not text.startswith(_LOCAL):
        return ""
    return "local meta" if record.get("isMeta") is True else "local"


def _calls(blocks: list[Block]) -> list[Any]:
    return [block.get("id") for block in blocks if block.get("type") == "tool_use"]


def _drop_unanswered(turns: list[Turn]) -> list[Turn]:
    """Without the records whose calls have no result; where they end the session they get one instead."""
    answered = {b.get("tool_use_id") for t in turns for b in t.blocks if b.get("type") == "tool_result"}
    unanswered = {
        index
        for index, turn in enumerate(turns)
        if turn.role == "assistant" and (calls := _calls(turn.blocks)) and not any(call in answered for call in calls)
    }
    last = _last_message(turns)
    open_from = _open_turn(turns, unanswered)
    kept = [t for index, t in enumerate(turns) if index not in unanswered or index in last or index >= open_from]
    repaired = [_no_result(call) for index in sorted(unanswered & last) for call in _calls(turns[index].blocks)]
    return [*kept, Turn("user", repaired)] if repaired else kept


def _open_turn(turns: list[Turn], unanswered: set[int]) -> int:
    """From where on calls without a result stay, because the session stops in the middle of a turn.

    That is behind the last prompt if it stops behind a result, and behind the last result if it stops at a call.
    """
    said = [i for i, turn in enumerate(turns) if _heard(turn)]
    prompt = max((i for i in said if turns[i].role == "user" and not turns[i].answers), default=-1)
    if said and turns[said[-1]].answers:
        return prompt + 1
    last = max((i for i in said if turns[i].role == "user"), default=-1)
    if said and said[-1] in unanswered and last > prompt:
        return last + 1
    return len(turns)


def _last_message(turns: list[Turn]) -> set[int]:
    """The records of the assistant message that ends the session; none where something else was said after it."""
    found: set[int] = set()
    name: str | None = None
    for index in range(len(turns) - 1, -1, -1):
        turn = turns[index]
        if turn.role == "assistant":
            if not any(map(_says_something, turn.blocks)):
                continue
            if name is not None and turn.id != name:
                break
            name = turn.id
            found.add(index)
        elif turn.role == "user" and turn.mark != "notice" and not turn.answers:
            break
    return found


def _no_result(call: Any) -> Block:
    text = "The session ended before this call was answered; whether it took effect is not known."
    return {"type": "tool_result", "tool_use_id": call, "is_error": True, "content": text}


def _says_something(block: Block) -> bool:
    return block.get("type") not in _SEALED and not (block.get("type") == "text" and not block["text"].strip())


def _heard(turn: Turn) -> bool:
    """Whether the turn says anything that counts for where a session stops."""
    if turn.role == "assistant":
        return any(map(_says_something, turn.blocks))
    return turn.role == "user" and turn.mark != "notice"


def _drop_empty(turns: list[Turn]) -> list[Turn]:
    """Without assistant messages that say nothing; one without any block at all is a different matter."""
    turns = [
        turn
        for turn in turns
        if turn.role != "assistant"
        or not turn.blocks
        or any(block.get("type") != "text" or block["text"].strip() for block in turn.blocks)
    ]
    speaking = {turn.id for turn in turns if any(map(_says_something, turn.blocks))}
    return [
        turn
        for turn in turns
        if turn.role != "assistant"
        or not turn.blocks
        or (turn.id in speaking if turn.id else any(map(_says_something, turn.blocks)))
    ]


def _answer_the_last(turns: list[Turn]) -> None:
    """After a prompt that nobody answered the program puts an answer of its own; not after local commands."""
    said = [turn for turn in turns if turn.role != "attachment" and turn.mark != "notice"]
    if not said or said[-1].role != "user":
        return
    end = max(index for index, turn in enumerate(turns) if turn.mark != "notice")
    if turns[end].role == "attachment" and said[-1].mark in ("summary", "interruption"):
        return
    trail = list(takewhile(lambda turn: turn.mark in ("caveat", "local", "local meta"), reversed(said)))
    marks = {turn.mark for turn in trail}
    if "caveat" in marks or marks == {"local meta"}:
        return
    turns.insert(end + 1, Turn("assistant", [{"type": "text", "text": UNANSWERED}], UNANSWERED))


def _lift_attachments(turns: list[Turn]) -> list[Turn]:
    """An attachment stands before the prompts it came with, but never before a result or an assistant's words."""
    lifted: list[Turn] = []
    prompts: list[Turn] = []
    for turn in turns:
        if turn.role == "user" and not turn.answers:
            prompts.append(turn)
        elif turn.role == "attachment":
            lifted.append(turn)
        else:
            lifted += [*prompts, turn]
            prompts = []
    return lifted + prompts


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


def _merge(turns: list[Turn]) -> list[Turn]:
    sent: list[_Message] = []
    near: dict[str, _Message] = {}
    """The assistant's messages since the last prompt, which a late record of theirs still finds."""
    for turn in turns:
        if turn.role == "assistant":
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
    return [Turn(message.role, message.results + message.others, message.id, message.model) for message in sent]


def _join(message: _Message, blocks: list[Block]) -> None:
    """Two user records become one message: a newline where two texts meet."""
    if message.others and blocks and message.others[-1].get("type") == blocks[0].get("type") == "text":
        last = message.others[-1]
        message.others[-1] = last | {"text": last["text"] and last["text"] + "\n"}
    message.add(blocks)


def _merge_attachment(sent: list[_Message], turn: Turn) -> None:
    if not sent or sent[-1].role != "user":
        # The program does not join what one attachment says in several messages.
        sent += [_Message("user", [], list(part)) for part in turn.parts]
        return
    message = sent[-1]
    for part in turn.parts:
        words = all(b.get("type") == "text" and b["text"].startswith("<system-reminder>") for b in part)
        if words and message.results and not message.others:
            message.results[-1] = _fold(message.results[-1], part)
        else:
            message.others += part


def _fold(result: Block, part: list[Block]) -> Block:
    """The result with the harness's words behind it."""
    content = result.get("content")
    if isinstance(content, list):
        return result | {"content": [*content, *part]}
    texts = [content] if isinstance(content, str) and content else []
    return result | {"content": "\n\n".join([*texts, *(block["text"] for block in part)])}


def _pair(sent: list[Turn]) -> list[Turn]:
    """Every call followed by its result, once; every result behind its call."""
    paired: list[Turn] = []
    seen: set[Any] = set()
    open_calls: list[Any] = []
    for message in sent:
        if message.role == "assistant":
            if open_calls:
                paired.append(Turn("user", [_no_result(call) for call in open_calls]))
            open_calls = _pair_assistant(message, seen)
        else:
            _pair_user(message, open_calls, first=not paired)
            open_calls = []
        paired.append(message)
    if open_calls:
        paired.append(Turn("user", [_no_result(call) for call in open_calls]))
    return paired


def _pair_assistant(message: Turn, seen: set[Any]) -> list[Any]:
    """Drop calls that were made before, and put the others last."""
    calls: list[Block] = []
    others: list[Block] = []
    for block in message.blocks:
        if block.get("type") != "tool_use":
            others.append(block)
        elif block.get("id") not in seen:
            seen.add(block.get("id"))
            calls.append(block)
    if message.blocks and not calls and not others:
        others = [{"type": "text", "text": "[Tool use interrupted]"}]
    message.blocks = others + calls
    return _calls(calls)


def _pair_user(message: Turn, calls: list[Any], *, first: bool) -> None:
    results: dict[Any, Block] = {}
    asked = set(calls)
    for block in message.blocks:
        if block.get("type") == "tool_result" and block.get("tool_use_id") in asked:
            results.setdefault(block.get("tool_use_id"), block)
    missing = [_no_result(call) for call in calls if call not in results]
    others = [block for block in message.blocks if block.get("type") != "tool_result"]
    if message.blocks and not results and not missing and not others:
        gone = "[Orphaned tool result removed due to conversation resume]"
        others = [{"type": "text", "text": gone if first else NO_CONTENT}]
    message.blocks = missing + list(results.values()) + others


def _finish(message: Turn, model: str | None) -> Turn:
    if message.role == "user":
        said = [block for block in message.blocks if block.get("type") != "text" or block["text"]]
        if message.blocks and not said:
            said = message.blocks if len(message.blocks) == 1 else [{"type": "text", "text": NO_CONTENT}]
        message.blocks = said
        return message
    if model is not None and message.model not in ("", model):
        message.blocks = [block for block in message.blocks if block.get("type") not in _SEALED]
    if not message.blocks:
        message.blocks = [{"type": "text", "text": NO_CONTENT}]
    return message
