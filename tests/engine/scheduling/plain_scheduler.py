"""The five queue disciplines, written down as plainly as can be and apart from the engine.

One function simulates a cluster second by second of interest; nothing is kept between two moments
but which jobs are pending and which run. It is slow, and shares no code with what it is held
against. CPUs, memory and everything else that a machine has are amounts by name, all alike.
"""

from collections.abc import Mapping, Sequence
from math import inf, isnan
from typing import NamedTuple

from outrider.testing.fixtures import Asked

CPUS = "cpus"
EASY = ("easy", "easy_sjbf")


class Running(NamedTuple):
    """A run: its job, where, and when it started."""

    job: int
    machine: int
    start_s: float


class Reserved(NamedTuple):
    """A reservation: where, from when on, and for which job."""

    machine: int
    start_s: float
    job: int


class Needs(NamedTuple):
    """Requests of a job besides CPUs, and the machines that it may use (None: any)."""

    amounts: Mapping[str, float] = {}
    allowed: frozenset[int] | None = None


def estimate_s(job: Asked) -> float:
    """Return the estimate; infinite where it is unknown."""
    if job.estimate_s is None:
        return job.run_s
    return inf if isnan(job.estimate_s) else job.estimate_s


class PlainScheduler:
    """Runs jobs on machines under a discipline, in the order of arrival or shortest first.

    A job goes to the machine with the fewest CPUs left that it may use, the lowest of equals.

    Args:
        machines: what each has, by name; CPUs are named `CPUS`. What a machine does not name is
            not checked there.
        jobs: what runs when and for how long.
        discipline: one of `outrider.model.modes`.
        shortest: shortest estimate first, else in the order of arrival.
        needs: by job.
    """

    def __init__(
        self,
        machines: Sequence[Mapping[str, float]],
        jobs: Sequence[Asked],
        discipline: str,
        shortest: bool,
        needs: Sequence[Needs] = (),
    ) -> None:
        self.machines, self.jobs = list(machines), list(jobs)
        self.discipline, self.shortest = discipline, shortest
        self.allowed = [need.allowed for need in needs] or [None] * len(jobs)
        others: list[Mapping[str, float]] = [need.amounts for need in needs] or [{}] * len(jobs)
        self.asks = [{CPUS: job.cpus, **more} for job, more in zip(jobs, others, strict=True)]
        self.started = [float("nan")] * len(jobs)
        self.queue: list[int] = []
        self.running: list[Running] = []

    def run(self) -> list[float]:
        """Return when each job starts; nan: never."""
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
        reserved: list[Reserved] = []
        closed: set[int] = set()
        waiting, by_length = self.in_order(), False
        while waiting:
            if self.discipline == "easy_sjbf" and (reserved or closed) and not by_length:
                waiting.sort(key=lambda n: estimate_s(self.jobs[n]))
                by_length = True
            number = waiting.pop(0)
            mine = self.usable(number)
            if not mine:
                continue
            places = [
                m for m in mine
                if m not in closed and self.suffices(self.left(m, now), number)
                and all(self.leaves_alone(number, m, now, each) for each in reserved)
            ]  # fmt: skip
            if self.discipline == "conservative" and reserved:
                places = [m for m in places if self.has_room(number, m, now, now, reserved)]
            if places:
                self.start(number, min(places, key=lambda m: (self.left(m, now)[CPUS], m)), now)
            elif self.discipline == "strict":
                return
            elif (
                self.discipline in EASY and not reserved and not closed
            ) or self.discipline == "conservative":
                self.reserve(number, now, reserved, closed)

    def in_order(self) -> list[int]:
        """The pending jobs, the first one first; equals as they came."""
        if not self.shortest:
            return list(self.queue)
        return sorted(self.queue, key=lambda n: estimate_s(self.jobs[n]))

    def start(self, number: int, machine: int, now: float) -> None:
        """Move a job from the queue to the running ones."""
        self.queue.remove(number)
        self.started[number] = now
        self.running.append(Running(number, machine, now))

    # -- what there is ------------------------------------------------------------------------

    def usable(self, number: int) -> list[int]:
        """Machines on which a job could run if nothing else did."""
        allowed = self.allowed[number]
        return [
            m for m, has in enumerate(self.machines)
            if (allowed is None or m in allowed) and self.suffices(has, number)
        ]  # fmt: skip

    def suffices(self, left: Mapping[str, float], number: int) -> bool:
        """Return whether what is left is enough for a job."""
        return all(amount <= left.get(name, inf) for name, amount in self.asks[number].items())

    def less(self, left: Mapping[str, float], numbers: Sequence[int]) -> dict[str, float]:
        """Return what is left when these jobs have what they request."""
        return {
            name: amount - sum(self.asks[n].get(name, 0) for n in numbers)
            for name, amount in left.items()
        }

    def left(self, machine: int, now: float) -> dict[str, float]:
        """Return what no run uses now."""
        return self.less(self.machines[machine], [r.job for r in self.running_on(machine)])

    def left_at(self, machine: int, moment: float, now: float) -> dict[str, float]:
        """Return what no run uses at a moment, by the estimates; overdue runs end now."""
        until = [
            (r.job, max(now, r.start_s + self.lasts_s(r.job))) for r in self.running_on(machine)
        ]
        return self.less(self.machines[machine], [job for job, end_s in until if end_s > moment])

    def running_on(self, machine: int) -> list[Running]:
        """Return the runs on a machine."""
        return [run for run in self.running if run.machine == machine]

    def lasts_s(self, number: int) -> float:
        """Return the estimate of a job by number."""
        return estimate_s(self.jobs[number])

    def ends(self, machine: int, now: float) -> set[float]:
        """Return when what runs on a machine is expected to end."""
        ends = (max(now, r.start_s + self.lasts_s(r.job)) for r in self.running_on(machine))
        return {end_s for end_s in ends if end_s < inf}

    # -- reservations -------------------------------------------------------------------------

    def leaves_alone(self, number: int, machine: int, now: float, first: Reserved) -> bool:
        """EASY: whether a job that starts now leaves the reserved start as it is."""
        ends_before = now + self.lasts_s(number) <= first.start_s
        if self.discipline not in EASY or machine != first.machine or ends_before:
            return True
        spare = self.less(self.left_at(machine, first.start_s, now), [first.job])
        return self.suffices(spare, number)

    def has_room(
        self, number: int, machine: int, start_s: float, now: float, reserved: Sequence[Reserved]
    ) -> bool:
        """Return whether a job could run from a moment on without delaying a reservation."""
        end_s = start_s + self.lasts_s(number)
        there = [
            (each.start_s, each.start_s + self.lasts_s(each.job), each.job)
            for each in reserved
            if each.machine == machine
        ]
        edges = {start_s} | {s for s, _, _ in there} | self.ends(machine, now)
        for moment in (edge for edge in edges if start_s <= edge < end_s or edge == start_s):
            then = [job for s, e, job in there if s <= moment < e]
            if not self.suffices(self.less(self.left_at(machine, moment, now), then), number):
                return False
        return True

    def reserve(self, number: int, now: float, reserved: list[Reserved], closed: set[int]) -> None:
        """Reserve the earliest start on one machine; close the first usable one if unknown."""
        found = []
        for machine in self.usable(number):
            moments = {now} | self.ends(machine, now)
            if self.discipline == "conservative":
                there = [each for each in reserved if each.machine == machine]
                ends = {each.start_s + self.lasts_s(each.job) for each in there}
                moments |= {end_s for end_s in ends if end_s < inf}
                able = [
                    t for t in moments
                    if machine not in closed and self.has_room(number, machine, t, now, reserved)
                ]  # fmt: skip
            else:
                able = [t for t in moments if self.suffices(self.left_at(machine, t, now), number)]
            found.append((min(able, default=inf), machine))
        start_s, machine = min(found)
        if start_s == inf:
            closed.add(machine)
        else:
            reserved.append(Reserved(machine, start_s, number))
