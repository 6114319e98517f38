"""What looks like a secret, and forgetting: a session, what a commit adds, or a secret wherever it stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import msgspec

from harken.errors import Corrupt
from harken.repo import Repo

from .base import ApiAnswer, ApiRequest
from .crossing import crosses
from .secret_rules import RulesRequest, all_rules, rules_named


class SecretsRequest(RulesRequest, frozen=True, kw_only=True):
    """Where to look, and for what."""

    refs: tuple[str, ...] = ()
    """Sessions, or REFs; without any, all of the store."""
    rules: tuple[str, ...] = ()
    """The names of rules; without any, all of them."""


class SecretAnswer(ApiAnswer, frozen=True, kw_only=True):
    """Something that looks like a secret; nothing of the secret itself is told."""

    rule: str
    """The rule that found it."""
    session: str
    """The session that has it; empty where none has."""
    ref: str
    """Where: `SESSION@MESSAGE`, a commit, an artifact or a session."""
    where: str
    """`message`, `title` or `remark`."""
    size: int
    """How many bytes it has."""
    excerpt: str
    """What stands around it, with every secret masked."""


class SecretsCounts(ApiAnswer, frozen=True, kw_only=True):
    """How many there are."""

    candidates: int
    """All of them."""
    rules: dict[str, int]
    """By the name of the rule."""
    bytes: int
    """How many bytes were looked through."""


class SecretsReport(ApiAnswer, frozen=True, kw_only=True):
    """The last line."""

    report: SecretsCounts
    """How many there are."""


@crosses
def secrets(
    repo: Repo, request: SecretsRequest, *, moved: Callable[[int], None] | None = None
) -> Iterator[SecretAnswer | SecretsReport]:
    """What looks like a key or a password. What is damaged is told at the end, as an error."""
    found, read = Counter[str](), 0

    def count(size: int) -> None:
        nonlocal read
        read += size
        if moved is not None:
            moved(size)

    own = request.own_rules
    rules = rules_named(request.rules, own) if request.rules else all_rules(own)
    damage: Corrupt | None = None
    try:
        for one in repo.find_secrets(request.refs, rules=rules, moved=count):
            found[one.rule] += 1
            yield SecretAnswer(**msgspec.structs.asdict(one))
    except Corrupt as problem:
        damage = problem
    counts = SecretsCounts(candidates=found.total(), rules=dict(found.most_common()), bytes=read)
    yield SecretsReport(report=counts)
    if damage is not None:
        raise damage


class ForgetRequest(RulesRequest, frozen=True, kw_only=True):
    """What to forget: `ref`, or `secrets` and `rules`."""

    ref: str = ""
    """A session, or a REF: what that commit adds."""
    secrets: tuple[str, ...] = ()
    """Texts that are to be nowhere in the store, as they are or as JSON escapes them."""
    rules: tuple[str, ...] = ()
    """Names of rules: whatever they find is such a text."""
    who: str = ""
    """Who wants it."""
    why: str = ""
    """For what reason."""
    yes: bool = False
    """Do it; else only say what would go."""


class ForgottenPlace(ApiAnswer, frozen=True, kw_only=True):
    """Where something goes."""

    session: str
    """The session that has it; empty where none has."""
    commit: str
    """The commit; empty where none has it."""
    artifact: str
    """The artifact, which keeps its name."""
    spans: int
    """In how many places; 0 where all of it goes."""
    bytes: int
    """How many bytes."""


class ForgetAnswer(ApiAnswer, frozen=True, kw_only=True):
    """What was forgotten, or would be."""

    dry_run: bool
    """Whether nothing was changed."""
    erasure: int
    """Its number in the store; 0 where nothing was changed."""
    sessions: list[str]
    """Sessions that go whole, those of sub-agents too."""
    places: list[ForgottenPlace]
    """Where something goes."""
    bytes: int
    """How many bytes go."""
    rows: int
    """Titles, remarks and names that hold something of it."""
    spools: list[str]
    """Files of runs that are not stored yet, and hold something of it."""
    kept: int
    """Artifacts that stay, since another session uses them."""
    kept_for: list[str]
    """The sessions that do."""
    copies: list[str]
    """Sessions that began with a copy of what goes, and keep it."""
    stays: list[str]
    """Where it stays, since names are made of it: ids of sessions, and what commits are called by."""
    left: list[str]
    """Files beside the store that may still hold it: copies from before a repair, which are their owner's to remove."""


@crosses
def forget(repo: Repo, request: ForgetRequest, *, moved: Callable[[int], None] | None = None) -> ForgetAnswer:
    """Take a session, what a commit adds, or a secret out of the store for good."""
    report = repo.forget(
        request.ref or None,
        secret=request.secrets,
        rules=rules_named(request.rules, request.own_rules),
        who=request.who,
        why=request.why,
        dry_run=not request.yes,
        moved=moved,
    )
    fields = msgspec.structs.asdict(report)
    places = [ForgottenPlace(**msgspec.structs.asdict(place)) for place in report.places]
    lists = {name: list(value) for name, value in fields.items() if isinstance(value, tuple)}
    return ForgetAnswer(**{**fields, **lists, "places": places, "bytes": report.bytes})


class RestoreRequest(ApiRequest, frozen=True, kw_only=True):
    """What an import may bring back."""

    paths: tuple[str, ...] = ()
    """Files and folders; without any, all sources."""
    yes: bool = False
    """Let it in again; else only say what that would be."""


class RestoreAnswer(ApiAnswer, frozen=True, kw_only=True):
    """What an import may bring back, or would."""

    dry_run: bool
    """Whether nothing was changed."""
    sessions: list[str]
    """Sessions of which something was forgotten."""
    along: list[str]
    """Other sessions of the same erasures, which are lifted whole: an import of theirs brings back its part."""
    erasures: list[int]
    """The numbers of the erasures that no longer count."""


@crosses
def restore(repo: Repo, request: RestoreRequest) -> RestoreAnswer:
    """Let in again what was forgotten of the sessions at these paths; the next import that reads them brings it
    back."""
    sessions = repo.restorable(request.paths)
    along = repo.restored_along(sessions)
    lifted = repo.lift_forgetting(sessions) if request.yes and sessions else []
    numbers = [erasure.number for erasure in lifted]
    return RestoreAnswer(dry_run=not request.yes, sessions=sessions, along=along, erasures=numbers)
