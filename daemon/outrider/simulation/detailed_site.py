"""Simulation of a campus with rules for runs, and with machines that several jobs share.

The rules (`outrider.formats.campus.campus.RunRules`: wake-up delays, data transfer, suspension and
checkpoints) and machines of several CPUs have a class of their own, so that a plain campus, whose
year must replay in seconds, does not pay for them.
"""

from heapq import heappush
from math import inf, isnan

from outrider.formats.campus.amounts import Amounts
from outrider.formats.campus.campus import Campus
from outrider.model.events import COMPLETED, EVICTED, REMOVED, RESUMED, STARTED, SUSPENDED, Event
from outrider.model.localtime import TraceTime
from outrider.simulation.campus_site import NO_RUN, SimulatedSite, by_machine
from outrider.simulation.exogenous_events import owner_intervals


class Run:
    """A run of a job on its machine.

    Attributes:
        machine: number of its machine.
        woke: whether its machine was woken for it.
        setup_s: seconds of wake-up and data transfer before it works.
        cpus: that it has; 0 while a policy has preempted it.
        rate: of its work: the part that it has of the CPUs it asks for.
        left_s: seconds that it still needs at `since_s` at rate 1; inf if it never ends by itself.
        busy_s: seconds that it had run at rate 1, setup included, when it was last suspended.
        since_s: when it started or was last resumed; inf while it is suspended.
        due: time and kind of its next event in the heap; entries that say otherwise are outdated.
    """

    __slots__ = (
        "busy_s", "cpus", "due", "left_s", "machine", "rate", "setup_s", "since_s", "woke"
    )  # fmt: skip

    def __init__(self, machine: int, woke: bool, setup_s: float, work_s: float, now: float) -> None:
        self.cpus = 0
        self.rate = 1.0
        self.due: tuple[float, int] | None = None
        self.machine = machine
        self.woke = woke
        self.setup_s = setup_s
        self.left_s = setup_s + work_s
        self.busy_s = 0.0
        self.since_s = now

    def pause(self, now: float) -> None:
        """Suspend it."""
        went_s = max(0.0, now - self.since_s) * self.rate
        self.busy_s += went_s
        self.left_s -= went_s
        self.since_s = inf

    def worked_s(self, now: float) -> float:
        """Seconds of work done by `now`, setup excluded."""
        went_s = max(0.0, now - self.since_s) * self.rate
        return max(0.0, self.busy_s + went_s - self.setup_s)


