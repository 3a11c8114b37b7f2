"""The survival index on a site played by hand: where it starts, what it keeps, what it says."""

import random
import re
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from outrider.api import COMPLETED_RUN, EVICTED_RUN, NOWHERE, Job, JobSpec, Outcome
from outrider.model import events as ev
from outrider.model.decisions import Decision
from outrider.testing.fixtures import HandSite, KeptDecisions
from outrider_policies.survival import Survival
from outrider_policies.survival.policy import _before_reboot

HOUR_S = 3600.0
WEEK_S = 604_800.0


def site_of(clusters: dict[str, tuple[int, float | None]], **settings: Any) -> HandSite:
    """A site of clusters: machines and watts of each."""
    hand = HandSite(Survival, **settings)
    for name, (machines, watts) in clusters.items():
        hand.machines(*[1] * machines, cluster=name, active_w=watts)
    return hand


def place_of(hand: HandSite, job: int) -> str:
    return hand.site.cluster_names[hand.site.cluster_of(hand.site.jobs[job].machine)]


def live_through(hand: HandSite, jobs: int, run_s: float, first: int = 100) -> None:
    """Jobs that all complete after the same time, one after another."""
    for job in range(first, first + jobs):
        hand.submit(job)
        assert hand.tick() == [job]
        hand.now += run_s
        hand.complete(job)


def lose_a_run(hand: HandSite, job: int, run_s: float) -> None:
    assert hand.tick() == [job]
    hand.now += run_s
    hand.evict(job)


def test_while_nothing_is_known_it_takes_the_lowest_watts_and_unknown_ones_last() -> None:
    hand = site_of({"old": (1, 150.0), "dark": (1, None), "new": (1, 57.0), "lab": (1, 114.0)})
    for job in range(4):
        hand.submit(job)
    hand.tick()
    assert [place_of(hand, job) for job in range(3)] == ["new", "lab", "old"]
    assert place_of(hand, 3) == "dark"


def test_watts_need_not_be_known_of_any_machine() -> None:
    hand = site_of({"a": (2, None), "b": (1, None)})
    live_through(hand, 30, HOUR_S)
    hand.submit(0)
    assert hand.tick() == [0]


def test_a_thrifty_cluster_is_left_for_one_whose_owners_stay_away() -> None:
    hand = site_of({"busy": (3, 57.0), "quiet": (3, 70.0)})
    for _ in range(24 * 28):  # owners of the busy room come every other hour and stay for one
        for machine in range(3):
            hand.tell(ev.OWNER_CAME, machine)
        hand.now += HOUR_S
        for machine in range(3):
            hand.tell(ev.OWNER_WENT, machine)
            hand.tell(ev.USABLE, machine)
        hand.now += HOUR_S
        hand.submit(1)
        hand.tick()
        hand.tell(ev.REMOVED, 1, "removed")
    hand.submit(0)
    hand.tick()
    assert place_of(hand, 0) == "quiet"


def test_energy_is_told_in_kilowatt_hours_where_it_is_much() -> None:
    hand = site_of({"a": (1, 5_710.0)})
    live_through(hand, 50, HOUR_S)
    hand.submit(0)
    said = hand.policy.explain(hand.site.jobs[0], hand.site)
    told = re.search(r"([0-9.]+) kWh per completion", said)
    assert told is not None, said
    assert 10.0 < float(told[1]) < 20.0
    assert float(told[1]) % 1.0, "three digits"


def test_a_job_that_lost_more_than_any_job_needs_is_kept_and_later_tried_again() -> None:
    hand = site_of({"a": (3, 57.0)})
    live_through(hand, 300, HOUR_S)
    for job in range(10):  # a few that never end, and are removed after a while
        hand.submit(job)
        lose_a_run(hand, job, HOUR_S)
        hand.now += HOUR_S
        hand.tell(ev.REMOVED, job, "killed")
    hand.now += 12 * HOUR_S
    hand.submit(99)
    lose_a_run(hand, 99, 9 * HOUR_S)
    assert hand.tick() == [], "started a job that is surely bad"
    said = hand.policy.explain(hand.site.jobs[99], hand.site)
    assert "deferred: its longest lost run took 9.0 h" in said
    waited_s = 0.0
    while not hand.tick(HOUR_S):
        waited_s += HOUR_S
        assert waited_s < 8 * WEEK_S, "never tried again"
    assert waited_s > 6 * HOUR_S


def test_the_starvation_guard_bounds_every_hold() -> None:
    hand = site_of({"a": (3, 57.0)}, worth_ratio=1e-6, max_defer_s=5 * HOUR_S)
    hand.submit(0)
    assert hand.tick() == []
    for _ in range(4):
        assert hand.tick(HOUR_S) == []
    assert hand.tick(HOUR_S) == [0]


