"""The engine: events in, decisions out. The same object live, in replay and in simulation.

It is fed tuples and never asks for time. It has two ports: an `Actuator` that starts jobs and wakes
it later, and a `DecisionLog` that keeps decisions and outcomes. A scheduling pass falls on a tick.
The engine asks for one at the present moment whenever a job becomes decidable, and the feeder
delivers the tick after all other events of that time stamp.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final

from outrider.api.estimator import RunTimeEstimator
from outrider.engine.accounting.accounting import Accounting
from outrider.engine.accounting.energy import EnergyStatistics
from outrider.engine.accounting.machine_power import ASLEEP, IDLING, OWNED
from outrider.engine.job_events import JobEvents
from outrider.engine.ports import Actuator, DecisionLog
from outrider.engine.realign import realign
from outrider.engine.scheduling.pending_queue import NEVER
from outrider.engine.scheduling.policy_runner import (
    PolicyRunner,
    restore_runner,
    resume_runner,
    save_runner,
)
from outrider.engine.state.site import Site
from outrider.model.events import JOB_KINDS, KIND_NAMES, MACHINE_KINDS, TICK, Event
from outrider.model.jobs import QUEUED, SUSPENDED_STATE
from outrider.model.machines import MachineSpec

_SETTLE_EVERY_S: Final = 60.0
"""How far the energy of machines on which nothing happens may lag behind the clock."""

Handler = Callable[[float, int, Any], None]
"""Takes what happened: time_s, subject, extra."""


class Engine:
    """Site state, accounting and the policy runners.

    Args:
        site: state of jobs and machines.
        accounting: totals by the definitions.
        runners: policies; at most one of them acting.
        actuator: carries starts and wake-ups out.
        decision_log: writes ledger rows.
        time_pass: called around each scheduling pass, if given, to time it.
        estimator: says how long a job will run; None: the user's own estimate counts.
    """

    def __init__(
        self,
        site: Site,
        accounting: Accounting,
        runners: Sequence[PolicyRunner],
        actuator: Actuator,
        decision_log: DecisionLog,
        time_pass: Callable[[bool], None] | None = None,
        estimator: RunTimeEstimator | None = None,
    ) -> None:
        self.site = site
        self.accounting = accounting
        self.runners = list(runners)
        self._resting: dict[str, Any] = {}  # without runners: what those before had learned
        self.events = 0
        self._estimator = estimator
        self._plans = any(runner.plans for runner in self.runners)
        site.fairness = accounting.fairness
        accounting.energy.know_clusters(site.cluster_specs)
        if any(runner.looks_at_runs for runner in self.runners):
            site.index_runs()
        for runner in self.runners:
            runner.join(site, actuator, decision_log.decided)
        self._actuator = actuator
        self._pass_due = False
        self._waits = False
        self._wake_s = NEVER
        self._settle_at_s = -NEVER
        machines = MachineEvents(site, accounting.energy, self._decide_if_free)
        self._jobs = JobEvents(
            site, accounting, self.runners, decision_log, self._want_pass, self._decide_if_free,
            estimator,
        )  # fmt: skip
        self._handlers: list[Handler] = [
            self._tick
            if kind == TICK
            else getattr(self._jobs if kind in JOB_KINDS else machines, name)
            for kind, name in enumerate(KIND_NAMES)
        ]
        if site.kept_counts is not None:
            for kind in JOB_KINDS:
                self._handlers[kind] = self._counted(self._handlers[kind])
        for kind in MACHINE_KINDS:
            hearers = [
                tell
                for runner in self.runners
                if kind in runner.subscribes and (tell := runner.listener()) is not None
            ]
            if hearers:
                self._handlers[kind] = self._noticed(kind, self._handlers[kind], hearers)
        if time_pass is not None:
            self._handlers[TICK] = self._timed(self._tick, time_pass)

    def feed(self, events: Iterable[Event]) -> int:
        """Apply events in their order; returns how many. Batch borders mean nothing.

        An error ends it, and leaves the state as far as the event had changed it: replay stops
        there, a daemon calls `take_out_all_but` and goes on.
        """
        site, handlers = self.site, self._handlers
        now, n = site.now, 0
        try:
            for n, (time_s, kind, subject, extra) in enumerate(events, 1):  # noqa: B007 - counted
                if time_s > now:
                    site.now = now = time_s
                handlers[kind](time_s, subject, extra)
        finally:
            self.events += n
        return n

    def reach(self, time_s: float) -> None:
        """Nothing more happened up to a time: the clock moves on, and energy now and then."""
        site = self.site
        site.now = max(site.now, time_s)
        if self.accounting.begin_s is None:
            self.accounting.begin_s = site.now
        if site.now >= self._settle_at_s:
            self._settle_at_s = site.now + _SETTLE_EVERY_S
            for machine, spec in enumerate(site.specs):
                if spec is not None:
                    self.accounting.energy.settle(machine, site.now)
            self.accounting.fairness.reach(site.now)

    def take_out_all_but(self, known: Collection[int], asks_again: bool = True) -> None:
        """After an error in `feed`: be consistent again, with these of the jobs alone.

        Args:
            known: numbers of the jobs that stay.
            asks_again: ask for a pass at once; not where a pass was what failed, for it might fail
                for ever: the next event asks.
        """
        self._pass_due = self._waits = False
        realign(self.site, self.accounting, self._jobs.listening, known)
        # also who was not asked about yet: the pass that was to do so may be the one that failed
        self._waits = any(runner.queue.waiting for runner in self.runners)
        if asks_again:
            self._want_pass()

    def _noticed(
        self, kind: int, handle: Handler, hearers: Sequence[Callable[[int, int, Site], None]]
    ) -> Handler:
        """The handler of an event about a machine, where policies want to hear of it."""
        site = self.site

        def handle_and_tell(time_s: float, subject: int, extra: Any) -> None:
            handle(time_s, subject, extra)
            for tell in hearers:
                tell(kind, subject, site)

        return handle_and_tell

    def _counted(self, handle: Handler) -> Handler:
        """The handler of an event about a job, where the site's counts of jobs are kept."""
        site = self.site

        def handle_and_count(time_s: float, subject: int, extra: Any) -> None:
            counts, job = site.job_counts, site.jobs.get(subject)
            if job is not None:
                counts.take_out(job)
            try:
                handle(time_s, subject, extra)
            finally:
                job = site.jobs.get(subject)
                if job is not None:
                    counts.put_in(job)

        return handle_and_count

    def _timed(self, handle: Handler, time_pass: Callable[[bool], None]) -> Handler:
        """The handler of a tick, where passes are timed."""

        def handle_and_time(time_s: float, subject: int, extra: Any) -> None:
            time_pass(True)
            handle(time_s, subject, extra)
            time_pass(False)

        return handle_and_time

    # -- scheduling passes --------------------------------------------------------------------

    def _want_pass(self) -> None:
        if not self._pass_due and self.runners and not self._jobs.silent:
            self._pass_due = True
            self._actuator.wake_at(self.site.now)

    def decide_anew(self) -> None:
        """Every pending job is due in the next pass, and what is decided then is recorded anew."""
        for runner in self.runners:
            runner.decide_anew()
        self._want_pass()

    def _decide_if_free(self) -> None:
        """A pending job may get a machine now."""
        if self._plans or (self._waits and self.site.free_total):
            self._want_pass()

    def _tick(self, time_s: float, subject: int, extra: Any) -> None:
        site = self.site
        if site.now >= self._wake_s:
            self._wake_s = NEVER
        self._pass_due = False
        if self._jobs.silent:
            return
        waits, wake_s = False, NEVER
        for runner in self.runners:
            due_s = runner.run_pass(site.now)
            if due_s < wake_s:
                wake_s = due_s
            waits = waits or runner.somebody_waits
        self._waits = waits
        if wake_s < self._wake_s:
            self._wake_s = wake_s
            self._actuator.wake_at(wake_s)

    @property
    def silent(self) -> bool:
        """True if history is being told."""
        return self._jobs.silent

    def _listen(self, *, silent: bool) -> None:
        self._jobs.silent = silent
        self._jobs.listening = [] if silent else self.runners

    def tell_every_end(self) -> None:
        """Tell the decision log also of ends that no policy learns from, all of them."""
        self._jobs.tells_all = True

    def be_silent(self) -> None:
        """What follows is history: build state from it, but let nothing count or be decided."""
        self._listen(silent=True)

    def begin(self, now: float) -> None:
        """End of silent history: from here on everything counts and is decided."""
        self._listen(silent=False)
        for runner in self.runners:
            self._enqueue_waiting(runner)
        self.site.now = max(self.site.now, now)
        self.accounting.restart(self.site.now if self.events else None)
        if self.site.jobs:
            self._want_pass()

    def _enqueue_waiting(self, runner: PolicyRunner) -> None:
        """The jobs that wait already join the queue of a new runner."""
        for job in self.site.jobs.values():
            preempted = job.state == SUSPENDED_STATE and job.gave_back
            if job.state == QUEUED or (preempted and runner.plans):
                runner.enqueue(job.number)

    def finish(self, now: float) -> None:
        """The trace ends here: time runs to `now`, and machines' states are settled."""
        self.site.now = max(self.site.now, now)
        for machine in range(len(self.site.specs)):
            self.accounting.energy.settle(machine, self.site.now)

    # -- snapshots ----------------------------------------------------------------------------

    def save(self) -> dict[str, Any]:
        """State of site, accounting and runners, as plain data."""
        return {
            "site": self.site.save(),
            "accounting": self.accounting.save(),
            "runners": [[runner.name, save_runner(runner, self.site)] for runner in self.runners],
            "resting": self._resting,
            "estimator": None if self._estimator is None else self._estimator.save(),
            "events": self.events,
            "silent": self.silent,
            "pass_due": self._pass_due,
            "waits": self._waits,
            "wake_s": None if self._wake_s == NEVER else self._wake_s,
            "settle_at_s": None if self._settle_at_s == -NEVER else self._settle_at_s,
        }

    def restore(self, saved: dict[str, Any]) -> list[str]:
        """Go on from what `save` gave. Returns the names of runners that start afresh.

        Those are the ones that were not there then, and those whose policy finds that what it
        learned does not fit its settings any more.
        """
        self.site.restore(saved["site"])
        clusters = [self.site.cluster_number(name) for name in saved["site"]["clusters"]]
        energy = self.accounting.energy
        energy.know_clusters(self.site.cluster_specs)
        for machine, spec in enumerate(self.site.specs):
            cluster = self.site.machine_cluster[machine]
            habits = self.site.cluster_specs[cluster]
            energy.join(machine, spec or MachineSpec(), cluster, habits)
        self.accounting.restore(saved["accounting"], clusters)
        known, resting = dict(saved["runners"]), saved.get("resting", {})
        if not self.runners:  # nothing decides at present: what was learned is taken up again then
            self._resting = resting | known
        new = [
            runner
            for runner in self.runners
            if runner.name not in known
            or not restore_runner(runner, known[runner.name], clusters, self.site)
        ]
        fresh = [
            runner
            for runner in new
            if runner.name not in resting
            or not resume_runner(runner, resting[runner.name], self.site)
        ]
        for runner in new:
            self._enqueue_waiting(runner)
        if self._estimator is not None and saved.get("estimator") is not None:
            self._estimator.restore(saved["estimator"])
        self.events = saved["events"]
        self._listen(silent=saved["silent"])
        self._pass_due = saved["pass_due"]
        self._waits = saved["waits"]
        self._wake_s = NEVER if saved["wake_s"] is None else saved["wake_s"]
        settle_at_s = saved["settle_at_s"]
        self._settle_at_s = -NEVER if settle_at_s is None else settle_at_s
        return [runner.name for runner in fresh]


