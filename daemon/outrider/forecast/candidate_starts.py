"""Starts of waiting jobs under a candidate policy, simulated in replicates."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from math import inf, nan
from typing import Any, Final, NamedTuple

import numpy as np

from outrider.forecast.closures import OWNER, REBOOT, Closure
from outrider.forecast.expected_starts import draw_days
from outrider.forecast.followed_site import FollowedSite
from outrider.forecast.present import Present
from outrider.forecast.queue_state import Floats, Jobs, QueueState
from outrider.forecast.recent_days import Arrival, recent_days_of
from outrider.forecast.run_times import GROUP_LEVELS, draw_run_times
from outrider.model import events as ev
from outrider.model.errors import OutriderError, PolicyError
from outrider.model.events import Event
from outrider.model.jobs import Job
from outrider.model.localtime import DAY_S
from outrider.simulation.grid_site import Run
from outrider.twin.replicates import PolicyMaker

MIN_REPLICATES: Final = 10
"""Minimal number of replicates for an answer."""
MAX_REPLICATES: Final = 100
HORIZON_DAYS: Final = 14
"""Simulated period; a later start counts as never."""
_NEEDS_TRUTH: Final = "it needs true run times, which are not known before a run ends"


class Future(NamedTuple):
    """Random input of one replicate.

    Attributes:
        run_s: (jobs,) whole run times of the present jobs, seconds.
        coming: arrivals and closures, in the order of time, with that time, Unix seconds.
        closed: end of each present closure, by number of its machine.
        evicting: reasons for which runs on a machine that closes are evicted.
        policy_seed: for the policy's random draws.
    """

    run_s: Sequence[float]
    coming: Iterator[tuple[float, Arrival | Closure]]
    closed: Mapping[int, float]
    evicting: frozenset[str]
    policy_seed: int


class CandidateStarts:
    """Simulates the present state of a site forward under each policy.

    In one replicate every policy has the same run times, the same arrivals and the same owners.

    Args:
        present: the site now.
        followed: the same site, with recent arrivals and the history of run times.
        make: makes a policy of a name and a seed.
        seed: of all random draws.
        clock: monotonic seconds.
        incumbent: name of the policy that represents the batch system; None: not known, and a
            candidate itself is used where jobs may not be deferred any longer.

    Attributes:
        jobs: names of the jobs with expected starts, in the order of the queue.
        here: the present jobs, of which a `Future` has the run times.
    """

    def __init__(
        self,
        present: Present,
        followed: FollowedSite,
        make: PolicyMaker,
        seed: int,
        clock: Callable[[], float] = time.monotonic,
        incumbent: str | None = None,
    ) -> None:
        self._present = present
        self._make = make
        self._seed = seed
        self._clock = clock
        self._incumbent = incumbent
        self._history = followed.recent.whole_runs
        self._wanted = present.possible()
        self.jobs = [present.name(job) for job in self._wanted]
        self._now_s = present.site.now
        self.here, self._state = _state(present, followed)
        columns = {present.name(job): n for n, job in enumerate(self.here)}
        self._recent = recent_days_of(followed, columns, present.machines, present.shut)

    def starts_s(self, policy: str, budget_s: float) -> Floats:
        """Return (replicates, jobs) starts, Unix seconds; inf: not within `HORIZON_DAYS`.

        Replicates are added while there is time for another one, up to `MAX_REPLICATES`. There are
        at least `MIN_REPLICATES`, which may take twice as long.

        Args:
            policy: its name.
            budget_s: seconds for all replicates.

        Raises:
            OutriderError: with the reason: it fails, needs unknown data, or takes too long.
        """
        begin_s, longest_s = self._clock(), 0.0
        rows: list[Floats] = []
        while len(rows) < MAX_REPLICATES:
            spent_s = self._clock() - begin_s
            if len(rows) >= MIN_REPLICATES and spent_s + longest_s > budget_s:
                break
            row = self.run(policy, self.future(len(rows)), begin_s + 2.0 * budget_s)
            if row is None:
                break
            rows.append(row)
            longest_s = max(longest_s, self._clock() - begin_s - spent_s)
        if len(rows) < MIN_REPLICATES:
            raise OutriderError(
                f"{len(rows)} replicates in {2.0 * budget_s:.0f} s; expected {MIN_REPLICATES}, so "
                "use a quicker policy or wait for a shorter queue"
            )
        return np.stack(rows)

    def future(self, replicate: int) -> Future:
        """Draw the random input of one replicate: the same for every policy."""
        rng = np.random.default_rng((self._seed, replicate))
        run_s = draw_run_times(self._state, self._history, 1, rng)[0].tolist()
        days = draw_days(self._state, self._recent.since_s, 1, rng)[0]
        closed = self._recent.reopenings(self._now_s, rng)
        coming = self._recent.days(self._now_s, days[:HORIZON_DAYS].tolist(), run_s, closed)
        return Future(run_s, coming, closed, self._recent.evicting, int(rng.integers(2**31)))

    def run(self, name: str, future: Future, deadline_s: float = inf) -> Floats | None:
        """Return (jobs,) starts under a policy in one replicate; None if time ran out.

        Args:
            name: of the policy.
            future: the random input; used up.
            deadline_s: by the clock.

        Raises:
            OutriderError: as in `starts_s`.
        """
        policy = self._make(name, future.policy_seed)
        if policy.needs_oracle:
            raise OutriderError(_NEEDS_TRUTH)
        policy.wants_scores = False

        def should_continue() -> bool:
            return not runner.broken and self._clock() < deadline_s

        ahead = SiteAhead(
            self._now_s, self._now_s + HORIZON_DAYS * DAY_S, self.here,
            dict(zip((job.number for job in self.here), future.run_s, strict=True)),
            future.closed, future.coming, future.evicting,
            {job.number for job in self._wanted}, should_continue,
        )  # fmt: skip
        engine, runner = self._present.engine(
            policy, future.policy_seed, ahead,
            lambda: self._make(self._incumbent or name, future.policy_seed),
        )  # fmt: skip
        engine.feed(ahead.events())
        if runner.broken:
            raise PolicyError(runner.broken)
        if self._clock() >= deadline_s:
            return None
        return np.array([ahead.starts_s.get(job.number, inf) for job in self._wanted])


def _state(present: Present, followed: FollowedSite) -> tuple[list[Job], QueueState]:
    """Return the present jobs, and the same as columns for the draws of run times.

    A job that was evicted will run for longer than any of its earlier runs, like a running one.
    """

    def columns(jobs: list[Job]) -> Jobs:
        estimate_s = np.array(
            [nan if job.spec.estimate_s is None else job.spec.estimate_s for job in jobs],
            dtype=np.float64,
        )
        groups = [followed.groups_named(present.name(job), job.spec) for job in jobs]
        return Jobs(
            np.array([job.cpus for job in jobs], dtype=np.int64), estimate_s, estimate_s,
            np.array(groups, dtype=np.int64).reshape(-1, GROUP_LEVELS),
        )  # fmt: skip

    site, running, waiting = present.site, present.running, present.waiting
    now_s = site.now
    since_s = now_s - np.array([_ran_s(job, now_s) for job in running], dtype=np.float64)
    lost_s = np.array([job.consumed_s for job in waiting], dtype=np.float64)
    cpus = max(1, sum(site.cpus))
    state = QueueState(
        now_s, site.week_second(), 0, cpus, columns(running), since_s, columns(waiting), lost_s
    )
    return [*running, *waiting], state


def _ran_s(job: Job, now_s: float) -> float:
    """Return the elapsed time of a job in its present run, or in a longer lost one."""
    return max(job.consumed_s, job.run_s(now_s) if job.machine >= 0 else 0.0)


# -- site ahead ------------------------------------------------------------------------------------
# Simulation of a site from its present state, under the starts of a policy.
#
# The simulated campus of `outrider.simulation` begins empty and has its whole trace. Here the site
# begins in its present state: jobs run, machines are closed, and the coming events are drawn. The
# generator `SiteAhead.events` resumes after the engine has handled an event, so it sees the
# decisions on it.

_TICK_LAST: Final = 64
"""Sorts after all event kinds of the same time: decisions see all events of that time."""
_CHECK_EVERY: Final = 256
_CLOSES: Final = {OWNER: ev.OWNER_CAME, REBOOT: ev.REBOOTED}


class SiteAhead:
    """Simulated site that executes decisions (`outrider.engine.ports.PlanActuator`).

    A job that may not start yet is held until then. A run that is evicted begins again. On fewer
    CPUs than it asks for, a job works at that fraction of its speed. One that is preempted keeps
    its work and its machine.

    Args:
        now_s: the present moment, Unix seconds.
        until_s: end of the simulation.
        here: the present jobs.
        run_s: whole run time of each of them, seconds, by number.
        closed: end of each present closure, by number of its machine.
        coming: arrivals and closures, in the order of time, with that time.
        evicting: reasons for which runs on a machine that closes are evicted.
        wanted: jobs whose first starts are wanted; the simulation ends with the last of them.
        should_continue: checked periodically; False ends the simulation.

    Attributes:
        starts_s: start of each of them.
    """

    def __init__(
        self,
        now_s: float,
        until_s: float,
        here: Sequence[Job],
        run_s: Mapping[int, float],
        closed: Mapping[int, float],
        coming: Iterator[tuple[float, Arrival | Closure]],
        evicting: frozenset[str],
        wanted: set[int],
        should_continue: Callable[[], bool],
    ) -> None:
        self._now_s = now_s
        self._until_s = until_s
        self._run_s = dict(run_s)
        self._asked = {job.number: job.spec.cpus for job in here}
        self._coming = coming
        self._evicting = evicting
        self._wanted = set(wanted)
        self._should_continue = should_continue
        self.starts_s: dict[int, float] = {}
        self._next_job = max(self._run_s, default=-1) + 1
        self._closed = dict(closed)
        self._runs: dict[int, Run] = {}
        self._ends_s: dict[int, float] = {}
        self._on: dict[int, dict[int, None]] = {}  # jobs by machine, in order
        self._started: list[Event] = []
        self._heap: list[tuple[float, int, int]] = []
        for machine, open_s in closed.items():
            heappush(self._heap, (open_s, ev.USABLE, machine))
        self._held = {
            job.number: job.spec.eligible_s
            for job in here
            if job.machine < 0 and job.spec.eligible_s is not None and job.spec.eligible_s > now_s
        }
        for job in here:
            if job.machine >= 0:
                self._continue(job)

    def _continue(self, job: Job) -> None:
        """Resume a present run; one that was preempted stays suspended until it is resumed."""
        is_suspended = job.gave_back
        rate = job.cpus / job.spec.cpus
        left_s = max(0.0, self._run_s[job.number] - job.run_s(self._now_s))
        run = self._runs[job.number] = Run(job.machine, left_s * rate)
        self._on.setdefault(job.machine, {})[job.number] = None
        if not is_suspended:
            self._resume_run(job.number, run, job.cpus)

    # -- actuator -----------------------------------------------------------------------------

    def start(self, job: int, machine: int) -> None:
        """Start a job with all its CPUs."""
        self._begin(job, machine, self._asked[job])

    def _begin(self, job: int, machine: int, cpus: int) -> None:
        now_s = self._now_s
        run = self._runs[job] = Run(machine, self._run_s[job])
        self._on.setdefault(machine, {})[job] = None
        self._resume_run(job, run, cpus)
        if job in self._wanted:
            self._wanted.discard(job)
            self.starts_s[job] = now_s
        self._started.append((now_s, ev.STARTED, job, (machine, cpus)))

    def wake_at(self, time_s: float) -> None:
        """Deliver a tick at `time_s`, after all other events of that moment."""
        heappush(self._heap, (max(time_s, self._now_s), _TICK_LAST, 0))

    def shrink(self, job: int, machine: int, cpus: int) -> None:
        """Start a queued job on fewer CPUs than it asks for, or change those of a running one."""
        run = self._runs.get(job)
        if run is None:
            self._begin(job, machine, cpus)
            return
        run.pause(self._now_s)
        self._resume_run(job, run, cpus)
        self._started.append((self._now_s, ev.RESIZED, job, cpus))

    def preempt(self, job: int) -> None:
        """Suspend a run, now; one that is suspended already stays so."""
        self._runs[job].pause(self._now_s)
        self._ends_s.pop(job, None)
        self._started.append((self._now_s, ev.SUSPENDED, job, ev.CPUS_GIVEN_BACK))

    def resume(self, job: int, cpus: int) -> None:
        """Resume a preempted job on its machine."""
        run = self._runs[job]
        self._resume_run(job, run, cpus)
        self._started.append((self._now_s, ev.RESUMED, job, (run.machine, cpus)))

    def _resume_run(self, job: int, run: Run, cpus: int) -> None:
        run.cpus, run.rate, run.since_s = cpus, cpus / self._asked[job], self._now_s
        self._ends_s[job] = run.end_s()
        heappush(self._heap, (run.end_s(), ev.COMPLETED, job))

    # -- events -------------------------------------------------------------------------------

    def events(self) -> Iterator[Event]:
        """Yield all events in order, until every wanted job has started, or time is up."""
        heap, n = self._heap, 0
        yield from self._hold()
        self.wake_at(self._now_s)
        coming_s, coming = next(self._coming, (inf, None))
        while self._wanted:
            n += 1
            due_s = heap[0][0] if heap else inf
            if min(coming_s, due_s) > self._until_s or (
                n % _CHECK_EVERY == 0 and not self._should_continue()
            ):
                return
            if coming is not None and coming_s < due_s:
                self._now_s = max(self._now_s, coming_s)
                if isinstance(coming, Closure):
                    yield from self._close(coming)
                else:
                    yield self._submit(coming)
                coming_s, coming = next(self._coming, (inf, None))
            else:
                due = heappop(heap)
                while heap and heap[0] == due:  # a tick that was requested more than once
                    heappop(heap)
                self._now_s, kind, subject = due
                yield from self._happens(kind, subject)

    def _hold(self) -> Iterator[Event]:
        """Hold the jobs that may not start yet."""
        for job, eligible_s in self._held.items():
            heappush(self._heap, (eligible_s, ev.RELEASED, job))
            yield self._now_s, ev.HELD, job, None

    def _happens(self, kind: int, subject: int) -> Iterator[Event]:
        """Yield the events of something that is due now."""
        now_s = self._now_s
        if kind == _TICK_LAST:
            yield now_s, ev.TICK, 0, None
            yield from self._started
            self._started.clear()
        elif kind == ev.RELEASED:
            yield now_s, kind, subject, None
        elif kind == ev.USABLE:
            if self._closed.get(subject) == now_s:
                del self._closed[subject]
                yield now_s, ev.OWNER_WENT, subject, None
                yield now_s, kind, subject, None
        elif self._ends(subject):
            yield now_s, kind, subject, None

    def _ends(self, job: int) -> bool:
        """End the run of a job if that is due now; return whether it was."""
        if self._ends_s.get(job) != self._now_s:
            return False
        self._drop(job)
        return True

    def _drop(self, job: int) -> None:
        self._ends_s.pop(job, None)
        del self._on[self._runs.pop(job).machine][job]

    def _submit(self, came: Arrival) -> Event:
        job = self._next_job
        self._next_job += 1
        self._run_s[job], self._asked[job] = came.run_s, came.spec.cpus
        return self._now_s, ev.SUBMITTED, job, came.spec

    def _close(self, closure: Closure) -> Iterator[Event]:
        """Close a machine and evict its runs; extend the closure if it is closed already."""
        machine = closure.machine
        until_s = self._closed.get(machine)
        if until_s is not None and until_s >= closure.until_s:
            return
        self._closed[machine] = closure.until_s
        heappush(self._heap, (closure.until_s, ev.USABLE, machine))
        if until_s is not None:
            return
        if closure.reason in self._evicting:
            for job in list(self._on.get(machine, ())):
                self._drop(job)
                yield self._now_s, ev.EVICTED, job, closure.reason
        extra: Any = None
        yield self._now_s, _CLOSES.get(closure.reason, ev.DRAINED), machine, extra
