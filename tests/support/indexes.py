"""What an index says, whatever numbers its rows have."""

from __future__ import annotations

from harken.index import StoreIndex

SESSION = "(SELECT session FROM sessions WHERE n = {0}.session)"
MESSAGE = "(SELECT key FROM messages WHERE n = {0}.message)"
COMMIT = '(SELECT hex("commit") FROM commits WHERE n = {0}."commit")'
SAID = {
    "sessions": "SELECT session, runtime, project, title, parent, agent, started, ended FROM sessions",
    "stale": f"SELECT {SESSION.format('stale')} FROM stale",
    "commits": f'SELECT hex("commit"), {SESSION.format("commits")}, "end", rows, agents, marks, names, beside'
    " FROM commits",
    "problems": "SELECT * FROM problems",
    "messages": f"SELECT key, {SESSION.format('messages')}, agent, role, tool, model, time,"
    f" {COMMIT.format('messages')}, record, event, size, sum FROM messages",
    "copies": f"SELECT {MESSAGE.format('copies')}, {SESSION.format('copies')}, record, {COMMIT.format('copies')}"
    " FROM copies",
    "awaited": f"SELECT source, key, {SESSION.format('awaited')} FROM awaited",
    "continued": f'SELECT {SESSION.format("continued")}, hex("commit"), told FROM continued',
    "sources": "SELECT session, recorded, told FROM sources",
    "superseded": f"SELECT key, {MESSAGE.format('superseded')}, call_id FROM superseded",
    "families": f"SELECT {SESSION.format('families')}, family, own FROM families",
    "agents": f"SELECT {SESSION.format('agents')}, agent, name FROM agents",
    "calls": f"SELECT {MESSAGE.format('calls')}, {SESSION.format('calls')}, tool, call_id, time, took, failed, what"
    " FROM calls",
    "touched": f"SELECT {MESSAGE.format('touched')}, {SESSION.format('touched')}, path, op FROM touched",
    "flow": f"SELECT {MESSAGE.format('flow')}, {SESSION.format('flow')}, source, target, how FROM flow",
    "usage": f"SELECT {SESSION.format('usage')}, key, api, time, model, agent, input, output, cache_read,"
    " cache_write_5m, cache_write_1h, reasoning, said_usd, cost, several, nested, carried, counted FROM usage",
    "figures": f"SELECT {SESSION.format('figures')}, human, injected, results, responses, calls, errors, compactions,"
    " pays, problem, report FROM figures",
    "usage_totals": f"SELECT {SESSION.format('usage_totals')}, slot, model, agent, requests, input, output, cache_read,"
    " cache_write, cost, fraction, priced, unpriced, said_usd FROM usage_totals",
    "call_totals": f"SELECT {SESSION.format('call_totals')}, slot, tool, calls, failed, took FROM call_totals",
    "unsummed": f"SELECT {SESSION.format('unsummed')} FROM unsummed",
    "compactions": f'SELECT {MESSAGE.format("compactions")}, time, before, after, "trigger" FROM compactions',
}


def digest(index: StoreIndex) -> dict[str, list[tuple[object, ...]]]:
    """Every table, without the numbers that rows got as they arrived, and the words of each message."""
    said = {table: sorted(index.query(query), key=repr) for table, query in SAID.items()}
    return said | {"words": sorted(index.query("SELECT key FROM messages, words_docsize ON id = n"))}


def found(index: StoreIndex, words: str) -> list[tuple[str, str]]:
    """Role and record of the messages that have these words, in the order of arrival; titles repeat a prompt."""
    rows = index.query(
        "SELECT role, record FROM words JOIN messages ON n = words.rowid"
        " WHERE words MATCH ? AND role != 'title' ORDER BY n",
        (words,),
    )
    return [(role, record) for role, record in rows]
