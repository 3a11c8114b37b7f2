"""Base of policy tests: creates the policy, and runs it for several tests."""

import random
import time
from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, NamedTuple

from outrider.api.policy import Policy
from outrider.engine.state.site import Site
from outrider.model.events import NamedEvent
from outrider.model.jobs import Job
from outrider.model.settings import build
from outrider.plugins.finding import stream
from outrider.testing.campuses import tiny_campus
from outrider.testing.fixtures import Row, Shadow, decisions_of, observed_events
from outrider.testing.instrumented_policy import (
    InstrumentedPolicy,
    check_explanation,
    check_scores,
)


class InstrumentedRun(NamedTuple):
    """Whole run of an instrumented policy that explains each job after each decision.

    Attributes:
        counts: the instrumented policy, with its counts.
        wall_s: duration of the run.
        unexplained: the first error of `explain` or `scores`; None if there was none.
    """

    counts: InstrumentedPolicy
    wall_s: float
    unexplained: Exception | None


class PolicyUnderTest:
    """Base of the policy suites.

    Class variables:
        policy: the class under test.
        settings: settings to build it with, besides its defaults.
    """

    policy: ClassVar[type[Policy]]
    settings: ClassVar[Mapping[str, Any]] = {}

    def make(self, seed: int = 0) -> Policy:
        """Return a new policy with a seed, made as by replay and the daemon."""
        record = self.policy.settings_type
        return self.policy(
            build(record, self.settings, record.__name__),
            stream(seed, f"policy:{self.policy.name}"),
        )

    def in_shadow(self, policy: Policy, order: tuple[int, ...] = (0, 1, 2)) -> Shadow:
        """Return the policy in shadow of the tiny campus; `order` numbers its clusters."""
        campus = tiny_campus()
        return Shadow(policy, [campus.clusters[at] for at in order], campus.start)

    def plain_run(self) -> list[Row]:
        """Return the decisions of a run on the tiny campus; it is shared by a suite's tests."""
        suite = type(self)
        if suite not in _plain_runs:
            random.seed(1)  # a policy that draws from it differs from the next run
            _plain_runs[suite] = decisions_of(tiny_campus(), self.make())
        return _plain_runs[suite]

    def instrumented_run(self, seed: int = 0) -> InstrumentedRun:
        """Return the instrumented run on a tiny campus; it is shared by a suite's tests.

        Raises:
            NotConforming: names the first decision that breaks the contract.
        """
        key = type(self), seed
        if key not in _instrumented_runs:
            policy = self.make()
            explained = _Explained(policy)
            counts = InstrumentedPolicy(policy, look=explained.look)
            began = time.perf_counter()
            decisions_of(tiny_campus(seed), policy)
            wall_s = time.perf_counter() - began
            _instrumented_runs[key] = InstrumentedRun(counts, wall_s, explained.error)
        return _instrumented_runs[key]


class _Explained:
    """Caller of a policy's explanations, until the first failure.

    Attributes:
        error: the failure; None if there was none.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.error: Exception | None = None

    def look(self, job: Job, site: Site) -> None:
        """Check `explain` and `scores` for a job."""
        if self.error is not None:
            return
        policy, where = self._policy, f"at {site.now:g} s"
        try:
            check_explanation(policy.explain(job, site), where)
            check_scores(policy.scores(policy.group_key(job, site), site), where)
        except Exception as error:  # noqa: BLE001 - raised by the test that it belongs to
            self.error = error


_plain_runs: dict[type[PolicyUnderTest], list[Row]] = {}
_instrumented_runs: dict[tuple[type[PolicyUnderTest], int], InstrumentedRun] = {}


@cache
def tiny_campus_events() -> tuple[NamedEvent, ...]:
    """Return the events of the tiny campus under the incumbent: the same for every policy."""
    return tuple(observed_events(tiny_campus()))
