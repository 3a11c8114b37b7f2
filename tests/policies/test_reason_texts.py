"""Every reason that an installed policy gives on a campus has a text for people."""

from importlib.metadata import entry_points

import pytest

from outrider.model.decisions import Decision
from outrider.model.reasons import DECISION_TEXTS
from outrider.plugins.finding import make_policy
from outrider.replay.run import CampusRun
from outrider.simulation.generators.campus import generate_campus

CAMPUS = generate_campus(3, weeks=0.6, machines=24, clusters=3)
DAYS_S = 4 * 86_400.0
PREEMPTS = "replan"
"""Policy that preempts runs, which the simulated campus does not support."""
SHIPPED = sorted(
    one.name
    for one in entry_points(group="outrider.policies")
    if one.value.startswith("outrider_policies") and one.name != PREEMPTS
)


@pytest.mark.parametrize("name", SHIPPED)
def test_its_reasons_have_texts(name: str) -> None:
    found: set[str] = set()

    def keep(decision: Decision) -> None:
        found.add(decision.reason)

    run = CampusRun(CAMPUS, [make_policy(name, {}, 1, "test")], keep, DAYS_S)
    run.run()
    assert found, "it decided nothing"
    assert found - DECISION_TEXTS.keys() == set()
