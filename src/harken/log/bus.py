"""`EventBus`: whoever wants to hear of what is dispatched says so here."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
_log = logging.getLogger("harken.bus")


class EventBus:
    """Hands each event to those who asked for its type, or for one that it is a kind of."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._handlers: list[tuple[type, Callable[[Any], object]]] = []

    def subscribe(self, type: type[T], handler: Callable[[T], object]) -> Callable[[], None]:
        """Call `handler` with every such event from now on, in the thread that dispatches; what is returned ends that.
        It must not wait for another thread that dispatches into the same session."""
        mine = (type, handler)
        with self._lock:
            self._handlers = [*self._handlers, mine]

        def unsubscribe() -> None:
            with self._lock:
                self._handlers = [one for one in self._handlers if one is not mine]

        return unsubscribe

    def dispatch(self, event: object) -> None:
        """Tell the handlers, in the order in which they came. One that raises is logged and stops nobody."""
        for type, handler in self._handlers:
            if isinstance(event, type):
                try:
                    handler(event)
                except Exception:  # noqa: BLE001  whatever it is, it is the handler's own matter
                    _log.exception("a handler of %s failed", type.__name__)
