"""Conformance tests of the simulated campus's lever, and its effect on the current scheduler."""

from typing import Any

import pytest

from outrider.api import ConfigurationError, DecisionRow, Lever, PeerError
from outrider.testing import LeverConformance, LeverHarness
from outrider_adapters.simulated import SimulatedAdapter, SimulatedLever, SimulatedSettings

SPEED = 60.0


def adapter_with(**settings: Any) -> SimulatedAdapter:
    """Return a small campus with a separate clock."""
    small: dict[str, Any] = {"machines": 20, "clusters": 2, "weeks": 1.0, "speed": SPEED}
    return SimulatedAdapter("campus", SimulatedSettings(**(small | settings)))


class Campus(LeverHarness):
    """Harness with two waiting jobs, on a clock that the test moves."""

    gone = "job-99"

    def __init__(self) -> None:
        self.adapter = adapter_with(cycle_s=60.0)
        self.board = self.adapter.board
        self.board.now_s = 1_000.0
        self.board.is_queued = lambda job: job in ("job-1", "job-2")

    def lever(self) -> Lever:
        return SimulatedLever(self.adapter)

    def decision(self) -> DecisionRow:
        return DecisionRow(0.0, "job-1", "start", "m-1", 1, "best", "survival", "canary")

    def seen(self) -> list[Any]:
        return [self.board.lease_now(job) for job in ("job-1", "job-2")]

    def wait(self, seconds: float) -> None:
        self.board.now_s += seconds * SPEED


class TestSimulatedLever(LeverConformance):
    def harness(self) -> LeverHarness:
        return Campus()


def test_where_jobs_are_matched_at_once_it_says_what_is_missing() -> None:
    lever = SimulatedLever(adapter_with())
    with pytest.raises(PeerError, match="cycle_s above 0"):
        lever.apply([DecisionRow(0.0, "1", "defer", None, 0, "dear", "survival", "canary")])


def test_an_incumbent_with_an_order_of_its_own_cannot_heed_it() -> None:
    with pytest.raises(ConfigurationError, match="decides job by job"):
        next(adapter_with(cycle_s=60.0, incumbent="sjf", speed=0.0)._events())
