"""From a session file to its chain of commits, written from docs/FORMAT.md alone: lines, cut rules, names and seals."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import blake3

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BOM = b"\xef\xbb\xbf"
SPACE = b" \t\r\n"
KIB, MIB = 1 << 10, 1 << 20


def keyed(name, data):
    return blake3.blake3(data, key=name.encode().ljust(32, b"\0")).digest()


def artifact_name(content):
    return keyed("bureau.artifact.file", keyed("bureau.artifact.chunk", content)).hex()


def as_seconds(instant):
    return (EPOCH + timedelta(seconds=instant // 1_000_000)).strftime("%Y-%m-%dT%H:%M:%SZ")


# -- lines of JSON -----------------------------------------------------------------------------------------------------


def lines_of(data):
    """Every line with its newline, and where it begins."""
    at = 0
    while at < len(data):
        end = data.find(b"\n", at) + 1 or len(data)
        yield at, data[at:end]
        at = end


def record_of(line):
    """The object of a line that is exactly one; None for any other."""
    if len(line.rstrip(b"\n")) > 64 * MIB:
        return None
    try:
        value = json.loads(line.strip(SPACE).removeprefix(BOM).strip(SPACE).decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


ZONE = r"Z|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?"
TIME = rf"([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(?:[.,](\d+))?)?({ZONE})?"
INSTANT = re.compile(rf"(\d{{4}})-(\d\d)-(\d\d)(?:[T ]{TIME})?", re.ASCII)


def instant_of(text):
    """Microseconds since 1970, or None where the text names no instant."""
    found = INSTANT.fullmatch(text) if isinstance(text, str) and len(text) <= 40 else None
    if found is None:
        return None
    *clock, fraction, zone = found.groups()
    try:
        moment = datetime(*(int(part or 0) for part in clock), tzinfo=UTC)
        if zone not in (None, "Z"):
            digits = zone[1:].replace(":", "").ljust(4, "0")
            ahead = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
            moment = moment - ahead if zone[0] == "+" else moment + ahead
    except (ValueError, OverflowError):
        return None
    return (moment - EPOCH) // timedelta(microseconds=1) + int((fraction or "0")[:6].ljust(6, "0"))


# -- Claude Code: cut-2 ------------------------------------------------------------------------------------------------


class Delta:
    def __init__(self, start, end, kind="delta", checkpoint="turn_boundary", closed=True):
        self.start, self.end, self.kind, self.checkpoint, self.closed = start, end, kind, checkpoint, closed


def blocks(record, kind):
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return [b for b in content if isinstance(b, dict) and b.get("type") == kind] if isinstance(content, list) else []


def claude_code(data):
    """Rule cut-2."""
    deltas, start, last, seen_main = [], 0, None, False
    waiting, refused, boundary, after_boundary = set(), 0, None, False

    def close(end, checkpoint):
        nonlocal start, waiting, refused, boundary, after_boundary
        deltas.append(Delta(start, end, checkpoint=checkpoint))
        start, waiting, refused, boundary, after_boundary = end, set(), 0, None, False

    for at, line in lines_of(data):
        end = at + len(line)
        record = record_of(line) if line.endswith(b"\n") else None
        if record is None:
            after_boundary = False
            continue
        kind, side = record.get("type"), record.get("isSidechain") is True
        main_line = not side or not seen_main
        message = record.get("message") if isinstance(record.get("message"), dict) else None
        message_id = message.get("id") if message and isinstance(message.get("id"), str) else None
        is_boundary = main_line and kind == "system" and record.get("subtype") == "compact_boundary"
        summary = record.get("isCompactSummary") is True
        opens = False
        if main_line and kind == "user":
            opens = not (blocks(record, "tool_result") or record.get("isMeta") is True or summary)
        elif main_line and kind == "assistant":
            opens = message is None or message_id != last
        if at > start:
            length = at - start
            cuts = opens or length >= (16 * MIB if boundary is not None else 256 * KIB)
            if cuts and not is_boundary and waiting and length < 16 * MIB:
                refused += opens
                cuts = refused > 4
            if is_boundary or cuts:
                close(at, "turn_boundary")
        if kind == "assistant":
            seen_main = seen_main or not side
            if not (side and seen_main):
                last = message_id
            waiting |= {b["id"] for b in blocks(record, "tool_use") if isinstance(b.get("id"), str) and b["id"]}
        elif kind == "user":
            seen_main = seen_main or not side
            had = bool(waiting)
            waiting -= {
                b.get("tool_use_id") for b in blocks(record, "tool_result") if isinstance(b.get("tool_use_id"), str)
            }
            if had and not waiting:
                refused = 0
        if is_boundary:
            boundary, after_boundary = at, True
        elif (summary and main_line) or (kind == "summary" and after_boundary):
            repeat = at if boundary is None else boundary
            close(end, "compaction")
            deltas.append(Delta(repeat, end, "compaction", "compaction"))
        else:
            after_boundary = False
    if start < len(data):
        deltas.append(Delta(start, len(data), closed=False))
    return deltas


def agents_of_claude_code(data):
    """The lines of each agent inside a file that has a main line of its own."""
    found, owners, main, side = {}, {}, False, False
    for _, text in lines_of(data):
        record = record_of(text) or {}
        names = {key: record.get(key) if isinstance(record.get(key), str) else "" for key in KEYS}
        speaks = record.get("type") in ("user", "assistant")
        if record.get("isSidechain") is not True:
            main = main or (speaks and text.endswith(b"\n"))
            continue
        side = side or speaks
        agent = names["agentId"] or owners.get(names["parentUuid"]) or names["uuid"]
        if not (names["agentId"] or names["uuid"]):
            continue
        if names["uuid"]:
            owners[names["uuid"]] = agent
        found.setdefault(agent, []).append(text)
    return {agent: b"".join(lines) for agent, lines in found.items()} if main and side else {}


KEYS = ("agentId", "uuid", "parentUuid")


# -- Codex: cut-2 of codex ---------------------------------------------------------------------------------------------

EVENTS = dict.fromkeys(("task_started", "turn_started"), "begin")
EVENTS |= dict.fromkeys(("task_complete", "turn_complete", "turn_aborted"), "end")
EVENTS |= {"user_message": "heard"}
EVENTS |= dict.fromkeys(("agent_message", "agent_reasoning", "agent_reasoning_raw_content"), "said")
ITEMS = dict.fromkeys(("function_call", "custom_tool_call", "local_shell_call", "tool_search_call"), "call")
ITEMS |= dict.fromkeys(("function_call_output", "custom_tool_call_output", "tool_search_output"), "output")
ITEMS |= dict.fromkeys(("reasoning", "web_search_call", "image_generation_call"), "said") | {"agent_message": "heard"}
SHOWN = {"UserMessage": "heard", "AgentMessage": "said", "Reasoning": "said"}


def item_act(item):
    if item.get("type") == "message":
        return "said" if item.get("role") == "assistant" else "heard"
    return ITEMS.get(item.get("type")) if isinstance(item.get("type"), str) else None


def codex_act(record):
    """What a record does, and the object that says so."""
    kind, payload = record.get("type"), record.get("payload")
    if not (isinstance(kind, str) and isinstance(payload, dict)):
        if isinstance(kind, str):
            bare = {"compacted": "boundary", "inter_agent_communication": "heard"}
            return bare.get(kind) or item_act(record), record
        said = isinstance(record.get("role"), str) and record.get("record_type") != "state"
        return item_act(record | {"type": "message"}) if said else None, record
    if kind == "response_item":
        return item_act(payload), payload
    if kind == "event_msg":
        name, item = payload.get("type"), payload.get("item")
        if name == "item_completed":
            return SHOWN.get(item.get("type")) if isinstance(item, dict) else None, payload
        return EVENTS.get(name) if isinstance(name, str) else None, payload
    return {"compacted": "boundary", "inter_agent_communication": "heard"}.get(kind), payload


def codex(data):
    """Rule cut-2 of codex."""
    deltas, start = [], 0
    calls, acts = {}, []

    def checkpoint():
        last = acts[-1] if acts else None
        return "compaction" if last == "boundary" else "tool_call" if last in ("call", "output") else "turn_boundary"

    def close(end):
        nonlocal start, calls, acts
        deltas.append(Delta(start, end, checkpoint=checkpoint()))
        start, calls, acts = end, {}, []

    for at, line in lines_of(data):
        end, whole = at + len(line), line.endswith(b"\n")
        record = record_of(line)
        if record is None:
            continue
        act, said = codex_act(record)
        if whole and at > start:
            calls = {call: begun for call, begun in calls.items() if at - begun < 256 * KIB}
            spoke = any(a in ("said", "call") for a in acts)
            cuts = act in ("begin", "boundary") and (spoke or "heard" in acts)
            if not cuts and (not calls or act == "begin"):
                size = at - start
                cuts = (act == "heard" and spoke) or size >= 256 * KIB
                cuts = cuts or (act in ("said", "call") and "output" in acts and size >= 8 * KIB)
            if cuts:
                close(at)
        if act:
            acts.append(act)
        call = said.get("call_id") if isinstance(said.get("call_id"), str) else ""
        if act == "call":
            calls[call or f"@{at}"] = at
        elif act == "output":
            calls.pop(call, None)
        elif act in ("begin", "end", "boundary"):
            calls = {}
        if act == "boundary" and whole:
            close(end)
            deltas.append(Delta(at, end, "compaction", "compaction"))
    if start < len(data):
        deltas.append(Delta(start, len(data), checkpoint=checkpoint(), closed=False))
    return deltas


# -- the session log: log-cut-2 ----------------------------------------------------------------------------------------


def log_objects(line):
    """The objects on a line of a log with their bytes, and whether the line is plain: one object, and nothing odd."""
    text, body = line.rstrip(b"\n"), line.rstrip(b"\n").removeprefix(BOM)
    plain, found, at = text == body and line.endswith(b"\n"), [], 0
    try:
        words = body.decode()
    except UnicodeDecodeError:
        words, plain = body.decode("utf-8", "replace"), False
    odd = re.findall(r"\\u[dD][89a-fA-F]", words)

    def whole(digits):
        if not -(2**63) <= int(digits) < 2**64:
            odd.append(digits)
        return int(digits)

    def constant(word):
        odd.append(word)
        return float(word)

    decoder = json.JSONDecoder(strict=False, parse_int=whole, parse_constant=constant)
    while at < len(words):
        if words[at] in " \t\r":
            at += 1
            continue
        try:
            value, end = decoder.raw_decode(words, at)
        except ValueError:
            return [], False
        found.append((value, words[at:end].encode("utf-8", "replace")))
        at = end
    objects = [(value, raw) for value, raw in found if isinstance(value, dict)]
    if len(found) == 1:
        objects = [(value, body) for value, _ in objects]
    return objects, plain and len(found) == 1 and not odd


def id_of(value):
    return value if isinstance(value, str) else str(value) if type(value) is int else ""


def second(line):
    stamp = line.get("timestamp")
    if isinstance(stamp, int | float) and not isinstance(stamp, bool):
        return round(stamp * 1_000_000)
    return instant_of(stamp)


def in_v2(line):
    """A line with the keys of v2."""
    if "agent" in line and "agent_id" not in line:
        line = {("agent_id" if key == "agent" else key): value for key, value in line.items()}
        line |= {"event_type": "piece_of_text"} if line.get("event_type") == "fragment" else {}
    return line


def session_log(data):
    """Rule log-cut-2."""
    deltas, start, main = [], 0, None
    waiting, refused, spoken, last = set(), 0, False, ""

    def close(end, checkpoint):
        nonlocal start, waiting, refused, spoken, last
        deltas.append(Delta(start, end, checkpoint=checkpoint))
        start, waiting, refused, spoken, last = end, set(), 0, False, ""

    for at, text in lines_of(data):
        objects, plain = log_objects(text)
        for value, _ in objects:
            line = in_v2(value)
            kind, agent, role = line.get("event_type"), id_of(line.get("agent_id")), line.get("role")
            message = id_of(line.get("message_id"))
            action = line.get("action") if kind == "transcript_edit" else ""
            if action == "truncate":
                waiting = {call for call in waiting if call[0] != agent}
                refused = refused if waiting else 0
            if plain and at > start:
                opens = kind == "transcript_entry"
                opens = opens and (role in ("user", "system") or (role == "assistant" and message != last))
                opens = opens or action in ("truncate", "restore", "compact")
                opens = opens and agent == main and spoken
                cuts = opens or at - start >= 256 * KIB
                if cuts and waiting and not (opens and action == "truncate") and at - start < 16 * MIB:
                    refused += opens
                    cuts = refused > 4
                if cuts:
                    close(at, "turn_boundary")
            if main is None and kind in ("agent_created", "transcript_entry"):
                main = agent
            if kind == "transcript_entry" and role == "assistant":
                calls = line.get("tool_calls") if isinstance(line.get("tool_calls"), list) else []
                waiting |= {
                    (agent, id_of(call.get("id")))
                    for call in calls
                    if isinstance(call, dict) and isinstance(call.get("function"), dict)
                }
                if agent == main:
                    spoken, last = True, message
            elif kind == "transcript_entry" and role == "tool":
                waiting.discard((agent, id_of(line.get("tool_call_id"))))
                refused = refused if waiting else 0
            if plain and not waiting and agent == main:
                if kind == "agent_terminated":
                    close(at + len(text), "session_end")
                elif action == "compact":
                    close(at + len(text), "compaction")
                    deltas.append(Delta(at, at + len(text), "compaction", "compaction"))
    if start < len(data):
        deltas.append(Delta(start, len(data), closed=False))
    return deltas


def agents_of_log(data):
    """The lines of each agent but the main one."""
    main, found = None, {}
    for _, text in lines_of(data):
        objects = log_objects(text)[0]
        for number, (value, raw) in enumerate(objects, 1):
            line = in_v2(value)
            kind, agent = line.get("event_type"), id_of(line.get("agent_id"))
            if main is None and kind in ("agent_created", "transcript_entry"):
                main = agent
            is_own = isinstance(kind, str) and kind not in ("piece_of_text", "recovery")
            if main is not None and agent not in ("", main) and is_own:
                ended = number < len(objects) or text.endswith(b"\n")
                found.setdefault(agent, []).append(raw + b"\n" if ended else raw)
    return {agent: b"".join(lines) for agent, lines in found.items()}


def log_session(path):
    """The session id of a log: its file's name, and digits of its first line."""
    first = next(text.rstrip(b"\n") for _, text in lines_of(Path(path).read_bytes()) if text.strip(SPACE))
    return f"{Path(path).stem}-{artifact_name(first)[:8]}"


