"""A store behind a service: `RemoteRepo` answers like `Repo`, over HTTP or a Unix socket."""

from __future__ import annotations

from .remote import RemoteRepo

__all__ = ["RemoteRepo"]
