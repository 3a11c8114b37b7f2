"""The conformance suite of policies."""

from collections.abc import Mapping
from typing import Any

from outrider.api.policy import Policy
from outrider.testing.conformance import run_all_tests
from outrider.testing.decision_tests import DecisionTests
from outrider.testing.learning_tests import LearningTests
from outrider.testing.placement_tests import PlacementTests
from outrider.testing.propensity_tests import PropensityTests


class PolicyConformance(DecisionTests, PlacementTests, PropensityTests, LearningTests):
    """The contract of every policy. Subclass it, name it ``Test...`` and set the policy.

    ::

        class TestCoolestRoom(PolicyConformance):
            policy = CoolestRoom

    Class variables:
        policy: the class under test.
        settings: settings to build it with, beside its defaults.
    """


def check_policy(
    policy_type: type[Policy], settings: Mapping[str, Any] | None = None
) -> dict[str, str]:
    """Run all tests on a policy.

    Args:
        policy_type: the class under test.
        settings: settings to build it with, beside its defaults.

    Returns:
        for each test, ``passed`` or why it does not apply.

    Raises:
        NotConforming: names every test that failed, and why.
    """
    suite = type(
        policy_type.__name__,
        (PolicyConformance,),
        {"policy": policy_type, "settings": dict(settings or {})},
    )
    return run_all_tests(suite())
