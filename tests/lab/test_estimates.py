"""Scoring run time estimators: causal, on the same jobs, and with intervals."""

import random
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

from outrider.api import Job, JobSpec, PolicySettings, RunTimeEstimate, RunTimeEstimator
from outrider.formats.swf.reading import read_swf
from outrider.formats.workload import Workload, one_cpu_machines, one_pool
from outrider.model.errors import TraceError
from outrider_lab.commands.estimate import command
from outrider_lab.estimates import Estimates, collect_estimates, fcfs_waits, pinball, score
from outrider_policies.estimators import LastTwoRunTimes, LearnedRunTimes, UserRunTimes
from outrider_policies.estimators.learned import LearnedSettings

Floats = NDArray[np.float64]

SHARED = Path(__file__).parents[3] / "shared" / "data" / "swf"
DAY_S = 86_400.0


class Watching(RunTimeEstimator):
    """Estimator without estimates that records its calls."""

    name = "watching"

    def __init__(self) -> None:
        super().__init__(PolicySettings(), random.Random(1))
        self.calls: list[tuple[float, str, str, float | None]] = []

    def estimate(self, spec: JobSpec, now: float) -> RunTimeEstimate | None:
        self.calls.append((now, "asked", spec.user, spec.estimate_s))
        return None

    def learn(self, job: Job, run_s: float, now: float) -> None:
        self.calls.append((now, "told", job.spec.user, run_s))


class Oracle(Watching):
    """Knows the run time by the user's name; says it, and a range."""

    def estimate(self, spec: JobSpec, now: float) -> RunTimeEstimate | None:
        run_s = float(spec.user)
        return RunTimeEstimate(run_s, 0.9 * run_s, 1.1 * run_s)


def workload(
    submit_s: Floats, run_s: Floats, *, wait_s: Floats | None = None, cpus: list[int] | None = None,
    requested_s: Floats | None = None, user: list[str] | None = None, machines: int = 2,
) -> Workload:  # fmt: skip
    n = len(run_s)
    unknown = np.full(n, np.nan)
    names, specs = one_pool(machines) if cpus else one_cpu_machines(machines)
    return Workload(
        name="made", job_names=[str(j) for j in range(n)], submit_s=submit_s, run_s=run_s,
        cpus=np.array(cpus or [1] * n), requested_s=unknown if requested_s is None else requested_s,
        wait_s=unknown if wait_s is None else wait_s, estimate_s=run_s,
        user=user or [f"{x:g}" for x in run_s.tolist()], vo=["all"] * n,
        job_class=["interactive"] * n, machine_names=names, machines=specs,
    )  # fmt: skip


def test_an_estimator_is_asked_at_submission_and_told_at_the_end_in_the_order_of_time() -> None:
    trace = workload(
        np.array([0.0, 5.0, 30.0]), np.array([20.0, 10.0, 1.0]), wait_s=np.array([10.0, 0.0, 0.0]),
        requested_s=np.array([60.0, np.nan, 60.0]), user=["ada", "bob", "ada"],
    )  # fmt: skip
    watching = Watching()
    assert collect_estimates(trace, {"watching": watching}).waits == "recorded"
    assert watching.calls == [
        (0.0, "asked", "ada", 60.0),
        (5.0, "asked", "bob", None),
        (15.0, "told", "bob", 10.0),
        (30.0, "told", "ada", 20.0),  # an end comes before a submission of the same second
        (30.0, "asked", "ada", 60.0),
        (31.0, "told", "ada", 1.0),
    ]


def test_an_estimator_is_told_the_class_that_the_user_declared() -> None:
    trace = workload(np.array([0.0]), np.array([20.0]), wait_s=np.array([0.0]))
    told: list[str] = []

    class Hears(Watching):
        def estimate(self, spec: JobSpec, now: float) -> RunTimeEstimate | None:
            told.append(spec.job_class)
            return None

    collect_estimates(trace, {"hears": Hears()})
    assert told == trace.job_class == ["interactive"]


def test_waits_that_a_trace_lacks_are_those_of_first_come_first_served() -> None:
    trace = workload(
        np.array([0.0, 1.0, 2.0, 3.0]), np.array([10.0, 4.0, 5.0, 1.0]), cpus=[1, 2, 1, 1]
    )
    # The second needs both CPUs: at 10. The third stands behind it, at 14; the fourth beside it.
    assert fcfs_waits(trace).tolist() == [0.0, 9.0, 12.0, 11.0]


