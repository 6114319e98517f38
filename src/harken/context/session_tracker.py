"""The chains of a session log that is being written: one of the log's own lines, and one of each agent's.

The log's chain goes by the session's id and holds every line; that of an agent below goes by `SESSION/AGENT` and holds
its own lines, so what it knew and no more. Both are cut by the format's rule (`log-cut-2`) and kept by `chains.extend`,
as an import of the file would, so a session that was kept while it was written and one that was imported have the
same commits. The frequency only says how soon.

The tracker never stands in the way of the agents. What cannot be kept is told to `on_warning` and tried again with the
next lines; whoever opens the log again reads it from the start, and every chain passes over what it has.

A session's row is compared before it is saved. An import of the same log may have gone on meanwhile: its commits are
the ones made here, and what it kept beyond them is not taken back. What somebody else put on the chain is no line of
the log: it stays among the session's older ends.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from harken import ids
from harken.errors import Closed
from harken.formats.base import Delta
from harken.formats.facts import Origin
from harken.formats.session_log import FORMAT, LogRecord, LogScanner, main_agent, owner, told_records
from harken.store.base import Draft, SessionRow, Store, Writer

from . import refs, turns
from .chains import SourceMemory, extend, recall, remember
from .tracker import Keeper, Warn
from .walk import DELTA

RUNTIME = "harken"
STOPS = ("question", "limit")
"""Notices after which an agent goes on when somebody has answered, or allowed more: nobody knows when that is."""


class SessionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a session is kept."""

    frequency: str = "turn"
    """`turn`, `tool`, `every=N` or `end`: when what follows the last cut is kept."""
    principal: str = ""
    """Whose it is; `harken:SESSION` unless given."""
    on_warning: Warn | None = None