class DetailedSite(SimulatedSite):
    """Simulates a campus with rules for runs, and machines of several CPUs.

    A job occupies its CPUs from its start: it waits until the machine is awake, copies its data,
    then works. It is suspended when the owner logs in, and resumes if the owner logs out within
    `suspend_s`; otherwise it is evicted after that time. A run writes a checkpoint after every
    `checkpoint_every_s` of work; the job's next run needs only the work not yet saved. What
    happens to a machine happens to all jobs that run there: its owner evicts them all.
    """

    def __init__(self, campus: Campus, until_s: float | None = None) -> None:
        super().__init__(campus, until_s)
        self.rules = campus.run_rules
        intervals = owner_intervals(campus)
        self._logouts_s = by_machine(intervals, intervals.went_s)
        self._clock = TraceTime(campus.start)
        self._reboot_times = frozenset(self._reboots)
        self._idle_from = [0.0] * len(campus.machine_names)
        self._asked: list[int] = _cpus(campus.requests, len(campus.job_names))
        self._left: list[int] = _cpus(campus.capacities, len(campus.machine_names))
        self._runs_n = [0] * len(campus.machine_names)
        self._running: dict[int, Run] = {}
        self._saved_s: dict[int, float] = {}

    # -- oracle -------------------------------------------------------------------------------

    def run_s(self, job: int) -> float:
        """True length, seconds, of a run started now on a machine that is awake."""
        left_s = self._run_s[job] - self.saved_s(job)
        return left_s if isnan(left_s) else self.rules.transfer_s + left_s

    def work_s(self, job: int) -> float:
        """True work of the whole job, seconds; nan if it never ends by itself."""
        return self._run_s[job]

    def saved_s(self, job: int) -> float:
        """Seconds of a job's work that its checkpoints hold; 0 once it has left."""
        return self._saved_s.get(job, 0.0)

    def woke(self, job: int) -> bool:
        """Whether the machine was woken for the present run of a job."""
        return self._running[job].woke

    # -- runs ---------------------------------------------------------------------------------

    def start(self, job: int, machine: int) -> None:
        """Start a job. Raises `ValueError` if it runs or has left, or is too wide for what is left.

        Memory and GPUs are not looked at: placing by them is the engine's.
        """
        self._begin(job, machine, self._asked[job])

    def _begin(self, job: int, machine: int, cpus: int) -> None:
        if self._place[job] != NO_RUN or cpus > self._left[machine]:
            raise ValueError(f"job {job} cannot start on machine {machine} at {self.now:g} s")
        now = self.now
        self._next_login(machine)
        woke = self._sleeps(machine)
        setup_s = self.rules.transfer_s + (self.rules.wake_s if woke else 0.0)
        work_s = inf if isnan(self._run_s[job]) else self._run_s[job] - self.saved_s(job)
        run = self._running[job] = Run(machine, woke, setup_s, work_s, now)
        self._give(job, run, cpus)
        self._schedule_next_event(job, run)
        self._place[job] = machine
        self._started.append((now, STARTED, job, (machine, cpus)))

    def _give(self, job: int, run: Run, cpus: int) -> None:
        """A run has so many CPUs from now on; 0: none."""
        machine = run.machine
        self._left[machine] += run.cpus - cpus
        self._runs_n[machine] += (cpus > 0) - (run.cpus > 0)
        run.cpus, run.rate = cpus, cpus / self._asked[job]
        if not self._runs_n[machine]:
            self._idle_from[machine] = self.now

    def _schedule(self, job: int, run: Run, time_s: float, kind: int, why: str | None) -> None:
        run.due = time_s, kind
        heappush(self._heap, (time_s, kind, job, why))

    def _schedule_next_event(self, job: int, run: Run) -> None:
        """Schedule what happens first to a run: its end, the next log-in or the reboot."""
        login, reboot = self._next_login(run.machine), self._reboot_after_now()
        end = run.since_s + run.left_s / run.rate
        if end <= login and end <= reboot:
            run.due = None
            if end < inf:
                self._schedule(job, run, end, COMPLETED, None)
        elif reboot <= login:
            self._schedule(job, run, reboot, EVICTED, "reboot")
        elif self.rules.suspend_s:
            self._schedule(job, run, login, SUSPENDED, None)
        else:
            self._schedule(job, run, login, EVICTED, "owner")

    def _advance_run(self, kind: int, job: int) -> bool:
        """Suspend, resume or end a job's run. False if the run, or this event of it, is over."""
        run = self._running.get(job)
        if run is None or (kind != REMOVED and run.due != (self.now, kind)):
            return False
        if kind in (SUSPENDED, RESUMED):
            (self._suspend if kind == SUSPENDED else self._resume)(job, run)
            return True
        super()._advance_run(kind, job)
        del self._running[job]
        self._save_work(kind, job, run)
        self._give(job, run, 0)
        return True

    def _suspend(self, job: int, run: Run) -> None:
        """Suspend a run at a log-in; schedule its eviction, or its resumption if that is sooner."""
        run.pause(self.now)
        self._next_login(run.machine)
        leaves = self._logouts_s[self._at[run.machine] - 1]
        evicts = self.now + self.rules.suspend_s
        if leaves > evicts:
            self._schedule(job, run, evicts, EVICTED, "owner")
        elif leaves in self._reboot_times:
            self._schedule(job, run, leaves, EVICTED, "reboot")
        else:
            self._schedule(job, run, leaves, RESUMED, None)

    def _resume(self, job: int, run: Run) -> None:
        """Let a suspended run go on."""
        run.since_s = self.now
        self._schedule_next_event(job, run)

    def _save_work(self, kind: int, job: int, ended: Run) -> None:
        """Keep the work that checkpoints of an ended run hold; drop it if the job completed."""
        every_s = self.rules.checkpoint_every_s
        if kind == COMPLETED:
            self._saved_s.pop(job, None)
        elif every_s < inf:
            saved_s = every_s * (ended.worked_s(self.now) // every_s)
            self._saved_s[job] = self.saved_s(job) + saved_s

    def _kill_job(self, killed: Event) -> bool:
        """Remove a job and its checkpoints. False if it had left already."""
        was_there = super()._kill_job(killed)
        self._saved_s.pop(killed[2], None)
        return was_there

    # -- machines -----------------------------------------------------------------------------

    def _sleeps(self, machine: int) -> bool:
        """Whether an idle machine sleeps now; call `_next_login` before, which moves `_at`."""
        if not (self.rules.wake_s or self.rules.wake_j) or self._runs_n[machine]:
            return False
        at = self._at[machine]
        left_s = self._logouts_s[at - 1] if at > self._first[machine] else 0.0
        self._reboot_after_now()
        night_s = self._reboots[self._next_reboot - 1] if self._next_reboot else 0.0
        idle_from: float = max(self._idle_from[machine], left_s, night_s)
        habits = self.campus.clusters[self.campus.machine_cluster[machine]]
        sleeps_at: float = idle_from + habits.sleep_after_s(self._clock.week_second(idle_from))
        return self.now >= sleeps_at


def _cpus(amounts: Amounts | None, rows_n: int) -> list[int]:
    """CPUs of each machine or job."""
    return [1] * rows_n if amounts is None else amounts.cpus.tolist()
