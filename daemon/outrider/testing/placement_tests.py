"""Tests of policies: only possible starts, also for jobs that do not fit every machine."""

from typing import Final

import numpy as np

from outrider.api.capabilities import Decides
from outrider.formats.workload import Workload
from outrider.model.decisions import IMPOSSIBLE, START, Decision
from outrider.model.disciplines import DISCIPLINES, Discipline
from outrider.model.jobs import JobSpec
from outrider.model.machines import MachineSpec
from outrider.model.resources import Resources
from outrider.replay.grid_run import GridRun
from outrider.testing.conformance import expect
from outrider.testing.policy_under_test import PolicyUnderTest

MACHINES: Final = {
    "narrow-0": MachineSpec("narrow", 1, 40.0, resources=Resources(memory_mib=2_000)),
    "narrow-1": MachineSpec("narrow", 1, 40.0),
    "broad-0": MachineSpec("broad", 8, 300.0, resources=Resources(memory_mib=16_000, gpus=0)),
    "broad-1": MachineSpec("broad", 8, 300.0, resources=Resources(memory_mib=16_000)),
    "gpu-0": MachineSpec("gpu", 4, 600.0, resources=Resources(memory_mib=32_000, gpus=2)),
    "licensed-0": MachineSpec("licensed", 4, 90.0, resources=Resources(named=(("licence", 1.0),))),
}
"""Machines of several sizes; what they do not declare is not checked."""

CLASSES: Final = {"on_broad": (2, 3), "nowhere": ()}

KINDS: Final = {
    "plain": JobSpec(user="ann", estimate_s=600.0),
    "of 4 CPUs": JobSpec(user="bob", cpus=4, estimate_s=900.0),
    "of 6 CPUs": JobSpec(user="eve", cpus=6, estimate_s=300.0),
    "of much memory": JobSpec(user="ann", resources=Resources(memory_mib=9_000), estimate_s=800.0),
    "of a GPU": JobSpec(user="bob", resources=Resources(memory_mib=100, gpus=1), estimate_s=700.0),
    "of a licence": JobSpec(user="eve", resources=Resources(named=(("licence", 1.0),))),
    "only for broad machines": JobSpec(user="ann", eligible="on_broad", estimate_s=400.0),
    "wide and only for broad machines": JobSpec(user="bob", cpus=3, eligible="on_broad"),
    "of 64 CPUs": JobSpec(user="eve", cpus=64, estimate_s=60.0),
    "eligible nowhere": JobSpec(user="eve", eligible="nowhere", estimate_s=60.0),
}
"""Kinds of jobs by their requests, under a readable name."""

IMPOSSIBLE_KINDS: Final = ("of 64 CPUs", "eligible nowhere")
_JOBS_PER_KIND: Final = 8
_LENGTHS_S: Final = (500.0, 1_300.0, 200.0, 2_100.0)
_UNTIL_S: Final = 40_000.0


def crowded_workload() -> Workload:
    """Jobs of all kinds, several at each moment, named ``KIND, no. N``."""
    rows = [
        (60.0 + 150.0 * n, f"{kind}, no. {n}", spec, _LENGTHS_S[(n + at) % len(_LENGTHS_S)])
        for n in range(_JOBS_PER_KIND)
        for at, (kind, spec) in enumerate(KINDS.items())
    ]
    specs = [spec for _, _, spec, _ in rows]
    unknown = np.full(len(rows), np.nan)
    return Workload(
        name="jobs of all kinds",
        job_names=[name for _, name, _, _ in rows],
        submit_s=np.array([submit_s for submit_s, _, _, _ in rows]),
        run_s=np.array([run_s for _, _, _, run_s in rows]),
        cpus=np.array([spec.cpus for spec in specs]),
        requested_s=unknown,
        wait_s=unknown,
        estimate_s=np.array([spec.estimate_s or np.nan for spec in specs]),
        user=[spec.user for spec in specs],
        vo=[spec.vo for spec in specs],
        job_class=[spec.job_class for spec in specs],
        machine_names=list(MACHINES),
        machines=list(MACHINES.values()),
        resources=[spec.resources for spec in specs],
        eligible=[spec.eligible for spec in specs],
        classes=CLASSES,
    )


class PlacementTests(PolicyUnderTest):
    """Tests of placement."""

    def test_it_asks_only_for_machines_on_which_the_job_may_start(self) -> None:
        """Wide, memory-bound, GPU-bound and ineligible jobs, on machines of several sizes."""
        does_plan = self.policy.decides is Decides.PLAN  # then no job waits for another
        for discipline in DISCIPLINES[:1] if does_plan else DISCIPLINES:
            self._ask(discipline)

    def _ask(self, discipline: Discipline) -> None:
        started: set[str] = set()
        reasons: dict[str, str] = {}

        def keep(decision: Decision) -> None:
            job = workload.job_names[decision.job]
            reasons[job] = decision.reason
            if decision.action == START:
                started.add(job.partition(", no.")[0])

        workload = crowded_workload()
        GridRun(
            workload, [self.make()], keep, _UNTIL_S, discipline=discipline
        ).run()  # raises PolicyError that says which job was to start where, and what was left
        expect("plain" in started, f"no plain job was ever started under {discipline}")
        if self.policy.decides is Decides.PLAN:
            return  # it may give a job fewer CPUs than requested
        for job, reason in reasons.items():
            if job.partition(", no.")[0] in IMPOSSIBLE_KINDS:
                expect(
                    reason == IMPOSSIBLE,
                    f"{job} fits on no machine: right would be {IMPOSSIBLE!r}, not {reason!r}",
                )
