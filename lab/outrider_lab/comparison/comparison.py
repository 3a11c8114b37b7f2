"""A comparison: every policy on every trace with every seed, side by side on the cores."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp
from statistics import fmean
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider.model.quantities import degenerate
from outrider_lab.comparison.difference import (
    BETTER,
    TOO_SMALL,
    UNDECIDED,
    WORSE,
    Differences,
    Stretches,
)
from outrider_lab.comparison.watched_run import Conditions
from outrider_lab.reporting.bootstrap import Interval, student_interval
from outrider_lab.running.run_spec import PolicySpec, RunSpec
from outrider_lab.running.traces import WorkloadFile, workload_of

# -- paired ----------------------------------------------------------------------------------------
# What befell each job under each policy: the same jobs in the same rows, so that they pair.

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


class JobOutcomes(NamedTuple):
    """Jobs of a trace and their outcomes in one run, by number; nan for missing ones.

    Attributes:
        submit_s: when each was submitted.
        job_class: of each.
        is_short: of each, whether its true run time is below the limit of the report.
        wait_s: first start less submission.
        bounded_slowdown: of completed jobs, as docs/reference/definitions.md defines it.
    """

    submit_s: Floats
    job_class: NDArray[np.str_]
    is_short: Mask
    wait_s: Floats
    bounded_slowdown: Floats


class PolicyRun(NamedTuple):
    """One run of a policy on a trace.

    Attributes:
        policy: its name.
        seed: of its chance, and of the estimates'.
        report: the run object of ``outrider replay --json``.
        jobs: what befell each job.
    """

    policy: str
    seed: int
    report: dict[str, Any]
    jobs: JobOutcomes


@dataclass(frozen=True)
class PairedJobs:
    """Jobs of a trace that completed under every policy with every seed, one row each.

    Attributes:
        policies: by column.
        submit_s: when each was submitted.
        job_class: of each.
        is_short: of each, whether its true run time is below the limit of the report.
        wait_s, bounded_slowdown: shape (jobs, policies); of several seeds the mean.
        left_out: jobs of the trace that did not complete in some run.
    """

    policies: tuple[str, ...]
    submit_s: Floats
    job_class: NDArray[np.str_]
    is_short: Mask
    wait_s: Floats
    bounded_slowdown: Floats
    left_out: int

    def of_class(self, name: str) -> Mask:
        """Return which rows are of a class."""
        mask: Mask = self.job_class == name
        return mask


def pair_jobs(runs: Sequence[PolicyRun]) -> PairedJobs:
    """Put the runs of one trace beside each other: every policy with every seed."""
    policies = tuple(dict.fromkeys(run.policy for run in runs))
    trace = runs[0].jobs
    completed = ~np.any([np.isnan(run.jobs.bounded_slowdown) for run in runs], axis=0)

    def means(name: str) -> Floats:
        by_policy = [
            np.mean([getattr(run.jobs, name) for run in runs if run.policy == policy], axis=0)
            for policy in policies
        ]
        columns: Floats = np.stack(by_policy, axis=1)[completed]
        return columns

    return PairedJobs(
        policies,
        trace.submit_s[completed],
        trace.job_class[completed],
        trace.is_short[completed],
        means("wait_s"),
        means("bounded_slowdown"),
        int((~completed).sum()),
    )


# -- on a trace ------------------------------------------------------------------------------------
# Policies on one trace: what each brought, and how it differs from a reference and from the best.
#
# The best published baseline is the one of `PUBLISHED` with the least mean bounded slowdown on that
# trace, chosen after the fact: a site could not have known. That is to the disadvantage of whoever
# is compared with it.

PUBLISHED: Final = (
    "fifo", "sjf", "wfp3", "unicep", "f1", "fair_share", "multifactor", "fair_share_sjf",
)  # fmt: skip
"""Orders that others published or that sites run, without learning; `fifo` is FCFS."""


class TraceComparison:
    """All policies on one trace.

    Args:
        trace: its name.
        jobs: what befell its jobs under every policy.
        runs: every policy with every seed.
        block_s: seconds of submissions that are drawn together; None: chosen from the waits.
    """

    def __init__(
        self, trace: str, jobs: PairedJobs, runs: Sequence[PolicyRun], block_s: float | None
    ) -> None:
        self.trace = trace
        self.jobs = jobs
        self._runs = runs
        stretches = Stretches(jobs.submit_s, jobs.wait_s, block_s)
        self.slowdown = Differences(jobs.policies, jobs.bounded_slowdown, stretches)
        self._wait = Differences(jobs.policies, jobs.wait_s, stretches)

        def waits_of(mine: NDArray[np.bool_]) -> Differences:
            waits = jobs.wait_s[mine]
            return Differences(jobs.policies, waits, Stretches(jobs.submit_s[mine], waits, block_s))

        self._wait_of_class = {
            name: waits_of(jobs.of_class(name)) for name in map(str, np.unique(jobs.job_class))
        }
        by_length = {"short": jobs.is_short, "long": ~jobs.is_short}
        self._wait_by_length = {
            name: waits_of(mine) for name, mine in by_length.items() if mine.any()
        }
        published = [name for name in jobs.policies if name in PUBLISHED]
        self.best_published = min(published, key=self.slowdown.mean) if published else None

    def differences(self, policy: str, other: str | None) -> dict[str, Any] | None:
        """Return differences from another policy: bounded slowdown; waits by class and length."""
        if other is None or other == policy or other not in self.jobs.policies:
            return None
        return {
            "policy": other,
            "bounded_slowdown": self.slowdown.between(policy, other),
            "wait_s": {
                "all": self._wait.between(policy, other),
                "by_class": {
                    name: waits.between(policy, other)
                    for name, waits in self._wait_of_class.items()
                },
                "by_length": {
                    name: waits.between(policy, other)
                    for name, waits in self._wait_by_length.items()
                },
            },
        }

    def report(self, reference: str) -> dict[str, Any]:
        """Return the report as ``outrider compare --json`` prints it."""
        first = self._runs[0].report
        best = self.best_published
        return {
            "trace": self.trace,
            "machines": first["machines"],
            "span_s": first["span_s"],
            "class_source": first["class_source"],
            "estimates": first["estimates"],
            "truth": first["truth"],
            "jobs": len(self.jobs.submit_s),
            "left_out": self.jobs.left_out,
            "skipped": first["jobs"]["skipped"],
            "best_published": best,
            "fairness_note": degenerate(first["fairness"]["target"]),
            "policies": [
                self._figures(policy)
                | {
                    "against_reference": self.differences(policy, reference),
                    "against_best_published": self.differences(policy, best),
                }
                for policy in self.jobs.policies
            ],
        }

    def _figures(self, policy: str) -> dict[str, Any]:
        reports = [run.report for run in self._runs if run.policy == policy]
        names = ("wait_s", "bounded_slowdown", "fairness", "utility", "utilisation_ratio", "cpu_s")
        return {
            "policy": policy,
            "settings": reports[0]["settings"],
            "preset": reports[0]["preset"],
            "seeds": [run.seed for run in self._runs if run.policy == policy],
        } | {name: mean_of([report[name] for report in reports]) for name in names}


def mean_of(values: Sequence[Any]) -> Any:
    """Return the mean of figures, part by part where they are tables; None where one is missing."""
    first = values[0]
    if isinstance(first, Mapping):
        parts = [name for name in first if all(name in value for value in values)]
        return {name: mean_of([value[name] for value in values]) for name in parts}
    if any(value is None for value in values):
        return None
    return first if len(values) == 1 else fmean(values)


# -- comparison ------------------------------------------------------------------------------------

_USUAL: Final = Conditions()


class Row(NamedTuple):
    """Common properties of runs that differ only in the seed."""

    trace: str
    policy: str


class Comparison:
    """A study, see `outrider_lab.running.run_all.Study`.

    Args:
        traces: paths, as they were given.
        policies: those in question, with their settings; each name once.
        reference: the policy that all others are held against.
        seeds: of the policies' chance and of the estimates'.
        conditions: under which all of them run.
        block_s: seconds of submissions that are drawn together for the intervals; None: chosen
            from the waits.
    """

    def __init__(
        self,
        traces: Sequence[str],
        policies: Sequence[PolicySpec],
        reference: str = "fifo",
        seeds: Sequence[int] = (0,),
        conditions: Conditions = _USUAL,
        block_s: float | None = None,
    ) -> None:
        self.traces = traces
        self.reference = reference
        self.seeds = seeds
        self.conditions = conditions
        self.block_s = block_s
        given = {spec.policy: spec for spec in policies}
        names = dict.fromkeys((reference, *PUBLISHED, *given))
        self.policies = {name: given.get(name, PolicySpec(name)) for name in names}
        """Policies to compare, after the reference and the published baselines."""

    @cached_property
    def files(self) -> dict[str, WorkloadFile]:
        """The traces as all policies meet them, by path."""
        return {path: self.conditions.trace(path) for path in self.traces}

    def check(self) -> None:
        """Refuse what is wrong before a long run, not after it.

        Raises:
            ConfigurationError, PluginError: a policy or setting is wrong.
            TraceError: a trace cannot be read.
        """
        for name, spec in self.policies.items():
            spec.make(0, f"--set {name}")
        for file in self.files.values():
            workload_of(file)

    def points(self) -> list[tuple[Row, int]]:
        """Return every policy on every trace, trace by trace and seed by seed."""
        return [
            (Row(trace, policy), seed)
            for trace in self.traces
            for seed in self.seeds
            for policy in self.policies
        ]

    def spec_of(self, row: Row, seed: int) -> RunSpec:
        """Return the run of a policy on a trace with a seed."""
        return self.conditions.spec(self.files[row.trace], self.policies[row.policy], seed)

    def sum_up(self, results: Mapping[Row, Mapping[int, Any]]) -> dict[str, Any]:
        """Return the comparison of the policies whose runs all ended well.

        A policy of which a run on a trace failed is left out of that trace, and what is said of
        it over several traces counts the others.

        Returns:
            settings; traces (path, sha256, and see `TraceComparison.report`); over_traces (see
            `over_traces`).
        """
        compared = [
            one for one in (self._on(trace, results) for trace in self.traces) if one is not None
        ]
        return {
            "settings": self._settings(),
            "traces": [self._origin(one.trace) | one.report(self.reference) for one in compared],
            "over_traces": over_traces(compared, self.reference) if compared else [],
        }

    def _origin(self, trace: str) -> dict[str, str]:
        """Return the file of a trace and what is in it."""
        return {"path": trace, "sha256": self.files[trace].digest}

    def _on(self, trace: str, results: Mapping[Row, Mapping[int, Any]]) -> TraceComparison | None:
        """Return the comparison on one trace; None where no policy is left."""
        workload = workload_of(self.files[trace])
        job_class = np.array(workload.job_class, dtype=str)
        is_short = workload.run_s < self.conditions.short_below_s
        runs = []
        for policy in self.policies:
            of_row = results.get(Row(trace, policy), {})
            if len(of_row) < len(self.seeds):
                continue
            for seed, result in of_row.items():
                columns = (np.array(result[name]) for name in ("wait_s", "bounded_slowdown"))
                jobs = JobOutcomes(workload.submit_s, job_class, is_short, *columns)
                runs.append(PolicyRun(policy, seed, result["report"], jobs))
        return TraceComparison(trace, pair_jobs(runs), runs, self.block_s) if runs else None

    def _settings(self) -> dict[str, Any]:
        given = self.conditions
        return {
            "reference": self.reference,
            "published": list(PUBLISHED),
            "seeds": list(self.seeds),
            "block_s": self.block_s,
            "estimates": given.estimates,
            "discipline": given.discipline,
            "machines": given.machines,
            "class_by": None if given.class_by is None else given.class_by.source,
            "interactive_below_s": given.short_below_s,
            "vo_column": given.vo,
            "group_vos_below": given.group_vos_below,
            "shares": dict(given.shares),
        }


# -- over traces -----------------------------------------------------------------------------------
# Policies over several traces: on how many each is better or worse, and by what factor.


def over_traces(traces: Sequence[TraceComparison], reference: str) -> list[dict[str, Any]]:
    """Return rows of policies, with mean bounded slowdown against the reference and the best.

    Each row has `policy`, and `against_reference` and `against_best_published` (None where there
    is nobody else on any trace) with

    * traces, better, worse, undecided, too small: how many, by the verdict of each;
    * not_worse_ratio: traces whose interval holds 0 or lies below it, over those that have one;
    * ratio: geometric mean over the traces of the ratio of means, and its 95 % interval, from
      resamples of every trace's blocks. It speaks of these traces, not of all that there could be.
    """
    return [
        {
            "policy": policy,
            "against_reference": _against(traces, policy, [reference] * len(traces)),
            "against_best_published": _against(
                traces, policy, [trace.best_published for trace in traces]
            ),
        }
        for policy in dict.fromkeys(name for trace in traces for name in trace.jobs.policies)
    ]


def _against(
    traces: Sequence[TraceComparison], policy: str, others: Sequence[str | None]
) -> dict[str, Any] | None:
    pairs = [
        (trace, other)
        for trace, other in zip(traces, others, strict=True)
        if other is not None and other != policy and {policy, other} <= {*trace.jobs.policies}
    ]
    if not pairs:
        return None
    verdicts = Counter(t.slowdown.between(policy, other)["verdict"] for t, other in pairs)
    judged = len(pairs) - verdicts[TOO_SMALL]
    not_worse = judged - verdicts[WORSE]
    logs = [np.log(t.slowdown.mean(policy) / t.slowdown.mean(other)) for t, other in pairs]
    drawn = [t.slowdown.log_ratios(policy, other) for t, other in pairs]
    found = None
    if judged == len(pairs):
        fewest = min(trace.slowdown.blocks_n(policy, other) for trace, other in pairs)
        together = np.mean([d for d in drawn if d is not None], axis=0)
        low, high = student_interval(together, float(np.mean(logs)), fewest)
        found = Interval(exp(low), exp(high))
    return {
        "traces": len(pairs),
        **{name: verdicts[name] for name in (BETTER, WORSE, UNDECIDED, TOO_SMALL)},
        "not_worse_ratio": not_worse / judged if judged else None,
        "ratio": float(np.exp(np.mean(logs))),
        "interval": found,
    }