class SessionTracker:
    """Feeds the log's lines to its chain, and each agent's to that agent's."""

    def __init__(
        self,
        repo: Keeper,
        *,
        session: str,
        source: str,
        settings: SessionSettings,
        forked_from: Callable[[Origin | None], str] = lambda told: "",
    ) -> None:
        """`forked_from` is asked, when the session's own chain begins, for the commit that it goes on from, if any; it
        is given what the log says of that."""
        self._forked_from = forked_from
        self.session = session
        self.settings = settings
        self.principal = settings.principal or f"{RUNTIME}:{session}"
        self._repo = repo
        self._source = source
        self._rule = turns.frequency(settings.frequency)
        self._warn: Warn = settings.on_warning or (lambda _: None)
        self._lock = threading.RLock()
        self._chains: dict[str, LogChain] = {}
        self._backlog: deque[tuple[LogRecord, bytes, bool]] = deque()

    @property
    def root(self) -> str:
        """The agent whose conversation the session's own chain is."""
        return (self._chains[""].scanner.now.main or "") if self._chains else ""

    def agents(self) -> list[str]:
        """The agents that have a chain, in the order they came."""
        return [agent or self.root for agent in list(self._chains)]

    def tip(self, agent: str = "") -> str:
        """The newest commit of an agent's chain (of the session's own, without one); empty before the first."""
        chain = self._chains.get("" if agent == self.root else agent)
        return chain.memory.chain.tip if chain else ""

    def feed(self, lines: bytes) -> None:
        """Take in what was logged: whole lines, in order. Where the store cannot be asked, they wait."""
        with self._lock:
            self._backlog.extend(told_records(lines))
            self._work(lambda chain: chain.is_due(self._rule))

    def checkpoint(self) -> None:
        """Keep what is pending, of every agent."""
        with self._lock:
            self._work(lambda chain: chain.is_fresh, keep_tail=True)

    def close(self) -> None:
        """The session has ended."""
        self.checkpoint()

    def _work(self, due: Callable[[LogChain], bool], *, keep_tail: bool = False) -> None:
        try:
            while self._backlog:
                self._take(*self._backlog[0])
                self._backlog.popleft()
            self._keep([chain for chain in self._chains.values() if due(chain)], keep_tail=keep_tail)
        except Closed:
            raise  # nothing will ever be kept again, and whoever closed the store has to know
        except Exception as problem:  # noqa: BLE001  whatever is wrong with the store, the agents go on
            self._warn(f"the store did not answer, and is asked again later: {problem}")

    def _take(self, record: LogRecord, text: bytes, ended: bool) -> None:
        # The store is asked for both chains before either takes the line, so that no line is taken twice.
        line, main = record.data, self._chain("")
        agent = owner(line) if line is not None else ""
        root = main.scanner.now.main
        if root is None and line is not None:
            root = main_agent(line)
        own = self._chain(agent) if root is not None and agent and agent != root else None
        main.take(record, text, ended)
        if own is not None:
            text = record.raw + b"\n" if ended else record.raw
            # In the agent's own lines the record stands alone: what was odd about its line (a second object on it) is
            # not odd there, and an import, which reads those lines, would cut.
            alone = record if record.problem is None else next(iter(told_records(text)))[0]
            own.take(alone, text, ended)

    def _chain(self, agent: str) -> LogChain:
        if agent not in self._chains:
            source = ids.source_within(self._source, agent)
            self._chains[agent] = LogChain(agent, source, refs.find_session(self._repo.store, self._name(agent)))
        return self._chains[agent]

    def _name(self, agent: str) -> str:
        return f"{self.session}/{agent}" if agent else self.session

    def _parent(self, agent: str) -> str:
        """The session whose agent made this one."""
        return self._name(self._chain("").scanner.now.makers.get(agent, ""))

    def _keep(self, chains: Sequence[LogChain], *, keep_tail: bool) -> None:
        """One transaction for all of them: a crash leaves each chain where it was, or all of them further on."""
        if not chains:
            return
        now, store = self._repo.clock(), self._repo.store
        with store.write() as writer:
            # Nobody else can write now, so the rows are the newest there are; they are compared all the same.
            chains = [chain for chain in chains if chain.meet(store, refs.find_session(store, self._name(chain.agent)))]
            kept = [chain.extend(writer, self._facts(chain), now=now, keep_tail=keep_tail) for chain in chains]
            rows = [
                writer.save_session(self._row(chain, memory), expect=chain.row.version if chain.row else 0)
                for chain, memory in zip(chains, kept, strict=True)
            ]
        for chain, memory, row in zip(chains, kept, rows, strict=True):
            chain.settle(memory, row)

    def _facts(self, chain: LogChain) -> Draft:
        """What every commit of a chain says."""
        agent = chain.agent
        spawned: dict[str, Any] | None = None
        if agent:
            call = self._chain("").scanner.now.calls.get(agent, "")
            spawned = {"session": self._parent(agent), "call_id": call, "inherits": False}
        return Draft(
            artifact="",
            format=FORMAT.name,
            time=0,
            template=RUNTIME,
            principal=f"{self.principal}/{agent}" if agent else self.principal,
            session_id=self.session,
            spawned_from=spawned,
            forked_from="" if agent or chain.memory.chain.closed else self._forked_from(chain.scanner.now.origin),
        )

    def _row(self, chain: LogChain, memory: SourceMemory) -> SessionRow:
        facts = chain.scanner.now
        return msgspec.structs.replace(
            chain.row or SessionRow(session=self._name(chain.agent), runtime=RUNTIME),
            tip=memory.chain.tip,
            parent=self._parent(chain.agent) if chain.agent else "",
            agent=chain.agent,
            title=facts.title,
            source=chain.source,
            started=facts.tally.started,
            ended=facts.tally.ended,
            messages=facts.tally.messages - facts.inside,
            template=RUNTIME,
            principal=f"{self.principal}/{chain.agent}" if chain.agent else self.principal,
            machine=getattr(self._repo, "machine", ""),
            cost_usd_micros=facts.tally.cost_usd_micros,
            state=remember({**chain.others, chain.source: memory}),
            lost=False,
        )


