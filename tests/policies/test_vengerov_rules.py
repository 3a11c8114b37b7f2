"""Vengerov's rules on machines small enough to follow by hand."""

import pytest

from outrider.api import PREEMPT, RESUME, SHRINK, START, MachineSpec, Policy
from outrider.simulation.generators.grids.workloads import vengerov_grid
from outrider.testing.fixtures import LINEAR, Asked, made, on_one_machine, played
from outrider_policies.planning.baselines import Aggressive, Replan
from outrider_policies.planning.fuzzy_td import FuzzyTd
from tests.fixtures.scripted import told

NEITHER = {"preempt": False, "oversubscribe": False}


def test_the_widest_job_that_fits_comes_first_and_of_equals_the_one_worth_more() -> None:
    blocker = Asked(0.0, 10.0, cpus=8)
    late, narrow, fresh = Asked(2.0, 10.0, 5), Asked(3.0, 10.0, 3), Asked(8.0, 10.0, 5)
    done = on_one_machine(made(FuzzyTd, **NEITHER), 8, blocker, late, narrow, fresh)
    assert done.did(3, START) == [(10.0, 5)], "the later of the 5-CPU jobs lost less utility"
    assert done.did(2, START) == [(10.0, 3)]
    assert done.did(1, START) == [(20.0, 5)]


def test_best_fit_alone_never_preempts_or_shrinks() -> None:
    jobs = [Asked(float(n), 5.0 + n % 3, 1 + n % 6) for n in range(40)]
    done = on_one_machine(made(FuzzyTd, **NEITHER), 8, *jobs)
    assert {action for _, _, action, _, _ in done.rows} <= {START, "defer"}
    assert done.report["jobs"]["completed"] == 40


def test_a_shrunk_run_grows_when_cpus_free_up() -> None:
    first, second = Asked(0.0, 10.0, cpus=6), Asked(0.0, 10.0, cpus=4)
    done = on_one_machine(made(Aggressive, preempt=False), 8, first, second)
    assert done.did(1, SHRINK) == [(0.0, 2), (10.0, 4)]
    assert done.ended(1) == pytest.approx(15.0), "10 s on half of its CPUs, then 5 s on all"


def test_a_preempted_job_goes_on_where_it_left_off() -> None:
    long, urgent = Asked(0.0, 30.0, cpus=8), Asked(10.0, 6.0, cpus=8)
    done = on_one_machine(made(Aggressive, oversubscribe=False), 8, long, urgent)
    assert done.did(0, PREEMPT) == [(10.0, 0)]
    assert done.did(0, RESUME) == [(16.0, 8)]
    assert done.ended(0) == pytest.approx(36.0), "20 s were left of it"


def test_what_is_worth_less_a_second_does_not_push_out_what_is_worth_more() -> None:
    short, long = Asked(0.0, 6.0, cpus=8), Asked(1.0, 30.0, cpus=8)
    done = on_one_machine(made(Aggressive, oversubscribe=False), 8, short, long)
    assert done.did(0, PREEMPT) == []
    assert done.did(1, START) == [(6.0, 8)]


def test_a_job_worth_nothing_any_more_preempts_nobody() -> None:
    busy = [Asked(0.0, 50.0, 8), Asked(1.0, 50.0, 8)]  # the second is hopeless once it may start
    late = Asked(2.0, 49.0, 8)
    done = on_one_machine(made(Aggressive, oversubscribe=False), 8, *busy, late)
    hopeless_s = 100.0
    pushed = [row for row in done.rows if row[2] == PREEMPT and row[0] > hopeless_s]
    assert pushed == []


def test_what_a_forced_job_leaves_over_goes_to_the_one_it_pushed_out() -> None:
    wide, small = Asked(0.0, 30.0, cpus=8), Asked(10.0, 5.0, cpus=3)
    done = on_one_machine(made(Aggressive), 8, wide, small)
    assert done.did(1, START) == [(10.0, 3)]
    assert done.did(0, SHRINK) == [(10.0, 5), (15.0, 8)], "shrunk in the same pass, then grown"
    assert done.did(0, PREEMPT) == []


def test_aggressive_takes_the_smallest_waiting_job() -> None:
    blocker, wide, small = Asked(0.0, 10.0, 5), Asked(1.0, 8.0, 8), Asked(1.0, 8.0, 6)
    done = on_one_machine(made(Aggressive, preempt=False), 8, blocker, wide, small)
    assert done.did(2, SHRINK)[0] == (1.0, 3)
    assert done.did(1, START, SHRINK)[0][0] >= 10.0


