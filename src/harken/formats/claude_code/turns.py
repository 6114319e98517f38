"""The records of the active branch as turns on their way into a request, and which of them the program leaves out.

What stands here was found with the real program (2.1.325), rule by rule; each says what the program does, since the
reason is the program's own. The order of the steps matters: a call that nobody answered is dropped before empty
messages are, since dropping it may leave a message empty.
"""

from __future__ import annotations

from itertools import takewhile
from typing import Any

import msgspec

from harken.formats.kit.anthropic import Block
from harken.formats.kit.jsonl import take_apart

from .attachments import MessageBlocks, remind
from .branch import Node, choose, survey
from .read import LOCAL_COMMAND, render

UNANSWERED = "No response requested."
"""What Claude Code puts in the assistant's place after a prompt that was never answered."""
NO_CONTENT = "(no content)"
RENAMED = {"Task": "Agent", "ListPeers": "ListAgents"}
"""Tools that go by another name today; calls to them are sent under it."""
_LOCAL = ("<command-name>", "<command-message>", "<local-command-stdout>", "<local-command-stderr>")
_INTERRUPTIONS = ("[Request interrupted by user]", "[Request interrupted by user for tool use]")
SEALED = ("thinking", "redacted_thinking")
_SENT = frozenset(
    {
        "text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image", "document", "server_tool_use",
        "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result", "mcp_tool_use",
        "mcp_tool_result", "search_result", "container_upload",
    }
)  # fmt: skip


class RequestTurn(msgspec.Struct):
    """A record on its way into the request."""

    role: str
    """`user`, `assistant` or `attachment`."""
    blocks: list[Block]
    id: str = ""
    model: str = ""
    parts: MessageBlocks = []
    """What an attachment says, message by message."""
    mark: str = ""
    """`caveat`, `local` and `local meta` for what local commands leave behind, `error` for a made-up error message,
    `notice` for a notice that is sent, `summary` and `interruption` for themselves, `apart` for an attachment that
    stays a block of its own behind a result."""

    @property
    def answers(self) -> bool:
        """Whether it holds a tool's result."""
        return any(block.get("type") == "tool_result" for block in self.blocks)


def turns_of_branch(data: bytes) -> list[RequestTurn]:
    found = survey(data)
    turns: list[RequestTurn] = []
    for index in choose(found).order:
        node = found.nodes[index]
        # The program does not see what stands behind the first object of a line.
        if node.first:
            turns += _turns_of(_record(data, node.start, node.end), node, data)
    return turns


def _record(data: bytes, start: int, end: int) -> dict[str, Any]:
    objects, _ = take_apart(data, start, end)
    return objects[0][0] if objects else {}


def _turns_of(record: dict[str, Any], node: Node, data: bytes) -> list[RequestTurn]:
    kind = record.get("type")
    if kind == "attachment":
        parts = render(record)
        apart = "apart" if record.get("renderedRole") == "user" else ""
        return [RequestTurn("attachment", [], parts=parts, mark=apart)] if parts else []
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
        return [RequestTurn("user", blocks, mark=_mark(record, blocks))]
    made_up = record.get("isApiErrorMessage") is True and body.get("model") == "<synthetic>"
    for block in blocks:
        if block.get("type") == "tool_use":
            block["name"] = RENAMED.get(name := block.get("name") or "", name)
    return [
        RequestTurn(
            "assistant", blocks, str(body.get("id") or ""), str(body.get("model") or ""), mark="error" * made_up
        )
    ]


def _notice(record: dict[str, Any], node: Node, data: bytes) -> list[RequestTurn]:
    """Of the runtime's notices the model reads local commands, and a compaction's summary in the old shape."""
    if record.get("subtype") == LOCAL_COMMAND and isinstance(text := record.get("content"), str):
        return [RequestTurn("user", [{"type": "text", "text": text}], mark="notice")]
    if node.summary is not None:
        text = _record(data, *node.summary).get("summary")
        return [RequestTurn("user", [{"type": "text", "text": text}])] if isinstance(text, str) else []
    return []


def _blocks(content: Any) -> list[Block]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        return []
    blocks = [block for item in content if (block := _block(item)) is not None]
    # A result that only names tools says nothing to the model, so the program adds words behind it.
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


def calls_in(blocks: list[Block]) -> list[Any]:
    return [block.get("id") for block in blocks if block.get("type") == "tool_use"]