def test_the_pinball_loss_is_the_published_one() -> None:
    loss = pinball(np.array([10.0, 10.0]), np.array([[6.0, 6.0, 6.0], [14.0, 14.0, 14.0]]))
    assert loss == pytest.approx(np.array([[0.4, 2.0, 3.6], [3.6, 2.0, 0.4]]))


def test_the_truth_scores_best_and_is_said_to_be_better() -> None:
    rng = np.random.default_rng(4)
    run_s = rng.choice(np.round(rng.lognormal(6.0, 1.0, 40)) + 1.0, 600)
    submit_s = np.sort(rng.uniform(0.0, 80 * DAY_S, 600))
    trace = workload(submit_s, run_s, wait_s=np.zeros(600), requested_s=10.0 * run_s)
    user = UserRunTimes(PolicySettings(), random.Random(1))
    found = score(trace, collect_estimates(trace, {"oracle": Oracle(), "user": user}))
    assert (found["scored"], found["jobs"]) == (600, 600)
    assert found["block_s"] == 7 * DAY_S
    oracle, asked = found["scores"]["oracle"], found["scores"]["user"]
    assert oracle["coverage"] == 1.0
    assert oracle["pinball_seconds"]["0.5"] == 0.0
    assert asked["factor"] == pytest.approx(10.0, rel=1e-6)
    assert asked["below"]["0.5"] == 1.0
    against = found["against"]["user"]["median_seconds"]
    assert against["verdict"] == "better"
    assert against["interval"]["time"][1] < 0.0
    turned = score(trace, collect_estimates(trace, {"user": user, "oracle": Oracle()}))
    assert turned["against"]["oracle"]["median_seconds"]["verdict"] == "worse"


def test_all_are_scored_on_the_jobs_of_which_each_had_an_opinion() -> None:
    trace = workload(np.arange(4.0), np.full(4, 50.0), wait_s=np.zeros(4))
    half = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [np.nan] * 3, [np.nan] * 3])
    nothing = np.full((4, 3), np.nan)
    told = Estimates({"half": half, "all": np.full((4, 3), 50.0), "mute": nothing}, "recorded")
    found = score(trace, told)
    assert found["scored"] == 2
    assert found["silent"] == ["mute"]
    assert found["against"]["all"]["median_seconds"]["verdict"] == "too small"


def test_a_trace_of_which_nobody_had_an_opinion_is_refused() -> None:
    trace = workload(np.arange(3.0), np.ones(3), wait_s=np.zeros(3))
    with pytest.raises(TraceError, match="made: no job of which every estimator had an opinion"):
        score(trace, collect_estimates(trace, {"watching": Watching()}))


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared traces are not here")
def test_on_a_real_trace_learning_beats_the_user_and_his_last_two_and_its_range_holds() -> None:
    trace = read_swf(SHARED / "KTH-SP2-1996-2.1-cln.swf.gz")
    rng = random.Random(1)
    told = collect_estimates(
        trace,
        {
            "learned": LearnedRunTimes(LearnedSettings(), rng),
            "last_two": LastTwoRunTimes(PolicySettings(), rng),
            "user": UserRunTimes(PolicySettings(), rng),
        },
    )
    found = score(trace, told)
    for other in ("last_two", "user"):
        for loss in ("median_seconds", "median_log_seconds"):
            assert found["against"][other][loss]["verdict"] == "better", (other, loss)
    assert 0.78 < found["scores"]["learned"]["coverage"] < 0.82


def test_a_bad_second_trace_is_refused_before_the_first_is_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = tmp_path / "good.swf", tmp_path / "bad.swf"
    good.write_text("; MaxProcs: 4\n1 0 0 50 1 -1 -1 1 90 -1 1 1 1 -1 -1 -1 -1 -1\n")
    bad.write_text("")
    begun: list[object] = []
    monkeypatch.setattr(
        "outrider_lab.estimates.collect_estimates", lambda *given: begun.append(given)
    )
    ran = CliRunner().invoke(command, [str(good), str(bad)], standalone_mode=False)
    assert isinstance(ran.exception, TraceError), ran.output
    assert "bad.swf: contains no job" in str(ran.exception)
    assert not begun
