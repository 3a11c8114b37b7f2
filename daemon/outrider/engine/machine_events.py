"""What events about machines do: to where jobs may start, and to energy."""

from collections.abc import Callable, Sequence

from outrider.engine.accounting.energy import EnergyStatistics
from outrider.engine.accounting.machine_power import ASLEEP, IDLING, OWNED
from outrider.engine.state.site import Site
from outrider.model.machines import MachineSpec


class MachineEvents:
    """Handlers named like the event kinds; each takes (time_s, machine, extra).

    Args:
        site: whose machines they are.
        energy: accounts their states.
        opened: called when a machine may have become free.
    """

    def __init__(self, site: Site, energy: EnergyStatistics, opened: Callable[[], None]) -> None:
        self._site = site
        self._energy = energy
        self._opened = opened

    def joined(self, time_s: float, machine: int, extra: MachineSpec) -> None:
        """It joins, or tells anew what it is."""
        site, energy = self._site, self._energy
        if machine < len(site.specs):
            energy.settle(machine, site.now)
        site.join(machine, extra)
        cluster = site.machine_cluster[machine]
        energy.join(machine, extra, cluster, site.cluster_specs[cluster])
        energy.enter(machine, OWNED if site.owner[machine] else IDLING, site.now)
        if extra.usable and not site.owner[machine]:
            self.usable(time_s, machine, None)

    def left(self, time_s: float, machine: int, extra: None) -> None:
        """It is gone; jobs that ran there are told of by events of their own."""
        self._energy.leave(machine, self._site.now)
        self._site.leave(machine)

    def usable(self, time_s: float, machine: int, extra: None) -> None:
        """Jobs may start on it."""
        self._site.open_machine(machine)
        self._opened()

    def owner_came(self, time_s: float, machine: int, extra: None) -> None:
        """Closed to jobs; the one that runs there is evicted by an event of its own."""
        site = self._site
        site.owner[machine] = 1
        site.shut(machine)
        self._energy.enter(machine, OWNED, site.now)

    def owner_went(self, time_s: float, machine: int, extra: None) -> None:
        """Idle, and not usable before it says so."""
        site = self._site
        site.owner[machine] = 0
        self._energy.enter(machine, IDLING, site.now)

    def rebooted(self, time_s: float, machine: int, extra: None) -> None:
        """Idle anew, and not usable before it says so; an owner who sits there cancels it."""
        site = self._site
        if not site.owner[machine]:
            site.shut(machine)
            self._energy.enter(machine, IDLING, site.now)

    def asleep(self, time_s: float, machine: int, extra: None) -> None:
        """It sleeps, as somebody who knows has told."""
        self._energy.enter(machine, ASLEEP, self._site.now)

    def woken(self, time_s: float, machine: int, extra: None) -> None:
        """It is on again."""
        self._energy.enter(machine, IDLING, self._site.now)

    def drained(self, time_s: float, machine: int, extra: None) -> None:
        """Closed to jobs until it is said to be usable."""
        self._site.shut(machine)

    def eligible(self, time_s: float, subject: int, extra: tuple[str, Sequence[int], bool]) -> None:
        """Which machines a class of jobs may use."""
        self._site.tell_class(*extra)
        self._opened()

    def power(self, time_s: float, machine: int, extra: float) -> None:
        """Its meter was read: these watts hold for a while in place of the table's."""
        self._energy.read_meter(machine, extra, time_s)
