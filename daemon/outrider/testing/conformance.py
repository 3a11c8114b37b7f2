"""Running conformance tests, and the error that tells an author what to change."""

import unittest
from collections.abc import Iterator
from typing import Any


class NotConforming(AssertionError):  # noqa: N818 - a test result, not a fault of this program
    """The plugin breaks its contract; the message names the place and what would be right."""


def expect(holds: bool, message: str) -> None:
    """Raise `NotConforming` with the message unless the condition holds."""
    if not holds:
        raise NotConforming(message)


def test_names(suite: type[Any]) -> Iterator[str]:
    """Names of the tests of a suite, in the order in which they were written."""
    seen: dict[str, None] = {}
    for kind in reversed(suite.__mro__):
        seen |= dict.fromkeys(name for name in vars(kind) if name.startswith("test_"))
    yield from seen


def run_all_tests(suite: Any) -> dict[str, str]:
    """Run all tests of a suite.

    Returns:
        for each test, ``passed`` or why it does not apply.

    Raises:
        NotConforming: names every test that failed, and why.
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
