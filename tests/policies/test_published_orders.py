"""Published orders of a queue: wfp3 and unicep, which change while jobs wait, and f1."""

from math import log2, log10

import pytest

from outrider.api import Policy
from outrider.model.events import TICK
from outrider.model.jobs import Job, JobSpec
from outrider.model.modes import STRICT
from outrider.testing.fixtures import HandSite
from outrider_policies.rules.orders import F1, Unicep, Wfp3


def drained(site: HandSite, jobs: int, each_s: float = 1.0) -> list[int]:
    """Let one machine work the queue off; the order in which jobs ran."""
    order: list[int] = []
    for _ in range(jobs):
        (job,) = site.tick(each_s)
        order.append(job)
        site.complete(job)
    return order


def busy(kind: type[Policy], cpus: int = 1) -> HandSite:
    """A site whose one machine is taken by job 99."""
    site = HandSite(kind, STRICT)
    site.machines(cpus)
    site.submit(99, cpus=cpus, estimate_s=1.0)
    assert site.tick() == [99]
    return site


@pytest.mark.parametrize("kind", [Wfp3, Unicep])
def test_who_waited_longest_for_what_it_asked_comes_first(kind: type[Policy]) -> None:
    site = busy(kind)
    site.submit(0, estimate_s=5000.0)
    site.tick(100.0)
    site.submit(1, estimate_s=1000.0)
    site.submit(2, estimate_s=10.0)
    site.tick(20.0)  # waits over estimates: 0: .024, 1: .02, 2: 2.0
    site.complete(99)
    assert drained(site, 3, each_s=0.0) == [2, 0, 1]


@pytest.mark.parametrize("kind", [Wfp3, Unicep])
def test_the_order_changes_while_jobs_wait(kind: type[Policy]) -> None:
    site = busy(kind)
    site.submit(0, estimate_s=400.0)
    site.tick(100.0)
    site.submit(1, estimate_s=100.0)
    site.tick(20.0)  # .3 against .2
    site.complete(99)
    assert site.tick() == [0]
    site = busy(kind)
    site.submit(0, estimate_s=400.0)
    site.tick(100.0)
    site.submit(1, estimate_s=100.0)
    site.tick(50.0)  # .375 against .5
    site.complete(99)
    assert site.tick() == [1]


def test_wfp3_multiplies_the_cube_by_the_cpus() -> None:
    site = busy(Wfp3, cpus=8)
    site.submit(0, estimate_s=100.0, cpus=8)
    site.submit(1, estimate_s=55.0, cpus=1)  # (100/55)^3 = 6.01 of it, against 8
    site.submit(2, estimate_s=45.0, cpus=1)  # (100/45)^3 = 10.97
    site.tick(50.0)
    site.complete(99)
    assert site.tick() == [2]
    site.complete(2)
    assert site.tick() == [0]


def test_wfp3_says_how_long_it_waited_and_what_that_makes() -> None:
    hand = HandSite(Wfp3)
    hand.now = 500.0
    hand.tell(TICK, 0)
    spec = JobSpec(cpus=2, estimate_s=100.0)
    assert hand.policy.explain(Job(0, spec, 0.0), hand.site) == (
        "it has waited 5.00 times its estimated run time; its priority is that cubed, times 2 "
        "CPUs: 250; jobs of higher priority start before it"
    )
    unsaid = hand.policy.explain(Job(0, JobSpec(), 0.0), hand.site)
    assert unsaid == "it has no estimated run time: it starts after all jobs that have one"


def test_unicep_says_what_its_wait_is_worth() -> None:
    hand = HandSite(Unicep)
    hand.now = 500.0
    hand.tell(TICK, 0)

    def said(spec: JobSpec) -> str:
        told: str = hand.policy.explain(Job(0, spec, 0.0), hand.site)
        return told

    assert said(JobSpec(cpus=8, estimate_s=100.0)) == (
        "its priority, wait / (log2(CPUs) x estimated run time), is 1.67; jobs of higher priority "
        "start before it"
    )
    assert " is 5; " in said(JobSpec(cpus=1, estimate_s=100.0)), "one CPU counts as two"
    assert " is 500; " in said(JobSpec(cpus=2, estimate_s=0.1)), "and no time as a second"
    assert said(JobSpec()).startswith("it has no estimated run time")


