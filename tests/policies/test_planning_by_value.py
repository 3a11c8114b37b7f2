"""Planners' view of a machine, their explanations, and the utility of a completed job."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from outrider.api import COMPLETED_RUN, EVICTED_RUN, Outcome
from outrider.model import events as ev
from outrider.model.utility import Step
from outrider.testing.fixtures import HandSite
from outrider_policies.levels import LEVELS
from outrider_policies.planning.baselines import Replan
from outrider_policies.planning.fuzzy_td import FuzzyTd
from outrider_policies.planning.fuzzy_td.machine_state import MachineState
from outrider_policies.planning.fuzzy_td.policy import Considered, why_it_waits
from outrider_policies.planning.machine_plan import (
    FORCED,
    SHRUNK,
    MachinePlan,
    allocate_by_density,
    preemption_candidates,
    shrink_candidates,
)
from outrider_policies.planning.planner import what_it_waits_for, what_its_run_brings
from outrider_policies.planning.queued_jobs import JobRequest, QueuedJobs, RunLengths, final_utility

LENGTHS = RunLengths(3_600.0, None)


class Planned:
    """Machine of 8 CPUs at 1,000 s with two runs and two waiting jobs.

    Job 0 runs on 2 of 4 CPUs, job 1 on 1; 2 and 3 wait.
    """

    def __init__(self) -> None:
        hand = HandSite(Replan)
        hand.machines(8)
        queues: list[Any] = []

        def rearrange(queue: Any, view: Any) -> tuple[()]:
            queues.append(queue)
            return ()

        hand.policy.rearrange = rearrange
        for job, cpus, got in ((0, 4, 2), (1, 1, 1)):
            hand.submit(job, cpus=cpus, estimate_s=2_000.0)
            hand.tell(ev.STARTED, job, (0, got))
        hand.now = 1_000.0
        hand.submit(2, cpus=8, estimate_s=100.0)
        hand.submit(3, cpus=2, estimate_s=500.0)
        hand.tick()
        self.jobs, self.site = hand.site.jobs, hand.site
        self.plan = MachinePlan(0, hand.site, LENGTHS)
        self.queued = QueuedJobs(queues[0], hand.site, LENGTHS)


def test_a_plan_knows_what_is_left_of_each_run_on_the_cpus_that_it_has() -> None:
    planned = Planned()
    assert (planned.plan.cpus_by_job(), planned.plan.free) == ({0: 2, 1: 1}, 5)
    left = {run.job.number: (run.left_s, run.remaining_s) for run in planned.plan.runs}
    # job 0 did a quarter of 2,000 s: it had half of its CPUs for half of that time
    assert left == {0: (1_500.0, 3_000.0), 1: (1_000.0, 1_000.0)}


def test_the_state_of_a_machine_is_five_numbers_between_0_and_1() -> None:
    planned = Planned()
    units = {run.job.number: run.unit for run in planned.plan.runs}
    state = MachineState(planned.plan, planned.queued, 4_000.0, 5).now()
    worth = planned.queued.units(np.arange(2), np.array([100.0, 500.0])) @ np.array([8, 2])
    assert state == pytest.approx(
        [(2 * units[0] + units[1]) / 3, 0.25, 5 / 8, 1 - 3 / 5, min(worth / 8, 1.0)]
    )
    assert len(MachineState(planned.plan, planned.queued, 4_000.0, 3).now()) == 3
    empty = HandSite(Replan)
    empty.machines(4)
    idle = MachinePlan(0, empty.site, LENGTHS)
    planned.queued.is_open[:] = False
    assert MachineState(idle, planned.queued, 4_000.0, 5).now() == [0.0, 0.0, 1.0, 0.0, 0.0]


def test_the_state_with_a_candidate_is_that_of_the_plan_in_which_it_is_placed() -> None:
    planned = Planned()
    found = shrink_candidates(planned.plan, planned.queued)
    assert (found.rows.tolist(), found.cpus.tolist()) == ([0, 1], [5, 2])
    assert found.remaining_s == pytest.approx([100.0 * 8 / 5, 500.0])
    after = MachineState(planned.plan, planned.queued, 4_000.0, 5).after_each(found)
    for at, (row, cpus) in enumerate(((0, 5), (1, 2))):
        other = Planned()
        other.plan.place(other.queued, row, cpus, float(found.units[at]), SHRUNK)
        then = MachineState(other.plan, other.queued, 4_000.0, 5).now()
        assert [float(column[at]) for column in after] == pytest.approx(then)


def test_a_job_that_does_not_fit_may_preempt_what_is_worth_less() -> None:
    planned = Planned()
    found = preemption_candidates(planned.plan, planned.queued)
    assert found.rows.tolist() == [0, 1]
    assert found.cpus.tolist() == [8, 2]
    assert found.preempted_n.tolist() == [2, 0], "both runs, and none"
    assert found.remaining_s.tolist() == [100.0, 500.0]


def test_it_is_said_what_would_be_done_for_a_job_and_why_it_is_not() -> None:
    planned = Planned()
    jobs, site = planned.jobs, planned.site
    found = preemption_candidates(planned.plan, planned.queued)
    waits = "it waits for 8 CPUs on one machine; at most 5 are free on any"
    assert what_it_waits_for(jobs[2], site) == waits

    def said(how: str, *values: float) -> str:
        one = Considered(how, planned.queued.jobs, found, np.array(values), 0.5)
        return why_it_waits(jobs[2], [one], site)

    assert said(FORCED, 0.25, 9.0) == (
        f"{waits}; preempting 2 runs for it would change the value of the machine's state from "
        "0.500 to 0.250; that is done only if it raises the value"
    )
    assert said(SHRUNK, 0.75, 9.0) == (
        f"{waits}; shrinking it to 8 CPUs would change the value of the machine's state from "
        "0.500 to 0.750, but another job raised it more"
    )
    nothing = f"{waits}; the last pass considered neither preempting nor shrinking for it"
    assert why_it_waits(jobs[2], [], site) == nothing


def test_what_was_considered_for_a_job_in_the_last_pass_is_told() -> None:
    hand = HandSite(FuzzyTd, learn=False)  # all values are 0: no change is better than none
    hand.policy.wants_scores = True
    hand.machines(8)
    for job, cpus in ((0, 4), (1, 2)):
        hand.submit(job, cpus=cpus, estimate_s=2_000.0)
        hand.tell(ev.STARTED, job, (0, cpus))
    hand.now = 1_000.0
    hand.submit(2, cpus=8, estimate_s=100.0)
    assert hand.tick() == []
    said = hand.policy.explain(hand.site.jobs[2], hand.site)
    change = " would change the value of the machine's state from 0.000 to 0.000; "
    assert f"; preempting 2 runs for it{change}" in said
    hand.tell(ev.COMPLETED, 0)
    hand.submit(3, cpus=5, estimate_s=1e7)
    hand.submit(4, cpus=8, estimate_s=1e7)  # worth less a second than the run that is there
    assert hand.tick() == [3]
    said = hand.policy.explain(hand.site.jobs[4], hand.site)
    assert f"; shrinking it to 1 CPUs{change}" in said


def test_a_machine_on_which_nothing_was_changed_teaches_nothing() -> None:
    hand = HandSite(FuzzyTd)
    hand.machines(8)
    hand.submit(0, cpus=8, estimate_s=2_000.0)
    hand.tell(ev.STARTED, 0, (0, 8))
    hand.submit(1, cpus=8, estimate_s=1e7)
    for _ in range(3):
        assert hand.tick(10.0) == []
    [value] = hand.policy._values.values()
    assert value.td.updates_n == 0


def test_by_density_a_run_that_earns_nothing_any_more_is_suspended() -> None:
    planned = Planned()
    planned.site.utilities = {"batch": Step(slack_s=1.0)}  # job 0 would end at 2,500 s at best
    allocate_by_density(planned.plan, planned.queued)
    assert planned.plan.cpus_by_job() == {1: 1, 2: 7}, "the densest has what is left"
    alone = Planned()
    alone.site.utilities = planned.site.utilities
    alone.queued.is_open[:] = False
    allocate_by_density(alone.plan, alone.queued)
    assert alone.plan.cpus_by_job() == {1: 1}, "though nobody else wants its CPUs"


def test_it_is_said_when_a_run_ends_and_what_that_brings() -> None:
    planned = Planned()
    assert what_its_run_brings(planned.jobs[0], planned.site, LENGTHS).startswith(
        "it runs on 2 of 4 CPUs and is expected to end in 3000 s with "
    )


def test_the_utility_of_a_completed_job_is_of_its_request_and_of_any_other_run_nothing() -> None:
    site = HandSite(Replan).site
    done = Outcome(1, None, 0, 0, 100.0, 400.0, 300.0, COMPLETED_RUN)
    lost = Outcome(1, None, 0, 0, 100.0, 400.0, 300.0, EVICTED_RUN)
    asked = JobRequest(100.0, 300.0, 4, "batch")
    assert final_utility(done, asked, site) == pytest.approx(4 * 300.0)
    assert final_utility(lost, asked, site) == 0.0
    assert final_utility(done, JobRequest(None, None, 2, "batch"), site) == pytest.approx(600.0)
    late = final_utility(done, asked._replace(submit_s=-1e6), site)
    assert late < 1_200.0


@dataclass
class Round:
    """A view in a round of decisions: machine 1 was free when it began and is given away."""

    free_total: int

    @property
    def free_since(self) -> dict[int, float]:
        return {0: 0.0, 1: 0.0}

    def is_free(self, machine: int) -> bool:
        return machine == 0


def test_a_machine_that_was_given_away_in_this_round_is_open_no_more() -> None:
    computer = LEVELS["computer"]()
    view: Any = Round(free_total=1)
    is_open = computer.is_open(view)
    assert [is_open[0], is_open[1]] == [True, False]
    assert computer.open_arms(view) == [0]
    before: Any = Round(free_total=2)
    assert computer.open_arms(before) == [0, 1]
