"""LiteLLM reports calls in the background: from threads, and from a task of an event loop. Here they are waited for."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

from harken.clock import monotonic

PATIENCE = 5.0
"""Seconds; a host that closes is not held up by another's callback that hangs."""


def drain(done: Callable[[], bool], patience: float = PATIENCE) -> None:
    """Wait until LiteLLM has reported everything, from wherever this is called.

    What a task of the event loop in which this is called has to report cannot be waited for: see `drain_later`."""
    drain_threads(done, patience)
    worker = _worker()
    loop = getattr(worker, "_bound_loop", None)
    if worker is None or loop is None or loop is _running():
        return
    if loop.is_running():  # in another thread
        asyncio.run_coroutine_threadsafe(worker.flush(), loop).result(patience)
    elif not loop.is_closed():
        loop.run_until_complete(asyncio.wait_for(worker.flush(), patience))
    else:
        # As LiteLLM does it itself when the program ends. In a thread of its own, since it sets the thread's loop.
        thread = threading.Thread(target=worker._flush_on_exit, daemon=True)
        thread.start()
        thread.join(patience)


async def drain_later(done: Callable[[], bool], patience: float = PATIENCE) -> None:
    """The same in an event loop."""
    worker = _worker()
    own = worker is not None and getattr(worker, "_bound_loop", None) is _running()
    for _ in range(50):  # a report is a task of the loop before the worker or the threads know of it
        if own:
            await asyncio.wait_for(worker.flush(), patience)
        deadline = monotonic() + patience
        while not done() and monotonic() < deadline and not _is_idle():
            await asyncio.sleep(0.001)
        if done():
            return
        await asyncio.sleep(0.001)


def drain_threads(done: Callable[[], bool], patience: float = PATIENCE) -> None:
    """Wait for the threads alone."""
    deadline = monotonic() + patience
    while not done() and monotonic() < deadline and not _is_idle():
        time.sleep(0.0005)


def in_event_loop() -> bool:
    """Whether an event loop runs here, which must not be held up."""
    return _running() is not None


def _is_idle() -> bool:
    """Whether no thread has anything to do. The pool says how many tasks it could still take: all, when it has none."""
    from litellm.litellm_core_utils.thread_pool_executor import executor

    most, free = getattr(executor, "_max_pending_tasks", None), getattr(executor, "_pending_slots", None)
    return getattr(free, "_value", most) == most


def _worker() -> Any:
    from litellm.litellm_core_utils.logging_worker import GLOBAL_LOGGING_WORKER

    return GLOBAL_LOGGING_WORKER if getattr(GLOBAL_LOGGING_WORKER, "_queue", None) is not None else None


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
