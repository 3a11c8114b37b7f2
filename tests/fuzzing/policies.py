"""Policies that the fuzzed daemon may use."""

from importlib.metadata import entry_points

from outrider.api.policy import Policy


def fuzzable() -> list[str]:
    """Names of all policies that ship and that need no truth, sorted."""
    found: dict[str, type[Policy]] = {
        point.name: point.load() for point in entry_points(group="outrider.policies")
    }
    return sorted(name for name, policy in found.items() if not policy.needs_oracle)
