"""Plain functions as tools: each call of one has a thread of its own, so that others go on meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import threading
from collections.abc import Callable
from typing import Any

from harken.errors import BadRequest


async def in_thread(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """What a plain function returns, run in a thread of its own.

    Nobody waits for a thread whose call was given up: what it does is then as unknown as after a kill."""
    loop, context = asyncio.get_running_loop(), contextvars.copy_context()
    done: asyncio.Future[Any] = loop.create_future()

    def work() -> None:
        value: Any = None
        problem: BaseException | None = None
        try:
            value = context.run(function, **arguments)
        except StopIteration as ended:  # no future takes it
            problem = RuntimeError(f"the function raised StopIteration: {ended}")
        except BaseException as raised:  # noqa: BLE001  it is raised where the tool is waited for
            problem = raised
        with contextlib.suppress(RuntimeError):  # the loop may be over
            loop.call_soon_threadsafe(settle, value, problem)

    def settle(value: Any, problem: BaseException | None) -> None:
        if done.done():
            return
        if problem is None:
            done.set_result(value)
        else:
            done.set_exception(problem)

    threading.Thread(target=work, name=f"harken-{getattr(function, '__name__', 'tool')}", daemon=True).start()
    return await done


def in_thread_unless(name: str, wanted: bool | None, function: Callable[..., Any], call_parameter: str | None) -> bool:
    """Whether a tool has a thread of its own: a plain function does, unless somebody says otherwise."""
    plain = call_parameter is None and not inspect.iscoroutinefunction(function)
    if wanted and not plain:
        raise BadRequest(
            f"the tool {name} cannot have a thread of its own",
            hint="only a plain function can, one that does not take the running Call",
        )
    return plain if wanted is None else wanted
