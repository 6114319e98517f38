"""A lock that may be used from one event loop after another, as when each turn is run by `asyncio.run`."""

from __future__ import annotations

import asyncio
from types import TracebackType


class Lock:
    """One at a time within a loop; nobody waits in a loop that has ended."""

    def __init__(self) -> None:
        self._held: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None

    def _lock(self) -> asyncio.Lock:
        loop = asyncio.get_running_loop()
        if self._held is None or self._held[0] is not loop:
            self._held = (loop, asyncio.Lock())
        return self._held[1]

    async def __aenter__(self) -> None:
        await self._lock().acquire()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock().release()
