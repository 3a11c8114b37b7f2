"""Moments at which a waiting job is decided: immediately, in turn, or an epoch later."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider.api import NOWHERE, Choice, Job, Policy, PolicySettings, SiteView
from outrider.engine.scheduling.scheduling_pass import MIN_DEFERRAL_S
from outrider.formats.campus.campus import Campus
from outrider.testing.fixtures import HandSite, chance
from outrider.testing.hand_campus import HOUR_S, Rules, Session, Work, make_campus
from outrider_policies.bandits.bandit import Bandit
from tests.fixtures.campuses import campuses
from tests.fixtures.plays import MAKERS, Dither, Play, bandit
from tests.suite.examples import examples

thorough = settings(max_examples=examples(60), derandomize=True)


class Deferring(Policy):
    """Policy that defers every job a given number of times, then starts it; records the calls."""

    name = "deferring"
    description = "for tests"

    def __init__(self, times: int, max_defer_s: float = float("inf")) -> None:
        super().__init__(PolicySettings(), chance("deferring"))
        self.times = times
        self.max_defer_s = max_defer_s
        self.asked: list[tuple[float, int]] = []

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """Defer the first times, then start."""
        self.asked.append((view.now, job.number))
        before = sum(1 for _, number in self.asked if number == job.number)
        if before <= self.times:
            return Choice(NOWHERE, "hold")
        return Choice(view.draw(self.rng), "start")


def test_a_kept_job_is_asked_again_an_epoch_later_though_machines_free_in_between() -> None:
    campus = make_campus(
        [0, 0, 0], [Work(100.0, 60.0)],
        [Session(0, 0.0, 500.0), Session(1, 0.0, 900.0), Session(1, 950.0, 990.0)],
        Rules(reconsider_s=1800.0), end_s=5 * HOUR_S,
    )  # fmt: skip
    deferring = Deferring(2)
    Play(campus, [deferring])
    assert [time_s for time_s, _ in deferring.asked] == [100.0, 1900.0, 3700.0]


def test_each_kept_job_has_an_epoch_of_its_own() -> None:
    campus = make_campus(
        [0] * 3, [Work(0.0, 60.0), Work(700.0, 60.0)], rules=Rules(reconsider_s=1800.0),
        end_s=5 * HOUR_S,
    )  # fmt: skip
    deferring = Deferring(1)
    Play(campus, [deferring])
    assert deferring.asked == [(0.0, 0), (700.0, 1), (1800.0, 0), (2500.0, 1)]


def test_blocked_jobs_are_decided_in_line_when_a_machine_frees() -> None:
    campus = make_campus(
        [0], [Work(0.0, 1000.0), Work(10.0, 1000.0), Work(10.0, 1000.0), Work(5.0, 1000.0)],
        end_s=HOUR_S * 2,
    )  # fmt: skip
    starts = [(r.time_s, r.job) for r in Play(campus, [MAKERS["fifo"]()]).rows
              if r.action == "start"]  # fmt: skip
    assert starts == [(0.0, "j0"), (1000.0, "j1"), (2000.0, "j2"), (3000.0, "j3")]


def test_an_evicted_job_is_decided_at_once() -> None:
    campus = make_campus(
        [0, 0], [Work(0.0, HOUR_S)], [Session(0, 600.0, 9000.0), Session(1, 0.0, 300.0)],
        end_s=5 * HOUR_S,
    )  # fmt: skip
    starts = [(r.time_s, r.machine) for r in Play(campus, [MAKERS["fifo"]()]).rows
              if r.action == "start"]  # fmt: skip
    assert starts == [(0.0, "m0"), (600.0, "m1")]


def test_a_kept_job_that_finds_no_machine_at_its_epoch_waits_in_line() -> None:
    campus = make_campus(
        [0], [Work(0.0, 60.0)], [Session(0, 1000.0, 4000.0)], Rules(reconsider_s=1800.0),
        end_s=5 * HOUR_S,
    )  # fmt: skip
    deferring = Deferring(1)
    play = Play(campus, [deferring])
    assert deferring.asked == [(0.0, 0), (4000.0, 0)]
    assert [(r.time_s, r.reason) for r in play.rows] == [
        (0.0, "hold"), (1800.0, "no_machine"), (4000.0, "start"),
    ]  # fmt: skip


class Holding(Policy):
    """Policy that defers every job without end."""

    name = "holding"
    description = "for tests"

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """Defer the job in every pass."""
        return Choice(NOWHERE, "hold")


class WokenSite(HandSite):
    """Writes down for when the engine asks to be woken."""

    def __init__(self, kind: type[Policy]) -> None:
        self.woken: list[float] = []
        super().__init__(kind)

    def wake_at(self, time_s: float) -> None:
        """Ticks are the test's."""
        self.woken.append(time_s)


def test_a_tick_later_than_it_was_asked_for_is_followed_by_the_next_epoch() -> None:
    """A daemon whose source was silent for a while has such ticks."""
    hand = WokenSite(Holding)
    hand.machines(1)
    hand.submit(0)
    hand.tick()
    hand.tick(5000.0)
    assert hand.woken == [0.0, 3600.0, 8600.0]


def test_the_guard_ends_a_hold_exactly_at_its_bound() -> None:
    campus = make_campus([0], [Work(0.0, 60.0)], rules=Rules(reconsider_s=1000.0), end_s=9000.0)
    play = Play(campus, [Deferring(99, max_defer_s=2500.0)])
    assert [(r.time_s, r.reason) for r in play.rows] == [(0.0, "hold"), (2500.0, "guard")]
    assert play.report["defer_s"]["max"] == 2500.0


@thorough
@given(campus=campuses(), most=st.sampled_from([0.5, 700.0, 3000.0, 20_000.0]))
def test_no_job_is_held_longer_than_the_guard_allows(campus: Campus, most: float) -> None:
    dither = Dither(PolicySettings(), chance("dither"))
    dither.max_defer_s = most
    for policy in (dither, bandit(max_defer_s=most), Deferring(10**6, most)):
        deferred_s = Play(campus, [policy]).report["defer_s"]["max"]
        assert deferred_s <= max(most, 0.0) + 1e-6
        assert most >= MIN_DEFERRAL_S or deferred_s == 0.0


def test_the_literal_bandit_has_no_guard_and_the_default_has_one() -> None:
    assert bandit(**Bandit.presets["literal"]).max_defer_s == float("inf")
    assert bandit().max_defer_s < float("inf")


@pytest.mark.parametrize("reconsider_s", [600.0, None])
def test_a_policys_own_epoch_wins_over_the_sites(reconsider_s: float | None) -> None:
    campus = make_campus([0], [Work(0.0, 60.0)], rules=Rules(reconsider_s=1800.0), end_s=9000.0)
    deferring = Deferring(1)
    deferring.reconsider_s = reconsider_s
    Play(campus, [deferring])
    assert [time_s for time_s, _ in deferring.asked] == [0.0, reconsider_s or 1800.0]
