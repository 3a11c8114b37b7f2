"""Clusters: what a site declares about machines that sit and are used together."""

from typing import Final, NamedTuple

from outrider.model.opening import ALWAYS, OpeningHours

NEVER_S: Final = float("inf")


class ClusterSpec(NamedTuple):
    """A cluster's declared habits. A site that declares none has machines that never sleep.

    Attributes:
        name: the cluster.
        hours: when it is open to its owners.
        sleep_after_open_s: idle seconds before a machine sleeps, if idleness began while open.
        sleep_after_closed_s: the same, if idleness began while closed.
    """

    name: str
    hours: OpeningHours = ALWAYS
    sleep_after_open_s: float = NEVER_S
    sleep_after_closed_s: float = NEVER_S

    @property
    def sleeps(self) -> bool:
        """Whether its machines ever go to sleep by themselves."""
        return self.sleep_after_open_s < NEVER_S or self.sleep_after_closed_s < NEVER_S

    def sleep_after_s(self, week_second: float) -> float:
        """Idle seconds until sleep for idleness that begins now."""
        if self.hours.minutes[int(week_second) // 60]:
            return self.sleep_after_open_s
        return self.sleep_after_closed_s
