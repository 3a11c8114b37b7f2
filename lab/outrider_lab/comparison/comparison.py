"""A comparison: every policy on every trace with every seed, side by side on the cores."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np

from outrider_lab.comparison.on_a_trace import PUBLISHED, TraceComparison
from outrider_lab.comparison.over_traces import over_traces
from outrider_lab.comparison.paired import JobOutcomes, PolicyRun, pair_jobs
from outrider_lab.comparison.watched_run import Conditions
from outrider_lab.running.run_spec import PolicySpec, RunSpec
from outrider_lab.running.traces import WorkloadFile, workload_of

_USUAL: Final = Conditions()


class Row(NamedTuple):
    """What runs that differ only in the seed have in common."""

    trace: str
    policy: str


class Comparison:
    """A study, see `outrider_lab.running.study.Study`.

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
        """Those in question, and before them the reference and the published baselines."""

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
        """Every policy on every trace, trace by trace and seed by seed."""
        return [
            (Row(trace, policy), seed)
            for trace in self.traces
            for seed in self.seeds
            for policy in self.policies
        ]

    def spec_of(self, row: Row, seed: int) -> RunSpec:
        """The run of a policy on a trace with a seed."""
        return self.conditions.spec(self.files[row.trace], self.policies[row.policy], seed)

    def sum_up(self, results: Mapping[Row, Mapping[int, Any]]) -> dict[str, Any]:
        """The comparison of the policies whose runs all ended well.

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
        """The file of a trace and what is in it."""
        return {"path": trace, "sha256": self.files[trace].digest}

    def _on(self, trace: str, results: Mapping[Row, Mapping[int, Any]]) -> TraceComparison | None:
        """The comparison on one trace; None where no policy is left."""
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
