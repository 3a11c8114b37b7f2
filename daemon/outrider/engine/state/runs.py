"""What runs where, and when it is expected to end: for policies and rules that look at runs."""

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping
from itertools import chain
from math import inf
from typing import Any, NamedTuple

from outrider.model.jobs import Job


class ExpectedEnd(NamedTuple):
    """When a run is expected to end, and the CPUs it then gives back; infinite: not known."""

    end_s: float
    job: int
    cpus: int


class Runs:
    """Running jobs by machine, in the order in which they got the CPUs that they have there."""

    def __init__(self) -> None:
        self._by_machine: dict[int, dict[int, Job]] = {}
        self._ends: dict[int, list[ExpectedEnd]] = {}
        self._expected: dict[int, ExpectedEnd] = {}

    def add(self, job: Job, speed: float, now: float) -> None:
        """A job runs on its machine from now on, or goes on there on other CPUs."""
        self._add(job, now + remaining_s(job, speed, now))

    def _add(self, job: Job, end_s: float) -> None:
        self._by_machine.setdefault(job.machine, {})[job.number] = job
        expected = ExpectedEnd(end_s, job.number, job.cpus)
        self._expected[job.number] = expected
        insort(self._ends.setdefault(job.machine, []), expected)

    def drop(self, job: Job) -> None:
        """It runs there no longer."""
        self._by_machine.get(job.machine, {}).pop(job.number, None)
        expected = self._expected.pop(job.number, None)
        if expected is not None:
            ends = self._ends[job.machine]
            del ends[bisect_left(ends, expected)]

    def on(self, machine: int) -> dict[int, Job]:
        """Those of one machine, by number."""
        return self._by_machine.get(machine, {})

    def ends(self, machine: int) -> list[ExpectedEnd]:
        """Their expected ends, the first one first. Those in the past are overdue."""
        return self._ends.get(machine, [])

    def __iter__(self) -> Iterator[Job]:
        return chain.from_iterable(map(dict.values, self._by_machine.values()))

    def save(self) -> list[Any]:
        """By machine, the jobs and their expected ends, all in order."""
        return [
            [machine, [[number, self._expected[number].end_s] for number in jobs]]
            for machine, jobs in self._by_machine.items()
        ]

    @classmethod
    def restored(cls, saved: list[Any], jobs: Mapping[int, Job]) -> "Runs":
        """What `save` described: reckoned anew, orders and ends would not be the same."""
        runs = cls()
        for machine, there in saved:
            runs._by_machine[machine] = {}
            for number, end_s in there:
                runs._add(jobs[number], end_s)
        return runs


def remaining_s(job: Job, speed: float, now: float) -> float:
    """Expected seconds until a job that runs is done: 0 if it is overdue, inf if not known.

    Args:
        job: on `job.cpus` CPUs, which may be fewer than it asked for.
        speed: of its machine.
        now: event time.
    """
    if job.spec.estimate_s is None:
        return inf
    rate = speed * min(job.cpus, job.spec.cpus) / job.spec.cpus
    done_s = job.work_s(now) * speed
    return max(0.0, job.spec.estimate_s - done_s) / rate