# -- machine events --------------------------------------------------------------------------------
# What events about machines do: to where jobs may start, and to energy.


class MachineEvents:
    """Handlers named like the event kinds; each takes (time_s, machine, extra).

    Args:
        site: whose machines they are.
        energy: accounts their states.
        opened: called when a machine may have become free.
    """

    def __init__(self, site: Site, energy: EnergyStatistics, opened: Callable[[], None]) -> None:
        self._site = site
        self._energy = energy
        self._opened = opened

    def joined(self, time_s: float, machine: int, extra: MachineSpec) -> None:
        """It joins, or tells anew what it is."""
        site, energy = self._site, self._energy
        if machine < len(site.specs):
            energy.settle(machine, site.now)
        site.join(machine, extra)
        cluster = site.machine_cluster[machine]
        energy.join(machine, extra, cluster, site.cluster_specs[cluster])
        energy.enter(machine, OWNED if site.owner[machine] else IDLING, site.now)
        if extra.usable and not site.owner[machine]:
            self.usable(time_s, machine, None)

    def left(self, time_s: float, machine: int, extra: None) -> None:
        """It is gone; jobs that ran there are told of by events of their own."""
        self._energy.leave(machine, self._site.now)
        self._site.leave(machine)

    def usable(self, time_s: float, machine: int, extra: None) -> None:
        """Jobs may start on it."""
        self._site.open_machine(machine)
        self._opened()

    def owner_came(self, time_s: float, machine: int, extra: None) -> None:
        """Closed to jobs; the one that runs there is evicted by an event of its own."""
        site = self._site
        site.owner[machine] = 1
        site.shut(machine)
        self._energy.enter(machine, OWNED, site.now)

    def owner_went(self, time_s: float, machine: int, extra: None) -> None:
        """Idle, and not usable before it says so."""
        site = self._site
        site.owner[machine] = 0
        self._energy.enter(machine, IDLING, site.now)

    def rebooted(self, time_s: float, machine: int, extra: None) -> None:
        """Idle anew, and not usable before it says so; an owner who sits there cancels it."""
        site = self._site
        if not site.owner[machine]:
            site.shut(machine)
            self._energy.enter(machine, IDLING, site.now)

    def asleep(self, time_s: float, machine: int, extra: None) -> None:
        """It sleeps, as somebody who knows has told."""
        self._energy.enter(machine, ASLEEP, self._site.now)

    def woken(self, time_s: float, machine: int, extra: None) -> None:
        """It is on again."""
        self._energy.enter(machine, IDLING, self._site.now)

    def drained(self, time_s: float, machine: int, extra: None) -> None:
        """Closed to jobs until it is said to be usable."""
        self._site.shut(machine)

    def eligible(self, time_s: float, subject: int, extra: tuple[str, Sequence[int], bool]) -> None:
        """Return which machines a class of jobs may use."""
        self._site.tell_class(*extra)
        self._opened()

    def power(self, time_s: float, machine: int, extra: float) -> None:
        """Its meter was read: these watts hold for a while in place of the table's."""
        self._energy.read_meter(machine, extra, time_s)
