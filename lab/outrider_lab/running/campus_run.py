"""A run on a campus: the run report of `outrider replay`, and what came week by week."""

import datetime as dt
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any, Final

import msgspec

from outrider.engine.accounting.accounting import Accounting
from outrider.engine.accounting.energy import BADPUT, GOODPUT
from outrider.journal import LedgerHash
from outrider.model.events import Event
from outrider.model.localtime import WEEK_S
from outrider.replay.run import CampusRun, hashed
from outrider.replay.trials import effective_settings
from outrider_lab.running.run_spec import PolicySpec, RunSpec
from outrider_lab.running.traces import CampusFolder, GeneratedCampus, campus_of

_WORK: Final = f"{__name__}:run_on_campus"


def campus_spec(
    trace: GeneratedCampus | CampusFolder, policy: PolicySpec, seed: int = 0
) -> RunSpec:
    """Return the spec of a run on a campus."""
    return RunSpec(_WORK, trace, policy, seed)


def run_on_campus(spec: RunSpec) -> dict[str, Any]:
    """Run a spec whose trace is a campus, in this process.

    Returns:
        The run object of ``outrider replay --json`` (trace, policy, settings, seed, preset, what
        was measured, ledger_sha256), and beside it `reconsider_s`, the decision epoch in force,
        and `by_week` and `by_month`, see `outrider_lab.running.campus_run`.

    Raises:
        OutriderError: the trace cannot be read or made, the policy cannot be made, or it failed.
        TypeError: the trace is no campus.
    """
    if not isinstance(spec.trace, GeneratedCampus | CampusFolder):
        raise TypeError(f"{spec}: the trace is a {type(spec.trace).__name__}, and no campus")
    policy = spec.make_policy()
    campus, digest = campus_of(spec.trace), LedgerHash()
    run = SampledRun(campus, [policy], hashed(digest, campus))
    reconsider_s = run.runners[0].reconsider_s
    about: dict[str, Any] = {
        "trace": spec.trace.name,
        "policy": spec.policy.policy,
        "settings": effective_settings(policy, reconsider_s),
        "reconsider_s": reconsider_s,
        "seed": spec.seed,
        "preset": spec.policy.preset,
        "class_source": "none",
    }
    return about | run.run() | {"ledger_sha256": digest.hexdigest()}


# -- series ----------------------------------------------------------------------------------------
# What a run brings week by week and month by month, from its own accounting.

_J_PER_WH: Final = 3600.0


class Totals(msgspec.Struct, frozen=True):
    """Totals of a run so far. A job's run counts when it ends, whenever it began.

    `evictions` are all wasted runs; `killed` are those of them whose job its user
    or an administrator killed.
    """

    goodput_wh: float
    badput_wh: float
    starts: int
    evictions: int
    killed: int
    completed: int

    @classmethod
    def of(cls, accounting: Accounting) -> "Totals":
        """Return the accounting's own figures, at this moment."""
        joules, evictions = accounting.energy.joules, accounting.evictions_by_reason()
        return cls(
            sum(joules[GOODPUT]) / _J_PER_WH,
            sum(joules[BADPUT]) / _J_PER_WH,
            accounting.starts,
            sum(evictions.values()),
            evictions["killed"],
            accounting.completed,
        )

    def since(self, earlier: "Totals") -> dict[str, Any]:
        """Return the change between two moments, as plain data."""
        before = msgspec.structs.asdict(earlier)
        return {name: v - before[name] for name, v in msgspec.structs.asdict(self).items()}


NOTHING: Final = Totals(0.0, 0.0, 0, 0, 0, 0)


class SampledRun(CampusRun):
    """A run whose totals are read at the end of every week and of every calendar month.

    Weeks are counted from second 0. A stretch that the trace's end cuts short is as long as its
    `start_s` and `end_s` say.
    """

    def run(self, progress: Callable[[float], None] | None = None) -> dict[str, Any]:
        """Run like `CampusRun.run`, and add `by_week` and `by_month`: lists of `Totals`."""
        self._end_s = self.simulation.until_s
        self._weeks = week_borders(self._end_s)
        self._months = month_borders(self.campus.start, self._end_s)
        self._seen: dict[float, Totals] = {0.0: NOTHING}
        out = super().run(progress or _unwatched)
        self._seen[self._end_s] = Totals.of(self.accounting)
        return out | {
            "by_week": self._stretches(self._weeks),
            "by_month": self._stretches(self._months),
        }

    def _reporting(
        self, events: Iterable[Event], progress: Callable[[float], None]
    ) -> Iterator[Event]:
        """Look at the totals just before the first event of a new stretch is handled."""
        borders = iter(sorted({*self._weeks, *self._months} - {0.0}))
        due = next(borders)
        for event in super()._reporting(events, progress):
            while event[0] >= due and due < self._end_s:
                self._seen[due] = Totals.of(self.accounting)
                due = next(borders)
            yield event

    def _stretches(self, borders: list[float]) -> list[dict[str, Any]]:
        return [
            {"start_s": start_s, "end_s": end_s} | self._seen[end_s].since(self._seen[start_s])
            for start_s, end_s in pairwise(borders)
        ]


def _unwatched(ratio: float) -> None:
    """Ignore the progress of a run."""


def week_borders(end_s: float) -> list[float]:
    """Return 0, a week, two weeks, ... and the end of the trace."""
    weeks = int(-(-end_s // WEEK_S))
    return [*(float(n * WEEK_S) for n in range(weeks)), end_s]


def month_borders(start: dt.datetime, end_s: float) -> list[float]:
    """Return 0, the first of every later month, and the end, in seconds of the trace.

    >>> [s / 86_400 for s in month_borders(dt.datetime(2010, 1, 1), 40 * 86_400.0)]
    [0.0, 31.0, 40.0]
    """
    borders = [0.0]
    first = start.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    while True:
        first = (first + dt.timedelta(days=31)).replace(day=1)
        at_s = (first - start).total_seconds()
        if at_s >= end_s:
            return [*borders, end_s]
        borders.append(at_s)