def storm(hand: HandSite, holes: set[int], minutes: int, rng: random.Random) -> list[int]:
    """Submit a job for every machine, then one each other minute; return each start's machine.

    Each job runs about 20 minutes, but a hole evicts it after half a minute.
    """
    ends: dict[int, float] = {}
    chosen = []
    for job in range(len(hand.site.specs)):
        hand.submit(job)
    for minute in range(minutes):
        if minute % 2 == 0:
            hand.submit(10_000 + int(hand.now))
        for half in (30.0, 30.0):
            for job in hand.tick(half):
                machine = hand.site.jobs[job].machine
                chosen.append(machine)
                run_s = 30.0 if machine in holes else rng.uniform(900.0, 1500.0)
                ends[job] = hand.now + run_s
            for job in [job for job, end_s in ends.items() if end_s <= hand.now]:
                del ends[job]
                machine = hand.site.jobs[job].machine
                hand.evict(job) if machine in holes else hand.complete(job)
    for job in list(hand.site.jobs):
        hand.tell(ev.REMOVED, job, "removed")
    return chosen


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_black_holes_are_avoided_after_their_first_evictions(seed: int) -> None:
    """3 of 30 hosts evict every job within half a minute, as real pools have seen."""
    rng = random.Random(seed)
    hand = site_of({"pool": (30, None)})
    holes = set(rng.sample(range(30), 3))
    chosen = storm(hand, holes, 24 * 60, rng)
    visits = [sum(machine == hole for machine in chosen) for hole in holes]
    assert max(visits) <= 5, f"visits of each hole, of {len(chosen)} starts: {visits}"
    assert all(visit >= 1 for visit in visits), "a hole that was never met proves nothing"


def test_a_black_hole_is_given_another_chance_when_it_is_forgotten() -> None:
    rng = random.Random(4)
    hand = site_of({"pool": (3, None)})
    storm(hand, {1}, 6 * 60, rng)
    frailty = hand.policy._hosts.frailties
    assert frailty[1] > 1.5 * max(frailty[0], frailty[2])
    for week in range(40):
        hand.now += WEEK_S
        live_through(hand, 1, HOUR_S, first=week)
    frailty = hand.policy._hosts.frailties
    assert frailty[1] < 1.2, "mended long ago, and still thought a hole"


def test_an_eviction_is_believed_at_once_and_completed_runs_within_six_hours() -> None:
    """Check with machines known by runs alone: a busy pool must not estimate at every end."""
    hand = site_of({"pool": (2, None)})
    live_through(hand, 20, HOUR_S)

    def chance() -> float:
        hand.submit(0)
        predicted = hand.policy.predict(hand.site.jobs[0], 0, hand.site)
        hand.tell(ev.REMOVED, 0, "removed")
        assert predicted is not None
        ratio: float = predicted[0]
        return ratio

    hand.now += HOUR_S - hand.now % HOUR_S + 60.0  # the hour has begun
    before = chance()
    live_through(hand, 10, 60.0, first=200)
    assert chance() == before
    hand.submit(300)
    lose_a_run(hand, 300, 60.0)
    hand.tell(ev.REMOVED, 300, "removed")
    evicted = chance()
    assert evicted > before
    live_through(hand, 10, HOUR_S, first=400)
    assert chance() < evicted


def outcomes(policy: Survival, hand: HandSite, on_policy: bool) -> dict[str, Any]:
    """Return what it learned from the same ends of runs, chosen by itself or by another."""
    view = hand.site
    for number in range(200):
        hand.site.now = number * 900.0
        job = Job(number, JobSpec(), hand.site.now - 60.0)
        key = policy.group_key(job, view)
        policy.evaluate_group(key, view)
        ending = EVICTED_RUN if number % 3 == 0 else COMPLETED_RUN
        reason = "owner" if number % 3 == 0 else ""
        start_s = hand.site.now - 600.0
        policy.observe(
            Outcome(number, key, number % 4, 0, start_s, hand.site.now, 600.0, ending, reason),
            view,
            on_policy,
        )
    return policy.save(view)


def test_what_it_learns_does_not_depend_on_who_chose() -> None:
    learned = []
    for on_policy in (True, False):
        hand = site_of({"a": (4, 57.0)})
        assert isinstance(hand.policy, Survival)
        learned.append(outcomes(hand.policy, hand, on_policy))
    assert learned[0] == learned[1]


def test_an_owner_who_is_seen_and_evicts_is_counted_once() -> None:
    """Return where owners are seen, an eviction by one is the same news as the log-in."""

    def frailty_after(evicted: bool) -> float:
        hand = site_of({"a": (2, 57.0)})
        hand.tell(ev.OWNER_CAME, 1)
        hand.tell(ev.OWNER_WENT, 1)
        hand.submit(0)
        hand.now += 2 * HOUR_S
        assert hand.tick() == [0]
        machine = hand.site.jobs[0].machine
        hand.now += 600.0
        hand.tell(ev.OWNER_CAME, machine)
        hand.evict(0) if evicted else hand.complete(0)
        hand.now += 12 * HOUR_S
        hand.tell(ev.OWNER_WENT, machine)
        frailty: float = hand.policy._hosts.frailty.interruptions[machine]
        return frailty

    assert frailty_after(evicted=True) == pytest.approx(frailty_after(evicted=False))


