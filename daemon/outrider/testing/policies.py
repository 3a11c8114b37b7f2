"""The conformance suite of policies."""

from collections.abc import Mapping
from typing import Any

from outrider.api.policy import Policy
from outrider.testing.deciding import DecidesSoundly
from outrider.testing.memory import RemembersAndForgetsNothing
from outrider.testing.places import AsksForWhatIsPossible
from outrider.testing.propensities import TellsItsChances
from outrider.testing.verdict import ask_all


class PolicyConformance(
    DecidesSoundly, AsksForWhatIsPossible, TellsItsChances, RemembersAndForgetsNothing
):
    """What every policy must hold. Subclass it, name it ``Test...`` and say which policy.

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
    """Ask a policy everything at once.

    Args:
        policy_type: the class under test.
        settings: settings to build it with, beside its defaults.

    Returns:
        what was asked, and ``passed`` or why it does not apply.

    Raises:
        NotConforming: names every question that was answered wrongly, and how.
    """
    suite = type(
        policy_type.__name__,
        (PolicyConformance,),
        {"policy": policy_type, "settings": dict(settings or {})},
    )
    return ask_all(suite())
