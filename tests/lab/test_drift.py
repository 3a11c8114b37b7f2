"""The drift suite: the worlds change as they say, and verdicts follow from the figures alone."""

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

from outrider.model.errors import ConfigurationError
from outrider.model.utility import DEFAULT_UTILITIES, Constant
from outrider_lab.commands.drift import command
from outrider_lab.drift import QUICK, WORLDS, DriftSuite, Treatment, check_treatments, treatments_of
from outrider_lab.drift.page import html
from outrider_lab.drift.suite import (
    FROZEN,
    LEARNING,
    STATIC,
    STOPPED,
    WatchedRun,
    figures_of,
    run_in_world,
    spec_of,
)
from outrider_lab.drift.worlds import ORDERS, Changing, Size
from outrider_lab.running.run_all import run_study
from outrider_policies.sarsa import Sarsa

FIFO = Treatment("fifo", STATIC)
Floats = NDArray[np.float64]


def halves(changing: Changing) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    before = changing.workload.submit_s <= changing.change_s
    return before, ~before


def load(changing: Changing, part: NDArray[np.bool_]) -> float:
    workload = changing.workload
    span_s = np.ptp(workload.submit_s[part])
    cpus = sum(spec.cpus for spec in workload.machines)
    return float((workload.run_s * workload.cpus)[part].sum() / (span_s * cpus))


@pytest.mark.parametrize("name", WORLDS)
def test_a_world_is_a_sound_workload_of_which_half_or_more_lies_after_the_change(name: str) -> None:
    changing = WORLDS[name].make(3, QUICK)
    workload = changing.workload
    n = len(workload.submit_s)
    assert {len(column) for column in (workload.run_s, workload.cpus, workload.estimate_s,
            workload.vo, workload.user, workload.job_class, workload.job_names)} == {n}  # fmt: skip
    assert (np.diff(workload.submit_s) >= 0).all()
    assert (workload.run_s > 0).all()
    assert len(set(workload.job_names)) == n
    before, after = halves(changing)
    assert before.sum() >= n // 4
    assert after.sum() >= n // 3
    again = WORLDS[name].make(3, QUICK).workload
    assert (again.submit_s == workload.submit_s).all(), "the same seed, the same jobs"
    assert not np.array_equal(WORLDS[name].make(4, QUICK).workload.run_s, workload.run_s)


def test_the_load_the_mix_and_the_run_times_change_as_they_say() -> None:
    big = Size(jobs=8000, steps=40_000.0)
    stepped = WORLDS["load step"].make(1, big)
    first, second = (load(stepped, part) for part in halves(stepped))
    assert 1.2 < second / first < 1.5, (first, second)

    mixed = WORLDS["mix"].make(1, big)
    short = np.array([name == "interactive" for name in mixed.workload.job_class])
    shares = [short[part].mean() for part in halves(mixed)]
    assert shares == pytest.approx([0.2, 0.5], abs=0.03)

    stretched = WORLDS["run times"].make(1, big)
    means = [stretched.workload.run_s[part].mean() for part in halves(stretched)]
    assert 2.7 < means[1] / means[0] < 3.3
    loads = [load(stretched, part) for part in halves(stretched)]
    assert loads[1] / loads[0] == pytest.approx(1.0, abs=0.1), "the load stays"


