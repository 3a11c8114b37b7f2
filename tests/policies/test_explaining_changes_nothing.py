"""Explanations have no side effects on what a policy decides, draws and remembers."""

from typing import Any

import pytest

from outrider.api import Policy
from outrider.engine.scheduling.policy_runner import save_runner
from outrider.model.decisions import Decision
from outrider.plugins.finding import POLICIES, find, load_policy, make_policy
from outrider.replay.grid_run import GridRun
from outrider.replay.run import CampusRun, TraceRun
from outrider.testing.campuses import DAY_S, tiny_campus
from outrider.testing.fixtures import as_grid, plans

JOBS_EACH_TIME = 3
LOOKS_EVERY_EVENTS = 7
OF_OURS = [name for name, point in find(POLICIES).items() if "outrider_policies" in point.value]


def run_of(policy: Policy, decisions: list[Decision]) -> TraceRun:
    """A day and a half of the tiny campus; one that plans gets the grid made of it."""
    campus = tiny_campus()
    if plans(policy):
        return GridRun(as_grid(campus), [policy], decisions.append, 1.5 * DAY_S)
    return CampusRun(campus, [policy], decisions.append, 1.5 * DAY_S)


def outcome(name: str, looks: int) -> tuple[list[Decision], dict[str, Any], set[str]]:
    """Decisions, the state at the end, and what was said, where jobs are explained so often."""
    decisions: list[Decision] = []
    policy = make_policy(name, {}, 3, "test")
    run, said = run_of(policy, decisions), set[str]()
    for n, _ in enumerate(run.stream()):
        if n % LOOKS_EVERY_EVENTS:
            continue
        for job in list(run.site.jobs.values())[-JOBS_EACH_TIME:]:
            sentences = {policy.explain(job, run.site) for _ in range(looks)}
            assert len(sentences) <= 1, "the second look finds what the first found"
            said |= sentences
    return decisions, save_runner(run.runners[0], run.site), said


@pytest.mark.parametrize("name", OF_OURS)
def test_a_policy_that_explains_itself_decides_and_remembers_the_same(name: str) -> None:
    load_policy(name)
    silent, silent_state, _ = outcome(name, 0)
    explained, explained_state, said = outcome(name, 2)
    assert said, "some job was explained"
    assert explained == silent
    assert explained_state == silent_state
