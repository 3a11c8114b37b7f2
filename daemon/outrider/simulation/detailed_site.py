"""The virtual site where runs cost more than their work, or leave something when they end.

Waking, data transfer, suspension and checkpoints (`outrider.formats.campus.campus.RunRules`) in one
place of their own: a plain campus, whose year must replay in seconds, does not pay for them.
"""

from heapq import heappush
from math import inf, isnan

from outrider.formats.campus.campus import PLAIN_RUNS, Campus
from outrider.model.events import COMPLETED, EVICTED, RESUMED, STARTED, SUSPENDED, Event
from outrider.model.localtime import TraceTime
from outrider.simulation.campus_site import NO_RUN, VirtualSite, by_machine
from outrider.simulation.exogenous_events import owner_stretches


class Run:
    """A run of a job on its machine.

    Attributes:
        machine: where.
        woke: whether its machine was woken for it.
        setup_s: seconds it waits for its machine and its data before it works.
        left_s: seconds it still needs, counted at `since_s`; inf if it never ends by itself.
        busy_s: seconds it had when it was last suspended.
        since_s: when it began, or went on; inf while it is suspended.
    """

    __slots__ = ("busy_s", "left_s", "machine", "setup_s", "since_s", "woke")

    def __init__(self, machine: int, woke: bool, setup_s: float, work_s: float, now: float) -> None:
        self.machine = machine
        self.woke = woke
        self.setup_s = setup_s
        self.left_s = setup_s + work_s
        self.busy_s = 0.0
        self.since_s = now

    def pause(self, now: float) -> None:
        """It is suspended."""
        went_s = max(0.0, now - self.since_s)
        self.busy_s += went_s
        self.left_s -= went_s
        self.since_s = inf

    def worked_s(self, now: float) -> float:
        """Seconds of work it has done, its setup left out."""
        return max(0.0, self.busy_s + max(0.0, now - self.since_s) - self.setup_s)