def test_a_guest_comes_at_the_change_and_goes_before_the_end() -> None:
    changing = WORLDS["guest VO"].make(1, QUICK)
    came = changing.workload.submit_s[np.array(changing.workload.vo) == "5"]
    assert came.min() > changing.change_s
    assert came.max() < changing.workload.submit_s[-QUICK.jobs // 4]
    assert sum(changing.workload.shares.values()) == pytest.approx(1.0)


def test_slow_nodes_make_jobs_take_longer_from_the_change_on() -> None:
    steady, slow = (
        run_in_world(spec_of(name, FIFO, QUICK, 2)) for name in ("steady", "slow nodes")
    )
    assert slow["before"]["slowdown"] == pytest.approx(1.0, abs=0.3)
    assert slow["after"]["slowdown"] > slow["before"]["slowdown"]  # type: ignore[operator]
    assert slow.keys() == steady.keys()


def test_figures_are_means_over_the_jobs_of_a_window() -> None:
    changing = WORLDS["steady"].make(5, Size(jobs=4, steps=10.0))
    workload = changing.workload
    workload.submit_s[:] = [0.0, 10.0, 20.0, 30.0]
    workload.run_s[:] = [5.0, 100.0, 20.0, 40.0]
    workload.job_class[:] = ["interactive", "batch", "interactive", "batch"]
    start_s = np.array([1.0, 30.0, 20.0, np.nan])
    end_s = np.array([6.0, 130.0, 60.0, np.nan])  # the third ran at half speed, the fourth never
    found = figures_of(changing._replace(change_s=10.0), start_s, end_s, {"batch": Constant()})
    assert found["before"] == {
        "slowdown": pytest.approx((1.0 + 1.2) / 2), "interactive_wait_s": 1.0,
        "batch_wait_s": 20.0, "utility": 1.0,
    }  # fmt: skip
    assert found["after"]["slowdown"] == 2.0
    assert found["after"]["batch_wait_s"] is None
    assert found["after"]["utility"] == pytest.approx(20.0 / 60.0), "what is never done is worth 0"
    assert found["soon"]["slowdown"] is None, "no job came within the first third after"


def test_a_learner_meets_itself_stopped_and_frozen_and_the_rules() -> None:
    treatments = treatments_of(ORDERS, ["bandit"])
    assert [str(treatment) for treatment in treatments[:3]] == [
        "bandit, learning", "bandit, stopped", "bandit, frozen"
    ]  # fmt: skip
    assert FIFO in treatments[3:]
    with pytest.raises(ConfigurationError, match='"bandit": has no setting "learn"'):
        check_treatments(treatments)


def test_seeds_with_which_later_parts_are_drawn_are_refused() -> None:
    ran = CliRunner().invoke(command, ["--quick", "--seeds", "2499-2500"], standalone_mode=False)
    assert isinstance(ran.exception, ConfigurationError), ran.output
    assert "below 2500" in str(ran.exception)


def test_until_the_change_a_stopped_policy_does_exactly_what_a_learning_one_does() -> None:
    changing = WORLDS["mix"].make(7, QUICK)
    starts = {}
    for mode in (LEARNING, STOPPED, FROZEN):
        policy = spec_of("mix", Treatment("sarsa", mode), QUICK, 7).make_policy()
        run = WatchedRun(changing.workload, [policy], lambda *_: None, utilities=DEFAULT_UTILITIES)
        if mode == STOPPED:
            run.stop_learning_s = changing.change_s
        run.run()
        starts[mode] = run.start_s
        assert isinstance(policy, Sarsa)
        assert policy.settings.learn == (mode == LEARNING)
    until = (starts[LEARNING] < changing.change_s) | (starts[STOPPED] < changing.change_s)
    assert until.sum() > 100
    assert (starts[LEARNING] == starts[STOPPED])[until].all()
    assert not (starts[LEARNING] == starts[STOPPED])[~until].all(), "it did stop"
    assert not (starts[LEARNING] == starts[FROZEN]).all(), "the frozen one never learned"


def test_the_suite_compares_with_the_same_jobs_and_says_too_short_of_a_few_seeds() -> None:
    result = run_study(
        DriftSuite(["load step"], range(2), Size(jobs=300, steps=500.0), ["sarsa"]), 1
    )
    assert result["failed"] == []
    modes = [(row["policy"], row["mode"], row["seeds"]) for row in result["rows"]]
    assert modes[:3] == [("sarsa", mode, 2) for mode in (LEARNING, STOPPED, FROZEN)]
    fifo = next(one for one in result["comparisons"] if one["against"] == "fifo")
    rows = {
        (row["policy"], row["mode"]): row["after"]["slowdown"]["mean"] for row in result["rows"]
    }
    less = fifo["windows"]["after"]["slowdown"]
    assert less["difference"] == pytest.approx(
        rows["sarsa", LEARNING] - rows["fifo", STATIC], abs=1e-9
    )
    assert less["verdict"] == "too small"
    assert [one["against"] for one in result["verdicts"]] == [STOPPED, FROZEN]
    assert "Does learning on line beat the frozen self?" in html(result)
    assert "TRUE RUN TIMES USED: classes are made of true run times (truth:900)" in html(result)
    assert result["settings"]["class_source"] == {"orders": "truth:900", "plans": "none"}


def test_a_run_that_fails_is_named_and_the_others_are_reported() -> None:
    result = run_study(DriftSuite(["steady"], range(1), Size(jobs=40, steps=10.0), ["no_such"]), 1)
    assert len(result["failed"]) == 3
    assert "no_such" in result["failed"][0]["run"]
    assert {row["policy"] for row in result["rows"]} >= {"fifo", "sjf"}
    assert result["verdicts"][0]["verdict"] == "too small"
