"""Starts that were decided and carried out, and that the batch system has not made yet.

Until it has, their machines look free, and the next pass would give them to the next job, too: of
two jobs that may then begin, the batch system takes whichever it likes.
"""

from typing import Any, Final, NamedTuple

from outrider.engine.scheduling.pending_queue import PendingQueue
from outrider.engine.state.machines import FREE
from outrider.engine.state.site import Site
from outrider.model.decisions import START

LONGEST_S: Final = 300.0
"""A batch system that has not made a start after so long may have a reason that is not known here,
and the machine is for others, too."""


class _Awaited(NamedTuple):
    stamp: int
    machine: int
    cpus: int
    until_s: float


class AwaitedStarts:
    """Starts of one policy that are awaited.

    Attributes:
        jobs: their numbers.
    """

    def __init__(self) -> None:
        self.jobs: dict[int, _Awaited] = {}

    def note(self, number: int, stamp: int, machine: int, cpus: int, until_s: float) -> None:
        """A start was decided, and is awaited until then."""
        self.jobs[number] = _Awaited(stamp, machine, cpus, until_s)

    def reserve(self, site: Site, queue: PendingQueue) -> None:
        """Within a pass: no other job chooses what they will take. What is over is forgotten."""
        for number, awaited in list(self.jobs.items()):
            pending = queue.waiting.get(number)
            machine = awaited.machine
            if (
                pending is None
                or (pending.stamp, pending.action) != (awaited.stamp, START)
                or awaited.until_s <= site.now
                or site.state[machine] != FREE
                or site.busy[machine] + awaited.cpus > site.cpus[machine]
            ):
                del self.jobs[number]
            else:
                site.reserve(machine, awaited.cpus)

    def save(self) -> list[list[Any]]:
        """Everything as plain data."""
        return [[number, *awaited] for number, awaited in self.jobs.items()]

    def restore(self, saved: list[list[Any]]) -> None:
        """Go on from what `save` gave."""
        self.jobs = {number: _Awaited(*awaited) for number, *awaited in saved}