def test_replan_gives_the_cpus_to_the_densest_work_and_shrinks_the_last() -> None:
    long, short = Asked(0.0, 40.0, cpus=6), Asked(10.0, 5.0, cpus=5)
    done = on_one_machine(made(Replan), 8, long, short)
    # At 10 s the long job has 30 of 40 s left: 4/3 a second; the short one 1. It goes on, on all.
    assert done.did(1, SHRINK)[0] == (10.0, 2)
    done = on_one_machine(made(Replan), 8, Asked(0.0, 40.0, cpus=6), Asked(30.0, 5.0, cpus=5),
                          Asked(39.0, 20.0, cpus=8))  # fmt: skip
    assert done.ended(0) == pytest.approx(40.0), "nothing is denser than what is nearly done"


def test_replan_never_chooses_what_can_earn_nothing() -> None:
    first, hopeless = Asked(0.0, 30.0, cpus=8), Asked(0.0, 10.0, cpus=8)
    done = on_one_machine(made(Replan), 8, first, hopeless, Asked(100.0, 5.0, 8), until_s=200.0)
    assert "started" not in {kind for _, kind, _ in done.events[1]}, "worth nothing after 10 s"
    assert done.ended(2) == 105.0


@pytest.mark.parametrize("skip", [False, True])
def test_best_fit_starts_what_can_earn_nothing_unless_told_to_skip_it(skip: bool) -> None:
    first, hopeless = Asked(0.0, 30.0, cpus=8), Asked(1.0, 10.0, cpus=8)
    policy = made(FuzzyTd, skip_hopeless=skip, **NEITHER)
    done = on_one_machine(policy, 8, first, hopeless, Asked(100.0, 5.0, 8), until_s=200.0)
    assert ("started" in {kind for _, kind, _ in done.events[1]}) is not skip
    assert done.ended(2) == 105.0


@pytest.mark.parametrize(
    "policy",
    [made(Aggressive), made(Replan), made(FuzzyTd, skip_hopeless=True, weigh_replan=True)],
)
def test_each_of_several_machines_resumes_its_own_jobs(policy: Policy) -> None:
    workload = vengerov_grid(0.3, 4, steps="continuous", length_s=300.0)
    workload.machine_names = ["m0", "m1"]
    workload.machines = [MachineSpec(cpus=20)] * 2
    done = played(policy, workload, until_s=300.0)
    assert done.report["jobs"]["completed"] > 60
    assert any(kind == "resumed" for rows in done.events.values() for _, kind, _ in rows)
    for job, rows in done.events.items():
        places = {extra[0] for _, kind, extra in rows if kind in ("started", "resumed")}
        assert len(places) <= 1, f"job {job} moved between machines {places}"


def test_the_papers_four_jobs_earn_most_where_the_machine_is_used_less() -> None:
    """Section 5: 1 and 2 CPUs with falling utility, 2 and 3 with constant ones, on 4 CPUs."""
    falling, constant = "batch", "interactive"
    jobs = [Asked(0.0, 1.0, 1, job_class=falling), Asked(0.0, 1.0, 2, job_class=falling),
            Asked(0.0, 1.0, 2, job_class=constant),
            Asked(0.0, 1.0, 3, job_class=constant)]  # fmt: skip
    packed = told(jobs, {0.0: [(START, 1, 2), (START, 2, 2)],
                         1.0: [(START, 0, 1), (START, 3, 3)]}, utilities=LINEAR)  # fmt: skip
    urgent_first = told(jobs, {0.0: [(START, 0, 1), (START, 1, 2)], 1.0: [(START, 2, 2)],
                               2.0: [(START, 3, 3)]}, utilities=LINEAR)  # fmt: skip
    steps = [max(rows[-1][0] for rows in run.told.values()) for run in (packed, urgent_first)]
    assert steps == [2.0, 3.0], "equation 7: 8 of 8 CPU-steps are used, or 8 of 12"
    assert packed.report["goodput_s"] == urgent_first.report["goodput_s"] == pytest.approx(8.0)
    assert packed.report["utility"]["total"] == pytest.approx(7.0)
    assert urgent_first.report["utility"]["total"] == pytest.approx(8.0)
