"""The settings of a policy as they took effect, as reports tell them."""

from math import isinf
from typing import Any

import msgspec

from outrider.api.policy import Policy


def effective_settings(policy: Policy, reconsider_s: float) -> dict[str, Any]:
    """Every setting by name, as plain data.

    Args:
        policy: whose settings.
        reconsider_s: the decision epoch in force, seconds; it stands in for the policy's own.

    Returns:
        Values that JSON knows; an infinite one is the text ``inf``.
    """
    settings: dict[str, Any] = msgspec.to_builtins(policy.settings)
    if "reconsider_s" in settings:
        settings["reconsider_s"] = reconsider_s
    return {
        name: "inf" if isinstance(value, float) and isinf(value) else value
        for name, value in settings.items()
    }
