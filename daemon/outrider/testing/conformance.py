"""Runner of conformance tests, and the error that reports what to change."""

import re
import unittest
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

import msgspec

from outrider.api.lever import Lever
from outrider.model.decisions import ACTIONS
from outrider.model.errors import ConfigurationError
from outrider.model.settings import Setting, build, describe
from outrider.plugins.finding import CONTRACTS, READERS, wrong_version


class NotConforming(AssertionError):  # noqa: N818 - a test result, not a fault of this program
    """Breach of a plugin's contract; the message names the place and what is expected."""


def expect(holds: bool, message: str) -> None:
    """Raise `NotConforming` with the message unless the condition holds."""
    if not holds:
        raise NotConforming(message)


def test_names(suite: type[Any]) -> Iterator[str]:
    """Yield the names of a suite's tests, in the order in which they were written."""
    seen: dict[str, None] = {}
    for kind in reversed(suite.__mro__):
        seen |= dict.fromkeys(name for name in vars(kind) if name.startswith("test_"))
    yield from seen


def run_all_tests(suite: Any) -> dict[str, str]:
    """Run all tests of a suite.

    Returns:
        for each test, ``passed`` or why it does not apply.

    Raises:
        NotConforming: names every failed test, with the cause.
    """
    results: dict[str, str] = {}
    failures: list[str] = []
    for name in test_names(type(suite)):
        try:
            getattr(suite, name)()
        except unittest.SkipTest as reason:
            results[name] = f"does not apply: {reason}"
        except Exception as error:  # noqa: BLE001 - plugin code may raise anything; all is reported
            failures.append(f"{name}: {type(error).__name__}: {error}")
        else:
            results[name] = "passed"
    if failures:
        raise NotConforming("\n".join(failures))
    return results


# -- declarations ----------------------------------------------------------------------------------
# Declarations of a plugin: name, description, version and settings.

_MAX_LETTERS = 120
_UNITS = {
    "sec": "_s", "secs": "_s", "second": "_s", "seconds": "_s", "ms": "_s", "millis": "_s",
    "min": "_s", "mins": "_s", "minutes": "_s", "hour": "_s", "hours": "_s",
    "timeout": "_s", "interval": "_s", "delay": "_s", "period": "_s", "duration": "_s",
    "age": "_s", "lifetime": "_s", "life": "_s", "watt": "_w", "watts": "_w", "kw": "_w",
    "power": "_w", "joule": "_j", "joules": "_j", "kwh": "_j", "wh": "_j", "energy": "_j",
    "percent": "_ratio", "pct": "_ratio",
}  # fmt: skip
"""Last words of a number's name that leave its unit open, or name another than Outrider's unit."""


def check_identity(plugin: type[Any], group: str) -> None:
    """Check the name, the description of one line, and the version of the group's contract."""
    check_name_and_description(plugin, "_-" if group == READERS else "_")
    wrong = wrong_version(CONTRACTS[group], plugin)
    expect(not wrong, f"{plugin.__name__} {wrong}")


def check_name_and_description(plugin: type[Any], joins: str = "_") -> None:
    """Check that a name can be typed, with words joined by one of `joins`; and the description."""
    for attribute in ("name", "description"):
        value = getattr(plugin, attribute, None)
        expect(isinstance(value, str), f"{plugin.__name__}.{attribute} must be a string: {value!r}")
    expect(
        re.fullmatch(f"[a-z][a-z0-9{joins}]*", plugin.name) is not None,
        f"name {plugin.name!r}: expected small letters, digits and {' or '.join(joins)}, "
        "such as 'coolest_room'",
    )
    line = plugin.description
    expect(
        0 < len(line) <= _MAX_LETTERS and "\n" not in line,
        f"description {line!r}: expected one line of at most {_MAX_LETTERS} letters",
    )


def check_settings(
    record: type[msgspec.Struct], base: type[msgspec.Struct], given: Mapping[str, Any]
) -> None:
    """Check that every setting has a unit, a description, and a default that is allowed."""
    expect(
        isinstance(record, type) and issubclass(record, base),
        f"settings_type must be a subclass of {base.__name__}: {record!r}",
    )
    expect(record.__struct_config__.frozen, f"{record.__name__} must be declared frozen=True")
    for setting in describe(record):
        where = f"{record.__name__}.{setting.name}"
        expect(
            bool(setting.doc),
            f"{where} has no description; describe what it does and why one would change it: "
            "Annotated[..., msgspec.Meta(description=...)]",
        )
        _check_unit(setting, where)
        if setting.required:
            expect(
                setting.name in given, f"{where} has no default: pass a value for it to the suite"
            )
    made = build(record, given, record.__name__)
    plain = msgspec.to_builtins(made)
    try:
        again = build(record, plain, record.__name__)
    except ConfigurationError as error:
        expect(False, f"a default of {record.__name__} is not among the values it allows: {error}")
    else:
        expect(again == made, f"{record.__name__} read back from plain data differs: {again!r}")


def _check_unit(setting: Setting, where: str) -> None:
    last = setting.name.rpartition("_")[2]
    number = isinstance(setting.default, (int, float)) and not isinstance(setting.default, bool)
    expect(
        not (number and last in _UNITS),
        f"{where} has no unit; expected a name that ends with {_UNITS.get(last, '_s')!r}",
    )


# -- lever declarations ----------------------------------------------------------------------------
# Declarations of levers.


def check_levers(levers: Any) -> None:
    """Check the levers of an adapter: each is valid, and no two have the same action."""
    expect(isinstance(levers, tuple), f"levers must be a tuple of Lever classes: {levers!r}")
    seen: dict[str, str] = {}
    for lever in levers:
        check_lever_declaration(lever)
        for action in lever.actions:
            other = seen.setdefault(action, lever.name)
            expect(
                other == lever.name,
                f'the levers "{other}" and "{lever.name}" both execute "{action}"; expected '
                "one lever for each action",
            )


def check_lever_declaration(lever: Any) -> None:
    """Check a lever class: its name, its actions, and its lease."""
    expect(
        isinstance(lever, type) and issubclass(lever, Lever),
        f"levers must be subclasses of outrider.api.Lever: {lever!r}",
    )
    check_name_and_description(lever)
    actions = getattr(lever, "actions", None)
    expect(
        isinstance(actions, tuple) and bool(actions) and set(actions) <= set(ACTIONS),
        f"{lever.__name__}.actions is {actions!r}: expected a tuple of some of "
        f"{', '.join(ACTIONS)}",
    )
    if isinstance(getattr(lever, "lease_s", None), int | float):  # else each lever has its own
        check_lease(lever)


def check_lease(lever: Any) -> None:
    """Check the lease of a lever, or of its class."""
    lease_s = getattr(lever, "lease_s", None)
    expect(
        isinstance(lease_s, int | float) and isfinite(lease_s) and lease_s > 0,
        f"{lever.name}.lease_s is {lease_s!r}: expected seconds above 0, after which the "
        "batch system itself reverts the change",
    )
