"""Clusters: declared properties of machines that are located and used together."""

from typing import Final, NamedTuple

from outrider.model.opening import ALWAYS, OpeningHours

NEVER_S: Final = float("inf")


class ClusterSpec(NamedTuple):
    """Opening hours and sleep of a cluster. Machines of undeclared clusters never sleep.

    Attributes:
        name: the cluster.
        hours: opening hours, in which owners may use it.
        sleep_after_open_s: idle seconds before a machine sleeps, if it became idle while open.
        sleep_after_closed_s: the same, if it became idle while closed.
    """

    name: str
    hours: OpeningHours = ALWAYS
    sleep_after_open_s: float = NEVER_S
    sleep_after_closed_s: float = NEVER_S

    @property
    def sleeps(self) -> bool:
        """Whether its machines ever go to sleep."""
        return self.sleep_after_open_s < NEVER_S or self.sleep_after_closed_s < NEVER_S

    def sleep_after_s(self, week_second: float) -> float:
        """Idle seconds until sleep for a machine that becomes idle now."""
        if self.hours.minutes[int(week_second) // 60]:
            return self.sleep_after_open_s
        return self.sleep_after_closed_s
