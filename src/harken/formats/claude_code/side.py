"""Sub-agents inside their parent's file, as the oldest versions wrote them: whose is which line.

Newer records of a side chain name their agent. Older ones do not: there, a side-chain record whose parent is no
side-chain record begins an agent, and everything below it is that agent's.
"""

from __future__ import annotations

from harken.formats.kit.jsonl import is_overlong, lines

from .records import take


def side_chains(data: bytes) -> dict[str, bytes]:
    """The lines of each agent, verbatim and in order, under its id or the uuid of its first record."""
    agents: dict[str, list[bytes]] = {}
    owner: dict[str, str] = {}
    for start, end in lines(data):
        if is_overlong(end - start):
            continue
        text = data[start:end]
        line = take(text)
        if line is None or line.isSidechain is not True or not (line.agentId or line.uuid):
            continue
        agent = line.agentId or owner.get(line.parentUuid or "") or line.uuid or ""
        if line.uuid:
            owner[line.uuid] = agent
        agents.setdefault(agent, []).append(text)
    return {agent: b"".join(texts) for agent, texts in agents.items()}
