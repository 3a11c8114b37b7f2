"""The one place from which levers are worked: recorded decisions in, changes at the site out."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
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
    """Hands each decision that the gate answered with *act* to the lever that carries its action.

    From then on it stands, and is renewed, until the policy decides otherwise for the job, or the
    job starts, leaves or is held.

    Args:
        levers: of all adapters.
        bounds: how much may be changed.
        is_fresh: whether what is known of the site is young enough to act on; from any thread.
        clock: seconds that only ever go on.

    Raises:
        PluginError: two levers carry the same action.
    """

    def __init__(
        self,
        levers: Iterable[Lever],
        bounds: LeaseBounds = UNBOUNDED,
        is_fresh: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        made = list(levers)
        carried: dict[str, Lever] = {}
        for lever in made:
            for action in lever.actions:
                other = carried.setdefault(action, lever)
                if other is not lever:
                    raise PluginError(
                        f'the levers "{other.name}" and "{lever.name}" both carry "{action}"; '
                        "right would be one lever for each action"
                    )
        self.threads = [LeverThread(lever, bounds, is_fresh, clock) for lever in made]
        self._carries = {a: thread for thread in self.threads for a in thread.lever.actions}

    @property
    def counts(self) -> dict[str, Counter[str]]:
        """By lever, what became of its changes (`LeverThread.counts`)."""
        return {thread.lever.name: thread.counts for thread in self.threads}

    def take_when_recorded(
        self,
        recorded: "Future[int]",
        rows: Sequence[DecisionRow],
        events: Sequence[tuple[str, NamedEvent]] = (),
    ) -> None:
        """Take decisions once they are on record; what cannot be recorded is not carried out.

        Args:
            recorded: resolves when they are.
            rows: what was decided.
            events: what came of the adapters, with each one's label.
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
            # also where the gate refused: what stood before is not what the policy wants now
            thread.give_back(latest.keys() - {row.job for row in wanted})
            thread.want(wanted)

    def _is_for(self, thread: LeverThread, row: DecisionRow) -> bool:
        return row.gate == ACT and self._carries.get(row.action) is thread

    def close(self, within_s: float) -> list[str]:
        """Take everything back and end.

        Returns:
            names of the levers that did not manage in time: what they changed lapses by itself.
        """
        end_s = time.monotonic() + within_s
        for thread in self.threads:
            thread.close(0.0)
        return [
            thread.lever.name
            for thread in self.threads
            if not thread.close(max(0.0, end_s - time.monotonic()))
        ]
