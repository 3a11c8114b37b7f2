"""Users who kill sooner while their jobs wait: detection, and its effect on policies."""

import datetime as dt
import random
from collections.abc import Iterator
from math import log
from pathlib import Path

import numpy as np

from outrider.model import events as ev
from outrider.model.events import Event
from outrider.model.jobs import JobSpec
from outrider.replay.site_record import RecordedJob
from outrider.simulation.generators.campus import generate_campus
from outrider.twin.kill_clock import KillClock, KillsSeen, kills_by_clock
from outrider.twin.observed import observe
from outrider.twin.replicates import Outcome, simulate_pairs
from outrider.twin.twin_site import build_site
from tests.twin.sites import journal_of, make


def life(job: int, chance: random.Random, waiting: float, running: float) -> Iterator[Event]:
    """Simulate a job that waits and runs in turns, with a hazard of being killed in each."""
    now, waits = chance.uniform(0.0, 50.0), True
    yield now, ev.SUBMITTED, job, JobSpec(user=str(job))
    while True:
        turn_s = chance.expovariate(1.0)
        kill_s = chance.expovariate(waiting if waits else running)
        if kill_s < turn_s:
            yield now + kill_s, ev.REMOVED, job, "killed"
            return
        now += turn_s
        yield (now, ev.STARTED, job, (0, 1)) if waits else (now, ev.EVICTED, job, "owner")
        waits = not waits


def fitted(seed: int, waiting: float, running: float) -> KillClock:
    chance, seen = random.Random(seed), KillsSeen()
    events = [event for job in range(600) for event in life(job, chance, waiting, running)]
    for _ in seen.watch(sorted(events, key=lambda event: event[0])):
        pass
    clock = seen.fit(1e6)
    assert clock is not None
    return clock


def test_the_ratio_of_hazards_is_found_and_its_error_is_honest() -> None:
    true = log(4.0)
    clocks = [fitted(seed, 0.4, 0.1) for seed in range(20)]
    off = [(clock.log_hazard_ratio - true) / clock.error for clock in clocks]
    assert all(clock.is_uneven for clock in clocks)
    assert abs(float(np.mean(off))) < 1.0
    assert 0.5 < float(np.std(off)) < 1.6


def test_users_who_do_not_mind_waiting_have_an_even_clock() -> None:
    assert sum(fitted(seed, 0.2, 0.2).is_uneven for seed in range(20, 40)) <= 2


def test_too_few_kills_tell_nothing() -> None:
    seen = KillsSeen()
    assert [*seen.watch([(0.0, ev.SUBMITTED, 0, JobSpec()), (5.0, ev.REMOVED, 0, "killed")])]
    assert seen.fit(10.0) is None


def test_a_kill_comes_when_the_clock_shows_what_it_showed() -> None:
    """The recorded job waited 10 s and ran 10 s; simulated, it runs from the first second."""
    job = RecordedJob("1", JobSpec(), 100.0)
    job.ran_s = 10.0
    clock = KillClock(log(3.0), 0.1, 99, 99)
    killed = kills_by_clock(clock, [job], np.array([100.0]), np.array([120.0]), np.array([20.0]))
    assert killed.tolist() == [140.0]
    again = kills_by_clock(clock, [job], np.array([100.0]), np.array([120.0]), np.array([10.0]))
    assert again.tolist() == [120.0]


def test_by_the_clock_the_incumbent_is_as_it_was_and_a_policy_that_defers_is_not(
    tmp_path: Path,
) -> None:
    campus = generate_campus(9, weeks=3, machines=50, clusters=2, start=dt.date(2010, 2, 1))
    seen = observe(journal_of(campus, tmp_path))
    clock = seen.kill_clock
    assert clock is None or not clock.is_uneven  # a generated campus kills by the calendar
    site = build_site(seen, dt.UTC).site
    assert site.clock is None
    impatient = site._replace(clock=KillClock(log(5.0), 0.1, 99, 99))
    pairs = simulate_pairs(impatient, ["random_match", "survival"], make, 2, 1)
    assert pairs.by_clock is not None

    def wasted_s(policy: str, which: dict[str, list[Outcome]]) -> float:
        return float(np.mean([outcome.total.badput_s for outcome in which[policy]]))

    incumbent = wasted_s("random_match", pairs.by_clock) / wasted_s("random_match", pairs.fixed)
    assert abs(incumbent - 1.0) < 0.03
    # what defers jobs lets them wait, and users who mind that kill them before they waste as much
    assert wasted_s("survival", pairs.by_clock) < 0.97 * wasted_s("survival", pairs.fixed)
