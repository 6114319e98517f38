"""The sentences of `Repo` about numbers: what sessions used, and what that costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harken import clock as clocks
from harken.errors import BadRequest, NotFound, PartlyCorrupt

from .arguments import SessionOrFile
from .finding import COUNT_SECONDS, LIST_SECONDS, Indexed

if TYPE_CHECKING:
    from harken.analytics.prices import PriceList
    from harken.analytics.report import SessionReport
    from harken.index import IndexProgress, StoreIndex
    from harken.index.spending import Spending, Spent

    from .counting import SessionFigures, TotalFigures


class Counted(Indexed):
    """A store whose sessions are counted."""

    clock: clocks.Clock

    def stats(
        self, sessions: Sequence[SessionOrFile] = (), *, agents: bool = True, prices: str = ""
    ) -> Iterator[SessionFigures | TotalFigures]:
        """Tokens, prompts and tools of sessions in the store (ids) and of files (path objects), each counted once;
        without any, of all in the store. Of several there is a total. `prices` is a file whose entries stand over the
        prices that come with Harken."""
        from .counting import count_sessions

        return count_sessions(self.store, sessions, with_agents=agents, prices=read_price_file(prices))

    def report(self, session: SessionOrFile, *, window: int = 0) -> SessionReport:
        """Where a session's time went, what came of what people said, how it ended, tools, files and who told whom; its
        sub-agents included. `window` is the length of the windows that its profile is told in, in microseconds."""
        from harken.analytics.report import of

        from .looking import events_of

        return of(events_of(self.store, session), window=window)

    def usage(
        self, since: int | None = None, until: int | None = None, *, project: str = "", prices: str = ""
    ) -> tuple[Spent, IndexProgress]:
        """What was used from an instant on and before another, and how far the index is that tells it. `project` is a
        folder or the name of one, `prices` as in `stats`."""
        from harken.index.spending import Spent, UsageWindow

        own = read_price_file(prices)
        progress = self._follow(COUNT_SECONDS)
        window = UsageWindow(since=since, until=until, project=project)
        return Spent(self.index, window, own, self._templates), progress

    def _templates(self) -> dict[str, str]:
        """What kind of agent each session was run as, where its row says so and can be read."""
        try:
            rows = self.store.sessions()
        except PartlyCorrupt as problem:
            rows = problem.rest
        return {row.session: row.template for row in rows if row.template}

    def session_costs(
        self, *, prices: str = "", reached: Callable[[IndexProgress], None] | None = None
    ) -> dict[str, Spending]:
        """What each session used and cost, its sub-agents included, as far as the index tells that follows the store;
        for what it lacks it waits no longer than a list may take, and `reached` is told how far it came."""
        read_price_file(prices)  # what is wrong with it is told first
        progress = self.index.catch_up(seconds=LIST_SECONDS)
        if reached is not None:
            reached(progress)
        return indexed_costs(self.index, prices)


def indexed_costs(index: StoreIndex, prices: str) -> dict[str, Spending]:
    """What each session used and cost, its sub-agents included, as the index has it."""
    from harken.index.spending import Spent, UsageWindow

    groups = Spent(index, UsageWindow(), read_price_file(prices)).groups("session")
    return {group.key: group.spending for group in groups}


def read_price_file(path: str) -> PriceList | None:
    """A file of prices; None where none is named."""
    if not path:
        return None
    from harken.analytics.prices import read_prices

    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise NotFound(f"there is no file of prices {path!r}", hint="`harken config show` says who names it") from None
    except (OSError, UnicodeDecodeError) as problem:
        raise BadRequest(f"the prices in {path} cannot be read: {problem}", hint="it has to be a TOML file") from None
    return read_prices(text, path)
