"""Each queue discipline starts jobs exactly when a plain second implementation does."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import nan
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider.api import Job, MachineSpec, Orders, Policy, SiteView
from outrider.formats.workload import Workload
from outrider.model.machines import Resources
from outrider.model.modes import DISCIPLINES, Discipline
from outrider.testing.fixtures import Asked, make_workload, started_at
from tests.engine.scheduling.plain_scheduler import CPUS, Needs, PlainScheduler
from tests.suite.examples import examples


class ArrivalOrder(Policy):
    """FCFS; the tightest machine."""

    name = "arrival_order"
    description = "for tests: first come, first served, on the tightest machine"


class ShortestFirst(Orders, Policy):
    """SJF; the tightest machine."""

    name = "shortest_first"
    description = "for tests: shortest estimate first, on the tightest machine"

    def order(self, job: Job, view: SiteView) -> float:
        """The estimate; who has none comes last."""
        return 1e300 if job.spec.estimate_s is None else job.spec.estimate_s


tens = st.integers(1, 8).map(lambda n: 10.0 * n)
estimates = st.one_of(st.none(), tens, st.just(nan))
jobs_to_run = st.lists(
    st.builds(Asked, st.integers(0, 16).map(lambda n: 5.0 * n), tens, st.integers(1, 8), estimates),
    min_size=1,
    max_size=14,
).map(lambda jobs: sorted(jobs, key=lambda job: job.submit_s))


def engines(workload: Workload, discipline: Discipline, shortest: bool) -> list[float]:
    """Return when each job starts; -1: never."""
    kind = ShortestFirst if shortest else ArrivalOrder
    found = started_at(workload, kind, discipline)
    return [found.get(name, -1.0) for name in workload.job_names]


def plain(
    machines: Sequence[Mapping[str, float]],
    jobs: Sequence[Asked],
    discipline: Discipline,
    shortest: bool,
    needs: Sequence[Needs] = (),
) -> list[float]:
    """The same by the second implementation."""
    found = PlainScheduler(machines, jobs, discipline, shortest, needs).run()
    return [-1.0 if start_s != start_s else start_s for start_s in found]


@pytest.mark.parametrize("shortest", [False, True], ids=["fcfs", "sjf"])
@pytest.mark.parametrize("machines", [(8,), (8, 4), (4, 6, 8)], ids=str)
@pytest.mark.parametrize("discipline", DISCIPLINES)
@settings(max_examples=examples(60))
@given(jobs=jobs_to_run)
def test_jobs_start_when_a_plain_implementation_starts_them(
    discipline: Discipline, machines: tuple[int, ...], shortest: bool, jobs: list[Asked]
) -> None:
    assert engines(make_workload(machines, jobs), discipline, shortest) == plain(
        [{CPUS: cpus} for cpus in machines], jobs, discipline, shortest
    )


CLASSES = {"first": [0], "later": [1, 2], "ends": [0, 2]}
"""Machines, of three, that each class of jobs may use."""


def few(*amounts: float) -> st.SearchStrategy[float | None]:
    """One of a few amounts, or nothing said."""
    return st.sampled_from([None, *amounts])


def resources(most: float) -> st.SearchStrategy[Resources]:
    """Memory, GPUs and licences, where up to `most` halves of a machine are usual."""
    return st.builds(
        lambda memory, gpus, licences: Resources(
            memory_mib=memory,
            gpus=gpus,
            named=() if licences is None else (("licence", licences),),
        ),
        few(100.0, 200.0, 100.0 * most),
        few(1.0, most),
        few(1.0, most),
    )


class Case(NamedTuple):
    """Machines with resources, and jobs that ask for some, of some of the machines."""

    machines: list[tuple[int, Resources]]
    jobs: list[tuple[Asked, Resources | None, str]]


wants = st.tuples(
    st.builds(Asked, st.integers(0, 8).map(lambda n: 5.0 * n), tens, st.integers(1, 4), estimates),
    st.one_of(st.none(), resources(2.0)),
    st.sampled_from(["", "", "", *CLASSES]),
)
cases = st.builds(
    Case,
    st.lists(st.tuples(st.integers(1, 6), resources(3.0)), min_size=3, max_size=3),
    st.lists(wants, min_size=1, max_size=12).map(
        lambda jobs: sorted(jobs, key=lambda j: j[0].submit_s)
    ),
)


def hold_against_plain(case: Case, discipline: Discipline, shortest: bool) -> None:
    """Compare the engine with the plain implementation on a case."""
    jobs = [job for job, _, _ in case.jobs]
    workload = replace(
        make_workload([cpus for cpus, _ in case.machines], jobs),
        machines=[MachineSpec(cpus=cpus, resources=has) for cpus, has in case.machines],
        resources=[asked for _, asked, _ in case.jobs],
        eligible=[kind for _, _, kind in case.jobs],
        classes=CLASSES,
    )
    machines = [{CPUS: cpus, **dict(has.amounts())} for cpus, has in case.machines]
    needs = [
        Needs(
            {} if asked is None else dict(asked.amounts()),
            frozenset(CLASSES[kind]) if kind else None,
        )
        for _, asked, kind in case.jobs
    ]
    assert engines(workload, discipline, shortest) == plain(
        machines, jobs, discipline, shortest, needs
    )


@pytest.mark.parametrize("shortest", [False, True], ids=["fcfs", "sjf"])
@pytest.mark.parametrize("discipline", DISCIPLINES)
@settings(max_examples=examples(40))
@given(case=cases)
def test_so_do_jobs_that_ask_for_memory_gpus_licences_and_certain_machines(
    discipline: Discipline, shortest: bool, case: Case
) -> None:
    hold_against_plain(case, discipline, shortest)


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_a_job_for_one_machine_alone_waits_in_turn_where_all_have_one_cpu(
    discipline: Discipline,
) -> None:
    """The first two run on m0, one after the other; the third could start on m1 immediately."""
    nothing = Resources()
    jobs = [(Asked(0.0, 50.0), "first"), (Asked(5.0, 50.0), "first"), (Asked(10.0, 50.0), "later")]
    case = Case([(1, nothing)] * 3, [(job, None, kind) for job, kind in jobs])
    hold_against_plain(case, discipline, shortest=False)


@pytest.mark.parametrize("discipline", ["strict", "easy", "easy_sjbf", "conservative"])
def test_who_may_pass_an_impossible_job_may_not_therefore_pass_the_next(
    discipline: Discipline,
) -> None:
    """The second fits nowhere; the third waits for all four CPUs, which the fourth would delay."""
    jobs = [Asked(0.0, 50.0, 3), Asked(1.0, 50.0, 9), Asked(2.0, 50.0, 4), Asked(3.0, 90.0, 1)]
    assert engines(make_workload([4], jobs), discipline, False) == [0.0, -1.0, 50.0, 100.0]
