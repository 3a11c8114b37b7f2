"""What a pass has promised to jobs that do not fit now, by the queue discipline.

One object for one pass. The pass asks where a job may start although others wait before it, and
tells what it began and who has to wait.
"""

from collections.abc import Callable
from math import inf

import numpy as np
from numpy.typing import NDArray

from outrider.engine.scheduling.availability_profile import Profile
from outrider.engine.scheduling.backfill import Begun, Ending, Reservation, endings, expected_run_s
from outrider.engine.scheduling.backfill import reserve_first as reserve
from outrider.engine.scheduling.placement import fits_when_empty
from outrider.engine.scheduling.queue_columns import QueueColumns
from outrider.engine.state.site import Site
from outrider.model.disciplines import CONSERVATIVE, EASY, EASY_SJBF, STRICT
from outrider.model.jobs import Job, JobSpec


class Promises:
    """Nothing is promised, and every job may pass: `first_fit`.

    Args:
        site: now, with what this pass has begun reserved.

    Attributes:
        fixes_order: once a job has to wait, the order is not made anew in this pass.
    """

    fixes_order = False

    def __init__(self, site: Site) -> None:
        self._site = site

    @property
    def shortest_first(self) -> bool:
        """From now on those behind are tried in the order of their estimates."""
        return False

    def allows(self, job: Job) -> Callable[[int], bool] | None:
        """Whether a job may start on a machine now; None: wherever it fits."""
        return None

    def begin(self, job: Job, machine: int) -> None:
        """A job starts in this pass."""

    def candidates(self, table: QueueColumns) -> NDArray[np.bool_]:
        """(jobs,) Which of the queue have to be looked at, in their turn.

        No other can start in this pass, nor makes a difference to those behind it.
        """
        site = self._site
        fits: NDArray[np.bool_] = table.cpus <= max(map(site.cpus_left, site.free_since), default=0)
        return fits

    def wait(self, job: Job) -> bool:
        """A job fits on an open machine, but not now. False if no job may pass it."""
        return True


class NobodyPasses(Promises):
    """`strict`."""

    def candidates(self, table: QueueColumns) -> NDArray[np.bool_]:
        """All: the next one that does not fit holds up those behind it."""
        return _all_of(table)

    def wait(self, job: Job) -> bool:
        """No job passes."""
        return False


class FirstReserved(Promises):
    """`easy`: the first that has to wait has a reservation.

    It is worked out when somebody behind might start: in most passes on a full site nobody could.
    """

    fixes_order = True

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._begun: list[Begun] = []
        self._first: JobSpec | None = None
        self._reservation: Reservation | None = None

    def _promised(self) -> Reservation | None:
        """What the first is promised; None while nobody has to wait."""
        if self._reservation is None and self._first is not None:
            self._reservation = reserve(self._first, self._site, self._begun)
        return self._reservation

    def allows(self, job: Job) -> Callable[[int], bool] | None:
        """On the reserved machine only what does not delay the reservation."""
        site, spec, promised = self._site, job.spec, self._promised()
        if promised is None or not site.is_free(promised.machine):
            return None
        machine = promised.machine
        if promised.allows(spec, site.now + expected_run_s(spec, machine, site)):
            return None
        return machine.__ne__

    def begin(self, job: Job, machine: int) -> None:
        """It takes what it needs of what the reservation leaves over."""
        spec = job.spec
        end_s = self._site.now + expected_run_s(spec, machine, self._site)
        if self._reservation is None:
            self._begun.append((machine, Ending(end_s, job.number, spec.cpus, spec.resources)))
        elif machine == self._reservation.machine:
            self._reservation.begin(spec, end_s)

    def candidates(self, table: QueueColumns) -> NDArray[np.bool_]:
        """Those that fit beside the reservation, before it, or on another machine.

        All while nobody has to wait: that may be any that does not fit.
        """
        if self._first is None:
            return _all_of(table)
        fit = super().candidates(table)
        promised = self._promised() if np.count_nonzero(fit) else None
        if promised is None or not self._site.is_free(promised.machine):
            return fit
        site, cpus, machine = self._site, table.cpus, promised.machine
        others = (site.cpus_left(other) for other in site.free_since if other != machine)
        beside: NDArray[np.bool_] = cpus <= promised.spare.cpus
        if promised.start_s < inf:
            beside |= site.now + table.estimate_s / site.speed_of(machine) <= promised.start_s
        return (beside & (cpus <= site.cpus_left(machine))) | (cpus <= max(others, default=0))

    def wait(self, job: Job) -> bool:
        """The first has a reservation, those behind it have none."""
        if self._first is None:
            self._first = job.spec
        return True


