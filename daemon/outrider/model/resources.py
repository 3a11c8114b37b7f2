"""Resources besides CPUs: those that a job requests, and those that a machine has."""

from collections.abc import Iterator
from typing import Final

import msgspec

MEMORY: Final = "memory_mib"
GPUS: Final = "gpus"


class Resources(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Amounts of resources of a machine besides its CPUs.

    Attributes:
        memory_mib: memory, MiB; None for a machine that does not declare it: not checked.
        gpus: GPUs; None: as above.
        named: other resources by name, as ``(("licence", 1.0),)``; those that a machine does not
            declare are not checked there.
    """

    memory_mib: float | None = None
    gpus: float | None = None
    named: tuple[tuple[str, float], ...] = ()

    def amounts(self) -> Iterator[tuple[str, float]]:
        """Name and amount of each given resource; the first two are named `MEMORY` and `GPUS`."""
        if self.memory_mib is not None:
            yield MEMORY, self.memory_mib
        if self.gpus is not None:
            yield GPUS, self.gpus
        yield from self.named
