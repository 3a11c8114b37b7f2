"""Estimates of an estimator in place of the user's, where there are any."""

from typing import Any

import pytest

from outrider.api import JobSpec
from outrider.api.estimator import RunTimeEstimate, RunTimeEstimator
from outrider.engine import Engine
from outrider.model import events as ev
from outrider.model.jobs import Job
from outrider.testing.fixtures import HandSite, chance
from outrider_policies.rules.placements import Fifo


class Knowing(RunTimeEstimator):
    """Estimator of a minute per CPU, without an estimate for ada; records the runs it learns."""

    name = "knowing"
    description = "for tests"
    api_version = 1

    def __init__(self) -> None:
        super().__init__(self.settings_type(), chance("knowing"))
        self.asked_s: list[float] = []
        self.runs: list[tuple[int, float, float]] = []

    def estimate(self, spec: JobSpec, now: float) -> RunTimeEstimate | None:
        self.asked_s.append(now)
        return None if spec.user == "ada" else RunTimeEstimate(60.0 * spec.cpus, 1.0, 1e6)

    def learn(self, job: Job, run_s: float, now: float) -> None:
        self.runs.append((job.number, run_s, now))

    def save(self) -> dict[str, Any]:
        return {"runs": len(self.runs)}

    def restore(self, saved: dict[str, Any]) -> None:
        self.runs = [(-1, 0.0, 0.0)] * saved["runs"]


class EstimatedSite(HandSite):
    """A site with that estimator."""

    def __init__(self) -> None:
        super().__init__(Fifo)
        self.estimator = Knowing()
        self.engine = Engine(
            self.site, self.engine.accounting, [self.runner], self, self.decision_log, None,
            self.estimator,
        )  # fmt: skip
        self.machines(8)


def estimates(hand: HandSite) -> list[float | None]:
    return [job.spec.estimate_s for job in hand.site.jobs.values()]


def test_it_is_asked_of_every_job_that_is_submitted_or_declared_anew() -> None:
    hand = EstimatedSite()
    hand.submit(0, cpus=3, estimate_s=5.0)
    hand.now = 7.0
    hand.submit(1, user="ada", estimate_s=5.0)
    assert estimates(hand) == [180.0, 5.0]
    hand.now = 9.0
    hand.tell(ev.CHANGED, 0, JobSpec(cpus=2, estimate_s=5.0))
    hand.tell(ev.CHANGED, 1, JobSpec(user="ada", estimate_s=8.0))
    assert estimates(hand) == [120.0, 8.0]
    assert hand.estimator.asked_s == [0.0, 7.0, 9.0, 9.0]


def test_it_learns_from_runs_that_complete_and_what_it_learned_outlasts_a_restart() -> None:
    hand = EstimatedSite()
    for job in (0, 1):
        hand.submit(job)
    assert hand.tick() == [0, 1]
    hand.now = 30.0
    hand.complete(0)
    hand.evict(1)
    assert hand.estimator.runs == [(0, 30.0, 30.0)]
    fresh = EstimatedSite()
    fresh.engine.restore(hand.engine.save())
    assert len(fresh.estimator.runs) == 1
    assert estimates(fresh) == [60.0]


def test_a_state_saved_without_an_estimator_leaves_it_as_it_is() -> None:
    without = HandSite(Fifo)
    without.machines(8)
    fresh = EstimatedSite()
    fresh.estimator.runs = [(3, 1.0, 1.0)]
    fresh.engine.restore(without.engine.save())
    assert fresh.estimator.runs == [(3, 1.0, 1.0)]


@pytest.mark.parametrize("asks", [True, False])
def test_after_a_fault_a_pass_is_asked_for_unless_a_pass_was_what_failed(asks: bool) -> None:
    woken: list[float] = []
    hand = EstimatedSite()
    hand.submit(0)
    hand.tick()
    hand.submit(1, cpus=8)
    hand.wake_at = woken.append  # type: ignore[assignment, method-assign]
    hand.engine.take_out_all_but({0, 1}, asks_again=asks)
    assert woken == ([hand.now] if asks else [])
    hand.complete(0)
    assert len(woken) == 1, "the next event asks in any case"


def test_while_history_is_told_a_tick_decides_nothing() -> None:
    hand = EstimatedSite()
    hand.engine.be_silent()
    hand.submit(0)
    assert hand.tick() == []
    assert hand.decision_log.rows == []
    assert hand.engine.silent
    hand.engine.begin(hand.now)
    assert hand.tick(1.0) == [0]


@pytest.mark.parametrize("jobs", [0, 1])
def test_once_history_is_told_those_who_wait_are_decided_about_without_another_event(
    jobs: int,
) -> None:
    woken: list[float] = []
    hand = EstimatedSite()
    hand.wake_at = woken.append  # type: ignore[assignment, method-assign]
    hand.engine.be_silent()
    for job in range(jobs):
        hand.submit(job)
    assert woken == []
    hand.engine.begin(hand.now + 5.0)
    assert woken == [hand.now + 5.0] * jobs
