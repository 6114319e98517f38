"""What is asked for piece by piece: what was used in a window of time, and the pieces of a document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from harken.analytics.activity import Peak
from harken.api.base import stamp
from harken.api.export import ExportPiece, ExportReport
from harken.api.usage import UsageAnswer, UsageRequest, UsageTotal
from harken.errors import Corrupt, Evicted
from harken.index.spending import Spending, Spent, UsageGroup
from harken.repo.exporting import Export, ExportMoved
from harken.views.documents import PictureFile

from . import values
from .local import needs_store

if TYPE_CHECKING:
    from harken.formats import Loss

    from .asking import AskingService


class RemoteSpent(Spent):
    """What was used in a window, as a service tells it: each side is a question."""

    def __init__(
        self,
        service: AskingService,
        since: int | None,
        until: int | None,
        project: str,
        prices: str,
        by: str = "day",
    ) -> None:
        self._service = service
        self._asked: dict[str, Any] = {
            "since": stamp(since) or "",
            "until": stamp(until) or "",
            "project": project,
            "prices": prices,
            "named": True,
        }
        self._problems: list[str] = []
        self._groups: dict[tuple[str, str, str], list[UsageAnswer]] = {}
        self.whole = self._ask(by)

    def _ask(self, by: str, per: str = "", split: str = "") -> UsageTotal:
        request = UsageRequest(by=(by,), per=per, split=split, **self._asked)
        groups = self._groups[by, per, split] = []
        total: UsageTotal | None = None
        try:
            for one in self._service.ask_service("usage", request):
                if isinstance(one, UsageTotal):
                    total = one
                else:
                    groups.append(one)
        except (Corrupt, Evicted) as problem:  # told behind the figures
            if total is None:
                raise
            self._problems = [str(problem)]
        assert total is not None  # it is always the last
        return total

    def groups(self, by: str, per: str = "") -> list[UsageGroup]:
        """One of `BY`; days in their order, everything else with the most expensive first."""
        return self._told(by, per, "")

    def split(self, by: str, apart: str) -> list[UsageGroup]:
        """Periods in their order, each told apart by one of `SPLIT`."""
        return self._told(by, "", apart)

    def _told(self, by: str, per: str, split: str) -> list[UsageGroup]:
        if (by, per, split) not in self._groups:
            self.whole = self._ask(by, per, split)
        return [
            UsageGroup(one.key, one.title, values.spending_of(one), one.per) for one in self._groups[by, per, split]
        ]

    def by_day(self, ahead: int, by: str = "project") -> dict[int, dict[str, Spending]]:
        """Days of another zone are counted where the index lies."""
        raise needs_store("by_day", "`split` tells days of the service's zone apart by project")

    def total(self) -> Spending:
        """Everything together."""
        return values.spending_of(self.whole)

    def hours(self, ahead: int | None = None) -> list[list[int]]:
        """Requests by weekday (Monday first) and hour of the service's time zone."""
        if ahead is not None:
            raise needs_store("hours", "without `ahead` they are of the service's zone")
        return self.whole.hours

    def peak(self) -> Peak:
        """The most sessions that went on at the same time in the window; sub-agents are part of theirs."""
        return Peak(sessions=self.whole.peak_sessions, time=values.instant(self.whole.peak_at))

    def problems(self) -> list[str]:
        """What could not be counted."""
        return list(self._problems)


class RemoteExport(Export):
    """A document that a service writes, to be taken piece by piece, once."""

    def __init__(self, answers: Iterator[ExportPiece | ExportReport]) -> None:
        self._answers = answers
        self._report: ExportReport | None = None
        self.every = 500
        self.left_out: Counter[str] = Counter()

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What the store could not give."""
        return values.losses_of(self._report.report.losses) if self._report else ()

    @property
    def unread(self) -> int:
        """How many sub-agents could not be read."""
        return self._report.report.unread if self._report else 0

    @property
    def agents(self) -> int:
        """How many sub-agents are told of."""
        return self._report.report.agents if self._report else 0

    @property
    def masked(self) -> dict[str, int]:
        """How many secrets were masked, by rule."""
        return {one.rule: one.count for one in self._report.report.masked} if self._report else {}

    def pieces(self, moved: ExportMoved | None = None) -> Iterator[bytes | PictureFile]:
        """The document in pieces, and between them the pictures that lie beside it."""
        for one in self._answers:
            if isinstance(one, ExportReport):
                self._report = one
                self.left_out = Counter(one.report.left_out)
            else:
                yield PictureFile(name=one.picture, data=one.body) if one.picture else one.body
