"""What machines have besides CPUs, and what runs use of it.

Nothing is kept of machines that declare nothing, nor of runs that ask for nothing: a site without
resources pays nothing for them.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from outrider.model.resources import Resources

_NOTHING: Final[Mapping[str, float]] = {}
_LEAST: Final = 1e-6
"""Less of a resource than this is what additions and subtractions of parts leave over."""


class ResourceUse:
    """Declared and used amounts by machine.

    Attributes:
        runs: of jobs that use resources: their machine, and what they use.
        declared: amounts by name, of machines that declare any.
    """

    def __init__(self) -> None:
        self.runs: dict[int, tuple[int, Resources]] = {}
        self.declared: dict[int, dict[str, float]] = {}
        self._used: dict[int, dict[str, float]] = {}

    def declare(self, machine: int, resources: Resources | None) -> None:
        """A machine joins, tells anew what it has, or leaves (None)."""
        if resources is None:
            self.declared.pop(machine, None)
        else:
            self.declared[machine] = dict(resources.amounts())

    def begin(self, job: int, machine: int, asked: Resources) -> None:
        """A run begins, or goes on."""
        self.end(job)
        self.runs[job] = machine, asked
        self.take(machine, asked)

    def end(self, job: int) -> None:
        """A run ends or gives back what it uses; nothing happens if it used nothing."""
        machine, asked = self.runs.pop(job, (0, None))
        if asked is not None:
            self.give_back(machine, asked)

    def take(self, machine: int, asked: Resources) -> None:
        """So much of a machine is used, or reserved in this pass."""
        used = self._used.setdefault(machine, {})
        for name, amount in asked.amounts():
            used[name] = used.get(name, 0.0) + amount

    def give_back(self, machine: int, asked: Resources) -> None:
        """It is used no longer."""
        used = self._used[machine]
        declared = self.declared.get(machine, _NOTHING)
        for name, amount in asked.amounts():
            used[name] = used.get(name, 0.0) - amount
            if name not in declared and abs(used[name]) < _LEAST:
                del used[name]  # jobs may ask for whatever names, and for next to nothing

    def left(self, machine: int) -> Mapping[str, float]:
        """What is left of what the machine declares, by name; empty where it declares nothing."""
        declared = self.declared.get(machine)
        if declared is None:
            return _NOTHING
        used = self._used.get(machine, _NOTHING)
        return {name: amount - used.get(name, 0.0) for name, amount in declared.items()}

    def save(self) -> list[Any]:
        """The runs, as plain data; what machines declare is in their specifications."""
        return [[job, m, msgspec.to_builtins(asked)] for job, (m, asked) in self.runs.items()]

    def restore(self, saved: list[Any]) -> None:
        """Go on from what `save` gave. The machines must have been declared again."""
        for job in list(self.runs):
            self.end(job)
        for job, machine, asked in saved:
            self.begin(job, machine, msgspec.convert(asked, Resources))
