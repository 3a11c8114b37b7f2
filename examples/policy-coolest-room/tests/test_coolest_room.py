"""Policy contract tests, and tests of this policy's own behaviour."""

import datetime as dt

import pytest
from outrider_coolest_room import CoolestRoom

from outrider.api import ClusterSpec, JobSpec, MachineSpec, NamedEvent, events
from outrider.testing import PolicyConformance
from outrider.testing.fixtures import Shadow

A_RUN_IN_THE_ATTIC: list[NamedEvent] = [
    (0.0, events.JOINED, "a1", MachineSpec(cluster="attic", active_w=200.0)),
    (0.0, events.JOINED, "c1", MachineSpec(cluster="cellar", active_w=50.0)),
    (10.0, events.SUBMITTED, "job-1", JobSpec()),
    (20.0, events.STARTED, "job-1", ("a1", 1)),
    (3620.0, events.COMPLETED, "job-1", None),
]


class TestCoolestRoom(PolicyConformance):
    policy = CoolestRoom


def test_a_run_heats_its_room_and_the_next_job_goes_elsewhere() -> None:
    policy = TestCoolestRoom().make()
    clusters = [ClusterSpec("attic"), ClusterSpec("cellar")]
    shadow = Shadow(policy, clusters, dt.datetime(2026, 11, 21))  # noqa: DTZ001 - a wall clock
    shadow.play(A_RUN_IN_THE_ATTIC)
    assert policy.scores((), shadow.site) == pytest.approx({"attic": 200.0, "cellar": 0.0})

    shadow.play([(3620.0 + 7200.0, events.SUBMITTED, "job-2", JobSpec())])
    assert policy.scores((), shadow.site) == pytest.approx({"attic": 100.0, "cellar": 0.0})
    assert shadow.rows[-1].machine == "c1"
