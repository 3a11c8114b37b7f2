"""One run of a trace under one acting policy: the engine joined to the virtual site."""

import resource
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from outrider.api.policy import Policy
from outrider.engine import Engine, Seat
from outrider.engine.accounting import Accounting
from outrider.engine.holds import judge
from outrider.engine.report import add_unfinished_overhead, report
from outrider.engine.site import Site
from outrider.model.decisions import NOWHERE, Choice
from outrider.model.events import Event
from outrider.model.jobs import Job
from outrider.model.localtime import TraceTime
from outrider.replay.saved_work import SavedWorkAccounting
from outrider.virtual.campus import Campus
from outrider.virtual.detailed_site import DetailedSite, site_of

_PROGRESS_EVERY = 1 << 16


class ReplayRecorder:
    """Hands every decision, with names for numbers, to whoever keeps it."""

    def __init__(self, campus: Campus, site: Site, keep: "Keep") -> None:
        self._jobs = campus.job_names
        self._machines = campus.machine_names
        self._site = site
        self._keep = keep

    def decided(
        self, seat: Seat, job: int, action: str, machine: int, cpus: int, reason: str,
        choice: Choice | None,
    ) -> None:  # fmt: skip
        """A decision was made."""
        place = None if machine == NOWHERE else self._machines[machine]
        self._keep(self._site.now, self._jobs[job], action, place, cpus, reason, seat.name, choice)

    def ended(
        self, seat: Seat | None, job: Job, ending: str, reason: str, run_s: float,
        reward: float | None, on_policy: bool,
    ) -> None:  # fmt: skip
        """Outcomes are in the report; a replay's ledger holds decisions only."""


Keep = Callable[[float, str, str, str | None, int, str, str, Choice | None], None]
"""Takes a row: time_s, job, action, machine, cpus, reason, policy, choice."""


class CampusRun:
    """The engine and the virtual site of one run, wired to each other.

    Args:
        campus: the trace.
        policies: the first acts, the others are shadow candidates.
        keep: called for every decision of every seat.
        until_s: stop after this second.
        exact: keep every wait, for exact percentiles in the report.
        shares: fair shares by VO; empty: equal.
    """

    def __init__(
        self,
        campus: Campus,
        policies: Sequence[Policy],
        keep: Keep,
        until_s: float | None = None,
        exact: bool = True,
        shares: dict[str, float] | None = None,
    ) -> None:
        clock = TraceTime(campus.start)
        self.campus = campus
        self.virtual = site_of(campus, until_s)
        self.site = Site(clock, campus.clusters, campus.reboot_s)
        for policy in policies:
            if policy.needs_oracle:
                policy.oracle = self.virtual
        if isinstance(self.virtual, DetailedSite):
            self.accounting: Accounting = SavedWorkAccounting(
                clock, shares or {}, exact, self.virtual
            )
        else:
            self.accounting = Accounting(clock, shares or {}, exact)
        self.seats = [
            Seat(p, n == 0, campus.reconsider_s, exact=n == 0) for n, p in enumerate(policies)
        ]
        recorder = ReplayRecorder(campus, self.site, keep)
        self.engine = Engine(self.site, self.accounting, self.seats, self.virtual, recorder)

    def stream(self) -> Iterator[Event]:
        """The run one event at a time, each yielded after the engine has handled it."""
        for event in self.virtual.events():
            self.engine.feed((event,))
            yield event

    def run(self, progress: Callable[[float], None] | None = None) -> dict[str, Any]:
        """Run to the end; returns the measured part of FORMATS' run object.

        Args:
            progress: called now and then with the ratio of trace time that has passed.
        """
        wall, cpu = time.perf_counter(), time.process_time()
        events: Iterable[Event] = self.virtual.events()
        if progress is not None:
            events = self._reporting(events, progress)
        self.engine.feed(events)
        end_s = self.virtual.until_s
        self.engine.finish(end_s)
        add_unfinished_overhead(self.accounting, self.site, end_s, self.virtual.unfinished_run_s())
        seat = self.seats[0] if self.seats else None
        out = report(self.site, self.accounting, seat)
        if isinstance(self.accounting, SavedWorkAccounting):
            self.accounting.add_open(out["energy_wh"])
        out["jobs"]["skipped"] = dict(self.campus.skipped)
        work_s = sum(v for v in (out["goodput_s"], out["badput_s"]))
        machines = len(self.campus.machine_names)
        return out | {
            "machines": machines,
            "owner_sessions": len(self.campus.login_s),
            "span_s": end_s,
            "utility": {"total": None, "per_step": None},
            "utilisation_ratio": work_s / (machines * end_s) if machines and end_s else None,
            "holds": None if seat is None else self._judged_holds(seat, end_s),
            "calibration": None if seat is None else seat.calibration(end_s),
            "decisions": seat.decisions if seat else 0,
            "events": self.engine.events,
            "wall_s": time.perf_counter() - wall,
            "cpu_s": time.process_time() - cpu,
            "max_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }

    def _judged_holds(self, seat: Seat, end_s: float) -> dict[str, Any]:
        """What the truth says of the jobs that were held: known to the report, to no policy."""
        bad = np.isnan(self.campus.run_s[self.campus.submit_s <= end_s])
        return judge(seat.holds.by_job(seat.line.waiting, end_s), bad)

    def _reporting(
        self, events: Iterable[Event], progress: Callable[[float], None]
    ) -> Iterator[Event]:
        end_s = max(self.virtual.until_s, 1.0)
        for n, event in enumerate(events):
            if n % _PROGRESS_EVERY == 0:
                progress(event[0] / end_s)
            yield event
        progress(1.0)
