"""The methods of `RemoteRepo` about sessions: look at them, count them, find in them, take them in and let them go."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Unpack

import msgspec

from harken.analytics.report import of as report_of
from harken.api.export import ExportRequest
from harken.api.forgetting import ForgetRequest, RestoreRequest, SecretAnswer, SecretsRequest
from harken.api.index import IndexRequest
from harken.api.runtimes import ImportAnswer, ImportReport, ImportRequest, ResumeRequest
from harken.api.search import SearchHit, SearchRequest
from harken.api.search_values import SearchValuesRequest
from harken.api.secret_rules import OwnRule
from harken.api.sessions import AgentsRequest
from harken.api.sql import SqlRequest
from harken.api.stats import StatsRequest
from harken.api.std_export import StdExportRequest
from harken.api.summarize import SummarizeRequest, SummaryAnswer
from harken.api.upkeep import FsckFinding, FsckRequest, GcRequest
from harken.api.verbatim import EventBytesRequest, SessionRowsRequest
from harken.context import Ref
from harken.errors import BadRequest, HarkenError, NotFound, Unreachable
from harken.events import Event
from harken.events.cbor import decode_events
from harken.formats.std.document import Document
from harken.formats.std.document import read as read_document
from harken.index.asking import SqlResult
from harken.index.search import SearchResult
from harken.repo import Repo, SessionAgent
from harken.repo.arguments import ImportOptions, LessOptions, SessionOrFile
from harken.repo.candidates import SecretCandidate
from harken.repo.counting import SessionFigures, TotalFigures
from harken.repo.documents import SessionDocument
from harken.repo.erasing import check_forgotten
from harken.repo.erasure_plan import ForgetPlace, ForgetReport
from harken.repo.finding import check_hits
from harken.repo.summarizing import Summarized
from harken.runtimes.memory import ImportResult, skipped
from harken.runtimes.resume import Resumed
from harken.secrets import RULES
from harken.store import GcReport, Report, SessionRow, open_store
from harken.store.reports import Finding
from harken.views import SessionViewer

from . import values
from .asking import AskingService, read_rest, word_of, word_or_none
from .remote_numbers import RemoteExport, RemoteSpent

if TYPE_CHECKING:
    from harken.analytics.report import SessionReport
    from harken.index import IndexProgress, OnProgress
    from harken.index.spending import Spending, Spent
    from harken.repo.exporting import Export
    from harken.runtimes import Environment
    from harken.secrets import Rule


class RemoteSessions(AskingService):
    """Sessions of a store behind a service."""

    # -- looking -----------------------------------------------------------------------------------------------

    def agents(self, session: SessionOrFile) -> list[SessionAgent]:
        """The agents of a session in the store (its id, or a unique beginning), or of a log file (a path object)."""
        if not isinstance(session, str):
            return _without_store().agents(session)
        if not session:  # which would ask for those of a file
            raise NotFound(f"there is no session {session!r}", hint="`harken sessions` lists them")
        found = list(self.ask_service("agents", AgentsRequest(session=session)))
        tips = {one.tip: self.commit(one.tip).id for one in found if one.tip}
        return [
            SessionAgent(
                **values.same_fields(SessionAgent, one)
                | {"session": one.session or "", "parent": one.parent or "", "tip": tips.get(one.tip, "")}
            )
            for one in found
        ]

    def events(self, session: SessionOrFile) -> list[Event]:
        """Everything the agents of a session said, heard and did, as one stream in the order of time; of a file (a
        path object), in whatever format it is, what it holds."""
        if not isinstance(session, str):
            return _without_store().events(session)
        pieces = self.ask_service("event_bytes", EventBytesRequest(session=word_of(session)))
        return [event for piece in pieces for event in decode_events(piece.body)]

    def view(self, session: SessionOrFile) -> SessionViewer:
        """The views of a session in the store (its id, or a unique beginning), or of a log file (a path object)."""
        if not isinstance(session, str):
            return _without_store().view(session)
        return SessionViewer.of(self.events(session))

    def sessions(self, prefix: str = "") -> list[SessionRow]:
        """The sessions in the store."""
        return read_rest(self.ask_service("session_rows", SessionRowsRequest(prefix=prefix)), values.row_of)

    def export(
        self,
        ref: SessionOrFile,
        *,
        to: str,
        agents: bool = True,
        reveal: bool = False,
        pictures: str = "",
        own_rules: Sequence[Rule] = (),
    ) -> Export:
        """A session of the store (a REF: the session as it stood there) or of a file (a path object) as `md`, `html`,
        `txt` or `jsonl`."""
        if not isinstance(ref, str):
            local = _without_store()
            return local.export(ref, to=to, agents=agents, reveal=reveal, pictures=pictures, own_rules=own_rules)
        request = ExportRequest(
            ref=word_of(ref), to=to, agents=agents, reveal=reveal, pictures=pictures, own_rules=_told_rules(own_rules)
        )
        return RemoteExport(self.ask_service("export", request))

    def document(
        self,
        ref: SessionOrFile,
        *,
        kind: str = "",
        reveal: bool = False,
        own_rules: Sequence[Rule] = (),
        name: str = "",
        taken: Sequence[str] = (),
        moved: Callable[[int], None] | None = None,
    ) -> SessionDocument:
        """A session of the store or of a file (a path object) as a document of STD-001 or STD-008."""
        options: dict[str, Any] = {"kind": kind, "reveal": reveal, "name": name, "taken": tuple(taken)}
        if not isinstance(ref, str):
            return _without_store().document(ref, own_rules=own_rules, moved=moved, **options)
        request = StdExportRequest(ref=word_of(ref), own_rules=_told_rules(own_rules), **options)
        made = self.ask_service("std_export", request)
        document = Document(data=read_document(made.body).data, kind=made.kind)
        return SessionDocument(
            document=document,
            derived=made.derived,
            losses=list(values.losses_of(made.losses)),
            masked={one.rule: one.count for one in made.masked},
            agents=made.agents,
            unread=made.unread,
        )

    # -- counting ----------------------------------------------------------------------------------------------

    def stats(
        self, sessions: Sequence[SessionOrFile] = (), *, agents: bool = True, prices: str = ""
    ) -> Iterator[SessionFigures | TotalFigures]:
        """Tokens, prompts and tools of sessions in the store (ids) or of files (path objects), each counted once."""
        files = [one for one in sessions if not isinstance(one, str)]
        if files and len(files) == len(sessions):
            return _without_store().stats(files, agents=agents, prices=prices)
        if files:
            raise BadRequest("files of this machine are not counted with a service's sessions", hint="one at a time")
        request = StatsRequest(sessions=tuple(map(str, sessions)), agents=agents, prices=prices)
        return map(values.counted_of, self.ask_service("stats", request))

    def report(self, session: SessionOrFile, *, window: int = 0) -> SessionReport:
        """Where a session's time went, what came of what people said, how it ended, tools, files and who told whom."""
        return report_of(self.events(session), window=window)

    def usage(
        self, since: int | None = None, until: int | None = None, *, project: str = "", prices: str = ""
    ) -> tuple[Spent, IndexProgress]:
        """What was used from an instant on and before another, and how far the index is that tells it."""
        spent = RemoteSpent(self, since, until, project, prices)
        return spent, values.progress_of(spent.whole)

    def session_costs(
        self, *, prices: str = "", reached: Callable[[IndexProgress], None] | None = None
    ) -> dict[str, Spending]:
        """What each session used and cost, its sub-agents included, as far as the index tells."""
        spent = RemoteSpent(self, None, None, "", prices, by="session")
        if reached is not None:
            reached(values.progress_of(spent.whole))
        return {group.key: group.spending for group in spent.groups("session")}

    # -- finding -----------------------------------------------------------------------------------------------

    def search(self, query: str, *, limit: int = 10, snippets: bool = True) -> SearchResult:
        """The messages that a query finds, the best first."""
        check_hits(limit)
        found = list(self.ask_service("search", SearchRequest(query=query, limit=limit)))
        hits = [one for one in found if isinstance(one, SearchHit)]
        rest = next((one for one in found if not isinstance(one, SearchHit)), None)
        commits = {short: self.commit(short).id for short in {one.commit for one in hits if one.commit}}
        reached = values.progress_of(rest, rest.rebuilt if rest else "")
        more = bool(rest and rest.more)
        return SearchResult(hits=[values.hit_of(one, commits) for one in hits], more=more, reached=reached)

    def search_filters(self) -> dict[str, str]:
        """The filters that a query may have, and what the value of each is."""
        return _without_store().search_filters()

    def search_values(self, name: str) -> list[str]:
        """The values that a filter of a query may have: those that something in the store has."""
        return list(self.ask_service("search_values", SearchValuesRequest(name=name)).values)

    def has_search_value(self, name: str, value: str) -> bool:
        """Whether a filter of a query may have this value: something in the store has it, or a name that it fits."""
        return bool(self.ask_service("search_values", SearchValuesRequest(name=name, value=value)).known)

    def sql(
        self, query: str, *, seconds: float = 10.0, rows: int = 1000, megabytes: int = 256, prices: str = ""
    ) -> SqlResult:
        """The rows of a query in SQL over the views of the index, which it can only read."""
        request = SqlRequest(query=query, seconds=seconds, rows=rows, megabytes=megabytes, prices=prices)
        found = self.ask_service("sql", request)
        told = [tuple(row) for row in found.rows]
        return SqlResult(columns=tuple(found.columns), rows=told, more=found.more, reached=values.progress_of(found))

    def keep_index(self, moved: OnProgress | None = None, *, numbers: bool = True) -> str:
        """Bring the index up to date; the answer is why it could not follow, empty where it could."""
        try:
            self.ask_service("index", IndexRequest())
        except Unreachable:
            raise
        except HarkenError as problem:
            return str(problem)
        return ""

    # -- in and out --------------------------------------------------------------------------------------------

    def import_sessions(
        self,
        paths: Sequence[str | os.PathLike[str]] = (),
        *,
        runtimes: Sequence[str] = (),
        environ: Environment | None = None,
        principal: str = "",
        **options: Unpack[ImportOptions],
    ) -> Iterator[ImportResult]:
        """Have the service import the sessions at or below paths of its machine; without paths, those that lie where
        the runtimes keep theirs."""
        listed = [paths] if isinstance(paths, str | bytes | os.PathLike) else paths
        known = {name: value for name, value in options.items() if name in ImportRequest.__struct_fields__}
        request = ImportRequest(
            paths=tuple(os.fsdecode(path) for path in listed),
            runtimes=(runtimes,) if isinstance(runtimes, str) else tuple(runtimes),
            environ=None if environ is None else dict(environ),
            principal=principal,
            index=False,
            **known,  # type: ignore[arg-type]
        )
        return _imported(self.ask_service("import_sessions", request))

    def resume(
        self,
        ref: Ref,
        runtime: str,
        *,
        cwd: str | os.PathLike[str],
        home: str | os.PathLike[str] | None = None,
        environ: Environment | None = None,
        **less: Unpack[LessOptions],
    ) -> Resumed:
        """Have the service write the conversation at a commit where a runtime of its machine finds it."""
        request = ResumeRequest(
            ref=word_of(ref),
            runtime=runtime,
            cwd=os.fspath(cwd),
            home=None if home is None else os.fspath(home),
            environ=None if environ is None else dict(environ),
            **less,
        )
        done = self.ask_service("resume", request)
        prepare = tuple(tuple(words) for words in done.prepare)
        fields = values.same_fields(Resumed, done)
        return Resumed(**fields | {"prepare": prepare, "losses": values.losses_of(done.losses)})

    def summarize(
        self,
        refs: Iterable[Ref] = (),
        *,
        model: str = "",
        per_minute: int | None = None,
        limit: int | None = None,
        own_rules: Sequence[Rule] = (),
        watch: bool = False,
        stop: threading.Event | None = None,
        on_total: Callable[[int], None] | None = None,
    ) -> Iterator[Summarized]:
        """Have a line written about each commit that lacks one, the newest first."""
        request = SummarizeRequest(
            refs=tuple(word_of(ref) for ref in refs),
            model=model,
            per_minute=per_minute,
            limit=limit,
            own_rules=_told_rules(own_rules),
            watch=watch,
        )
        found = values.only(SummaryAnswer, self.ask_service("summarize", request))
        return (
            Summarized(commit=self.commit(one.id), summary=one.summary, problem=one.problem)
            for one in found
            if stop is None or not stop.is_set()
        )

    # -- looking after the store -------------------------------------------------------------------------------

    def gc(self, *, dry_run: bool = False, keep_cache: bool = False) -> GcReport:
        """Remove what nothing needs: the cache, expired artifacts, empty space."""
        found = self.ask_service("gc", GcRequest(dry_run=dry_run, keep_cache=keep_cache))
        return GcReport(**msgspec.structs.asdict(found))

    def fsck(self, *, read_data: bool = False, repair: bool = False) -> Report:
        """Check that everything is what it says it is; `read_data` reads every byte, `repair` sets damage aside."""
        *found, last = self.ask_service("fsck", FsckRequest(read_data=read_data, repair=repair))
        findings = [Finding(**msgspec.structs.asdict(one)) for one in values.only(FsckFinding, iter(found))]
        return Report(**values.same_fields(Report, last.report), findings=findings)

    # -- forgetting --------------------------------------------------------------------------------------------

    def find_secrets(
        self,
        refs: Iterable[Ref] = (),
        *,
        rules: Sequence[Rule] | None = None,
        moved: Callable[[int], None] | None = None,
    ) -> Iterator[SecretCandidate]:
        """What looks like a key or a password; nothing of the secret itself is in an answer."""
        names, own = _split_rules(rules or ())
        request = SecretsRequest(refs=tuple(word_of(ref) for ref in refs), rules=names, own_rules=own)
        found = values.only(SecretAnswer, self.ask_service("secrets", request))
        return (SecretCandidate(**msgspec.structs.asdict(one)) for one in found)

    def forget(
        self,
        ref: Ref | None = None,
        *,
        secret: Sequence[str] = (),
        rules: Sequence[Rule] = (),
        who: str = "",
        why: str = "",
        dry_run: bool = False,
        moved: Callable[[int], None] | None = None,
    ) -> ForgetReport:
        """Take a session, what a commit adds, or secrets (given, or found by rules) out of the store for good."""
        check_forgotten(ref, secret, rules)
        names, own = _split_rules(rules)
        request = ForgetRequest(
            ref=word_or_none(ref) or "",
            secrets=(secret,) if isinstance(secret, str) else tuple(secret),
            rules=names,
            own_rules=own,
            who=who,
            why=why,
            yes=not dry_run,
        )
        found = self.ask_service("forget", request)
        places = tuple(ForgetPlace(**msgspec.structs.asdict(place)) for place in found.places)
        return ForgetReport(**values.same_fields(ForgetReport, found) | {"places": places})

    def restorable(self, paths: Sequence[str | os.PathLike[str]] = ()) -> list[str]:
        """The sessions of which something was forgotten, and whose sources lie at or below these paths of the service's
        machine, or anywhere."""
        listed = [paths] if isinstance(paths, str | bytes | os.PathLike) else paths
        request = RestoreRequest(paths=tuple(os.fsdecode(path) for path in listed))
        return list(self.ask_service("restore", request).sessions)


def _imported(answers: Iterator[ImportAnswer | ImportReport]) -> Iterator[ImportResult]:
    for one in answers:
        if isinstance(one, ImportAnswer):
            yield values.import_of(one)
        else:
            yield from (skipped(each.source, each.why) for each in one.report.passed_over)


def _without_store() -> Repo:
    """Reads files of this machine, for which no store is needed."""
    return Repo(open_store("memory:"))


def _told_rules(rules: Iterable[Rule]) -> tuple[OwnRule, ...]:
    """Rules as requests have them."""
    return tuple(
        OwnRule(name=rule.name, prefix=rule.prefixes[0].decode(), pattern=rule.pattern.pattern.decode())
        for rule in rules
    )


def _split_rules(rules: Sequence[Rule]) -> tuple[tuple[str, ...], tuple[OwnRule, ...]]:
    """The names of rules, and those among them that Harken does not have."""
    own = [rule for rule in rules if rule not in RULES]
    return tuple(dict.fromkeys(rule.name for rule in rules)), _told_rules(own)
