"""What an author provides to test an adapter: a source of events, and control over it."""

import unittest
from collections.abc import Mapping
from typing import Any, ClassVar

from outrider.api.adapter import Adapter


class AdapterHarness:
    """One source of events, and adapters on it.

    Class variables:
        endless: the source produces events by itself, perhaps more than were appended.
        within_s: longest time in which appended events must have come.
        quiet_within_s: longest silence of an adapter on a healthy source.
    """

    endless: ClassVar[bool] = False
    within_s: ClassVar[float] = 20.0
    quiet_within_s: ClassVar[float] = 3.0

    def adapter(self) -> Adapter:
        """A new adapter on the source, as after a restart of the daemon."""
        raise NotImplementedError

    def settings(self) -> Mapping[str, Any]:
        """Settings that have no default, for the check of the settings record."""
        return {}

    def append(self) -> int:
        """Make the source produce events.

        Returns:
            number of events that come of it, at least 1. For an endless source: how many more
            must come before the suite looks at them.
        """
        raise NotImplementedError

    def take_away(self) -> None:
        """Make the source unreachable: remove the file, stop the server."""
        raise NotImplementedError

    def bring_back(self) -> None:
        """Make it reachable again, as it was."""
        raise NotImplementedError

    def close(self) -> None:
        """Remove everything that was made. Called after each test."""

    def needs_silence(self) -> None:
        """Skip a test that does not apply to a source that is never quiet."""
        if self.endless:
            raise unittest.SkipTest("this source is never quiet")

    def needs_a_source_to_take_away(self) -> None:
        """Skip a test that does not apply to a source that is part of the adapter."""
        if type(self).take_away is AdapterHarness.take_away:
            raise unittest.SkipTest("this source cannot be taken away")
