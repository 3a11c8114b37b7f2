"""Room on a machine: CPUs and declared resources, now or at a moment to come."""

from collections.abc import Mapping

from outrider.model.resources import Resources


class Room:
    """What is left of a machine. Resources that it does not declare are not in it.

    Attributes:
        cpus: CPUs left; below 0 where what is expected to be over still runs.
        resources: amounts left, by name.
    """

    __slots__ = ("cpus", "resources")

    def __init__(self, cpus: int, resources: Mapping[str, float]) -> None:
        self.cpus = cpus
        self.resources = dict(resources)

    def copy(self) -> "Room":
        """The same room, to reckon with."""
        return Room(self.cpus, self.resources)

    def holds(self, cpus: int, asked: Resources | None) -> bool:
        """Whether so many CPUs and these resources are left."""
        return cpus <= self.cpus and (asked is None or self.lacking(asked) is None)

    def lacking(self, asked: Resources) -> str | None:
        """The name of a resource of which less is left than is asked for; None if there is none."""
        left = self.resources
        return next((n for n, amount in asked.amounts() if amount > left.get(n, amount)), None)

    def take(self, cpus: int, asked: Resources | None) -> None:
        """So much is used from now on."""
        self.cpus -= cpus
        if asked is not None:
            self._change(asked, -1.0)

    def give_back(self, cpus: int, asked: Resources | None) -> None:
        """So much is used no longer."""
        self.cpus += cpus
        if asked is not None:
            self._change(asked, 1.0)

    def _change(self, asked: Resources, sign: float) -> None:
        for name, amount in asked.amounts():
            if name in self.resources:
                self.resources[name] += sign * amount
