"""`WindowPolicy`: what it sees, and that in shadow it selects as it would if it acted."""

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import outrider
from outrider.api import WINDOW_FEATURES, Job, Observation, PolicySettings, WindowPolicy
from outrider.formats.workload import Workload
from outrider.model.decisions import START, Decision
from outrider.plugins.finding import make_policy
from outrider.replay.grid_run import GridRun
from outrider.simulation.estimates import estimate_rule, estimated


class Youngest(WindowPolicy[PolicySettings]):
    """Selects the last row of its window, and notes what it was shown."""

    name, description, api_version = "youngest", "the youngest of the oldest eight", 1
    size = 8

    def __init__(self, settings: PolicySettings, rng: random.Random) -> None:
        super().__init__(settings, rng, self.size)
        self.shown: list[tuple[list[int], Observation]] = []

    def select(self, jobs: list[Job], observation: Observation) -> int:
        self.shown.append(([job.number for job in jobs], observation))
        return len(jobs) - 1


class NoRow(Youngest):
    """Selects what is no row."""

    name = "no_row"
    row = -1

    def select(self, jobs: list[Job], observation: Observation) -> int:
        return self.row


@pytest.fixture
def at_once() -> Workload:
    """Return twelve jobs that come together, on two machines."""
    trace = outrider.generate_grid(1, row=0.4, jobs=12, machines=2)
    return estimated(replace(trace, submit_s=np.zeros(12)), estimate_rule("exact"), 0)


def starts_at_once(trace: Workload, policies: list[Any]) -> dict[str, list[int]]:
    """Return the jobs started at second 0, in order, by policy."""
    decisions: list[Decision] = []
    GridRun(trace, policies, decisions.append).run()
    return {
        policy.name: [
            d.job for d in decisions
            if d.policy == policy.name and d.action == START and d.time_s == 0.0
        ]
        for policy in policies
    }  # fmt: skip


def youngest() -> Youngest:
    policy = make_policy("youngest", {}, 0, "test", kind=Youngest)
    assert isinstance(policy, Youngest)
    return policy


def test_in_shadow_it_would_start_what_it_starts_when_it_acts(at_once: Workload) -> None:
    acting = starts_at_once(at_once, [youngest()])["youngest"]
    assert acting == [7, 8]  # the eighth; once it is gone the window reaches one further
    both = starts_at_once(at_once, [make_policy("fifo", {}, 0, "test"), youngest()])
    assert both == {"fifo": [0, 1], "youngest": acting}


def test_it_is_asked_only_where_there_is_a_choice_and_a_free_cpu(at_once: Workload) -> None:
    policy = youngest()
    GridRun(at_once, [policy], lambda decision: None).run()
    assert all(len(jobs) >= 2 for jobs, _ in policy.shown)
    free = WINDOW_FEATURES.index("free_cpus")
    assert all(seen[0, free] > 0.0 for _, seen in policy.shown)
    assert len(policy.shown) == 11  # of twelve starts; the last job is alone


def test_what_is_shown_is_what_the_page_says(at_once: Workload) -> None:
    policy = youngest()
    GridRun(at_once, [policy], lambda decision: None).run()
    jobs, seen = policy.shown[0]
    assert jobs == list(range(8))
    at = {name: seen[:, n] for n, name in enumerate(WINDOW_FEATURES)}
    four_weeks = np.log1p(28 * 86_400.0)
    assert at["is_job"].tolist() == [1.0] * 8
    assert at["wait"].tolist() == [0.0] * 8
    assert at["estimate"] == pytest.approx(np.log1p(at_once.run_s[:8]) / four_weeks, rel=1e-6)
    assert at["cpus"].tolist() == [0.5] * 8
    assert at["fits_now"].tolist() == at["free_cpus"].tolist() == [1.0] * 8
    assert at["queue_length"] == pytest.approx([np.log1p(12) / np.log1p(10_000)] * 8, rel=1e-6)
    assert seen.dtype == np.float32
    assert seen.min() >= 0.0
    assert seen.max() <= 1.0


@pytest.mark.parametrize("row", [-1, 8, 10_000])
def test_what_is_no_row_means_the_oldest(at_once: Workload, row: int) -> None:
    policy = NoRow(PolicySettings(), random.Random(0))
    policy.row = row
    assert starts_at_once(at_once, [policy])["no_row"] == [0, 1]


def test_one_of_ones_own_runs_in_the_python_api() -> None:
    trace = outrider.generate_grid(1, row=0.4, jobs=60, machines=4)
    assert outrider.replay(trace, policy=Youngest).jobs["completed"] == 60
