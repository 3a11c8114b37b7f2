"""Starts of jobs under each policy, simulated forward from the present."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from outrider.api import Choice, Policy, SiteView
from outrider.forecast.candidate_starts import MAX_REPLICATES, MIN_REPLICATES
from outrider.forecast.expected_starts import expected_starts
from outrider.forecast.followed_site import FollowedSite
from outrider.journal import Entry, Journal
from outrider.model import events as ev
from outrider.model.decisions import NOWHERE
from outrider.model.jobs import Job, JobSpec
from outrider.model.modes import EASY, FIRST_FIT, STRICT, Discipline
from tests.forecast.recorded_grid import EPOCH_S, busy_weeks, told_by
from tests.forecast.shadow_sites import (
    LONG,
    LONG_S,
    MIXED,
    NOW_S,
    SHORT,
    SHORT_S,
    busy,
    chance,
    ended,
    journal_of,
    starts_under,
)

DECIDES_EVERY_S = 900.0


class WaitsUntil(Policy):
    """Policy that defers every job until a moment."""

    name = "waits_until"
    description = "for tests: defers until a moment"
    reconsider_s = DECIDES_EVERY_S

    def __init__(self) -> None:
        super().__init__(self.settings_type(), chance())

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        if view.now < NOW_S + 2_000.0:
            return Choice(NOWHERE, "too_early")
        return super().choose(job, evaluation, view, may_defer)


class FailsLater(Policy):
    """Policy that fails at decisions after now."""

    name = "fails_later"
    description = "for tests: fails in the future"

    def __init__(self) -> None:
        super().__init__(self.settings_type(), chance())

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        if view.now > NOW_S:
            raise RuntimeError("no idea")
        return super().choose(job, evaluation, view, may_defer)


@pytest.fixture
def one_busy_machine(tmp_path: Path) -> Path:
    """Return a site where one job runs for 1,000 s; a long and a short one wait."""
    waiting = [
        (NOW_S - 60.0, ev.SUBMITTED, "long", LONG), (NOW_S - 30.0, ev.SUBMITTED, "short", SHORT),
    ]  # fmt: skip
    events = [*ended("m"), *busy("m", NOW_S - 1_000.0), *waiting]
    return journal_of(events, tmp_path / "journal.sqlite")


def test_each_policy_starts_first_whom_it_would_start_first(one_busy_machine: Path) -> None:
    found = starts_under(one_busy_machine, "fifo", "sjf")
    assert found["jobs"] == ["long", "short"]
    free_s = NOW_S - 1_000.0 + LONG_S
    assert found["fifo"].shape == found["sjf"].shape == (MAX_REPLICATES, 2)
    # medians: now and then a run time is drawn from another user's
    assert np.median(found["fifo"], axis=0).tolist() == [free_s, free_s + LONG_S]
    assert np.median(found["sjf"], axis=0).tolist() == [free_s + SHORT_S, free_s]


def test_a_policy_that_waits_starts_a_job_at_its_epoch_after_that(tmp_path: Path) -> None:
    waiting = (NOW_S - 60.0, ev.SUBMITTED, "job", SHORT)
    path = journal_of([*ended("m"), waiting], tmp_path / "journal.sqlite")
    found = starts_under(path, "fifo", WaitsUntil)
    assert (found["fifo"] == NOW_S).all()
    # it was deferred in shadow a minute ago, and is decided anew every fifteen
    np.testing.assert_allclose(found["waits_until"], NOW_S - 60.0 + 3 * DECIDES_EVERY_S)


def test_a_job_is_not_kept_for_longer_than_levers_may(tmp_path: Path) -> None:
    waiting = (NOW_S - 60.0, ev.SUBMITTED, "job", SHORT)
    path = journal_of([*ended("m"), waiting], tmp_path / "journal.sqlite")
    found = starts_under(path, WaitsUntil, longest_deferral_s=1_000.0)
    np.testing.assert_allclose(found["waits_until"], NOW_S + 1_000.0)


def test_a_policy_that_fails_loses_its_own_column(one_busy_machine: Path) -> None:
    found = starts_under(one_busy_machine, FailsLater, "fifo")
    assert "no idea" in str(found["fails_later"])
    assert found["fifo"].shape == (MAX_REPLICATES, 2)


def test_a_machine_is_back_after_as_long_as_its_owners_stay(tmp_path: Path) -> None:
    events = [*ended("m"), (NOW_S - 60.0, ev.SUBMITTED, "job", SHORT)]
    came_s = NOW_S - 600.0
    begin_s = events[0][0]
    last_s = max(event[0] for event in events[:-1])
    sessions = [last_s + 60.0 + n * 4_000.0 for n in range(6)]
    assert last_s > begin_s
    assert sessions[-1] + 3_000.0 < came_s
    for at_s in sessions:
        events += [
            (at_s, ev.OWNER_CAME, "m", None),
            (at_s + 2_900.0, ev.OWNER_WENT, "m", None),
            (at_s + 3_000.0, ev.USABLE, "m", None),
        ]
    events.append((came_s, ev.OWNER_CAME, "m", None))
    path = journal_of(events, tmp_path / "journal.sqlite")
    found = starts_under(path, "fifo")
    np.testing.assert_allclose(found["fifo"], came_s + 3_000.0)


def test_a_job_that_may_not_start_yet_takes_no_machine_before(tmp_path: Path) -> None:
    later_s = NOW_S + 1_000.0
    early = JobSpec(user="long", estimate_s=LONG_S, eligible_s=later_s)
    waiting = [
        (NOW_S - 60.0, ev.SUBMITTED, "early", early), (NOW_S - 30.0, ev.SUBMITTED, "job", SHORT),
        (NOW_S - 20.0, ev.SUBMITTED, "next", SHORT), (NOW_S - 10.0, ev.SUBMITTED, "last", SHORT),
    ]  # fmt: skip
    path = journal_of([*ended("m"), *waiting], tmp_path / "journal.sqlite")
    found = starts_under(path, "fifo")
    assert found["jobs"] == ["job", "next", "last"]
    # the other one joined the queue before the last found room, but behind it
    waits_s = (np.median(found["fifo"], axis=0) - NOW_S).tolist()
    assert waits_s == [0.0, SHORT_S, 2 * SHORT_S]


def test_a_job_that_fits_on_no_machine_is_not_waited_for(one_busy_machine: Path) -> None:
    wide = JobSpec(user="wide", cpus=64, estimate_s=60.0)
    path = one_busy_machine.with_name("wide.sqlite")
    journal_of([*ended("m"), (NOW_S - 9.0, ev.SUBMITTED, "wide", wide)], path)
    assert starts_under(path, "fifo")["jobs"] == []


def test_time_is_bounded_and_too_few_replicates_are_no_answer(one_busy_machine: Path) -> None:
    ticking = itertools.count()
    found = starts_under(
        one_busy_machine, "fifo", budget_s=60.0, clock=lambda: float(next(ticking))
    )
    assert MIN_REPLICATES <= len(found["fifo"]) <= 60
    slow = itertools.count(step=20)
    found = starts_under(one_busy_machine, "fifo", budget_s=60.0, clock=lambda: float(next(slow)))
    assert "replicates in 120 s" in str(found["fifo"])


@pytest.mark.parametrize("discipline", [STRICT, EASY, FIRST_FIT])
def test_under_the_incumbents_own_rule_starts_are_as_its_forecast_has_them(
    discipline: Discipline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outrider.forecast.candidate_starts.MAX_REPLICATES", 25)
    recorded = [event for event in told_by(busy_weeks(4)) if event[0] <= EPOCH_S + 27 * 3_600.0]
    path = tmp_path / "journal.sqlite"
    with Journal(path) as journal:
        journal.append(Entry(inputs=[("grid", event) for event in recorded]))
    site = FollowedSite(path)
    *_, now_s = site.catch_up()
    found = starts_under(path, "fifo", discipline=discipline)
    assert found["jobs"] == [site.name(job) for job in site.waiting()]
    by_rule_s = expected_starts(
        site.state(),
        site.recent.history,
        site.arrivals(),
        discipline,
        100,
        np.random.default_rng(0),
    )
    ours_s, rule_s = np.median(found["fifo"], axis=0), np.median(by_rule_s, axis=0)
    apart = np.log((ours_s - now_s + 60.0) / (rule_s - now_s + 60.0))
    assert len(apart) > 50
    assert abs(float(apart.mean())) < 0.1
    assert float(np.abs(apart).mean()) < 0.2


def test_a_job_that_was_evicted_is_not_expected_to_be_shorter_than_it_ran(tmp_path: Path) -> None:
    ran_s = 2_000.0
    at_s = NOW_S - 10.0 - ran_s
    evicted = [
        (at_s, ev.SUBMITTED, "mixed", MIXED), (at_s, ev.STARTED, "mixed", ("m", 1)),
        (NOW_S - 10.0, ev.EVICTED, "mixed", "owner"), (NOW_S - 5.0, ev.SUBMITTED, "next", SHORT),
    ]  # fmt: skip
    events = [*ended("m", specs=((MIXED, SHORT_S), (MIXED, LONG_S))), *evicted]
    path = journal_of(events, tmp_path / "journal.sqlite")
    found = starts_under(path, "fifo")
    assert found["jobs"] == ["mixed", "next"]
    assert (found["fifo"][:, 0] == NOW_S).all()
    assert (found["fifo"][:, 1] - NOW_S > ran_s).all()