class ShortestPass(FirstReserved):
    """`easy_sjbf`: those that may pass are tried shortest estimate first.

    Tsafrir, Etsion and Feitelson, "Backfilling using system-generated predictions rather than user
    runtime estimates", IEEE TPDS 18 (2007): the head and its reservation stay those of the queue's
    own order, so that nobody starves.
    """

    @property
    def shortest_first(self) -> bool:
        """Once somebody waits: until then the queue's own order says who that is."""
        return self._first is not None


class AllReserved(Promises):
    """`conservative`: whoever has to wait has a reservation, at the earliest moment left.

    Reservations are made anew in each pass, in the order of the queue: when a run ends before its
    time all move up. Who cannot be told when it will start keeps the first machine on which it
    would fit: no job behind it starts there.
    """

    fixes_order = True

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._begun: list[Begun] = []
        self._profiles: dict[int, Profile] = {}
        self._kept: set[int] = set()
        self._waits = False

    def allows(self, job: Job) -> Callable[[int], bool] | None:
        """Where it delays no reservation."""
        if not self._waits:
            return None
        spec = job.spec
        return lambda machine: self._allows(spec, machine)

    def _allows(self, spec: JobSpec, machine: int) -> bool:
        if machine in self._kept:
            return False
        lasts_s = expected_run_s(spec, machine, self._site)
        return self._profile(machine).holds_now(spec.cpus, spec.resources, lasts_s)

    def _profile(self, machine: int) -> Profile:
        profile = self._profiles.get(machine)
        if profile is None:
            site = self._site
            ends = endings(machine, site, self._begun)
            profile = self._profiles[machine] = Profile(site.now, site.room(machine), ends)
        return profile

    def begin(self, job: Job, machine: int) -> None:
        """It takes its CPUs until its expected end."""
        site, spec = self._site, job.spec
        lasts_s = expected_run_s(spec, machine, site)
        end_s = site.now + lasts_s
        self._begun.append((machine, Ending(end_s, job.number, spec.cpus, spec.resources)))
        profile = self._profiles.get(machine)
        if profile is not None:
            profile.take(site.now, lasts_s, spec.cpus, spec.resources)

    def candidates(self, table: QueueColumns) -> NDArray[np.bool_]:
        """All: each that cannot start gets a reservation, in its turn."""
        return _all_of(table)

    def wait(self, job: Job) -> bool:
        """Reserve the earliest start that delays no reservation before it."""
        site, spec = self._site, job.spec
        self._waits = True
        best: tuple[float, int] | None = None
        for machine in range(site.machines_n):
            if not site.cpus_of(machine) or not fits_when_empty(site, spec, machine):
                continue
            if machine in self._kept:
                start_s = inf
            else:
                lasts_s = expected_run_s(spec, machine, site)
                start_s = self._profile(machine).earliest_s(spec.cpus, spec.resources, lasts_s)
            if best is None or start_s < best[0]:
                best = start_s, machine
        if best is not None:
            self._promise(spec, *best)
        return True

    def _promise(self, spec: JobSpec, start_s: float, machine: int) -> None:
        if start_s == inf:
            self._kept.add(machine)
            return
        lasts_s = expected_run_s(spec, machine, self._site)
        self._profile(machine).take(start_s, lasts_s, spec.cpus, spec.resources)


def _all_of(table: QueueColumns) -> NDArray[np.bool_]:
    return np.ones(len(table), dtype=np.bool_)


def promises_of(discipline: str) -> type[Promises]:
    """What a discipline promises."""
    kinds: dict[str, type[Promises]] = {
        STRICT: NobodyPasses, EASY: FirstReserved, EASY_SJBF: ShortestPass,
        CONSERVATIVE: AllReserved,
    }  # fmt: skip
    return kinds.get(discipline, Promises)
