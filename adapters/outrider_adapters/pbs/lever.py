"""The lever of a PBS server: jobs wait for an execution time that lapses by itself."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from outrider.api import DecisionRow, Lever, PeerError
from outrider_adapters.noted_changes import GONE, BeginTimes, GivenUpError, Pace, Plan, carry_out
from outrider_adapters.pbs.dialects import Dialect, dialect_of, pbs_commands
from outrider_adapters.pbs.execution_times import (
    LATE_S,
    WaitingJob,
    qalter_words,
    waiting_jobs,
)
from outrider_adapters.polling import CommandError

_AT_ONCE: Final = 100
"""Jobs of one ``qalter``."""
_NOBODY_ANSWERS: Final = ("did not answer within", "cannot connect to server")
_OF_AN_ARRAY: Final = "it is a job of an array, which PBS alters as a whole alone"
_ENDED: Final = "the daemon ends, and this was not asked for any more"


class LeasedExecutionTimes(Lever):
    """Moves the execution time of deferred jobs a lease ahead, again and again.

    A job that is to start may begin at once; where it runs, and which of those that may begin comes
    first, stays PBS's matter. It needs the right of an operator of the server.

    Args:
        adapter: of the server.
        now: this host's clock, Unix seconds.
    """

    name = "leased_execution_times"
    description = (
        "keeps jobs in the queue by an execution time a lease ahead, which lapses by itself"
    )
    actions = ("start", "defer")
    places = False

    def __init__(self, adapter: Any, now: Callable[[], float] = time.time) -> None:
        super().__init__(adapter)
        self.lease_s = adapter.settings.lease_s
        self._now = now
        self._pace = Pace(adapter.settings.updates_per_s)
        # commands that take and print times of UTC, whatever the zone of this host
        self._commands = pbs_commands(adapter.settings, TZ="UTC0")
        self._shown: Mapping[str, WaitingJob] = {}

    def apply(self, decisions: Sequence[DecisionRow]) -> dict[str, str]:
        """As `Lever.apply`."""
        now_s = int(self._now())
        waiting = self._waiting()
        kept = [one.job for one in decisions if one.action == "defer"]
        free = [one.job for one in decisions if one.action == "start"]
        parts = {name: _OF_AN_ARRAY for name in kept if self._is_of_an_array(name)}
        deferred = self._times.deferred(
            {name: waiting.get(name) for name in kept if name not in parts}, now_s
        )
        released = self._times.released({name: waiting.get(name) for name in free}, now_s)
        refused = parts | deferred.refused | self._carry_out([deferred, released])
        self._check_clock(deferred.values.keys() - refused.keys(), now_s)
        return {name: why for name, why in refused.items() if why != GONE or name in kept}

    def withdraw(self, jobs: Collection[str]) -> dict[str, str]:
        """As `Lever.withdraw`."""
        return self._release(jobs)[1]

    def withdraw_all(self) -> int:
        """As `Lever.withdraw_all`; the undo log tells of whom."""
        names = self._times.kept(int(self._now()))
        done, refused = self._release(names)
        if refused:
            name, why = next(iter(refused.items()))
            raise PeerError(f"{len(refused)} of {len(names)} jobs are kept still: {name}: {why}")
        return done

    def hurry(self) -> None:
        """As `Lever.hurry`."""
        self._pace.hurry()

    def close(self) -> None:
        """End a command that runs."""
        self._commands.close()

    def _waiting(self) -> Mapping[str, WaitingJob]:
        self._shown = waiting_jobs(self._dialect.jobs().entries)
        return self._shown

    def _release(self, names: Collection[str]) -> tuple[int, dict[str, str]]:
        """How many of these jobs Outrider kept and let go, and for which that was refused: why."""
        waiting = self._waiting() if names else {}
        plan = self._times.released({name: waiting.get(name) for name in names}, int(self._now()))
        refused = self._carry_out([plan], takes_back=True)
        refused = {name: why for name, why in refused.items() if why != GONE}
        return len(plan.values.keys() - refused.keys()), refused

    def _carry_out(self, plans: Sequence[Plan], *, takes_back: bool = False) -> dict[str, str]:
        return carry_out(
            [self._times.change(plan) for plan in plans],
            lambda values: self._alter(values, takes_back),
            self._waiting,
        )

    def _alter(self, values: Mapping[str, Mapping[str, int]], takes_back: bool) -> str:
        """Give jobs their execution times; what was said when that was refused the last time."""
        said = ""
        alike: dict[int, list[str]] = {}
        for name, given in values.items():
            alike.setdefault(given["begin_s"], []).append(name)
        n = min(_AT_ONCE, self._pace.at_once)
        for begin_s, names in alike.items():
            for first in range(0, len(names), n):
                some = names[first : first + n]
                if self._pace.waited_and_ended(len(some)) and not takes_back:
                    raise GivenUpError(_ENDED)
                try:
                    self._commands.run("qalter", *qalter_words(begin_s, some))
                except CommandError as error:  # of one of them; reading back tells of which
                    said = str(error)
                    if any(sign in said for sign in _NOBODY_ANSWERS):
                        raise GivenUpError(said) from error
        return said

    def _check_clock(self, names: Collection[str], now_s: int) -> None:
        """Let jobs go whose execution times end by a clock that is off.

        PBS tells its time nowhere but in what it has just changed.

        Raises:
            PeerError: it differs by more than a quarter of a lease.
        """
        changed = [self._shown[name].changed_s for name in names if name in self._shown]
        off_s = [at_s - now_s for at_s in changed if at_s is not None]
        worst_s = max(off_s, key=abs, default=0.0)
        if abs(worst_s) > self.lease_s / 4.0:
            self.withdraw(names)
            raise PeerError(
                f"the server's clock differs by {worst_s:+.0f} s from this host's; right would be "
                f"less than a quarter of lease_s, {self.lease_s / 4.0:g} s"
            )

    def _is_of_an_array(self, name: str) -> bool:
        return "[" in name and not self._dialect.is_torque

    @cached_property
    def _dialect(self) -> Dialect:
        return dialect_of(self.adapter.settings, self._commands)

    @cached_property
    def _times(self) -> BeginTimes:
        # not when it is made: the adapter gets its undo log after that
        return BeginTimes(self.adapter.undo_log, self.lease_s, LATE_S)
