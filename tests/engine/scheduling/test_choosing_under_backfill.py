"""Policies that only choose a place, under every queue discipline."""

from collections import Counter
from typing import Any

import pytest

from outrider.api import NOWHERE, Choice, Job, Policy, SiteView
from outrider.model.decisions import Decision
from outrider.model.events import COMPLETED, STARTED
from outrider.model.modes import Discipline
from outrider.plugins.finding import make_policy, stream
from outrider.replay.grid_run import RECONSIDER_S, GridRun
from outrider.testing.fixtures import Asked, make_workload

MACHINES = (8, 4)
CHOOSERS = (
    "bandit", "best_fit", "lowest_watts", "random_match", "survival", "thompson", "ucb",
    "watts_hold",
)  # fmt: skip


@pytest.mark.parametrize("rule", ["first_fit", "strict", "easy", "easy_sjbf", "conservative"])
@pytest.mark.parametrize("name", CHOOSERS)
def test_they_are_evaluated_and_never_given_more_cpus_than_there_are(
    name: str, rule: Discipline
) -> None:
    jobs = [Asked(float(n), 50.0 + n % 7 * 20, 1 + n % 5) for n in range(60)]
    policy = make_policy(name, {}, 0, "test")
    run = GridRun(make_workload(MACHINES, jobs), [policy], lambda *row: None, discipline=rule)
    used: Counter[int] = Counter()
    on: dict[int, tuple[int, int]] = {}
    for time_s, kind, job, extra in run.stream():
        if kind == STARTED:
            on[job] = extra
            used[extra[0]] += extra[1]
        elif kind == COMPLETED:
            machine, cpus = on.pop(job)
            used[machine] -= cpus
        assert all(used[m] <= cpus for m, cpus in enumerate(MACHINES)), f"at {time_s:g} s"
    assert run.accounting.completed == len(jobs)


class Reluctant(Policy):
    """Defers every job for as long as it may."""

    name = "reluctant"
    description = "for tests: defers every job for as long as it may"
    max_defer_s = 2.5 * RECONSIDER_S

    def __init__(self, settings: Any, rng: Any) -> None:
        super().__init__(settings, rng)
        self.asked_s: list[float] = []

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """Defer the job, and record the call."""
        if job.number == 0:
            self.asked_s.append(view.now)
            return Choice(NOWHERE, "reluctant")
        return super().choose(job, evaluation, view, may_defer)


def test_who_is_kept_by_choice_is_decided_every_epoch_and_started_when_the_hold_is_over() -> None:
    others = [Asked(10.0 * n, 5.0) for n in range(1, 20)]
    policy = Reluctant(Reluctant.settings_type(), stream(0, "test"))
    rows: list[Decision] = []
    jobs = [Asked(0.0, 100.0), *others]
    GridRun(make_workload([2], jobs), [policy], rows.append, discipline="easy").run()
    epochs = [0.0, RECONSIDER_S, 2 * RECONSIDER_S, 2.5 * RECONSIDER_S]
    assert policy.asked_s == epochs, "not because machines freed in between"
    of_first = [(row.time_s, row.action, row.reason) for row in rows if row.job == 0]
    assert of_first == [(0.0, "defer", "reluctant"), (epochs[-1], "start", "guard")]
