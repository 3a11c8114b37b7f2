"""The declaration of a machine of the pool."""

from collections.abc import Mapping
from typing import Final

import msgspec

OWNER_AWAY: Final = "(OwnerActive isnt true)"
"""``START`` of a machine that takes jobs whenever its owner is away."""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """A machine with static slots of equal size.

    Attributes:
        name: its host name; its slots are ``slot1@name``, ``slot2@name``, ...
        cluster: published as ``MachineCluster``.
        slots: number of slots.
        cpus: CPUs per slot.
        memory_mb: memory per slot.
        start: the ``START`` expression. It may refer to ``OwnerActive`` and ``KeyboardIdle``
            (seconds since the owner left), and to the job as ``TARGET``. A running job is evicted
            as soon as it is false.
        rank: the machine's ``RANK`` of jobs.
        attributes: further attributes of the slot ads, as ClassAd expressions
            (``{"Watts": "85", "OpSys": '"LINUX"'}``).
    """

    name: str
    cluster: str = "default"
    slots: int = 1
    cpus: int = 1
    memory_mb: int = 2048
    start: str = OWNER_AWAY
    rank: str = "0.0"
    attributes: Mapping[str, str] = {}