class DetailedSite(VirtualSite):
    """Physics of a campus with rules for runs.

    A job that starts holds its machine from that moment on: it waits until the machine is awake,
    copies its data, then works. When the owner comes it is suspended at once; if he leaves
    within `suspend_s` it goes on at that moment, else it is evicted when the time is up. A run
    saves its work whenever it has worked another `checkpoint_every_s`; the job's next run needs
    only what is not saved.
    """

    def __init__(self, campus: Campus, until_s: float | None = None) -> None:
        super().__init__(campus, until_s)
        self.rules = campus.run_rules
        stretches = owner_stretches(campus)
        self._went = by_machine(stretches, stretches.went_s)
        self._clock = TraceTime(campus.start)
        self._nights = frozenset(self._reboots)
        self._idle_from = [0.0] * len(campus.machine_names)
        self._going: dict[int, Run] = {}
        self._saved_s: dict[int, float] = {}

    # -- what only the site knows -------------------------------------------------------------

    def run_s(self, job: int) -> float:
        """The truth: seconds a run would take that starts now on a machine that is awake."""
        left_s = self._run_s[job] - self.saved_s(job)
        return left_s if isnan(left_s) else self.rules.transfer_s + left_s

    def work_s(self, job: int) -> float:
        """The truth: seconds of work the whole job is; nan if it never ends by itself."""
        return self._run_s[job]

    def saved_s(self, job: int) -> float:
        """Seconds of a job's work that its checkpoints hold; 0 once it is gone."""
        return self._saved_s.get(job, 0.0)

    def woke(self, job: int) -> bool:
        """Whether the machine was woken for the present run of a job."""
        return self._going[job].woke

    # -- runs ---------------------------------------------------------------------------------

    def start(self, job: int, machine: int) -> None:
        """Start a job on a machine without a job. Raises `ValueError` if that cannot be."""
        if self._place[job] != NO_RUN or self._has_job[machine]:
            raise ValueError(f"job {job} cannot start on machine {machine} at {self.now:g} s")
        now = self.now
        self._next_login(machine)
        woke = self._sleeps(machine)
        setup_s = self.rules.transfer_s + (self.rules.wake_s if woke else 0.0)
        work_s = inf if isnan(self._run_s[job]) else self._run_s[job] - self.saved_s(job)
        run = self._going[job] = Run(machine, woke, setup_s, work_s, now)
        self._foresee(job, run)
        self._place[job] = machine
        self._has_job[machine] = 1
        self._started.append((now, STARTED, job, (machine, 1)))

    def _foresee(self, job: int, run: Run) -> None:
        """Put down what happens to a working run next: its end, the owner or the reboot."""
        login, reboot = self._next_login(run.machine), self._reboot_after_now()
        end = run.since_s + run.left_s
        if end <= login and end <= reboot:
            if end < inf:
                heappush(self._heap, (end, COMPLETED, job, None))
        elif reboot <= login:
            heappush(self._heap, (reboot, EVICTED, job, "reboot"))
        elif self.rules.suspend_s:
            heappush(self._heap, (login, SUSPENDED, job, None))
        else:
            heappush(self._heap, (login, EVICTED, job, "owner"))

    def _turn(self, kind: int, job: int) -> bool:
        """A run is suspended, goes on, or ends. False if it was cut short before."""
        if kind in (SUSPENDED, RESUMED):
            going = self._going.get(job)
            if going is not None:
                (self._suspend if kind == SUSPENDED else self._resume)(job, going)
            return going is not None
        if not super()._turn(kind, job):
            return False
        self._save_work(kind, job, self._going.pop(job))
        return True

    def _suspend(self, job: int, run: Run) -> None:
        """Its owner came; put down whether he leaves in time."""
        run.pause(self.now)
        self._next_login(run.machine)
        leaves = self._went[self._at[run.machine] - 1]
        evicts = self.now + self.rules.suspend_s
        if leaves > evicts:
            heappush(self._heap, (evicts, EVICTED, job, "owner"))
        elif leaves in self._nights:
            heappush(self._heap, (leaves, EVICTED, job, "reboot"))
        else:
            heappush(self._heap, (leaves, RESUMED, job, None))

    def _resume(self, job: int, run: Run) -> None:
        """Its owner has left in time."""
        run.since_s = self.now
        self._foresee(job, run)

    def _save_work(self, kind: int, job: int, ended: Run) -> None:
        """What the checkpoints of a run that was cut short hold."""
        self._idle_from[ended.machine] = self.now
        every_s = self.rules.checkpoint_every_s
        if kind == COMPLETED:
            self._saved_s.pop(job, None)
        elif every_s < inf:
            saved_s = every_s * (ended.worked_s(self.now) // every_s)
            self._saved_s[job] = self.saved_s(job) + saved_s

    def _forget(self, killed: Event) -> bool:
        """A job is killed, and its checkpoints go. False if it had ended already."""
        forgotten = super()._forget(killed)
        self._saved_s.pop(killed[2], None)
        return forgotten

    # -- machines -----------------------------------------------------------------------------

    def _sleeps(self, machine: int) -> bool:
        """Whether an idle machine sleeps now; `_at` stands behind its last owner."""
        if not (self.rules.wake_s or self.rules.wake_j):
            return False
        at = self._at[machine]
        left_s = self._went[at - 1] if at > self._first[machine] else 0.0
        self._reboot_after_now()
        night_s = self._reboots[self._next_reboot - 1] if self._next_reboot else 0.0
        idle_from: float = max(self._idle_from[machine], left_s, night_s)
        habits = self.campus.clusters[self.campus.machine_cluster[machine]]
        sleeps_at: float = idle_from + habits.sleep_after_s(self._clock.week_second(idle_from))
        return self.now >= sleeps_at


def site_of(campus: Campus, until_s: float | None = None) -> VirtualSite:
    """The virtual site of a campus, as simple as its rules allow."""
    kind = VirtualSite if campus.run_rules == PLAIN_RUNS else DetailedSite
    return kind(campus, until_s)
