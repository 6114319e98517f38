"""What a service is told when it is started, and who is asking it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from .operations import ADMIN
from .tokens import AccessToken


class ServiceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a service behaves; the limits are such that a person, a page and a few programs never meet them."""

    port: int = 0
    """The TCP port; 0 where none is listened on. Host and Origin are compared with it."""
    read_only: bool = False
    usual: Mapping[str, Any] = {}
    """What stands in a request's field that the caller left out: `environ`, where runtimes keep their sessions;
    `prices` and `own_rules`, as the owner's configuration has them."""
    body_limit: int = 16 << 20
    public_limit: int = 64 << 10
    """Bytes of a request that needs no token."""
    held_limit: int = 128 << 20
    """Bytes of the requests of one token that are held at once."""
    upload_limit: int = 512 << 20
    """Bytes of an artifact or a session log, which are streamed."""
    seconds: float = 60.0
    """How long a request may take without getting on."""
    rate: float = 500.0
    """Requests a second of one token, in the long run."""
    burst: float = 2000.0
    """Requests of one token at once."""
    stranger_rate: float = 20.0
    """Requests a second of all who have no token, beyond the files of the page and right words."""
    workers: int = 16
    """Threads that answer."""
    workers_each: int = 8
    """And for one token: a program whose questions are slow costs nobody else anything."""
    waiting: int = 512
    """Questions of one token that may wait for an answer to end."""
    streams: int = 64
    """Long answers at once, each with a thread of its own."""
    streams_each: int = 24
    """And of one token."""
    feeds: int = 200
    """Clients that follow the feed."""
    feeds_each: int = 100
    """And of one token."""
    heartbeat: float = 15.0
    """Seconds after which a silent feed says that it is there."""
    feed_patience: float = 10.0
    """Seconds after which a client that takes nothing from the feed is let go."""
    feed_pause: float = 0.1
    """Seconds between two messages to one client."""


class Visitor(msgspec.Struct, frozen=True, kw_only=True):
    """Whoever asks."""

    name: str = ""
    """The token's name; `@socket` for the owner over the socket, empty for a stranger."""
    grants: frozenset[str] = frozenset()
    principal: str = ""
    machine: str = ""
    by_cookie: bool = False
    token: AccessToken | None = None

    def fields(self) -> dict[str, str]:
        """What a request that changes something says of whoever asks."""
        return {"principal": self.principal, "machine": self.machine, "who": self.principal}


OWNER = Visitor(name="@socket", grants=frozenset({ADMIN}))
"""Who asks over the socket: nobody else can, and no token can be called so, since limits and log go by the name."""
STRANGER = Visitor()