def drop_unanswered(turns: list[RequestTurn]) -> list[RequestTurn]:
    """Without the records whose calls have no result; where they end the session they get one instead.

    The API refuses a call whose result is not in the next message. In the middle of a session such a call is what an
    interruption left behind, and nobody will miss it; at the end it is what the session was doing, and is kept.
    """
    answered = {b.get("tool_use_id") for t in turns for b in t.blocks if b.get("type") == "tool_result"}
    unanswered = {
        index
        for index, turn in enumerate(turns)
        if turn.role == "assistant" and (calls := calls_in(turn.blocks)) and not any(call in answered for call in calls)
    }
    last = _last_message(turns)
    # Calls of a turn that is still open stay as well: other calls of it may have been answered.
    open_from = _open_turn(turns, unanswered)
    kept = [t for index, t in enumerate(turns) if index not in unanswered or index in last or index >= open_from]
    repaired = [no_result(call) for index in sorted(unanswered & last) for call in calls_in(turns[index].blocks)]
    return [*kept, RequestTurn("user", repaired)] if repaired else kept


def _open_turn(turns: list[RequestTurn], unanswered: set[int]) -> int:
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


def _last_message(turns: list[RequestTurn]) -> set[int]:
    """The records of the assistant message that ends the session; none where something else was said after it."""
    found: set[int] = set()
    name: str | None = None
    for index in range(len(turns) - 1, -1, -1):
        turn = turns[index]
        if turn.role == "assistant":
            # Thinking alone is not sent, so it neither ends the session nor parts the records of its last message.
            if not any(map(_says_something, turn.blocks)):
                continue
            if name is not None and turn.id != name:
                break
            name = turn.id
            found.add(index)
        elif turn.role == "user" and turn.mark != "notice" and not turn.answers:
            break
    return found


def no_result(call: Any) -> Block:
    text = "The session ended before this call was answered; whether it took effect is not known."
    return {"type": "tool_result", "tool_use_id": call, "is_error": True, "content": text}


def _says_something(block: Block) -> bool:
    return block.get("type") not in SEALED and not (block.get("type") == "text" and not block["text"].strip())


def _heard(turn: RequestTurn) -> bool:
    """Whether the turn says anything that counts for where a session stops."""
    if turn.role == "assistant":
        return any(map(_says_something, turn.blocks))
    return turn.role == "user" and turn.mark != "notice"


def drop_empty(turns: list[RequestTurn]) -> list[RequestTurn]:
    """Without assistant messages that say nothing; one without any block at all is a different matter."""
    turns = [
        turn
        for turn in turns
        if turn.role != "assistant"
        or not turn.blocks
        or any(block.get("type") != "text" or block["text"].strip() for block in turn.blocks)
    ]
    # A message is written over several records; one of thinking alone stays where another of its records speaks.
    speaking = {turn.id for turn in turns if any(map(_says_something, turn.blocks))}
    return [
        turn
        for turn in turns
        if turn.role != "assistant"
        or not turn.blocks
        or (turn.id in speaking if turn.id else any(map(_says_something, turn.blocks)))
    ]


def answer_the_last(turns: list[RequestTurn]) -> None:
    """After a prompt that nobody answered the program puts an answer of its own; not after local commands."""
    said = [turn for turn in turns if turn.role != "attachment" and turn.mark != "notice"]
    if not said or said[-1].role != "user":
        return
    # Notices behind the prompt stay behind the answer: they came later.
    end = max(index for index, turn in enumerate(turns) if turn.mark != "notice")
    if turns[end].role == "attachment" and said[-1].mark in ("summary", "interruption"):
        return
    # What local commands leave behind was not meant for the model, so nobody owes it an answer.
    trail = list(takewhile(lambda turn: turn.mark in ("caveat", "local", "local meta"), reversed(said)))
    marks = {turn.mark for turn in trail}
    if "caveat" in marks or marks == {"local meta"}:
        return
    turns.insert(end + 1, RequestTurn("assistant", [{"type": "text", "text": UNANSWERED}], UNANSWERED))


def lift_attachments(turns: list[RequestTurn]) -> list[RequestTurn]:
    """An attachment stands before the prompts it came with, but never before a result or an assistant's words."""
    lifted: list[RequestTurn] = []
    # Prompts wait until something comes that an attachment may not pass.
    prompts: list[RequestTurn] = []
    for turn in turns:
        if turn.role == "user" and not turn.answers:
            prompts.append(turn)
        elif turn.role == "attachment":
            lifted.append(turn)
        else:
            lifted += [*prompts, turn]
            prompts = []
    return lifted + prompts