def test_unicep_divides_by_the_logarithm_of_the_cpus() -> None:
    site = busy(Unicep, cpus=16)
    site.submit(0, estimate_s=100.0, cpus=16)  # 400
    site.submit(1, estimate_s=190.0, cpus=4)  # 380
    site.submit(2, estimate_s=410.0, cpus=2)  # 410
    site.tick(50.0)
    site.complete(99)
    assert drained(site, 1) == [1]
    assert log2(16) * 100.0 == 400.0


def test_under_unicep_a_serial_job_counts_as_one_of_two_cpus() -> None:
    site = busy(Unicep, cpus=2)
    site.submit(0, estimate_s=100.0, cpus=2)
    site.submit(1, estimate_s=101.0, cpus=1)
    site.submit(2, estimate_s=99.0, cpus=1)
    site.tick(50.0)
    site.complete(99)
    assert site.tick() == [2]
    site.complete(2)
    assert site.tick() == [0]


def test_f1_is_the_papers_sum() -> None:
    site = HandSite(F1)
    site.submit(0, estimate_s=1000.0, cpus=4)
    site.tick(100.0)
    site.submit(1, estimate_s=10_000.0, cpus=3)
    job = site.site.jobs[1]
    assert site.policy.order(job, site.site) == pytest.approx(3 * log10(10_000) + 870 * log10(100))
    assert f"{12 + 870 * 2:.1f}" in site.policy.explain(job, site.site)


def test_under_f1_a_narrow_short_job_overtakes_a_wide_long_one_that_came_a_little_before() -> None:
    site = busy(F1, cpus=64)
    site.tick(100_000.0)
    site.submit(0, estimate_s=100_000.0, cpus=64)  # 5 x 64 = 320
    site.tick(60.0)
    site.submit(1, estimate_s=10.0, cpus=1)  # 1, and 870 log10(100,060/100,000) = .23
    site.tick(3600.0)
    site.submit(2, estimate_s=10.0, cpus=1)
    site.complete(99)
    assert site.tick() + site.tick() == [1, 2]


def test_f1_counts_arrivals_from_the_first_job_it_saw_also_after_a_restart() -> None:
    site = HandSite(F1)
    site.now = 1.7e9  # a clock of a daemon, not of a trace
    site.submit(0, estimate_s=10.0)
    site.tick(1000.0)
    site.submit(1, estimate_s=10.0)
    first, second = (site.policy.order(site.site.jobs[n], site.site) for n in (0, 1))
    assert second - first == pytest.approx(870 * 3)
    again = HandSite(F1).policy
    again.restore(site.policy.save(site.site), site.site)
    assert again.order(site.site.jobs[1], site.site) == second


def test_f1_refuses_a_state_that_is_none() -> None:
    site = HandSite(F1)
    with pytest.raises(ValueError, match="begin_s 'noon'"):
        site.policy.restore({"begin_s": "noon"}, site.site)


@pytest.mark.parametrize("kind", [Wfp3, Unicep, F1])
def test_jobs_without_an_estimate_come_last_by_age(kind: type[Policy]) -> None:
    site = busy(kind)
    site.submit(0)
    site.tick(5000.0)
    site.submit(1)
    site.submit(2, estimate_s=1e6)
    site.tick(1.0)
    site.complete(99)
    assert "no estimated run time" in site.policy.explain(site.site.jobs[0], site.site)
    assert drained(site, 3) == [2, 0, 1]


@pytest.mark.parametrize("kind", [Wfp3, Unicep, F1])
def test_an_estimate_of_nothing_is_taken_for_a_second(kind: type[Policy]) -> None:
    site = busy(kind)
    site.submit(0, estimate_s=0.0)
    site.submit(1, estimate_s=2.0)
    site.tick(10.0)
    site.complete(99)
    assert drained(site, 2) == [0, 1]


@pytest.mark.parametrize("kind", [Wfp3, Unicep, F1])
def test_it_says_what_its_place_in_line_is_made_of(kind: type[Policy]) -> None:
    site = busy(kind)
    site.submit(0, estimate_s=100.0)
    site.tick(150.0)
    said = site.policy.explain(site.site.jobs[0], site.site)
    assert "start before it" in said
