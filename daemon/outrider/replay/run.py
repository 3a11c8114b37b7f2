"""Run of a trace under one acting policy: the engine connected to a simulation."""

import gc
import resource
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isnan
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from outrider.api.estimator import RunTimeEstimator
from outrider.api.policy import Policy
from outrider.api.site_view import Oracle
from outrider.engine import Actuator, Engine, PolicyRunner
from outrider.engine.accounting.accounting import Accounting
from outrider.engine.accounting.deferrals import judge
from outrider.engine.accounting.energy import BADPUT, GOODPUT
from outrider.engine.accounting.report import add_unfinished_overhead, report
from outrider.engine.scheduling.placement import Possible
from outrider.engine.state.site import Site
from outrider.formats.campus.campus import Campus
from outrider.journal import LedgerFile, LedgerHash, OutcomeRecord
from outrider.model.decisions import NOWHERE, Decision, DecisionRow, Names
from outrider.model.events import Event
from outrider.model.jobs import QUEUED, Job
from outrider.model.localtime import LocalTime, TraceTime
from outrider.model.modes import FIRST_FIT, Discipline
from outrider.replay.job_table import JobTable
from outrider.simulation.campus_site import DetailedSite, simulated_site

# -- keeping ---------------------------------------------------------------------------------------
# Destination of a replay's decisions and outcomes: none, a hash, or a ledger file.

Keep = Callable[[Decision], None]
"""Takes every decision of a run, of every runner, in order."""
KeepOutcome = Callable[[OutcomeRecord], None]
"""Takes every outcome of a run, in order."""


class ReplayDecisionLog:
    """Decision log of a replay.

    Args:
        keep: takes the decisions.
    """

    def __init__(self, keep: Keep) -> None:
        self.decided = keep
        self._kept: tuple[KeepOutcome, Names, Site] | None = None

    def keep_outcomes(self, keep: KeepOutcome, names: Names, site: Site) -> None:
        """Pass every outcome to `keep`; by default outcomes are only in the report.

        Args:
            keep: takes the outcomes.
            names: of jobs and machines.
            site: for the time of each outcome.
        """
        self._kept = keep, names, site

    def ended(
        self, policy: str, job: Job, ending: str, reason: str, run_s: float,
        reward: float | None, on_policy: bool,
    ) -> None:  # fmt: skip
        """Record the end of a run, or that a job left (`outrider.engine.ports.DecisionLog`)."""
        if self._kept is None:
            return
        keep, names, site = self._kept
        machine = None if job.machine == NOWHERE else names.machine_names[job.machine]
        name = names.job_names[job.number]
        keep(
            OutcomeRecord(site.now, name, machine, ending, reason, run_s, policy, reward, on_policy)
        )


def keep_nothing(decision: Decision) -> None:
    """Ignore a decision, in runs of which only the report is used."""


def both(keep: Keep, also: Keep) -> Keep:
    """Return a function that passes every decision to two others."""

    def keep_both(decision: Decision) -> None:
        keep(decision)
        also(decision)

    return keep_both


def hashed(digest: LedgerHash, names: Names) -> Keep:
    """Return a function that adds each decision to a hash; `names` are those of the trace."""
    add, jobs, machines = digest.add, names.job_names, names.machine_names

    def keep(decision: Decision) -> None:
        machine = decision.machine
        place = None if machine == NOWHERE else machines[machine]
        add(decision.time_s, jobs[decision.job], decision.action, place, decision.cpus)

    return keep


def hashed_and_written(digest: LedgerHash, names: Names, ledger: LedgerFile, mode: str) -> Keep:
    """Return a function that hashes each decision and writes it to a ledger file with a mode."""

    def keep(decision: Decision) -> None:
        row = DecisionRow.of(decision, names, mode)
        digest.add_decision(row)
        ledger.add(row)

    return keep


# -- run -------------------------------------------------------------------------------------------

_PROGRESS_EVERY = 1 << 16


