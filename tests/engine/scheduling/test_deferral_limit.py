"""Limit on how long a job is deferred: then the batch system starts it, not the policy."""

from math import inf
from typing import Any

import pytest

from outrider.api import NOWHERE, Choice, Job, Policy, SiteView
from outrider.engine.scheduling.deferral_limit import HANDED_BACK, DeferralLimit, HandBack
from outrider.model.decisions import DEFER
from outrider.plugins.finding import make_policy
from outrider.testing.fixtures import HandSite

HOUR_S = 3_600.0


class Keeps(Policy):
    """Never starts a job but on machine 0, which is the wide one."""

    name = "keeps"
    description = "for tests"
    api_version = 1

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        return Choice(0, "wide") if job.number == 9 else Choice(NOWHERE, "too_dear")


def site_with(longest_s: float, batch_system: str = "best_fit") -> HandSite:
    """A wide machine and a narrow one."""
    site = HandSite(Keeps)
    site.runner.hand_back = HandBack(longest_s, make_policy(batch_system, {}, 0, "test"))
    site.machines(4, 1)
    return site


def test_the_time_goes_on_while_the_policy_decides_otherwise_until_the_job_starts() -> None:
    limit: DeferralLimit[str] = DeferralLimit(100.0)
    assert limit.left_s("1", 50.0) == 100.0
    limit.keep("1", 50.0)
    limit.keep("1", 90.0)
    assert (limit.left_s("1", 90.0), limit.left_s("1", 150.0)) == (60.0, 0.0)
    assert limit.left_s("2", 150.0) == 100.0
    limit.end("1")
    assert limit.left_s("1", 150.0) == 100.0
    assert DeferralLimit[str](inf).left_s("1", 1e12) == inf


def test_a_job_kept_for_long_enough_starts_where_the_batch_system_likes() -> None:
    site = site_with(1.5 * HOUR_S)
    site.submit(1)
    assert site.tick() == []
    assert site.tick(HOUR_S) == []
    assert site.tick(0.5 * HOUR_S) == [1]
    assert site.starts == [(1, 1)], "the tightest machine, which is not the policy's"
    assert site.decision_log.rows[-1][5] == HANDED_BACK


def test_it_is_due_when_its_time_is_over_not_only_an_epoch_later() -> None:
    site = site_with(1.5 * HOUR_S)
    site.submit(1)
    site.tick()
    site.tick(HOUR_S)
    assert site.runner.queue.next_due_s() == 1.5 * HOUR_S


def test_after_an_eviction_its_time_begins_anew() -> None:
    site = site_with(HOUR_S)
    site.submit(1)
    site.tick()
    assert site.tick(HOUR_S) == [1]
    site.evict(1)
    assert site.tick(60.0) == []
    assert site.tick(HOUR_S) == [1]


def test_what_the_policy_starts_by_itself_is_left_to_it() -> None:
    site = site_with(0.0)
    site.submit(9)
    site.submit(1)
    site.tick()
    assert site.starts == [(9, 0), (1, 1)]
    assert [row[2] for row in site.decision_log.rows if row[2] == DEFER] == []


@pytest.mark.parametrize("batch_system", ["random_match", "multifactor", "survival"])
def test_a_batch_system_of_any_kind_starts_it(batch_system: str) -> None:
    site = site_with(HOUR_S, batch_system)
    site.submit(1)
    site.tick()
    assert site.tick(HOUR_S) == [1]
