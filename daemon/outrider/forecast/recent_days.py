"""Recent arrivals and machine closures, resampled to generate the coming days."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from math import isnan
from typing import NamedTuple

import msgspec
import numpy as np

from outrider.forecast.closures import Closure, ClosureLengths
from outrider.forecast.followed_site import FollowedSite
from outrider.model.jobs import JobSpec
from outrider.model.localtime import DAY_S


class Arrival(NamedTuple):
    """Job that arrived in the last days.

    Attributes:
        submit_s: time of submission, Unix seconds.
        spec: the request.
        run_s: run time; nan: the job has not ended.
        column: index among the present jobs, whose drawn run time is used; -1: the job has ended.
    """

    submit_s: float
    spec: JobSpec
    run_s: float
    column: int


class RecentDays:
    """Last days of a site, with the numbers of its present state.

    Args:
        since_s: begin of the known period, Unix seconds.
        arrivals: in the order of time.
        closures: those that have ended.
        closed: begin and reason of each present closure, by number of its machine.
        evicting: reasons for which runs on a machine that closes are evicted.
    """

    def __init__(
        self,
        since_s: float,
        arrivals: Sequence[Arrival],
        closures: Sequence[Closure],
        closed: Mapping[int, tuple[float, str]],
        evicting: frozenset[str],
    ) -> None:
        self.since_s = since_s
        self.evicting = evicting
        self._arrivals = arrivals
        self._arrived_s = [arrival.submit_s for arrival in arrivals]
        self._closures = sorted(closures, key=lambda closure: closure.from_s)
        self._began_s = [closure.from_s for closure in self._closures]
        self._closed = closed
        self._lengths = ClosureLengths(self._closures)

    def days(
        self,
        now_s: float,
        shifts_s: Sequence[float],
        run_s: Sequence[float],
        closed: Mapping[int, float],
    ) -> Iterator[tuple[float, Arrival | Closure]]:
        """Yield the events of one replicate, in the order of time, with that time.

        Args:
            now_s: the present moment.
            shifts_s: (days,) shift in time from the past day to each coming day.
            run_s: (jobs,) drawn run times of the present jobs.
            closed: end of each present closure, by machine: `reopenings`.
        """
        # a present closure recurs, too: without it no working day would recur as a whole
        ongoing = [
            Closure(machine, since_s, closed[machine], reason)
            for machine, (since_s, reason) in self._closed.items()
        ]
        for day, shift_s in enumerate(shifts_s):
            begin_s = now_s + day * DAY_S - shift_s
            jobs: Iterator[tuple[float, Arrival | Closure]] = (
                (
                    arrival.submit_s + shift_s,
                    arrival._replace(run_s=run_s[arrival.column])
                    if isnan(arrival.run_s)
                    else arrival,
                )
                for arrival in self._arrivals[_day(self._arrived_s, begin_s)]
            )
            closures: Iterator[tuple[float, Arrival | Closure]] = (
                (closure.from_s + shift_s, closure._replace(until_s=closure.until_s + shift_s))
                for closure in chain(
                    self._closures[_day(self._began_s, begin_s)],
                    (one for one in ongoing if begin_s < one.from_s <= begin_s + DAY_S),
                )
            )
            yield from sorted(chain(jobs, closures), key=lambda coming: coming[0])

    def reopenings(self, now_s: float, rng: np.random.Generator) -> dict[int, float]:
        """Draw the end of each present closure, Unix seconds, by machine."""
        return {
            machine: since_s
            + self._lengths.draw_s(machine, reason, now_s - since_s, float(rng.random()))
            for machine, (since_s, reason) in self._closed.items()
        }


def _day(times_s: Sequence[float], begin_s: float) -> slice:
    """Return the rows of the day that begins at `begin_s`."""
    return slice(bisect_right(times_s, begin_s), bisect_right(times_s, begin_s + DAY_S))


def recent_days_of(
    site: FollowedSite, columns: Mapping[str, int], machines: Mapping[str, int], shut: set[int]
) -> RecentDays:
    """Return the last days of a site.

    Args:
        site: the followed site.
        columns: index of each present job, by name.
        machines: number of each machine in the present state, by name.
        shut: numbers of the machines that are closed to jobs now.
    """
    arrivals = []
    for came in site.recent.jobs:
        column = columns.get(site.name(came.job), -1) if isnan(came.run_s) else -1
        if column >= 0 or not isnan(came.run_s):
            spec = msgspec.structs.replace(came.spec, eligible_s=None, seen_submit=True)
            arrivals.append(Arrival(came.submit_s, spec, came.run_s, column))
    known = {
        number: machines[name]
        for number in {c.machine for c in site.closures.ended} | site.closures.open.keys()
        if (name := site.machine_name(number)) in machines
    }
    since = {
        known[number]: (since_s, reason)
        for number, (since_s, reason) in site.closures.open.items()
        if number in known
    }
    return RecentDays(
        site.known_since_s,
        arrivals,
        [c._replace(machine=known[c.machine]) for c in site.closures.ended if c.machine in known],
        {machine: since.get(machine, (site.now_s, "")) for machine in shut},
        frozenset(site.closures.evicting),
    )
