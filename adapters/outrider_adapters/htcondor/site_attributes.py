"""What a site itself has slot ads say of its machines, such as the room that they stand in."""

from collections.abc import Iterable
from typing import Any, Final

from outrider_adapters.readers.htcondor.hosts import machine_of_slot

_BEGINNINGS: Final = (
    "Accounting", "Address", "Assigned", "Authenticat", "Available", "COLLECTOR_HOST", "CUDA",
    "CVMFS", "Child", "Client", "Concurrency", "Condor", "Detected", "Docker", "Drain", "GPUs_",
    "Has", "Hibernation", "Java", "Job", "OpSys", "Preempting", "PublicClaim", "Remote",
    "Singularity", "Slot", "Starter", "TransferPlugin", "Updates", "Utsname", "VM_", "WakeOnLan",
)  # fmt: skip
_NAMES: Final = frozenset(
    {
        "Activity", "Arch", "FileSystemDomain", "GlobalJobId", "HardwareAddress", "Machine",
        "MachineResources", "Microarch", "MyAddress", "MyType", "Name", "NodeName", "Owner",
        "StartdIpAddr", "State", "SubnetMask", "TargetType", "UidDomain", "User",
    }
)  # fmt: skip
"""With `_BEGINNINGS`: attributes with texts that HTCondor itself writes into slot ads (23.9)."""
_LONGEST: Final = 100


def site_attributes(ads: Iterable[Any]) -> dict[str, dict[str, str]]:
    """The attributes with texts that are none of HTCondor's own, by machine.

    Args:
        ads: of slots, whole.
    """
    found: dict[str, dict[str, str]] = {}
    for ad in ads:
        own = found.setdefault(machine_of_slot(str(ad["Name"])), {})
        for name, value in ad.items():
            if isinstance(value, str) and 0 < len(value) <= _LONGEST and _is_the_sites(name):
                own.setdefault(name, value)
    return found


def _is_the_sites(name: str) -> bool:
    return name not in _NAMES and not name.startswith(_BEGINNINGS)
