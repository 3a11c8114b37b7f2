"""Figures of one run, on workloads small enough to compute by hand."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from outrider.api import Policy, PolicySettings, Ranks
from outrider.engine.accounting.fairness import Fairness
from outrider.formats.job_classes import as_classes
from outrider.formats.workload import Workload, one_cpu_machines
from outrider.model.decisions import DEFER, START, Choice, Decision
from outrider.plugins.finding import stream
from outrider.simulation.generators.grids import perez_grid
from outrider_lab.papers.perez.figures import MOMENTS, FirstStarts, fairness_at, figures_of
from outrider_lab.papers.perez.grid import EDF, FIFO, FULL, SJF, Situation, Size
from outrider_lab.papers.perez.grid_run import (
    DAYS,
    MACHINES,
    DecisionClock,
    egee_window,
    run_on_grid,
    spec_of,
)
from outrider_lab.running.run_spec import PolicySpec

HALVES = {"a": 0.5, "b": 0.5}
SMALL = Size(True, 1200, 20, 30, 300, ("exact",))


def workload(jobs: list[tuple[float, float, str]]) -> Workload:
    """One machine; (submit_s, run_s, vo) of each job."""
    submit, run, vo = zip(*jobs, strict=True)
    names, machines = one_cpu_machines(1)
    nothing = np.full(len(jobs), np.nan)
    run_s = np.array(run, dtype=float)
    return Workload(
        "small", [f"j{n}" for n in range(len(jobs))], np.array(submit, dtype=float), run_s,
        np.ones(len(jobs), dtype=np.int64), nothing, nothing, run_s, [""] * len(jobs), list(vo),
        as_classes(run_s < 900), names, machines,
    )  # fmt: skip


def test_waits_and_overheads_are_those_of_each_class() -> None:
    small = workload([(0, 100, "a"), (0, 200, "b"), (50, 1000, "a"), (60, 400, "b")])
    found = figures_of(small, np.array([0.0, 100.0, 350.0, 3060.0]), HALVES).scalars
    assert found["interactive.mean"] == pytest.approx((0 + 100 + 3000) / 3)
    assert found["interactive.median"] == 100
    assert found["interactive.max"] == 3000
    assert found["interactive.std"] == pytest.approx(np.std([0, 100, 3000]))
    assert found["interactive.le_1"] == pytest.approx(2 / 3)
    assert found["interactive.acceptable"] == pytest.approx(2 / 3)
    assert found["interactive.overhead"] == pytest.approx((0 + 0.5 + 7.5) / 3)
    assert found["batch.mean"] == 300
    assert found["batch.overhead"] == pytest.approx(0.3)
    assert found["work_weighted_wait"] == pytest.approx((20_000 + 300_000 + 1_200_000) / 1700)
    assert found["span_h"] == pytest.approx(60 / 3600)


def test_the_last_arrivals_do_not_count_for_waits() -> None:
    small = workload([(0, 100, "a"), (0, 200, "b"), (50, 1000, "a"), (60, 400, "b")])
    found = figures_of(small, np.array([0.0, 100.0, 350.0, 3060.0]), HALVES, unreported=1).scalars
    assert found["interactive.max"] == 100
    assert found["span_h"] == pytest.approx(60 / 3600), "they are still part of the run"


def test_a_class_without_jobs_has_no_figures() -> None:
    found = figures_of(workload([(0, 100, "a"), (10, 50, "b")]), np.array([0.0, 100.0]), HALVES)
    assert np.isnan(found.scalars["batch.mean"])
    assert found.wait_s["batch"] == []
    assert np.isnan(found.course_s["batch"]).all()


def test_fairness_is_that_of_the_service_delivered_so_far() -> None:
    small = workload([(0, 100, "a"), (0, 100, "b")])
    start_s = np.array([0.0, 100.0])
    found = fairness_at(np.array([0.0, 50.0, 150.0, 200.0]), small, start_s, HALVES)
    assert np.isnan(found[0]), "nothing was delivered yet"
    assert found[1:].tolist() == pytest.approx([0.0, 1 - (0.5 - 1 / 3) / 0.5, 1.0])


def test_a_vo_without_a_target_takes_its_service_from_the_others() -> None:
    small = workload([(0, 100, "a"), (0, 300, "stranger")])
    found = fairness_at(np.array([400.0]), small, np.array([0.0, 100.0]), {"a": 1.0})
    assert found[0] == pytest.approx(0.25)


def test_fairness_agrees_with_the_engines_own() -> None:
    """Two ways to one figure: from first starts afterwards, and event by event."""
    drawn = perez_grid(0.2, 11, jobs=200)
    rng = np.random.default_rng(1)
    start_s = drawn.submit_s + rng.exponential(500.0, 200)
    book = Fairness({"1": 0.4, "2": 0.2, "3": 0.2, "4": 0.2})
    ends = [(t, 0, n) for n, t in enumerate(start_s + drawn.run_s)]
    begins = [(t, 1, n) for n, t in enumerate(start_s)]
    comes = [(t, 2, n) for n, t in enumerate(drawn.submit_s)]
    for time_s, kind, job in sorted(ends + begins + comes):
        if kind == 2:
            book.submitted(drawn.vo[job], time_s)
        else:
            book.change(drawn.vo[job], 1 if kind else -1, time_s, time_s)
    found = figures_of(drawn, start_s, book.targets)
    assert found.scalars["fairness"] == pytest.approx(book.report(1e9)["utility"], abs=1e-9)
    assert len(found.fairness) == MOMENTS


def test_only_the_first_start_of_a_job_counts_and_refusals_are_kept() -> None:
    starts = FirstStarts(workload([(0, 100, "a"), (0, 200, "b")]))
    told: list[tuple[float, int, str, str]] = [
        (1.0, 0, DEFER, "no_machine"), (5.0, 0, START, "refused"),
        (9.0, 0, START, "first"), (7.0, 1, START, "first"),
    ]  # fmt: skip
    for time_s, job, action, reason in told:
        starts.keep(Decision(time_s, job, action, 0, 1, reason, "sdj"))
    assert starts.start_s.tolist() == [5.0, 7.0]
    assert starts.refused == {0}


def figures(policy: PolicySpec, targets: str = "feasible", estimates: str = "exact") -> Any:
    return scalars(Situation("0.2", targets, estimates), policy, SMALL, 7)


def scalars(situation: Situation, policy: PolicySpec, size: Size, seed: int) -> Any:
    return run_on_grid(spec_of(situation, policy, size, seed))["figures"]["scalars"]


def test_a_run_has_its_policy_on_the_arrivals_of_its_seed() -> None:
    fifo, sjf, edf = figures(FIFO), figures(SJF), figures(EDF)
    assert fifo["span_h"] == sjf["span_h"] == edf["span_h"]
    assert sjf["interactive.mean"] < fifo["interactive.mean"]
    assert fifo["batch.max"] < sjf["batch.max"]
    assert fifo["decision_s.p99"] >= fifo["decision_s.p50"] > 0
    other = scalars(Situation("0.2"), FIFO, SMALL, 8)
    assert other["span_h"] != fifo["span_h"]


def test_targets_change_what_is_owed_and_estimates_what_is_known() -> None:
    assert figures(FIFO, "infeasible")["fairness"] < 0.75 < figures(FIFO)["fairness"]
    assert figures(FIFO, estimates="lognormal:1.0")["batch.mean"] == figures(FIFO)["batch.mean"]
    assert figures(SJF, estimates="lognormal:1.0")["batch.mean"] != figures(SJF)["batch.mean"]


def test_the_same_run_gives_the_same_waits() -> None:
    once, again = (
        {k: v for k, v in figures(SJF).items() if k.endswith((".mean", ".max", "fairness"))}
        for _ in range(2)
    )
    assert once == again


def test_the_clock_of_decisions_changes_none() -> None:
    class Asked(Ranks, Policy):
        """Counts what it is asked."""

        name = "asked"

        ranks = chooses = 0

        def rank(self, queue: Any, view: Any) -> Any:
            self.ranks += 1
            return np.zeros(1)

        def choose(self, job: Any, evaluation: Any, view: Any, may_defer: bool) -> Choice:
            self.chooses += 1
            return Choice(3, "so")

    policy = Asked(PolicySettings(), stream(0, "policy:asked"))
    clock = DecisionClock(policy)
    assert policy.rank(None, None).tolist() == [0.0]
    assert policy.choose(None, None, None, True).machine == 3
    assert policy.choose(None, None, None, True).reason == "so"
    assert (policy.ranks, policy.chooses, len(clock.seconds)) == (1, 2, 2)
    assert set(clock.percentiles()) == {"decision_s.p50", "decision_s.p99"}


# -- windows like that of the EGEE site -----------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_window_has_what_the_paper_tells_of_its_own(seed: int) -> None:
    window = egee_window(seed)
    short = window.run_s < 900
    assert len(window.run_s) == 6000
    assert len(window.machine_names) == MACHINES == 100
    assert short.mean() == pytest.approx(0.62)
    assert window.run_s[short].sum() < 0.03 * window.run_s.sum()
    assert DAYS - 1 < window.submit_s[-1] / 86_400 < DAYS + 0.1
    assert (np.diff(window.submit_s) >= 0).all()
    assert [name == "interactive" for name in window.job_class] == short.tolist()
    assert set(window.vo) <= set(window.shares)
    assert sum(window.shares.values()) == pytest.approx(1.0)


def test_a_seed_gives_the_same_window_again_and_another_seed_another() -> None:
    def fingerprint(seed: int) -> Mapping[str, Any]:
        window = egee_window(seed, 500)
        return {"submit": window.submit_s.tolist(), "run": window.run_s.tolist(), "vo": window.vo}

    assert fingerprint(4) == fingerprint(4)
    assert fingerprint(4) != fingerprint(5)


def test_under_fifo_waits_of_windows_are_of_the_size_of_table_iii() -> None:
    """The only measure of the load; on seeds that nothing was chosen by."""
    means = [scalars(Situation("egee", "intended"), FIFO, FULL, seed) for seed in range(101, 107)]
    for name, printed_s in (("interactive", 5876), ("batch", 7695)):
        mean_s = np.mean([one[f"{name}.mean"] for one in means])
        assert printed_s / 2 < mean_s < printed_s * 2, f"{name}: {mean_s:.0f} s"
