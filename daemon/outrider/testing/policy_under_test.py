"""The policy under test, and how to make a new one."""

from collections.abc import Mapping
from typing import Any, ClassVar

from outrider.api.policy import Policy
from outrider.model.settings import build
from outrider.plugins.random_streams import stream
from outrider.testing.campuses import tiny_campus
from outrider.testing.fixtures import Shadow


class PolicyUnderTest:
    """Base of the policy suites.

    Class variables:
        policy: the class under test.
        settings: settings to build it with, beside its defaults.
    """

    policy: ClassVar[type[Policy]]
    settings: ClassVar[Mapping[str, Any]] = {}

    def make(self, seed: int = 0) -> Policy:
        """A new policy with a seed, made as by replay and the daemon."""
        record = self.policy.settings_type
        return self.policy(
            build(record, self.settings, record.__name__),
            stream(seed, f"policy:{self.policy.name}"),
        )

    def in_shadow(self, policy: Policy, order: tuple[int, ...] = (0, 1, 2)) -> Shadow:
        """The policy in shadow beside the tiny campus; `order` numbers its clusters."""
        campus = tiny_campus()
        return Shadow(policy, [campus.clusters[at] for at in order], campus.start)
