"""The one place from which levers are worked: recorded decisions in, changes at the site out."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future

from outrider.acting.gate import ACT
from outrider.acting.lever_thread import LeverThread
from outrider.api.lever import Lever
from outrider.model.decisions import DEFER, DecisionRow
from outrider.model.errors import PluginError


class LeverRunner:
    """Hands each decision that the gate answered with *act* to the lever that carries its action.

    A deferral withdraws what lasts for its job: the policy wants it no more. Nothing is renewed
    unless a policy decides the same anew; what lapses is not noted.

    Args:
        levers: of all adapters.
        clock: seconds that only ever go on.

    Raises:
        PluginError: two levers carry the same action.
    """

    def __init__(
        self, levers: Iterable[Lever], clock: Callable[[], float] = time.monotonic
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
        self.threads = [LeverThread(lever, clock) for lever in made]
        self._carries = {a: thread for thread in self.threads for a in thread.lever.actions}

    @property
    def counts(self) -> dict[str, Counter[str]]:
        """By lever, what became of its changes (`LeverThread.counts`)."""
        return {thread.lever.name: thread.counts for thread in self.threads}

    def take_when_recorded(self, recorded: "Future[int]", rows: Sequence[DecisionRow]) -> None:
        """Take decisions once they are on record; what cannot be recorded is not carried out."""
        recorded.add_done_callback(lambda done: None if done.exception() else self.take(rows))

    def take(self, rows: Iterable[DecisionRow]) -> None:
        """Take decisions in their order, from any thread; never waits."""
        for row in rows:
            if row.gate == ACT:
                if (thread := self._carries.get(row.action)) is not None:
                    thread.apply(row)
            elif row.action == DEFER:
                for thread in self.threads:
                    thread.withdraw(row.job)

    def close(self, within_s: float) -> list[str]:
        """Withdraw everything and end.

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
