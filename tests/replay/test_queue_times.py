"""Waiting seconds by reason, counted once for all jobs, compared with counting job by job."""

import random

import numpy as np
import pytest

from outrider.replay.job_table import (
    BEHIND,
    DEFERRED,
    IMPOSSIBLE,
    NO_MACHINE,
    REASONS,
    TOO_WIDE,
    QueueTimes,
)

JOBS = 12


class OneByOne:
    """Expected result: at every step each queued job is checked for what it waits for."""

    def __init__(self) -> None:
        self.waited_s = np.zeros((JOBS, len(REASONS)))
        self.queued: dict[int, tuple[int, bool]] = {}
        self.chosen: dict[int, int | None] = {}

    def pass_time(self, seconds: float, widest: int, fitting: set[int]) -> None:
        for job, (cpus, is_bound) in self.queued.items():
            chosen = self.chosen.get(job)
            if chosen == IMPOSSIBLE:
                why = IMPOSSIBLE
            elif widest == 0:
                why = NO_MACHINE
            elif chosen == DEFERRED:
                why = DEFERRED
            elif job in fitting if is_bound else cpus <= widest:
                why = BEHIND
            else:
                why = TOO_WIDE
            self.waited_s[job, why] += seconds


@pytest.mark.parametrize("seed", range(20))
def test_each_job_has_the_seconds_it_would_have_if_it_were_asked_at_every_step(seed: int) -> None:
    rng = random.Random(seed)
    times, slow = QueueTimes(JOBS, BEHIND), OneByOne()
    for _ in range(400):
        job = rng.randrange(JOBS)
        step = rng.random()
        if step < 0.3:
            asked = rng.choice((1, 1, 2, 8)), rng.random() < 0.2
            times.join(job, *asked)
            slow.queued[job] = asked
        elif step < 0.5:
            times.leave(job)
            slow.queued.pop(job, None)
        elif step < 0.7:
            chosen = rng.choice((None, DEFERRED, IMPOSSIBLE))
            times.choose(job, chosen)
            slow.chosen[job] = chosen
        else:
            seconds, fitting = rng.uniform(0.0, 9.0), {n for n in range(JOBS) if rng.random() < 0.5}
            widest = rng.choice((0, 1, 4, 8))
            times.pass_time(seconds, widest, fitting.__contains__)
            slow.pass_time(seconds, widest, fitting)
        assert times.widest == max((cpus for cpus, _ in slow.queued.values()), default=0)
    times.settle()
    assert times.waited_s == pytest.approx(slow.waited_s, abs=1e-9)
    there = {reason for reason, seconds in enumerate(slow.waited_s.sum(axis=0)) if seconds > 0.0}
    assert there == {NO_MACHINE, TOO_WIDE, BEHIND, DEFERRED, IMPOSSIBLE}


def test_to_look_at_what_was_counted_changes_nothing() -> None:
    times = QueueTimes(2, BEHIND)
    times.join(0, 4, is_bound=False)
    for widest in (4, 1, 0):
        times.pass_time(10.0, widest, lambda job: False)
        times.settle()
    times.leave(0)
    times.leave(1)  # it never came
    assert times.waited_s[0].tolist() == [10.0, 10.0, 10.0, 0.0, 0.0, 0.0]
    assert not times.waited_s[1].any()
