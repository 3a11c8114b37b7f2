"""What levers declare of themselves."""

from math import isfinite
from typing import Any

from outrider.api.lever import Lever
from outrider.model.decisions import ACTIONS
from outrider.testing.conformance import expect
from outrider.testing.declarations import check_name_and_description


def check_levers(levers: Any) -> None:
    """All that an adapter declares: each sound, and no two for one action."""
    expect(isinstance(levers, tuple), f"levers must be a tuple of Lever classes: {levers!r}")
    seen: dict[str, str] = {}
    for lever in levers:
        check_lever_declaration(lever)
        for action in lever.actions:
            other = seen.setdefault(action, lever.name)
            expect(
                other == lever.name,
                f'the levers "{other}" and "{lever.name}" both carry "{action}"; right would be '
                "one lever for each action",
            )


def check_lever_declaration(lever: Any) -> None:
    """One class: what it is called, what it carries, and that it lapses."""
    expect(
        isinstance(lever, type) and issubclass(lever, Lever),
        f"levers must be subclasses of outrider.api.Lever: {lever!r}",
    )
    check_name_and_description(lever)
    actions = getattr(lever, "actions", None)
    expect(
        isinstance(actions, tuple) and bool(actions) and set(actions) <= set(ACTIONS),
        f"{lever.__name__}.actions is {actions!r}: right would be a tuple of some of "
        f"{', '.join(ACTIONS)}",
    )
    if isinstance(getattr(lever, "lease_s", None), int | float):  # else it is one of each lever
        check_lease(lever)


def check_lease(lever: Any) -> None:
    """A lever, or its class: how long what it changes lasts."""
    lease_s = getattr(lever, "lease_s", None)
    expect(
        isinstance(lease_s, int | float) and isfinite(lease_s) and lease_s > 0,
        f"{lever.name}.lease_s is {lease_s!r}: right would be seconds above 0, after which the "
        "batch system itself forgets the change",
    )