class LogChain:
    """Lines on their way into one chain."""

    def __init__(self, agent: str, source: str, row: SessionRow | None) -> None:
        self.agent = agent
        self.source = source
        self.row = row
        self.others = recall(row)
        """What the row remembers of other files of the session."""
        self.memory = self.others.pop(source, SourceMemory())
        self.scanner = LogScanner(self.memory.scan.encode())
        self._skip = self.memory.offset
        """Bytes of the chain's own lines that are in closed commits already."""
        self._start = self.memory.offset
        self._lines = bytearray()
        """What follows them."""
        self._turns = 0
        self._answered = False
        self._stopped = False
        """Whether the last line says that the agent waits for somebody."""
        self._fresh = False
        self._met = row.version if row is not None and row.tip == self.memory.chain.tip else 0
        """The version of the row that is accounted for."""
        self._theirs: bytes | None = b""
        """What others have put behind the last closed commit in that version; None where they left the chain."""

    def meet(self, store: Store, row: SessionRow | None) -> bool:
        """Take note of what others have made of the row; False while they have kept more of the log than is here."""
        if row is None or (row.version == self._met and self._theirs == b""):
            return True
        if row.lost:  # what a repair left is the beginning of what is made here again, from the log's first line on
            self.row, self._met, self._theirs = row, row.version, b""
            return True
        if row.version != self._met:
            self.row, self._met, self._theirs = row, row.version, self._above(store, row.tip)
            self.others = {path: known for path, known in recall(row).items() if path != self.source}
        if self._theirs is not None and len(self._lines) < len(self._theirs) and self._theirs.startswith(self._lines):
            return False
        if self._theirs is not None and self._lines.startswith(self._theirs):
            # Their tail gives way to what is made here, as one of this chain's own would.
            tail = "" if row.tip == self.memory.chain.closed else row.tip
            chain = msgspec.structs.replace(self.memory.chain, tail=tail)
            self.memory = msgspec.structs.replace(self.memory, chain=chain)
        else:
            self.row = msgspec.structs.replace(row, older=tuple(dict.fromkeys((row.tip, *row.older))))
            self.memory = msgspec.structs.replace(self.memory, old_tips=self.row.older)
        self._theirs = b""
        return True

    def _above(self, store: Store, tip: str) -> bytes | None:
        """The lines on another's chain behind the last closed commit of this one; None where it is not part of it."""
        closed, artifacts = self.memory.chain.closed, list[str]()
        for step in store.walk(tip) if tip else ():
            if step.id == closed:
                break
            if step.format != FORMAT.name:
                return None
            if step.commit_type == DELTA:
                artifacts.append(step.artifact)
        else:
            if closed:
                return None
        return b"".join(store.get_many(artifacts[::-1]))

    def take(self, record: LogRecord, text: bytes, ended: bool) -> None:
        """The next record of the chain, and its bytes."""
        if self._skip > 0:
            self._skip -= len(text)
            return
        self.scanner.take(record, len(text), ended=ended)
        self._lines += text
        self._fresh = True
        line = record.data or {}
        self._turns += line.get("role") == "assistant"
        self._answered = line.get("role") == "tool"
        self._stopped = line.get("event_type") == "system" and line.get("subtype") in STOPS

    @property
    def is_fresh(self) -> bool:
        """Whether anything came in since it was last kept."""
        return self._fresh

    def is_due(self, rule: turns.Frequency) -> bool:
        """Whether what came in is to be kept now."""
        if not self._fresh or not rule.turns:
            return False
        if self._stopped or (rule.tools and self._answered):
            return True
        if self.scanner.now.offset == self.scanner.state.offset:  # a compaction or the end has closed it
            return True
        return (self.scanner.at_rest or bool(self.scanner.closed)) and self._turns >= rule.turns

    def extend(self, writer: Writer, facts: Draft, *, now: int, keep_tail: bool) -> SourceMemory:
        """Commit what has closed, and what follows where that is asked for or the agent has come to rest."""
        tail = self.scanner.tail()
        deltas = ((delta, self._bytes(delta)) for delta in (*self.scanner.closed, *([tail] if tail else [])))
        keep_tail = keep_tail or self._answered or self._stopped or self.scanner.at_rest
        extended = extend(writer, self.memory.chain, deltas, facts, now=now, keep_tail=keep_tail)
        state, origin = self.scanner.state, self.scanner.now.origin
        return SourceMemory(
            live=True,
            offset=state.offset,
            scan=msgspec.json.encode(state).decode(),
            chain=extended.state,
            old_tips=self.memory.old_tips,
            first=state.first,
            calls=state.calls,
            makers=state.makers,
            copies=origin.source if origin else "",
            origin=origin,
            spawned_from=facts.spawned_from,
            forked_from=facts.forked_from or self.memory.forked_from,
        )

    def settle(self, memory: SourceMemory, row: SessionRow) -> None:
        """The transaction has landed."""
        self.memory, self.row = memory, row
        self._met, self._theirs = row.version, b""
        self.scanner.closed.clear()
        del self._lines[: memory.offset - self._start]
        self._start = memory.offset
        self._turns, self._fresh = 0, memory.chain.tail == "" and bool(self._lines)

    def _bytes(self, delta: Delta) -> bytes:
        return bytes(self._lines[delta.start - self._start : delta.end - self._start])
