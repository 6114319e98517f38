"""What fsck and gc have to say."""

from __future__ import annotations

import msgspec

from harken import ids


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing fsck has to say."""

    severity: str
    """`corrupt`: not what it says it is. `lost`: a repair did not find it. `evicted`, `forgotten`: let go on purpose.
    `note`: harmless, and worth knowing."""
    what: str
    """`commit`, `artifact`, `frame`, `name`, …"""
    which: str
    """Its name, or the number of its row."""
    why: str
    repaired: bool = False


class Report(msgspec.Struct, kw_only=True):
    """What fsck found."""

    commits: int = 0
    artifacts: int = 0
    frames: int = 0
    bytes_read: int = 0
    findings: list[Finding] = msgspec.field(default_factory=list)
    saved: str = ""
    """Where the file was copied before a repair."""

    @property
    def ok(self) -> bool:
        """Whether nothing is left that is corrupt."""
        return not any(found.severity == "corrupt" and not found.repaired for found in self.findings)


class GcReport(msgspec.Struct, kw_only=True):
    """What gc removed, or would."""

    dry_run: bool
    expired: int = 0
    """Ephemeral artifacts past their time."""
    evicted: int = 0
    """Artifacts that only the backing store holds now."""
    frames: int = 0
    """Frames dropped or written anew without what nobody needs."""
    freed: int = 0
    """Bytes of content removed."""
    cache: int = 0
    """Bytes of the cache."""
    pages: int = 0
    """Empty pages given back to the disk."""
    kept: int = 0
    """Artifacts that stay."""
    names: list[str] = msgspec.field(default_factory=list)
    """The artifacts that went, by their short names."""

    def note(self, artifact: str, size: int) -> None:
        """An artifact went."""
        self.freed += size
        self.names.append(ids.artifact_ref(artifact))
