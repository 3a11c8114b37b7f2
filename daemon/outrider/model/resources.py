"""Resources besides CPUs: what a job asks for, and what a machine has."""

from collections.abc import Iterator
from typing import Final

import msgspec

MEMORY: Final = "memory_mib"
GPUS: Final = "gpus"


class Resources(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Amounts of what jobs use of a machine besides its CPUs.

    Attributes:
        memory_mib: memory, MiB; of a machine None where nobody declares it: then it is not checked.
        gpus: GPUs; None as above.
        named: other resources by name, as ``(("licence", 1.0),)``; of a machine those that it
            declares, others are not checked there.
    """

    memory_mib: float | None = None
    gpus: float | None = None
    named: tuple[tuple[str, float], ...] = ()

    def amounts(self) -> Iterator[tuple[str, float]]:
        """Name and amount of each that is said; the names of the first two are `MEMORY`, `GPUS`."""
        if self.memory_mib is not None:
            yield MEMORY, self.memory_mib
        if self.gpus is not None:
            yield GPUS, self.gpus
        yield from self.named
