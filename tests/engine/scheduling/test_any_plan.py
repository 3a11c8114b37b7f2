"""Arbitrary plans of a policy: no CPU given twice, no work lost, and the accounting agrees."""

import random
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider.api import (
    PREEMPT,
    RESUME,
    SHRINK,
    START,
    SUSPENDED_STATE,
    Job,
    Move,
    Plans,
    Policy,
    Queue,
    SiteView,
)
from outrider.model.decisions import Decision
from outrider.model.events import COMPLETED, RESIZED, RESUMED, STARTED, SUSPENDED
from outrider.model.modes import DISCIPLINES, Discipline
from outrider.replay.grid_run import GridRun
from outrider.testing.fixtures import Asked, make_workload
from tests.suite.examples import examples

MACHINES = (4, 2, 1)


class Whim(Plans, Policy):
    """Starts, shrinks, grows, preempts and resumes by the toss of a coin."""

    name = "whim"
    description = "for tests: any plan that is possible"
    preempts_left = 40  # else it might never let anybody finish

    def plan(self, queue: Queue, view: SiteView) -> Iterator[Move]:
        """Moves that are possible together."""
        left = {m: view.cpus_left(m) for m in range(view.machines_n)}
        chance = self.rng.random
        for machine in left:
            for job in list(view.running_on(machine)):
                if self.preempts_left and chance() < 0.2:
                    self.preempts_left -= 1
                    left[machine] += job.cpus
                    yield Move(PREEMPT, job.number, machine, 0, "whim")
                elif job.cpus < job.spec.cpus and left[machine] and chance() < 0.5:
                    left[machine] -= 1
                    yield Move(SHRINK, job.number, machine, job.cpus + 1, "whim")
        for job in queue.jobs:
            yield from self._place(job, left)

    def _place(self, job: Job, left: dict[int, int]) -> Iterator[Move]:
        asked = job.spec.cpus
        if job.state == SUSPENDED_STATE:
            if left[job.machine]:
                cpus = min(asked, left[job.machine])
                left[job.machine] -= cpus
                yield Move(RESUME, job.number, job.machine, cpus, "whim")
            return
        wide = [m for m, cpus in left.items() if cpus and (cpus >= asked or MACHINES[m] < asked)]
        if wide:
            machine = self.rng.choice(wide)
            cpus = min(asked, left[machine])
            left[machine] -= cpus
            action = START if cpus == asked else SHRINK
            yield Move(action, job.number, machine, cpus, "whim")


jobs_of_chance = st.lists(
    st.builds(
        Asked,
        submit_s=st.integers(0, 50).map(float),
        run_s=st.integers(1, 30).map(float),
        cpus=st.integers(1, 4),
        estimate_s=st.none(),
        job_class=st.just("batch"),
        vo=st.just("all"),
    ),
    min_size=1,
    max_size=12,
).map(lambda jobs: sorted(jobs, key=lambda job: job.submit_s))


@settings(max_examples=examples(60))
@given(jobs=jobs_of_chance, seed=st.integers(0, 1000))
def test_any_plan_keeps_to_the_machines_and_does_the_work(jobs: list[Asked], seed: int) -> None:
    policy = Whim(Whim.settings_type(), random.Random(seed))
    run = GridRun(make_workload(MACHINES, jobs), [policy], lambda *row: None)
    used: Counter[int] = Counter()
    on: dict[int, tuple[int, int]] = {}
    cpu_s, last_s = 0.0, 0.0
    for time_s, kind, job, extra in run.stream():
        cpu_s += sum(used.values()) * (time_s - last_s)
        last_s = time_s
        if kind in (SUSPENDED, COMPLETED, RESIZED, RESUMED) and job in on:
            machine, cpus = on.pop(job)
            used[machine] -= cpus
            on_again = (machine, extra) if kind == RESIZED else None
        else:
            on_again = None
        if kind in (STARTED, RESUMED):
            on_again = extra
        if on_again is not None:
            on[job] = on_again
            used[on_again[0]] += on_again[1]
        assert all(used[m] <= cpus for m, cpus in enumerate(MACHINES)), f"at {time_s:g} s"
    report = run.run()
    assert report["jobs"]["completed"] == len(jobs)
    work = sum(job.run_s * job.cpus for job in jobs)
    assert report["goodput_s"] == pytest.approx(work), "on fewer CPUs it is the same work"
    assert cpu_s == pytest.approx(work), "and no CPU was busy for anything else"
    assert run.site.free_total == len(MACHINES)


@settings(max_examples=examples(15))
@given(jobs=jobs_of_chance, seed=st.integers(0, 1000))
def test_a_plan_is_carried_out_alike_under_every_discipline(jobs: list[Asked], seed: int) -> None:
    """The result lets the conformance suite call a planning policy under one discipline only."""

    def decided(discipline: Discipline) -> list[Decision]:
        policy = Whim(Whim.settings_type(), random.Random(seed))
        rows: list[Decision] = []
        GridRun(
            make_workload(MACHINES, jobs), [policy], rows.append, discipline=discipline
        ).run()  # fmt: skip
        return rows

    first, *others = (decided(discipline) for discipline in DISCIPLINES)
    assert first
    assert all(other == first for other in others)
