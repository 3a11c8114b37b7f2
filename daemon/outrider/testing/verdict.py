"""The verdict on a plugin: what it broke, in words its author can act on."""

import unittest
from collections.abc import Iterator
from typing import Any


class NotConforming(AssertionError):  # noqa: N818 - a verdict, not a fault of this program
    """The plugin breaks its contract; the message says where and what would be right."""


def expect(holds: bool, message: str) -> None:
    """Raise `NotConforming` with the message unless the condition holds."""
    if not holds:
        raise NotConforming(message)


def questions(suite: type[Any]) -> Iterator[str]:
    """Names of the tests of a suite, in the order in which they were written."""
    seen: dict[str, None] = {}
    for kind in reversed(suite.__mro__):
        seen |= dict.fromkeys(name for name in vars(kind) if name.startswith("test_"))
    yield from seen


def ask_all(suite: Any) -> dict[str, str]:
    """Ask every question of a suite.

    Returns:
        what was asked, and ``passed`` or why it does not apply.

    Raises:
        NotConforming: names every question that was answered wrongly, and how.
    """
    answers: dict[str, str] = {}
    wrong: list[str] = []
    for name in questions(type(suite)):
        try:
            getattr(suite, name)()
        except unittest.SkipTest as reason:
            answers[name] = f"does not apply: {reason}"
        except Exception as error:  # noqa: BLE001 - a stranger's code fails in any way; all is told
            wrong.append(f"{name}: {type(error).__name__}: {error}")
        else:
            answers[name] = "passed"
    if wrong:
        raise NotConforming("\n".join(wrong))
    return answers
