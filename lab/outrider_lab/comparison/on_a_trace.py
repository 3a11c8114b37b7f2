"""Policies on one trace: what each brought, and how it differs from a reference and from the best.

The best published baseline is the one of `PUBLISHED` with the least mean bounded slowdown on that
trace, chosen after the fact: a site could not have known. That is to the disadvantage of whoever
is compared with it.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from outrider.engine.accounting.fairness import degenerate
from outrider_lab.comparison.difference import Differences
from outrider_lab.comparison.paired import PairedJobs, PolicyRun
from outrider_lab.comparison.stretches import Stretches

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
        """How a policy differs from another: bounded slowdown; waits, also by class and length."""
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
        """As it is printed by ``outrider compare --json``."""
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
    """The mean of figures, part by part where they are tables; None where one is missing."""
    first = values[0]
    if isinstance(first, Mapping):
        parts = [name for name in first if all(name in value for value in values)]
        return {name: mean_of([value[name] for value in values]) for name in parts}
    if any(value is None for value in values):
        return None
    return first if len(values) == 1 else fmean(values)
