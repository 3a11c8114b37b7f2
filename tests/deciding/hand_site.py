"""A site played by hand: one policy acts on it, and what it starts runs until told otherwise."""

from typing import Any

from deciding.plays import ShadowRecorder, chance
from outrider.api import JobSpec, MachineSpec, Policy, PolicySettings
from outrider.engine import Engine, Seat
from outrider.engine.accounting import Accounting
from outrider.engine.site import Site
from outrider.model import events as ev
from outrider.model.localtime import ZoneTime


class HandSite:
    """Machines, jobs and moments set by the test; `starts` holds (job, machine) in order."""

    def __init__(self, kind: type[Policy], backfill: str | None = None, **settings: Any) -> None:
        clock = ZoneTime("UTC")
        self.site = Site(clock, [])
        record = kind.settings_type(**settings) if settings else kind.settings_type()
        assert isinstance(record, PolicySettings)
        self.policy = kind(record, chance(kind.name))
        self.seat = Seat(self.policy, True, 3600.0, backfill=backfill)
        self.recorder = ShadowRecorder(self.site)
        books = Accounting(clock, {}, exact=True)
        self.engine = Engine(self.site, books, [self.seat], self, self.recorder)
        self.starts: list[tuple[int, int]] = []
        self.now = 0.0
        self._to_start: list[tuple[int, int]] = []

    def start(self, job: int, machine: int) -> None:
        """The engine starts a job."""
        self._to_start.append((job, machine))

    def wake_at(self, time_s: float) -> None:
        """Ticks are the test's."""

    def tell(self, kind: int, subject: int, extra: Any = None) -> None:
        """Something happens now."""
        self.engine.feed([(self.now, kind, subject, extra)])

    def machines(self, *cpus: int, **known: Any) -> None:
        """Machines join, one for each number of CPUs."""
        for width in cpus:
            number = len(self.site.specs)
            self.tell(ev.JOINED, number, MachineSpec(cpus=width, **known))

    def submit(self, job: int, **spec: Any) -> None:
        """A job enters the queue."""
        self.tell(ev.SUBMITTED, job, JobSpec(**spec))

    def complete(self, job: int) -> None:
        """A running job ends."""
        self.tell(ev.COMPLETED, job)

    def evict(self, job: int) -> None:
        """A running job is thrown off its machine."""
        self.tell(ev.EVICTED, job, "owner")

    def tick(self, later_s: float = 0.0) -> list[int]:
        """Time passes, a round is held and carried out; the jobs it started, in order."""
        self.now += later_s
        self.tell(ev.TICK, 0)
        started, self._to_start = self._to_start, []
        for job, machine in started:
            cpus = self.site.jobs[job].spec.cpus
            self.tell(ev.STARTED, job, (machine, cpus))
        self.starts += started
        return [job for job, _ in started]