def free_ended_runs() -> None:
    """Free the memory of ended runs: 160 MB for a year of the paper's campus.

    An engine and its handlers refer to each other, so they stay until Python collects reference
    cycles; the more objects there are, the more rarely it does.
    """
    gc.collect()


class Simulation(Actuator, Oracle, Protocol):
    """Simulated site: executes decisions, produces events, and knows the true run times."""

    now: float
    until_s: float

    def events(self) -> Iterator[Event]:
        """Yield all events in order, until the end of the simulation."""
        ...

    def unfinished_run_s(self) -> Iterator[tuple[int, float]]:
        """Yield (job, true run time) of jobs still there that would have completed."""
        ...


class TraceRun:
    """Run of a trace: the engine and the simulation, connected to each other.

    Args:
        simulation: the simulated site.
        site: the site of the engine.
        accounting: the accounting of the engine.
        runners: the first acts, the others are shadow candidates.
        decision_log: takes every decision of every runner.
        estimator: estimates run times in place of the trace; None: the trace's are used.

    Attributes:
        job_table: if set before the run, it has a row for every job after it; this takes time.
    """

    def __init__(
        self,
        simulation: Simulation,
        site: Site,
        accounting: Accounting,
        runners: Sequence[PolicyRunner],
        decision_log: ReplayDecisionLog,
        estimator: RunTimeEstimator | None = None,
    ) -> None:
        self.simulation: Simulation = simulation
        self.site = site
        self.accounting = accounting
        self.runners = runners
        self.job_table: JobTable | None = None
        self._decision_log = decision_log
        for runner in runners:
            if runner.policy.needs_oracle:
                runner.policy.oracle = simulation
        self.engine = Engine(
            site, accounting, runners, simulation, decision_log, estimator=estimator
        )

    def keep_outcomes(self, keep: KeepOutcome, names: Names) -> None:
        """Pass the end of each run with its rewards to `keep`; call it before the run."""
        self._decision_log.keep_outcomes(keep, names, self.site)
        self.engine.log_every_end()

    def stream(self) -> Iterator[Event]:
        """Yield the events of the run, each after the engine has handled it."""
        for event in self.simulation.events():
            self.engine.feed((event,))
            yield event

    def run(self, progress: Callable[[float], None] | None = None) -> dict[str, Any]:
        """Run to the end; return the measured part of the run as in reports.

        Args:
            progress: called periodically with the ratio of trace time that has passed.
        """
        wall, cpu = time.perf_counter(), time.process_time()
        events: Iterable[Event] = self.simulation.events()
        if progress is not None:
            events = self._reporting(events, progress)
        if self.job_table is not None:
            events = self.job_table.watch(events, self.site, self.runners)
        self.engine.feed(events)
        end_s = self.end_s
        if self.job_table is not None:
            self.job_table.finish(end_s, self.site)
        span_s = end_s - (self.accounting.begin_s or 0.0)
        self.engine.finish(end_s)
        add_unfinished_overhead(
            self.accounting, self.site, end_s, self.simulation.unfinished_run_s()
        )
        runner = self.runners[0] if self.runners else None
        deferred_s = None if runner is None else runner.longest_deferral_s(self.site.now)
        out = report(self.site, self.accounting, deferred_s)
        cpu_s = span_s * self._cpus()
        facts = {
            "span_s": span_s,
            "utilisation_ratio": (out["goodput_s"] + out["badput_s"]) / cpu_s if cpu_s else None,
            "calibration": None if runner is None else runner.calibration(end_s),
            "decisions": runner.decisions if runner else 0,
            "events": self.engine.events,
            "wall_s": time.perf_counter() - wall,
            "cpu_s": time.process_time() - cpu,
            "max_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
        out["jobs"]["impossible"] = self._impossible_n()
        return self._described(out, runner, end_s) | facts

    @property
    def end_s(self) -> float:
        """Second at which the trace ends, or the run stops."""
        return self.simulation.until_s

    def _cpus(self) -> int:
        """Return the CPUs of all machines."""
        return sum(self.site.cpus)

    def _impossible_n(self) -> int:
        """Return the number of jobs still queued that would not fit on any empty machine."""
        is_possible = Possible(self.site)
        waiting = (job for job in self.site.jobs.values() if job.state == QUEUED)
        return sum(not job.is_plain and not is_possible(job.spec) for job in waiting)

    def _described(
        self, out: dict[str, Any], runner: PolicyRunner | None, end_s: float
    ) -> dict[str, Any]:
        """Return the report with the fields that only this kind of trace has."""
        raise NotImplementedError

    def _reporting(
        self, events: Iterable[Event], progress: Callable[[float], None]
    ) -> Iterator[Event]:
        span_s = max(self._expected_end_s(), 1.0)
        for n, event in enumerate(events):
            if n % _PROGRESS_EVERY == 0:
                progress(min(1.0, event[0] / span_s))
            yield event
        progress(1.0)

    def _expected_end_s(self) -> float:
        return self.simulation.until_s


class CampusRun(TraceRun):
    """Run of a campus under one acting policy.

    Args:
        campus: the trace.
        policies: the first acts, the others are shadow candidates.
        keep: called for every decision of every runner.
        until_s: stop after this second.
        exact: keep every wait, for exact percentiles in the report.
        shares: fair shares by VO; empty: equal.
        discipline: the rule by which jobs may pass one that does not fit: `outrider.model.modes`.
            Where every job asks for one CPU of any machine it changes nothing; reports name it.
        estimator: estimates run times in place of the users; None: their requests are used.
    """

    def __init__(
        self,
        campus: Campus,
        policies: Sequence[Policy],
        keep: Keep,
        until_s: float | None = None,
        exact: bool = True,
        shares: dict[str, float] | None = None,
        discipline: Discipline = FIRST_FIT,
        estimator: RunTimeEstimator | None = None,
    ) -> None:
        clock = TraceTime(campus.start)
        self.campus = campus
        simulation = simulated_site(campus, until_s)
        site = Site(clock, campus.clusters, campus.reboot_s)
        if isinstance(simulation, DetailedSite):
            accounting: Accounting = SavedWorkAccounting(clock, shares or {}, exact, simulation)
        else:
            accounting = Accounting(clock, shares or {}, exact)
        runners = [
            PolicyRunner(
                p, n == 0, campus.reconsider_s, exact=n == 0, discipline=discipline,
                is_narrow=campus.is_narrow,
            )
            for n, p in enumerate(policies)
        ]  # fmt: skip
        super().__init__(simulation, site, accounting, runners, ReplayDecisionLog(keep), estimator)

    def _described(
        self, out: dict[str, Any], runner: PolicyRunner | None, end_s: float
    ) -> dict[str, Any]:
        if isinstance(self.accounting, SavedWorkAccounting):
            self.accounting.add_open(out["energy_wh"])
        out["jobs"]["skipped"] = dict(self.campus.skipped)
        return out | {
            "machines": len(self.campus.machine_names),
            "owner_sessions": len(self.campus.login_s),
            "deferrals": None if runner is None else self._judged_deferrals(runner, end_s),
        }

    def _judged_deferrals(self, runner: PolicyRunner, end_s: float) -> dict[str, Any]:
        """Compare deferrals with which jobs could have completed; no policy knows this."""
        bad = np.isnan(self.campus.run_s[self.campus.submit_s <= end_s])
        return judge(runner.deferrals.by_job(runner.deferred_s(end_s)), bad)


# -- saved work ------------------------------------------------------------------------------------
# Accounting for runs with checkpoints and wake-ups: lost work, and energy by purpose.
#
# Events report starts and evictions, but only the simulation knows what a run saved and whether its
# machine was woken, so this is for replays. The daemon of such a site counts every run that did not
# complete as lost, as for a batch system that does not report checkpoints.

J_PER_WH: Final = 3600.0


class Saved(NamedTuple):
    """Work of one run that a checkpoint holds: the cluster where it ran, and its joules."""

    cluster: int
    joules: float


class SavedWorkAccounting(Accounting):
    """Accounting in which only work that no checkpoint holds counts as badput.

    An evicted run loses what it did since its last checkpoint: that is badput. What it saved
    counts as open until its job leaves: then as goodput if the job completed, else as badput.
    The energy of waking a machine is charged to the run it was woken for.

    Args:
        local_time, targets, exact: as for `Accounting`.
        simulated: the simulation of the replay.
    """

    def __init__(
        self,
        local_time: LocalTime,
        targets: Mapping[str, float],
        exact: bool,
        simulated: DetailedSite,
    ) -> None:
        super().__init__(local_time, targets, exact)
        self._simulated = simulated
        self._saved: dict[int, list[Saved]] = {}
        self._saved_s: dict[int, float] = {}
        self._wakes_j: dict[int, float] = {}

    def add_open(self, energy_wh: dict[str, float | None]) -> None:
        """Add saved work of jobs that have not left, and wake-ups for present runs, as open."""
        joules = sum(part.joules for parts in self._saved.values() for part in parts)
        joules += sum(self._wakes_j.values())
        before_wh = energy_wh["open"]
        if before_wh is not None:
            energy_wh["open"] = None if isnan(joules) else before_wh + joules / J_PER_WH

    def run_started(self, job: Job, machine: int, time_s: float, now: float) -> None:
        """Record the start of a run, with the energy of waking its machine."""
        super().run_started(job, machine, time_s, now)
        if self._simulated.rules.wake_j and self._simulated.woke(job.number):
            self._wakes_j[job.number] = self._simulated.rules.wake_j

    def run_completed(
        self, job: Job, run_s: float, cluster: int, time_s: float, more_cpu_s: float = 0.0
    ) -> None:
        """Count saved work of a completed job as goodput, and the other run time as overhead."""
        work_s = self._simulated.work_s(job.number)
        saved_s = self._settle_saved(job.number, GOODPUT)
        more_cpu_s += (run_s + saved_s - work_s) * job.cpus
        super().run_completed(job, work_s, cluster, time_s, more_cpu_s)
        self._ending = (GOODPUT, cluster, run_s)

    def run_wasted(self, job: Job, run_s: float, cluster: int, reason: str) -> None:
        """Count the work of a failed run that no checkpoint holds as lost."""
        total_s = self._simulated.saved_s(job.number)
        saved_s = total_s - self._saved_s.get(job.number, 0.0)
        super().run_wasted(job, run_s - saved_s, cluster, reason)
        if saved_s < 0.0:  # the job was killed and its checkpoints deleted
            self._settle_saved(job.number, BADPUT)
            saved_s = 0.0
        elif saved_s > 0.0:
            joules = self.energy.table_j(job.machine, job.cpus * saved_s)
            self._saved.setdefault(job.number, []).append(Saved(cluster, joules))
            self._saved_s[job.number] = total_s
        self._ending = (BADPUT, cluster, run_s - saved_s)

    def run_closed(self, job: Job, time_s: float, now: float) -> None:
        """Count the energy of a run that ended, completed or not, including its wake-up."""
        purpose, cluster, _ = self._ending
        self.energy.add(purpose, cluster, self._wakes_j.pop(job.number, 0.0))
        super().run_closed(job, time_s, now)

    def job_removed(self, job: Job) -> None:
        """Count the saved work of a removed job as lost, if the job was queued."""
        super().job_removed(job)
        if job.machine < 0:
            saved_s = self._settle_saved(job.number, BADPUT)
            key = (job.spec.job_class, job.spec.vo)
            if saved_s:
                self.badput[key] = self.badput.get(key, 0.0) + saved_s * job.cpus

    def _settle_saved(self, job: int, purpose: str) -> float:
        """Count the joules of a job's saved work for a purpose; return its seconds."""
        for part in self._saved.pop(job, ()):
            self.energy.add(purpose, part.cluster, part.joules)
        return self._saved_s.pop(job, 0.0)