# -- from deltas to commits --------------------------------------------------------------------------------------------


def listed(*items):
    return b"".join(b"%d:%b;" % (len(data := item.encode()), data) for item in items)


def chain(data, deltas, *, format, template, session):
    """Name, seal, type, checkpoint and artifact of each commit."""
    found, parent, parent_seal, time = [], "", "", 0
    for delta in deltas:
        content = data[delta.start : delta.end]
        known = [instant for _, line in lines_of(content) for instant in instants(line, format) if instant is not None]
        time = max(time, known[-1] if known else 0)
        artifact, created = artifact_name(content), as_seconds(time)
        named = "\0".join(("ctx-" + parent[:8] if parent else "", "art-" + artifact[:12], created, template))
        name = hashlib.sha256(named.encode()).hexdigest()
        sealed = ("1", artifact, parent_seal, created, template, format, delta.kind, delta.checkpoint, session, "", "")
        seal = keyed("harken.commit.seal", listed(*sealed)).hex()
        found.append((name, seal, delta.kind, delta.checkpoint, artifact))
        parent, parent_seal = name, seal
    return found


def instants(line, format):
    """The instants that a line names."""
    if format == "session-log-v2":
        return [second(value) for value, _ in log_objects(line)[0]]
    record = record_of(line)
    return [instant_of(record.get("timestamp"))] if record else []


RULES = {
    "claude-code-v1": ("claude-code", claude_code),
    "codex-v1": ("codex", codex),
    "session-log-v2": ("harken", session_log),
}


def session_of(path, format):
    """The session that the commits of a file name."""
    for _, line in lines_of(Path(path).read_bytes()):
        record = record_of(line) or {}
        if format == "codex-v1":
            payload = record.get("payload")
            bare = payload is None and not record.get("type") and "timestamp" in record
            meta = payload if record.get("type") == "session_meta" else record if bare else None
            found = meta.get("id") if isinstance(meta, dict) else None
        else:
            found = record.get("sessionId")
        if isinstance(found, str) and found and not ("subagents" in Path(path).parts and found == Path(path).stem):
            return found
    parts = Path(path).parts
    stem = parts[parts.index("subagents") - 1] if "subagents" in parts else Path(path).stem
    uuid = re.search(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", stem)
    return "" if uuid is None else uuid[0] if format == "codex-v1" else stem


def chain_of(data, format, session):
    """The chain that an import of these bytes makes."""
    template, rule = RULES[format]
    return chain(data, rule(data), format=format, template=template, session=session)
