"""The four queue disciplines, written down as plainly as can be and apart from the engine.

One function simulates a cluster second by second of interest; nothing is kept between two moments
but who waits and who runs. It is slow, and shares no code with what it is held against.
"""

from collections.abc import Sequence
from math import inf, isnan
from typing import NamedTuple

from outrider.testing.hand_workload import Asked


class Running(NamedTuple):
    """A run: its job, where, and when it started."""

    job: int
    machine: int
    start_s: float


def told_s(job: Asked) -> float:
    """The estimate; infinite where nobody knows."""
    if job.estimate_s is None:
        return job.run_s
    return inf if isnan(job.estimate_s) else job.estimate_s


class PlainScheduler:
    """Runs jobs on machines under a discipline, in the order of arrival or shortest first.

    A job goes to the machine with the fewest CPUs left that it may use, the lowest of equals.
    """

    def __init__(
        self, machines: Sequence[int], jobs: Sequence[Asked], discipline: str, shortest: bool
    ) -> None:
        self.machines, self.jobs = list(machines), list(jobs)
        self.discipline, self.shortest = discipline, shortest
        self.started = [float("nan")] * len(jobs)
        self.queue: list[int] = []
        self.running: list[Running] = []

    def run(self) -> list[float]:
        """When each job starts; nan: never."""
        moments = {job.submit_s for job in self.jobs}
        now = -inf
        while later := [moment for moment in moments if moment > now]:
            now = min(later)
            self.running = [r for r in self.running if r.start_s + self.jobs[r.job].run_s > now]
            self.queue += [n for n, job in enumerate(self.jobs) if job.submit_s == now]
            before = len(self.running)
            self.look(now)
            moments |= {now + self.jobs[r.job].run_s for r in self.running[before:]}
        return self.started

    def look(self, now: float) -> None:
        """Everything that may start now, starts."""
        promised: list[tuple[int, float, int]] = []  # machine, start, job
        closed: set[int] = set()
        for number in self.in_order():
            if max(self.machines) < self.jobs[number].cpus:
                continue
            places = [
                m for m in range(len(self.machines))
                if m not in closed and self.free(m, now) >= self.jobs[number].cpus
                and all(self.leaves_alone(number, m, now, each) for each in promised)
            ]  # fmt: skip
            if self.discipline == "conservative" and promised:
                places = [m for m in places if self.room(number, m, now, now, promised)]
            if places:
                self.start(number, min(places, key=lambda m: (self.free(m, now), m)), now)
            elif self.discipline == "strict":
                return
            elif (
                self.discipline == "easy" and not promised and not closed
            ) or self.discipline == "conservative":
                self.promise(number, now, promised, closed)

    def in_order(self) -> list[int]:
        """Who waits, the first one first; equals as they came."""
        if not self.shortest:
            return list(self.queue)
        return sorted(self.queue, key=lambda n: told_s(self.jobs[n]))

    def start(self, number: int, machine: int, now: float) -> None:
        """A job starts."""
        self.queue.remove(number)
        self.started[number] = now
        self.running.append(Running(number, machine, now))

    def free(self, machine: int, now: float) -> int:
        """CPUs on which nothing runs now."""
        used = sum(self.jobs[r.job].cpus for r in self.running if r.machine == machine)
        return self.machines[machine] - used

    def free_at(self, machine: int, moment: float, now: float) -> int:
        """CPUs that are free at a moment, by the estimates; what is overdue ends now."""
        used = sum(
            self.jobs[r.job].cpus for r in self.running
            if r.machine == machine and max(now, r.start_s + told_s(self.jobs[r.job])) > moment
        )  # fmt: skip
        return self.machines[machine] - used

    def leaves_alone(
        self, number: int, machine: int, now: float, promise: tuple[int, float, int]
    ) -> bool:
        """EASY: whether a job that starts now leaves the promised start as it is."""
        where, start_s, first = promise
        if self.discipline != "easy" or machine != where or now + self.told(number) <= start_s:
            return True
        spare = self.free_at(where, start_s, now) - self.jobs[first].cpus
        return self.jobs[number].cpus <= spare

    def told(self, number: int) -> float:
        """A job's estimate."""
        return told_s(self.jobs[number])

    def room(
        self, number: int, machine: int, start_s: float, now: float,
        promised: list[tuple[int, float, int]],
    ) -> bool:  # fmt: skip
        """Conservative: whether a job could run from a moment on without anybody's CPUs."""
        end_s = start_s + self.told(number)
        there = [(s, s + self.told(n), self.jobs[n].cpus) for m, s, n in promised if m == machine]
        edges = {start_s} | {s for s, _, _ in there} | self.ends(machine, now)
        for moment in (edge for edge in edges if start_s <= edge < end_s or edge == start_s):
            taken = sum(cpus for s, e, cpus in there if s <= moment < e)
            if self.free_at(machine, moment, now) - taken < self.jobs[number].cpus:
                return False
        return True

    def ends(self, machine: int, now: float) -> set[float]:
        """When what runs on a machine is expected to end."""
        told = (
            max(now, r.start_s + self.told(r.job)) for r in self.running if r.machine == machine
        )
        return {end_s for end_s in told if end_s < inf}

    def promise(
        self, number: int, now: float, promised: list[tuple[int, float, int]], closed: set[int]
    ) -> None:
        """The earliest start on one machine; the first it could use is closed if nobody knows."""
        cpus, found = self.jobs[number].cpus, []
        for machine, width in enumerate(self.machines):
            if width < cpus:
                continue
            moments = {now} | self.ends(machine, now)
            if self.discipline == "conservative":
                mine = [p for p in promised if p[0] == machine]
                moments |= {s + self.told(n) for _, s, n in mine if s + self.told(n) < inf}
                able = [
                    t for t in moments
                    if machine not in closed and self.room(number, machine, t, now, promised)
                ]  # fmt: skip
            else:
                able = [t for t in moments if self.free_at(machine, t, now) >= cpus]
            found.append((min(able, default=inf), machine))
        start_s, machine = min(found)
        if start_s == inf:
            closed.add(machine)
        else:
            promised.append((machine, start_s, number))
