"""What the service has done, as numbers (Prometheus text) and as lines of a log. Neither holds any content."""

from __future__ import annotations

import queue
import threading
from collections import Counter
from typing import IO, Any

import orjson

from harken import clock

BUCKETS = (0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0)
"""Seconds by which durations are counted."""
_LINES = 10_000
"""Lines of the log that may wait to be written; more are counted, not kept."""


class ServiceMetrics:
    """Counts. Only the loop's thread counts, so nothing is locked."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.seconds: Counter[str] = Counter()
        self.buckets: Counter[tuple[str, float]] = Counter()
        self.running = 0
        self.feeds = 0
        self.dropped = 0

    def count(self, route: str, status: int, seconds: float) -> None:
        """A request was answered."""
        self.requests[route, status] += 1
        self.seconds[route] += seconds  # type: ignore[assignment]
        for bucket in BUCKETS:
            if seconds <= bucket:
                self.buckets[route, bucket] += 1

    def text(self, more: dict[str, int]) -> str:
        """Everything as Prometheus reads it; `more` are gauges of others."""
        lines = ["# TYPE harken_requests_total counter"]
        lines += [
            f'harken_requests_total{{route="{route}",status="{status}"}} {count}'
            for (route, status), count in sorted(self.requests.items())
        ]
        lines.append("# TYPE harken_request_seconds histogram")
        for route in sorted(self.seconds):
            total = sum(count for (one, _), count in self.requests.items() if one == route)
            for bucket in BUCKETS:
                lines.append(
                    f'harken_request_seconds_bucket{{route="{route}",le="{bucket:g}"}} {self.buckets[route, bucket]}'
                )
            lines.append(f'harken_request_seconds_bucket{{route="{route}",le="+Inf"}} {total}')
            lines.append(f'harken_request_seconds_sum{{route="{route}"}} {self.seconds[route]:.6f}')
            lines.append(f'harken_request_seconds_count{{route="{route}"}} {total}')
        gauges = {"requests_running": self.running, "feed_clients": self.feeds, **more}
        for name, value in gauges.items():
            lines += [f"# TYPE harken_{name} gauge", f"harken_{name} {value}"]
        lines += ["# TYPE harken_feed_dropped_total counter", f"harken_feed_dropped_total {self.dropped}"]
        return "\n".join(lines) + "\n"


class AccessLog:
    """One JSON object a line for each request. Whoever reads it slowly stops nobody: lines that find no room are
    counted in the next one that does."""

    def __init__(self, stream: IO[str] | None) -> None:
        self._stream = stream
        self._lines: queue.Queue[dict[str, Any] | None] = queue.Queue(_LINES)
        self._lost = 0
        self._thread = threading.Thread(target=self._write, name="harken-access-log", daemon=True)
        if stream is not None:
            self._thread.start()

    def add(self, **fields: Any) -> None:
        """Write a line, some time soon."""
        if self._stream is None:
            return
        line = {"time": clock.format_instant(clock.now()), **fields}
        if self._lost:
            line["lost"] = self._lost
        try:
            self._lines.put_nowait(line)
            self._lost = 0
        except queue.Full:
            self._lost += 1

    def close(self) -> None:
        """Write what waits, for a moment at most."""
        if self._stream is None:
            return
        try:
            self._lines.put_nowait(None)
        except queue.Full:
            return
        self._thread.join(1.0)

    def _write(self) -> None:
        assert self._stream is not None
        while (line := self._lines.get()) is not None:
            try:
                self._stream.write(orjson.dumps(line, default=str).decode() + "\n")
                self._stream.flush()
            except (OSError, ValueError):  # it was closed, or the disk is full: the service goes on
                self._lost += 1
