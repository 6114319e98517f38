"""What looks like a secret, wherever it lies in a store; of the secret itself nothing is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from harken import formats, ids, secrets
from harken.context import forgetting, walk
from harken.context.refs import Ref, get_commit
from harken.errors import Corrupt, HarkenError, PartlyCorrupt
from harken.secrets import FoundSecret, Rule
from harken.store import Annotation, Commit, SessionRow, Store
from harken.store.tombstones import blanked, windows

OVERLAP = 72 << 10
"""How much of a part is looked at again with the next one: the longest secret is a private key."""
AROUND = 40
"""How many bytes are shown on either side."""
SIXTEEN = "0123456789abcdef"
TOLD = 5
"""Of how many damaged parts it is said what they are."""
SMALL = 4 << 20
"""Of a larger artifact it is not said which message holds a secret."""


class SecretCandidate(msgspec.Struct, frozen=True, kw_only=True):
    """Something that looks like a secret."""

    rule: str
    session: str
    """Empty where no session has it."""
    ref: str
    """`SESSION@MESSAGE`, or the commit, or the artifact; empty where it is in a session's row."""
    where: str
    """`message`, `title` or `remark`."""
    excerpt: str
    """What stands around it, with every secret masked."""
    size: int
    """How many bytes it has."""


def search(
    store: Store,
    rules: Sequence[Rule],
    moved: Callable[[int], None],
    only: frozenset[str] | None = None,
    damage: list[Corrupt] | None = None,
) -> Iterator[tuple[str, FoundSecret, bytes]]:
    """The artifact, the span and the bytes of everything in the store that a rule finds. What is damaged is `Corrupt`,
    or added to `damage`, and the others go on."""
    try:
        for artifact, parts in store.contents():
            if only is not None and artifact not in only:
                continue
            try:
                yield from ((artifact, *one) for one in _found(parts, rules, moved))
            except Corrupt as problem:
                if damage is None:
                    raise
                damage.append(problem)
    except Corrupt as problem:
        if damage is None:
            raise
        damage.append(problem)


def _found(
    parts: Iterable[bytes], rules: Sequence[Rule], moved: Callable[[int], None]
) -> Iterator[tuple[FoundSecret, bytes]]:
    """The span and the bytes of everything in an artifact that a rule finds."""
    seen = 0
    held: list[tuple[FoundSecret, bytes]] = []
    for at, window in windows(counted(parts, moved), OVERLAP):
        # What touches the end may go on in the next part, and is found there again.
        held = [one for one in held if one[0].end <= at]
        yield from held
        seen = max([seen, *(one.end for one, _ in held)])
        found = [FoundSecret(at + f.start, at + f.end, f.rule) for f in secrets.find(window, rules)]
        held = [(f, window[f.start - at : f.end - at]) for f in found if f.start >= seen]
    yield from held


def counted(parts: Iterable[bytes], moved: Callable[[int], None]) -> Iterator[bytes]:
    """The parts, and somebody is told how many bytes they have."""
    for part in parts:
        moved(len(part))
        yield part


def first_holders(commits: Iterable[Commit]) -> dict[str, Commit]:
    """Artifact to the first of the commits that holds it."""
    held: dict[str, Commit] = {}
    for commit in commits:
        held.setdefault(commit.artifact, commit)
    return held


def candidates(
    store: Store, refs: Sequence[Ref], rules: Sequence[Rule], moved: Callable[[int], None]
) -> Iterator[SecretCandidate]:
    """Everything that looks like a secret, in these sessions or conversations, or in all of the store. What is damaged
    is told behind the rest."""
    damage: list[Corrupt] = []
    rows, only = _scope(store, refs, damage)
    commits = readable_commits(store, damage)
    held = first_holders(commits)
    found: dict[str, list[FoundSecret]] = {}
    for artifact, one, _ in search(store, rules, moved, only, damage):
        found.setdefault(artifact, []).append(one)
        if len(found) > 1:  # all of one artifact come together
            artifact_before = next(iter(found))
            yield from _told(store, artifact_before, found.pop(artifact_before), held.get(artifact_before))
    for artifact, spans in found.items():
        yield from _told(store, artifact, spans, held.get(artifact))
    yield from _said(rows, rules)
    if not refs:
        yield from _remarks(store, commits, rules, damage)
    if told := list(dict.fromkeys(map(str, damage))):
        more = f"; and {len(told) - TOLD:,} more" if len(told) > TOLD else ""
        raise Corrupt(f"not looked through: {'; '.join(told[:TOLD])}{more}", hint="`harken fsck` says what is lost")


