"""One run of a comparison: a policy on a workload file, and the outcome of each job."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from outrider.formats.digests import file_sha256
from outrider.formats.job_classes import ClassRule
from outrider.formats.workload import SHORT_BELOW_S
from outrider.journal import LedgerHash
from outrider.model.events import COMPLETED, STARTED, Event
from outrider.model.modes import STRICT, Discipline
from outrider.model.utility import DEFAULT_UTILITIES, SHAPES, TimeUtility, make_utility
from outrider.plugins.finding import UTILITIES, find, make_estimator, utility_shapes
from outrider.replay.grid_run import GridRun
from outrider.replay.run import hashed
from outrider.replay.trials import effective_settings
from outrider.replay.workload_terms import WorkloadTerms
from outrider.simulation.estimates import (
    LEARNED,
    default_rule,
    estimate_rule,
    estimated,
    oracle_used,
)
from outrider_lab.running.run_spec import Options, PolicySpec, RunSpec
from outrider_lab.running.traces import WorkloadFile, workload_of

_WORK: Final = f"{__name__}:run_watched"
_NONE: Mapping[str, Any] = {}


class Conditions(NamedTuple):
    """Conditions common to all policies of a comparison: the options of ``outrider compare``.

    Attributes:
        estimates: rule for the run times that policies know, as `outrider.simulation.estimates`
            reads it; None: what users requested, where any did.
        discipline: who may start before a job that does not fit: `outrider.model.modes`.
        machines: CPUs, in place of the header's.
        class_by: what makes a job interactive; None: what its users said best.
        short_below_s: figures are grouped by whether a job ran strictly less; no policy is told.
        vo: the column that says which VO a job belongs to.
        group_vos_below: VOs that ask for a lesser share than this are one.
        shares: fair shares by VO; empty: equal.
        utilities: time utility functions by job class.
    """

    estimates: str | None = None
    discipline: Discipline = STRICT
    machines: int | None = None
    class_by: ClassRule | None = None
    short_below_s: float = SHORT_BELOW_S
    vo: str = "group"
    group_vos_below: float = 0.0
    shares: Mapping[str, float] = _NONE
    utilities: Mapping[str, TimeUtility] = DEFAULT_UTILITIES

    @classmethod
    def of(cls, terms: WorkloadTerms, shares: Mapping[str, float]) -> "Conditions":
        """Return the conditions from workload terms and shares."""
        return cls(
            estimates=None if terms.estimates is None else terms.estimates.word,
            discipline=terms.discipline or STRICT,
            machines=terms.machines,
            class_by=terms.class_by,
            short_below_s=terms.short_below_s,
            vo=terms.vo,
            group_vos_below=terms.group_vos_below,
            shares=shares,
            utilities=terms.utilities,
        )

    def trace(self, path: str) -> WorkloadFile:
        """Return a file as all policies meet it. Raises `OSError` where it cannot be read."""
        return WorkloadFile(
            path, self.machines, self.class_by, self.vo, self.group_vos_below,
            file_sha256(Path(path)),
        )  # fmt: skip

    def spec(self, trace: WorkloadFile, policy: PolicySpec, seed: int) -> RunSpec:
        """Return the run of a policy on a trace; the seed is for its and the estimates' draws."""
        utilities = {name: _declared(utility) for name, utility in self.utilities.items()}
        options = (
            ("estimates", self.estimates or "default"),
            ("discipline", self.discipline),
            ("short_below_s", self.short_below_s),
            ("shares", tuple(sorted(self.shares.items()))),
            ("utilities", tuple(sorted(utilities.items()))),
        )
        return RunSpec(_WORK, trace, policy, seed, options)


def _declared(utility: TimeUtility) -> Options:
    """Return the shape of a utility and its settings, as a configuration declares them."""
    kind = type(utility)
    shapes: dict[Any, str] = {found: name for name, found in SHAPES.items()}
    shapes |= {point.value: name for name, point in find(UTILITIES).items()}
    shape = shapes.get(kind) or shapes[f"{kind.__module__}:{kind.__qualname__}"]
    return (("shape", shape), *sorted(msgspec.to_builtins(utility).items()))


class WatchedRun(GridRun):
    """Run that records the outcome of each job.

    What it remembers is what the accounting has just written down: the numbers of the report.
    """

    def run(self, progress: Callable[[float], None] | None = None) -> dict[str, Any]:
        """Run like `GridRun.run`, and set `wait_s` and `bounded_slowdown` by job."""
        self.wait_s = np.full(len(self.workload.submit_s), np.nan)
        self.bounded_slowdown = self.wait_s.copy()
        self._completed: list[int] = []
        out = super().run(progress or _unwatched)
        if self.accounting.slowdown.values is not None:
            self.bounded_slowdown[self._completed] = self.accounting.slowdown.values
        return out

    def _reporting(
        self, events: Iterable[Event], progress: Callable[[float], None]
    ) -> Iterator[Event]:
        """Look at what happened after every start and every completion."""
        waits = self.wait_s
        for event in super()._reporting(events, progress):
            yield event  # the engine has handled it when it asks for the next
            time_s, kind, subject, _ = event
            if kind == STARTED and np.isnan(waits[subject]):
                waits[subject] = self.site.jobs[subject].wait_s(time_s)
            elif kind == COMPLETED:
                self._completed.append(subject)


def run_watched(spec: RunSpec) -> dict[str, Any]:
    """Run one spec of a comparison in this process.

    Returns:
        `report`, the run object of ``outrider replay --json``, and by job, with nan for what never
        came, `wait_s` and `bounded_slowdown`.

    Raises:
        OutriderError: the trace cannot be read, the policy cannot be made, or it failed.
        TypeError: the trace is no workload file.
    """
    if not isinstance(spec.trace, WorkloadFile):
        raise TypeError(f"{spec}: the trace is a {type(spec.trace).__name__}, and no file")
    trace, word = workload_of(spec.trace), spec.option("estimates")
    rule = default_rule(trace) if word == "default" else estimate_rule(word, "--estimates")
    workload = estimated(trace, rule, spec.seed)
    policy = spec.make_policy()
    digest = LedgerHash()
    shapes = utility_shapes(dict(given)["shape"] for _, given in spec.option("utilities"))
    run = WatchedRun(
        workload,
        [policy],
        hashed(digest, workload),
        shares=dict(spec.option("shares")),
        utilities={
            name: make_utility(dict(given), str(spec), shapes)
            for name, given in spec.option("utilities")
        },
        discipline=spec.option("discipline"),
        short_below_s=spec.option("short_below_s"),
        estimator=make_estimator(LEARNED, spec.seed, "estimates") if rule.kind == LEARNED else None,
    )
    about = {
        "trace": spec.trace.name,
        "policy": spec.policy.policy,
        "settings": effective_settings(policy, run.runners[0].reconsider_s),
        "seed": spec.seed,
        "preset": spec.policy.preset,
        "class_source": workload.class_source,
        "estimates": rule.word,
        "truth": oracle_used(workload.class_source, rule.word),
    }
    report = about | run.run() | {"ledger_sha256": digest.hexdigest()}
    return {
        "report": report,
        "wait_s": run.wait_s.tolist(),
        "bounded_slowdown": run.bounded_slowdown.tolist(),
    }


def _unwatched(ratio: float) -> None:
    """Ignore the progress of a run."""
