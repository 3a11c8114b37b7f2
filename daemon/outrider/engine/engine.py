"""Core of Outrider: events in, decisions out. The same object live, in replay and in simulation.

It gets events as tuples and never reads a clock. It has two ports: an `Actuator` that starts jobs
and wakes it later, and a `DecisionLog` that stores decisions and outcomes. A scheduling pass falls
on a tick. The engine requests one at the present moment whenever a job becomes decidable, and the
feeder delivers the tick after all other events of that time stamp.
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
"""Seconds that the energy of machines without events may lag behind the clock."""

Handler = Callable[[float, int, Any], None]
"""Event handler with the arguments time_s, subject, extra."""


class Engine:
    """Core that connects the site state, the accounting and the policy runners.

    Args:
        site: state of jobs and machines.
        accounting: totals by the definitions.
        runners: policies; at most one of them acting.
        actuator: executes starts and wake-ups.
        decision_log: stores the decisions.
        time_pass: called around each scheduling pass, if given, to time it.
        estimator: predicts how long a job will run; None: the user's own estimate is used.
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
        self._resting: dict[str, Any] = {}  # without runners: what earlier ones had learned
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
            listeners = [
                notify
                for runner in self.runners
                if kind in runner.subscribes and (notify := runner.listener()) is not None
            ]
            if listeners:
                self._handlers[kind] = self._noticed(kind, self._handlers[kind], listeners)
        if time_pass is not None:
            self._handlers[TICK] = self._timed(self._tick, time_pass)

    def feed(self, events: Iterable[Event]) -> int:
        """Apply events in their order; return how many. The borders of batches have no effect.

        An error ends it, and leaves the state as far as the event had changed it. Replay stops
        there; a daemon calls `take_out_all_but` and continues.
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
        """Advance the clock without an event; settle energy at most once a minute."""
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
        """Restore a consistent state after an error in `feed`, with only the given jobs.

        Args:
            known: numbers of the jobs that stay.
            asks_again: request a pass immediately. Not where a pass failed, for it might fail again
                and again: then the next event requests one.
        """
        self._pass_due = self._waits = False
        realign(self.site, self.accounting, self._jobs.listening, known)
        # also for jobs that are not decided yet: their pass may be the one that failed
        self._waits = any(runner.queue.waiting for runner in self.runners)
        if asks_again:
            self._want_pass()

    def _noticed(
        self, kind: int, handle: Handler, listeners: Sequence[Callable[[int, int, Site], None]]
    ) -> Handler:
        """Return a handler that also notifies policies of an event about a machine."""
        site = self.site

        def handle_and_notify(time_s: float, subject: int, extra: Any) -> None:
            handle(time_s, subject, extra)
            for notify in listeners:
                notify(kind, subject, site)

        return handle_and_notify

    def _counted(self, handle: Handler) -> Handler:
        """Return a handler of job events that also updates the site's job counts."""
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
        """Return a handler of ticks that also times the scheduling pass."""

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

    def decide_again(self) -> None:
        """Decide every pending job again in the next pass, and record the decisions again."""
        for runner in self.runners:
            runner.decide_again()
        self._want_pass()

    def _decide_if_free(self) -> None:
        """Request a pass if a pending job may get a machine now."""
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
            waits = waits or runner.any_waiting
        self._waits = waits
        if wake_s < self._wake_s:
            self._wake_s = wake_s
            self._actuator.wake_at(wake_s)

    @property
    def silent(self) -> bool:
        """True while historical events are being replayed."""
        return self._jobs.silent

    def _listen(self, *, silent: bool) -> None:
        self._jobs.silent = silent
        self._jobs.listening = [] if silent else self.runners

    def log_every_end(self) -> None:
        """Report every end to the decision log, also those that no policy learns from."""
        self._jobs.logs_all_ends = True

    def be_silent(self) -> None:
        """Treat what follows as history: build state from it, without decisions or statistics."""
        self._listen(silent=True)

    def begin(self, now: float) -> None:
        """End the silent history: from here on everything is counted and decided."""
        self._listen(silent=False)
        for runner in self.runners:
            self._enqueue_waiting(runner)
        self.site.now = max(self.site.now, now)
        self.accounting.restart(self.site.now if self.events else None)
        if self.site.jobs:
            self._want_pass()

    def _enqueue_waiting(self, runner: PolicyRunner) -> None:
        """Add all jobs that wait already to the queue of a new runner."""
        for job in self.site.jobs.values():
            preempted = job.state == SUSPENDED_STATE and job.gave_back
            if job.state == QUEUED or (preempted and runner.plans):
                runner.enqueue(job.number)

    def finish(self, now: float) -> None:
        """End the trace: advance the clock to `now` and settle the machines' states."""
        self.site.now = max(self.site.now, now)
        for machine in range(len(self.site.specs)):
            self.accounting.energy.settle(machine, self.site.now)

    # -- snapshots ----------------------------------------------------------------------------

    def save(self) -> dict[str, Any]:
        """Return the state of site, accounting and runners, as plain data."""
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
        """Resume from what `save` returned; return the names of runners without a saved state.

        Those are the ones that did not exist then, and those whose policy finds that what it
        learned no longer fits its settings.
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
        if not self.runners:  # kept until a policy decides again
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
    """Handlers of machine events, named like the event kinds; each takes (time_s, machine, extra).

    Args:
        site: the site of the machines.
        energy: accounts for their states.
        opened: called when a machine may have become free.
    """

    def __init__(self, site: Site, energy: EnergyStatistics, opened: Callable[[], None]) -> None:
        self._site = site
        self._energy = energy
        self._opened = opened

    def joined(self, time_s: float, machine: int, extra: MachineSpec) -> None:
        """Handle a machine that joins or updates its specification."""
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
        """Handle a machine that is gone; the ends of its jobs are separate events."""
        self._energy.leave(machine, self._site.now)
        self._site.leave(machine)

    def usable(self, time_s: float, machine: int, extra: None) -> None:
        """Handle a machine on which jobs may start."""
        self._site.closed_because.pop(machine, None)
        self._site.open_machine(machine)
        self._opened()

    def owner_came(self, time_s: float, machine: int, extra: None) -> None:
        """Close the machine to jobs; the eviction of the job there is a separate event."""
        site = self._site
        site.owner[machine] = 1
        site.shut(machine)
        self._energy.enter(machine, OWNED, site.now)

    def owner_went(self, time_s: float, machine: int, extra: None) -> None:
        """Handle an owner's log-out: idle, and not usable until an event reports it."""
        site = self._site
        site.owner[machine] = 0
        self._energy.enter(machine, IDLING, site.now)

    def rebooted(self, time_s: float, machine: int, extra: None) -> None:
        """Handle a reboot: idle, and not usable until reported; ignored while an owner is there."""
        site = self._site
        if not site.owner[machine]:
            site.shut(machine)
            self._energy.enter(machine, IDLING, site.now)

    def asleep(self, time_s: float, machine: int, extra: None) -> None:
        """Handle a machine that was reported asleep."""
        self._energy.enter(machine, ASLEEP, self._site.now)

    def woken(self, time_s: float, machine: int, extra: None) -> None:
        """Handle a machine that is on again."""
        self._energy.enter(machine, IDLING, self._site.now)

    def drained(self, time_s: float, machine: int, extra: str | None) -> None:
        """Close the machine to jobs until it is reported usable."""
        self._site.shut(machine)
        if extra:
            self._site.closed_because[machine] = extra
        else:
            self._site.closed_because.pop(machine, None)

    def eligible(self, time_s: float, subject: int, extra: tuple[str, Sequence[int], bool]) -> None:
        """Store which machines a class of jobs may use."""
        self._site.set_class(*extra)
        self._opened()

    def power(self, time_s: float, machine: int, extra: float) -> None:
        """Handle a meter reading: its watts replace those of the table for a while."""
        self._energy.read_meter(machine, extra, time_s)
