"""Recomputation of derived state from jobs and machines after an internal error."""

from typing import Any

from outrider.engine.realign import realign
from outrider.model import events as ev
from outrider.testing.fixtures import HandSite
from outrider_policies.rules.placements import Fifo
from tests.engine.accounting.forecasters import Forecaster

HOUR_S = 3600.0


def lived() -> HandSite:
    """Five machines of 2 CPUs: full, half full, with an owner, free, gone; job 9 waits."""
    hand = HandSite(Fifo)
    hand.machines(2, 2, 2, 2, 2, cluster="lab")
    for job, (machine, cpus) in enumerate(((0, 2), (1, 1), (4, 1))):
        hand.submit(job, vo=f"vo{job}", cpus=cpus)
        hand.tell(ev.STARTED, job, (machine, cpus))
    hand.now += HOUR_S
    hand.tell(ev.OWNER_CAME, 2)
    hand.tell(ev.COMPLETED, 2)
    hand.tell(ev.LEFT, 4)
    hand.submit(9, cpus=64)
    return hand


def derived(hand: HandSite) -> dict[str, Any]:
    site = hand.site
    return {
        "busy": list(site.busy), "state": list(site.state), "free_n": list(site.free_n),
        "free_total": site.free_total, "open_cpus": site.open_cpus, "free": sorted(site.free_since),
        "members": [list(of) for of in site.members], "waiting": sorted(hand.runner.queue.waiting),
        "running": sorted(hand.runner.running),
    }  # fmt: skip


def align(hand: HandSite, *known: int) -> None:
    realign(hand.site, hand.engine.accounting, [hand.runner], set(known))


def test_a_site_without_a_fault_stays_as_it_is() -> None:
    hand = lived()
    before, since = derived(hand), dict(hand.site.free_since)
    align(hand, 0, 1, 9)
    assert derived(hand) == before
    assert dict(hand.site.free_since) == since
    assert before["busy"][:3] == [2, 1, 0]
    assert (before["free_n"], before["free"], before["waiting"]) == ([2], [1, 3], [9])
    assert before["members"] == [[0, 1, 2, 3]]


def test_whatever_was_miscounted_is_counted_anew() -> None:
    hand = lived()
    before, site = derived(hand), hand.site
    for m in range(5):
        site.busy[m] = 7
    site.free_n[0], site.free_total, site.open_cpus = 9, 44, 99
    site.free_since.clear()
    site.members[0][:] = [4, 4]
    hand.runner.dequeue(9, site)
    align(hand, 0, 1, 9)
    assert derived(hand) == before
    assert set(site.free_since.values()) == {hand.now}, "since when is not known: from now on"


def test_a_suspended_job_does_no_work_afterwards_either() -> None:
    delivered = []
    for is_aligned in (False, True):
        hand = lived()
        hand.tell(ev.SUSPENDED, 0)
        if is_aligned:
            align(hand, 0, 1, 9)
        hand.now += HOUR_S
        delivered.append(hand.engine.accounting.fairness.delivered_cpu_s(hand.now))
    assert delivered[0] == delivered[1] == 2 * HOUR_S + HOUR_S + HOUR_S + HOUR_S


def test_a_job_that_nobody_knows_any_more_is_taken_out_whole() -> None:
    hand = lived()
    align(hand, 1)
    assert set(hand.site.jobs) == {1}
    assert list(hand.site.busy)[:4] == [0, 1, 0, 0]
    assert sorted(hand.site.free_since) == [0, 1, 3]
    assert hand.runner.queue.waiting.keys() == set()
    assert hand.engine.accounting.removed == 2
    hand.submit(10, cpus=2)
    assert hand.tick() == [10]
    assert hand.site.jobs[10].machine in (0, 3)


def test_what_was_predicted_of_runs_that_nobody_knows_is_forgotten() -> None:
    hand = HandSite(Forecaster)
    hand.machines(1, 1)
    hand.site.index_runs()
    for job in (0, 1):
        hand.submit(job)
    assert sorted(hand.tick()) == [0, 1]
    predictions = hand.runner.predictions
    assert predictions is not None
    hand.runner.running[0] = hand.runner.running[1] = ("key", True)
    assert predictions.open.keys() == {0, 1}
    align(hand, 1)
    assert (set(predictions.open), set(hand.runner.running)) == ({1}, {1})
    assert hand.site.runs is not None
    assert [job.number for job in hand.site.running] == [1]


def test_a_policy_that_failed_is_left_as_it_is() -> None:
    hand = lived()
    hand.runner.strict = False
    hand.runner.fail(KeyError("x"))
    assert not hand.runner.queue.waiting
    align(hand, 0, 1, 9)
    assert not hand.runner.queue.waiting, "it is asked about nobody"
