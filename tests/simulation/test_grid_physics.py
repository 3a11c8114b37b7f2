"""The simulated grid: fewer CPUs, preemption, growth, slower machines, queues at nodes."""

import pytest

from outrider.formats.workload import GridRules, SpeedChange
from outrider.model.errors import PolicyError
from outrider.model.utility import Linear
from outrider.simulation.grid_site import Run
from outrider.testing.fixtures import Asked
from tests.fixtures.scripted import told


def test_a_shrunk_job_takes_longer_by_as_much_as_it_has_fewer_cpus() -> None:
    run = told([Asked(0.0, 12.0, 4)], {0.0: [("shrink", 0, 3)]})
    assert run.told[0] == [(0.0, "started", (0, 3)), (16.0, "completed", None)]
    assert run.report["goodput_s"] == pytest.approx(48.0), "its work is the same"


def test_it_grows_when_it_gets_its_cpus_and_has_only_the_rest_to_do() -> None:
    jobs = [Asked(0.0, 12.0, 4), Asked(4.0, 1.0)]
    run = told(jobs, {0.0: [("shrink", 0, 2)], 4.0: [("shrink", 0, 3), ("start", 1, 1)]})
    # 4 s on half its CPUs are 2 s of work; the other 10 take 10 x 4 / 3
    assert run.told[0][1:] == [
        (4.0, "resized", 3), (pytest.approx(4.0 + 40.0 / 3.0), "completed", None),
    ]  # fmt: skip
    assert run.report["goodput_s"] == pytest.approx(48.0 + 1.0)


def test_a_preempted_job_goes_on_where_it_left_off() -> None:
    jobs = [Asked(0.0, 10.0, 4), Asked(3.0, 5.0, 2)]
    script = {
        0.0: [("start", 0, 4)],
        3.0: [("preempt", 0, 0), ("start", 1, 2)],
        8.0: [("resume", 0, 4)],
    }
    run = told(jobs, script)
    assert [name for _, name, _ in run.told[0]] == ["started", "suspended", "resumed", "completed"]
    assert run.told[0][-1][0] == 15.0, "10 s of work and 5 s suspended"
    assert run.told[1] == [(3.0, "started", (0, 2)), (8.0, "completed", None)]
    report = run.report
    assert report["goodput_s"] == pytest.approx(40.0 + 10.0), "suspended time is in neither"
    assert report["badput_s"] == 0.0, "no work was lost"
    assert report["wait_s"]["all"]["max"] == 0.0, "the wait ends with the first start"
    assert report["overhead_s"]["all"]["max"] == 5.0


def test_a_preempted_job_may_go_on_with_fewer_cpus() -> None:
    jobs = [Asked(0.0, 10.0, 4), Asked(5.0, 10.0, 2)]
    script = {
        0.0: [("start", 0, 4)],
        5.0: [("preempt", 0, 0), ("start", 1, 2)],
        6.0: [("resume", 0, 2)],
    }
    run = told([*jobs, Asked(6.0, 1.0)], script)
    assert run.told[0][-1] == (16.0, "completed", None), "5 s of work left, at half the speed"


def test_moves_that_cannot_be_are_refused_with_the_reason() -> None:
    for moves, reason in (
        ([("start", 0, 4), ("start", 1, 2)], "0 CPUs left"),
        ([("preempt", 0, 0)], "the job is queued"),
        ([("shrink", 0, 2), ("shrink", 0, 1)], "moved the job already"),
        ([("shrink", 0, 5)], "it asks for 4 CPUs"),
        ([("start", 7, 1)], "the job is unknown"),
        ([("start", 0, 3)], "on fewer than its 4 CPUs it is shrunk"),
    ):
        with pytest.raises(PolicyError, match=reason):
            told([Asked(0.0, 10.0, 4), Asked(0.0, 1.0, 2)], {0.0: moves})


def test_a_machine_that_slows_down_delays_what_is_left() -> None:
    run = told([Asked(0.0, 10.0)], {0.0: [("start", 0, 1)]},
               speed_changes=[SpeedChange(4.0, 0, 0.5)])  # fmt: skip
    assert run.told[0][-1] == (16.0, "completed", None), "4 s done, 6 s at half the speed"


def test_a_node_with_a_queue_works_off_what_it_is_sent_one_by_one() -> None:
    jobs = [Asked(0.0, 10.0), Asked(1.0, 5.0), Asked(2.0, 1.0)]
    script = {float(at): [("start", at, 1)] for at in range(3)}
    run = told(jobs, script, cpus=1, rules=GridRules(node_queues=True))
    assert [run.told[job][-1][0] for job in range(3)] == [10.0, 15.0, 16.0]
    assert run.report["wait_s"]["all"]["max"] == 0.0, "a job sent to its node counts as started"


LINEAR = {"batch": Linear()}


def test_a_hopeless_job_is_withdrawn_when_even_a_start_would_earn_nothing() -> None:
    jobs = [Asked(0.0, 10.0), Asked(0.0, 9.0), Asked(0.0, 11.0)]
    script = {0.0: [("start", 0, 1)], 10.0: [("start", 2, 1)]}
    rules = GridRules(drop_hopeless=True)
    run = told(jobs, script, cpus=1, rules=rules, utilities=LINEAR)
    assert run.told[1] == [(9.0, "removed", "removed")], "done at 18 s at best, twice its 9 s"
    assert run.told[2] == [(10.0, "started", (0, 1)), (21.0, "completed", None)]
    assert run.report["utility"]["total"] == pytest.approx(10.0 * 1.0 + 11.0 * (1 - 10 / 11))


def test_a_preempted_job_can_become_hopeless_too() -> None:
    jobs = [Asked(0.0, 10.0, 4), Asked(5.0, 20.0, 4)]
    script = {0.0: [("start", 0, 4)], 5.0: [("preempt", 0, 0), ("start", 1, 4)]}
    rules = GridRules(drop_hopeless=True)
    run = told(jobs, script, rules=rules, utilities=LINEAR)
    assert run.told[0][-1] == (15.0, "removed", "removed"), "5 s left, worth nothing from 20 s on"
    assert run.report["badput_s"] == pytest.approx(20.0)


def test_a_run_works_at_its_rate_and_not_while_it_is_paused() -> None:
    run = Run(machine=3, left_s=100.0)
    assert run.pause(7.0) == 0.0  # it has not begun
    run.cpus, run.rate, run.since_s = 2, 0.5, 10.0
    assert run.end_s() == 210.0
    assert run.pause(50.0) == 20.0
    assert run.pause(90.0) == 0.0
    assert run.left_s == 80.0
    run.rate, run.since_s = 1.0, 100.0
    assert run.end_s() == 180.0