def readable_commits(store: Store, damage: list[Corrupt], prefix: str = "") -> list[Commit]:
    """The commits, the oldest first. Where one is damaged, those whose names begin otherwise."""
    try:
        return store.commits(prefix)[::-1]
    except Corrupt as problem:
        if len(prefix) == 3:
            damage.append(problem)
            return []
    found = [commit for digit in SIXTEEN for commit in readable_commits(store, damage, prefix + digit)]
    return sorted(found, key=lambda commit: commit.time)


def _scope(store: Store, refs: Sequence[Ref], damage: list[Corrupt]) -> tuple[list[SessionRow], frozenset[str] | None]:
    """The sessions whose titles are looked at, and the artifacts; None for all of them."""
    if not refs:
        try:
            return store.sessions(), None
        except PartlyCorrupt as problem:
            damage.append(problem)
            return problem.rest, None
    rows, artifacts = list[SessionRow](), set[str]()
    for ref in refs:
        what = forgetting.find_forgettable(store, ref)
        if isinstance(what, SessionRow):
            going = forgetting.going_with_session(store, what)
            rows += going.sessions
            artifacts |= {*going.artifacts, *going.kept}
        else:
            artifacts |= {step.artifact for step in store.walk(get_commit(store, ref).id)}
    return rows, frozenset(artifacts)


def _told(store: Store, artifact: str, spans: list[FoundSecret], commit: Commit | None) -> Iterator[SecretCandidate]:
    try:
        data = store.get(artifact) if store.info(artifact).size <= SMALL else b""
    except Corrupt:  # told where it was found; what is damaged comes behind this
        data = b""
    for one in spans:
        yield SecretCandidate(
            rule=one.rule,
            session=commit.session_id if commit else "",
            ref=_ref(data, one.start, commit) if commit else ids.artifact_ref(artifact),
            where="message",
            excerpt=_excerpt(data, one, spans),
            size=one.end - one.start,
        )


def _ref(data: bytes, at: int, commit: Commit) -> str:
    """The message that holds a place of a commit's delta, or the commit where that cannot be told."""
    format = formats.find(commit.format)
    if not data or format is None or format.media_type not in walk.LINES or not commit.session_id:
        return commit.short
    start, end = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
    try:
        events = format.read_delta(data[start : len(data) if end < 0 else end + 1])
    except (HarkenError, ValueError):
        return commit.short
    name = next((event.message_id for event in events if event.message_id), "")
    return commit.short if not name or name.startswith("@") else f"{commit.session_id}@{name}"


def _excerpt(data: bytes, one: FoundSecret, spans: Iterable[FoundSecret]) -> str:
    """What stands around a secret, with it and every other one masked."""
    if not data:
        return f"[masked: {one.rule}]"
    start, end = max(one.start - AROUND, 0), one.end + AROUND
    hidden = blanked(data, [(other.start, other.end) for other in spans])
    before, after = hidden[start : one.start], hidden[one.end : end]
    return f"{before.decode('utf-8', 'replace')}[masked: {one.rule}]{after.decode('utf-8', 'replace')}".strip()


def _said(rows: Iterable[SessionRow], rules: Sequence[Rule]) -> Iterator[SecretCandidate]:
    for row in rows:
        yield from _in_text(row.title, rules, session=row.session, ref=row.session, where="title")


def _remarks(
    store: Store, commits: Sequence[Commit], rules: Sequence[Rule], damage: list[Corrupt]
) -> Iterator[SecretCandidate]:
    for at in range(0, len(commits), 400):
        some = {commit.id: commit for commit in commits[at : at + 400]}
        for id, notes in _annotations(store, list(some), damage).items():
            for note in notes:
                commit = some[id]
                yield from _in_text(note.value, rules, session=commit.session_id, ref=commit.short, where="remark")


def _annotations(store: Store, commits: Sequence[str], damage: list[Corrupt]) -> dict[str, list[Annotation]]:
    """What was remarked about commits; where a row is damaged, about the others."""
    try:
        return store.annotations_of(commits)
    except Corrupt as problem:
        if len(commits) == 1:
            damage.append(problem)
            return {}
    half = len(commits) // 2
    return _annotations(store, commits[:half], damage) | _annotations(store, commits[half:], damage)


def _in_text(text: str, rules: Sequence[Rule], *, session: str, ref: str, where: str) -> Iterator[SecretCandidate]:
    data = text.encode("utf-8", "surrogatepass")
    spans = list(secrets.find(data, rules))
    for one in spans:
        size = one.end - one.start
        excerpt = _excerpt(data, one, spans)
        yield SecretCandidate(rule=one.rule, session=session, ref=ref, where=where, excerpt=excerpt, size=size)
