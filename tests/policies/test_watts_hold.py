"""The static rule: least watts, and a job that lost many hours is kept."""

from outrider.testing.fixtures import HandSite
from outrider_policies.rules.placements import WattsHold

HOUR_S = 3600.0


def lose(site: HandSite, hours: float) -> None:
    """The running job 0 works so long and is evicted."""
    site.now += hours * HOUR_S
    site.evict(0)


def test_hours_of_several_runs_add_up_until_the_job_is_held() -> None:
    site = HandSite(WattsHold, hold_after_h=10.0)
    site.machines(1)
    site.submit(0)
    assert site.tick() == [0]
    lose(site, 6.0)
    said = site.policy.explain(site.site.jobs[0], site.site)
    assert said.startswith("it lost 6.0 h in evicted runs so far; ")
    assert site.tick() == [0]
    lose(site, 4.5)
    assert site.tick() == []
    assert site.decision_log.rows[-1][2:6] == ("defer", -1, 0, "lost_hours")
    said = site.policy.explain(site.site.jobs[0], site.site)
    assert said == "deferred: it lost 10.5 h, at or above 10 h"


def test_others_run_while_one_is_held() -> None:
    site = HandSite(WattsHold, hold_after_h=1.0)
    site.machines(1)
    site.submit(0)
    site.tick()
    lose(site, 2.0)
    site.submit(1)
    assert site.tick() == [1]


def test_the_starvation_guard_bounds_the_hold() -> None:
    site = HandSite(WattsHold, hold_after_h=1.0, max_defer_s=2 * HOUR_S)
    site.machines(1)
    site.submit(0)
    site.tick()
    lose(site, 2.0)
    assert site.tick() == []
    assert site.tick(HOUR_S) == []
    assert site.tick(HOUR_S) == [0]


def test_the_machine_of_least_watts_is_taken() -> None:
    site = HandSite(WattsHold)
    site.machines(1, cluster="old", active_w=120.0)
    site.machines(1, cluster="new", active_w=60.0)
    site.submit(0)
    site.tick()
    assert site.starts == [(0, 1)]
