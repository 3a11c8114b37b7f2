"""Short deadline jobs: immediately in a slot, or refused and in the queue with the rest."""

from typing import Any

import pytest

from outrider.api import ConfigurationError, build
from outrider.testing.fixtures import HandSite
from outrider_policies.rules.orders import SdjSettings, ShortDeadlineJobs
from tests.policies.views import reason_of


def played(*cpus: int, reserved_ratio: float = 0.0) -> HandSite:
    site = HandSite(ShortDeadlineJobs, reserved_ratio=reserved_ratio)
    site.machines(*cpus)
    return site


def submit(site: HandSite, job: int, job_class: str = "batch", **spec: Any) -> None:
    site.submit(job, job_class=job_class, **spec)


def test_batch_jobs_start_as_they_came_and_never_in_reserved_slots() -> None:
    site = played(1, 1, 1, 1, reserved_ratio=0.5)
    for job in range(4):
        submit(site, job)
    assert site.tick() == [0, 1]
    site.complete(0)
    assert site.tick(10.0) == [2]


def test_an_interactive_job_starts_at_once_in_a_reserved_slot() -> None:
    site = played(1, 1, reserved_ratio=0.5)
    submit(site, 0)
    submit(site, 1)
    assert site.tick() == [0]
    site.now += 10.0
    submit(site, 2, "interactive")
    assert site.tick() == [2], "it passes the batch job that waits"
    assert reason_of(site, 2) == "at_once"


def test_an_interactive_job_may_have_any_other_free_cpu() -> None:
    site = played(1, 1, reserved_ratio=0.5)
    submit(site, 0, "interactive")
    submit(site, 1, "interactive")
    assert site.tick() == [0, 1]


def test_interactive_jobs_that_run_fill_the_reserved_slots_first() -> None:
    site = played(1, 1, 1, 1, reserved_ratio=0.5)
    submit(site, 0, "interactive")
    submit(site, 1, "interactive")
    submit(site, 2)
    submit(site, 3)
    assert site.tick() == [0, 1, 2, 3], "no slot is empty that would have to stay so"


def test_a_refused_job_stands_behind_the_batch_jobs_that_came_before() -> None:
    site = played(1)
    submit(site, 0)
    assert site.tick() == [0]
    submit(site, 1)
    submit(site, 2, "interactive")
    submit(site, 3)
    assert site.tick() == []
    order = []
    for _ in range(3):
        site.complete(site.starts[-1][0])
        order += site.tick(60.0)
    assert order == [1, 2, 3]
    assert reason_of(site, 2) == "refused"


def test_a_refused_job_is_batch_and_keeps_out_of_reserved_slots() -> None:
    site = played(1, 1, reserved_ratio=0.5)
    submit(site, 0, "interactive")
    submit(site, 1, "interactive")
    site.tick()
    submit(site, 2, "interactive")
    assert site.tick(1.0) == []
    site.complete(0)
    assert site.tick(1.0) == [2], "the other slot is filled by an interactive job"
    site.complete(1)
    submit(site, 3)
    assert site.tick(1.0) == [3], "a refused job that runs is interactive still"


def test_nobody_passes_a_wide_batch_job_that_does_not_fit() -> None:
    site = played(4, reserved_ratio=0.25)
    submit(site, 0, cpus=2)
    submit(site, 1, cpus=2)
    submit(site, 2)
    assert site.tick() == [0]
    submit(site, 3, "interactive")
    assert site.tick(5.0) == [3]


def test_an_evicted_interactive_job_is_tried_at_once_again() -> None:
    site = played(1, 1)
    submit(site, 0, "interactive")
    site.tick()
    site.now += 5.0
    site.evict(0)
    assert site.tick() == [0]


@pytest.mark.parametrize("ratio", [-0.1, 1.1])
def test_a_share_is_between_0_and_1(ratio: float) -> None:
    with pytest.raises(ConfigurationError, match="reserved_ratio"):
        build(SdjSettings, {"reserved_ratio": ratio}, "site.toml [policies.sdj]")
