"""Looking after the store: gc, fsck, backup, doctor."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from harken.repo import Repo
from harken.repo.doctor import diagnose

from .base import ApiAnswer, ApiRequest
from .crossing import crosses


class GcRequest(ApiRequest, frozen=True, kw_only=True):
    """How to collect garbage."""

    dry_run: bool = False
    """Only say what would be removed."""
    keep_cache: bool = False
    """Leave remembered conversations alone."""


class GcAnswer(ApiAnswer, frozen=True, kw_only=True):
    """What was removed, or would be."""

    dry_run: bool
    """Whether nothing was removed."""
    expired: int
    """Ephemeral artifacts past their time."""
    evicted: int
    """Artifacts that only the backing store holds now."""
    frames: int
    """Frames dropped, or written anew without what nothing needs."""
    freed: int
    """Bytes of content removed."""
    cache: int
    """Bytes of the cache."""
    pages: int
    """Empty pages given back to the disk."""
    kept: int
    """Artifacts that stay."""
    names: list[str]
    """The artifacts that were removed, by their short names."""


@crosses
def gc(repo: Repo, request: GcRequest) -> GcAnswer:
    """Remove what nothing needs; every commit stays, with its bytes."""
    report = repo.gc(dry_run=request.dry_run, keep_cache=request.keep_cache)
    return GcAnswer(**{name: getattr(report, name) for name in GcAnswer.__struct_fields__})


class FsckRequest(ApiRequest, frozen=True, kw_only=True):
    """How closely to look."""

    read_data: bool = False
    """Read every byte, not only the tables."""
    repair: bool = False
    """Move what is damaged into quarantine; the file is copied aside first."""


class FsckFinding(ApiAnswer, frozen=True, kw_only=True):
    """One thing that was found."""

    severity: str
    """`corrupt`: not what it says it is. `lost`: a repair did not find it. `evicted`, `forgotten`: removed on purpose.
    `note`: harmless, and worth knowing."""
    what: str
    """`commit`, `artifact`, `frame`, `name` …"""
    which: str
    """Its name, or the number of its row."""
    why: str
    """What is wrong with it."""
    repaired: bool
    """Whether it was set aside."""


class FsckCounts(ApiAnswer, frozen=True, kw_only=True):
    """What was looked at."""

    commits: int
    """Commits."""
    artifacts: int
    """Artifacts."""
    frames: int
    """Frames."""
    bytes_read: int
    """Bytes of content that were read."""
    saved: str
    """Where the file was copied before a repair."""
    ok: bool
    """Whether nothing is left that is corrupt."""


class FsckReport(ApiAnswer, frozen=True, kw_only=True):
    """The last line of a check."""

    report: FsckCounts
    """What was looked at, and whether it is sound."""


@crosses
def fsck(repo: Repo, request: FsckRequest) -> Iterator[FsckFinding | FsckReport]:
    """Check that everything in the store is what it says it is."""
    report = repo.fsck(read_data=request.read_data, repair=request.repair)
    for found in report.findings:
        yield FsckFinding(**{name: getattr(found, name) for name in FsckFinding.__struct_fields__})
    yield FsckReport(
        report=FsckCounts(**{name: getattr(report, name) for name in FsckCounts.__struct_fields__}),
    )


class BackupRequest(ApiRequest, frozen=True, kw_only=True):
    """Where to copy the store."""

    path: str
    """A file that is not there yet."""


class BackupAnswer(ApiAnswer, frozen=True, kw_only=True):
    """The copy."""

    path: str
    """Where it lies."""
    size: int
    """Its bytes."""


@crosses
def backup(repo: Repo, request: BackupRequest) -> BackupAnswer:
    """Copy the store while others use it."""
    size = repo.backup(request.path)
    return BackupAnswer(path=str(Path(request.path).absolute()), size=size)


class DoctorRequest(ApiRequest, frozen=True, kw_only=True):
    """Which store to look at."""

    location: str | None = None
    """Its path or URL; None for the user's own."""


class DoctorAnswer(ApiAnswer, frozen=True, kw_only=True):
    """One thing that was looked at."""

    check: str
    """What."""
    status: str
    """`ok`, `warning` or `failure`."""
    detail: str
    """What was found."""
    hint: str
    """What to do about it; empty where nothing is needed."""


def doctor(repo: None, request: DoctorRequest) -> Iterator[DoctorAnswer]:
    """Look at the installation and the store. Needs no open store, since it may not open: `repo` is None."""
    for found in diagnose(request.location):
        yield DoctorAnswer(**msgspec.structs.asdict(found))