def test_a_prediction_is_asked_for_any_machine_and_teaches_nothing() -> None:
    hand = site_of({"a": (3, 57.0), "b": (2, 100.0)})
    live_through(hand, 2000, HOUR_S)
    hand.submit(0)
    job, policy = hand.site.jobs[0], hand.policy
    assert policy.predict(job, 4, hand.site) is not None
    before = msgspec.msgpack.encode(policy.save(hand.site))
    for machine in range(5):
        prediction = policy.predict(job, machine, hand.site)
        assert prediction is not None
        chance, run_s = prediction
        assert chance is not None
        assert run_s is not None
        assert 0.0 <= chance <= 1.0
        assert 0.5 * HOUR_S < run_s < 2 * HOUR_S, "all completions took an hour"
    assert msgspec.msgpack.encode(policy.save(hand.site)) == before
    assert policy.predict(job, 77, hand.site) is None


def test_machines_that_join_later_are_used_and_those_that_left_are_not() -> None:
    hand = site_of({"a": (1, 57.0)})
    live_through(hand, 5, HOUR_S)
    hand.machines(1, cluster="b", active_w=40.0)
    hand.tell(ev.LEFT, 0)
    hand.submit(0)
    assert hand.tick() == [0]
    assert place_of(hand, 0) == "b"
    job = hand.site.jobs[0]
    assert hand.policy.predict(job, 1, hand.site) is not None
    assert hand.policy.predict(job, 0, hand.site) is None, "it left"


def test_its_heat_map_has_a_row_for_each_cluster_and_a_column_for_each_hour() -> None:
    hand = site_of({"a": (1, 57.0), "b": (1, 57.0)})
    live_through(hand, 5, HOUR_S)
    heat = hand.policy.learned(hand.site)
    assert heat is not None
    assert [row["label"] for row in heat["rows"]] == ["a", "b"]
    assert all(len(row["values"]) == len(heat["columns"]) == 24 for row in heat["rows"])


def test_a_job_whose_submission_nobody_saw_is_decided_too() -> None:
    hand = site_of({"a": (1, 57.0)})
    hand.submit(0, seen_submit=False)
    assert hand.tick() == [0]
    hand.tell(ev.REMOVED, 0, "removed")
    gone = Outcome(55, (), NOWHERE, NOWHERE, 0.0, 0.0, 0.0, "removed", "removed")
    assert hand.policy.observe(gone, hand.site, True) == ()


def test_what_ends_on_the_second_of_two_new_machines_is_counted_at_once() -> None:
    hand = site_of({"a": (1, 57.0)})
    live_through(hand, 3, HOUR_S)
    hand.machines(1, 1, cluster="a", active_w=57.0)
    late = Outcome(7, 0, 2, 0, hand.now - 60.0, hand.now, 60.0, EVICTED_RUN, "unknown")
    hand.policy.observe(late, hand.site, False)
    hosts = hand.policy.save(hand.site)["hosts"]
    assert hosts["evicted_this_hour"] == [2]
    assert len(hosts["frailties"]) == 3


def test_a_machine_that_came_and_went_within_the_hour_does_no_harm() -> None:
    hand = site_of({"a": (1, 57.0)})
    live_through(hand, 3, HOUR_S)
    hand.machines(1, cluster="b", active_w=40.0)
    hand.tell(ev.OWNER_CAME, 1)
    hand.tell(ev.LEFT, 1)
    late = Outcome(
        7, 0, 2, 1, hand.now - 60.0, hand.now, 60.0, EVICTED_RUN, "unknown"
    )  # nobody had told of machine 2
    hand.policy.observe(late, hand.site, False)
    hand.now += 2 * HOUR_S
    hand.submit(0)
    assert hand.tick() == [0]
    assert place_of(hand, 0) == "a"


def test_a_decision_shows_the_four_cheapest_clusters_that_have_a_free_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watts = {"e": 150.0, "a": 50.0, "f": 170.0, "c": 90.0, "b": 70.0, "d": 110.0}
    decisions: list[Decision] = []
    monkeypatch.setattr(KeptDecisions, "decided", lambda _, decision: decisions.append(decision))
    hand = site_of({name: (1, w) for name, w in watts.items()})
    for job, cheapest in enumerate(["abcd", "bcde", "cdef", "def"]):
        hand.submit(job)
        assert hand.tick() == [job]
        assert "".join(decisions[-1].scores or {}) == cheapest


@pytest.mark.parametrize(
    ("now_s", "week_s", "reboot_s", "said"),
    [
        (100.0, 0.0, 100.0 + 4 * HOUR_S, " before 04:00"),
        (0.0, 3 * 24 * HOUR_S + 22 * HOUR_S, 5.5 * HOUR_S, " before 03:30"),
        (0.0, 0.0, float("inf"), ""),
    ],
)
def test_the_hour_of_the_next_reboot_is_that_of_the_sites_clock(
    now_s: float, week_s: float, reboot_s: float, said: str
) -> None:
    view: Any = SimpleNamespace(
        now=now_s, week_second=lambda: week_s, next_reboot_s=lambda: reboot_s
    )
    assert _before_reboot(view) == said
