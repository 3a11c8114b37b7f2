"""Each queue discipline starts jobs exactly when a plain second implementation does."""

from collections.abc import Sequence
from math import nan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider.api import Job, Orders, Policy, SiteView
from outrider.model.disciplines import DISCIPLINES, Discipline
from outrider.testing.hand_workload import Asked, make_workload, started_at
from tests.engine.scheduling.plain_scheduler import PlainScheduler


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


def engines(
    machines: Sequence[int], jobs: Sequence[Asked], discipline: Discipline, shortest: bool
) -> list[float]:
    kind = ShortestFirst if shortest else ArrivalOrder
    found = started_at(make_workload(machines, jobs), kind, discipline)
    return [found.get(f"j{number}", -1.0) for number in range(len(jobs))]


def plain(
    machines: Sequence[int], jobs: Sequence[Asked], discipline: Discipline, shortest: bool
) -> list[float]:
    told = PlainScheduler(machines, jobs, discipline, shortest).run()
    return [-1.0 if start_s != start_s else start_s for start_s in told]


@pytest.mark.parametrize("shortest", [False, True], ids=["fcfs", "sjf"])
@pytest.mark.parametrize("machines", [(8,), (8, 4), (4, 6, 8)], ids=str)
@pytest.mark.parametrize("discipline", DISCIPLINES)
@settings(max_examples=60, deadline=None)
@given(jobs=jobs_to_run)
def test_jobs_start_when_a_plain_implementation_starts_them(
    discipline: Discipline, machines: tuple[int, ...], shortest: bool, jobs: list[Asked]
) -> None:
    assert engines(machines, jobs, discipline, shortest) == plain(
        machines, jobs, discipline, shortest
    )
