"""Apply recorded decisions to the batch system through its levers."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from math import inf
from typing import Final

from outrider.acting.gate import ACT
from outrider.acting.leases import UNBOUNDED, LeaseBounds
from outrider.acting.lever_thread import LeverThread
from outrider.api.lever import Lever
from outrider.model.decisions import DecisionRow
from outrider.model.errors import PluginError
from outrider.model.events import COMPLETED, HELD, REMOVED, STARTED, NamedEvent

_ENDS_THE_WAIT: Final = frozenset({STARTED, COMPLETED, REMOVED, HELD})


class LeverRunner:
    """Passes each decision that the gate admitted (`ACT`) to the lever for its action.

    The decision is then active and renewed until the policy decides otherwise for the job, or the
    job starts, leaves or is held.

    Args:
        levers: of all adapters, by adapter.
        adapter_of: returns the adapter of a job, by its name; None: one without levers.
        bounds: how much may be changed.
        is_fresh: returns whether the site's input is fresh enough to act on; from any thread.
        clock: monotonic seconds.
        work: class that runs each lever.

    Raises:
        PluginError: two levers of an adapter support the same action.

    Attributes:
        threads: of all levers.
    """

    def __init__(
        self,
        levers: Mapping[str, Iterable[Lever]],
        adapter_of: Callable[[str], str | None],
        bounds: LeaseBounds = UNBOUNDED,
        is_fresh: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.monotonic,
        work: type[LeverThread] = LeverThread,
    ) -> None:
        made = [(adapter, lever) for adapter in levers for lever in levers[adapter]]
        carried: dict[tuple[str, str], Lever] = {}
        for adapter, lever in made:
            for action in lever.actions:
                other = carried.setdefault((adapter, action), lever)
                if other is not lever:
                    raise PluginError(
                        f'the levers "{other.name}" and "{lever.name}" of [adapters.{adapter}] '
                        f'both execute "{action}"; expected one lever for each action'
                    )
        self._adapter_of = adapter_of
        self.threads = [work(a, lever, bounds, is_fresh, clock) for a, lever in made]
        self._carries = {(t.adapter, a): t for t in self.threads for a in t.lever.actions}

    def take_when_recorded(
        self,
        recorded: "Future[int]",
        rows: Sequence[DecisionRow],
        events: Sequence[tuple[str, NamedEvent]] = (),
    ) -> None:
        """Take decisions once they are on record; without a record nothing is applied.

        Args:
            recorded: resolves when they are.
            rows: the decisions.
            events: events of the adapters, with each one's label.
        """
        recorded.add_done_callback(
            lambda done: None if done.exception() else self.take(rows, events)
        )

    def take(
        self, rows: Iterable[DecisionRow], events: Iterable[tuple[str, NamedEvent]] = ()
    ) -> None:
        """Take decisions in their order, from any thread; never waits."""
        ended_s = {event[2]: event[0] for _, event in events if event[1] in _ENDS_THE_WAIT}
        latest = {row.job: row for row in rows if row.time_s >= ended_s.get(row.job, -inf)}
        for thread in self.threads:
            wanted = [row for row in latest.values() if self._is_for(thread, row)]
            thread.forget(ended_s)
            # also where the gate refused: the policy no longer wants the earlier decision
            thread.give_back(latest.keys() - {row.job for row in wanted})
            thread.want(wanted)

    def _is_for(self, thread: LeverThread, row: DecisionRow) -> bool:
        if row.gate != ACT:
            return False
        return self._carries.get((self._adapter_of(row.job) or "", row.action)) is thread

    def close(self, within_s: float) -> list[str]:
        """Revert all changes and end.

        Returns:
            the levers that did not finish in time, each by its adapter and its name: their changes
            expire.
        """
        end_s = time.monotonic() + within_s
        for thread in self.threads:
            thread.close(0.0)
        return [
            f"{thread.adapter}: {thread.lever.name}"
            for thread in self.threads
            if not thread.close(max(0.0, end_s - time.monotonic()))
        ]


# -- inline lever ----------------------------------------------------------------------------------
# A lever without a thread, for simulated time, where the order of calls matters.


class InlineLever(LeverThread):
    """A `LeverThread` without a thread: `work_off` does what is due."""

    def _begin(self) -> None:
        """Do nothing, since there is no thread to start."""

    def work_off(self) -> None:
        """Do all that is due now; retry a failed call at the next time."""
        while self._round() == 0.0:
            pass

    def close(self, within_s: float) -> bool:
        """Revert all active decisions, and end."""
        self._end()
        return True
