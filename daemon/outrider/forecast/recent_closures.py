"""When machines were closed to jobs lately: by owners, reboots and administrators."""

from collections import deque
from typing import Final, NamedTuple

from outrider.model import events as ev
from outrider.model.events import Event

KEPT_S: Final = 15 * 86_400.0
MOST_KEPT: Final = 200_000
"""Closures of a pool with so many are kept for less long: 30 MB."""
OWNER: Final = "owner"
REBOOT: Final = "reboot"
HABITS: Final = (OWNER, REBOOT)
"""Reasons that come again; what an administrator does is none."""
_BY_KIND: Final = {ev.OWNER_CAME: OWNER, ev.REBOOTED: REBOOT, ev.DRAINED: "", ev.LEFT: ""}


class Closure(NamedTuple):
    """A machine was closed to jobs.

    Attributes:
        machine: its number.
        from_s: since when, Unix seconds.
        until_s: when jobs could start there again.
        reason: `OWNER`, `REBOOT`, or empty: an administrator, or it was gone.
    """

    machine: int
    from_s: float
    until_s: float
    reason: str


class RecentClosures:
    """Gathers closures of machines as events pass.

    Attributes:
        ended: those of the last days, by the time at which they ended.
        open: since when each machine that is closed now is, and why.
        evicting: reasons for which runs on a machine that closed were evicted.
    """

    def __init__(self) -> None:
        self.ended: deque[Closure] = deque(maxlen=MOST_KEPT)
        self.open: dict[int, tuple[float, str]] = {}
        self.evicting: set[str] = set()

    def watch(self, event: Event) -> None:
        """Look at an event, after those before it."""
        time_s, kind, subject, extra = event
        if kind in _BY_KIND:
            since_s, reason = self.open.get(subject, (time_s, _BY_KIND[kind]))
            # a machine that was drained or has left comes back by no habit, whoever sits at it
            self.open[subject] = since_s, reason if _BY_KIND[kind] else ""
        elif kind == ev.USABLE or (kind == ev.JOINED and extra.usable):
            self._reopen(time_s, subject)
        elif kind == ev.JOINED:
            self.open.setdefault(subject, (time_s, ""))
        elif kind == ev.EVICTED and extra in (OWNER, REBOOT):
            self.evicting.add(extra)

    def kept(self) -> list[tuple[int, float, str]]:
        """Machines that an owner or a reboot keeps now, since when, and which, in that order."""
        kept = [(m, since_s, why) for m, (since_s, why) in self.open.items() if why in HABITS]
        return sorted(kept, key=lambda one: one[1])

    def habitual(self) -> list[Closure]:
        """Those that have ended and come again, by begin, but for machines that are shut now."""
        shut = {machine for machine, (_, why) in self.open.items() if why not in HABITS}
        ended = [one for one in self.ended if one.reason in HABITS and one.machine not in shut]
        return sorted(ended, key=lambda one: one.from_s)

    def _reopen(self, time_s: float, machine: int) -> None:
        since_s, reason = self.open.pop(machine, (time_s, ""))
        if time_s > since_s:
            self.ended.append(Closure(machine, since_s, time_s, reason))
        while self.ended and self.ended[0].until_s < time_s - KEPT_S:
            self.ended.popleft()
