"""One run of a trace under one acting policy: the engine joined to a simulation."""

import gc
import resource
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from outrider.api.estimator import RunTimeEstimator
from outrider.api.policy import Policy
from outrider.api.site_view import Oracle
from outrider.engine import Actuator, Engine, PolicyRunner
from outrider.engine.accounting.accounting import Accounting
from outrider.engine.accounting.deferrals import judge
from outrider.engine.accounting.report import add_unfinished_overhead, report
from outrider.engine.scheduling.placement import Possible
from outrider.engine.state.site import Site
from outrider.formats.campus.campus import Campus
from outrider.model.decisions import Names
from outrider.model.disciplines import FIRST_FIT, Discipline
from outrider.model.events import Event
from outrider.model.jobs import QUEUED
from outrider.model.localtime import TraceTime
from outrider.replay.job_table import JobTable
from outrider.replay.keeping import Keep, KeepOutcome, ReplayDecisionLog
from outrider.replay.saved_work import SavedWorkAccounting
from outrider.simulation.detailed_site import DetailedSite
from outrider.simulation.shared_site import simulated_site

_PROGRESS_EVERY = 1 << 16


def let_go_of_runs() -> None:
    """Free what runs that have ended had built: 160 MB for a year of the paper's campus.

    An engine and its handlers refer to each other, so they stay until Python looks for circles of
    objects, and the more objects there are, the more rarely it does.
    """
    gc.collect()


class Simulation(Actuator, Oracle, Protocol):
    """A simulated site: carries out decisions, produces events, and knows the true run times."""

    now: float
    until_s: float

    def events(self) -> Iterator[Event]:
        """Yield all events in order, until the end of the simulation."""
        ...

    def unfinished_run_s(self) -> Iterator[tuple[int, float]]:
        """Yield (job, true run time) of jobs still there that would have completed."""
        ...


class TraceRun:
    """One run: the engine and the simulation, connected to each other.

    Args:
        simulation: the simulated site.
        site: the site of the engine.
        accounting: the accounting of the engine.
        runners: the first acts, the others are shadow candidates.
        decision_log: takes every decision of every runner.
        estimator: estimates run times in place of the trace; None: the trace's are used.

    Attributes:
        job_table: set before the run, it has a row for every job after it; it takes time.
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
        """Give how each run ends to `keep`, with the rewards; before the run."""
        self._decision_log.keep_outcomes(keep, names, self.site)
        self.engine.tell_every_end()

    def stream(self) -> Iterator[Event]:
        """Run event by event; each is yielded after the engine has handled it."""
        for event in self.simulation.events():
            self.engine.feed((event,))
            yield event

    def run(self, progress: Callable[[float], None] | None = None) -> dict[str, Any]:
        """Run to the end; returns the measured part of the run as reports have it.

        Args:
            progress: called from time to time with the ratio of trace time that has passed.
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
        """CPUs of all machines."""
        return sum(self.site.cpus)

    def _impossible_n(self) -> int:
        """Jobs still queued at the end that fit on no machine of the site, however empty it is."""
        is_possible = Possible(self.site)
        waiting = (job for job in self.site.jobs.values() if job.state == QUEUED)
        return sum(not job.is_plain and not is_possible(job.spec) for job in waiting)

    def _described(
        self, out: dict[str, Any], runner: PolicyRunner | None, end_s: float
    ) -> dict[str, Any]:
        """The report with the fields that only this kind of trace has."""
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
    """A run of a campus.

    Args:
        campus: the trace.
        policies: the first acts, the others are shadow candidates.
        keep: called for every decision of every runner.
        until_s: stop after this second.
        exact: keep every wait, for exact percentiles in the report.
        shares: fair shares by VO; empty: equal.
        discipline: who may start before a job that does not fit: `outrider.model.disciplines`.
            Where every job asks for one CPU of any machine it changes nothing; reports name it.
        estimator: estimates run times in place of the users; None: what they requested counts.
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
        """Which deferred jobs could have completed, by the trace; no policy knows this."""
        bad = np.isnan(self.campus.run_s[self.campus.submit_s <= end_s])
        return judge(runner.deferrals.by_job(runner.deferred_s(end_s)), bad)
